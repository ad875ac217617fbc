/* Decides whether a policy or webhook applies: operations on resources, selectors of namespaces and objects.
 *
 * A rule names a version of a resource. With matchPolicy Equivalent, which is the default, a request for another version
 * matches too, and the object is converted to the version that the rule names before an expression or a webhook sees it. */
#include "admission.h"
#include "convert.h"
#include "read.h"

static bool list_has(const struct json *list, str word)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        str each = json_text(list->items[i]);
        if (str_eqc(each, "*") || str_eq(each, word))
            return true;
    }
    return false;
}

/* "pods", "pods/status", "pods/ *", "* /scale", "*" (no subresource) and "* / *". */
static bool matches_resource(const struct json *list, str resource, str sub)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        str want = json_text(list->items[i]), want_sub = S("");
        size_t slash = str_find_char(want, '/');
        if (slash != SIZE_MAX) {
            want_sub = str_from(want, slash + 1);
            want = str_upto(want, slash);
        }
        bool resource_fits = str_eqc(want, "*") || str_eq(want, resource);
        if (resource_fits && (str_eq(want_sub, sub) || str_eqc(want_sub, "*")))
            return true;
    }
    return false;
}

static bool matches_scope(const struct admission_request *r, str scope)
{
    bool namespaced = r->call->kind->namespaced;
    return !scope.n || str_eqc(scope, "*") ||
           (str_eqc(scope, "Namespaced") ? namespaced : !namespaced);
}

/* `as`: the version of the resource. The group is that of `as` too: events are in two. */
static bool matches_rule(const struct admission_request *r, const struct json *rule,
                         const struct kind *as)
{
    const struct call *c = r->call;
    const struct json *names = json_get(rule, "resourceNames");
    return list_has(json_get(rule, "operations"), str_c(r->operation)) &&
           list_has(json_get(rule, "apiGroups"), as->group) &&
           list_has(json_get(rule, "apiVersions"), as->version) &&
           matches_resource(json_get(rule, "resources"), as->plural,
                            str_c(kind_sub_names[c->sub])) &&
           matches_scope(r, json_text(json_get(rule, "scope"))) &&
           (!json_len(names) || list_has(names, r->name));
}

bool admission_matches_rules(const struct admission_request *r, const struct json *rules,
                             const struct kind *as)
{
    for (uint32_t i = 0; i < json_len(rules); i++)
        if (matches_rule(r, rules->items[i], as))
            return true;
    return false;
}

const struct json *admission_namespace(const struct admission_request *r)
{
    struct call *c = r->call;
    const struct kind *k = kinds_find(S(""), S("v1"), S("namespaces"));
    if (c->kind == k)
        return r->object ? r->object : r->old;
    if (!c->kind->namespaced)
        return NULL;
    const struct object *o = store_latest(c->server->store, catalog_key(c->arena, k, S(""), c->ns));
    return o ? read_tree(c->arena, k, o) : NULL;
}

static const struct json *labels_of(const struct json *object)
{
    return json_at(object, "metadata", "labels", NULL);
}

static bool matches_namespace(const struct admission_request *r, const struct json *selector)
{
    if (!selector || kind_selector_is_empty(selector))
        return true;
    const struct json *ns = admission_namespace(r);
    return !ns || kind_selector_matches(selector, labels_of(ns));
}

/* The old or the new object: leaving the selection is a write to what was selected. */
static bool matches_object(const struct admission_request *r, const struct json *selector)
{
    if (!selector || kind_selector_is_empty(selector))
        return true;
    return (r->object && kind_selector_matches(selector, labels_of(r->object))) ||
           (r->old && kind_selector_matches(selector, labels_of(r->old)));
}

bool admission_selects(const struct admission_request *r, const struct json *match)
{
    return matches_namespace(r, json_get(match, "namespaceSelector")) &&
           matches_object(r, json_get(match, "objectSelector"));
}

const struct kind *admission_find_version(const struct admission_request *r,
                                          const struct json *rules, bool exact)
{
    const struct kind *own = r->call->kind;
    if (admission_matches_rules(r, rules, own))
        return own;
    const struct catalog *catalog = &r->call->server->catalog;
    for (uint32_t i = 0; !exact && i < json_len(rules); i++) {
        struct json one = { .type = JSON_ARR, .n = 1, .items = &rules->items[i] };
        for (size_t k = 0; k < catalog->all.n; k++) {
            const struct kind *other = catalog->all.at[k];
            if (other != own && other->storage == own->storage &&
                admission_matches_rules(r, &one, other))
                return other;
        }
    }
    return NULL;
}

/* Exclusions win, also those that name another version of the resource. Without rules, as in most bindings, everything
 * matches in the version of the request. */
const struct kind *admission_matches(const struct admission_request *r, const struct json *match)
{
    const struct kind *own = r->call->kind;
    if (!match)
        return own;
    bool exact = str_eqc(json_text(json_get(match, "matchPolicy")), "Exact");
    const struct json *rules = json_get(match, "resourceRules");
    if (!admission_selects(r, match) ||
        admission_find_version(r, json_get(match, "excludeResourceRules"), exact))
        return NULL;
    return json_len(rules) ? admission_find_version(r, rules, exact) : own;
}

/* A Scale has one version. */
bool admission_view(const struct admission_request *r, const struct kind *as,
                    struct admission_request *ret)
{
    struct call *c = r->call;
    *ret = *r;
    ret->as = as;
    if (as == c->kind || r->kind != c->kind)
        return true;
    ret->kind = as;
    ret->object = r->object ? convert_tree(c, c->kind, as, r->object) : NULL;
    ret->old = r->old ? convert_tree(c, c->kind, as, r->old) : NULL;
    return !ret->object == !r->object && !ret->old == !r->old;
}
