/* Changes of a tree, chosen by bytes: another type, another value, a member more or less, at any place. */
#ifndef FLYBALL_FUZZ_MUTATE_H
#define FLYBALL_FUZZ_MUTATE_H

#include "json/json.h"

struct fuzz_bytes {
    const uint8_t *p, *end;
};

static inline uint8_t fuzz_byte(struct fuzz_bytes *b) /* 0 after the end */
{
    return b->p < b->end ? *b->p++ : 0;
}

struct mutation {
    struct arena *arena;
    struct fuzz_bytes *bytes;
    const char *const *words; /* NULL ends them */
    const struct json *other; /* another tree to take parts of */
};

/* Changes one place of `root` in place; the root itself stays an object. */
void mutate(const struct mutation *m, struct json *root);

#endif
