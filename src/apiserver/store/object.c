/* Objects: creating them, their text, and keys; see object.h.
 *
 * An object is indexed once, when it is created: a scan of the metadata (never of the rest) records the position
 * of what reads, selectors and the garbage collector need. Positions have 32 bits, because an object has at most
 * 1.5 MiB; objects loaded from a file are checked against OBJECT_MAX_BYTES.
 *
 *     bytes   key NUL {"kind":"...","apiVersion":"...","metadata":{...,"resourceVersion":"17",...},...} NUL
 *                      |<-------- head ------------->|                               rv^
 *
 * A list of built-in kinds leaves out `head`, and an event that shows old data under a new version replaces `rv`;
 * both copy the rest without parsing it. */
#include "object.h"

#include "../../json/scan.h"

enum { OBJECT_MAX_BYTES = 64 << 20 };

static struct span span_of(str whole, str part)
{
    if (!part.p)
        return (struct span){ 0 };
    return (struct span){ (uint32_t)(part.p - whole.p), (uint32_t)part.n };
}

static str without_quotes(str value)
{
    return value.n >= 2 && value.p[0] == '"' ? (str){ value.p + 1, value.n - 2 } : (str){ 0 };
}

/* Records positions up to managedFields, which comes last and is the largest part. `rest` begins with the
 * metadata. */
static void index_metadata(struct object *o, str json, str rest)
{
    str key, value;
    while (scan_key(rest, &key) &&
           !str_eq(key, S("managedFields")) && /* the last and the largest */
           scan_next(&rest, &key, &value)) {
        if (str_eq(key, S("uid")))
            o->uid = span_of(json, without_quotes(value));
        else if (str_eq(key, S("resourceVersion")))
            o->rv = span_of(json, without_quotes(value));
        else if (str_eq(key, S("deletionTimestamp")))
            o->deleting = true;
        else if (str_eq(key, S("labels")))
            o->labels = span_of(json, value);
        else if (str_eq(key, S("ownerReferences")))
            o->owners = span_of(json, value);
        else if (str_eq(key, S("finalizers")))
            o->finalizers = span_of(json, value);
    }
}

/* False: the text does not begin as object_text() writes it. */
static bool index_object(struct object *o)
{
    str json = object_json(o), rest = json, key, kind, version;
    if (!scan_next(&rest, &key, &kind) || !str_eq(key, S("kind")) ||
        !scan_next(&rest, &key, &version) || !str_eq(key, S("apiVersion")) || !rest.n)
        return false;
    o->head = (struct span){ 1, (uint32_t)(rest.p - json.p) }; /* with the comma at rest.p */
    o->version = span_of(json, without_quotes(version));
    size_t at = scan_key(rest, &key);
    if (!at || !str_eq(key, S("metadata")) || !str_starts(str_from(rest, at), S("{")))
        return false;
    index_metadata(o, json, str_from(rest, at));
    return o->rv.n > 0 && o->version.n > 0;
}

int object_new(str key, str json, int64_t rev, bool deleted, struct object **ret)
{
    if (json.n > OBJECT_MAX_BYTES || key.n > OBJECT_MAX_BYTES)
        return -E2BIG;
    struct object *o = mem_alloc(sizeof(*o) + key.n + json.n + 2);
    *o = (struct object){ .refs = 1, .key_n = (uint32_t)key.n, .json_n = (uint32_t)json.n };
    o->rev = rev;
    o->deleted = deleted;
    memcpy(o->bytes, key.p, key.n);
    o->bytes[key.n] = '\0';
    memcpy(o->bytes + key.n + 1, json.p, json.n);
    o->bytes[key.n + 1 + json.n] = '\0';
    if (!index_object(o)) {
        free(o);
        return -EINVAL;
    }
    *ret = o;
    return 0;
}

struct object *object_ref(struct object *o)
{
    assert(o->refs && o->refs < UINT32_MAX);
    o->refs++;
    return o;
}

void object_unref(struct object *o)
{
    while (o && --o->refs == 0) {
        struct object *next = o->converted;
        free(o);
        o = next;
    }
}

void object_unref_at(struct object **o)
{
    object_unref(*o);
}

/* Moves the members named in `first` to the front, in this order; the others follow in theirs. */
static void order_members(struct arena *a, struct json *obj, const str *first, size_t n)
{
    struct json_member *ordered = arena_array(a, obj->n, sizeof(*ordered));
    uint32_t used = 0;
    for (size_t i = 0; i < n; i++)
        json_each(m, obj)
            if (str_eq(m->key, first[i]))
                ordered[used++] = *m;
    json_each(m, obj) {
        bool named = false;
        for (size_t i = 0; i < n && !named; i++)
            named = str_eq(m->key, first[i]);
        if (!named)
            ordered[used++] = *m;
    }
    obj->members = ordered;
    obj->cap = obj->n;
    obj->slots = 0;
}

void object_text(struct arena *a, struct json *tree, int64_t rev, struct buf *out)
{
    const str top[] = { S("kind"), S("apiVersion"), S("metadata"), S("spec"), S("data") };
    const str meta[] = { S("name"),
                         S("generateName"),
                         S("namespace"),
                         S("uid"),
                         S("resourceVersion"),
                         S("generation"),
                         S("creationTimestamp"),
                         S("deletionTimestamp"),
                         S("deletionGracePeriodSeconds"),
                         S("labels"),
                         S("annotations"),
                         S("ownerReferences"),
                         S("finalizers"),
                         S("managedFields") };
    struct json *metadata = json_make(a, tree, "metadata", NULL);
    json_set(a, metadata, S("resourceVersion"),
             json_new_str(a, str_of_i64(rev, (char[STR_I64_ROOM]){ 0 })));
    order_members(a, metadata, meta, countof(meta));
    order_members(a, tree, top, countof(top));
    json_write(out, tree);
}

void object_put_as(struct buf *out, const struct object *o, int64_t rev)
{
    str json = object_json(o);
    if (rev == o->rev) {
        buf_put(out, json);
        return;
    }
    buf_put(out, str_upto(json, o->rv.at));
    buf_printf(out, "%lld", (long long)rev);
    buf_put(out, str_from(json, o->rv.at + o->rv.n));
}

void object_put_item(struct buf *out, const struct object *o)
{
    buf_putc(out, '{');
    buf_put(out, str_from(object_json(o), o->head.at + o->head.n));
}

str store_key_make(struct arena *a, struct store_key_parts p)
{
    const str parts[] = { p.group, S("/"), p.resource, S("/"), p.ns, S("/"), p.name };
    return arena_join(a, parts, countof(parts));
}

struct store_key_parts store_key_split(str key)
{
    struct store_key_parts p = { 0 };
    str_cut(&key, '/', &p.group);
    str_cut(&key, '/', &p.resource);
    str_cut(&key, '/', &p.ns);
    p.name = key.p ? key : S("");
    return p;
}
