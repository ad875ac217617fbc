/* Budgets, priority classes, flow control and API services: the rules that span fields.
 *
 * Field-local rules are in types/cluster.types, quotas and limits in quota.c, certificates in csr.c. Values that
 * kube-apiserver reports as a whole struct are reported as the object here: clients match the end of the message.
 * Messages are quoted: kube-apiserver. */
#include "../schema/format.h"
#include "kind_hooks.h"

/* ---- PodDisruptionBudget */

/* One of two numbers, and a selector. A write to /status repeats none of this. */
static void validate_pdb(const struct kind_change *c, struct kind_env *env UNUSED,
                         struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec");
    const struct json *least = json_get(spec, "minAvailable");
    const struct json *most = json_get(spec, "maxUnavailable");
    if (c->sub == KIND_STATUS)
        return;
    if (least && most)
        field_invalid(errors, &at, spec, "minAvailable and maxUnavailable cannot be both set");
    kind_check_count_or_percent(least, AT(&at, "minAvailable"), 100, errors);
    kind_check_count_or_percent(most, AT(&at, "maxUnavailable"), 100, errors);
    kind_check_selector(json_get(spec, "selector"), AT(&at, "selector"), errors);
}

const struct kind_hooks kind_hooks_pdb = { .validate = validate_pdb };

/* ---- PriorityClass */

enum { PRIORITY_MAX = 1000000000 };

/* The two classes that every cluster has; their values are above what users may choose. */
static bool is_system_priority(str name, int64_t value)
{
    return (str_eqc(name, "system-cluster-critical") && value == 2 * (int64_t)PRIORITY_MAX) ||
           (str_eqc(name, "system-node-critical") && value == 2 * (int64_t)PRIORITY_MAX + 1000);
}

/* Names of the system are reserved, and a value never changes. */
static void validate_priorityclass(const struct kind_change *c, struct kind_env *env UNUSED,
                                   struct field_errors *errors)
{
    static const char *const policies[] = { "PreemptLowerPriority", "Never", NULL };
    str name = json_text(json_at(c->object, "metadata", "name", NULL));
    const struct json *value = json_get(c->object, "value");
    const struct json *policy = json_get(c->object, "preemptionPolicy");
    if (!c->old && str_starts(name, S("system-"))) {
        if (!is_system_priority(name, json_int(value, 0)))
            field_forbidden(errors, AT(AT(NULL, "metadata"), "name"),
                            "priority class names with 'system-' prefix are reserved for system "
                            "use only. error: " STR_FMT " is not a known system priority class",
                            STR_ARG(name));
    } else if (!c->old && json_int(value, 0) > PRIORITY_MAX) {
        field_forbidden(errors, AT(NULL, "value"),
                        "maximum allowed value of a user defined priority is %d", PRIORITY_MAX);
    }
    if (c->old && json_int(value, 0) != json_int(json_get(c->old, "value"), 0))
        field_forbidden(errors, AT(NULL, "value"), "may not be changed in an update.");
    if (policy && !c->old && !format_is_one_of(json_text(policy), policies))
        field_not_supported(errors, AT(NULL, "preemptionPolicy"), policy, policies);
}

/* Only one class can be the default. */
static void prepare_priorityclass(const struct kind_change *c, struct kind_env *env,
                                  struct kind_fault *fault)
{
    const struct json *given = json_get(c->object, "globalDefault");
    str name = json_text(json_at(c->object, "metadata", "name", NULL));
    if (!json_is(given, JSON_BOOL) || !given->boolean || !env->list)
        return;
    const struct json *all = env->list(env->context, c->kind, S(""));
    for (uint32_t i = 0; i < json_len(all); i++) {
        const struct json *is = json_get(all->items[i], "globalDefault");
        str other = json_text(json_at(all->items[i], "metadata", "name", NULL));
        if (json_is(is, JSON_BOOL) && is->boolean && (!c->old || !str_eq(name, other)))
            kind_fault_set(fault, 403, "Forbidden",
                           arena_printf(env->arena,
                                        "priorityclasses.scheduling.k8s.io \"" STR_FMT
                                        "\" is forbidden: PriorityClass " STR_FMT
                                        " is already marked as default. Only one default can exist",
                                        STR_ARG(name), STR_ARG(other)));
    }
}

const struct kind_hooks kind_hooks_priorityclass = { .prepare = prepare_priorityclass,
                                                     .validate = validate_priorityclass };

/* ---- flow control */

/* Zero means "not set" for the numbers of a queue. */
static void fill_prioritylevel(struct arena *a, struct json *object)
{
    static const struct {
        const char *key;
        int64_t value;
    } usual[] = { { "queues", 64 }, { "handSize", 8 }, { "queueLengthLimit", 50 } };
    struct json *queuing = json_at(object, "spec", "limited", "limitResponse", "queuing", NULL);
    for (size_t i = 0; queuing && i < countof(usual); i++)
        if (!json_int(json_get(queuing, usual[i].key), 0))
            json_set_int(a, queuing, usual[i].key, usual[i].value);
}

/* A percentage. */
static void check_percent(const struct json *value, const struct field_path *at,
                          struct field_errors *errors)
{
    if (value && (value->integer < 0 || value->integer > 100))
        field_invalid(errors, at, value, "must be between 0 and 100, inclusive");
}

/* Queues exist only where requests wait. */
static void check_queuing(const struct json *response, const struct field_path *up,
                          struct field_errors *errors)
{
    struct field_path at = { up, .key = S("queuing") };
    const struct json *queuing = json_get(response, "queuing");
    bool queue = str_eqc(json_text(json_get(response, "type")), "Queue");
    const struct json *queues = json_get(queuing, "queues"), *hand = json_get(queuing, "handSize"),
                      *length = json_get(queuing, "queueLengthLimit");
    if (str_eqc(json_text(json_get(response, "type")), "Reject") && queuing) {
        field_forbidden(errors, &at, "must be nil if limited.limitResponse.type is not Limited");
    } else if (queue && !queuing) {
        field_required(errors, &at, "must not be empty if limited.limitResponse.type is Limited");
    } else if (queue) {
        if (json_int(length, 0) <= 0)
            field_invalid(errors, AT(&at, "queueLengthLimit"), length, "must be positive");
        if (json_int(queues, 0) <= 0 || json_int(queues, 0) > 10000000)
            field_invalid(errors, AT(&at, "queues"), queues,
                          json_int(queues, 0) <= 0 ? "must be positive"
                                                   : "must not be greater than 10000000");
        if (json_int(hand, 0) <= 0)
            field_invalid(errors, AT(&at, "handSize"), hand, "must be positive");
        else if (json_int(hand, 0) > json_int(queues, 0))
            field_invalid(errors, AT(&at, "handSize"), hand,
                          "should not be greater than queues (%lld)",
                          (long long)json_int(queues, 0));
    }
}

/* Limited and exempt levels have different settings. */
static void validate_prioritylevel(const struct kind_change *c, struct kind_env *env UNUSED,
                                   struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") }, in = { &at, .key = S("limited") },
                      out = { &at, .key = S("exempt") };
    const struct json *spec = json_get(c->object, "spec"), *limited = json_get(spec, "limited");
    const struct json *exempt = json_get(spec, "exempt");
    bool is_limited = str_eqc(json_text(json_get(spec, "type")), "Limited");
    bool is_exempt = str_eqc(json_text(json_get(spec, "type")), "Exempt");
    if (is_exempt && limited)
        field_forbidden(errors, &in, "must be nil if the type is not Limited");
    if (is_limited && exempt)
        field_forbidden(errors, &out, "must be nil if the type is Limited");
    if (is_limited && !limited)
        field_required(errors, &in, "must not be empty when type is Limited");
    const struct json *part = is_limited ? limited : exempt;
    const struct field_path *path = is_limited ? &in : &out;
    const struct json *shares = json_get(part, "nominalConcurrencyShares");
    if ((!is_limited && !is_exempt) || (is_limited && exempt) || (is_exempt && limited))
        return;
    if (shares && shares->integer < 0)
        field_invalid(errors, AT(path, "nominalConcurrencyShares"), shares,
                      "must be a non-negative integer");
    check_percent(json_get(part, "lendablePercent"), AT(path, "lendablePercent"), errors);
    const struct json *borrow = json_get(limited, "borrowingLimitPercent");
    if (is_limited && borrow && borrow->integer < 0)
        field_invalid(errors, AT(&in, "borrowingLimitPercent"), borrow,
                      "if specified, must be a non-negative integer");
    if (is_limited && limited)
        check_queuing(json_get(limited, "limitResponse"), AT(&in, "limitResponse"), errors);
}

const struct kind_hooks kind_hooks_prioritylevel = { .fill = fill_prioritylevel,
                                                     .validate = validate_prioritylevel };

/* A subject has the member that its kind names, and no other. */
static void check_subjects(const struct json *subjects, const struct field_path *up,
                           struct field_errors *errors)
{
    static const char *const kinds[] = { "Group", "ServiceAccount", "User", NULL };
    static const char *const members[] = { "group", "serviceAccount", "user" };
    for (uint32_t i = 0; i < json_len(subjects); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *kind = json_get(subjects->items[i], "kind");
        if (!format_is_one_of(json_text(kind), kinds)) {
            field_not_supported(errors, AT(&at, "kind"), kind, kinds);
            continue;
        }
        for (size_t n = 0; n < countof(members); n++) {
            struct field_path member = { &at, .key = str_c(members[n]) };
            const struct json *value = json_get(subjects->items[i], members[n]);
            bool wanted = str_eqc(json_text(kind), kinds[n]);
            if (wanted && !value)
                field_required(errors, &member, "must be set for this kind of subject");
            else if (!wanted && value)
                field_forbidden(errors, &member, "must be nil for this kind of subject");
            else if (value && !json_text(json_get(value, "name")).n)
                field_required(errors, AT(&member, "name"), NULL);
        }
    }
}

/* Rules with subjects, and a level that exists or will. */
static void validate_flowschema(const struct kind_change *c, struct kind_env *env UNUSED,
                                struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") }, up = { &at, .key = S("rules") };
    const struct json *spec = json_get(c->object, "spec"), *rules = json_get(spec, "rules");
    const struct json *order = json_get(spec, "matchingPrecedence");
    const struct json *level = json_at(spec, "priorityLevelConfiguration", "name", NULL);
    if (json_int(order, 0) <= 0)
        field_invalid(errors, AT(&at, "matchingPrecedence"), order, "must be a positive value");
    if (json_int(order, 0) > 10000)
        field_invalid(errors, AT(&at, "matchingPrecedence"), order,
                      "must not be greater than 10000");
    if (!json_text(level).n)
        field_required(errors, AT(AT(&at, "priorityLevelConfiguration"), "name"),
                       "must reference a priority level");
    for (uint32_t i = 0; i < json_len(rules); i++) {
        struct field_path rule = { &up, .index = i, .how = FIELD_INDEX };
        if (!json_len(json_get(rules->items[i], "subjects")))
            field_required(errors, AT(&rule, "subjects"),
                           "subjects must contain at least one value");
        check_subjects(json_get(rules->items[i], "subjects"), AT(&rule, "subjects"), errors);
        if (!json_len(json_get(rules->items[i], "resourceRules")) &&
            !json_len(json_get(rules->items[i], "nonResourceRules")))
            field_required(
                errors, &rule,
                "at least one of resourceRules and nonResourceRules has to be non-empty");
    }
}

const struct kind_hooks kind_hooks_flowschema = { .validate = validate_flowschema };

/* ---- APIService */

/* Priorities order groups and versions in discovery. */
static void check_priority(const struct json *value, const char *key, int64_t most,
                           const struct field_path *at, struct field_errors *errors)
{
    if (json_int(value, 0) <= 0 || json_int(value, 0) > most)
        field_invalid(errors, &(struct field_path){ at, .key = str_c(key) }, value,
                      "must be positive and less than %lld", (long long)most);
}

/* A service in the cluster serves the group and version; without one, this server does. */
static void check_service(const struct json *spec, const struct field_path *up,
                          struct field_errors *errors)
{
    struct field_path at = { up, .key = S("service") };
    const struct json *service = json_get(spec, "service"), *port = json_get(service, "port");
    const struct json *skip = json_get(spec, "insecureSkipTLSVerify");
    bool skips = json_is(skip, JSON_BOOL) && skip->boolean;
    if (!service) {
        if (json_text(json_get(spec, "caBundle")).n)
            field_invalid(errors, AT(up, "caBundle"), json_new_str(errors->arena, S("")),
                          "local APIServices may not have a caBundle");
        if (skips)
            field_invalid(errors, AT(up, "insecureSkipTLSVerify"), skip,
                          "local APIServices may not have insecureSkipTLSVerify");
        return;
    }
    if (!json_text(json_get(service, "namespace")).n)
        field_required(errors, AT(&at, "namespace"), NULL);
    if (!json_text(json_get(service, "name")).n)
        field_required(errors, AT(&at, "name"), NULL);
    if (port && (port->integer < 1 || port->integer > 65535))
        field_invalid(errors, AT(&at, "port"), port,
                      "port is not valid: must be between 1 and 65535, inclusive");
    if (skips && json_text(json_get(spec, "caBundle")).n)
        field_invalid(errors, AT(up, "insecureSkipTLSVerify"), skip,
                      "may not be true if caBundle is present");
}

/* The name is made of version and group. */
static void validate_apiservice(const struct kind_change *c, struct kind_env *env,
                                struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec");
    const struct json *name = json_at(c->object, "metadata", "name", NULL);
    str group = json_text(json_get(spec, "group")), version = json_text(json_get(spec, "version"));
    str wanted = arena_printf(env->arena, STR_FMT "." STR_FMT, STR_ARG(version), STR_ARG(group));
    if (!str_eq(json_text(name), wanted) &&
        !(str_eqc(wanted, "v1.") && str_eqc(json_text(name), "v1.")))
        field_invalid(errors, AT(AT(NULL, "metadata"), "name"), name,
                      "must be `spec.version+\".\"+spec.group`: \"" STR_FMT "\"", STR_ARG(wanted));
    if (group.n && format_dns_subdomain(group))
        field_invalid(errors, AT(&at, "group"), json_get(spec, "group"), "%s",
                      format_dns_subdomain(group));
    if (!group.n && !str_eqc(version, "v1"))
        field_required(errors, AT(&at, "group"),
                       "only v1 may have an empty group and it better be legacy kube");
    if (format_dns_label_1035(version))
        field_invalid(errors, AT(&at, "version"), json_new_str(env->arena, version), "%s",
                      format_dns_label_1035(version));
    check_priority(json_get(spec, "groupPriorityMinimum"), "groupPriorityMinimum", 20000, &at,
                   errors);
    check_priority(json_get(spec, "versionPriority"), "versionPriority", 1000, &at, errors);
    check_service(spec, &at, errors);
}

/* The name "v1." of the core group is not a DNS name. */
static const char *check_apiservice_name(str name)
{
    return str_eqc(name, "v1.") || str_find_char(name, '/') == SIZE_MAX ? NULL
                                                                        : "may not contain '/'";
}

const struct kind_hooks kind_hooks_apiservice = { .name = check_apiservice_name,
                                                  .validate = validate_apiservice };
