/* See door_access.h.
 *
 *     request ─► user from the front proxy's headers ─────────────┐
 *             └► bearer token ─► TokenReview ─────────────────────┤
 *                                                   cached? ─► serve or 403
 *                                                      └► SubjectAccessReview ─► serve or 403
 *
 * A pending check owns its exchange until finish_check(). Failed reviews are not cached, because they
 * state nothing about the user. */
#include "door_access.h"

#include "../base/list.h"
#include "../base/log.h"
#include "../json/json.h"

static const struct resource token_reviews = { "authentication.k8s.io", "v1", "tokenreviews",
                                               "TokenReview", false };
static const struct resource access_reviews = { "authorization.k8s.io", "v1",
                                                "subjectaccessreviews", "SubjectAccessReview",
                                                false };
static const int64_t verdict_ns = 10 * NS_PER_S, review_timeout_ns = 10 * NS_PER_S;
enum { VERDICTS = 128, REVIEWS_PER_SECOND = 50, TOKEN_MAX = 16 << 10, GROUPS_MAX = 128 };

struct auth_record {
    struct record meta;
    str data; /* JSON */
};

static const struct field auth_fields[] = {
    { "data", F_RAW, offsetof(struct auth_record, data) },
};
static const struct fields auth_kept = { sizeof(struct auth_record), auth_fields,
                                         countof(auth_fields) };

struct verdict {
    char *key; /* owned: the review; NULL: free */
    bool allowed;
    int64_t until_ns;
};

struct check { /* pending */
    struct door_access *access;
    struct list_item item;
    struct exchange *x;
    struct door_access_handler handler;
    struct arena arena;
    struct json *attributes; /* of the review */
    bool resource;
    str key;
    struct kube_call *call;
};

struct door_access {
    struct manager *manager;
    struct arena arena; /* of the configuration */
    str ca;
    struct json *allowed, *users, *groups, *uids, *extras; /* header names */
    void (*on_ca)(void *context);
    void *context;
    struct list checks;
    struct verdict verdicts[VERDICTS];
    size_t next;
    int64_t second;
    int reviews_in_it;
};

/* ---- configuration */

/* A key of the ConfigMap that is a JSON list of names. */
static struct json *read_list(struct arena *a, const struct json *data, const char *key)
{
    struct json *list = NULL;
    str text = json_text(json_get(data, key));
    return json_parse(a, text, &list, NULL) == 0 && json_is(list, JSON_ARR) ? list : NULL;
}

/* The ConfigMap changed or is gone. All lists live in one arena, which is replaced as a whole. Without the
 * ConfigMap no connection is that of a front proxy. */
static void on_config(void *context, const struct record *old, const struct record *now)
{
    struct door_access *a = context;
    const struct auth_record *r = record_as(struct auth_record, now);
    struct arena fresh = { 0 };
    struct json *data = NULL;
    (void)old;
    if (r && json_parse(&fresh, r->data, &data, NULL) < 0)
        data = NULL;
    str ca = arena_str(&fresh, json_text(json_get(data, "requestheader-client-ca-file")));
    bool changed = !str_eq(ca, a->ca);
    a->ca = ca;
    a->allowed = read_list(&fresh, data, "requestheader-allowed-names");
    a->users = read_list(&fresh, data, "requestheader-username-headers");
    a->groups = read_list(&fresh, data, "requestheader-group-headers");
    a->uids = read_list(&fresh, data, "requestheader-uid-headers");
    a->extras = read_list(&fresh, data, "requestheader-extra-headers-prefix");
    arena_done(&a->arena);
    a->arena = fresh;
    if (changed)
        a->on_ca(a->context);
}

int door_access_new(struct manager *m, void (*on_ca)(void *context), void *context,
                    struct door_access **ret, err_t *e)
{
    static const struct cache_spec spec = {
        .resource = &resource_configmaps,
        .need = CACHE_IF_ALLOWED,
        .keep = &auth_kept,
        .ns = STR_INIT("kube-system"),
        .field_selector = STR_INIT("metadata.name=extension-apiserver-authentication"),
    };
    struct cache *cache;
    if (manager_cache(m, &spec, &cache, e) < 0)
        return -e->code;
    struct door_access *a = mem_zero(1, sizeof(*a));
    a->manager = m;
    a->ca = S("");
    a->on_ca = on_ca;
    a->context = context;
    *ret = a;
    cache_handle(cache, on_config, a);
    return 0;
}

str door_access_front_proxy_ca(const struct door_access *a)
{
    return a->ca;
}

/* ---- the end of a check */

/* Does not answer the exchange: the caller has done so. */
static void free_check(struct check *c)
{
    list_remove(&c->item);
    arena_done(&c->arena);
    free(c);
}

void door_access_free(struct door_access *a)
{
    if (!a)
        return;
    while (a->checks.first) {
        struct check *c = list_first(&a->checks, struct check, item);
        kube_call_cancel(c->call);
        exchange_abort(c->x);
        free_check(c);
    }
    for (size_t i = 0; i < VERDICTS; i++)
        free(a->verdicts[i].key);
    arena_done(&a->arena);
    free(a);
}

/* Ends a check, at once or after its reviews. The exchange belongs to the handler from here on. */
static void finish_check(struct check *c, int status)
{
    if (status == 200)
        c->handler.serve(c->handler.context, c->x);
    else
        c->handler.refuse(c->handler.context, c->x, status);
    free_check(c);
}

static int64_t now_of(const struct door_access *a)
{
    return loop_mono_ns(manager_loop(a->manager));
}

/* The oldest of VERDICTS entries is replaced, so that a client with many tokens cannot grow the cache. */
static void keep_verdict(struct door_access *a, str key, bool allowed)
{
    struct verdict *v = &a->verdicts[a->next++ % VERDICTS];
    free(v->key);
    *v = (struct verdict){ mem_dup(key.p, key.n), allowed, now_of(a) + verdict_ns };
}

/* ---- reviews */

/* `no_gate`: reviews are reads in effect and must work on a replica that is not the leader. */
static void send_review(struct check *c, const struct resource *resource, struct json *spec,
                        kube_reply_fn *done)
{
    struct json *body = json_new_obj(&c->arena);
    auto_buf struct buf version = { 0 };
    resource_api_version(resource, &version);
    json_set_str(&c->arena, body, "apiVersion", buf_str(&version));
    json_set_str(&c->arena, body, "kind", str_c(resource->kind));
    json_set(&c->arena, body, S("spec"), spec);
    c->call = kube_send(manager_kube(c->access->manager),
                        &(struct kube_request){ .verb = KUBE_CREATE,
                                                .resource = resource,
                                                .body = json_to_str(&c->arena, body),
                                                .no_gate = true,
                                                .timeout_ns = review_timeout_ns,
                                                .done = done,
                                                .context = c });
}

/* A failed review is logged here, once, since the client only sees 503. */
static bool check_reply(const struct kube_reply *reply)
{
    if (reply->failure)
        log_warn("cannot authorize a client of external metrics", KV_C("error", reply->failure));
    return !reply->failure;
}

static void on_access_reviewed(void *context, const struct kube_reply *reply)
{
    struct check *c = context;
    bool allowed = json_bool(json_at(reply->object, "status", "allowed", NULL), false);
    if (check_reply(reply))
        keep_verdict(c->access, c->key, allowed);
    finish_check(c, reply->failure ? 503 : allowed ? 200 : 403);
}

/* Only so many reviews per second, so that a client cannot load the API server with them. */
static bool allow_review(struct door_access *a)
{
    int64_t second = now_of(a) / NS_PER_S;
    if (second != a->second)
        a->reviews_in_it = 0;
    a->second = second;
    return a->reviews_in_it++ < REVIEWS_PER_SECOND;
}

/* The user is known: `who` has user, groups, uid and extra. */
static void authorize_user(struct check *c, struct json *who)
{
    struct door_access *a = c->access;
    json_set(&c->arena, who, c->resource ? S("resourceAttributes") : S("nonResourceAttributes"),
             c->attributes);
    c->key = json_to_str(&c->arena, who);
    for (size_t i = 0; i < VERDICTS; i++) {
        const struct verdict *v = &a->verdicts[i];
        if (v->key && now_of(a) < v->until_ns && str_eqc(c->key, v->key)) {
            finish_check(c, v->allowed ? 200 : 403);
            return;
        }
    }
    if (!allow_review(a))
        finish_check(c, 429);
    else
        send_review(c, &access_reviews, who, on_access_reviewed);
}

/* The user of a token is used for the second review, with groups and extra as they are. */
static void on_token_reviewed(void *context, const struct kube_reply *reply)
{
    struct check *c = context;
    const struct json *status = json_get(reply->object, "status"), *user = json_get(status, "user");
    if (!check_reply(reply) || !json_bool(json_get(status, "authenticated"), false)) {
        finish_check(c, reply->failure ? 503 : 401);
        return;
    }
    struct json *who = json_new_obj(&c->arena);
    json_set_str(&c->arena, who, "user", json_text(json_get(user, "username")));
    static const char *const parts[] = { "uid", "groups", "extra" };
    for (size_t i = 0; i < countof(parts); i++)
        if (json_get(user, parts[i]))
            json_set(&c->arena, who, str_c(parts[i]),
                     json_copy(&c->arena, json_get(user, parts[i])));
    authorize_user(c, who);
}

/* ---- the front proxy */

/* A certificate of the front proxy: verified by its CA, and with an allowed name (none listed: any). */
static bool is_front_proxy(const struct door_access *a, const struct exchange *x)
{
    const struct tls_peer *peer = exchange_peer(x);
    if (!a->ca.n || !peer || peer->rejected || !json_len(a->users))
        return false;
    if (!json_len(a->allowed))
        return true;
    for (size_t i = 0; i < json_len(a->allowed); i++)
        if (str_eq(json_text(json_item(a->allowed, i)), peer->user))
            return true;
    return false;
}

static str first_header(const struct exchange *x, const struct json *names)
{
    for (size_t i = 0; i < json_len(names); i++) {
        str value = exchange_header(x, json_text(json_item(names, i)));
        if (value.p && value.n)
            return value;
    }
    return S("");
}

/* Groups are repeated headers; there may be several names for the header. */
static struct json *collect_groups(struct check *c, const struct json *names)
{
    struct json *groups = json_new_arr(&c->arena);
    struct http_headers all = exchange_headers(c->x);
    for (size_t i = 0; i < all.n; i++)
        for (size_t k = 0; k < json_len(names) && json_len(groups) < GROUPS_MAX; k++)
            if (str_eq_nocase(all.at[i].name, json_text(json_item(names, k))))
                json_push(&c->arena, groups, json_new_str(&c->arena, all.at[i].value));
    return groups;
}

/* "X-Remote-Extra-scopes: a" becomes {"scopes": ["a"]}. */
static struct json *collect_extra(struct check *c, const struct json *prefixes)
{
    struct json *extra = json_new_obj(&c->arena);
    struct http_headers all = exchange_headers(c->x);
    for (size_t i = 0; i < all.n; i++)
        for (size_t k = 0; k < json_len(prefixes); k++) {
            str prefix = json_text(json_item(prefixes, k)), name = all.at[i].name;
            if (name.n <= prefix.n || !str_eq_nocase(str_upto(name, prefix.n), prefix))
                continue;
            str key = str_from(name, prefix.n);
            struct json *values = json_get_str(extra, key);
            if (!values) {
                values = json_new_arr(&c->arena);
                json_set(&c->arena, extra, key, values);
            }
            json_push(&c->arena, values, json_new_str(&c->arena, all.at[i].value));
        }
    return extra;
}

/* The user in the headers of the front proxy; NULL: it names none. */
static struct json *read_proxied_user(struct check *c)
{
    const struct door_access *a = c->access;
    str user = first_header(c->x, a->users), uid = first_header(c->x, a->uids);
    if (!user.n)
        return NULL;
    struct json *who = json_new_obj(&c->arena);
    json_set_str(&c->arena, who, "user", user);
    if (uid.n)
        json_set_str(&c->arena, who, "uid", uid);
    json_set(&c->arena, who, S("groups"), collect_groups(c, a->groups));
    json_set(&c->arena, who, S("extra"), collect_extra(c, a->extras));
    return who;
}

/* ---- requests */

static str bearer_token(struct exchange *x)
{
    str rest = exchange_header(x, S("authorization")), scheme = S("");
    bool two = rest.p && str_cut(&rest, ' ', &scheme) && rest.p;
    return two && str_eq_nocase(scheme, S("bearer")) ? str_trim(rest) : S("");
}

static void set_attributes(struct check *c, const struct door_access_action *action)
{
    c->resource = action->resource.n > 0;
    c->attributes = json_new_obj(&c->arena);
    json_set_str(&c->arena, c->attributes, "verb", action->verb);
    if (!c->resource) {
        json_set_str(&c->arena, c->attributes, "path", action->path);
        return;
    }
    json_set_str(&c->arena, c->attributes, "group", action->group);
    json_set_str(&c->arena, c->attributes, "resource", action->resource);
    json_set_str(&c->arena, c->attributes, "namespace", action->ns);
}

/* A connection of the front proxy is never authenticated by a token: it carries the user of another connection. */
void door_access_check(struct door_access *a, struct exchange *x,
                       const struct door_access_action *action,
                       const struct door_access_handler *handler)
{
    struct check *c = mem_zero(1, sizeof(*c));
    c->access = a;
    c->x = x;
    c->handler = *handler;
    list_append(&a->checks, &c->item);
    set_attributes(c, action);
    str token = bearer_token(x);
    if (is_front_proxy(a, x)) {
        struct json *who = read_proxied_user(c);
        if (who)
            authorize_user(c, who);
        else
            finish_check(c, 401);
    } else if (!token.n || token.n > TOKEN_MAX) {
        finish_check(c, 401);
    } else if (!allow_review(a)) {
        finish_check(c, 429);
    } else {
        struct json *spec = json_new_obj(&c->arena);
        json_set_str(&c->arena, spec, "token", token);
        send_review(c, &token_reviews, spec, on_token_reviewed);
    }
}
