/* Field sets as fieldsV1, and as paths in messages: see fieldset.h.
 *
 *     {"f:spec":{"f:ports":{"k:{\"port\":80}":{".":{},"f:name":{}}}}}      fieldsV1, in managedFields
 *     .spec.ports[port=80].name                                            a path, in a conflict
 *
 * The JSON inside of an element's name ("k:{...}", "v:...") is printed as Go prints it, with <, >
 * and & escaped, because clients compare and sort entries as text. A kind of element that is not
 * known yet is ignored when parsing, as in Kubernetes: a newer server may have written it. */
#include "fieldset.h"

/* ---- printing */

static void put_go_text(struct buf *out, str text)
{
    auto_buf struct buf plain = { 0 };
    json_write_text(&plain, text);
    for (size_t i = 0; i < plain.n; i++) {
        str rest = str_from(buf_str(&plain), i);
        if (strchr("<>&", plain.p[i]))
            buf_printf(out, "\\u%04x", (unsigned)plain.p[i]);
        else if (str_starts(rest, S("\xe2\x80\xa8")) || str_starts(rest, S("\xe2\x80\xa9")))
            i += 2, buf_printf(out, "\\u202%c", plain.p[i] == '\xa8' ? '8' : '9');
        else
            buf_putc(out, plain.p[i]);
    }
}

static void put_value(struct buf *out, const struct json *v)
{
    if (v->type == JSON_STR)
        put_go_text(out, json_text(v));
    else
        json_write_canonical(out, v);
}

/* The name of an element in fieldsV1. */
static str element_text(struct arena *a, const struct fieldset_element *element)
{
    auto_buf struct buf out = { 0 };
    switch (element->kind) {
    case FIELD_NAME:
        return arena_join(a, (const str[]){ S("f:"), element->name }, 2);
    case FIELD_INDEX:
        return arena_printf(a, "i:%lld", (long long)element->index);
    case FIELD_VALUE:
        buf_put(&out, S("v:"));
        put_value(&out, element->value);
        break;
    case FIELD_KEY:
        buf_put(&out, S("k:{"));
        for (uint32_t i = 0; i < element->n_keys; i++) {
            if (i)
                buf_putc(&out, ',');
            put_go_text(&out, element->keys[i].name);
            buf_putc(&out, ':');
            put_value(&out, element->keys[i].value);
        }
        buf_putc(&out, '}');
        break;
    }
    return arena_str(a, buf_str(&out));
}

struct json *fieldset_print(struct arena *a, const struct fieldset *s)
{
    struct json *fields = json_new_obj(a);
    for (uint32_t i = 0; i < s->n; i++) {
        struct json *below = fieldset_print(a, &s->nodes[i].below);
        if (s->nodes[i].member && below->n) {
            struct json *with_self = json_new_obj(a);
            json_append(a, with_self, S("."), json_new_obj(a));
            json_each(m, below)
                json_append(a, with_self, m->key, m->value);
            below = with_self;
        }
        json_append(a, fields, element_text(a, &s->nodes[i].element), below);
    }
    return fields;
}

void fieldset_put_element(struct buf *out, const struct fieldset_element *element)
{
    switch (element->kind) {
    case FIELD_NAME:
        buf_printf(out, "." STR_FMT, STR_ARG(element->name));
        break;
    case FIELD_INDEX:
        buf_printf(out, "[%lld]", (long long)element->index);
        break;
    case FIELD_VALUE:
        buf_put(out, S("[="));
        json_write(out, element->value);
        buf_putc(out, ']');
        break;
    case FIELD_KEY:
        for (uint32_t i = 0; i < element->n_keys; i++) {
            buf_printf(out, "%c" STR_FMT "=", i ? ',' : '[', STR_ARG(element->keys[i].name));
            json_write(out, element->keys[i].value);
        }
        buf_putc(out, ']');
        break;
    }
}

struct visit {
    struct buf path;
    void (*each)(void *context, str path);
    void *context;
};

static void visit_all(struct visit *v, const struct fieldset *s)
{
    size_t before = v->path.n;
    for (uint32_t i = 0; i < s->n; i++) {
        if (!s->nodes[i].member)
            continue;
        fieldset_put_element(&v->path, &s->nodes[i].element);
        v->each(v->context, buf_str(&v->path));
        v->path.n = before;
    }
    for (uint32_t i = 0; i < s->n; i++) {
        fieldset_put_element(&v->path, &s->nodes[i].element);
        visit_all(v, &s->nodes[i].below);
        v->path.n = before;
    }
}

void fieldset_each(const struct fieldset *s, void (*each)(void *context, str path), void *context)
{
    struct visit v = { .each = each, .context = context };
    visit_all(&v, s);
    buf_done(&v.path);
}

/* ---- reading */

static int compare_names(const void *a, const void *b)
{
    return str_cmp(((const struct fieldset_key *)a)->name, ((const struct fieldset_key *)b)->name);
}

static int read_keys(struct arena *a, str text, struct fieldset_element *ret, err_t *e)
{
    struct json *keys = NULL;
    int result = json_parse(a, text, &keys, e);
    if (result < 0)
        return result;
    if (keys->type != JSON_OBJ)
        return err_set(e, EINVAL, "keys must be an object, not %s", json_type_name(keys));
    struct fieldset_key *list = arena_array(a, keys->n, sizeof(*list));
    for (uint32_t i = 0; i < keys->n; i++)
        list[i] = (struct fieldset_key){ keys->members[i].key, keys->members[i].value };
    qsort(list, keys->n, sizeof(*list), compare_names);
    *ret = (struct fieldset_element){ .kind = FIELD_KEY, .n_keys = keys->n, .keys = list };
    return 0;
}

/* 1: parsed; 0: an unknown kind of element, to be ignored; negative: malformed. */
static int read_element(struct arena *a, str text, struct fieldset_element *ret, err_t *e)
{
    if (text.n < 2 || text.p[1] != ':')
        return err_set(e, EINVAL, "it must start with f:, k:, v: or i:");
    str rest = str_from(text, 2);
    struct json *value = NULL;
    int result = 0;
    switch (text.p[0]) {
    case 'f':
        *ret = fieldset_name(rest);
        return 1;
    case 'k':
        result = read_keys(a, rest, ret, e);
        break;
    case 'v':
        result = json_parse(a, rest, &value, e);
        *ret = (struct fieldset_element){ .kind = FIELD_VALUE, .value = value };
        break;
    case 'i':
        *ret = (struct fieldset_element){ .kind = FIELD_INDEX };
        if (str_to_i64(rest, &ret->index) < 0)
            return err_set(e, EINVAL, "the index is not a number");
        break;
    default:
        return 0;
    }
    return result < 0 ? result : 1;
}

/* Parses the set below a node; `*ret_member` is whether the node itself is a member. */
static int read_set(struct arena *a, const struct json *fields, struct fieldset *ret,
                    bool *ret_member, err_t *e)
{
    *ret_member = !json_len(fields);
    if (!json_is(fields, JSON_OBJ))
        return err_set(e, EINVAL, "fieldsV1 holds %s where an object was expected",
                       json_type_name(fields));
    bool self = false;
    json_each(m, fields) {
        if (str_eq(m->key, S("."))) {
            self = true;
            continue;
        }
        struct fieldset_element element;
        int result = read_element(a, m->key, &element, e);
        if (result < 0)
            return err_wrap(e, "fieldsV1 key %.200s", arena_str(a, m->key).p);
        if (result == 0)
            continue;
        struct fieldset below = { 0 };
        bool member;
        result = read_set(a, m->value, &below, &member, e);
        if (result < 0)
            return result;
        fieldset_append(a, ret, (struct fieldset_node){ element, member, below });
    }
    fieldset_sort(a, ret);
    *ret_member = self || !ret->n;
    return 0;
}

int fieldset_parse(struct arena *a, const struct json *fields, struct fieldset *ret, err_t *e)
{
    struct fieldset set = { 0 };
    bool member;
    int result = fields ? read_set(a, fields, &set, &member, e) : 0;
    if (result == 0)
        *ret = set;
    return result;
}
