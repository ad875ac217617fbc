/* The compiled form of a table of fields (project.h): their paths as one tree of steps, so that an object is
 * walked once however many fields are declared. */
#ifndef FLYBALL_FIELDTREE_H
#define FLYBALL_FIELDTREE_H

#include "../base/arena.h"
#include "project.h"

struct field_target {
    const struct field *field;
    struct fieldtree *of; /* F_LIST: the tree of one element */
    bool many;            /* the path goes through array elements: numbers are summed */
    uint64_t seen;        /* turn in which it was last filled */
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
    bool shares; /* has a word or a map somewhere: unref must look */
};

/* Everything lives in the arena. The record's own fields are added where `is_record`. */
int fieldtree_compile(struct arena *a, const struct fields *fields, bool is_record,
                      struct fieldtree **ret, err_t *e);

extern const struct fields record_own_fields; /* the fields of struct record */

#endif
