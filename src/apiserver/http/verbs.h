/* One function a verb; each fills in the call's answer. */
#ifndef FLYBALL_VERBS_H
#define FLYBALL_VERBS_H

#include "call.h"

void verb_get(struct call *c);
void verb_list(struct call *c);
void verb_watch(struct call *c);
void verb_create(struct call *c);
/* What is posted to a subresource, or to bindings. */
void verb_post(struct call *c, const struct write_options *o, struct json *object);
void verb_update(struct call *c);
void verb_patch(struct call *c);
void verb_delete(struct call *c);
void verb_delete_collection(struct call *c);

/* Everything that is not a resource: discovery, documents, health, version. */
void serve_page(struct call *c);

/* 504 when a version is asked for that does not exist yet; true: answered. */
struct status status_of_future(struct arena *a, int64_t rev, int64_t now);
bool call_from_the_future(struct call *c, int64_t rev);

#endif
