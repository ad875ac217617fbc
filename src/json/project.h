/* Projection: extracts the few fields of an object that a feature declared into one small record.
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
 * A Pod is 9 to 24 KB of JSON, its record about 200 bytes. One object at a time is parsed into a
 * pool that is reused for the next one, visited once, and discarded.
 *
 * Paths: names separated by dots; `["a.b/c"]` for a name that contains dots; `[]` for every element
 * of an array (numbers are summed, otherwise the first one counts); `[type=Ready]` for the elements
 * with this member. A member that is missing, null or of another type leaves the field at
 * `otherwise`: objects are untrusted, and one odd field must not hide an object.
 *
 * A record is immutable (but see projection_set_find()), one allocation, reference-counted. Its texts are part of the allocation:
 * take a reference to keep one after a callback. */
#ifndef FLYBALL_PROJECT_H
#define FLYBALL_PROJECT_H

#include "intern.h"

enum field_type {
    F_STR,   /* str: text stored in the record (names, uids) */
    F_WORD,  /* str: text that many objects share (nodes, images), interned */
    F_MAP,   /* const struct labels *: an object of strings, interned */
    F_INT,   /* int64_t */
    F_REAL,  /* double */
    F_BOOL,  /* bool */
    F_MILLI, /* int64_t: a quantity in thousandths ("250m" is 250, "1Gi" is 1073741824000) */
    F_TIME,  /* int64_t: nanoseconds since 1970 */
    F_HAS,   /* bool: the member exists and is not null */
    F_IS,    /* bool: the member equals `text` */
    F_SUM,   /* uint64_t: sum64() of the text, if only equality matters; 0: none */
    F_RAW,   /* str: the member as compact JSON, for json_parse() on demand */
    F_ONCE,  /* str: like F_RAW, but for the handlers of a cache only: "" once they have returned */
    F_LIST,  /* LIST(type): an array of objects with fields of their own (`of`) */
    F_TYPE_N
};

struct field {
    const char *path;
    enum field_type type;
    size_t offset;
    int64_t otherwise;       /* default of F_INT, F_REAL, F_BOOL, F_MILLI, F_TIME */
    const struct fields *of; /* F_LIST: the fields of an element; offsets are relative to it */
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

/* The start of every record. */
struct record {
    struct set_node node;        /* hash of namespace and name, for the cache */
    uint32_t refs : 31;          /* record_ref() */
    uint32_t mark : 1;           /* used by the cache during a list */
    uint64_t sum;                /* of the declared fields as text, without rv; 0: unknown */
    const struct projection *of; /* borrowed; outlives its records */
    str ns, name, uid, rv;       /* ns is "" for cluster-scoped objects; rv is opaque */
};

/* Shared by all projections of a process: the parser's pool, interned texts and maps. Belongs to
 * one thread. */
struct projector;
struct projector *projector_new(void);
void projector_free(struct projector *j);          /* all its projections must be freed before */
size_t projector_bytes(const struct projector *j); /* of all records and what they share */

/* Compiles a table of fields, which is borrowed. Every record has room for `links` index links (see
 * kube/cache.h). Fails if a path is invalid. */
int projection_new(struct projector *j, const struct fields *fields, size_t links,
                   struct projection **ret, err_t *e);
void projection_free(struct projection *p); /* all its records must be released before */

/* Where records of this projection are held: the one of that name, or NULL. With it, an object whose declared fields are all
 * as in the held record is not parsed: the held record is returned, with the new version. That happens only while the
 * holder has the only reference to it. */
typedef struct record *project_find_fn(void *context, str ns, str name);
void projection_set_find(struct projection *p, project_find_fn *find, void *context);

/* Makes a record, with one reference, of an object in JSON. */
int project(struct projection *p, str json, struct record **ret, err_t *e);

/* The feature's struct that a record is part of, as its first member, `meta`; NULL for NULL. */
#define record_as(type, record)                                                                    \
    ((void)sizeof(char[offsetof(type, meta) ? -1 : 1]), (const type *)(const void *)(record))
/* The field of type str at this offset of the feature's struct. */
static inline str record_text(const struct record *r, size_t offset)
{
    return *(const str *)(const void *)((const char *)r + offset);
}

struct record *record_ref(const struct record *r);
void record_unref(const struct record *r); /* accepts NULL */
/* Are all declared fields equal? Ignores resourceVersion. */
bool record_same(const struct record *a, const struct record *b);
/* Frees the texts of type F_ONCE. They are no longer compared: a new record with one differs from every other. */
void record_forget_once(struct record *r);
uint32_t record_hash(str ns, str name); /* what node.hash holds */
size_t record_bytes(const struct record *r);
struct projector *projection_projector(const struct projection *p);

/* Links for the indexes of the cache to chain records: `links` of them. */
struct record_link {
    struct record *next, *previous;
};
struct record_link *record_links(const struct record *r);

/* ---- one line of a watch */

enum watch_type { WATCH_ADDED, WATCH_MODIFIED, WATCH_DELETED, WATCH_BOOKMARK, WATCH_ERROR };

struct watch_line {
    enum watch_type type;
    struct record *record; /* ADDED, MODIFIED and DELETED; the caller owns the reference */
    bool initial_end;      /* BOOKMARK: it ends the initial events */
    int code;              /* ERROR: of the Status */
    str rv;                /* BOOKMARK; valid until the next call of the projector */
    str reason, message;   /* ERROR; likewise */
};

int project_watch_line(struct projection *p, str json, struct watch_line *ret, err_t *e);

/* ---- the same in protobuf (project_protobuf.c) */

/* Lets the projection read objects of this kind in protobuf. False if a declared field cannot be read from the table; then
 * they must be in JSON. */
struct prototable;
bool projection_accept_protobuf(struct projection *p, const struct prototable *types,
                                const char *group, const char *version, const char *kind);
bool projection_accepts_protobuf(const struct projection *p);

/* Makes the same record of an object in protobuf as project() of the object in JSON. */
int project_protobuf(struct projection *p, str message, struct record **ret, err_t *e);
/* One event of a watch, without its length. */
int project_watch_event(struct projection *p, str message, struct watch_line *ret, err_t *e);

#endif
