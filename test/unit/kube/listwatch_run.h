/* A cache that follows the model, and a plain array into which what its handlers receive is replayed: a thing is added
 * only where there was none, changed and deleted only where there was one. */
#ifndef FLYBALL_TEST_LISTWATCH_RUN_H
#define FLYBALL_TEST_LISTWATCH_RUN_H

#include "kube/listwatch.h"
#include "model.h"

struct thing {
    struct record meta;
    int64_t size;
};

extern const struct cache_spec run_specs[2]; /* of things in JSON and in protobuf */

extern enum cache_need run_need; /* of the next run */
extern bool run_in_protobuf;     /* all runs: things are a built-in kind */

struct run {
    struct model m;
    struct projector *projector;
    struct cache *cache;
    struct listwatch *watch;
    int64_t seen[THINGS]; /* -1: none */
    int changes;          /* received */
    int troubles, syncs;
};

void run_on_change(void *context, const struct record *old, const struct record *now);
void run_start(struct run *run);
void run_watch(struct run *run);
void run_stop(struct run *run);
bool run_agrees(const struct run *run);
void run_for(struct run *run, int64_t ns);

#endif
