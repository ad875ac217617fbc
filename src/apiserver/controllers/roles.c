/* The roles every cluster has, written at each start where they are missing, and the controller of roles
 * whose rules are added up from others: `view`, `edit` and `admin` grow with what is installed. */
#include "controllers.h"

#include "../http/access.h"
#include "../http/remove.h"
#include "../kinds/kind_hooks.h"

#define GROUP "rbac.authorization.k8s.io"
#define READ "get list watch"
#define WRITE "create delete deletecollection patch update"
#define PAGES "/healthz /livez /readyz /version /version/"

/* rules: "verbs|groups|resources" or "verbs||paths", one a line; a group "core" is "" */
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

/* ---- the first of them */

static struct json *words(struct arena *a, str text)
{
    struct json *list = json_new_arr(a);
    for (str word; str_cut(&text, ' ', &word);)
        json_push(a, list, json_new_str(a, str_eq(word, S("core")) ? S("") : word));
    return list;
}

static struct json *read_rules(struct arena *a, str text)
{
    struct json *rules = json_new_arr(a);
    for (str line, verbs, groups; text.n && str_cut(&text, '\n', &line);) {
        struct json *rule = json_new_obj(a);
        str_cut(&line, '|', &verbs);
        str_cut(&line, '|', &groups);
        json_set(a, rule, S("verbs"), words(a, verbs));
        if (groups.n)
            json_set(a, rule, S("apiGroups"), words(a, groups));
        json_set(a, rule, groups.n ? S("resources") : S("nonResourceURLs"), words(a, line));
        json_push(a, rules, rule);
    }
    return rules;
}

static str label_of(struct arena *a, const char *role)
{
    return arena_printf(a, GROUP "/aggregate-to-%s", role);
}

static struct json *standard(struct arena *a, const char *name)
{
    struct json *object = json_new_obj(a), *metadata = json_make(a, object, "metadata", NULL);
    json_set_str(a, metadata, "name", str_c(name));
    json_set_str(a, json_make(a, metadata, "labels", NULL), "kubernetes.io/bootstrapping",
                 S("rbac-defaults"));
    json_set_str(a, json_make(a, metadata, "annotations", NULL),
                 "rbac.authorization.kubernetes.io/autoupdate", S("true"));
    return object;
}

static void seed_role(struct server *s, struct arena *a, size_t i)
{
    struct json *role = standard(a, roles[i].name);
    if (roles[i].part_of[0])
        json_set(a, json_make(a, role, "metadata", "labels", NULL), label_of(a, roles[i].part_of),
                 json_new_str(a, S("true")));
    json_set(a, role, S("rules"), read_rules(a, str_c(roles[i].rules)));
    if (roles[i].aggregates[0]) {
        struct json *selector = json_new_obj(a), *selectors = json_new_arr(a);
        json_set(a, json_make(a, selector, "matchLabels", NULL), label_of(a, roles[i].aggregates),
                 json_new_str(a, S("true")));
        json_push(a, selectors, selector);
        json_set(a, json_make(a, role, "aggregationRule", NULL), S("clusterRoleSelectors"),
                 selectors);
    }
    server_post(s, S("/apis/" GROUP "/v1/clusterroles"), json_to_str(a, role));
}

static void seed_binding(struct server *s, struct arena *a, size_t i)
{
    struct json *binding = standard(a, bindings[i].role), *subjects = json_new_arr(a);
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
    return !store_latest(s->store,
                         key_make(a, (struct key_parts){ S(GROUP), plural, S(""), str_c(name) }));
}

static void roles_seed(struct server *s, bool fresh UNUSED)
{
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(roles); i++)
        if (is_missing(s, &a, S("clusterroles"), roles[i].name))
            seed_role(s, &a, i);
    for (size_t i = 0; i < countof(bindings); i++)
        if (is_missing(s, &a, S("clusterrolebindings"), bindings[i].role))
            seed_binding(s, &a, i);
}

/* ---- adding up */

#define PREFIX S(GROUP "/clusterroles//")

static void roles_on_event(struct server *s, const struct event *e)
{
    if (!str_starts(object_key(e->now), PREFIX))
        return;
    s->roles_changed = true;
    server_reconcile_soon(s);
}

static bool is_wanted(const struct json *selectors, const struct json *labels)
{
    for (size_t i = 0; i < json_len(selectors); i++)
        if (kind_selector_is_valid(json_item(selectors, i)) &&
            kind_selector_matches(json_item(selectors, i), labels))
            return true;
    return false;
}

static bool list_holds(const struct json *list, const struct json *value)
{
    for (size_t i = 0; i < json_len(list); i++)
        if (json_eq(json_item(list, i), value))
            return true;
    return false;
}

/* Order does not count, or roles that add up each other would never come to rest. */
static bool same_rules(const struct json *a, const struct json *b)
{
    for (size_t i = 0; i < json_len(a); i++)
        if (!list_holds(b, json_item(a, i)))
            return false;
    return json_len(a) == json_len(b);
}

/* Sums up one role among all; true: its rules changed. */
static bool add_up(struct arena *a, const struct json *all, size_t i)
{
    struct json *role = json_item(all, i), *rules = json_new_arr(a);
    const struct json *selectors = json_at(role, "aggregationRule", "clusterRoleSelectors", NULL);
    for (size_t j = 0; j < json_len(all) && json_len(selectors); j++) {
        const struct json *other = json_item(all, j), *more = json_get(other, "rules");
        if (j == i || !is_wanted(selectors, json_at(other, "metadata", "labels", NULL)))
            continue;
        for (size_t n = 0; n < json_len(more); n++)
            if (!list_holds(rules, json_item(more, n)))
                json_push(a, rules, json_item(more, n));
    }
    if (!json_len(selectors) || same_rules(rules, json_get(role, "rules")))
        return false;
    json_set(a, role, S("rules"), rules);
    return true;
}

static bool keep(struct server *s, struct arena *a, const struct json *role)
{
    const struct kind *k;
    str name = json_text(json_at(role, "metadata", "name", NULL));
    str key = key_make(a, (struct key_parts){ S(GROUP), S("clusterroles"), S(""), name });
    struct json *tree = edit_begin(s, a, key, &k);
    if (!tree || same_rules(json_get(role, "rules"), json_get(tree, "rules")))
        return false;
    json_set(a, tree, S("rules"), json_get(role, "rules"));
    return edit_end(s, a, k, key, tree);
}

/* All sums are made before any is written: one that is part of another costs no commit of its own. */
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
            changed |= add_up(&a, all, i);
    }
    for (size_t i = 0; i < json_len(all); i++)
        if (json_get(json_item(all, i), "aggregationRule"))
            worked |= keep(s, &a, json_item(all, i));
    return worked;
}

const struct controller roles_controller = { .seed = roles_seed,
                                             .on_event = roles_on_event,
                                             .reconcile = roles_reconcile };
