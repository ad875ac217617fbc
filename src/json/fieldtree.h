/* The compiled form of a table of fields (project.h): a tree of path steps, so that an object is
 * visited once no matter how many fields are declared. */
#ifndef FLYBALL_FIELDTREE_H
#define FLYBALL_FIELDTREE_H

#include "../base/arena.h"
#include "project.h"

struct field_target {
    const struct field *field;
    struct fieldtree *of; /* F_LIST: the tree of one element */
    bool many;            /* the path contains array elements: numbers are summed */
    uint64_t seen;        /* the struct (walk.turn) in which it was filled last */
    struct field_target *next;
};

struct field_step {
    enum { STEP_MEMBER, STEP_EACH, STEP_MATCH } kind;
    str key;                      /* of MEMBER and MATCH */
    str value;                    /* of MATCH */
    struct field_target *targets; /* fields whose path ends here */
    struct field_step *children, *next;
};

struct fieldtree {
    struct fields fields;
    struct field_step root;
    bool shares; /* contains a word or a map, which record_unref() must release */
};

/* Allocates from the arena. Adds the fields of struct record if `is_record`. */
int fieldtree_compile(struct arena *a, const struct fields *fields, bool is_record,
                      struct fieldtree **ret, err_t *e);

extern const struct fields record_own_fields; /* the fields of struct record */

#endif
