/* Roles and bindings: validation and defaults. http/access.c evaluates them.
 *
 * A rule applies to resources (apiGroups, resources) or to URL paths (nonResourceURLs), never to both, and
 * paths are only possible in a ClusterRole. The roleRef of a binding never changes: to grant another role,
 * delete the binding and create a new one. */
#include "../schema/format.h"
#include "kind_hooks.h"

#define GROUP "rbac.authorization.k8s.io"

/* An aggregated role selects others by their labels. */
static void check_aggregation(const struct json *rule, struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("aggregationRule") },
                      up = { &at, .key = S("clusterRoleSelectors") };
    const struct json *selectors = json_get(rule, "clusterRoleSelectors");
    if (rule && !json_len(selectors))
        field_required(errors, &up,
                       "at least one clusterRoleSelector required if aggregationRule is non-nil");
    for (size_t i = 0; i < json_len(selectors); i++) {
        size_t before = errors->n;
        kind_check_selector(json_item(selectors, i), AT_INDEX(&up, i), errors);
        if (errors->n > before)
            field_invalid(errors, AT_INDEX(&up, i), json_item(selectors, i),
                          "invalid label selector.");
    }
}

/* A rule is about resources or about paths, and only a ClusterRole may have paths. */
static void validate_role(const struct kind_change *c, struct kind_env *env UNUSED,
                          struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("rules") };
    const struct json *rules = json_get(c->object, "rules");
    for (size_t i = 0; i < json_len(rules); i++) {
        const struct json *rule = json_item(rules, i);
        const struct field_path *here = AT_INDEX(&at, i);
        bool paths = json_len(json_get(rule, "nonResourceURLs")) > 0;
        if (!json_len(json_get(rule, "verbs")))
            field_required(errors, AT(here, "verbs"), "verbs must contain at least one value");
        if (paths &&
            (json_len(json_get(rule, "apiGroups")) || json_len(json_get(rule, "resources")) ||
             json_len(json_get(rule, "resourceNames"))))
            field_invalid(errors, AT(here, "nonResourceURLs"), json_get(rule, "nonResourceURLs"),
                          "rules cannot apply to both regular resources and non-resource URLs");
        if (paths && c->kind->namespaced)
            field_invalid(errors, AT(here, "nonResourceURLs"), json_get(rule, "nonResourceURLs"),
                          "namespaced rules cannot apply to non-resource URLs");
        if (paths)
            continue;
        if (!json_len(json_get(rule, "apiGroups")))
            field_required(errors, AT(here, "apiGroups"),
                           "resource rules must supply at least one api group");
        if (!json_len(json_get(rule, "resources")))
            field_required(errors, AT(here, "resources"),
                           "resource rules must supply at least one resource");
    }
    check_aggregation(json_get(c->object, "aggregationRule"), errors);
}

/* Without rules the field is null, not an empty list. */
static void fill_role(struct arena *a, struct json *object)
{
    if (json_is(json_get(object, "rules"), JSON_ARR) && !json_len(json_get(object, "rules")))
        json_set(a, object, S("rules"), json_new_null(a));
}

const struct kind_hooks kind_hooks_role = { .name = format_path_segment,
                                            .fill = fill_role,
                                            .validate = validate_role };

/* The API group of users, groups and roles can be omitted. */
static void fill_binding(struct arena *a, struct json *object)
{
    struct json *ref = json_get(object, "roleRef"), *subjects = json_get(object, "subjects");
    if (ref && !json_text(json_get(ref, "apiGroup")).n)
        json_set_str(a, ref, "apiGroup", S(GROUP));
    for (size_t i = 0; i < json_len(subjects); i++) {
        struct json *subject = json_item(subjects, i);
        str kind = json_text(json_get(subject, "kind"));
        if ((str_eqc(kind, "User") || str_eqc(kind, "Group")) &&
            !json_text(json_get(subject, "apiGroup")).n)
            json_set_str(a, subject, "apiGroup", S(GROUP));
    }
}

/* Kind and API group of a subject must agree. */
static void check_subject(const struct kind_change *c, const struct json *subject,
                          const struct field_path *at, struct field_errors *errors)
{
    static const char *const kinds[] = { "ServiceAccount", "User", "Group", NULL };
    str kind = json_text(json_get(subject, "kind"));
    static const char *const none[] = { "", NULL }, *const own[] = { GROUP, NULL };
    const struct json *group = json_get(subject, "apiGroup");
    bool account = str_eqc(kind, "ServiceAccount");
    if (account ? json_text(group).n > 0
                : (str_eqc(kind, "User") || str_eqc(kind, "Group")) &&
                      !str_eqc(json_text(group), GROUP))
        field_not_supported(errors, AT(at, "apiGroup"), group, account ? none : own);
    if (!str_eqc(kind, "ServiceAccount") && !str_eqc(kind, "User") && !str_eqc(kind, "Group"))
        field_not_supported(errors, AT(at, "kind"), json_get(subject, "kind"), kinds);
    else if (str_eqc(kind, "ServiceAccount") && !c->kind->namespaced &&
             !json_text(json_get(subject, "namespace")).n)
        field_required(errors, AT(at, "namespace"), NULL);
}

/* roleRef: a known kind of role; it never changes. */
static void check_role(const struct kind_change *c, struct field_errors *errors)
{
    static const char *const in_namespace[] = { "Role", "ClusterRole", NULL },
                             *const everywhere[] = { "ClusterRole", NULL };
    struct field_path at = { NULL, .key = S("roleRef") };
    const struct json *ref = json_get(c->object, "roleRef"), *kind = json_get(ref, "kind");
    static const char *const groups[] = { GROUP, NULL };
    const struct json *group = json_get(ref, "apiGroup");
    if (!str_eqc(json_text(group), GROUP))
        field_not_supported(errors, AT(&at, "apiGroup"), group, groups);
    bool known = str_eqc(json_text(kind), "ClusterRole") ||
                 (c->kind->namespaced && str_eqc(json_text(kind), "Role"));
    if (!known)
        field_not_supported(errors, AT(&at, "kind"), kind,
                            c->kind->namespaced ? in_namespace : everywhere);
    const char *why = format_path_segment(json_text(json_get(ref, "name")));
    if (why)
        field_invalid(errors, AT(&at, "name"), json_get(ref, "name"), "%s", why);
    if (c->old && !json_eq(ref, json_get(c->old, "roleRef")))
        field_invalid(errors, &at, ref, "cannot change roleRef");
}

static void validate_binding(const struct kind_change *c, struct kind_env *env UNUSED,
                             struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("subjects") };
    const struct json *subjects = json_get(c->object, "subjects");
    check_role(c, errors);
    for (size_t i = 0; i < json_len(subjects); i++)
        check_subject(c, json_item(subjects, i), AT_INDEX(&at, i), errors);
}

const struct kind_hooks kind_hooks_binding = { .name = format_path_segment,
                                               .fill = fill_binding,
                                               .validate = validate_binding };
