/* Validation of admission policies and of their bindings.
 *
 * This file checks structure: what a policy matches, how parameters are referred to, what a binding
 * does with a failure. Expressions are compiled by policy.c, which reports their errors in the same list.
 * Compiling is part of validation, so that a policy that cannot run is refused when it is written, not when it
 * should protect something. */
#include "../../json/seen.h"
#include "../schema/format.h"
#include "kind_hooks.h"
#include "policy.h"

static bool list_has(const struct json *list, const char *word)
{
    for (uint32_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(list->items[i]), word))
            return true;
    return false;
}

/* A list with "*" has nothing else; an empty one is refused. */
static void check_stars(const struct json *rule, const char *key, const char *what,
                        const struct field_path *up, struct field_errors *errors)
{
    const struct json *list = json_get(rule, key);
    struct field_path at = { up, .key = str_c(key) };
    if (!json_len(list))
        field_required(errors, &at, NULL);
    else if (json_len(list) > 1 && list_has(list, "*"))
        field_invalid(errors, &at, list, "if '*' is present, must not specify other %s", what);
}

/* Resources that others in the list already cover are refused. */
static void check_resources(const struct json *list, const struct field_path *at,
                            struct field_errors *errors)
{
    if (!json_len(list)) {
        field_required(errors, at, NULL);
        return;
    }
    bool all = list_has(list, "*/*"), plain = list_has(list, "*");
    for (uint32_t i = 0; i < list->n; i++) {
        str name = json_text(list->items[i]);
        bool sub = str_find_char(name, '/') != SIZE_MAX;
        if (!name.n)
            field_required(errors, AT_INDEX(at, i), NULL);
        if (all && list->n > 1 && !str_eqc(name, "*/*")) {
            field_invalid(errors, at, list,
                          "if '*/*' is present, must not specify other resources");
            return;
        }
        if (plain && !sub && !str_eqc(name, "*")) {
            field_invalid(
                errors, at, list,
                "if '*' is present, must not specify other resources without subresources");
            return;
        }
    }
}

/* Each list of a rule is not empty, and "*" excludes other entries. */
void kind_check_admission_rules(const struct json *rules, const struct field_path *up,
                                struct field_errors *errors)
{
    static const char *const operations[] = { "*", "CONNECT", "CREATE", "DELETE", "UPDATE", NULL };
    for (uint32_t i = 0; i < json_len(rules); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *rule = rules->items[i], *list = json_get(rule, "operations");
        check_stars(rule, "operations", "operations", &at, errors);
        for (uint32_t n = 0; n < json_len(list); n++)
            if (!format_is_one_of(json_text(list->items[n]), operations))
                field_not_supported(errors, AT_INDEX(AT(&at, "operations"), n), list->items[n],
                                    operations);
        check_stars(rule, "apiGroups", "API groups", &at, errors);
        check_stars(rule, "apiVersions", "API versions", &at, errors);
        check_resources(json_get(rule, "resources"), AT(&at, "resources"), errors);
    }
}

static void check_match(const struct json *match, const struct field_path *at,
                        struct field_errors *errors)
{
    kind_check_admission_rules(json_get(match, "resourceRules"), AT(at, "resourceRules"), errors);
    kind_check_admission_rules(json_get(match, "excludeResourceRules"),
                               AT(at, "excludeResourceRules"), errors);
    kind_check_selector(json_get(match, "namespaceSelector"), AT(at, "namespaceSelector"), errors);
    kind_check_selector(json_get(match, "objectSelector"), AT(at, "objectSelector"), errors);
}

static void check_param_kind(const struct json *kind, const struct field_path *at,
                             struct field_errors *errors)
{
    if (!kind)
        return;
    if (!json_text(json_get(kind, "apiVersion")).n)
        field_required(errors, AT(at, "apiVersion"), NULL);
    if (!json_text(json_get(kind, "kind")).n)
        field_required(errors, AT(at, "kind"), NULL);
}

/* Only what has a new object can be changed. The error is reported once more for the list of rules as a whole. */
static void check_operations(const struct json *match, const struct field_path *at,
                             struct field_errors *errors)
{
    static const char *const operations[] = { "*", "CONNECT", "CREATE", "UPDATE", NULL };
    const struct json *rules = json_get(match, "resourceRules");
    for (uint32_t i = 0; i < json_len(rules); i++) {
        const struct json *list = json_get(rules->items[i], "operations");
        for (uint32_t n = 0; n < json_len(list); n++)
            if (!format_is_one_of(json_text(list->items[n]), operations))
                field_not_supported(errors, at, list->items[n], operations);
    }
}

static void validate_policy(const struct kind_change *c, struct kind_env *env,
                            struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec"),
                      *match = json_get(spec, "matchConstraints");
    check_param_kind(json_get(spec, "paramKind"), AT(&at, "paramKind"), errors);
    if (!match)
        field_required(errors, AT(&at, "matchConstraints"), NULL);
    else if (!json_len(json_get(match, "resourceRules")))
        field_required(errors, AT(AT(&at, "matchConstraints"), "resourceRules"), NULL);
    check_match(match, AT(&at, "matchConstraints"), errors);
    if (str_eqc(c->kind->plural, "mutatingadmissionpolicies")) {
        check_operations(match, AT(AT(AT(&at, "matchConstraints"), "resourceRules"), "operations"),
                         errors);
        if (!json_len(json_get(spec, "mutations")))
            field_required(errors, AT(&at, "mutations"),
                           "mutations must contain at least one item");
    } else if (!json_len(json_get(spec, "validations")) &&
               !json_len(json_get(spec, "auditAnnotations"))) {
        static const char why[] = "validations or auditAnnotations must contain at least one item";
        field_required(errors, AT(&at, "validations"), why);
        field_required(errors, AT(&at, "auditAnnotations"), why);
    }
    kind_policy_compile(env->arena, spec, json_text(json_at(c->object, "metadata", "name", NULL)),
                        errors);
}

const struct kind_hooks kind_hooks_policy = { .validate = validate_policy };

/* ---- bindings */

/* Parameters are found by name or by selector; what to do if there are none must be stated. */
static void check_param_ref(const struct json *ref, const struct field_path *at,
                            struct field_errors *errors)
{
    static const char *const actions[] = { "Allow", "Deny", NULL };
    const struct json *action = json_get(ref, "parameterNotFoundAction");
    bool name = json_text(json_get(ref, "name")).n > 0,
         selector = json_get(ref, "selector") != NULL;
    if (!ref)
        return;
    if (name && selector) {
        field_forbidden(errors, AT(at, "name"), "name and selector are mutually exclusive");
        field_forbidden(errors, AT(at, "selector"), "name and selector are mutually exclusive");
    } else if (!name && !selector) {
        field_required(errors, at, "one of name or selector must be specified");
    }
    kind_check_selector(json_get(ref, "selector"), AT(at, "selector"), errors);
    if (!json_text(action).n)
        field_required(errors, AT(at, "parameterNotFoundAction"), NULL);
    else if (!format_is_one_of(json_text(action), actions))
        field_not_supported(errors, AT(at, "parameterNotFoundAction"), action, actions);
}

/* What happens to a request that fails: refuse, warn or record. Refusing and warning together is refused as
 * redundant. */
static void check_actions(const struct json *list, const struct field_path *at,
                          struct field_errors *errors)
{
    static const char *const actions[] = { "Audit", "Deny", "Warn", NULL };
    struct seen seen = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(list); i++) {
        if (!format_is_one_of(json_text(list->items[i]), actions))
            field_not_supported(errors, AT_INDEX(at, i), list->items[i], actions);
        if (seen_value(&seen, list->items[i], i))
            field_duplicate(errors, AT_INDEX(at, i), list->items[i]);
    }
    if (!json_len(list))
        field_required(errors, at, "at least one validation action is required");
    if (list_has(list, "Deny") && list_has(list, "Warn"))
        field_invalid(errors, at, list,
                      "must not contain both Deny and Warn (repeating the same validation failure "
                      "information in the API response and headers serves no purpose)");
}

static void validate_policy_binding(const struct kind_change *c, struct kind_env *env UNUSED,
                                    struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec");
    check_param_ref(json_get(spec, "paramRef"), AT(&at, "paramRef"), errors);
    check_match(json_get(spec, "matchResources"), AT(&at, "matchResources"), errors);
    if (str_eqc(c->kind->plural, "mutatingadmissionpolicybindings"))
        check_operations(json_get(spec, "matchResources"),
                         AT(AT(AT(&at, "matchResources"), "resourceRules"), "operations"), errors);
    else
        check_actions(json_get(spec, "validationActions"), AT(&at, "validationActions"), errors);
}

const struct kind_hooks kind_hooks_policy_binding = { .validate = validate_policy_binding };
