/* Decides which names a definition is served under.
 *
 * Definitions of a group may not share plural, singular or short names, nor kinds. The first one that was
 * accepted keeps a name (status.acceptedNames); a later one gets NamesAccepted=False and is accepted when the
 * name becomes free. controllers/definition.c calls this with all definitions and stores the new status.
 * Texts and reasons are quoted: kube-apiserver. */
#include "kind_hooks.h"

#include "../../base/rfc3339.h"

struct claims {
    const struct json *crd; /* the definition to accept */
    const struct json *const *all;
    size_t n;
    struct seen names, kinds; /* accepted for other definitions of the group */
};

/* The names (or kinds) accepted for other definitions of the group, collected once. */
static struct seen collect_claimed_names(struct arena *a, const struct claims *c, bool kinds)
{
    static const char *const of_kinds[] = { "kind", "listKind" };
    static const char *const of_names[] = { "plural", "singular" };
    const struct json *group = json_at(c->crd, "spec", "group", NULL);
    const struct json *self = json_at(c->crd, "metadata", "name", NULL);
    struct seen names = seen_new(a, 1);
    for (size_t i = 0; i < c->n; i++) {
        const struct json *other = json_at(c->all[i], "status", "acceptedNames", NULL);
        if (json_eq(json_at(c->all[i], "metadata", "name", NULL), self) ||
            !json_eq(json_at(c->all[i], "spec", "group", NULL), group))
            continue;
        for (size_t j = 0; j < 2; j++)
            seen_value(&names, json_get(other, kinds ? of_kinds[j] : of_names[j]), 0);
        const struct json *shorts = kinds ? NULL : json_get(other, "shortNames");
        for (uint32_t j = 0; j < json_len(shorts); j++)
            seen_value(&names, shorts->items[j], 0);
    }
    return names;
}

static bool is_claimed(const struct seen *names, str name)
{
    struct json text = { .type = JSON_STR, .n = (uint32_t)name.n, .text = name.p };
    return seen_lookup(names, &text);
}

struct conflict {
    const char *reason; /* NULL: no conflict */
    str name;
};

/* Copies one name to the accepted ones, or records the conflict. */
static void accept_name(const struct claims *c, struct arena *a, struct json *accepted,
                        const char *key, struct conflict *conflict)
{
    static const struct {
        const char *key, *reason;
    } reasons[] = {
        { "plural", "PluralConflict" },
        { "singular", "SingularConflict" },
        { "kind", "KindConflict" },
        { "listKind", "ListKindConflict" },
    };
    str wanted = json_text(json_at(c->crd, "spec", "names", key, NULL));
    bool kinds = strcmp(key, "kind") == 0 || strcmp(key, "listKind") == 0;
    if (!str_eq(wanted, json_text(json_get(accepted, key))) &&
        is_claimed(kinds ? &c->kinds : &c->names, wanted)) {
        for (size_t i = 0; i < countof(reasons); i++)
            if (strcmp(key, reasons[i].key) == 0)
                *conflict = (struct conflict){ reasons[i].reason, wanted };
    } else if (wanted.n) {
        json_set_str(a, accepted, key, wanted);
    }
}

/* Short names are accepted all together or not at all. */
static void accept_short_names(const struct claims *c, struct arena *a, struct json *accepted,
                               struct conflict *conflict)
{
    const struct json *wanted = json_at(c->crd, "spec", "names", "shortNames", NULL);
    struct seen had = seen_list(a, json_get(accepted, "shortNames"), NULL);
    for (uint32_t i = 0; i < json_len(wanted); i++) {
        str name = json_text(wanted->items[i]);
        if (!seen_lookup(&had, wanted->items[i]) && is_claimed(&c->names, name)) {
            *conflict = (struct conflict){ "ShortNamesConflict", name };
            return;
        }
    }
    json_del(accepted, S("shortNames"));
    if (json_len(wanted))
        json_set(a, accepted, S("shortNames"), json_copy(a, wanted));
}

static struct json *find_condition(const struct json *conditions, const char *type)
{
    for (uint32_t i = 0; i < json_len(conditions); i++)
        if (str_eqc(json_text(json_get(conditions->items[i], "type")), type))
            return conditions->items[i];
    return NULL;
}

struct condition {
    const char *type, *status, *reason;
    str message;
};

/* Adds or updates a condition; the transition time changes only with the status. */
static void set_condition(struct arena *a, struct json *conditions, struct condition c,
                          int64_t now_ns)
{
    struct json *condition = find_condition(conditions, c.type);
    if (!condition) {
        condition = json_new_obj(a);
        json_set_str(a, condition, "type", str_c(c.type));
        json_push(a, conditions, condition);
    }
    char time[RFC3339_TEXT_MAX];
    if (!str_eqc(json_text(json_get(condition, "status")), c.status)) {
        json_set_str(a, condition, "status", str_c(c.status));
        json_set_str(a, condition, "lastTransitionTime", rfc3339_text(now_ns / 1000000000, time));
    }
    json_set_str(a, condition, "reason", str_c(c.reason));
    json_set_str(a, condition, "message", c.message);
}

/* NamesAccepted reflects the conflict; Established stays True once it is. */
static void set_conditions(struct arena *a, struct json *conditions, struct conflict conflict,
                           int64_t now_ns)
{
    if (conflict.reason)
        set_condition(a, conditions,
                      (struct condition){ "NamesAccepted", "False", conflict.reason,
                                          arena_printf(a, "\"" STR_FMT "\" is already in use",
                                                       STR_ARG(conflict.name)) },
                      now_ns);
    else
        set_condition(a, conditions,
                      (struct condition){ "NamesAccepted", "True", "NoConflicts",
                                          S("no conflicts found") },
                      now_ns);
    const struct json *established = find_condition(conditions, "Established");
    bool was = str_eqc(json_text(json_get(established, "status")), "True");
    if (was)
        return; /* a kind that is served stays served */
    if (conflict.reason)
        set_condition(a, conditions,
                      (struct condition){ "Established", "False", "NotAccepted",
                                          S("not all names are accepted") },
                      now_ns);
    else
        set_condition(a, conditions,
                      (struct condition){ "Established", "True", "InitialNamesAccepted",
                                          S("the initial names have been accepted") },
                      now_ns);
}

/* Accepts name by name, so a definition may have some of its names; it is established only with
 * all of them. Categories never conflict. */
bool kinds_accept_crd_names(struct arena *a, struct json *crd, const struct json *const *all,
                            size_t n, int64_t now_ns)
{
    struct claims claims = { .crd = crd, .all = all, .n = n };
    claims.names = collect_claimed_names(a, &claims, false);
    claims.kinds = collect_claimed_names(a, &claims, true);
    struct json *status = json_make(a, crd, "status", NULL), *before = json_copy(a, status);
    struct json *accepted = json_make(a, status, "acceptedNames", NULL);
    struct conflict conflict = { 0 };
    accept_name(&claims, a, accepted, "plural", &conflict);
    accept_name(&claims, a, accepted, "singular", &conflict);
    accept_short_names(&claims, a, accepted, &conflict);
    accept_name(&claims, a, accepted, "kind", &conflict);
    accept_name(&claims, a, accepted, "listKind", &conflict);
    const struct json *categories = json_at(crd, "spec", "names", "categories", NULL);
    json_del(accepted, S("categories"));
    if (json_len(categories))
        json_set(a, accepted, S("categories"), json_copy(a, categories));
    struct json *conditions = json_get(status, "conditions");
    if (!json_is(conditions, JSON_ARR))
        json_set(a, status, S("conditions"), conditions = json_new_arr(a));
    set_conditions(a, conditions, conflict, now_ns);
    return !json_eq(status, before);
}
