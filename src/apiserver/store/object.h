/* A stored object: one immutable, reference-counted block with its key and its JSON, shared by the tree, the
 * history, and all answers and watches that are being sent.
 *
 * The JSON is what GET returns, byte for byte: `kind` and `apiVersion` first, then `metadata` in the fixed
 * order of object_text(), so that a list can leave out the first two and an event can show old data under a
 * new version without parsing.
 *
 * Keys are "group/resource/namespace/name"; for the core group and for cluster-scoped objects that part is
 * empty ("/configmaps/default/a", "/nodes//n1"). Lists are in the byte order of keys. */
#ifndef FLYBALL_OBJECT_H
#define FLYBALL_OBJECT_H

#include "../../json/json.h"

struct span {
    uint32_t at, n; /* within the JSON; n 0: absent */
};

struct object {
    uint32_t refs;
    uint32_t key_n;
    uint32_t json_n;
    bool deleted;        /* a tombstone, with the last state as its JSON */
    bool deleting;       /* metadata.deletionTimestamp is set */
    int64_t rev;         /* metadata.resourceVersion */
    int64_t place;       /* the row of the database that holds it; 0: the one numbered `rev` */
    int64_t written_s;   /* wall clock of the write or, for a loaded object, of the startup */
    struct span head;    /* kind and apiVersion with the comma after them */
    struct span rv, uid; /* without quotes */
    struct span labels, owners, finalizers, version; /* whole values; version: of apiVersion */
    struct object *converted; /* the same object in other versions, linked; see http/convert.h */
    char bytes[];             /* key NUL json NUL */
};

/* The caller owns the reference. -EINVAL: the JSON does not begin as object_text() writes it, which happens
 * only with a damaged file. */
int object_new(str key, str json, int64_t rev, bool deleted, struct object **ret);
struct object *object_ref(struct object *o);
void object_unref(struct object *o); /* NULL is fine */
#define auto_object __attribute__((cleanup(object_unref_at)))
void object_unref_at(struct object **o);

/* Sets `resourceVersion` in the tree, orders its members, and appends it to `out` as JSON. */
void object_text(struct arena *a, struct json *tree, int64_t rev, struct buf *out);

static inline str object_key(const struct object *o)
{
    return (str){ o->bytes, o->key_n };
}

static inline str object_json(const struct object *o)
{
    return (str){ o->bytes + o->key_n + 1, o->json_n };
}

static inline str object_span(const struct object *o, struct span s)
{
    return (str){ object_json(o).p + s.at, s.n };
}

static inline size_t object_bytes(const struct object *o)
{
    return sizeof(*o) + o->key_n + o->json_n + 2;
}

/* Appends the JSON with another resourceVersion. */
void object_put_as(struct buf *out, const struct object *o, int64_t rev);
/* Appends the JSON without kind and apiVersion, as an item in a list of a built-in kind. */
void object_put_item(struct buf *out, const struct object *o);

struct store_key_parts {
    str group, resource, ns, name;
};

str store_key_make(struct arena *a, struct store_key_parts parts);
struct store_key_parts store_key_split(str key);
static inline str store_key_prefix(str key) /* "group/resource/" */
{
    size_t first = str_find_char(key, '/');
    size_t second = first == SIZE_MAX ? SIZE_MAX : str_find_char(str_from(key, first + 1), '/');
    return second == SIZE_MAX ? key : str_upto(key, first + second + 2);
}

#endif
