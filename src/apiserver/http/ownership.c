/* Translates between http's types and those of json/apply.h; see ownership.h. */
#include "ownership.h"

#include "../../json/apply.h"

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
