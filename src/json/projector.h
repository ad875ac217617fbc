/* Internals shared by project.c, project_protobuf.c and record.c. */
#ifndef FLYBALL_PROJECTOR_H
#define FLYBALL_PROJECTOR_H

#include "../base/buf.h"
#include "../base/vec.h"
#include "fieldtree.h"
#include "prototable.h"

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
    uint64_t sum;                  /* of the trimmed object; see projector_find_same() */
    uint64_t turns;                /* number of structs filled; see field_target.seen */
};

struct projection {
    struct projector *j;
    struct fieldtree *tree;
    size_t links, links_at; /* number of index links, and their offset in a record */
    size_t fixed_bytes;     /* of the struct and the links */
    size_t records;         /* not freed yet */
    struct arena arena;     /* holds the trees */
    project_find_fn *find;  /* NULL: none */
    void *find_context;
    /* protobuf; NULL: not read */
    const struct prototable *types;
    const struct prototable_message *message; /* of an object */
    struct fieldtree *bookmark;               /* the fields of a bookmark */
};

struct walk { /* fills one struct of the image */
    struct projector *j;
    size_t base;   /* offset of the struct in the image */
    uint64_t turn; /* distinguishes this struct from others that the same targets fill */
};

struct yyjson_val;

/* Drops the last document and makes room for one that was `bytes` long. Then the caller fills `trimmed`. */
int projector_begin(struct projector *j, size_t bytes, err_t *e);
/* Between the two: the record that the trimmed object at this place in the text would be, with a new reference, if it is
 * already held; NULL if it has to be made. */
struct record *projector_find_same(struct projection *p, size_t from, size_t to);
int projector_parse_trimmed(struct projector *j, struct yyjson_val **ret, err_t *e);
/* Builds the image of an object and turns it into a record. */
int projector_make_record(struct projection *p, struct yyjson_val *object, struct record **ret,
                          err_t *e);
/* Sets `*ret` if an event is about an object that is already held as it is. */
bool projector_find_event(struct projection *p, struct watch_line *ret);
/* Reads a document of type and object. */
int projector_read_event(struct projection *p, struct yyjson_val *root, struct watch_line *ret,
                         err_t *e);

#endif
