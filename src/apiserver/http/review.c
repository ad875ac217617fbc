/* Reviews: POST requests that are answered and never stored.
 *
 *     SelfSubjectAccessReview, SubjectAccessReview,     is this access allowed?          answer_access
 *       LocalSubjectAccessReview
 *     SelfSubjectRulesReview                            all my rules in a namespace      answer_rules
 *     SelfSubjectReview                                 my user name and groups          answer_self
 *     TokenReview                                       the user of this token           answer_token
 *
 * The first group asks access.c exactly as a request would be checked, so a review and the request agree. */
#include "../kinds/kind_hooks.h"
#include "access.h"
#include "auth.h"
#include "token.h"

/* ---- access */

/* Evaluates the access in the spec for the user; the reason names the binding that allows it. */
static void answer_access(struct call *c, const struct user *u, struct json *review)
{
    const struct json *spec = json_get(review, "spec"), *r = json_get(spec, "resourceAttributes"),
                      *p = json_get(spec, "nonResourceAttributes");
    struct access w = { .verb = json_text(json_get(r ? r : p, "verb")),
                        .group = json_text(json_get(r, "group")),
                        .resource = json_text(json_get(r, "resource")),
                        .subresource = json_text(json_get(r, "subresource")),
                        .ns = json_text(json_get(r, "namespace")),
                        .name = json_text(json_get(r, "name")),
                        .path = json_text(json_get(p, "path")) };
    struct json *status = json_make(c->arena, review, "status", NULL);
    str why;
    json_set_bool(c->arena, status, "allowed", access_is_allowed(c->server, c->arena, u, &w, &why));
    if (why.n)
        json_set_str(c->arena, status, "reason", why);
    call_object(c, 201, c->kind, review);
}

/* The user named in the spec, with exactly the groups named there. */
static struct user requested_user(struct call *c, const struct json *spec)
{
    const struct json *list = json_get(spec, "groups");
    str *groups = arena_array(c->arena, json_len(list), sizeof(*groups));
    for (size_t i = 0; i < json_len(list); i++)
        groups[i] = json_text(json_item(list, i));
    struct user u = auth_user(json_text(json_get(spec, "user")), groups, json_len(list));
    u.authenticated = false; /* only the groups in the spec: no system:authenticated */
    return u;
}

/* ---- rules */

static struct json *split_words(struct arena *a, const char *text)
{
    struct json *list = json_new_arr(a);
    for (str rest = str_c(text), word; str_cut(&rest, ' ', &word);)
        json_push(a, list, json_new_str(a, word));
    return list;
}

/* The permissions of AUTH_READERS, which need no role, as rules. A rule cannot exclude secrets, so the
 * answer is marked incomplete. */
static void add_builtin_rules(struct arena *a, struct json *rules, const char *verbs)
{
    struct json *rule = json_new_obj(a), *page = json_new_obj(a);
    json_set(a, rule, S("verbs"), split_words(a, verbs));
    json_set(a, rule, S("apiGroups"), split_words(a, "*"));
    json_set(a, rule, S("resources"), split_words(a, "*"));
    json_set(a, page, S("verbs"), split_words(a, verbs));
    json_set(a, page, S("nonResourceURLs"), split_words(a, "*"));
    json_push(a, rules, rule);
    json_push(a, rules, page);
}

/* Splits the user's rules into those for resources and those for non-resource URLs. */
static void answer_rules(struct call *c, struct json *review)
{
    struct arena *a = c->arena;
    str ns = json_text(json_at(review, "spec", "namespace", NULL));
    if (!ns.n) {
        call_bad_request(c, "no namespace on request");
        return;
    }
    struct json *all = access_rules(c->server, a, &c->user, ns), *own = json_new_arr(a);
    struct json *resources = json_new_arr(a), *pages = json_new_arr(a);
    if (c->user.reader && !c->user.admin)
        add_builtin_rules(a, own, "get list watch");
    for (size_t i = 0; i < json_len(own); i++)
        json_push(a, all, json_item(own, i));
    for (size_t i = 0; i < json_len(all); i++) {
        struct json *rule = json_item(all, i);
        json_push(a, json_get(rule, "nonResourceURLs") ? pages : resources, rule);
    }
    struct json *status = json_make(a, review, "status", NULL);
    json_set(a, status, S("resourceRules"), resources);
    json_set(a, status, S("nonResourceRules"), pages);
    json_set_bool(a, status, "incomplete", json_len(own) > 0);
    json_set(a, review, S("spec"), json_new_obj(a)); /* as kube-apiserver answers */
    call_object(c, 201, c->kind, review);
}

/* ---- identity */

/* Writes the user as a UserInfo. */
static void describe_user(struct arena *a, const struct user *u, struct json *info)
{
    struct json *groups = json_new_arr(a);
    for (size_t i = 0; i < u->n_groups; i++)
        json_push(a, groups, json_new_str(a, u->groups[i]));
    if (u->authenticated)
        json_push(a, groups, json_new_str(a, S("system:authenticated")));
    json_set_str(a, info, "username", u->name);
    if (u->uid.n)
        json_set_str(a, info, "uid", u->uid);
    json_set(a, info, S("groups"), groups);
    if (u->extra)
        json_set(a, info, S("extra"), json_copy(a, u->extra));
}

static void answer_self(struct call *c, struct json *review)
{
    json_set_str(c->arena, json_make(c->arena, review, "metadata", NULL), "creationTimestamp",
                 server_time(c->server, c->arena));
    describe_user(c->arena, &c->user, json_make(c->arena, review, "status", "userInfo", NULL));
    call_object(c, 201, c->kind, review);
}

static str format_list(struct arena *a, const struct json *list)
{
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < json_len(list); i++)
        buf_printf(&text, "%s\"" STR_FMT "\"", i ? " " : "",
                   STR_ARG(json_text(json_item(list, i))));
    return arena_printf(a, "[" STR_FMT "]", STR_ARG(buf_str(&text)));
}

/* An invalid token is not an error of the request: the review carries the reason. */
static void answer_token(struct call *c, struct json *review)
{
    struct arena *a = c->arena;
    struct json *own = split_words(a, "https://kubernetes.default.svc"),
                *asked = json_at(review, "spec", "audiences", NULL);
    struct token_check t = { .token = json_text(json_at(review, "spec", "token", NULL)),
                             .wanted = json_len(asked) ? asked : own };
    if (!t.token.n) {
        call_bad_request(c, "token is required for TokenReview in authentication");
        return;
    }
    struct json *status = json_make(a, review, "status", NULL),
                *user = json_make(a, status, "user", NULL);
    if (auth_check_token(c->server, a, &t)) {
        json_set_bool(a, status, "authenticated", true);
        describe_user(a, &t.user, user);
        json_set(a, status, S("audiences"), json_copy(a, t.fits));
    } else if (t.audiences) {
        json_set_str(a, status, "error",
                     arena_printf(a,
                                  "[invalid bearer token, token audiences " STR_FMT
                                  " is invalid for the target audiences " STR_FMT "]",
                                  STR_ARG(format_list(a, t.audiences)),
                                  STR_ARG(format_list(a, t.wanted))));
    } else {
        json_set_str(a, status, "error", S("invalid bearer token"));
    }
    call_object(c, 201, c->kind, review);
}

void review_answer(struct call *c, struct json *review)
{
    str kind = c->kind->kind;
    struct user other = requested_user(c, json_get(review, "spec"));
    if (str_eq(kind, S("SelfSubjectRulesReview")))
        answer_rules(c, review);
    else if (str_eq(kind, S("SelfSubjectReview")))
        answer_self(c, review);
    else if (str_eq(kind, S("TokenReview")))
        answer_token(c, review);
    else
        answer_access(c, str_starts(kind, S("Self")) ? &c->user : &other, review);
}
