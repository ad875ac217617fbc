/* Where a pod may run: node and pod affinity, topology spread, scheduling gates; and how it resolves names:
 * the DNS configuration.
 *
 * Affinity terms come in two strengths with the same content: required terms must be satisfiable, so their
 * values are checked; a preferred term that no node can satisfy costs nothing and is accepted. */
#include "../schema/format.h"
#include "kind_hooks.h"

#define REQUIRED "requiredDuringSchedulingIgnoredDuringExecution"
#define PREFERRED "preferredDuringSchedulingIgnoredDuringExecution"

/* ---- nodes */

/* Reports every value that breaks the rule. */
static void check_values(const struct json *values, const struct field_path *at,
                         const char *(*fault_of)(str), struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(values); i++)
        if (fault_of(json_text(values->items[i])))
            field_invalid(errors, AT_INDEX(at, i), values->items[i], "%s",
                          fault_of(json_text(values->items[i])));
}

/* How many values an operator needs. */
static void check_operator(const struct json *e, const struct field_path *at,
                           struct field_errors *errors)
{
    const struct json *op = json_get(e, "operator");
    str word = json_text(op);
    size_t values = json_len(json_get(e, "values"));
    if (str_eqc(word, "In") || str_eqc(word, "NotIn")) {
        if (!values)
            field_required(errors, AT(at, "values"),
                           "must be specified when `operator` is 'In' or 'NotIn'");
    } else if (str_eqc(word, "Exists") || str_eqc(word, "DoesNotExist")) {
        if (values)
            field_forbidden(errors, AT(at, "values"),
                            "may not be specified when `operator` is 'Exists' or 'DoesNotExist'");
    } else if (str_eqc(word, "Gt") || str_eqc(word, "Lt")) {
        if (values != 1)
            field_required(
                errors, AT(at, "values"),
                "must be specified single value when `operator` is 'Lt' or 'Gt' or for a field selector");
    } else {
        field_invalid(errors, AT(at, "operator"), op, "not a valid selector operator");
    }
}

/* matchFields supports one field, metadata.name, with exactly one value. */
static void check_node_field(const struct json *e, const struct field_path *at,
                             struct field_errors *errors)
{
    const struct json *op = json_get(e, "operator"), *key = json_get(e, "key");
    const struct json *values = json_get(e, "values");
    if (!str_eqc(json_text(op), "In") && !str_eqc(json_text(op), "NotIn"))
        field_invalid(errors, AT(at, "operator"), op, "not a valid selector operator");
    else if (json_len(values) != 1)
        field_required(
            errors, AT(at, "values"),
            "must be specified single value when `operator` is 'Lt' or 'Gt' or for a field selector");
    if (!str_eqc(json_text(key), "metadata.name"))
        field_invalid(errors, AT(at, "key"), key, "not a valid field selector key");
    else
        check_values(values, AT(at, "values"), format_dns_subdomain, errors);
}

/* Values are checked only for required terms: a preference that no node can satisfy is harmless. */
static void check_node_term(const struct json *term, bool required, const struct field_path *up,
                            struct field_errors *errors)
{
    const struct json *list = json_get(term, "matchExpressions");
    const struct json *fields = json_get(term, "matchFields");
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct field_path at = { AT(up, "matchExpressions"), .index = i, .how = FIELD_INDEX };
        check_operator(list->items[i], &at, errors);
        kind_check_qualified(json_get(list->items[i], "key"), AT(&at, "key"), errors);
        if (required)
            check_values(json_get(list->items[i], "values"), AT(&at, "values"), format_label_value,
                         errors);
    }
    for (uint32_t i = 0; i < json_len(fields); i++)
        check_node_field(fields->items[i], AT_INDEX(AT(up, "matchFields"), i), errors);
}

/* Required and preferred terms of node affinity. */
static void check_node_affinity(const struct json *affinity, const struct field_path *at,
                                struct field_errors *errors)
{
    const struct json *required = json_get(affinity, REQUIRED);
    const struct json *terms = json_get(required, "nodeSelectorTerms");
    struct field_path in = { AT(at, REQUIRED), .key = S("nodeSelectorTerms") };
    if (required && !json_len(terms))
        field_required(errors, &in, "must have at least one node selector term");
    for (uint32_t i = 0; i < json_len(terms); i++)
        check_node_term(terms->items[i], true, AT_INDEX(&in, i), errors);
    const struct json *preferred = json_get(affinity, PREFERRED);
    for (uint32_t i = 0; i < json_len(preferred); i++) {
        struct field_path item = { AT(at, PREFERRED), .index = i, .how = FIELD_INDEX };
        check_node_term(json_get(preferred->items[i], "preference"), false, AT(&item, "preference"),
                        errors);
    }
}

/* ---- other pods */

/* Label keys are added to the selector, which must be set. */
static void check_label_keys(const struct json *holder, const char *name,
                             const struct field_path *up, struct field_errors *errors)
{
    const struct json *keys = json_get(holder, name);
    struct field_path at = { up, .key = str_c(name) };
    if (json_len(keys) && !json_get(holder, "labelSelector"))
        field_forbidden(errors, &at, "must not be specified when labelSelector is not set");
}

/* One term of pod affinity or anti-affinity. */
static void check_pod_term(const struct json *term, const struct field_path *at,
                           struct field_errors *errors)
{
    const struct json *key = json_get(term, "topologyKey");
    if (json_get(term, "labelSelector"))
        kind_check_selector(json_get(term, "labelSelector"), AT(at, "labelSelector"), errors);
    check_label_keys(term, "matchLabelKeys", at, errors);
    check_label_keys(term, "mismatchLabelKeys", at, errors);
    const struct json *namespaces = json_get(term, "namespaces");
    for (uint32_t i = 0; i < json_len(namespaces); i++)
        if (format_dns_label(json_text(namespaces->items[i])))
            field_invalid(errors, AT(at, "namespace"), namespaces->items[i], "%s",
                          format_dns_label(json_text(namespaces->items[i])));
    if (!json_text(key).n)
        field_required(errors, AT(at, "topologyKey"), "must not be empty");
    kind_check_qualified(key, AT(at, "topologyKey"), errors);
}

/* Required and preferred terms of pod affinity. */
static void check_pod_affinity(const struct json *affinity, const struct field_path *at,
                               struct field_errors *errors)
{
    const struct json *required = json_get(affinity, REQUIRED);
    const struct json *preferred = json_get(affinity, PREFERRED);
    for (uint32_t i = 0; i < json_len(required); i++)
        check_pod_term(required->items[i], AT_INDEX(AT(at, REQUIRED), i), errors);
    for (uint32_t i = 0; i < json_len(preferred); i++) {
        struct field_path item = { AT(at, PREFERRED), .index = i, .how = FIELD_INDEX };
        check_pod_term(json_get(preferred->items[i], "podAffinityTerm"),
                       AT(&item, "podAffinityTerm"), errors);
    }
}

/* Marks each constraint that a later one repeats: the first of the two is reported. */
static const bool *find_repeated(struct arena *a, const struct json *spread)
{
    uint32_t n = (uint32_t)json_len(spread);
    bool *again = arena_array(a, n, sizeof(*again));
    struct seen keys = seen_new(a, 2);
    for (uint32_t i = n; i-- > 0;)
        again[i] = seen_put(&keys,
                            (const struct json *const[]){
                                json_get(spread->items[i], "topologyKey"),
                                json_get(spread->items[i], "whenUnsatisfiable") },
                            i);
    return again;
}

/* Topology spread constraints. */
static void check_spread(const struct json *spread, const struct field_path *up,
                         struct field_errors *errors)
{
    const bool *again = find_repeated(errors->arena, spread);
    for (uint32_t i = 0; i < json_len(spread); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *selector = json_get(spread->items[i], "labelSelector");
        const struct json *otherwise = json_get(spread->items[i], "whenUnsatisfiable");
        const struct json *domains = json_get(spread->items[i], "minDomains");
        if (domains && !str_eqc(json_text(otherwise), "DoNotSchedule"))
            field_invalid(errors, AT(&at, "minDomains"), domains,
                          "can only be used with DoNotSchedule");
        check_label_keys(spread->items[i], "matchLabelKeys", &at, errors);
        if (again[i])
            field_duplicate(errors, AT(&at, "{topologyKey, whenUnsatisfiable}"), otherwise);
        if (selector)
            kind_check_selector(selector, AT(&at, "labelSelector"), errors);
    }
}

/* ---- names */

/* dnsConfig and dnsPolicy. */
static void check_dns(const struct json *spec, const struct field_path *up,
                      struct field_errors *errors)
{
    const struct json *config = json_get(spec, "dnsConfig");
    const struct json *servers = json_get(config, "nameservers");
    const struct json *searches = json_get(config, "searches");
    const struct json *options = json_get(config, "options");
    struct field_path at = { up, .key = S("dnsConfig") };
    if (str_eqc(json_text(json_get(spec, "dnsPolicy")), "None") && !json_len(servers)) {
        if (config)
            field_required(errors, AT(&at, "nameservers"),
                           "must provide at least one DNS nameserver when `dnsPolicy` is None");
        else
            field_required(errors, &at, "must provide `dnsConfig` when `dnsPolicy` is None");
    }
    for (uint32_t i = 0; i < json_len(searches); i++) {
        str text = json_text(searches->items[i]);
        if (text.n > 1 && text.p[text.n - 1] == '.')
            text.n--;
        if (!str_eqc(text, ".") && format_dns_subdomain(text))
            field_invalid(errors, AT_INDEX(AT(&at, "searches"), i), searches->items[i], "%s",
                          format_dns_subdomain(text));
    }
    for (uint32_t i = 0; i < json_len(options); i++)
        if (!json_text(json_get(options->items[i], "name")).n)
            field_required(errors, AT_INDEX(AT(&at, "options"), i), "must not be empty");
}

/* Gates are named and distinct; reported for the gate, not for its name. */
static void check_scheduling_gates(const struct json *gates, const struct field_path *up,
                                   struct field_errors *errors)
{
    struct seen names = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(gates); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *name = json_get(gates->items[i], "name");
        kind_check_qualified(name, &at, errors);
        if (json_text(name).n && seen_value(&names, name, i))
            field_duplicate(errors, &at, name);
    }
}

/* Everything about placement and name resolution. */
void podspec_check_scheduling(const struct json *spec, const struct field_path *at,
                              struct field_errors *errors)
{
    const struct json *affinity = json_get(spec, "affinity");
    struct field_path in = { at, .key = S("affinity") };
    check_node_affinity(json_get(affinity, "nodeAffinity"), AT(&in, "nodeAffinity"), errors);
    check_pod_affinity(json_get(affinity, "podAffinity"), AT(&in, "podAffinity"), errors);
    check_pod_affinity(json_get(affinity, "podAntiAffinity"), AT(&in, "podAntiAffinity"), errors);
    check_spread(json_get(spec, "topologySpreadConstraints"), AT(at, "topologySpreadConstraints"),
                 errors);
    check_dns(spec, at, errors);
    check_scheduling_gates(json_get(spec, "schedulingGates"), AT(at, "schedulingGates"), errors);
}
