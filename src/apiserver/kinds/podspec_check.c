/* What makes a PodSpec invalid: containers, resources, probes, tolerations. Neighbors check one part each:
 * podspec_env.c, podspec_volumes.c, podspec_scheduling.c and podspec_security.c.
 *
 * Enums, required fields, bounds and formats of single fields are declared in types/pod.types; here are the
 * rules that span fields. Some errors are reported for a list instead of its item, or for another field: that
 * is where kube-apiserver reports them, and the recordings pin it. */
#include "../schema/format.h"
#include "kind_hooks.h"

#include "../../base/quantity.h"

#include <ctype.h>

/* True if an earlier item of the list has the same text. */
static bool is_repeated(struct seen *texts, const struct json *text)
{
    return json_is(text, JSON_STR) && seen_value(texts, text, 0);
}

/* ---- resources */

static bool is_standard_resource(str name)
{
    return str_eqc(name, "cpu") || str_eqc(name, "memory") || str_eqc(name, "ephemeral-storage") ||
           str_starts(name, S("hugepages-"));
}

static bool get_domain(str name, str *ret)
{
    size_t slash = str_find_char(name, '/');
    *ret = str_upto(name, slash);
    return slash != SIZE_MAX;
}

/* Has a domain other than kubernetes.io: counted in whole units, and the limit equals the request. */
static bool is_extended_resource(str name)
{
    str domain;
    return get_domain(name, &domain) && !str_eqc(domain, "kubernetes.io") &&
           !str_ends(domain, S(".kubernetes.io")) && !str_starts(name, S("requests."));
}

/* A name without a domain must be a standard resource; kube-apiserver reports it twice. */
void podspec_check_resource_name(str name, const struct field_path *at, struct field_errors *errors)
{
    struct json shown = { .type = JSON_STR, .n = (uint32_t)name.n, .text = name.p };
    const char *fault = format_qualified_name(name);
    str domain;
    if (fault)
        field_invalid(errors, at, &shown, "%s", fault);
    else if (!get_domain(name, &domain) && !is_standard_resource(name)) {
        field_invalid(errors, at, &shown, "must be a standard resource type or fully qualified");
        field_invalid(errors, at, &shown, "must be a standard resource for containers");
    }
}

/* A quantity of one resource; extended resources come in whole units. */
static void check_amount(str name, const struct json *value, const struct field_path *at,
                         struct field_errors *errors)
{
    struct quantity q;
    int64_t milli = 0;
    if (quantity_parse(json_text(value), &q, NULL) < 0)
        return;
    if (q.negative && !quantity_is_zero(&q))
        field_invalid(errors, at, value, "must be greater than or equal to 0");
    if (is_extended_resource(name) && quantity_scaled(&q, -3, &milli) == 0 && milli % 1000)
        field_invalid(errors, at, value, "must be an integer");
}

/* A request must not exceed its limit, and equals it where overcommit is impossible. */
static void check_against_limit(str name, const struct json *request, const struct json *limit,
                                const struct field_path *at, struct field_errors *errors)
{
    struct quantity r, l;
    if (quantity_parse(json_text(request), &r, NULL) < 0 ||
        quantity_parse(json_text(limit), &l, NULL) < 0)
        return;
    int order = quantity_cmp(&r, &l);
    bool exact = is_extended_resource(name) || str_starts(name, S("hugepages-"));
    if (order > 0)
        field_invalid(errors, at, request, "must be less than or equal to " STR_FMT " limit",
                      STR_ARG(name));
    else if (exact && order)
        field_invalid(errors, at, request, "must be equal to " STR_FMT " limit", STR_ARG(name));
}

/* True if a hugepages-* resource is listed. */
static bool has_huge_pages(const struct json *resources)
{
    json_each(m, resources)
        if (str_starts(m->key, S("hugepages-")))
            return true;
    return false;
}

static bool has_cpu_or_memory(const struct json *resources)
{
    return json_get(resources, "cpu") || json_get(resources, "memory");
}

/* Requests and limits of a container or of the whole pod. */
static void podspec_check_resources(const struct json *resources, const struct field_path *at,
                                    struct field_errors *errors)
{
    const struct json *limits = json_get(resources, "limits");
    const struct json *requests = json_get(resources, "requests");
    struct field_path in_limits = { at, .key = S("limits") };
    struct field_path in_requests = { at, .key = S("requests") };
    json_each(m, limits) {
        podspec_check_resource_name(m->key, AT_KEY(&in_limits, m->key), errors);
        check_amount(m->key, m->value, AT_KEY(&in_limits, m->key), errors);
    }
    json_each(m, requests) {
        podspec_check_resource_name(m->key, AT_KEY(&in_requests, m->key), errors);
        check_amount(m->key, m->value, AT_KEY(&in_requests, m->key), errors);
        const struct json *limit = json_get_str(limits, m->key);
        if (limit)
            check_against_limit(m->key, m->value, limit, &in_requests, errors);
        else if (is_extended_resource(m->key) || str_starts(m->key, S("hugepages-")))
            field_required(errors, &in_limits,
                           "Limit must be set for non overcommitable resources");
    }
    if (has_huge_pages(limits) && !has_cpu_or_memory(limits) && !has_cpu_or_memory(requests))
        field_forbidden(errors, at, "HugePages require cpu or memory");
}

/* ---- containers */

/* Ports of a container; a duplicate name is reported only if the name is valid. */
static void check_ports(const struct json *ports, const struct field_path *up,
                        struct field_errors *errors)
{
    struct seen names = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(ports); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *name = json_get(ports->items[i], "name");
        if (!name)
            continue;
        size_t before = errors->n;
        bool again = is_repeated(&names, name);
        kind_check_port_name(name, AT(&at, "name"), errors);
        if (errors->n == before && again)
            field_duplicate(errors, AT(&at, "name"), name);
    }
}

/* HTTP header names; errors are reported for the list. */
static void check_headers(const struct json *headers, const struct field_path *at,
                          struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(headers); i++) {
        const struct json *name = json_get(headers->items[i], "name");
        str text = json_text(name);
        bool fits = text.n > 0;
        for (size_t j = 0; j < text.n; j++)
            fits = fits && (isalnum((unsigned char)text.p[j]) || text.p[j] == '-');
        if (!fits)
            field_invalid(
                errors, at, name,
                "a valid HTTP header must consist of alphanumeric characters or '-' (e.g. "
                "'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')");
    }
}

/* Exactly one of the named actions must be set. */
static void check_handler(const struct json *handler, const char *const *names,
                          const struct field_path *at, struct field_errors *errors)
{
    size_t n = 0;
    for (const char *const *name = names; *name; name++)
        if (json_get(handler, *name) && n++)
            field_forbidden(errors, &(struct field_path){ at, .key = str_c(*name) },
                            "may not specify more than 1 handler type");
    if (!n)
        field_required(errors, at, "must specify a handler type");
    if (json_get(handler, "exec") && !json_len(json_at(handler, "exec", "command", NULL)))
        field_required(errors, AT(AT(at, "exec"), "command"), NULL);
    check_headers(json_at(handler, "httpGet", "httpHeaders", NULL),
                  AT(AT(at, "httpGet"), "httpHeaders"), errors);
}

/* postStart and preStop. */
static void check_lifecycle(const struct json *lifecycle, const struct field_path *up,
                            struct field_errors *errors)
{
    static const char *const handlers[] = { "exec", "httpGet", "tcpSocket", "sleep", NULL };
    static const char *const moments[] = { "postStart", "preStop" };
    for (size_t i = 0; i < countof(moments); i++)
        if (json_get(lifecycle, moments[i]))
            check_handler(json_get(lifecycle, moments[i]), handlers,
                          &(struct field_path){ up, .key = str_c(moments[i]) }, errors);
}

/* Only readiness may need several successes, and only the other probes may have a grace period. */
static void check_probe(const struct json *probe, bool readiness, const struct field_path *at,
                        struct field_errors *errors)
{
    static const char *const handlers[] = { "exec", "httpGet", "tcpSocket", "grpc", NULL };
    if (!probe)
        return;
    check_handler(probe, handlers, at, errors);
    const struct json *successes = json_get(probe, "successThreshold");
    if (!readiness && json_int(successes, 1) != 1)
        field_invalid(errors, AT(at, "successThreshold"), successes, "must be 1");
    const struct json *grace = json_get(probe, "terminationGracePeriodSeconds");
    if (grace && (readiness || json_int(grace, 1) <= 0))
        field_invalid(errors, AT(at, "terminationGracePeriodSeconds"), grace,
                      readiness ? "must not be set for readinessProbes" : "must be greater than 0");
}

/* Errors are reported for the list, not for its item. */
static void check_resize_policy(const struct json *policies, const struct field_path *at,
                                struct field_errors *errors)
{
    static const char *const rows[2][4] = { { "resourceName", "cpu", "memory", NULL },
                                            { "restartPolicy", "NotRequired", "RestartContainer",
                                              NULL } };
    struct seen names = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(policies); i++) {
        const struct json *name = json_get(policies->items[i], "resourceName");
        for (size_t j = 0; j < countof(rows); j++) {
            const struct json *word = json_get(policies->items[i], rows[j][0]);
            if (!json_text(word).n)
                field_required(errors, at, NULL);
            else if (!str_eqc(json_text(word), rows[j][1]) && !str_eqc(json_text(word), rows[j][2]))
                field_not_supported(errors, at, word, &rows[j][1]);
        }
        if (is_repeated(&names, name))
            field_duplicate(errors, AT_INDEX(at, i), name);
    }
}

/* Everything that containers and init containers have in common. */
static void check_container(const struct json *container, const struct seen *volumes,
                            const struct field_path *at, struct field_errors *errors)
{
    check_ports(json_get(container, "ports"), AT(at, "ports"), errors);
    podspec_check_mounts(container, volumes, AT(at, "volumeMounts"), errors);
    check_probe(json_get(container, "livenessProbe"), false, AT(at, "livenessProbe"), errors);
    check_probe(json_get(container, "readinessProbe"), true, AT(at, "readinessProbe"), errors);
    check_probe(json_get(container, "startupProbe"), false, AT(at, "startupProbe"), errors);
    podspec_check_context(json_get(container, "securityContext"), AT(at, "securityContext"),
                          errors);
    podspec_check_env(container, at, errors);
    check_lifecycle(json_get(container, "lifecycle"), AT(at, "lifecycle"), errors);
    check_resize_policy(json_get(container, "resizePolicy"), AT(at, "resizePolicy"), errors);
    podspec_check_resources(json_get(container, "resources"), AT(at, "resources"), errors);
}

/* An init container that runs once has no probes and no lifecycle; one with restartPolicy=Always
 * (a sidecar) may. */
static void check_init_container(const struct json *container, const struct field_path *at,
                                 struct field_errors *errors)
{
    static const char *const never[] = { "lifecycle", "livenessProbe", "readinessProbe",
                                         "startupProbe" };
    if (str_eqc(json_text(json_get(container, "restartPolicy")), "Always"))
        return;
    const struct json *policies = json_get(container, "resizePolicy");
    for (uint32_t i = 0; i < json_len(policies); i++) {
        struct field_path policy = { AT(at, "resizePolicy"), .index = i, .how = FIELD_INDEX };
        const struct json *word = json_get(policies->items[i], "restartPolicy");
        if (str_eqc(json_text(word), "RestartContainer"))
            field_invalid(errors, AT(&policy, "restartPolicy"), word,
                          "must be 'NotRequired' for init containers without restartPolicy=Always");
    }
    for (size_t i = 0; i < countof(never); i++)
        if (json_get(container, never[i]))
            field_forbidden(errors, &(struct field_path){ at, .key = str_c(never[i]) },
                            "may not be set for init containers without restartPolicy=Always");
}

/* A pod that never restarts cannot restart a container to resize it. */
static void check_no_restart_policy(const struct json *policies, const struct field_path *at,
                                    struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(policies); i++) {
        const struct json *word = json_get(policies->items[i], "restartPolicy");
        if (str_eqc(json_text(word), "RestartContainer"))
            field_invalid(errors, at, word,
                          "must be 'NotRequired' when pod `restartPolicy` is 'Never'");
    }
}

/* One list of containers; names are unique across both lists. */
static void check_containers(const struct json *spec, const char *key, const struct seen *volumes,
                             const struct field_path *up, struct field_errors *errors)
{
    const struct json *list = json_get(spec, key);
    const struct json *others =
        str_eqc(str_c(key), "initContainers") ? json_get(spec, "containers") : NULL;
    struct field_path at_list = { up, .key = str_c(key) };
    struct seen names = seen_new(errors->arena, 1);
    struct seen other_names = seen_list(errors->arena, others, "name");
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct field_path at = { &at_list, .index = i, .how = FIELD_INDEX };
        const struct json *name = json_get(list->items[i], "name");
        if (json_text(name).n) {
            const char *fault = format_dns_label(json_text(name));
            bool again = is_repeated(&names, name);
            if (fault)
                field_invalid(errors, AT(&at, "name"), name, "%s", fault);
            else if (again || seen_lookup(&other_names, name))
                field_duplicate(errors, AT(&at, "name"), name);
        }
        const struct json *restart = json_get(list->items[i], "restartPolicy");
        if (others && restart && !str_eqc(json_text(restart), "Always"))
            field_not_supported(errors, AT(&at, "restartPolicy"), restart,
                                (const char *const[]){ "Always", NULL });
        if (str_eqc(at_list.key, "initContainers"))
            check_init_container(list->items[i], &at, errors);
        check_container(list->items[i], volumes, &at, errors);
        const struct json *sleep =
            json_at(list->items[i], "lifecycle", "preStop", "sleep", "seconds", NULL);
        int64_t grace = json_int(json_get(spec, "terminationGracePeriodSeconds"), 0);
        if (sleep && (json_int(sleep, 0) < 0 || json_int(sleep, 0) > grace))
            field_invalid(errors, AT(AT(AT(&at, "lifecycle"), "preStop"), "sleep"), sleep,
                          "must be between 0 and terminationGracePeriodSeconds");
        if (str_eqc(json_text(json_get(spec, "restartPolicy")), "Never"))
            check_no_restart_policy(json_get(list->items[i], "resizePolicy"),
                                    AT(&at, "resizePolicy"), errors);
    }
}

/* ---- the rest of a pod */

/* Key, operator, value and effect must agree. */
static void check_tolerations(const struct json *list, const struct field_path *up,
                              struct field_errors *errors)
{
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *t = list->items[i], *key = json_get(t, "key");
        const struct json *op = json_get(t, "operator");
        bool exists = str_eqc(json_text(op), "Exists");
        if (!json_text(key).n && !exists)
            field_invalid(
                errors, AT(&at, "operator"), op,
                "operator must be Exists when `key` is empty, which means \"match all values and "
                "all keys\"");
        const struct json *value = json_get(t, "value");
        if (exists && json_text(value).n)
            field_invalid(errors, AT(&at, "operator"), t,
                          "value must be empty when `operator` is 'Exists'");
        else if (!exists && format_label_value(json_text(value)))
            field_invalid(errors, AT(&at, "operator"), value, "%s",
                          format_label_value(json_text(value)));
        if (json_get(t, "tolerationSeconds") &&
            !str_eqc(json_text(json_get(t, "effect")), "NoExecute"))
            field_invalid(errors, AT(&at, "effect"), json_get(t, "effect"),
                          "effect must be 'NoExecute' when `tolerationSeconds` is set");
    }
}

/* Pods only: a template may still be completed by admission. */
static void check_images(const struct json *spec, const char *key, const struct field_path *up,
                         struct field_errors *errors)
{
    const struct json *list = json_get(spec, key);
    struct field_path at = { up, .key = str_c(key) };
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *image = json_get(list->items[i], "image");
        if (json_text(image).n != str_trim(json_text(image)).n)
            field_invalid(errors, AT(AT_INDEX(&at, i), "image"), image,
                          "must not have leading or trailing whitespace");
    }
}

/* The rules of a whole PodSpec, in the order in which kube-apiserver reports them. */
void podspec_check(const struct json *spec, const struct field_path *at, struct podspec_rules rules,
                   struct field_errors *errors)
{
    struct seen volumes =
        podspec_check_volumes(json_get(spec, "volumes"), rules, AT(at, "volumes"), errors);
    check_containers(spec, "containers", &volumes, at, errors);
    check_containers(spec, "initContainers", &volumes, at, errors);
    if (!rules.template) {
        check_images(spec, "containers", at, errors);
        check_images(spec, "initContainers", at, errors);
    }
    check_tolerations(json_get(spec, "tolerations"), AT(at, "tolerations"), errors);
    kind_check_labels(json_get(spec, "nodeSelector"), AT(at, "nodeSelector"), errors);
    podspec_check_scheduling(spec, at, errors);
    podspec_check_host(spec, at, errors);
    podspec_check_resources(json_get(spec, "resources"), AT(at, "resources"), errors);
    const struct json *policy = json_get(spec, "restartPolicy");
    if (rules.restart_policy && !str_eqc(json_text(policy), rules.restart_policy))
        field_not_supported(errors, AT(at, "restartPolicy"), policy,
                            (const char *const[]){ rules.restart_policy, NULL });
}
