/* The default roles and bindings of a cluster, created at each start where they are missing, and the aggregation
 * of cluster roles: `view`, `edit` and `admin` contain the rules of all roles with a certain label, so that they
 * grow with what is installed.
 *
 * All sums are computed in memory until they are stable, then the changed roles are written. A role that is part
 * of another (view in edit, edit in admin) therefore needs one commit, not one per level. */
#include "controllers.h"

#include "../http/access.h"
#include "../http/remove.h"
#include "../kinds/kind_hooks.h"

#define GROUP "rbac.authorization.k8s.io"
#define READ "get list watch"
#define WRITE "create delete deletecollection patch update"
#define PAGES "/healthz /livez /readyz /version /version/"

/* rules: one per line, "verbs|groups|resources" or "verbs||paths"; "core" means the group "" */
static const struct {
    const char *name, *aggregates, *part_of, *rules;
} roles[] = {
    { "cluster-admin", "", "", "*|*|*\n*||*" },
    { "admin", "admin", "", "" },
    { "edit", "edit", "admin", "" },
    { "view", "view", "edit", "" },
    { "system:aggregate-to-admin", "", "admin",
      "create|authorization.k8s.io|localsubjectaccessreviews\n" WRITE " " READ "|" GROUP
      "|rolebindings roles" },
    { "system:aggregate-to-edit", "", "edit",
      READ "|core|secrets\nimpersonate|core|serviceaccounts\ncreate|core|pods/eviction "
           "serviceaccounts/token\n" WRITE
           "|core|pods configmaps persistentvolumeclaims secrets serviceaccounts services\n" WRITE
           "|core events.k8s.io|events\n" WRITE
           "|apps|daemonsets deployments deployments/scale replicasets replicasets/scale "
           "statefulsets statefulsets/scale\n" WRITE "|autoscaling|horizontalpodautoscalers\n" WRITE
           "|batch|jobs\n" WRITE " " READ "|coordination.k8s.io|leases" },
    { "system:aggregate-to-view", "", "view",
      READ "|core|bindings configmaps namespaces namespaces/status persistentvolumeclaims "
           "persistentvolumeclaims/status pods pods/log pods/status serviceaccounts services "
           "services/status\n" READ "|core events.k8s.io|events\n" READ
           "|apps|daemonsets daemonsets/status deployments deployments/scale deployments/status "
           "replicasets replicasets/scale replicasets/status statefulsets statefulsets/scale "
           "statefulsets/status\n" READ
           "|autoscaling|horizontalpodautoscalers horizontalpodautoscalers/status\n" READ
           "|batch|jobs jobs/status" },
    { "system:auth-delegator", "", "",
      "create|authentication.k8s.io|tokenreviews\n"
      "create|authorization.k8s.io|subjectaccessreviews" },
    { "system:basic-user", "", "",
      "create|authorization.k8s.io|selfsubjectaccessreviews selfsubjectrulesreviews\n"
      "create|authentication.k8s.io|selfsubjectreviews" },
    { "system:discovery", "", "", "get||/api /api/* /apis /apis/* /openapi /openapi/* " PAGES },
    { "system:public-info-viewer", "", "", "get||" PAGES },
};

static const struct {
    const char *role, *groups;
} bindings[] = {
    { "cluster-admin", "system:masters" },
    { "system:basic-user", "system:authenticated" },
    { "system:discovery", "system:authenticated" },
    { "system:public-info-viewer", "system:authenticated system:unauthenticated" },
};

/* ---- default roles */

static struct json *split_words(struct arena *a, str text)
{
    struct json *list = json_new_arr(a);
    for (str word; str_cut(&text, ' ', &word);)
        json_push(a, list, json_new_str(a, str_eq(word, S("core")) ? S("") : word));
    return list;
}

/* Parses the rules of the table above. */
static struct json *read_rules(struct arena *a, str text)
{
    struct json *rules = json_new_arr(a);
    for (str line, verbs, groups; text.n && str_cut(&text, '\n', &line);) {
        struct json *rule = json_new_obj(a);
        str_cut(&line, '|', &verbs);
        str_cut(&line, '|', &groups);
        json_set(a, rule, S("verbs"), split_words(a, verbs));
        if (groups.n)
            json_set(a, rule, S("apiGroups"), split_words(a, groups));
        json_set(a, rule, groups.n ? S("resources") : S("nonResourceURLs"), split_words(a, line));
        json_push(a, rules, rule);
    }
    return rules;
}

static str aggregation_label(struct arena *a, const char *role)
{
    return arena_printf(a, GROUP "/aggregate-to-%s", role);
}

/* An object with the label and annotation of Kubernetes' default roles. */
static struct json *make_bootstrap_object(struct arena *a, const char *name)
{
    struct json *object = json_new_obj(a), *metadata = json_make(a, object, "metadata", NULL);
    json_set_str(a, metadata, "name", str_c(name));
    json_set_str(a, json_make(a, metadata, "labels", NULL), "kubernetes.io/bootstrapping",
                 S("rbac-defaults"));
    json_set_str(a, json_make(a, metadata, "annotations", NULL),
                 "rbac.authorization.kubernetes.io/autoupdate", S("true"));
    return object;
}

/* Creates one role of the table. */
static void seed_role(struct server *s, struct arena *a, size_t i)
{
    struct json *role = make_bootstrap_object(a, roles[i].name);
    if (roles[i].part_of[0])
        json_set(a, json_make(a, role, "metadata", "labels", NULL),
                 aggregation_label(a, roles[i].part_of), json_new_str(a, S("true")));
    json_set(a, role, S("rules"), read_rules(a, str_c(roles[i].rules)));
    if (roles[i].aggregates[0]) {
        struct json *selector = json_new_obj(a), *selectors = json_new_arr(a);
        json_set(a, json_make(a, selector, "matchLabels", NULL),
                 aggregation_label(a, roles[i].aggregates), json_new_str(a, S("true")));
        json_push(a, selectors, selector);
        json_set(a, json_make(a, role, "aggregationRule", NULL), S("clusterRoleSelectors"),
                 selectors);
    }
    server_post(s, S("/apis/" GROUP "/v1/clusterroles"), json_to_str(a, role));
}

/* Binds one role of the table to its groups. */
static void seed_binding(struct server *s, struct arena *a, size_t i)
{
    struct json *binding = make_bootstrap_object(a, bindings[i].role), *subjects = json_new_arr(a);
    struct json *ref = json_make(a, binding, "roleRef", NULL);
    json_set_str(a, ref, "kind", S("ClusterRole"));
    json_set_str(a, ref, "name", str_c(bindings[i].role));
    for (str rest = str_c(bindings[i].groups), group; str_cut(&rest, ' ', &group);) {
        struct json *subject = json_new_obj(a);
        json_set_str(a, subject, "kind", S("Group"));
        json_set_str(a, subject, "name", group);
        json_push(a, subjects, subject);
    }
    json_set(a, binding, S("subjects"), subjects);
    server_post(s, S("/apis/" GROUP "/v1/clusterrolebindings"), json_to_str(a, binding));
}

static bool is_missing(const struct server *s, struct arena *a, str plural, const char *name)
{
    return !store_latest(s->store, store_key_make(a, (struct store_key_parts){
                                                         S(GROUP), plural, S(""), str_c(name) }));
}

static void roles_seed(struct server *s)
{
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(roles); i++)
        if (is_missing(s, &a, S("clusterroles"), roles[i].name))
            seed_role(s, &a, i);
    for (size_t i = 0; i < countof(bindings); i++)
        if (is_missing(s, &a, S("clusterrolebindings"), bindings[i].role))
            seed_binding(s, &a, i);
}

/* ---- aggregation */

#define PREFIX S(GROUP "/clusterroles//")

static void roles_on_event(struct server *s, const struct event *e)
{
    if (!str_starts(object_key(e->now), PREFIX))
        return;
    s->roles_changed = true;
    server_reconcile_soon(s);
}

static bool is_selected(const struct json *selectors, const struct json *labels)
{
    for (size_t i = 0; i < json_len(selectors); i++)
        if (kind_selector_is_valid(json_item(selectors, i)) &&
            kind_selector_matches(json_item(selectors, i), labels))
            return true;
    return false;
}

static bool contains_value(const struct json *list, const struct json *value)
{
    for (size_t i = 0; i < json_len(list); i++)
        if (json_eq(json_item(list, i), value))
            return true;
    return false;
}

/* Ignores order; otherwise roles that select each other would never become stable. */
static bool are_rules_equal(const struct json *a, const struct json *b)
{
    for (size_t i = 0; i < json_len(a); i++)
        if (!contains_value(b, json_item(a, i)))
            return false;
    return json_len(a) == json_len(b);
}

/* Sets the rules of one role to the union of the rules it selects. True: they changed. */
static bool aggregate_role(struct arena *a, const struct json *all, size_t i)
{
    struct json *role = json_item(all, i), *rules = json_new_arr(a);
    const struct json *selectors = json_at(role, "aggregationRule", "clusterRoleSelectors", NULL);
    for (size_t j = 0; j < json_len(all) && json_len(selectors); j++) {
        const struct json *other = json_item(all, j), *more = json_get(other, "rules");
        if (j == i || !is_selected(selectors, json_at(other, "metadata", "labels", NULL)))
            continue;
        for (size_t n = 0; n < json_len(more); n++)
            if (!contains_value(rules, json_item(more, n)))
                json_push(a, rules, json_item(more, n));
    }
    if (!json_len(selectors) || are_rules_equal(rules, json_get(role, "rules")))
        return false;
    json_set(a, role, S("rules"), rules);
    return true;
}

static bool write_rules(struct server *s, struct arena *a, const struct json *role)
{
    const struct kind *k;
    str name = json_text(json_at(role, "metadata", "name", NULL));
    str key =
        store_key_make(a, (struct store_key_parts){ S(GROUP), S("clusterroles"), S(""), name });
    struct json *tree = write_begin_edit(s, a, key, &k);
    if (!tree || are_rules_equal(json_get(role, "rules"), json_get(tree, "rules")))
        return false;
    json_set(a, tree, S("rules"), json_get(role, "rules"));
    return write_end_edit(s, a, k, key, tree);
}

/* The number of rounds is bounded by the number of roles, the longest possible chain. */
static bool roles_reconcile(struct server *s)
{
    if (!s->roles_changed)
        return false;
    s->roles_changed = false;
    auto_arena struct arena a = { 0 };
    struct json *all = json_new_arr(&a), *tree;
    struct tree_cursor c = tree_seek(store_tree(s->store), PREFIX);
    for (const struct object *o; (o = tree_next_in(&c, PREFIX));)
        if (json_parse(&a, object_json(o), &tree, NULL) == 0)
            json_push(&a, all, tree);
    bool changed = true, worked = false;
    for (size_t round = 0; changed && round <= json_len(all); round++) {
        changed = false;
        for (size_t i = 0; i < json_len(all); i++)
            changed |= aggregate_role(&a, all, i);
    }
    for (size_t i = 0; i < json_len(all); i++)
        if (json_get(json_item(all, i), "aggregationRule"))
            worked |= write_rules(s, &a, json_item(all, i));
    return worked;
}

const struct server_controller roles_controller = { .seed = roles_seed,
                                                    .on_event = roles_on_event,
                                                    .reconcile = roles_reconcile };
