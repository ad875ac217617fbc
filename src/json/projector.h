/* Internals shared by project.c and record.c. */
#ifndef FLYBALL_PROJECTOR_H
#define FLYBALL_PROJECTOR_H

#include "../base/buf.h"
#include "../base/vec.h"
#include "fieldtree.h"

typedef LIST(char) bytes_list; /* a list whose element type is not known here, only its size */

struct projector {
    struct intern intern;
    void *pool;            /* memory of the parser, reused for every document */
    void *document;        /* the last one parsed; watch_line borrows from it */
    size_t document_bytes; /* length of its text */
    struct buf trimmed;    /* the text without undeclared members; the document points into it */
    struct buf image;      /* the record under construction; pointers are offsets */
    VEC(size_t) places;    /* the offsets of those pointers in the image */
    VEC(struct labels_pair) pairs; /* of the map under construction */
    size_t record_bytes;           /* of all live records, as counted by the allocator */
    uint64_t turns;                /* number of structs filled; see field_target.seen */
};

struct projection {
    struct projector *j;
    struct fieldtree *tree;
    size_t links, links_at; /* number of index links, and their offset in a record */
    size_t fixed_bytes;     /* of the struct and the links */
    size_t records;         /* not freed yet */
    struct arena arena;     /* holds the tree */
};

struct walk { /* fills one struct of the image */
    struct projector *j;
    size_t base;   /* offset of the struct in the image */
    uint64_t turn; /* distinguishes this struct from others that the same targets fill */
};

#endif
