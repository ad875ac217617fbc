/* Translates between http's types and those of json/apply.h; see ownership.h. */
#include "ownership.h"

#include "../../json/apply.h"
#include "../../json/typed.h"

/* Dotted paths ("spec.replicas") as a field set. */
static struct fieldset parse_paths(struct arena *a, const char *const *paths)
{
    struct fieldset set = { 0 };
    for (; paths && *paths; paths++) {
        struct fieldset *at = &set;
        struct fieldset_node *node = NULL;
        str rest = str_c(*paths), part;
        while (str_cut(&rest, '.', &part)) {
            struct fieldset_element name = fieldset_name(part);
            node = fieldset_at(a, at, &name);
            at = &node->below;
        }
        if (node)
            node->member = true;
    }
    return set;
}

static struct apply_request make_request(const struct ownership *o, const struct fieldset *ignored)
{
    return (struct apply_request){ .shape = o->shape,
                                   .shape_of = o->shape_of,
                                   .view = o->view,
                                   .context = o->context,
                                   .ignored = ignored->n ? ignored : NULL,
                                   .version = o->version,
                                   .subresource = o->subresource,
                                   .manager = o->manager,
                                   .now = o->now,
                                   .force = o->force,
                                   .live = o->live,
                                   .blank = o->blank,
                                   .object = o->object };
}

struct json *ownership_update(struct arena *a, const struct ownership *o)
{
    struct fieldset ignored = parse_paths(a, o->ignored);
    struct apply_request r = make_request(o, &ignored);
    return apply_update(a, &r);
}

/* Runs apply and turns conflicts into the causes of a Status. */
int ownership_apply(struct arena *a, const struct ownership *o, struct json **ret_object,
                    struct json **ret_causes, str *ret_message, err_t *e)
{
    struct fieldset ignored = parse_paths(a, o->ignored);
    struct apply_request r = make_request(o, &ignored);
    struct apply_result result = { 0 };
    int code = apply_patch(a, &r, &result, e);
    if (code == 0)
        *ret_object = result.object;
    if (code != -EEXIST)
        return code;
    struct json *causes = json_new_arr(a);
    for (size_t i = 0; i < result.n_conflicts; i++) {
        struct json *cause = json_new_obj(a);
        json_set_str(a, cause, "reason", S("FieldManagerConflict"));
        json_set_str(a, cause, "message", result.conflicts[i].message);
        json_set_str(a, cause, "field", result.conflicts[i].field);
        json_push(a, causes, cause);
    }
    *ret_causes = causes;
    *ret_message = result.message;
    return code;
}

/* ---- merging without ownership */

/* Lists the atomic values of a configuration: setting one would remove what it does not name. The first null in place of a
 * scalar is an error, unlike in a configuration that a client applies. */
static void find_atomics(const struct shape *shape, const struct json *v, str path, struct arena *a,
                         struct buf *out, struct buf *nulls)
{
    static const char *const wanted[] = { NULL, "string", "numeric (int or float)", "boolean" };
    if (json_is(v, JSON_NULL)) {
        if (shape->kind == SHAPE_SCALAR && shape->scalar && !nulls->n)
            buf_printf(nulls, STR_FMT ": expected %s, got structpb.NullValue", STR_ARG(path),
                       wanted[shape->scalar]);
        return;
    }
    const struct shape *s = shape_for(shape, v);
    bool list = s->kind == SHAPE_LIST;
    if (list ? s->list == SHAPE_ATOMIC_LIST : s->kind == SHAPE_OBJ && s->atomic)
        buf_printf(out, "%s" STR_FMT, out->n ? ", " : "", STR_ARG(path));
    if (s->kind == SHAPE_OBJ)
        json_each(m, v) {
            const struct shape_field *f = shape_field(s, m->key);
            if (f)
                find_atomics(f->shape, m->value,
                             arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(path), STR_ARG(m->key)),
                             a, out, nulls);
        }
    for (uint32_t i = 0; list && i < json_len(v); i++)
        find_atomics(s->element, v->items[i], arena_printf(a, STR_FMT "[%u]", STR_ARG(path), i), a,
                     out, nulls);
}

int ownership_merge(struct arena *a, const struct shape *shape, const struct json *object,
                    const struct json *configuration, struct json **ret, err_t *e)
{
    auto_buf struct buf atomics = { 0 }, nulls = { 0 };
    err_t why = { 0 };
    if (typed_check(shape, configuration, false, &why) < 0)
        return err_set(e, EINVAL,
                       "error applying patch: failed to convert patch object to typed object: %s",
                       why.text);
    find_atomics(shape, configuration, S(""), a, &atomics, &nulls);
    if (nulls.n)
        return err_set(e, EINVAL,
                       "error applying patch: failed to convert patch object to typed object: %s",
                       nulls.p);
    if (atomics.n)
        return err_set(e, EINVAL,
                       "error applying patch: invalid ApplyConfiguration: may not mutate atomic "
                       "arrays, maps or structs: " STR_FMT,
                       STR_ARG(buf_str(&atomics)));
    if (typed_check(shape, object, true, &why) < 0)
        return err_set(
            e, EINVAL,
            "error applying patch: failed to convert original object to typed object: %s",
            why.text);
    *ret = typed_merge(a, shape, object, configuration);
    return 0;
}
