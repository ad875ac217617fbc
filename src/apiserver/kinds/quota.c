/* ResourceQuotas: validation, what an object uses, and which requests exceed a quota.
 *
 * A quota counts objects ("pods", "count/deployments.apps"), what pods request ("requests.cpu", "cpu", "limits.memory"),
 * storage that claims request, and node ports. The used amounts are kept in the status of the quota, as in kube-apiserver:
 * a request adds what it uses, and a controller counts again when objects go away. Messages are quoted: kube-apiserver. */
#include "quota.h"

#include "../../base/quantity.h"
#include "../schema/format.h"
#include "kind_hooks.h"

/* What pods request and are limited to. The names without a prefix mean requests, as in the first version of
 * quotas. */
static const char *const compute[] = { "cpu",
                                       "memory",
                                       "ephemeral-storage",
                                       "requests.cpu",
                                       "requests.memory",
                                       "requests.ephemeral-storage",
                                       "limits.cpu",
                                       "limits.memory",
                                       "limits.ephemeral-storage",
                                       NULL };
/* Numbers of objects, and of ports, that have names of their own; all others are written as
 * count/RESOURCE.GROUP. */
static const char *const objects[] = { "pods",
                                       "services",
                                       "replicationcontrollers",
                                       "resourcequotas",
                                       "secrets",
                                       "configmaps",
                                       "persistentvolumeclaims",
                                       "services.nodeports",
                                       "services.loadbalancers",
                                       NULL };

/* ---- validation */

/* A resource that needs no domain. */
static bool is_standard(str name)
{
    return format_is_one_of(name, compute) || format_is_one_of(name, objects) ||
           str_eqc(name, "storage") || str_eqc(name, "requests.storage");
}

/* Names with a domain are free. */
static void check_resource(str name, const struct field_path *at, struct field_errors *errors)
{
    const struct json *text = json_new_str(errors->arena, name);
    kind_check_qualified(text, at, errors);
    if (str_find_char(name, '/') != SIZE_MAX || is_standard(name) ||
        str_starts(name, S("hugepages-")) || str_starts(name, S("requests.hugepages-")))
        return;
    if (!format_qualified_name(name)) /* otherwise that is the error */
        field_invalid(errors, at, text, "must be a standard resource type or fully qualified");
    field_invalid(errors, at, text, "must be a standard resource for quota");
}

/* Counts have no fractions; a number too large for the test is taken. */
static bool is_integer(const struct quantity *q)
{
    int64_t milli = 0;
    return quantity_scaled(q, -3, &milli) < 0 || milli % 1000 == 0;
}

/* Names, signs and fractions of a map of quantities. */
static void check_amounts(const struct json *amounts, const struct field_path *up,
                          struct field_errors *errors)
{
    json_each(m, amounts) {
        struct field_path at = { up, .key = m->key, .how = FIELD_KEY };
        struct quantity q;
        check_resource(m->key, &at, errors);
        if (quantity_parse(json_text(m->value), &q, NULL) < 0)
            continue;
        if (q.negative)
            field_invalid(errors, &at, m->value, "must be greater than or equal to 0");
        else if ((format_is_one_of(m->key, objects) || str_starts(m->key, S("count/"))) &&
                 !is_integer(&q))
            field_invalid(errors, &at, m->value, "must be an integer");
    }
}

/* The first four exclude each other in pairs, which check_scopes() relies on; the two that are about
 * classes take values. */
static const char *const scopes[] = { "BestEffort",
                                      "NotBestEffort",
                                      "Terminating",
                                      "NotTerminating",
                                      "PriorityClass",
                                      "CrossNamespacePodAffinity",
                                      "VolumeAttributesClass",
                                      NULL };

/* Whether a scope can select what the resource counts. */
static bool fits_scope(str scope, str resource)
{
    bool pods = str_eqc(resource, "pods");
    if (str_eqc(scope, "BestEffort"))
        return pods;
    if (str_eqc(scope, "VolumeAttributesClass"))
        return str_eqc(resource, "persistentvolumeclaims") || str_eqc(resource, "requests.storage");
    return pods || format_is_one_of(resource, compute) || !format_is_one_of(scope, scopes);
}

/* One error for each resource that the scope cannot select. */
static void check_scope_fits(str scope, const struct json *hard, const struct json *value,
                             const struct field_path *at, struct field_errors *errors)
{
    json_each(m, hard)
        if (is_standard(m->key) && !fits_scope(scope, m->key))
            field_invalid(errors, at, value, "unsupported scope applied to resource");
}

/* Known scopes, none of which excludes another. */
static void check_scopes(const struct json *spec, const struct field_path *up,
                         struct field_errors *errors)
{
    struct field_path at = { up, .key = S("scopes") };
    const struct json *list = json_get(spec, "scopes");
    bool has[4] = { false };
    for (uint32_t i = 0; i < json_len(list); i++) {
        str scope = json_text(list->items[i]);
        if (!format_is_one_of(scope, scopes))
            field_invalid(errors, &at, list, "unsupported scope");
        check_scope_fits(scope, json_get(spec, "hard"), list, &at, errors);
        for (size_t n = 0; n < countof(has); n++)
            has[n] |= str_eqc(scope, scopes[n]);
    }
    if ((has[0] && has[1]) || (has[2] && has[3]))
        field_invalid(errors, &at, list, "conflicting scopes");
}

/* The operators of a scope selector, and the values that they need. */
static void check_scope_selector(const struct json *spec, const struct field_path *up,
                                 struct field_errors *errors)
{
    struct field_path in = { up, .key = S("scopeSelector") },
                      at = { &in, .key = S("matchExpressions") };
    const struct json *selector = json_get(spec, "scopeSelector");
    const struct json *list = json_get(selector, "matchExpressions");
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *each = list->items[i], *operator= json_get(each, "operator");
        const struct json *name = json_get(each, "scopeName"), *values = json_get(each, "values");
        str how = json_text(operator);
        if (!format_is_one_of(json_text(name), scopes))
            field_invalid(errors, AT(&at, "scopeName"), name, "unsupported scope");
        check_scope_fits(json_text(name), json_get(spec, "hard"), selector, &at, errors);
        bool by_value = str_eqc(json_text(name), "PriorityClass") ||
                        str_eqc(json_text(name), "VolumeAttributesClass");
        if (!by_value && format_is_one_of(json_text(name), scopes) && !str_eqc(how, "Exists"))
            field_invalid(errors, AT(&at, "operator"), operator,
                          "must be 'Exist' when scope is any of ResourceQuotaScopeTerminating, "
                          "ResourceQuotaScopeNotTerminating, ResourceQuotaScopeBestEffort, "
                          "ResourceQuotaScopeNotBestEffort or "
                          "ResourceQuotaScopeCrossNamespacePodAffinity");
        if (str_eqc(how, "In") || str_eqc(how, "NotIn")) {
            if (!json_len(values))
                field_required(errors, AT(&at, "values"),
                               "must be at least one value when `operator` is 'In' or 'NotIn' for "
                               "scope selector");
        } else if (str_eqc(how, "Exists") || str_eqc(how, "DoesNotExist")) {
            if (json_len(values))
                field_invalid(errors, AT(&at, "values"), values,
                              "must be no value when `operator` is 'Exist' or 'DoesNotExist' for "
                              "scope selector");
        } else {
            field_invalid(errors, AT(&at, "operator"), operator, "not a valid selector operator");
        }
    }
}

/* Scopes are fixed when a quota is created. */
static void validate_quota(const struct kind_change *c, struct kind_env *env UNUSED,
                           struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") }, state = { NULL, .key = S("status") };
    const struct json *spec = json_get(c->object, "spec"), *status = json_get(c->object, "status");
    check_amounts(json_get(spec, "hard"), AT(&at, "hard"), errors);
    check_scopes(spec, &at, errors);
    check_scope_selector(spec, &at, errors);
    if (c->sub == KIND_STATUS) {
        check_amounts(json_get(status, "hard"), AT(&state, "hard"), errors);
        check_amounts(json_get(status, "used"), AT(&state, "used"), errors);
    } else if (c->old) {
        const struct json *now = json_get(spec, "scopes");
        const struct json *was = json_at(c->old, "spec", "scopes", NULL);
        if ((json_len(now) || json_len(was)) && !json_eq(now, was))
            field_invalid(errors, AT(&at, "scopes"), now ? now : json_new_arr(errors->arena),
                          "field is immutable");
    }
}

const struct kind_hooks kind_hooks_quota = { .validate = validate_quota };

/* ---- scopes of objects */

/* A kind of the core group, by its plural. */
static bool is_core(const struct kind *k, const char *plural)
{
    return !k->custom && !k->group.n && str_eqc(k->plural, plural);
}

/* For pods only; a quota with such scopes counts nothing else. */
static bool pod_has_scope(const struct json *pod, str scope)
{
    const struct json *spec = json_get(pod, "spec");
    bool ends = json_get(spec, "activeDeadlineSeconds");
    bool best_effort = str_eqc(str_c(podspec_qos_class(spec)), "BestEffort");
    if (str_eqc(scope, "BestEffort"))
        return best_effort;
    if (str_eqc(scope, "NotBestEffort"))
        return !best_effort;
    if (str_eqc(scope, "Terminating"))
        return ends;
    if (str_eqc(scope, "NotTerminating"))
        return !ends;
    return str_eqc(scope, "PriorityClass") && json_text(json_get(spec, "priorityClassName")).n;
}

/* One requirement of a scope selector. */
static bool requirement_holds(const struct json *pod, const struct json *requirement)
{
    str scope = json_text(json_get(requirement, "scopeName"));
    str how = json_text(json_get(requirement, "operator"));
    const struct json *values = json_get(requirement, "values");
    str class = json_text(json_at(pod, "spec", "priorityClassName", NULL));
    bool among = false;
    if (!str_eqc(scope, "PriorityClass"))
        return pod_has_scope(pod, scope);
    for (uint32_t i = 0; i < json_len(values); i++)
        among |= str_eq(json_text(values->items[i]), class);
    return str_eqc(how, "In")       ? class.n && among
           : str_eqc(how, "NotIn")  ? !among
           : str_eqc(how, "Exists") ? class.n > 0
                                    : !class.n;
}

bool kind_quota_selects(const struct json *quota, const struct kind *k, const struct json *object)
{
    const struct json *list = json_at(quota, "spec", "scopes", NULL);
    const struct json *more = json_at(quota, "spec", "scopeSelector", "matchExpressions", NULL);
    if ((json_len(list) || json_len(more)) && !is_core(k, "pods"))
        return false;
    for (uint32_t i = 0; i < json_len(list); i++)
        if (!pod_has_scope(object, json_text(list->items[i])))
            return false;
    for (uint32_t i = 0; i < json_len(more); i++)
        if (!requirement_holds(object, more->items[i]))
            return false;
    return true;
}

/* ---- usage */

/* Whether the pod still holds what it requested. */
static bool holds_resources(const struct json *pod)
{
    str phase = json_text(json_at(pod, "status", "phase", NULL));
    return !str_eqc(phase, "Failed") && !str_eqc(phase, "Succeeded");
}

/* A finished pod uses nothing but its place in count/pods. */
static struct json *pod_usage(struct arena *a, const struct json *pod, str resource)
{
    struct json *amount;
    if (!holds_resources(pod))
        return json_new_str(a, S("0"));
    if (str_eqc(resource, "pods"))
        return json_new_str(a, S("1"));
    if (str_starts(resource, S("limits.")))
        amount = kind_limits_pod_amount(a, pod, "limits", str_from(resource, 7));
    else if (str_starts(resource, S("requests.")))
        amount = kind_limits_pod_amount(a, pod, "requests", str_from(resource, 9));
    else
        amount = kind_limits_pod_amount(a, pod, "requests", resource);
    return amount ? amount : json_new_str(a, S("0"));
}

/* Services by type, and the node ports that they hold. */
static struct json *service_usage(struct arena *a, const struct json *service, str resource)
{
    str type = json_text(json_at(service, "spec", "type", NULL));
    const struct json *ports = json_at(service, "spec", "ports", NULL);
    int64_t n = 0;
    if (str_eqc(resource, "services"))
        n = 1;
    else if (str_eqc(resource, "services.loadbalancers"))
        n = str_eqc(type, "LoadBalancer");
    else if (str_eqc(type, "NodePort"))
        n = (int64_t)json_len(ports);
    else if (str_eqc(type, "LoadBalancer"))
        for (uint32_t i = 0; i < json_len(ports); i++)
            n += json_int(json_get(ports->items[i], "nodePort"), 0) > 0;
    return json_new_str(a, arena_printf(a, "%lld", (long long)n));
}

/* "requests.storage", and the same for a class: "CLASS.storageclass.storage.k8s.io/requests.storage". */
static struct json *claim_usage(struct arena *a, const struct json *claim, str resource)
{
    static const char suffix[] = ".storageclass.storage.k8s.io/";
    str class = json_text(json_at(claim, "spec", "storageClassName", NULL));
    size_t at = str_find(resource, str_c(suffix));
    if (at != SIZE_MAX) {
        if (!str_eq(str_upto(resource, at), class))
            return json_new_str(a, S("0"));
        resource = str_from(resource, at + sizeof(suffix) - 1);
    }
    if (str_eqc(resource, "persistentvolumeclaims"))
        return json_new_str(a, S("1"));
    const struct json *size = json_at(claim, "spec", "resources", "requests", "storage", NULL);
    return size ? json_copy(a, size) : json_new_str(a, S("0"));
}

/* The name after "count/": deployments.apps, configmaps. */
static bool is_count_of(const struct kind *k, str resource)
{
    str rest = str_from(resource, 6);
    if (!str_starts(resource, S("count/")) || !str_starts(rest, k->plural))
        return false;
    rest = str_from(rest, k->plural.n);
    return k->group.n ? rest.n && rest.p[0] == '.' && str_eq(str_from(rest, 1), k->group) : !rest.n;
}

/* Resources that only claims use. */
static bool is_claim_resource(str resource)
{
    return str_eqc(resource, "persistentvolumeclaims") || str_eqc(resource, "requests.storage") ||
           str_find(resource, S(".storageclass.storage.k8s.io/")) != SIZE_MAX;
}

/* The amount of one resource; NULL: this kind never uses it. */
static struct json *usage_of(struct arena *a, const struct kind *k, const struct json *object,
                             str resource)
{
    if (is_count_of(k, resource))
        return json_new_str(a, S("1"));
    if (str_starts(resource, S("count/")))
        return NULL;
    if (is_core(k, "pods"))
        return str_eqc(resource, "pods") || format_is_one_of(resource, compute) ||
                       (str_starts(resource, S("requests.")) && !is_claim_resource(resource)) ||
                       str_starts(resource, S("hugepages-"))
                   ? pod_usage(a, object, resource)
                   : NULL;
    if (is_core(k, "services"))
        return str_starts(resource, S("services")) ? service_usage(a, object, resource) : NULL;
    if (is_core(k, "persistentvolumeclaims"))
        return is_claim_resource(resource) ? claim_usage(a, object, resource) : NULL;
    bool plain = !k->custom && !k->group.n && str_eq(k->plural, resource) &&
                 format_is_one_of(resource, objects);
    return plain ? json_new_str(a, S("1")) : NULL;
}

struct json *kind_quota_usage(struct arena *a, const struct kind *k, const struct json *object,
                              const struct json *hard)
{
    struct json *usage = json_new_obj(a);
    json_each(m, hard) {
        struct json *amount = object ? usage_of(a, k, object, m->key) : NULL;
        if (amount)
            json_set(a, usage, m->key, amount);
    }
    return usage;
}

/* A quantity of a map; zero if it is absent. */
static struct quantity amount_of(const struct json *map, str name)
{
    struct quantity q = quantity_of(0, 0, QUANTITY_DECIMAL);
    quantity_parse(json_text(json_get_str(map, name)), &q, NULL);
    return q;
}

void kind_quota_add(struct arena *a, struct json *sum, const struct json *more, int sign)
{
    json_each(m, more) {
        char text[QUANTITY_TEXT_MAX];
        struct quantity total = amount_of(sum, m->key), part = amount_of(more, m->key);
        int failed = sign > 0 ? quantity_add(&total, &part) : quantity_sub(&total, &part);
        if (failed || total.negative)
            continue;
        json_set(a, sum, m->key, json_new_str(a, arena_str(a, quantity_text(&total, text))));
    }
}

/* ---- admission */

/* Pods must declare what a quota limits: requests and limits of every container. */
static str find_undeclared(struct arena *a, const struct json *pod, const struct json *hard)
{
    static const char *const lists[] = { "containers", "initContainers" };
    auto_buf struct buf text = { 0 };
    for (size_t r = 0; compute[r]; r++) {
        str resource = str_c(compute[r]), name = resource;
        bool limits = str_starts(name, S("limits.")), found = false;
        if (!json_get_str(hard, resource) || str_find(name, S("ephemeral")) != SIZE_MAX)
            continue;
        if (limits || str_starts(name, S("requests.")))
            name = str_from(name, limits ? 7 : 9);
        for (size_t i = 0; i < countof(lists); i++) {
            const struct json *list = json_at(pod, "spec", lists[i], NULL);
            for (uint32_t n = 0; n < json_len(list); n++) {
                const struct json *declared =
                    json_at(list->items[n], "resources", limits ? "limits" : "requests", NULL);
                if (json_get_str(declared, name))
                    continue;
                if (!found)
                    buf_printf(&text, "%s" STR_FMT " for: ", text.n ? "; " : "must specify ",
                               STR_ARG(resource));
                buf_printf(&text, "%s" STR_FMT, found ? "," : "",
                           STR_ARG(json_text(json_get(list->items[n], "name"))));
                found = true;
            }
        }
    }
    return arena_str(a, buf_str(&text));
}

/* "pods=1,requests.cpu=200m" of those that are exceeded, sorted. */
static str format_amounts(struct arena *a, const struct json *exceeded, const struct json *map)
{
    auto_buf struct buf text = { 0 };
    json_each(m, exceeded) {
        str amount = json_text(json_get_str(map, m->key));
        buf_printf(&text, "%s" STR_FMT "=" STR_FMT, text.n ? "," : "", STR_ARG(m->key),
                   STR_ARG(amount.n ? amount : S("0")));
    }
    return arena_str(a, buf_str(&text));
}

/* For qsort: messages list resources in alphabetical order. */
static int compare_keys(const void *a, const void *b)
{
    return str_cmp(((const struct json_member *)a)->key, ((const struct json_member *)b)->key);
}

str kind_quota_refusal(struct arena *a, const struct json *quota, const struct kind *k,
                       const struct json *object, const struct json *old, struct json **ret_used)
{
    const struct json *hard = json_at(quota, "status", "hard", NULL);
    const struct json *used = json_at(quota, "status", "used", NULL);
    str name = json_text(json_at(quota, "metadata", "name", NULL));
    bool now = kind_quota_selects(quota, k, object),
         before = old && kind_quota_selects(quota, k, old);
    struct json *more = kind_quota_usage(a, k, now ? object : NULL, hard);
    struct json *sum = used ? json_copy(a, used) : json_new_obj(a), *exceeded = json_new_obj(a);
    *ret_used = NULL;
    if (is_core(k, "pods") && !old && now) {
        str missing = find_undeclared(a, object, hard);
        if (missing.n)
            return arena_printf(a, "failed quota: " STR_FMT ": " STR_FMT, STR_ARG(name),
                                STR_ARG(missing));
    }
    kind_quota_add(a, sum, kind_quota_usage(a, k, before ? old : NULL, hard), -1);
    kind_quota_add(a, sum, more, 1);
    json_each(m, more) {
        struct quantity total = amount_of(sum, m->key), most = amount_of(hard, m->key);
        struct quantity was = amount_of(used, m->key);
        if (quantity_cmp(&total, &most) > 0 && quantity_cmp(&total, &was) > 0)
            json_set(a, exceeded, m->key, m->value);
    }
    if (json_len(exceeded)) {
        qsort(exceeded->members, exceeded->n, sizeof(*exceeded->members), compare_keys);
        return arena_printf(a,
                            "exceeded quota: " STR_FMT ", requested: " STR_FMT ", used: " STR_FMT
                            ", limited: " STR_FMT,
                            STR_ARG(name), STR_ARG(format_amounts(a, exceeded, more)),
                            STR_ARG(format_amounts(a, exceeded, used)),
                            STR_ARG(format_amounts(a, exceeded, hard)));
    }
    if (!json_eq(sum, used))
        *ret_used = sum;
    return S("");
}
