/* The inspector against a registry in the same process, in virtual time: what it asks, what it refuses, what it keeps, and
 * how many dialogues it has at once. */
#include "base/sha256.h"
#include "net/net.h"
#include "registry/registry.h"
#include "tap.h"

#define CONFIG "{\"config\":{\"Labels\":{\"a\":\"b\"}}}"

struct scene {
    struct loop *loop;
    struct http_server *server;
    struct registry_inspector *inspector;
    struct arena arena;
    uint16_t port;
    char manifest[512];
    size_t requests, manifests, configs, tokens, now,
        most;                  /* asked for; unanswered now, and at most */
    const char *redirect;      /* of the configuration; NULL: answered */
    const char *realm;         /* NULL: no authentication */
    int status;                /* of everything; 0: as it should be */
    bool silent;               /* never answers */
    struct exchange *held[64]; /* while silent */
    size_t held_n;
};

static str header_of(const char *text)
{
    return str_c(text);
}

static void answer_manifest(struct scene *s, struct exchange *x)
{
    char hex[SHA256_HEX + 1];
    sha256_hex(S(CONFIG), hex);
    snprintf(s->manifest, sizeof(s->manifest),
             "{\"schemaVersion\":2,\"config\":{\"digest\":\"sha256:%s\",\"size\":%zu}}", hex,
             strlen(CONFIG));
    s->manifests++;
    exchange_answer(x, 200,
                    HTTP_HEADERS(
                        { S("content-type"), S("application/vnd.oci.image.manifest.v1+json") }),
                    str_c(s->manifest));
}

static void answer_config(struct scene *s, struct exchange *x)
{
    s->configs++;
    if (s->redirect)
        exchange_answer(x, 307, HTTP_HEADERS({ S("location"), header_of(s->redirect) }), S(""));
    else
        exchange_answer(x, 200, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                        S(CONFIG));
}

static void on_request(void *context, struct exchange *x)
{
    struct scene *s = context;
    str path = exchange_path(x), sent = exchange_header(x, S("authorization"));
    s->requests++;
    if (s->silent) {
        s->held[s->held_n++] = x;
    } else if (s->status) {
        exchange_answer(x, s->status, (struct http_headers){ 0 }, S("{}"));
    } else if (str_starts(path, S("/token"))) {
        s->tokens++;
        EQ_STR(sent, S("Basic Ym9iOnNlY3JldA=="));
        exchange_answer(x, 200, (struct http_headers){ 0 }, S("{\"token\":\"t0\"}"));
    } else if (s->realm && !str_eq(sent, S("Bearer t0"))) {
        exchange_answer(x, 401, HTTP_HEADERS({ S("www-authenticate"), header_of(s->realm) }),
                        S("{}"));
    } else if (str_eqc(path, "/v2/")) {
        exchange_answer(x, 200, (struct http_headers){ 0 }, S("{}"));
    } else if (str_find(path, S("/manifests/")) != SIZE_MAX) {
        answer_manifest(s, x);
    } else {
        answer_config(s, x);
    }
}

static void open_scene(struct scene *s, bool allowed)
{
    err_t e;
    *s = (struct scene){ 0 };
    OK_CALL(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL, .start_wall_ns = 1 }, &s->loop,
                     &e),
            &e);
    OK_CALL(http_server_new(s->loop,
                            &(struct http_server_options){
                                .address = "0.0.0.0", .on_request = on_request, .context = s },
                            &s->server, &e),
            &e);
    s->port = http_server_port(s->server);
    s->inspector = registry_inspector_new(&(struct registry_inspector_options){
        .loop = s->loop,
        .plain_http = S("127.0.0.1:*, 127.0.0.2:*"),
        .allow_private = allowed ? S("127.*") : S("10.0.0.1") });
}

static void close_scene(struct scene *s)
{
    registry_inspector_free(s->inspector);
    for (size_t i = 0; i < s->held_n; i++)
        exchange_abort(s->held[i]);
    http_server_free(s->server);
    arena_done(&s->arena);
    loop_free(s->loop);
}

struct outcome {
    bool done;
    enum registry_cause cause;
    char message[256], labels[64];
};

static void on_done(void *context, const struct registry_result *result)
{
    struct outcome *o = context;
    auto_arena struct arena a = { 0 };
    OK(!o->done);
    o->done = true;
    o->cause = result->cause;
    snprintf(o->message, sizeof(o->message), STR_FMT, STR_ARG(result->message));
    if (result->labels)
        snprintf(o->labels, sizeof(o->labels), STR_FMT, STR_ARG(json_to_str(&a, result->labels)));
}

static struct registry_inspection *ask(struct scene *s, const char *host, const char *rest,
                                       bool credentials, struct outcome *ret)
{
    struct registry_inspect q = { .done = on_done, .context = ret, .tenant = S("ns") };
    err_t e;
    str image = arena_printf(&s->arena, "%s:%u/%s", host, s->port, rest);
    OK_CALL(registry_reference_parse(&s->arena, image, &q.image, &e), &e);
    if (credentials)
        q.credentials = (struct registry_credentials){ true, S("bob"), S("secret"), S("") };
    *ret = (struct outcome){ 0 };
    return registry_inspect(s->inspector, &q);
}

static struct outcome inspect(struct scene *s, const char *rest, bool credentials)
{
    struct outcome o;
    ask(s, "127.0.0.1", rest, credentials, &o);
    while (!o.done)
        loop_turn(s->loop);
    return o;
}

static void labels_are_read_and_kept(void)
{
    struct scene s;
    open_scene(&s, true);
    struct outcome o = inspect(&s, "acme/aim:1", false);
    EQ_INT(o.cause, REGISTRY_OK);
    EQ_STR(str_c(o.labels), S("{\"a\":\"b\"}"));
    EQ_INT((int64_t)s.requests, 3);
    o = inspect(&s, "acme/aim:1", false); /* the tag and the digest are known */
    EQ_STR(str_c(o.labels), S("{\"a\":\"b\"}"));
    EQ_INT((int64_t)s.requests, 3);
    o = inspect(&s, "acme/aim:2", false); /* the digest is known, where the tag points to is not */
    EQ_STR(str_c(o.labels), S("{\"a\":\"b\"}"));
    EQ_INT((int64_t)s.manifests, 2);
    EQ_INT((int64_t)s.configs, 1);
    o = inspect(&s, "acme/aim:1", true); /* with other credentials nothing is known */
    EQ_INT((int64_t)s.configs, 2);
    int64_t later = loop_mono_ns(s.loop) + 601 * NS_PER_S;
    struct timer t = { 0 };
    timer_set(s.loop, &t, later, timer_stop);
    while (loop_mono_ns(s.loop) < later)
        loop_turn(s.loop);
    o = inspect(&s, "acme/aim:1", false); /* a tag may have moved */
    EQ_INT((int64_t)s.manifests, 4);
    EQ_INT((int64_t)s.configs, 2);
    close_scene(&s);
}

static void questions_alike_share_a_dialogue(void)
{
    struct scene s;
    struct outcome o[20];
    open_scene(&s, true);
    for (size_t i = 0; i < countof(o); i++)
        ask(&s, "127.0.0.1", "acme/aim:1", false, &o[i]);
    for (size_t i = 0; i < countof(o); i++)
        while (!o[i].done)
            loop_turn(s.loop);
    EQ_INT((int64_t)s.requests, 3);
    for (size_t i = 0; i < countof(o); i++)
        EQ_STR(str_c(o[i].labels), S("{\"a\":\"b\"}"));
    close_scene(&s);
}

static void a_token_is_asked_for(void)
{
    struct scene s;
    char realm[128];
    open_scene(&s, true);
    snprintf(realm, sizeof(realm), "Bearer realm=\"http://127.0.0.1:%u/token\",service=\"reg\"",
             s.port);
    s.realm = realm;
    struct outcome o = inspect(&s, "acme/aim:1", true);
    EQ_INT(o.cause, REGISTRY_OK);
    EQ_INT((int64_t)s.tokens, 1);
    close_scene(&s);
}

/* Neither the registry nor what it names may be on a private network, unless the operator lists it. */
static void private_addresses_are_refused(void)
{
    struct scene s;
    open_scene(&s, false);
    struct outcome o = inspect(&s, "acme/aim:1", true);
    EQ_INT(o.cause, REGISTRY_MALFORMED);
    OK(str_find(str_c(o.message), S("--registry-allow-private")) != SIZE_MAX);
    OK(str_find(str_c(o.message), S("secret")) == SIZE_MAX);
    EQ_INT((int64_t)s.requests, 0);
    close_scene(&s);
}

static void redirects_are_followed_to_a_limit(void)
{
    struct scene s;
    char place[64];
    open_scene(&s, true);
    snprintf(place, sizeof(place), "http://127.0.0.2:%u/again", s.port);
    s.redirect = place;
    struct outcome o = inspect(&s, "acme/aim:1", false);
    EQ_INT(o.cause, REGISTRY_MALFORMED);
    EQ_INT((int64_t)s.configs, 6); /* the first one and 5 redirects */
    close_scene(&s);
}

static void a_registry_that_fails_is_tried_again(void)
{
    struct scene s;
    open_scene(&s, true);
    s.status = 503;
    struct outcome o = inspect(&s, "acme/aim:1", false);
    EQ_INT(o.cause, REGISTRY_UNREACHABLE);
    EQ_INT((int64_t)s.requests, 3);
    s.status = 429;
    o = inspect(&s, "acme/aim:1", false);
    EQ_INT(o.cause, REGISTRY_LIMITED);
    EQ_INT((int64_t)s.requests, 4);
    s.status = 0;
    o = inspect(&s, "acme/aim:1", false); /* a failure is not kept */
    EQ_INT(o.cause, REGISTRY_OK);
    close_scene(&s);
}

/* Four at once, one per registry, two per tenant; each ends after 30 s at the latest. */
static void a_silent_registry_delays_only_its_own(void)
{
    struct scene s;
    struct outcome o[6];
    open_scene(&s, true);
    s.silent = true;
    int64_t begin = loop_mono_ns(s.loop);
    ask(&s, "127.0.0.1", "acme/a:1", false, &o[0]);
    ask(&s, "127.0.0.1", "acme/b:1", false, &o[1]); /* the same registry */
    ask(&s, "127.0.0.2", "acme/c:1", false, &o[2]);
    ask(&s, "127.0.0.3", "acme/d:1", false, &o[3]); /* a third one of the same tenant */
    struct registry_inspection *gone = ask(&s, "127.0.0.4", "acme/e:1", false, &o[4]);
    registry_inspection_cancel(gone);
    while (s.held_n < 2)
        loop_turn(s.loop);
    EQ_INT((int64_t)s.requests, 2);
    while (!o[0].done || !o[2].done)
        loop_turn(s.loop);
    EQ_INT(o[0].cause, REGISTRY_UNREACHABLE);
    EQ_INT((loop_mono_ns(s.loop) - begin) / NS_PER_S, 30);
    while (!o[1].done || !o[3].done)
        loop_turn(s.loop);
    OK(!o[4].done); /* canceled */
    ask(&s, "127.0.0.1", "acme/f:1", false, &o[5]);
    loop_turn(s.loop);
    close_scene(&s); /* in the middle of a dialogue */
    OK(!o[5].done);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(labels_are_read_and_kept),
                                        TAP(questions_alike_share_a_dialogue),
                                        TAP(a_token_is_asked_for),
                                        TAP(private_addresses_are_refused),
                                        TAP(redirects_are_followed_to_a_limit),
                                        TAP(a_registry_that_fails_is_tried_again),
                                        TAP(a_silent_registry_delays_only_its_own),
                                        { 0 } });
}
