/* Objects that grow: for every list and map of a type, an object in which it has as many entries as asked
 * for. See growth_test.c. */
#ifndef FLYBALL_TEST_GROWTH_OBJECTS_H
#define FLYBALL_TEST_GROWTH_OBJECTS_H

#include "apiserver/kinds/kinds.h"

/* Entries that differ, or that are all the same (and so mostly refused). */
enum growth_entries { GROWTH_DIFFERENT, GROWTH_SAME };

/* A place that can grow: the way from the object down to a list or map. */
struct growth_place {
    const struct schema *steps[12]; /* of each value on the way, the last is what grows */
    str names[12];                  /* of the member that leads there; empty: an element */
    size_t n;
};

typedef void growth_visit(void *context, const struct growth_place *place);
void growth_places(const struct schema *s, growth_visit *visit, void *context);
str growth_place_text(struct arena *a, const struct growth_place *place);

/* Sets what is at the place, in an object that is changed, to `n` entries. */
struct json *growth_entries(struct arena *a, const struct growth_place *place, size_t n,
                            enum growth_entries entries);
void growth_put(struct arena *a, struct json *object, const struct growth_place *place,
                struct json *value);

/* An object of the kind that is accepted, as far as there is a text for it here. */
struct json *growth_base(struct arena *a, const struct kind *k);

#endif
