/* Applies manifests one after another: what `kubectl apply --server-side -f` does, on the loop. */
#ifndef FLYBALL_CMD_APPLY_H
#define FLYBALL_CMD_APPLY_H

#include "../json/json.h"
#include "../kube/client.h"

struct apply;

/* `documents` is an array of objects (yaml_parse_all); they are copied. Objects without a namespace go to
 * `default` where their kind wants one. `done` is called once, with NULL or why the first that failed
 * did; those before it stay. */
enum apply_mode {
    APPLY_ALL,     /* server-side apply: what is there becomes as written */
    APPLY_MISSING, /* what is there stays as it is: a second run goes on from where the first was */
};

struct apply *apply_start(struct kube *k, enum apply_mode mode, const struct json *documents,
                          void (*done)(void *context, const char *failure), void *context);
void apply_free(struct apply *a);          /* stops where it is; NULL is fine */
size_t apply_count(const struct apply *a); /* applied so far */

#endif
