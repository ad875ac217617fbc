/* One function per verb; each fills in the call's answer. */
#ifndef FLYBALL_VERBS_H
#define FLYBALL_VERBS_H

#include "call.h"

struct event;

void verb_get(struct call *c);
void verb_list(struct call *c);
/* Counts the memory that slow clients of lists keep alive; for each committed event. */
void verb_list_on_event(struct server *s, const struct event *e);
void verb_watch(struct call *c);
void verb_create(struct call *c);
/* POST to a subresource (binding, eviction, token) or to bindings. */
/* POST to pods/eviction (eviction.c). */
void eviction_post(struct call *c, const struct write_options *o, const struct json *eviction);
void verb_post(struct call *c, const struct write_options *o, struct json *object);
void verb_update(struct call *c);
void verb_patch(struct call *c);
void verb_delete(struct call *c);
void verb_delete_collection(struct call *c);

/* Creates an object from a decoded body: POST, and a PUT or apply of an object that does not exist. */
void verb_create_object(struct call *c, const struct write_options *o, struct json *object);

struct object_update {
    const struct write_options *options;
    const struct object *old;
    struct json *old_tree; /* `old` in the version of the call */
    struct json *object;   /* decoded */
    bool patched;          /* by PATCH: an unset resourceVersion or uid is that of `old` */
    bool applied;          /* managedFields are up to date */
};
/* Writes the new state of an existing object, or of the call's subresource. */
void verb_update_object(struct call *c, const struct object_update *u);

/* ---- pages.c: everything that is not a resource */
void pages_serve(struct call *c);

/* ---- verb_get.c: 504 for a resourceVersion that does not exist yet */
struct status verb_future_status(struct arena *a, int64_t rev, int64_t now);
bool verb_refuse_future(struct call *c, int64_t rev); /* true: answered */

#endif
