/* A stored object: one immutable, counted block with its key and its JSON, shared by the tree, the
 * history, and every answer and watch that is being written.
 *
 * The JSON is what a GET answers, byte for byte: `kind` and `apiVersion` first, then `metadata` in
 * the fixed order of object_text(), so that a list can leave the first two out and an event can show old
 * data under a new version without parsing anything.
 *
 * Keys are "group/resource/namespace/name"; the core group and cluster scope leave their part empty
 * ("/configmaps/default/a", "/nodes//n1"). Byte order of keys is the order of lists. */
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
    bool deleted;        /* a tombstone: the last state */
    bool deleting;       /* metadata.deletionTimestamp is set */
    int64_t rev;         /* metadata.resourceVersion */
    int64_t written_s;   /* wall clock of the write, or of the start */
    struct span head;    /* kind and apiVersion with the comma after them */
    struct span rv, uid; /* without quotes */
    struct span labels, owners, finalizers, version; /* whole values; version: of apiVersion */
    char bytes[];                                    /* key NUL json NUL */
};

/* Takes a reference for the caller. The JSON must begin as object_text() writes it; -EINVAL if it does not
 * (only a damaged file holds such). */
int object_new(str key, str json, int64_t rev, bool deleted, struct object **ret);
struct object *object_ref(struct object *o);
void object_unref(struct object *o); /* NULL is fine */
#define auto_object __attribute__((cleanup(object_unref_at)))
void object_unref_at(struct object **o);

/* The tree as text, with `resourceVersion` set to rev and metadata in order. Changes the tree so. */
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

/* The JSON under another version (o may be any version of the object). */
void object_put_as(struct buf *out, const struct object *o, int64_t rev);
/* A list item of a built-in kind: without kind and apiVersion. */
void object_put_item(struct buf *out, const struct object *o);

struct key_parts {
    str group, resource, ns, name;
};

str key_make(struct arena *a, struct key_parts parts);
struct key_parts key_split(str key);
static inline str key_prefix(str key) /* "group/resource/" */
{
    size_t first = str_find_char(key, '/');
    size_t second = first == SIZE_MAX ? SIZE_MAX : str_find_char(str_from(key, first + 1), '/');
    return second == SIZE_MAX ? key : str_upto(key, first + second + 2);
}

#endif
