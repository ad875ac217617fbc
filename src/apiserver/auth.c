/* See auth.h. Tokens are few: each is compared in constant time. */
#include "auth.h"

#include "../base/file.h"
#include "../net/tls.h"
#include "server.h"
#include "text.h"
#include "token.h"

enum { TOKEN_FILE_MAX = 1 << 20, TOKEN_MIN = 8 };

struct token {
    str secret;
    struct user user;
};

struct auth {
    struct arena arena;
    str key;
    VEC(struct token) tokens;
};

struct auth *auth_new(void)
{
    return mem_zero(1, sizeof(struct auth));
}

void auth_free(struct auth *a)
{
    if (!a)
        return;
    vec_done(&a->tokens);
    arena_done(&a->arena);
    free(a);
}

static struct user user_of(str name, const str *groups, size_t n_groups)
{
    struct user u = { .name = name, .groups = groups, .n_groups = n_groups, .known = true };
    for (size_t i = 0; i < n_groups; i++) {
        u.admin |= str_eq(groups[i], S(AUTH_ADMINS));
        u.reader |= str_eq(groups[i], S(AUTH_READERS));
    }
    return u;
}

void auth_add_token(struct auth *a, str token, str user, const str *groups, size_t n_groups)
{
    str *kept = arena_array(&a->arena, n_groups, sizeof(*kept));
    for (size_t i = 0; i < n_groups; i++)
        kept[i] = arena_str(&a->arena, groups[i]);
    struct token t = { .secret = arena_str(&a->arena, token) };
    t.user = user_of(arena_str(&a->arena, user), kept, n_groups);
    vec_push(&a->tokens, t);
}

void auth_set_key(struct auth *a, str key)
{
    a->key = arena_str(&a->arena, key);
}

str auth_key(const struct auth *a)
{
    return a ? a->key : S("");
}

static int add_line(struct auth *a, const char *path, size_t number, str line, err_t *e)
{
    str token, user, uid, groups[16], part;
    size_t n = 0;
    if (!str_cut(&line, ',', &token) || !str_cut(&line, ',', &user) || token.n < TOKEN_MIN ||
        !user.n)
        return err_set(
            e, EINVAL,
            "token file %s, line %zu: want TOKEN,USER[,UID[,\"GROUP,GROUP\"]] with a token of "
            "at least %d characters",
            path, number, TOKEN_MIN);
    str_cut(&line, ',', &uid);
    str rest = line.p ? str_trim(line) : S("");
    if (rest.n >= 2 && rest.p[0] == '"' && rest.p[rest.n - 1] == '"')
        rest = (str){ rest.p + 1, rest.n - 2 };
    while (n < countof(groups) && str_cut(&rest, ',', &part))
        if (str_trim(part).n)
            groups[n++] = str_trim(part);
    auth_add_token(a, token, user, groups, n);
    return 0;
}

int auth_add_file(struct auth *a, const char *path, err_t *e)
{
    auto_buf struct buf text = { 0 };
    int result = file_read(path, TOKEN_FILE_MAX, &text, e);
    str rest = buf_str(&text), line;
    for (size_t number = 1; result == 0 && str_cut(&rest, '\n', &line); number++) {
        line = str_trim(line);
        if (line.n && line.p[0] != '#')
            result = add_line(a, path, number, line, e);
    }
    return result;
}

/* ---- who */

static bool find_token(const struct auth *a, str secret, struct user *ret)
{
    bool found = false;
    for (size_t i = 0; i < a->tokens.n; i++) {
        if (tls_same_secret(secret, a->tokens.at[i].secret)) {
            *ret = a->tokens.at[i].user;
            found = true;
        }
    }
    return found;
}

bool call_authenticate(struct call *c)
{
    if (!c->server->auth) {
        c->user = (struct user){ .name = S("system:admin"), .admin = true, .known = true };
        return true;
    }
    str header = call_header(c, "authorization"), scheme = S("");
    str_cut(&header, ' ', &scheme);
    const struct tls_peer *peer = c->request->peer;
    if (str_eq_nocase(scheme, S("bearer")) && header.p && str_trim(header).n) {
        if (find_token(c->server->auth, str_trim(header), &c->user) ||
            token_user(c->server, c->arena, str_trim(header), &c->user))
            return true;
        call_status(c, &(struct status){
                           .code = 401, .reason = "Unauthorized", .message = S("Unauthorized") });
        return false;
    }
    c->user = peer ? user_of(text_clean(c->arena, peer->user), peer->groups, peer->group_count)
                   : (struct user){ .name = S("system:anonymous") };
    return true;
}

/* ---- may they */

static bool is_read(str verb)
{
    return str_eq(verb, S("get")) || str_eq(verb, S("list")) || str_eq(verb, S("watch"));
}

static bool may(const struct user *u, str verb, str group, str resource)
{
    bool secret = !group.n && str_eq(resource, S("secrets"));
    bool review = str_eq(verb, S("create")) && str_starts(resource, S("selfsubject"));
    return u->admin || (u->known && review) || (u->reader && is_read(verb) && !secret);
}

static bool may_see_page(const struct user *u, str path)
{
    static const char *const open[] = { "/healthz", "/livez", "/readyz", "/version" };
    if (u->known)
        return true;
    if (path.n > 1 && path.p[path.n - 1] == '/')
        path.n--;
    for (size_t i = 0; i < countof(open); i++)
        if (str_eqc(path, open[i]))
            return true;
    return false;
}

static void refuse_resource(struct call *c, str verb)
{
    struct arena *a = c->arena;
    str quoted = c->name.n ? arena_printf(a, " \"" STR_FMT "\"", STR_ARG(c->name)) : S("");
    str where = c->ns.n ? arena_printf(a, " in the namespace \"" STR_FMT "\"", STR_ARG(c->ns))
                        : S(" at the cluster scope");
    str resource =
        c->group.n ? arena_printf(a, STR_FMT "." STR_FMT, STR_ARG(c->resource), STR_ARG(c->group))
                   : c->resource;
    str message =
        arena_printf(a,
                     STR_FMT STR_FMT " is forbidden: User \"" STR_FMT "\" cannot " STR_FMT
                                     " resource \"" STR_FMT "\" in API group \"" STR_FMT
                                     "\"" STR_FMT,
                     STR_ARG(resource), STR_ARG(quoted), STR_ARG(c->user.name), STR_ARG(verb),
                     STR_ARG(c->resource), STR_ARG(c->group), STR_ARG(where));
    call_status(c, &(struct status){ .code = 403,
                                     .reason = "Forbidden",
                                     .message = message,
                                     .name = c->name,
                                     .group = c->group,
                                     .kind = c->resource });
}

bool call_authorize(struct call *c)
{
    static const char *const words[VERB_N] = { "get",   "get",    "list",
                                               "watch", "create", "update",
                                               "patch", "delete", "deletecollection" };
    if (c->resource.n) {
        if (may(&c->user, str_c(words[c->verb]), c->group, c->resource))
            return true;
        refuse_resource(c, str_c(words[c->verb]));
        return false;
    }
    if (may_see_page(&c->user, c->request->path))
        return true;
    str path = text_clean(c->arena, c->request->path);
    str message =
        arena_printf(c->arena, "forbidden: User \"" STR_FMT "\" cannot get path \"" STR_FMT "\"",
                     STR_ARG(c->user.name), STR_ARG(path));
    call_status(c, &(struct status){ .code = 403,
                                     .reason = "Forbidden",
                                     .message = message,
                                     .empty_details = true });
    return false;
}

/* ---- reviews */

static struct json *words_of(struct arena *a, const char *words)
{
    struct json *list = json_new_arr(a);
    str rest = str_c(words), word;
    while (str_cut(&rest, ' ', &word))
        json_push(a, list, json_new_str(a, word));
    return list;
}

static void add_rule(struct arena *a, struct json *rules, const char *verbs, const char *resources)
{
    struct json *rule = json_new_obj(a);
    json_set(a, rule, S("verbs"), words_of(a, verbs));
    json_set(a, rule, S("apiGroups"), words_of(a, "*"));
    json_set(a, rule, S("resources"), words_of(a, resources));
    json_push(a, rules, rule);
}

/* What may() and may_see_page() say, as rules. A list cannot leave out the secrets that a reader may not
 * see; it says that it is not the whole truth. */
static void answer_rules(struct call *c, struct json *review)
{
    struct arena *a = c->arena;
    struct json *rules = json_new_arr(a), *pages = json_new_arr(a), *page = json_new_obj(a);
    if (c->user.admin)
        add_rule(a, rules, "*", "*");
    else if (c->user.reader)
        add_rule(a, rules, "get list watch", "*");
    if (c->user.known)
        add_rule(a, rules, "create",
                 "selfsubjectreviews selfsubjectaccessreviews selfsubjectrulesreviews");
    json_set(a, page, S("verbs"), words_of(a, c->user.admin ? "*" : "get"));
    json_set(a, page, S("nonResourceURLs"),
             words_of(a, c->user.known ? "*" : "/healthz /livez /readyz /version"));
    json_push(a, pages, page);
    struct json *status = json_make(a, review, "status", NULL);
    json_set(a, status, S("resourceRules"), rules);
    json_set(a, status, S("nonResourceRules"), pages);
    json_set_bool(a, status, "incomplete", !c->user.admin && c->user.reader);
    json_set(a, review, S("spec"), json_new_obj(a)); /* as the real server answers */
    call_object(c, 201, c->kind, review);
}

static void answer_who(struct call *c, struct json *review)
{
    struct arena *a = c->arena;
    struct json *groups = json_new_arr(a);
    for (size_t i = 0; i < c->user.n_groups; i++)
        json_push(a, groups, json_new_str(a, c->user.groups[i]));
    json_push(a, groups, json_new_str(a, S("system:authenticated")));
    json_set_str(a, json_make(a, review, "metadata", NULL), "creationTimestamp",
                 server_time(c->server, a));
    struct json *info = json_make(a, review, "status", "userInfo", NULL);
    json_set_str(a, info, "username", c->user.name);
    if (c->user.uid.n)
        json_set_str(a, info, "uid", c->user.uid);
    json_set(a, info, S("groups"), groups);
    call_object(c, 201, c->kind, review);
}

void answer_review(struct call *c, struct json *review)
{
    if (str_eq(c->kind->kind, S("SelfSubjectRulesReview"))) {
        answer_rules(c, review);
        return;
    }
    if (str_eq(c->kind->kind, S("SelfSubjectReview"))) {
        answer_who(c, review);
        return;
    }
    const struct json *spec = json_get(review, "spec");
    const struct json *resource = json_get(spec, "resourceAttributes");
    const struct json *page = json_get(spec, "nonResourceAttributes");
    bool allowed =
        resource
            ? may(&c->user, json_text(json_get(resource, "verb")),
                  json_text(json_get(resource, "group")), json_text(json_get(resource, "resource")))
            : page && may_see_page(&c->user, json_text(json_get(page, "path"))) &&
                  (c->user.admin || str_eq(json_text(json_get(page, "verb")), S("get")));
    struct json *status = json_make(c->arena, review, "status", NULL);
    json_set_bool(c->arena, status, "allowed", allowed);
    call_object(c, 201, c->kind, review);
}
