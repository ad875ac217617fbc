/* Applies manifests in sequence, as `kubectl apply --server-side -f` does, on the loop. */
#ifndef FLYBALL_CMD_MANIFEST_APPLY_H
#define FLYBALL_CMD_MANIFEST_APPLY_H

#include "../json/json.h"
#include "../kube/client.h"

struct manifest_apply;

/* `documents` is an array of objects (yaml_parse_all); they are copied. Objects without a
 * namespace go to `default` if their kind is namespaced. `done` is called once, with NULL or
 * with the error of the first object that failed; those before it stay applied. */
enum manifest_apply_mode {
    MANIFEST_APPLY_ALL,     /* server-side apply: existing objects are updated */
    MANIFEST_APPLY_MISSING, /* existing objects are not changed: a second run continues the first */
};

struct manifest_apply *manifest_apply_start(struct kube *k, enum manifest_apply_mode mode,
                                            const struct json *documents,
                                            void (*done)(void *context, const char *failure),
                                            void *context);
void manifest_apply_free(struct manifest_apply *a); /* cancels what is pending; accepts NULL */

#endif
