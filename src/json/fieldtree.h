/* The compiled form of a table of fields (project.h): a tree of path steps, so that an object is
 * visited once no matter how many fields are declared. */
#ifndef FLYBALL_FIELDTREE_H
#define FLYBALL_FIELDTREE_H

#include "../base/arena.h"
#include "project.h"

struct prototable_field;

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

/* Where the trimmer wrote a value, with its quotes: offsets in its output. `to` is 0 if it did not. */
struct kept_span {
    size_t from, to;
    bool again; /* it was there twice */
};

enum { KEPT_NS, KEPT_NAME, KEPT_VERSION, KEPT_SPANS };

/* What to keep of one value before it is parsed: all paths that go through it, merged. `[]`, `[key=value]` and the
 * fields of an F_LIST all are about the elements, and a value without members and elements is kept as it is. */
struct kept {
    str key;    /* of a member */
    bool whole; /* with all its members and elements */
    struct kept *members, *each, *next;
    struct kept_span *span; /* to be noted; NULL: no */
    const struct prototable_field
        *wire; /* of a member: its field in a message; see prototrim_resolve() */
};

struct fieldtree {
    struct fields fields;
    struct field_step root;
    struct kept keep;                   /* of the object */
    struct kept_span spans[KEPT_SPANS]; /* of the object that was trimmed last; records only */
    bool shares;   /* contains a word, a map or an F_ONCE, which record_unref() must release */
    bool has_once; /* contains an F_ONCE, not counting those of lists */
};

/* Allocates from the arena. Adds the fields of struct record if `is_record`. */
int fieldtree_compile(struct arena *a, const struct fields *fields, bool is_record,
                      struct fieldtree **ret, err_t *e);

static inline void fieldtree_note_span(const struct kept *keep, size_t from, size_t to)
{
    if (keep->span)
        *keep->span = (struct kept_span){ from, to, keep->span->to > 0 };
}

/* The member of that name, or NULL. */
struct kept *fieldtree_find_kept(const struct kept *keep, str name);

extern const struct fields record_own_fields; /* the fields of struct record */

#endif
