/* Authorization of a path: see guard.h.
 *
 *      request -> cached verdict? ------------------------------> serve, or 401 / 403
 *                   | no
 *                   v
 *                 limit exceeded? --------------------------> 429
 *                   | no
 *                   v
 *                 TokenReview -> SubjectAccessReview -> cache -> serve, or 401 / 403 / 500
 *
 * Verdicts are kept in a ring of 16; the oldest is overwritten. Every entry is compared in
 * constant time. A pending review owns its token and its exchange until finish_review(). A 500
 * is not cached, because it is not a statement about the token. */
#include "guard.h"

#include "../base/list.h"
#include "../base/log.h"

static const struct resource token_reviews = { "authentication.k8s.io", "v1", "tokenreviews",
                                               "TokenReview", false };
static const struct resource access_reviews = { "authorization.k8s.io", "v1",
                                                "subjectaccessreviews", "SubjectAccessReview",
                                                false };
static const int64_t allowed_ns = 60 * NS_PER_S, refused_ns = 10 * NS_PER_S,
                     review_timeout_ns = 10 * NS_PER_S;
enum { VERDICTS = 16, REVIEWS_PER_SECOND = 10, TOKEN_MAX = 16 << 10 };

struct verdict {
    char *token; /* owned; NULL: free */
    int status;  /* 200: allowed */
    int64_t until_ns;
};

struct review { /* pending */
    struct guard *guard;
    struct list_item item; /* of guard->reviews */
    struct exchange *x;
    char *token; /* owned */
    struct kube_call *call;
    void (*serve)(void *context, struct exchange *x);
    void *context;
};

struct guard {
    struct kube *kube;
    const char *path;
    struct verdict verdicts[VERDICTS];
    size_t next; /* to be overwritten */
    struct list reviews;
    int64_t second_ns; /* monotonic second that `reviews_in_it` counts */
    int reviews_in_it;
};

struct guard *guard_new(struct kube *kube, const char *path)
{
    struct guard *g = mem_zero(1, sizeof(*g));
    g->kube = kube;
    g->path = path;
    return g;
}

static void review_free(struct review *r)
{
    list_remove(&r->item);
    free(r->token);
    free(r);
}

void guard_free(struct guard *g)
{
    if (!g)
        return;
    for (struct review *r; (r = list_first(&g->reviews, struct review, item));) {
        kube_call_cancel(r->call);
        exchange_abort(r->x);
        review_free(r);
    }
    for (size_t i = 0; i < VERDICTS; i++)
        free(g->verdicts[i].token);
    free(g);
}

/* ---- the end of a review */

/* Answers with the reason as plain text. */
static void answer_refusal(struct exchange *x, int status)
{
    static const struct http_header plain = { STR_INIT("content-type"), STR_INIT("text/plain") };
    str why = status == 401   ? S("a valid bearer token is required\n")
              : status == 403 ? S("the user of this token is not allowed to get this path\n")
              : status == 429 ? S("too many unknown tokens; try again later\n")
                              : S("cannot review the token: API server unreachable\n");
    if (status == 401)
        exchange_add_header(x, S("www-authenticate"), S("Bearer"));
    exchange_answer(x, status, (struct http_headers){ &plain, 1 }, why);
}

static void cache_verdict(struct guard *g, char *token, int status)
{
    int64_t now = loop_mono_ns(kube_loop(g->kube));
    struct verdict *v = &g->verdicts[g->next++ % VERDICTS];
    free(v->token);
    *v = (struct verdict){ token, status, now + (status == 200 ? allowed_ns : refused_ns) };
}

/* Ends a review: unlinks it, caches the verdict, and serves or refuses the request. */
static void finish_review(struct review *r, int status)
{
    struct guard *g = r->guard;
    list_remove(&r->item);
    if (status != 500) /* not a statement about the token */
        cache_verdict(g, take(r->token), status);
    if (status == 200)
        r->serve(r->context, r->x);
    else
        answer_refusal(r->x, status);
    review_free(r);
}

static bool check_reply(const struct review *r, const struct kube_reply *reply)
{
    if (reply->failure)
        log_warn("cannot authorize a client", KV_C("path", r->guard->path),
                 KV_C("error", reply->failure));
    return !reply->failure;
}

/* ---- the two reviews */

/* Sends a review object. It is sent by a replica that is not the leader too, and before requests
 * that wait for the rate limit, so that scrapes work while the operator is busy. */
static void send_review(struct review *r, const struct resource *resource, struct arena *a,
                        struct json *spec, kube_reply_fn *done)
{
    struct json *body = json_new_obj(a);
    auto_buf struct buf version = { 0 };
    resource_api_version(resource, &version);
    json_set_str(a, body, "apiVersion", arena_str(a, buf_str(&version)));
    json_set_str(a, body, "kind", str_c(resource->kind));
    json_set(a, body, S("spec"), spec);
    r->call = kube_send(r->guard->kube, &(struct kube_request){ .verb = KUBE_CREATE,
                                                                .resource = resource,
                                                                .body = json_to_str(a, body),
                                                                .no_gate = true,
                                                                .timeout_ns = review_timeout_ns,
                                                                .done = done,
                                                                .context = r });
}

static void on_access_reviewed(void *context, const struct kube_reply *reply)
{
    struct review *r = context;
    bool allowed = json_bool(json_at(reply->object, "status", "allowed", NULL), false);
    finish_review(r, !check_reply(r, reply) ? 500 : allowed ? 200 : 403);
}

/* The token is valid: asks whether its user may get the path. */
static void on_token_reviewed(void *context, const struct kube_reply *reply)
{
    struct review *r = context;
    const struct json *status = json_get(reply->object, "status"), *user = json_get(status, "user");
    if (!check_reply(r, reply) || !json_bool(json_get(status, "authenticated"), false)) {
        finish_review(r, reply->failure ? 500 : 401);
        return;
    }
    struct json *spec = json_new_obj(reply->arena), *path = json_new_obj(reply->arena);
    json_set_str(reply->arena, path, "path", str_c(r->guard->path));
    json_set_str(reply->arena, path, "verb", S("get"));
    json_set(reply->arena, spec, S("nonResourceAttributes"), path);
    json_set_str(reply->arena, spec, "user", json_text(json_get(user, "username")));
    static const char *const parts[] = { "uid", "groups", "extra" };
    for (size_t i = 0; i < countof(parts); i++)
        if (json_get(user, parts[i]))
            json_set(reply->arena, spec, str_c(parts[i]),
                     json_copy(reply->arena, json_get(user, parts[i])));
    send_review(r, &access_reviews, reply->arena, spec, on_access_reviewed);
}

/* ---- requests */

/* Returns the status of a cached verdict that is still valid; 0: none. Compares all entries, so
 * that the time does not depend on the token. */
static int find_verdict(const struct guard *g, str token)
{
    int64_t now = loop_mono_ns(kube_loop(g->kube));
    int status = 0;
    for (size_t i = 0; i < VERDICTS; i++) {
        const struct verdict *v = &g->verdicts[i];
        if (v->token && now < v->until_ns && tls_secrets_equal(str_c(v->token), token))
            status = v->status;
    }
    return status;
}

static bool allow_review(struct guard *g)
{
    int64_t second = loop_mono_ns(kube_loop(g->kube)) / NS_PER_S;
    if (second != g->second_ns)
        g->reviews_in_it = 0;
    g->second_ns = second;
    return g->reviews_in_it++ < REVIEWS_PER_SECOND;
}

static str bearer_token(struct exchange *x)
{
    str rest = exchange_header(x, S("authorization")), scheme = S("");
    bool two = rest.p && str_cut(&rest, ' ', &scheme) && rest.p;
    return two && str_eq_nocase(scheme, S("bearer")) ? str_trim(rest) : S("");
}

/* Serves or refuses at once if a recent review of the same token answers the question; otherwise the exchange
 * waits for two reviews. The number of reviews per second is limited, because a client can invent tokens. */
void guard_pass_token(struct guard *g, str token, struct exchange *x,
                      void (*serve)(void *context, struct exchange *x), void *context)
{
    int status = !token.n || token.n > TOKEN_MAX ? 401 : find_verdict(g, token);
    if (!status && !allow_review(g))
        status = 429;
    if (status == 200) {
        serve(context, x);
        return;
    }
    if (status) {
        answer_refusal(x, status);
        return;
    }
    struct review *r = mem_zero(1, sizeof(*r));
    *r = (struct review){
        .guard = g, .x = x, .token = mem_dup(token.p, token.n), .serve = serve, .context = context
    };
    list_append(&g->reviews, &r->item);
    auto_arena struct arena a = { 0 };
    struct json *spec = json_new_obj(&a);
    json_set_str(&a, spec, "token", token);
    send_review(r, &token_reviews, &a, spec, on_token_reviewed);
}

void guard_pass(struct guard *g, struct exchange *x,
                void (*serve)(void *context, struct exchange *x), void *context)
{
    guard_pass_token(g, bearer_token(x), x, serve, context);
}
