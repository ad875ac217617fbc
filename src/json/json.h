/* json: every document in the program, as one tree type.
 *
 *   json, parse, write    the tree: parse (with yyjson), build, read, compare, write
 *   yaml                  YAML to and from the same tree
 *   pointer, jsonpath     finding values in a tree
 *   patch, merge, strategic, apply      the four kinds of patch
 *   shape, fieldset, typed              what apply and strategic merge know about types
 *   hash, seen            fingerprints of documents; duplicates in lists
 *   scan                  finding values in JSON text, without a tree
 *   frame, project        fields from a byte stream, without a tree (for the watch cache)
 *
 * Memory: a tree lives in the arena in which it was created. Nodes have no owner of their own and
 * may be shared between trees of the same arena as long as they are not modified in place. Readers
 * accept NULL and the wrong type, and return a default, so that a path needs no check at every
 * step: json_text(json_at(o, "spec", "name", NULL)).
 *
 * Read first: json_parse, json_get, json_set. */
#ifndef FLYBALL_JSON_H
#define FLYBALL_JSON_H

#include "../base/arena.h"
#include "../base/buf.h"

enum json_type { JSON_NULL, JSON_BOOL, JSON_INT, JSON_REAL, JSON_STR, JSON_ARR, JSON_OBJ };

struct json_member;

struct json {
    enum json_type type;
    uint32_t n, cap; /* number of elements, members or bytes of text */
    uint32_t slots;  /* size of the index of a large object; 0: no index (see json.c) */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const char *text; /* terminated with NUL, and may contain NUL */
        struct json **items;
        struct json_member *members; /* in their original order */
    };
};

struct json_member {
    str key;
    struct json *value;
};

enum { JSON_DEPTH_MAX = 256 };

/* ---- parse */

enum { JSON_PATH_BYTES = 1024 }; /* limit of a reported path to a duplicate key */

struct json_limits {
    size_t depth;   /* 0: JSON_DEPTH_MAX */
    size_t members; /* of one object or array; 0: no limit */
    size_t values;  /* of the whole document; 0: no limit */
    /* Called for every duplicate key with its path ("spec.ports[0].name"); the last one wins. NULL:
     * duplicates are not reported. */
    void (*duplicate)(void *context, str path);
    void *context;
    bool non_finite; /* YAML: accept .nan and .inf, which JSON cannot represent */
};

int json_parse(struct arena *a, str text, struct json **ret, err_t *e);
int json_parse_limited(struct arena *a, str text, const struct json_limits *limits,
                       struct json **ret, err_t *e);

/* Replaces every "\\u0000" with "\\ufffd", in place. For untrusted text before it is parsed: a NUL
 * ends a C string but not a slice, so parts of a program would disagree on a name that contains
 * one. */
void json_hide_nul(char *text, size_t n);

/* ---- build: text and keys are copied into the arena */

struct json *json_new_null(struct arena *a);
struct json *json_new_bool(struct arena *a, bool value);
struct json *json_new_int(struct arena *a, int64_t value);
struct json *json_new_real(struct arena *a, double value);
struct json *json_new_str(struct arena *a, str value);
struct json *json_new_arr(struct arena *a);
struct json *json_new_obj(struct arena *a);
struct json *json_copy(struct arena *a, const struct json *v); /* deep */

void json_set(struct arena *a, struct json *obj, str key, struct json *value); /* or replaces */
/* The same for a key that is known to be missing: does not search. */
void json_append(struct arena *a, struct json *obj, str key, struct json *value);
bool json_del(struct json *obj, str key); /* false: there was no such key */
/* Many deletions in one pass: set the values of members to NULL, then sweep the object. */
struct json_member *json_find(const struct json *obj, str key); /* NULL: not found */
void json_sweep(struct json *obj);
/* Reserves room for this many members and their index. */
void json_reserve(struct arena *a, struct json *obj, uint32_t members);
/* Required after moving or removing entries of `members` directly. */
void json_reindex(struct json *obj);
/* A new node with the same members or elements. */
struct json *json_shallow(struct arena *a, const struct json *v);
void json_push(struct arena *a, struct json *arr, struct json *value);
void json_insert(struct arena *a, struct json *arr, size_t at, struct json *value);
void json_remove(struct json *arr, size_t at);

static inline void json_set_str(struct arena *a, struct json *obj, const char *key, str value)
{
    json_set(a, obj, str_c(key), json_new_str(a, value));
}

static inline void json_set_int(struct arena *a, struct json *obj, const char *key, int64_t value)
{
    json_set(a, obj, str_c(key), json_new_int(a, value));
}

static inline void json_set_bool(struct arena *a, struct json *obj, const char *key, bool value)
{
    json_set(a, obj, str_c(key), json_new_bool(a, value));
}

/* The object at the end of the keys; creates what is missing or not an object. NULL ends the
 * keys. */
struct json *json_make(struct arena *a, struct json *obj, ...) __attribute__((sentinel));

/* ---- read: NULL-safe */

struct json *json_get(const struct json *obj, const char *key);
struct json *json_get_str(const struct json *obj, str key);
struct json *json_at(const struct json *obj, ...) __attribute__((sentinel)); /* keys, then NULL */
struct json *json_item(const struct json *arr, size_t at);

static inline bool json_is(const struct json *v, enum json_type type)
{
    return v && v->type == type;
}

static inline size_t json_len(const struct json *v) /* 0 unless an array or object */
{
    return v && (v->type == JSON_ARR || v->type == JSON_OBJ) ? v->n : 0;
}

static inline str json_text(const struct json *v) /* "" unless a string */
{
    return json_is(v, JSON_STR) ? (str){ v->text, v->n } : S("");
}

static inline int64_t json_int(const struct json *v, int64_t otherwise)
{
    return json_is(v, JSON_INT) ? v->integer : otherwise;
}

static inline bool json_bool(const struct json *v, bool otherwise)
{
    return json_is(v, JSON_BOOL) ? v->boolean : otherwise;
}

static inline double json_real(const struct json *v, double otherwise) /* integers too */
{
    return json_is(v, JSON_REAL) ? v->real : json_is(v, JSON_INT) ? (double)v->integer : otherwise;
}

const char *json_type_name(const struct json *v); /* "object", "array", "integer", ... */

/* The approximate size of a copy in bytes; stops counting above `most`, and treats a tree deeper
 * than JSON_DEPTH_MAX as larger than that. */
size_t json_weight(const struct json *v, size_t most);
bool json_deeper(const struct json *v, size_t levels); /* is it nested more than that? */

/* Deep equality: ignores the order of members, 1 equals 1.0, NULL equals only NULL. */
bool json_eq(const struct json *a, const struct json *b);
uint64_t json_hash(const struct json *v); /* equal for equal values; differs between processes */

/* for each member m of an object: json_each(m, obj) use(m->key, m->value); */
#define json_each(m, obj)                                                                          \
    for (struct json_member *m = json_is((obj), JSON_OBJ) ? (obj)->members : NULL,                 \
                            *m##_end = m ? m + (obj)->n : NULL;                                    \
         m != m##_end; m++)

/* ---- write */

void json_write(struct buf *out, const struct json *v);           /* compact, original order */
void json_write_pretty(struct buf *out, const struct json *v);    /* indented by two blanks */
void json_write_canonical(struct buf *out, const struct json *v); /* compact, sorted by key */
void json_write_start(struct buf *out, const struct json *v, size_t most); /* the first bytes */
void json_write_text(struct buf *out, str text);                           /* one quoted string */
void json_write_real(struct buf *out, double value);    /* the shortest text that parses to it */
str json_to_str(struct arena *a, const struct json *v); /* compact */

#endif
