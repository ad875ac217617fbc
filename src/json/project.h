/* Projection: the few fields of an object that a feature declared, packed into one small block.
 *
 *     struct pod {
 *         struct record meta;               // always first: namespace, name, uid, resourceVersion
 *         const struct labels *labels;
 *         str node;
 *         int64_t cpu_milli;
 *     };
 *     static const struct field pod_fields[] = {
 *         { "metadata.labels", F_MAP, offsetof(struct pod, labels) },
 *         { "spec.nodeName", F_WORD, offsetof(struct pod, node) },
 *         { "spec.containers[].resources.limits.cpu", F_MILLI, offsetof(struct pod, cpu_milli) },
 *     };
 *     struct projection *pods = NULL;
 *     projection_new(projector, FIELDS(struct pod, pod_fields), 0, &pods, e);
 *
 * A Pod is 9 to 24 KB of JSON, its record some 200 bytes. The JSON of one object at a time is parsed
 * into a pool that is used again for the next, walked once, and forgotten.
 *
 * Paths: names with dots; `["a.b/c"]` for a name that has dots itself; `[]` for every element of an
 * array (numbers are summed, of the rest the first counts); `[type=Ready]` for the elements that have
 * this member. A member that is absent, null or of another type leaves the field at `otherwise`:
 * objects come from strangers, and one odd field must not hide an object.
 *
 * A record is immutable, one block, counted by reference. Its texts live in the block and die with
 * it: take a reference to keep one past a callback. */
#ifndef FLYBALL_PROJECT_H
#define FLYBALL_PROJECT_H

#include "intern.h"

enum field_type {
    F_STR,   /* str: text of its own (names, uids) */
    F_WORD,  /* str: text that many objects share (nodes, images): kept once */
    F_MAP,   /* const struct labels *: an object of texts */
    F_INT,   /* int64_t */
    F_REAL,  /* double */
    F_BOOL,  /* bool */
    F_MILLI, /* int64_t: a quantity in thousandths ("250m" is 250, "1Gi" is 1073741824000) */
    F_TIME,  /* int64_t: nanoseconds since 1970 */
    F_HAS,   /* bool: the member is there and not null */
    F_IS,    /* bool: the member is exactly `text` */
    F_SUM,   /* uint64_t: sum64() of the text, of which only equality matters; 0: none */
    F_RAW,   /* str: the member as compact JSON, for json_parse() when it is needed */
    F_LIST,  /* LIST(type): an array of objects, each with fields of its own (`of`) */
    F_TYPE_N
};

struct field {
    const char *path;
    enum field_type type;
    size_t offset;
    int64_t otherwise;       /* of F_INT, F_REAL, F_BOOL, F_MILLI, F_TIME */
    const struct fields *of; /* F_LIST: of one element; offsets count from the element */
    const char *text;        /* F_IS */
};

struct fields {
    size_t bytes; /* of the struct */
    const struct field *at;
    size_t n;
};

#define FIELDS(type, table) (&(const struct fields){ sizeof(type), (table), countof(table) })

#define LIST(type)                                                                                 \
    struct {                                                                                       \
        const type *at;                                                                            \
        size_t n;                                                                                  \
    }

struct projection;

/* What every record begins with. */
struct record {
    struct set_node node;        /* hash of namespace and name: the cache's */
    uint32_t refs : 31;          /* record_ref() */
    uint32_t mark : 1;           /* the cache's, during a list */
    const struct projection *of; /* which declared it; outlives its records */
    str ns, name, uid, rv;       /* ns is "" for what has no namespace; rv is opaque */
};

/* What all projections of a process share: the parser's pool, the shared texts and maps. One thread. */
struct projector;
struct projector *projector_new(void);
void projector_free(struct projector *j);          /* all its projections must be gone */
size_t projector_bytes(const struct projector *j); /* of all records and what they share */

/* Compiles a table of fields, which must stay. `links` places are left free in every record
 * for its indexes (see kube/cache.h). Fails on a path that cannot be read. */
int projection_new(struct projector *j, const struct fields *fields, size_t links,
                   struct projection **ret, err_t *e);
void projection_free(struct projection *p); /* all its records must be gone */

/* One object as JSON to a new record (one reference). */
int project(struct projection *p, str json, struct record **ret, err_t *e);

struct record *record_ref(const struct record *r);
void record_unref(const struct record *r); /* accepts NULL */
/* Are all declared fields the same? resourceVersion does not count. */
bool record_same(const struct record *a, const struct record *b);
uint32_t record_hash(str ns, str name); /* what node.hash holds */
size_t record_bytes(const struct record *r);
struct projector *projection_projector(const struct projection *p);

/* Places for an index to chain records with: `links` of them. */
struct record_link {
    struct record *next, *previous;
};
struct record_link *record_links(const struct record *r);

/* ---- one line of a watch */

enum watch_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };

struct watch_line {
    enum watch_type type;
    struct record *record; /* of ADDED, MODIFIED and DELETED: one reference, the caller's */
    bool initial_end;      /* BOOKMARK that ends the initial events */
    int code;              /* ERROR: of the Status */
    str rv;                /* BOOKMARK; lives until the projector's next call */
    str reason, message;   /* ERROR; likewise */
};

int project_watch_line(struct projection *p, str json, struct watch_line *ret, err_t *e);

#endif
