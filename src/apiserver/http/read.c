/* See read.h. Field selectors first look into the JSON text. Only a field that is absent or not a scalar (the
 * source of an event) needs a parse, to ask the kind for its value. */
#include "read.h"

#include "../../json/scan.h"
#include "convert.h"

/* What a webhook made of the object is complete. A custom object must else be stored in the requested version and be newer than its definition's spec, because
 * a new schema can add defaults or prune fields. */
struct object *read_find_verbatim(const struct kind *k, const struct catalog_set *set,
                                  struct object *o)
{
    if (!k->custom)
        return k == k->storage ? o : NULL;
    const struct object *converted = convert_find(k, o);
    if (converted && converted != o)
        return (struct object *)(uintptr_t)converted;
    str stored = object_span(o, o->version);
    return set && o->rev > set->rev && stored.n == k->group.n + 1 + k->version.n &&
                   str_ends(stored, k->version)
               ? o
               : NULL;
}

struct json *read_tree(struct arena *a, const struct kind *k, const struct object *o)
{
    struct json *tree;
    err_t e;
    const struct object *converted = convert_find(k, o);
    if (json_parse(a, object_json(converted ? converted : o), &tree, &e) < 0)
        return NULL;
    if (!converted || converted == o)
        kind_from_storage(k, a, tree);
    return tree;
}

/* Whether the field has the wanted value, as text. */
static bool field_equals(const struct kind *k, const struct object *o, str path, str wanted)
{
    struct store_key_parts parts = store_key_split(object_key(o));
    if (str_eq(path, S("metadata.name")))
        return str_eq(parts.name, wanted);
    if (str_eq(path, S("metadata.namespace")))
        return str_eq(parts.ns, wanted);
    auto_arena struct arena scratch = { 0 };
    str value = scan_path(object_json(o), path);
    if (k == k->storage && value.n && value.p[0] != '{' && value.p[0] != '[')
        return str_eq(scan_text(&scratch, value), wanted);
    struct json *tree = read_tree(&scratch, k, o);
    return tree && kind_field_value(k, tree, path, &value) && str_eq(value, wanted);
}

bool read_is_selected(const struct kind *k, const struct list_options *o,
                      const struct object *object)
{
    if (!selector_matches_labels(&o->labels, object))
        return false;
    for (size_t i = 0; i < o->fields.n; i++) {
        const struct field_term *t = &o->fields.terms[i];
        if (field_equals(k, object, t->path, t->value) == t->negated)
            return false;
    }
    return true;
}

void read_put(struct buf *out, const struct kind *k, const struct catalog_set *set,
              const struct object *o, bool item)
{
    const struct object *verbatim = read_find_verbatim(k, set, (struct object *)(uintptr_t)o);
    if (verbatim) {
        if (item && !k->custom)
            object_put_item(out, verbatim);
        else
            buf_put(out, object_json(verbatim));
        return;
    }
    auto_arena struct arena scratch = { 0 };
    struct json *tree = read_tree(&scratch, k, o);
    if (tree && item && !k->custom) {
        json_del(tree, S("kind"));
        json_del(tree, S("apiVersion"));
    }
    json_write(out, tree);
}
