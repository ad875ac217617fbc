/* What the two halves of reconcile.c share: the world that a feature runs in. Private to the fuzzers. */
#ifndef FLYBALL_FUZZ_RECONCILE_WORLD_H
#define FLYBALL_FUZZ_RECONCILE_WORLD_H

#include "reconcile.h"

#include "base/random.h"
#include "fuzz.h"
#include "mutate.h"
#include "net/http_client.h"

enum {
    OBJECTS_MAX = 32,
    CHILDREN_MAX = 16, /* made by the feature in one input */
    WRITES_MAX = 5000, /* of one input: more is a controller that answers its own writes */
};

struct object {
    const struct fuzz_object *of;
    struct json *valid; /* in the world's arena */
    struct json *now;   /* NULL: as `valid`; in the input's arena */
};

struct call;

extern struct world {
    const struct fuzz_feature *feature;
    struct loop *loop;
    struct kube *kube;
    struct manager *manager;
    struct arena arena, input;
    struct call *calls;
    struct object objects[OBJECTS_MAX + CHILDREN_MAX]; /* the feature's, then what it made */
    size_t object_n;
    struct fuzz_object children[CHILDREN_MAX];
    uint64_t versions;
    int writes;                      /* of this input */
    struct random random;            /* of answers; seeded by the input */
    uint8_t unkind;                  /* how often, of 256, an answer is no honest one */
    uint64_t runs, changed, written; /* in total: runs, changed objects, writes of the feature */
    struct fuzz_bytes bytes;
} world;

str world_next_version(struct arena *a);
/* The object as the server has it now. */
const struct json *world_object_now(const struct object *o);
/* Sends an event to every watch that selects the object. */
void world_send_event(const struct fuzz_object *of, const char *type, const struct json *object,
                      const struct json *valid);

#endif
