/* The API server and the network of reconcile.c: what a feature sends is answered in a later turn of the loop, out of
 * `world.objects`. The network ends at http_client_send() and http_client_fetch(), which the linker wraps. Answers are
 * honest unless the input chose otherwise (`unkind`): then they are errors, garbage or cut off. */
#include "reconcile_world.h"

#include "json/merge.h"

#include <stdio.h>

struct call { /* in place of a struct http_call, which is opaque here */
    struct call *next, **place;
    struct http_client *client;
    struct http_request request;
    void (*fetched)(void *context, const struct http_response *response, const err_t *failure);
    struct arena arena;
    struct deferred answer;
    bool watching;
};

struct world world;

struct http_call *__wrap_http_client_send(struct http_client *c, const struct http_request *r);
struct http_call *__wrap_http_client_fetch(struct http_client *c, const struct http_fetch *f);
void __wrap_http_call_cancel(struct http_call *call);
void __wrap_http_call_allow_delay(struct http_call *call);
void __wrap_http_client_free(struct http_client *c);
void __real_http_client_free(struct http_client *c);

/* ---- calls */

static void call_free(struct call *call)
{
    loop_cancel_deferred(&call->answer);
    *call->place = call->next;
    if (call->next)
        call->next->place = call->place;
    arena_done(&call->arena);
    free(call);
}

static void call_end(struct call *call, const err_t *failure)
{
    struct http_request r = call->request;
    call_free(call);
    if (r.on_done)
        r.on_done(r.context, failure);
}

/* Whole answers; false: the owner cancelled meanwhile, and `call` is gone. */
static bool is_alive(const struct call *call)
{
    for (struct call *c = world.calls; c; c = c->next)
        if (c == call)
            return true;
    return false;
}

static bool call_head(struct call *call, int status, str retry_after)
{
    struct http_header header = { S("retry-after"), retry_after };
    if (call->request.on_head)
        call->request.on_head(call->request.context,
                              &(struct http_head){ .status = status,
                                                   .headers = { &header, retry_after.n ? 1 : 0 } });
    return is_alive(call);
}

static bool call_data(struct call *call, str bytes)
{
    if (call->request.on_data && bytes.n)
        call->request.on_data(call->request.context, bytes);
    return is_alive(call);
}

static void answer_with(struct call *call, int status, str body)
{
    static const str pauses[] = { STR_INIT(""), STR_INIT("0"), STR_INIT("1"), STR_INIT("-5"),
                                  STR_INIT("99999999999999999999") };
    bool asks = status == 429 || status >= 500;
    if (call->fetched) {
        struct http_response response = { .status = status, .body = body };
        void *context = call->request.context;
        void (*fetched)(void *, const struct http_response *, const err_t *) = call->fetched;
        struct arena kept = call->arena; /* of the body, until the callback returns */
        call->arena = (struct arena){ 0 };
        call_free(call);
        fetched(context, &response, NULL);
        arena_done(&kept);
        return;
    }
    str pause = asks ? pauses[random_below(&world.random, countof(pauses))] : S("");
    if (call_head(call, status, pause) && call_data(call, body))
        call_end(call, NULL);
}

/* ---- the API server */

str world_next_version(struct arena *a)
{
    return arena_printf(a, "%llu", (unsigned long long)++world.versions);
}

const struct json *world_object_now(const struct object *o)
{
    return o->now ? o->now : o->valid;
}

/* Is `path` that of the collection, of all namespaces or of one? */
static bool is_collection(str path, const struct fuzz_object *of)
{
    if (!str_starts(path, str_c(of->api)))
        return false;
    str rest = str_from(path, strlen(of->api)), part;
    str_cut(&rest, '/', &part);
    if (str_starts(rest, S("namespaces/")) && strcmp(of->plural, "namespaces") != 0) {
        str_cut(&rest, '/', &part);
        str_cut(&rest, '/', &part);
    }
    return str_eqc(rest, of->plural);
}

/* The object that a path ends in, with or without a subresource. */
static struct object *find_object(str path)
{
    for (size_t i = 0; i < world.object_n; i++) {
        struct object *o = &world.objects[i];
        const struct json *meta = json_get(world_object_now(o), "metadata");
        str name = json_text(json_get(meta, "name")), ns = json_text(json_get(meta, "namespace"));
        auto_buf struct buf own = { 0 };
        resource_path(&(struct resource){ "", "", o->of->plural, "", true }, ns, name, S(""), &own);
        size_t at = str_find(buf_str(&own), ns.n ? S("/namespaces/") : str_c(o->of->plural));
        str rest = str_from(path, strlen(o->of->api)), end = str_from(buf_str(&own), at);
        if (!str_starts(path, str_c(o->of->api)) || !name.n || at == SIZE_MAX)
            continue;
        if (!ns.n)
            rest = str_from(rest, 1); /* the slash */
        if (str_starts(rest, end) && (rest.n == end.n || rest.p[end.n] == '/'))
            return o;
    }
    return NULL;
}

/* "metadata.name=..." is the only field selector in use that hides objects. */
static bool is_selected(str target, const struct json *object)
{
    size_t at = str_find(target, S("fieldSelector=metadata.name%3D"));
    if (at == SIZE_MAX)
        return true;
    str name = str_from(target, at + 30);
    name = str_upto(name, str_find_char(name, '&'));
    return str_eq(name, json_text(json_at(object, "metadata", "name", NULL)));
}

static str event_line(struct arena *a, const char *type, const struct json *object)
{
    return arena_printf(a, "{\"type\":\"%s\",\"object\":" STR_FMT "}\n", type,
                        STR_ARG(json_to_str(a, object)));
}

static str path_of(const struct call *call)
{
    return str_upto(call->request.target, str_find_char(call->request.target, '?'));
}

void world_send_event(const struct fuzz_object *of, const char *type, const struct json *object,
                      const struct json *valid)
{
    struct call *told[32];
    size_t n = 0;
    for (struct call *c = world.calls; c && n < countof(told); c = c->next)
        if (c->watching && is_collection(path_of(c), of) && is_selected(c->request.target, valid))
            told[n++] = c;
    if (!n)
        return;
    str line = event_line(&world.input, type, object);
    for (size_t i = 0; i < n; i++)
        if (is_alive(told[i])) /* a callback may end any call */
            call_data(told[i], line);
}

static void open_watch(struct call *call)
{
    str path = path_of(call), target = call->request.target;
    bool initial = str_find(target, S("sendInitialEvents=true")) != SIZE_MAX;
    auto_arena struct arena a = { 0 };
    call->watching = true;
    if (!call_head(call, 200, S("")))
        return;
    for (size_t i = 0; initial && i < world.object_n; i++) {
        const struct object *o = &world.objects[i];
        if (is_collection(path, o->of) && is_selected(target, o->valid) &&
            !call_data(call, event_line(&a, "ADDED", world_object_now(o))))
            return;
    }
    if (initial)
        call_data(call, arena_printf(&a,
                                     "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
                                     "\"resourceVersion\":\"" STR_FMT "\",\"annotations\":{"
                                     "\"k8s.io/initial-events-end\":\"true\"}}}}\n",
                                     STR_ARG(world_next_version(&a))));
}

/* Which kinds a group has: /apis/GROUP/VERSION. */
static str discovery(struct arena *a, str path)
{
    auto_buf struct buf out = { 0 };
    buf_put(&out, S("{\"kind\":\"APIResourceList\",\"resources\":["));
    size_t n = 0;
    for (size_t i = 0; i < world.feature->object_n; i++) {
        const struct object *o = &world.objects[i];
        if (!str_eqc(path, o->of->api))
            continue;
        buf_printf(&out, "%s{\"name\":\"%s\",\"kind\":\"" STR_FMT "\",\"namespaced\":true}",
                   n++ ? "," : "", o->of->plural, STR_ARG(json_text(json_get(o->valid, "kind"))));
    }
    buf_put(&out, S("]}"));
    return n ? arena_str(a, buf_str(&out)) : S("");
}

static void refuse(struct call *call)
{
    static const struct {
        int code;
        const char *reason;
    } words[] = { { 404, "NotFound" }, { 409, "Conflict" },      { 403, "Forbidden" },
                  { 422, "Invalid" },  { 500, "InternalError" }, { 429, "TooManyRequests" } };
    size_t i = random_below(&world.random, countof(words));
    answer_with(call, words[i].code,
                arena_printf(&call->arena, "{\"kind\":\"Status\",\"reason\":\"%s\",\"code\":%d}",
                             words[i].reason, words[i].code));
}

/* An object that the feature made: it is there until the end of the input. `*ret_full`: it should be, but there is no room
 * for it. */
static struct object *add_child(struct call *call, struct json *body, bool *ret_full)
{
    str path = path_of(call), rest = path, part, parts[8];
    size_t n = 0, head = str_starts(path, S("/apis/")) ? 3 : 2, at = world.object_n;
    str name = json_text(json_at(body, "metadata", "name", NULL));
    while (n < countof(parts) && str_cut(&rest, '/', &part))
        if (part.n)
            parts[n++] = part;
    size_t plural = n > head + 2 && str_eqc(parts[head], "namespaces") ? head + 2 : head;
    bool made = str_eq(call->request.method, S("POST")) ? n == plural + 1 : n == plural + 2;
    if (!made || !name.n || str_eqc(parts[plural], "events"))
        return NULL;
    *ret_full = at == world.feature->object_n + CHILDREN_MAX;
    if (*ret_full)
        return NULL;
    struct fuzz_object *of = &world.children[at - world.feature->object_n];
    of->api = arena_str(&world.input, str_upto(path, (size_t)(parts[head].p - path.p) - 1)).p;
    of->plural = arena_str(&world.input, parts[plural]).p;
    struct object *o = &world.objects[world.object_n++];
    struct json *meta = json_make(&world.input, body, "metadata", NULL);
    json_set_str(&world.input, meta, "uid", world_next_version(&world.input));
    json_set_int(&world.input, meta, "generation", 1);
    if (plural > head)
        json_set_str(&world.input, meta, "namespace", parts[head + 1]);
    *o = (struct object){ .of = of, .valid = body };
    return o;
}

/* The object as a believing server has it after the write; NULL: of none that is known. */
static struct json *written(struct call *call, struct object *o, struct object **ret_object,
                            bool *ret_full)
{
    struct json *body = NULL, *after;
    if (json_parse(&world.input, call->request.body, &body, NULL) < 0)
        body = NULL;
    if (!o)
        o = json_is(body, JSON_OBJ) ? add_child(call, body, ret_full) : NULL;
    *ret_object = o;
    if (!o)
        return body;
    bool put = str_eq(call->request.method, S("PUT"));
    after = put ? body
                : merge_patch(&world.input, world_object_now(o),
                              body ? body : json_new_obj(&world.input));
    if (!json_is(after, JSON_OBJ))
        return NULL;
    struct json *meta = json_make(&world.input, after, "metadata", NULL);
    json_set_str(&world.input, meta, "resourceVersion", world_next_version(&world.input));
    return after;
}

static void answer_write(struct call *call)
{
    struct object *o = find_object(path_of(call));
    world.written++;
    if (++world.writes > WRITES_MAX) {
        if (world.writes < WRITES_MAX + 12)
            fprintf(stderr, "reconcile: no end of writes: " STR_FMT " " STR_FMT " " STR_FMT "\n",
                    STR_ARG(call->request.method), STR_ARG(call->request.target),
                    STR_ARG(str_upto(call->request.body, 2000)));
        answer_with(call, 404, S("{}"));
        return;
    }
    if (random_below(&world.random, 256) < world.unkind) {
        refuse(call);
        return;
    }
    if (str_eq(call->request.method, S("DELETE"))) {
        answer_with(call, 200, S("{\"kind\":\"Status\",\"status\":\"Success\"}"));
        return;
    }
    bool full = false;
    struct json *after = written(call, o, &o, &full);
    if (full) { /* as a quota refuses it: what is accepted must be seen again, or its maker makes it for ever */
        answer_with(call, 403, S("{\"kind\":\"Status\",\"reason\":\"Forbidden\",\"code\":403}"));
        return;
    }
    if (!after) {
        answer_with(call, 200, S("{}"));
        return;
    }
    if (o)
        o->now = after;
    struct json *shown = json_copy(&world.input, after);
    if (random_below(&world.random, 256) < world.unkind)
        mutate(&(struct mutation){ &world.input, &world.bytes, world.feature->words, after },
               shown);
    answer_with(call, 200, json_to_str(&world.input, shown));
    if (o)
        world_send_event(o->of, "MODIFIED", after, o->valid);
}

static void answer_read(struct call *call)
{
    str path = path_of(call), found = discovery(&call->arena, path);
    const struct object *o = find_object(path);
    if (found.n)
        answer_with(call, 200, found);
    else if (o)
        answer_with(call, 200, json_to_str(&call->arena, world_object_now(o)));
    else
        answer_with(call, 404, S("{\"kind\":\"Status\",\"reason\":\"NotFound\",\"code\":404}"));
}

/* A Prometheus, and pods that serve metrics. */
static bool answer_metrics(struct call *call)
{
    str path = path_of(call);
    if (str_starts(path, S("/api/v1/query"))) {
        answer_with(call, 200,
                    S("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{"
                      "\"metric\":{\"pod\":\"web-1-a\"},\"value\":[1780000000,\"0.9\"]}]}}"));
        return true;
    }
    if (str_starts(path, S("/metrics"))) {
        answer_with(call, 200,
                    S("vllm:kv_cache_usage_perc{model_name=\"llama\"} 0.9\n"
                      "vllm:num_requests_waiting{model_name=\"llama\"} 7\n"
                      "vllm:request_success_total{model_name=\"llama\"} 12\n"));
        return true;
    }
    return false;
}

static void answer(struct deferred *deferred)
{
    struct call *call = container_of(deferred, struct call, answer);
    if (answer_metrics(call))
        return;
    if (!str_eq(call->request.method, S("GET")))
        answer_write(call);
    else if (str_find(call->request.target, S("watch=true")) != SIZE_MAX)
        open_watch(call);
    else
        answer_read(call);
}

/* ---- in place of the network */

static struct call *call_new(struct http_client *c, const struct http_request *r)
{
    struct call *call = mem_zero(1, sizeof(*call));
    call->client = c;
    call->request = *r;
    call->request.method = arena_str(&call->arena, r->method);
    call->request.target = arena_str(&call->arena, r->target);
    call->request.body = arena_str(&call->arena, r->body);
    call->place = &world.calls;
    call->next = world.calls;
    if (call->next)
        call->next->place = &call->next;
    world.calls = call;
    loop_defer(world.loop, LOOP_SOON, &call->answer, answer);
    return call;
}

struct http_call *__wrap_http_client_send(struct http_client *c, const struct http_request *r)
{
    return (struct http_call *)(void *)call_new(c, r);
}

struct http_call *__wrap_http_client_fetch(struct http_client *c, const struct http_fetch *f)
{
    struct call *call = call_new(c, &(struct http_request){ .method = f->method,
                                                            .target = f->target,
                                                            .body = f->body,
                                                            .context = f->context });
    call->fetched = f->on_done;
    return (struct http_call *)(void *)call;
}

void __wrap_http_call_cancel(struct http_call *call)
{
    if (call && is_alive((struct call *)(void *)call))
        call_free((struct call *)(void *)call);
}

void __wrap_http_call_allow_delay(struct http_call *call UNUSED)
{
}

void __wrap_http_client_free(struct http_client *c)
{
    err_t e;
    err_set(&e, ECANCELED, "the client is being closed");
    for (struct call *call = world.calls, *next; call; call = next) {
        next = call->next;
        if (call->client != c)
            continue;
        call_end(call, &e);
        next = world.calls;
    }
    __real_http_client_free(c);
}
