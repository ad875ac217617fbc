/* See read.h. Field selectors look into the JSON text first; only a field that is absent or not a scalar
 * (the source of an event) costs a parse, to ask the kind what it compares as. */
#include "read.h"

#include "../../json/scan.h"

bool read_verbatim(const struct kind *k, const struct kind_set *set, const struct object *o)
{
    if (!k->custom)
        return k == k->storage;
    str stored = object_span(o, o->version);
    return set && o->rev > set->rev && stored.n == k->group.n + 1 + k->version.n &&
           str_ends(stored, k->version);
}

struct json *read_tree(struct arena *a, const struct kind *k, const struct object *o)
{
    struct json *tree;
    err_t e;
    if (json_parse(a, object_json(o), &tree, &e) < 0)
        return NULL;
    kind_from_storage(k, a, tree);
    return tree;
}

static bool field_is(const struct kind *k, const struct object *o, str path, str wanted)
{
    struct key_parts parts = key_split(object_key(o));
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

bool read_selected(const struct kind *k, const struct list_options *o, const struct object *object)
{
    if (!label_selector_matches(&o->labels, object))
        return false;
    for (size_t i = 0; i < o->fields.n; i++) {
        const struct field_term *t = &o->fields.terms[i];
        if (field_is(k, object, t->path, t->value) == t->negated)
            return false;
    }
    return true;
}

void read_put(struct buf *out, const struct kind *k, const struct kind_set *set,
              const struct object *o, bool item)
{
    if (read_verbatim(k, set, o)) {
        if (item && !k->custom)
            object_put_item(out, o);
        else
            buf_put(out, object_json(o));
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
