/* The types that a mutating policy constructs. "Object" and "Object.spec.template" have any field; the name of the type
 * repeats the path to it, which is checked when the value is complete, as kube-apiserver does. */
#include "cel_node.h"

/* Each constructor makes its own type; two of one name are the same (cel_same_type). */
const struct cel_type *cel_struct_type(struct arena *a, str name)
{
    static const struct cel_field fields[] = { { STR_INIT("from"), STR_INIT("from"), &cel_string },
                                               { STR_INIT("op"), STR_INIT("op"), &cel_string },
                                               { STR_INIT("path"), STR_INIT("path"), &cel_string },
                                               { STR_INIT("value"), STR_INIT("value"), &cel_dyn } };
    static const struct cel_type patch = {
        .kind = CEL_OBJECT, .name = "JSONPatch", .fields = fields, .n_fields = countof(fields)
    };
    if (str_eqc(name, "JSONPatch"))
        return &patch;
    if (!str_eqc(name, "Object") && !str_starts(name, S("Object.")))
        return NULL;
    struct cel_type *type = arena_new(a, struct cel_type);
    type->kind = CEL_OBJECT;
    type->open = true;
    type->name = arena_printf(a, STR_FMT, STR_ARG(name)).p;
    return type;
}

/* Lists and maps have no name: their items have that of the field. */
void cel_check_names(struct arena *a, struct cel_value v, str place, struct buf *out)
{
    bool object = v.kind == CEL_OBJECT && !v.is_json && v.type->open;
    if (object && !str_eqc(place, v.type->name))
        buf_printf(out,
                   "%sunexpected type name \"%s\", expected \"" STR_FMT
                   "\", which matches field name path from root Object type",
                   out->n ? "\n" : "", v.type->name, STR_ARG(place));
    if (v.is_json || (!object && v.kind != CEL_MAP && v.kind != CEL_LIST))
        return;
    for (uint32_t i = 0; i < v.n; i++) {
        if (v.kind == CEL_LIST)
            cel_check_names(a, v.list->items[i], place, out);
        else
            cel_check_names(a, v.map->values[i],
                            object ? arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(place),
                                                  STR_ARG(cel_text(v.map->keys[i])))
                                   : place,
                            out);
    }
}

/* Items that a client wrote as a map have no constructors inside that could be checked. */
struct cel_value cel_patch_value(struct cel_value patches, uint32_t i)
{
    struct cel_machine m = { 0 };
    struct cel_value item = cel_item(&m, patches, i), value = { .kind = CEL_NULL };
    if (item.kind == CEL_OBJECT && !item.is_json)
        cel_lookup(&m, item, cel_of_text(S("value")), &value);
    return value;
}

/* JSON of a value: what a mutation returns. */
struct json *cel_to_json(struct arena *a, struct cel_value v)
{
    if (v.is_json && (v.kind == CEL_LIST || v.kind == CEL_MAP || v.kind == CEL_OBJECT))
        return json_copy(a, v.json);
    struct cel_machine m = { .arena = a };
    struct json *out;
    switch (v.kind) {
    case CEL_NULL:
        return json_new_null(a);
    case CEL_BOOL:
        return json_new_bool(a, v.boolean);
    case CEL_INT:
        return json_new_int(a, v.integer);
    case CEL_UINT:
        return v.natural <= INT64_MAX ? json_new_int(a, (int64_t)v.natural)
                                      : json_new_real(a, (double)v.natural);
    case CEL_DOUBLE:
        return json_new_real(a, v.real);
    case CEL_OPTIONAL:
        return v.value ? cel_to_json(a, *v.value) : NULL;
    case CEL_LIST:
        out = json_new_arr(a);
        for (uint32_t i = 0; i < v.n; i++) {
            struct json *item = cel_to_json(a, cel_item(&m, v, i));
            if (item)
                json_push(a, out, item);
        }
        return out;
    case CEL_MAP:
    case CEL_OBJECT:
        out = json_new_obj(a);
        for (uint32_t i = 0; i < v.n; i++) {
            struct json *item = cel_to_json(a, v.map->values[i]);
            auto_buf struct buf key = { 0 };
            if (item && cel_put_text(&key, v.map->keys[i]))
                json_set(a, out, buf_str(&key), item);
        }
        return out;
    default: {
        auto_buf struct buf text = { 0 };
        return cel_put_text(&text, v) ? json_new_str(a, buf_str(&text)) : NULL;
    }
    }
}
