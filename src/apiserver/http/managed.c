/* Field ownership of a call: see managed.h. */
#include "managed.h"

#include "ownership.h"
#include "server.h"

/* The same kind in another version ("apps/v1"); NULL: not served, or another group. */
static const struct kind *find_kind_version(struct call *c, str version)
{
    str group = S(""), rest = version;
    if (str_find_char(version, '/') != SIZE_MAX)
        str_cut(&rest, '/', &group);
    struct catalog_set *set;
    return str_eq(group, c->kind->group)
               ? catalog_find(&c->server->catalog, group, rest, c->kind->plural, &set)
               : NULL;
}

/* Entries written through another version are read by that version's shape. */
static const struct shape *shape_of_version(void *context, str version)
{
    const struct kind *k = find_kind_version(context, version);
    return k ? schema_shape(k->schema) : NULL;
}

/* The object in another version, in which entries of managedFields were written. */
static const struct json *view_of_version(void *context, str version, const struct json *object)
{
    struct call *c = context;
    const struct kind *k = find_kind_version(c, version);
    if (!k || k->custom) /* versions of custom resources have the same fields */
        return object;
    struct json *copy = json_copy(c->arena, object);
    kind_to_storage(c->kind, c->arena, copy);
    kind_from_storage(k, c->arena, copy);
    return copy;
}

static struct ownership make_ownership(struct call *c, const struct write_options *o,
                                       const struct json *live, const struct json *object)
{
    bool known = json_len(json_at(live, "metadata", "managedFields", NULL)) > 0;
    return (struct ownership){ .shape = schema_shape(c->kind->schema),
                               .shape_of = shape_of_version,
                               .view = view_of_version,
                               .context = c,
                               .ignored = kind_reset_fields(c->kind, c->sub),
                               .version = kind_api_version(c->arena, c->kind),
                               .subresource = c->subresource,
                               .manager = o->manager,
                               .now = server_time(c->server, c->arena),
                               .force = o->force,
                               .live = live,
                               .blank = known ? NULL : kind_empty_object(c->kind, c->arena),
                               .object = object };
}

/* Whether any manager owns the replicas field that a Scale writes. */
static bool are_replicas_owned(struct call *c, const struct json *managed)
{
    for (size_t i = 0; i < json_len(managed); i++) {
        const struct json *at = json_get(json_item(managed, i), "fieldsV1");
        str rest = str_from(c->kind->scale_spec_path, 1), part;
        while (at && str_cut(&rest, '.', &part))
            at = json_get_str(at, arena_printf(c->arena, "f:" STR_FMT, STR_ARG(part)));
        if (at)
            return true;
    }
    return false;
}

void managed_update(struct call *c, const struct write_options *o, const struct json *old,
                    struct json *object)
{
    const struct json *before = json_at(old, "metadata", "managedFields", NULL);
    if (c->sub == KIND_SCALE && !are_replicas_owned(c, before))
        return; /* a Scale does not create managedFields where no manager owns the replicas */
    struct ownership r = make_ownership(c, o, old, object);
    struct json *settled = ownership_update(c->arena, &r);
    struct json *managed = json_at(settled, "metadata", "managedFields", NULL);
    struct json *metadata = json_make(c->arena, object, "metadata", NULL);
    if (json_len(managed))
        json_set(c->arena, metadata, S("managedFields"), managed);
    else
        json_del(metadata, S("managedFields"));
}

void managed_update_as(struct server *s, struct arena *a, const struct kind *k,
                       const struct managed_change *m)
{
    struct call c = { .server = s, .arena = a, .kind = k, .sub = m->sub };
    c.subresource = m->sub == KIND_STATUS ? S("status") : S("");
    managed_update(&c, &(struct write_options){ .manager = m->manager }, m->old, m->object);
}

/* Translates the results of apply: conflicts are 409 with one cause per field, a configuration that cannot
 * be applied is 400. */
struct json *managed_apply(struct call *c, const struct write_options *o, const struct json *live,
                           const struct json *config)
{
    struct ownership r = make_ownership(c, o, live, config);
    struct json *object = NULL, *causes = NULL;
    str message = S("");
    err_t e = { 0 };
    int result = ownership_apply(c->arena, &r, &object, &causes, &message, &e);
    if (result == 0)
        return object;
    struct status s = { .message = message, .causes = causes, .code = 409, .reason = "Conflict" };
    if (result != -EEXIST) {
        s.code = result == -EINVAL ? 400 : 500;
        s.reason = result == -EINVAL ? "BadRequest" : NULL;
        s.message = arena_str(c->arena, str_c(e.text));
    }
    call_status(c, &s);
    return NULL;
}
