/* Names of the children in the newer generation of AIM: "<part>-<part>-<hash>", at most 63 bytes. Children are found by name
 * after the operator is replaced, so they must be the same, hash included. Pure; results live in the arena. */
#ifndef FLYBALL_DERIVE_CORE_H
#define FLYBALL_DERIVE_CORE_H

#include "../json/json.h"

/* Parts become RFC 1123 names; an empty one becomes "part". */
str aim_derive_name(struct arena *a, const str *parts, size_t n, const struct json *inputs,
                    size_t digits);
/* A list of texts to be hashed. */
struct json *aim_derive_inputs(struct arena *a, const str *texts, size_t n);
/* The AIMModel that is created for an image. */
str aim_derive_model(struct arena *a, str image);

#endif
