/* RBAC: matching rules, searching bindings, and preventing privilege escalation. See access.h.
 *
 * Matching follows kube-apiserver: "*" matches every verb, group, resource or path; "*" followed by a slash and
 * a subresource matches that subresource of every resource; a path may end in "*"; and a rule with resourceNames
 * applies to those objects only.
 *
 * A search goes through the cluster role bindings and then the role bindings of one namespace:
 *
 *     binding --subjects--> is the user among them? --roleRef--> role --rules--> does one allow `want`?
 *
 * It stops at the first rule that allows the access, or (access_rules) collects the rules of every binding.
 * Everything is read from the committed state; nothing is cached, so nothing can be stale. */
#include "access.h"
#include "auth.h"

#include "../../json/scan.h"
#include "remove.h"

#define GROUP S("rbac.authorization.k8s.io")

enum { MISSING_MAX = 200 }; /* resources that a refusal lists: each is searched among the others */
enum { GRANTS_MAX = 100000 }; /* combinations that one role may grant; more are refused */

/* ---- one rule */

static bool matches_word(const struct json *list, str word)
{
    return remove_list_contains(list, S("*")) || remove_list_contains(list, word);
}

/* Resources in rules are "pods", "pods/status", "*" or "*" with a subresource. */
static bool matches_resource(const struct json *list, const struct access *want)
{
    for (size_t i = 0; i < json_len(list); i++) {
        str word = json_text(json_item(list, i)), sub = want->subresource, resource;
        if (str_eq(word, S("*")))
            return true;
        if (!str_cut(&word, '/', &resource))
            continue;
        bool same = str_eq(word.p ? word : S(""), sub);
        if (same && (str_eq(resource, want->resource) || (sub.n && str_eq(resource, S("*")))))
            return true;
    }
    return false;
}

static bool matches_path(const struct json *list, str path)
{
    for (size_t i = 0; i < json_len(list); i++) {
        str word = json_text(json_item(list, i));
        bool open = word.n && word.p[word.n - 1] == '*';
        if (open ? str_starts(path, str_upto(word, word.n - 1)) : str_eq(word, path))
            return true;
    }
    return false;
}

static bool rule_allows(const struct json *rule, const struct access *want)
{
    const struct json *only = json_get(rule, "resourceNames");
    if (!matches_word(json_get(rule, "verbs"), want->verb))
        return false;
    if (want->path.n)
        return matches_path(json_get(rule, "nonResourceURLs"), want->path);
    return matches_word(json_get(rule, "apiGroups"), want->group) &&
           matches_resource(json_get(rule, "resources"), want) &&
           (!json_len(only) || remove_list_contains(only, want->name));
}

/* ---- bindings */

struct search {
    struct server *server;
    struct arena *arena;
    const struct user *user;
    const struct access *want;
    struct json *rules; /* collects all rules; NULL: stop at the first that allows `want` */
    str why;            /* the reason, once the search has succeeded */
};

static bool has_group(const struct user *u, str group)
{
    for (size_t i = 0; i < u->n_groups; i++)
        if (str_eq(u->groups[i], group))
            return true;
    return u->authenticated && str_eq(group, S("system:authenticated"));
}

/* Whether the subject names the user. `ret` receives the subject's name as reasons write it. */
static bool is_subject(const struct search *x, const struct json *subject, str ns, str *ret)
{
    str kind = json_text(json_get(subject, "kind")), name = json_text(json_get(subject, "name"));
    str home = json_text(json_get(subject, "namespace"));
    *ret = name;
    if (str_eq(kind, S("User")))
        return str_eq(x->user->name, name);
    if (str_eq(kind, S("Group")))
        return has_group(x->user, name);
    if (!home.n)
        home = ns;
    str account = arena_printf(x->arena, "system:serviceaccount:" STR_FMT ":" STR_FMT,
                               STR_ARG(home), STR_ARG(name));
    *ret = arena_printf(x->arena, STR_FMT "/" STR_FMT, STR_ARG(name), STR_ARG(home));
    return str_eq(kind, S("ServiceAccount")) && str_eq(x->user->name, account);
}

static struct json *parse_member(struct arena *a, const struct object *o, const char *key)
{
    struct json *tree = NULL;
    str text = scan_member(object_json(o), str_c(key));
    return text.p && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

/* The rules of the role that a roleRef names; NULL: there is no such role, so the binding grants nothing. */
static struct json *find_role_rules(const struct search *x, const struct json *ref, str ns)
{
    bool everywhere = str_eq(json_text(json_get(ref, "kind")), S("ClusterRole"));
    struct store_key_parts parts = { GROUP, everywhere ? S("clusterroles") : S("roles"),
                                     everywhere ? S("") : ns, json_text(json_get(ref, "name")) };
    const struct object *role = store_get(x->server->store, store_key_make(x->arena, parts));
    return role ? parse_member(x->arena, role, "rules") : NULL;
}

/* quoted: kube-apiserver's reason, which SubjectAccessReview returns. */
static void set_reason(struct search *x, const struct object *binding, const struct json *ref,
                       const struct json *subject, str called)
{
    struct store_key_parts at = store_key_split(object_key(binding));
    x->why =
        arena_printf(x->arena,
                     "RBAC: allowed by %s \"" STR_FMT "%s" STR_FMT "\" of " STR_FMT " \"" STR_FMT
                     "\" to " STR_FMT " \"" STR_FMT "\"",
                     at.ns.n ? "RoleBinding" : "ClusterRoleBinding", STR_ARG(at.name),
                     at.ns.n ? "/" : "", STR_ARG(at.ns), STR_ARG(json_text(json_get(ref, "kind"))),
                     STR_ARG(json_text(json_get(ref, "name"))),
                     STR_ARG(json_text(json_get(subject, "kind"))), STR_ARG(called));
}

/* True: the search is over, the access is allowed. */
static bool search_binding(struct search *x, const struct object *binding, str ns)
{
    const struct json *subjects = parse_member(x->arena, binding, "subjects"), *subject = NULL;
    str called = S("");
    for (size_t i = 0; i < json_len(subjects) && !subject; i++)
        if (is_subject(x, json_item(subjects, i), ns, &called))
            subject = json_item(subjects, i);
    if (!subject)
        return false;
    const struct json *ref = parse_member(x->arena, binding, "roleRef");
    const struct json *rules = find_role_rules(x, ref, ns);
    for (size_t i = 0; i < json_len(rules); i++) {
        if (x->rules) {
            json_push(x->arena, x->rules, json_item(rules, i));
        } else if (rule_allows(json_item(rules, i), x->want)) {
            set_reason(x, binding, ref, subject, called);
            return true;
        }
    }
    return false;
}

static bool search_bindings(struct search *x, str ns)
{
    str plural = ns.n ? S("rolebindings") : S("clusterrolebindings");
    str prefix = store_key_make(x->arena, (struct store_key_parts){ GROUP, plural, ns, S("") });
    struct tree_cursor c = tree_seek(store_tree(x->server->store), prefix);
    for (const struct object *o; (o = tree_next_in(&c, prefix));)
        if (search_binding(x, o, ns))
            return true;
    return false;
}

bool access_is_allowed(struct server *s, struct arena *a, const struct user *u,
                       const struct access *want, str *ret_why)
{
    bool reads = str_eq(want->verb, S("get")) || str_eq(want->verb, S("list")) ||
                 str_eq(want->verb, S("watch"));
    bool secret = !want->group.n && str_eq(want->resource, S("secrets"));
    struct search x = { .server = s, .arena = a, .user = u, .want = want, .why = S("") };
    /* AlwaysAllow turns anonymous access off in kube-apiserver; here it has the rights of RBAC */
    bool allowed = (s->allow_all && !str_eqc(u->name, AUTH_ANONYMOUS)) || u->admin ||
                   (u->reader && reads && !secret) || search_bindings(&x, S("")) ||
                   (want->ns.n && search_bindings(&x, want->ns));
    if (ret_why)
        *ret_why = x.why;
    return allowed;
}

struct json *access_rules(struct server *s, struct arena *a, const struct user *u, str ns)
{
    struct search x = { .server = s, .arena = a, .user = u, .rules = json_new_arr(a) };
    search_bindings(&x, S(""));
    if (ns.n)
        search_bindings(&x, ns);
    return x.rules;
}

/* ---- granting permissions */

static bool is_held(const struct json *rules, const struct access *want)
{
    for (size_t i = 0; i < json_len(rules); i++)
        if (rule_allows(json_item(rules, i), want))
            return true;
    return false;
}

/* KEY:["text"], as Go prints a list of one; parts of a rule are separated by commas. */
static void put_quoted(struct buf *out, const char *what, str text)
{
    buf_printf(out, "%s%s:[", out->n ? ", " : "", what);
    json_write_text(out, text);
    buf_putc(out, ']');
}

/* Adds a permission to those that are missing. The verbs of a resource are listed together. */
static void add_missing(struct arena *a, struct json *missing, const struct access *want,
                        str resource)
{
    auto_buf struct buf key = { 0 };
    if (want->path.n) {
        put_quoted(&key, "NonResourceURLs", want->path);
        put_quoted(&key, "Verbs", want->verb);
    } else {
        put_quoted(&key, "APIGroups", want->group);
        put_quoted(&key, "Resources", resource);
        if (want->name.n)
            put_quoted(&key, "ResourceNames", want->name);
    }
    struct json *verbs = json_get_str(missing, buf_str(&key));
    if (!verbs && json_len(missing) < MISSING_MAX)
        json_set(a, missing, buf_str(&key), verbs = json_new_arr(a));
    if (verbs && !want->path.n)
        json_push(a, verbs, json_new_str(a, want->verb));
}

/* Collects the combinations of verb, group, resource and name of the rule that `mine` does not cover. They are
 * counted down in `left`, so that a rule with long lists cannot block the server. False: there are too many. */
static bool find_missing(struct arena *a, const struct json *mine, const struct json *rule,
                         size_t *left, struct json *missing)
{
    const struct json *verbs = json_get(rule, "verbs"), *groups = json_get(rule, "apiGroups"),
                      *resources = json_get(rule, "resources"),
                      *only = json_get(rule, "resourceNames"),
                      *paths = json_get(rule, "nonResourceURLs");
    size_t per_group = json_len(resources) * (json_len(only) ? json_len(only) : 1);
    size_t per_verb = json_len(groups) * per_group + json_len(paths);
    size_t all = json_len(verbs) * per_verb;
    if (all > *left)
        return false;
    *left -= all;
    for (size_t i = 0; i < all; i++) {
        size_t n = i % per_verb;
        struct access want = { .verb = json_text(json_item(verbs, i / per_verb)) };
        str whole = S(""), rest, part = S("");
        if (n < json_len(paths)) {
            want.path = json_text(json_item(paths, n));
        } else {
            n -= json_len(paths);
            rest = whole = json_text(json_item(resources, n % json_len(resources)));
            want.group = json_text(json_item(groups, n / per_group));
            want.name = json_text(json_item(only, n % per_group / json_len(resources)));
            if (str_cut(&rest, '/', &part))
                want.resource = part;
            want.subresource = rest.p ? rest : S("");
        }
        if (!is_held(mine, &want))
            add_missing(a, missing, &want, whole);
    }
    return true;
}

/* kube-apiserver keeps them in a sorted set. */
static int compare_lines(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* quoted: kube-apiserver, a sorted line for each resource */
static void refuse_grant(struct call *c, const struct json *object, const struct json *missing)
{
    struct arena *a = c->arena;
    auto_buf struct buf text = { 0 };
    str *lines = arena_array(a, json_len(missing) + 1, sizeof(*lines));
    size_t n = 0;
    buf_printf(&text, "user \"" STR_FMT "\" (groups=[", STR_ARG(c->user.name));
    for (size_t i = 0; i < c->user.n_groups; i++) {
        buf_put(&text, i ? S(" ") : S(""));
        json_write_text(&text, c->user.groups[i]);
    }
    if (c->user.authenticated)
        buf_printf(&text, "%s\"system:authenticated\"", c->user.n_groups ? " " : "");
    buf_put(&text, S("]) is attempting to grant RBAC permissions not currently held:"));
    json_each(m, missing) {
        auto_buf struct buf line = { 0 };
        buf_printf(&line, "\n{" STR_FMT, STR_ARG(m->key));
        for (uint32_t i = 0; i < json_len(m->value); i++) {
            buf_put(&line, i ? S(" ") : S(", Verbs:["));
            json_write_text(&line, json_text(m->value->items[i]));
        }
        buf_put(&line, json_len(m->value) ? S("]}") : S("}"));
        lines[n++] = arena_str(a, buf_str(&line));
    }
    if (n)
        qsort(lines, n, sizeof(*lines), compare_lines);
    for (size_t i = 0; i < n; i++)
        buf_put(&text, lines[i]);
    call_forbidden(c, c->kind, json_text(json_at(object, "metadata", "name", NULL)), STR_FMT,
                   STR_ARG(buf_str(&text)));
}

/* Labels count: they decide which aggregated roles get the rules. As in kube-apiserver, only owners and
 * finalizers do not. */
static bool is_same_grant(const struct json *a, const struct json *b)
{
    static const char *const keys[] = { "rules", "aggregationRule", "roleRef", "subjects" };
    static const char *const metadata[] = { "labels", "annotations" };
    for (size_t i = 0; i < countof(keys); i++)
        if (!json_eq(json_get(a, keys[i]), json_get(b, keys[i])))
            return false;
    for (size_t i = 0; i < countof(metadata); i++)
        if (!json_eq(json_at(a, "metadata", metadata[i], NULL),
                     json_at(b, "metadata", metadata[i], NULL)))
            return false;
    return true;
}

/* A write that grants nothing new is always allowed. Otherwise the user needs the verb escalate or bind, or
 * must hold every permission that the role contains. Aggregated roles grant rules that do not exist yet, so
 * only escalate allows them. */
bool access_check_grant(struct call *c, const struct json *old, const struct json *object)
{
    const struct kind *k = c->kind;
    if (c->user.admin || !str_eq(k->group, GROUP) || (old && is_same_grant(old, object)))
        return true;
    const struct json *ref = json_get(object, "roleRef"), *rules = json_get(object, "rules");
    bool everywhere = !k->namespaced || str_eq(json_text(json_get(ref, "kind")), S("ClusterRole"));
    struct access pass = { .verb = ref ? S("bind") : S("escalate"),
                           .group = GROUP,
                           .resource = everywhere ? S("clusterroles") : S("roles"),
                           .ns = c->ns,
                           .name = json_text(ref ? json_get(ref, "name")
                                                 : json_at(object, "metadata", "name", NULL)) };
    if (access_is_allowed(c->server, c->arena, &c->user, &pass, NULL))
        return true;
    if (ref && !(rules = find_role_rules(&(struct search){ .server = c->server, .arena = c->arena },
                                         ref, c->ns))) {
        call_not_found(c, k, pass.name);
        return false;
    }
    const struct json *mine = access_rules(c->server, c->arena, &c->user, c->ns);
    struct json *missing = json_new_obj(c->arena);
    size_t left = GRANTS_MAX;
    bool fits = true;
    for (size_t i = 0; i < json_len(rules) && fits; i++)
        fits = find_missing(c->arena, mine, json_item(rules, i), &left, missing);
    if (!fits || json_len(missing)) {
        refuse_grant(c, object, missing);
        return false;
    }
    if (!json_get(object, "aggregationRule") && !json_get(old, "aggregationRule"))
        return true;
    call_forbidden(c, k, json_text(json_at(object, "metadata", "name", NULL)),
                   "must have cluster-admin privileges to use the aggregationRule");
    return false;
}
