/* json: every document the program holds, as one tree type.
 *
 *   json        the tree: parse (over yyjson), build, read, compare, write
 *   yaml        YAML in, the same tree out
 *   pointer, jsonpath, hash, patch, merge, strategic, apply     what is done with trees
 *   shape, fieldset                                             what apply and strategic know of types
 *   seen        which values of a list were there before
 *   project     fields out of a byte stream, without a tree (for the watch cache)
 *
 * Memory: a tree lives in the arena it was made in and dies with it; nodes have no owner of their
 * own and may be shared between trees of the same arena as long as nobody changes them in place.
 * Readers accept NULL and the wrong type, and answer with the default, so that a path can be
 * walked without a test at every step:  json_text(json_at(o, "spec", "name", NULL)).
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
    uint32_t n, cap; /* elements, members, or bytes of text */
    uint32_t slots;  /* of the index behind the members of a large object; 0: none (see json.c) */
    union {
        bool boolean;
        int64_t integer;
        double real;
        const char *text; /* ends in NUL, may hold more of them */
        struct json **items;
        struct json_member *members; /* in the order they came */
    };
};

struct json_member {
    str key;
    struct json *value;
};

enum { JSON_DEPTH_MAX = 256 };

/* ---- parse */

enum { JSON_PATH_BYTES = 1024 }; /* of a path to a duplicate, which is told for each of them */

struct json_limits {
    size_t depth;   /* 0: JSON_DEPTH_MAX */
    size_t members; /* of one object or array; 0: no limit */
    size_t values;  /* of the whole document; 0: no limit */
    /* Called for every key that stands twice in an object, with its path ("spec.ports[0].name");
     * the last one wins. NULL: not told. */
    void (*duplicate)(void *context, str path);
    void *context;
    bool non_finite; /* YAML: .nan and .inf become numbers, which no JSON can hold, not an error */
};

int json_parse(struct arena *a, str text, struct json **ret, err_t *e);
int json_parse_limited(struct arena *a, str text, const struct json_limits *limits,
                       struct json **ret, err_t *e);

/* Every "\\u0000" becomes "\\ufffd", in place. For text of strangers before it is parsed: a NUL ends a C string but not
 * a slice, so parts of a program would disagree on a name that has one. */
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
/* The same for a key that is known not to be there yet: no search. */
void json_append(struct arena *a, struct json *obj, str key, struct json *value);
bool json_del(struct json *obj, str key); /* true when it was there */
/* Many deletions in one pass: set the values of members to NULL, then sweep the object. */
struct json_member *json_find(const struct json *obj, str key); /* NULL: absent */
void json_sweep(struct json *obj);
/* Room for so many members, and their index. */
void json_reserve(struct arena *a, struct json *obj, uint32_t members);
/* To be called by whoever moves or removes entries of `members` by hand. */
void json_reindex(struct json *obj);
/* A node of its own with the same members or elements. */
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

/* The object at the end of the keys, made on the way where missing (or not an object). NULL ends. */
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

static inline size_t json_len(const struct json *v) /* of an array or object, else 0 */
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

/* About the bytes that a copy of the tree takes; stops counting once past `most`, and takes a tree
 * deeper than JSON_DEPTH_MAX for more than that. */
size_t json_weight(const struct json *v, size_t most);
bool json_deeper(const struct json *v, size_t levels); /* nested more than that? */

/* Deep equality: the order of members does not count, 1 equals 1.0, NULL equals NULL only. */
bool json_eq(const struct json *a, const struct json *b);
uint64_t json_hash(const struct json *v); /* the same for equal values; differs between runs */

/* for each member m of an object: json_each(m, obj) use(m->key, m->value); */
#define json_each(m, obj)                                                                          \
    for (struct json_member *m = json_is((obj), JSON_OBJ) ? (obj)->members : NULL,                 \
                            *m##_end = m ? m + (obj)->n : NULL;                                    \
         m != m##_end; m++)

/* ---- write */

void json_write(struct buf *out, const struct json *v);           /* compact, in order */
void json_write_pretty(struct buf *out, const struct json *v);    /* two blanks a level */
void json_write_canonical(struct buf *out, const struct json *v); /* compact, sorted by key */
void json_write_start(struct buf *out, const struct json *v, size_t most); /* the first bytes */
void json_write_text(struct buf *out, str text);                           /* one quoted string */
void json_write_real(struct buf *out, double value);    /* shortest that reads back equal */
str json_to_str(struct arena *a, const struct json *v); /* compact */

#endif
