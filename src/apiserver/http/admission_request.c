/* The AdmissionRequest of a write, as expressions of policies and webhooks see it: who does what to which resource, in
 * which version, with which options. The objects themselves are not part of it: expressions have them as variables,
 * and webhook.c adds them to what it sends. */
#include "admission.h"

static struct json *make_triple(struct arena *a, str group, str version, const char *key, str name)
{
    struct json *triple = json_new_obj(a);
    json_set_str(a, triple, "group", group);
    json_set_str(a, triple, "version", version);
    json_set_str(a, triple, key, name);
    return triple;
}

struct json *admission_user(struct arena *a, const struct user *u)
{
    struct json *user = json_new_obj(a), *groups = json_new_arr(a);
    json_set_str(a, user, "username", u->name);
    if (u->uid.n)
        json_set_str(a, user, "uid", u->uid);
    for (size_t i = 0; i < u->n_groups; i++)
        json_push(a, groups, json_new_str(a, u->groups[i]));
    if (u->authenticated) /* others have system:unauthenticated already */
        json_push(a, groups, json_new_str(a, S("system:authenticated")));
    json_set(a, user, S("groups"), groups);
    if (u->extra)
        json_set(a, user, S("extra"), json_copy(a, u->extra));
    return user;
}

/* Options of a delete are given; those of a write are in the query. */
static struct json *make_options(const struct admission_request *r)
{
    struct call *c = r->call;
    struct arena *a = c->arena;
    struct json *options = json_new_obj(a);
    static const char *const names[] = { "fieldManager", "fieldValidation" };
    json_set_str(a, options, "kind",
                 r->operation[0] == 'C'   ? S("CreateOptions")
                 : r->operation[0] == 'U' ? S("UpdateOptions")
                                          : S("DeleteOptions"));
    json_set_str(a, options, "apiVersion", S("meta.k8s.io/v1"));
    json_each(m, r->options)
        if (!json_get_str(options, m->key) && !json_is(m->value, JSON_NULL))
            json_set(a, options, m->key, json_copy(a, m->value));
    for (size_t i = 0; !r->options && i < countof(names); i++)
        if (call_query(c, names[i]).n)
            json_set_str(a, options, names[i], call_query(c, names[i]));
    if (r->dry_run && !r->options) {
        struct json *all = json_new_arr(a);
        json_push(a, all, json_new_str(a, S("All")));
        json_set(a, options, S("dryRun"), all);
    }
    return options;
}

/* A namespace counts as being in itself. */
static str get_namespace(const struct admission_request *r)
{
    const struct kind *k = r->call->kind;
    bool itself = !k->group.n && str_eqc(k->plural, "namespaces");
    return itself ? r->name : r->call->ns;
}

struct json *admission_make_request(const struct admission_request *r, const struct kind *as)
{
    struct call *c = r->call;
    struct arena *a = c->arena;
    struct json *request = json_new_obj(a);
    str sub = str_c(kind_sub_names[c->sub]), ns = get_namespace(r);
    const struct kind *asked = kind_of_sub(c->kind, c->sub), *seen = kind_of_sub(as, c->sub);
    for (int i = 0; i < 2; i++) { /* as matched, and as requested */
        const struct kind *k = i ? asked : seen, *resource = i ? c->kind : as;
        json_set(a, request, i ? S("requestKind") : S("kind"),
                 make_triple(a, k->group, k->version, "kind", k->kind));
        json_set(a, request, i ? S("requestResource") : S("resource"),
                 make_triple(a, resource->group, resource->version, "resource", resource->plural));
        if (sub.n)
            json_set_str(a, request, i ? "requestSubResource" : "subResource", sub);
    }
    if (r->name.n)
        json_set_str(a, request, "name", r->name);
    if (ns.n)
        json_set_str(a, request, "namespace", ns);
    json_set_str(a, request, "operation", str_c(r->operation));
    json_set(a, request, S("userInfo"), admission_user(a, &c->user));
    json_set_bool(a, request, "dryRun", r->dry_run);
    json_set(a, request, S("options"), make_options(r));
    return request;
}
