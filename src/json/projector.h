/* What project.c and record.c share; nobody else includes this. */
#ifndef FLYBALL_PROJECTOR_H
#define FLYBALL_PROJECTOR_H

#include "../base/buf.h"
#include "../base/vec.h"
#include "fieldtree.h"

typedef LIST(char) bytes_list; /* a list of which only the size of an element is known */

struct projector {
    struct intern intern;
    void *pool;            /* the parser's memory, used again for every document */
    void *document;        /* the last one parsed; watch_line borrows from it */
    size_t document_bytes; /* of its text */
    struct buf trimmed;    /* that text without what nobody declared; the document is in it */
    struct buf image;      /* the record being built, pointers as offsets */
    VEC(size_t) places;    /* where in the image those pointers are */
    VEC(struct labels_pair) pairs; /* of the map being built */
    size_t record_bytes;           /* of all records alive, as the allocator counts them */
    uint64_t turns;                /* counts structs filled, see field_target.seen */
};

struct projection {
    struct projector *j;
    struct fieldtree *tree;
    size_t links, links_at; /* places for indexes, and where they begin */
    size_t fixed_bytes;     /* the struct and the links */
    size_t records;         /* alive */
    struct arena arena;     /* of the tree */
};

struct walk { /* filling one struct of the image */
    struct projector *j;
    size_t base; /* where the struct begins */
    uint64_t turn;
};

#endif
