/* Authentication and the authorization of a call; see auth.h.
 *
 * There are few static tokens; each is compared in constant time, and the search does not stop at a match. What
 * a request presents decides:
 *
 *     valid client certificate with a common name   that user
 *     valid bearer token                            its user
 *     a token or certificate that is not valid      401
 *     neither                                       system:anonymous
 *
 * Authorization first applies impersonation, then asks access.c. The texts of 403 are kube-apiserver's. */
#include "auth.h"

#include "../../base/file.h"
#include "../../base/utf8.h"
#include "../../net/tls.h"
#include "access.h"
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

struct user auth_user(str name, const str *groups, size_t n_groups)
{
    struct user u = { .name = name, .groups = groups, .n_groups = n_groups, .authenticated = true };
    for (size_t i = 0; i < n_groups; i++) {
        u.admin |= str_eq(groups[i], S(AUTH_ADMINS));
        u.reader |= str_eq(groups[i], S(AUTH_READERS));
    }
    return u;
}

void auth_add_token(struct auth *a, str token, str user, str uid, const str *groups,
                    size_t n_groups)
{
    str *kept = arena_array(&a->arena, n_groups, sizeof(*kept));
    for (size_t i = 0; i < n_groups; i++)
        kept[i] = arena_str(&a->arena, groups[i]);
    struct token t = { .secret = arena_str(&a->arena, token) };
    t.user = auth_user(arena_str(&a->arena, user), kept, n_groups);
    t.user.uid = arena_str(&a->arena, uid);
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

static bool find_token(const struct auth *a, str secret, struct user *ret)
{
    bool found = false;
    for (size_t i = 0; i < a->tokens.n; i++) {
        if (tls_secrets_equal(secret, a->tokens.at[i].secret)) {
            *ret = a->tokens.at[i].user;
            found = true;
        }
    }
    return found;
}

/* One line of the token file. */
static int add_token_line(struct auth *a, const char *path, size_t number, str line, err_t *e)
{
    str token, user, uid = S(""), groups[16], part;
    size_t n = 0;
    if (!str_cut(&line, ',', &token) || !str_cut(&line, ',', &user) || token.n < TOKEN_MIN ||
        !user.n)
        return err_set(
            e, EINVAL,
            "token file %s, line %zu: expected TOKEN,USER[,UID[,\"GROUP,GROUP\"]] with a token of "
            "at least %d characters",
            path, number, TOKEN_MIN);
    struct user other;
    if (find_token(a, token, &other))
        return err_set(e, EINVAL, "token file %s, line %zu: the token already belongs to " STR_FMT,
                       path, number, STR_ARG(other.name));
    str_cut(&line, ',', &uid);
    str rest = line.p ? str_trim(line) : S("");
    if (rest.n >= 2 && rest.p[0] == '"' && rest.p[rest.n - 1] == '"')
        rest = (str){ rest.p + 1, rest.n - 2 };
    while (n < countof(groups) && str_cut(&rest, ',', &part))
        if (str_trim(part).n)
            groups[n++] = str_trim(part);
    auth_add_token(a, token, user, str_trim(uid), groups, n);
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
            result = add_token_line(a, path, number, line, e);
    }
    return result;
}

/* ---- authentication */

bool auth_check_token(struct server *s, struct arena *a, struct token_check *t)
{
    if (s->auth && find_token(s->auth, t->token, &t->user)) {
        t->fits = t->wanted;
        return true;
    }
    return token_check(s, a, t);
}

static struct user user_of_certificate(struct arena *a, const struct tls_peer *peer)
{
    struct user u = auth_user(utf8_clean(a, peer->user), peer->groups, peer->group_count);
    struct json *extra = json_new_obj(a), *list = json_new_arr(a);
    str id = arena_printf(a, "X509SHA256=%s", peer->fingerprint);
    json_push(a, list, json_new_str(a, id));
    json_set(a, extra, S("authentication.kubernetes.io/credential-id"), list);
    u.extra = extra;
    return u;
}

/* The bearer token of the request; "": none. */
static str bearer_token(const struct call *c)
{
    str rest = call_header(c, "authorization"), scheme = S("");
    str_cut(&rest, ' ', &scheme);
    return str_eq_nocase(scheme, S("bearer")) && rest.p ? str_trim(rest) : S("");
}

/* A certificate wins over a token. One that cannot be verified causes 401 unless a valid token comes with
 * it; one without a common name is not an identity, whatever groups it names. */
bool call_authenticate(struct call *c)
{
    static const char admins[] = AUTH_ADMINS, anonymous_group[] = "system:unauthenticated";
    static const str masters[] = { { admins, sizeof(admins) - 1 } };
    static const str unauthenticated[] = { { anonymous_group, sizeof(anonymous_group) - 1 } };
    if (!c->server->auth) {
        c->user = auth_user(S("system:admin"), masters, 1);
        return true;
    }
    const struct tls_peer *peer = c->request->peer;
    if (peer && !peer->rejected && peer->user.n) {
        c->user = user_of_certificate(c->arena, peer);
        return true;
    }
    struct token_check t = { .token = bearer_token(c) };
    if (t.token.n && auth_check_token(c->server, c->arena, &t)) {
        c->user = t.user;
        return true;
    }
    if (t.token.n || (peer && peer->rejected) || c->server->no_anonymous) {
        call_status(c, &(struct status){
                           .code = 401, .reason = "Unauthorized", .message = S("Unauthorized") });
        return false;
    }
    c->user = (struct user){ .name = S(AUTH_ANONYMOUS), .groups = unauthenticated, .n_groups = 1 };
    return true;
}

/* ---- authorization */

/* A list or watch of a single object by metadata.name counts as access to that object; deleting a
 * collection never does. */
static str target_name(const struct call *c)
{
    str rest = call_query(c, "fieldSelector"), part;
    if (c->name.n || !rest.p || (c->verb != VERB_LIST && c->verb != VERB_WATCH))
        return c->name;
    while (str_cut(&rest, ',', &part)) {
        if (!str_starts(part, S("metadata.name=")))
            continue;
        part = str_from(part, 14);
        return str_starts(part, S("=")) ? str_from(part, 1) : part;
    }
    return S("");
}

/* Non-resource requests use the HTTP method as their verb. A namespace is its own namespace, so that a role
 * in it can allow access to it. */
struct access access_needed(const struct call *c)
{
    static const char *const words[VERB_N] = { "get",   "get",    "list",
                                               "watch", "create", "update",
                                               "patch", "delete", "deletecollection" };
    if (!c->resource.n)
        return (struct access){ .verb = arena_lower(c->arena, c->request->method),
                                .path = utf8_clean(c->arena, c->request->path) };
    bool space = !c->group.n && str_eq(c->resource, S("namespaces"));
    return (struct access){ .verb = str_c(words[c->verb]),
                            .group = c->group,
                            .resource = c->resource,
                            .subresource = c->subresource,
                            .ns = space ? c->name : c->ns,
                            .name = target_name(c) };
}

static void deny_path(struct call *c, const struct access *w)
{
    str message =
        arena_printf(c->arena,
                     "forbidden: User \"" STR_FMT "\" cannot " STR_FMT " path \"" STR_FMT "\"",
                     STR_ARG(c->user.name), STR_ARG(w->verb), STR_ARG(w->path));
    call_status(c, &(struct status){ .code = 403,
                                     .reason = "Forbidden",
                                     .message = message,
                                     .empty_details = true });
}

/* quoted: kube-apiserver */
void access_deny(struct call *c, const struct access *w)
{
    struct arena *a = c->arena;
    if (!w->resource.n) {
        deny_path(c, w);
        return;
    }
    str quoted = w->name.n ? arena_printf(a, " \"" STR_FMT "\"", STR_ARG(w->name)) : S("");
    str where = w->ns.n ? arena_printf(a, " in the namespace \"" STR_FMT "\"", STR_ARG(w->ns))
                        : S(" at the cluster scope");
    str message = arena_printf(a,
                               STR_FMT "%s" STR_FMT STR_FMT " is forbidden: User \"" STR_FMT
                                       "\" cannot " STR_FMT " resource \"" STR_FMT "%s" STR_FMT
                                       "\" in API group \"" STR_FMT "\"" STR_FMT,
                               STR_ARG(w->resource), w->group.n ? "." : "", STR_ARG(w->group),
                               STR_ARG(quoted), STR_ARG(c->user.name), STR_ARG(w->verb),
                               STR_ARG(w->resource), w->subresource.n ? "/" : "",
                               STR_ARG(w->subresource), STR_ARG(w->group), STR_ARG(where));
    call_status(c, &(struct status){ .code = 403,
                                     .reason = "Forbidden",
                                     .message = message,
                                     .name = w->name,
                                     .group = w->group,
                                     .kind = w->resource });
}

bool call_authorize(struct call *c)
{
    if (!access_impersonate(c))
        return false;
    if (c->user.admin)
        return true;
    struct access w = access_needed(c);
    if (access_is_allowed(c->server, c->arena, &c->user, &w, NULL))
        return true;
    access_deny(c, &w);
    return false;
}

bool call_authorize_create(struct call *c)
{
    struct access w = access_needed(c);
    w.verb = S("create");
    if (c->user.admin || access_is_allowed(c->server, c->arena, &c->user, &w, NULL))
        return true;
    access_deny(c, &w);
    return false;
}
