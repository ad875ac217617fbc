/* The steps every write shares, whoever asks for it: a request, or a controller of our own.
 *
 *   body -> managed fields -> kind_prepare -> kind_validate -> write_stage -> (commit) -> answer */
#ifndef FLYBALL_WRITE_H
#define FLYBALL_WRITE_H

#include "server.h"

enum { OBJECT_BYTES_MAX = 3 << 19 }; /* 1.5 MiB, as etcd holds */

/* Puts the state of an object (a tree in the version of k, which gets its resourceVersion) into the
 * batch. Borrowed from the store. NULL: too large, or the store refuses writes (`e` says which). */
struct object *write_stage(struct server *s, struct arena *a, const struct kind *k, str key,
                           struct json *tree, err_t *e);
/* A tombstone; the tree is the last state that watches show. */
struct object *write_remove(struct server *s, struct arena *a, const struct kind *k, str key,
                            struct json *tree, err_t *e);
void call_stage_failed(struct call *c, const err_t *e); /* 413, 500 or 507 */

/* What kind_prepare and kind_validate may look up, on behalf of a call or (c NULL) a controller. */
struct write_env {
    struct kind_env env;
    struct server *server;
    struct call *call;
};
void write_env_init(struct write_env *e, struct server *s, struct call *c, struct arena *a);

/* An owner that is named twice counts once; the client is told. */
void write_owners_once(struct call *c, const struct json *object);

/* A new object out of a decoded body; answers with `status`. */
void write_create(struct call *c, const struct write_options *o, struct json *object);

struct update {
    const struct write_options *options;
    const struct object *old;
    struct json *old_tree; /* as read for this call */
    struct json *object;   /* decoded */
    bool patched;          /* by PATCH: versions and uids are the object's own unless changed */
    bool applied;          /* managed fields are settled already */
};
/* The new state of an existing object, through the call's subresource. */
void write_update(struct call *c, const struct update *u);

/* Whether the name and namespace that the body gives, if any, are those of the path. False: answered. */
bool write_check_place(struct call *c, const struct json *object);

bool check_scale(struct call *c, const struct json *scale); /* false: answered */

/* Answers with what was staged (or would have been): the object, or its scale. */
void write_answer(struct call *c, int status, const struct object *stored, struct json *tree);

/* Whether nothing but time separates two states. */
bool write_is_same(struct arena *a, const struct json *old, const struct json *now);

/* Is a dying object held by nothing any more? */
bool write_may_go(const struct kind *k, const struct json *tree);

#endif
