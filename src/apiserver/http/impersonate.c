/* Acting as somebody else: the Impersonate-* headers. Every part of the other identity (user, each group, the
 * uid, each value of each extra) needs the right to impersonate just that, checked against the rights of who
 * really asks; nothing of their own identity is kept. A part that is not allowed refuses the request. */
#include "../../base/utf8.h"
#include "access.h"
#include "auth.h"
#include "remove.h"

#define PREFIX_EXTRA S("impersonate-extra-")

/* "system:serviceaccount:NAMESPACE:NAME" as the object it names. */
static bool is_account(str name, struct access *ret)
{
    str rest = name, part;
    if (!str_starts(name, S(AUTH_ACCOUNT)))
        return false;
    rest = str_from(rest, sizeof(AUTH_ACCOUNT) - 1);
    if (!str_cut(&rest, ':', &part) || !part.n || !rest.p || !rest.n ||
        str_find_char(rest, ':') != SIZE_MAX)
        return false;
    *ret = (struct access){ .resource = S("serviceaccounts"), .ns = part, .name = rest };
    return true;
}

static bool impersonates_anybody(struct call *c)
{
    const struct json *rules = access_rules(c->server, c->arena, &c->user, c->ns);
    for (size_t i = 0; i < json_len(rules); i++) {
        const struct json *verbs = json_get(json_item(rules, i), "verbs");
        if (list_has(verbs, S("impersonate")) || list_has(verbs, S("*")))
            return true;
    }
    return false;
}

/* The real server tells who impersonated before what is missing, and everybody else of the newer, narrow verbs: here
 * those count who may impersonate anybody. */
static void refuse_part(struct call *c, const struct access *part)
{
    struct access w = *part;
    if (!impersonates_anybody(c)) {
        bool account = str_eq(part->resource, S("serviceaccounts"));
        w = call_wanted(c);
        w.verb = arena_printf(c->arena, "impersonate-on:%s:" STR_FMT,
                              account ? "serviceaccount" : "user-info", STR_ARG(w.verb));
    }
    call_refuse(c, &w);
}

static bool check_part(struct call *c, struct access w)
{
    w.verb = S("impersonate");
    if (access_allowed(c->server, c->arena, &c->user, &w, NULL))
        return true;
    refuse_part(c, &w);
    return false;
}

/* The groups asked for; those of a service account, and of nobody known, when none are. False: answered. */
static bool take_groups(struct call *c, const struct access *account, struct user *ret)
{
    const struct http_headers *headers = &c->request->headers;
    str *groups = arena_array(c->arena, headers->n + 2, sizeof(*groups));
    for (size_t i = 0; i < headers->n; i++) {
        if (!str_eq_nocase(headers->at[i].name, S("impersonate-group")))
            continue;
        str group = utf8_clean(c->arena, headers->at[i].value);
        if (!check_part(c, (struct access){ .resource = S("groups"), .name = group }))
            return false;
        groups[ret->n_groups++] = group;
    }
    if (!ret->n_groups && account->ns.n) {
        groups[ret->n_groups++] = S("system:serviceaccounts");
        groups[ret->n_groups++] =
            arena_printf(c->arena, "system:serviceaccounts:" STR_FMT, STR_ARG(account->ns));
    } else if (!ret->n_groups && str_eq(ret->name, S(AUTH_ANONYMOUS))) {
        groups[ret->n_groups++] = S("system:unauthenticated");
    }
    ret->groups = groups;
    return true;
}

/* The key in the name of a header: percent-encoded, as headers know no slash, and without case. */
static str extra_key(struct arena *a, str name)
{
    str key = S("");
    str raw = str_from(name, PREFIX_EXTRA.n);
    char *lower = arena_alloc(a, raw.n + 1);
    if (uri_decode(a, raw, false, &key) < 0)
        key = raw;
    for (size_t i = 0; i < key.n; i++)
        lower[i] = (char)(key.p[i] >= 'A' && key.p[i] <= 'Z' ? key.p[i] | 32 : key.p[i]);
    return utf8_clean(a, (str){ lower, key.n });
}

/* False: answered. */
static bool take_extra(struct call *c, struct user *ret)
{
    const struct http_headers *headers = &c->request->headers;
    struct json *extra = NULL;
    for (size_t i = 0; i < headers->n; i++) {
        str name = headers->at[i].name;
        if (name.n <= PREFIX_EXTRA.n ||
            !str_eq_nocase(str_upto(name, PREFIX_EXTRA.n), PREFIX_EXTRA))
            continue;
        str key = extra_key(c->arena, name), value = utf8_clean(c->arena, headers->at[i].value);
        if (!check_part(c, (struct access){ .group = S("authentication.k8s.io"),
                                            .resource = S("userextras"),
                                            .subresource = key,
                                            .name = value }))
            return false;
        if (!extra)
            extra = json_new_obj(c->arena);
        struct json *values = json_get_str(extra, key);
        if (!values)
            json_set(c->arena, extra, key, values = json_new_arr(c->arena));
        json_push(c->arena, values, json_new_str(c->arena, value));
    }
    ret->extra = extra;
    return true;
}

/* False: answered. */
static bool take_uid(struct call *c, struct user *ret)
{
    ret->uid = utf8_clean(c->arena, call_header(c, "impersonate-uid"));
    return !ret->uid.n || check_part(c, (struct access){ .group = S("authentication.k8s.io"),
                                                         .resource = S("uids"),
                                                         .name = ret->uid });
}

/* One look at each header, as most calls have none of these. */
static bool wants_another(const struct call *c)
{
    const struct http_headers *headers = &c->request->headers;
    for (size_t i = 0; i < headers->n; i++)
        if (headers->at[i].name.n > 12 &&
            str_eq_nocase(str_upto(headers->at[i].name, 12), S("impersonate-")))
            return true;
    return false;
}

bool call_impersonate(struct call *c)
{
    if (!wants_another(c))
        return true;
    struct user other = { .name = utf8_clean(c->arena, call_header(c, "impersonate-user")) };
    struct access w = { .resource = S("users"), .name = other.name };
    if (!other.name.n) {
        call_bad_request(c, "a group, uid or extra is requested without impersonating a user name");
        return false;
    }
    is_account(other.name, &w);
    if (!check_part(c, w) || !take_groups(c, &w, &other) || !take_extra(c, &other) ||
        !take_uid(c, &other))
        return false;
    struct user user = auth_user(other.name, other.groups, other.n_groups);
    user.known = !str_eq(other.name, S(AUTH_ANONYMOUS));
    user.extra = other.extra;
    user.uid = other.uid;
    c->user = user;
    return true;
}
