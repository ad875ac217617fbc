/* The steps that all writes share, those of requests and those of controllers.
 *
 *   body -> managed fields -> kind_prepare -> kind_validate -> write_stage -> (commit) -> answer */
#ifndef FLYBALL_WRITE_H
#define FLYBALL_WRITE_H

#include "server.h"

enum { OBJECT_BYTES_MAX = 3 << 19 }; /* 1.5 MiB, etcd's limit */

/* Adds the state of an object to the batch: a tree in the version of k, whose resourceVersion is set. The
 * result is borrowed from the store. NULL: the object is too large, or the store refuses writes. */
struct object *write_stage(struct server *s, struct arena *a, const struct kind *k, str key,
                           struct json *tree, err_t *e);
/* Adds a tombstone; `tree` is the last state, which watches send. */
struct object *write_remove(struct server *s, struct arena *a, const struct kind *k, str key,
                            struct json *tree, err_t *e);
void write_stage_error(struct call *c, const err_t *e); /* 413, 500 or 507 */

/* The kind's own steps: defaults and system fields, then validation. False: answered. */
bool write_prepare(struct call *c, const struct kind_change *change);

/* All objects of a kind in a namespace ("": all), counting staged writes, as an array of trees. */
struct json *write_list_latest(struct server *s, struct arena *a, const struct kind *k, str ns);

/* Removes duplicate owner references and warns the client. */
void write_dedupe_owners(struct call *c, const struct json *object);

/* Whether name and namespace in the body, if set, are those of the path. False: answered. */
bool write_check_place(struct call *c, const struct json *object);

/* Checks the replicas of a built-in kind's Scale. False: answered. */
bool write_check_scale(struct call *c, const struct json *scale);

/* Answers with the object, or its Scale, that was staged; `stored` NULL: a dry run, or nothing changed. */
void write_answer(struct call *c, int status, const struct object *stored, struct json *tree);

/* Whether two states differ only in resourceVersion and the times of managedFields. */
bool write_is_same(struct arena *a, const struct json *old, const struct json *now);

/* Whether the object is being deleted and nothing holds it any more. */
bool write_can_delete(const struct kind *k, const struct json *tree);

/* For controllers: the stored tree of an object, to be changed; NULL: there is no such object. */
struct json *write_begin_edit(struct server *s, struct arena *a, str key,
                              const struct kind **ret_kind);
/* Stages the changed tree, or deletes the object if nothing holds it any more. */
bool write_end_edit(struct server *s, struct arena *a, const struct kind *k, str key,
                    struct json *tree);

#endif
