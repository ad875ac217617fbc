/* Impersonation: a request with Impersonate-* headers acts as another user.
 *
 * Each part of that identity (the user, each group, the uid, each value of each extra) needs permission to
 * impersonate exactly that part, checked against the rights of the user who sent the request:
 *
 *     Impersonate-User: ann                    impersonate users "ann"
 *     Impersonate-User: system:serviceaccount: impersonate serviceaccounts NAME in NAMESPACE
 *       NAMESPACE:NAME
 *     Impersonate-Group: dev                   impersonate groups "dev"
 *     Impersonate-Uid: 17                      impersonate uids "17" in authentication.k8s.io
 *     Impersonate-Extra-Scopes: view           impersonate userextras/scopes "view" in authentication.k8s.io
 *
 * If one part is denied, the whole request is refused. Nothing of the original identity is kept. */
#include "../../base/utf8.h"
#include "access.h"
#include "auth.h"
#include "remove.h"

#define PREFIX_EXTRA S("impersonate-extra-")

/* Parses "system:serviceaccount:NAMESPACE:NAME" into the access that impersonating it needs. */
static bool parse_account(str name, struct access *ret)
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

/* Whether any rule of the user has the verb impersonate. */
static bool can_impersonate_any(struct call *c)
{
    const struct json *rules = access_rules(c->server, c->arena, &c->user, c->ns);
    for (size_t i = 0; i < json_len(rules); i++) {
        const struct json *verbs = json_get(json_item(rules, i), "verbs");
        if (remove_list_contains(verbs, S("impersonate")) || remove_list_contains(verbs, S("*")))
            return true;
    }
    return false;
}

/* kube-apiserver names the missing impersonation to users who have the verb impersonate at all; to others
 * it names its newer, narrower verbs ("impersonate-on:..."). */
static void deny_part(struct call *c, const struct access *part)
{
    struct access w = *part;
    if (!can_impersonate_any(c)) {
        bool account = str_eq(part->resource, S("serviceaccounts"));
        w = access_needed(c);
        w.verb = arena_printf(c->arena, "impersonate-on:%s:" STR_FMT,
                              account ? "serviceaccount" : "user-info", STR_ARG(w.verb));
    }
    access_deny(c, &w);
}

static bool check_part(struct call *c, struct access w)
{
    w.verb = S("impersonate");
    if (access_is_allowed(c->server, c->arena, &c->user, &w, NULL))
        return true;
    deny_part(c, &w);
    return false;
}

/* The requested groups; default: those of the service account, or system:unauthenticated for the anonymous
 * user. False: answered. */
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

/* The key of an extra is part of a header's name: percent-encoded, because header names have no slash, and
 * in lower case. */
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

/* Collects the extras: key to list of values. False: answered. */
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

/* One pass over the headers, as most requests have none of these. */
static bool has_impersonation(const struct call *c)
{
    const struct http_headers *headers = &c->request->headers;
    for (size_t i = 0; i < headers->n; i++)
        if (headers->at[i].name.n > 12 &&
            str_eq_nocase(str_upto(headers->at[i].name, 12), S("impersonate-")))
            return true;
    return false;
}

/* quoted: kube-apiserver, which prints its struct */
static void refuse_without_user(struct call *c)
{
    const struct http_headers *headers = &c->request->headers;
    auto_buf struct buf groups = { 0 }, extra = { 0 };
    for (size_t i = 0; i < headers->n; i++) {
        str name = headers->at[i].name, value = utf8_clean(c->arena, headers->at[i].value);
        if (str_eq_nocase(name, S("impersonate-group"))) {
            buf_put(&groups, groups.n ? S(", ") : S(""));
            json_write_text(&groups, value);
        } else if (name.n > PREFIX_EXTRA.n &&
                   str_eq_nocase(str_upto(name, PREFIX_EXTRA.n), PREFIX_EXTRA)) {
            buf_put(&extra, extra.n ? S(", ") : S(""));
            json_write_text(&extra, extra_key(c->arena, name));
            buf_put(&extra, S(":[]string{"));
            json_write_text(&extra, value);
            buf_putc(&extra, '}');
        }
    }
    auto_buf struct buf uid = { 0 };
    json_write_text(&uid, utf8_clean(c->arena, call_header(c, "impersonate-uid")));
    const char *open = groups.n ? "{" : "(", *close = groups.n ? "}" : ")";
    const char *first = extra.n ? "{" : "(", *last = extra.n ? "}" : ")";
    call_bad_request(c,
                     "requested &user.DefaultInfo{Name:\"\", UID:" STR_FMT
                     ", Groups:[]string%s" STR_FMT "%s, Extra:map[string][]string%s" STR_FMT
                     "%s} without impersonating a user name",
                     STR_ARG(buf_str(&uid)), open, STR_ARG(groups.n ? buf_str(&groups) : S("nil")),
                     close, first, STR_ARG(extra.n ? buf_str(&extra) : S("nil")), last);
}

bool access_impersonate(struct call *c)
{
    if (!has_impersonation(c))
        return true;
    struct user other = { .name = utf8_clean(c->arena, call_header(c, "impersonate-user")) };
    struct access w = { .resource = S("users"), .name = other.name };
    if (!other.name.n) {
        refuse_without_user(c);
        return false;
    }
    parse_account(other.name, &w);
    if (!check_part(c, w) || !take_groups(c, &w, &other) || !take_extra(c, &other) ||
        !take_uid(c, &other))
        return false;
    struct user user = auth_user(other.name, other.groups, other.n_groups);
    user.authenticated = !str_eq(other.name, S(AUTH_ANONYMOUS));
    user.extra = other.extra;
    user.uid = other.uid;
    c->user = user;
    return true;
}
