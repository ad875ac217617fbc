/* The whole reconcile path of a feature under objects of any shape: a manager with the real client, caches, queue
 * and controllers on a virtual loop, and in place of the network an API server in this process that believes
 * everything. An input is a program: which of the feature's valid objects to change, where, into what, how much time
 * passes in between, and how writes are answered.
 *
 * A run of libFuzzer is two parts. In the first, its bytes choose up to eight changes, so that coverage guides them. In
 * the second, a random sequence seeded by the same bytes makes 56 more, so that the cost of a run (time that passes, objects
 * that are put back) is shared by many objects.
 *
 * The world outlives a run: after each one the objects are put back, so that a run costs only what it touches. At the
 * end the program prints how many changed objects went through how many reconciles.
 * Nothing may crash, leak or hang; what a feature decides is for other tests. */
#ifndef FLYBALL_FUZZ_RECONCILE_H
#define FLYBALL_FUZZ_RECONCILE_H

#include "kube/manager.h"

struct fuzz_object {
    const char *api, *plural; /* "/apis/apps/v1", "deployments" */
    const char *yaml;         /* a valid object */
};

struct fuzz_feature {
    const struct feature *feature;
    const char *const *settings; /* name, value, ..., NULL */
    const struct fuzz_object *objects;
    size_t object_n;
    const char *const *words; /* texts that mean something to the feature; NULL ends them */
};

void fuzz_reconcile(const struct fuzz_feature *feature, const uint8_t *data, size_t size);

#endif
