/* See reconcile.h. The network ends at http_client_send() and http_client_fetch(), which the linker wraps: what is
 * sent is answered in a later turn out of `world.objects`. */
#include "reconcile.h"

#include "base/log.h"
#include "base/random.h"
#include "fuzz.h"
#include "mutate.h"
#include "net/http_client.h"
#include "json/merge.h"
#include "json/yaml.h"

#include <stdio.h>

enum {
    EVENTS_MAX = 8,
    OBJECTS_MAX = 32,
    CHILDREN_MAX = 16, /* made by the feature in one input */
    MUTATIONS_MAX = 6,
    TURNS_MAX = 100000, /* of the loop, in one pause */
    WRITES_MAX = 5000,  /* of one input: more is a controller that answers its own writes */
};

struct call { /* stands for a struct http_call, which nobody looks into */
    struct call *next, **place;
    struct http_client *client;
    struct http_request request;
    void (*fetched)(void *context, const struct http_response *response, const err_t *failure);
    struct arena arena;
    struct deferred answer;
    bool watching;
};

struct object {
    const struct fuzz_object *of;
    struct json *valid; /* in the world's arena */
    struct json *now;   /* NULL: as `valid`; in the input's arena */
};

static struct world {
    const struct fuzz_feature *feature;
    struct loop *loop;
    struct kube *kube;
    struct manager *manager;
    struct arena arena, input;
    struct call *calls;
    struct object objects[OBJECTS_MAX + CHILDREN_MAX]; /* the feature's, then what it made */
    size_t object_n;
    struct fuzz_object children[CHILDREN_MAX];
    uint64_t versions;
    int writes;           /* of this input */
    struct random random; /* of answers; seeded by the input */
    uint8_t unkind;       /* how often, of 256, an answer is no honest one */
    struct fuzz_bytes bytes;
} world;

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

static str next_version(struct arena *a)
{
    return arena_printf(a, "%llu", (unsigned long long)++world.versions);
}

static const struct json *now_of(const struct object *o)
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
        const struct json *meta = json_get(now_of(o), "metadata");
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

static void tell(const struct fuzz_object *of, const char *type, const struct json *object,
                 const struct json *valid)
{
    struct call *told[32];
    size_t n = 0;
    str line = event_line(&world.input, type, object);
    for (struct call *c = world.calls; c && n < countof(told); c = c->next)
        if (c->watching && is_collection(path_of(c), of) && is_selected(c->request.target, valid))
            told[n++] = c;
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
            !call_data(call, event_line(&a, "ADDED", now_of(o))))
            return;
    }
    if (initial)
        call_data(call, arena_printf(&a,
                                     "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
                                     "\"resourceVersion\":\"" STR_FMT "\",\"annotations\":{"
                                     "\"k8s.io/initial-events-end\":\"true\"}}}}\n",
                                     STR_ARG(next_version(&a))));
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

/* An object that the feature made: it is there until the end of the input. */
static struct object *add_child(struct call *call, struct json *body)
{
    str path = path_of(call), rest = path, part, parts[8];
    size_t n = 0, head = str_starts(path, S("/apis/")) ? 3 : 2, at = world.object_n;
    str name = json_text(json_at(body, "metadata", "name", NULL));
    while (n < countof(parts) && str_cut(&rest, '/', &part))
        if (part.n)
            parts[n++] = part;
    size_t plural = n > head + 2 && str_eqc(parts[head], "namespaces") ? head + 2 : head;
    bool made = str_eq(call->request.method, S("POST")) ? n == plural + 1 : n == plural + 2;
    if (!made || !name.n || str_eqc(parts[plural], "events") ||
        at == world.feature->object_n + CHILDREN_MAX)
        return NULL;
    struct fuzz_object *of = &world.children[at - world.feature->object_n];
    of->api = arena_str(&world.input, str_upto(path, (size_t)(parts[head].p - path.p) - 1)).p;
    of->plural = arena_str(&world.input, parts[plural]).p;
    struct object *o = &world.objects[world.object_n++];
    struct json *meta = json_make(&world.input, body, "metadata", NULL);
    json_set_str(&world.input, meta, "uid", next_version(&world.input));
    json_set_int(&world.input, meta, "generation", 1);
    if (plural > head)
        json_set_str(&world.input, meta, "namespace", parts[head + 1]);
    *o = (struct object){ .of = of, .valid = body };
    return o;
}

/* The object as a believing server has it after the write; NULL: of none that is known. */
static struct json *written(struct call *call, struct object *o, struct object **ret_object)
{
    struct json *body = NULL, *after;
    if (json_parse(&world.input, call->request.body, &body, NULL) < 0)
        body = NULL;
    if (!o)
        o = json_is(body, JSON_OBJ) ? add_child(call, body) : NULL;
    *ret_object = o;
    if (!o)
        return body;
    bool put = str_eq(call->request.method, S("PUT"));
    after =
        put ? body : merge_patch(&world.input, now_of(o), body ? body : json_new_obj(&world.input));
    if (!json_is(after, JSON_OBJ))
        return NULL;
    struct json *meta = json_make(&world.input, after, "metadata", NULL);
    json_set_str(&world.input, meta, "resourceVersion", next_version(&world.input));
    return after;
}

static void answer_write(struct call *call)
{
    struct object *o = find_object(path_of(call));
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
    struct json *after = written(call, o, &o);
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
        tell(o->of, "MODIFIED", after, o->valid);
}

static void answer_read(struct call *call)
{
    str path = path_of(call), found = discovery(&call->arena, path);
    const struct object *o = find_object(path);
    if (found.n)
        answer_with(call, 200, found);
    else if (o)
        answer_with(call, 200, json_to_str(&call->arena, now_of(o)));
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

/* ---- the world */

static void check(int result, const err_t *e)
{
    if (result >= 0)
        return;
    fprintf(stderr, "reconcile: %s\n", e->text);
    abort();
}

static void tick(struct timer *timer UNUSED)
{
}

static void pass(int64_t ns)
{
    struct timer timer = { 0 };
    timer_set(world.loop, &timer, loop_mono_ns(world.loop) + ns, tick);
    for (int turns = 0; timer_is_set(&timer); turns++) {
        loop_turn(world.loop);
        if (turns > TURNS_MAX) {
            fprintf(stderr, "reconcile: no end of turns in %lld ns\n", (long long)ns);
            abort();
        }
    }
}

static const char *setting(void *context, const char *name)
{
    const char *const *s = world.feature->settings;
    (void)context;
    for (; s && *s; s += 2)
        if (!strcmp(s[0], name))
            return s[1];
    return NULL;
}

static void read_objects(void)
{
    err_t e;
    for (size_t i = 0; i < world.feature->object_n; i++) {
        struct object *o = &world.objects[i];
        o->of = &world.feature->objects[i];
        check(yaml_parse(&world.arena, str_c(o->of->yaml), &o->valid, &e), &e);
        struct json *meta = json_make(&world.arena, o->valid, "metadata", NULL);
        json_set_str(&world.arena, meta, "resourceVersion", next_version(&world.arena));
    }
}

static void swallow(void *context UNUSED, str line UNUSED)
{
}

static void world_start(const struct fuzz_feature *feature)
{
    err_t e;
    assert(feature->object_n <= OBJECTS_MAX);
    log_redirect(swallow, NULL);
    log_setup(LOG_WARN, LOG_TEXT);
    world.feature = feature;
    world.object_n = feature->object_n;
    read_objects();
    check(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL,
                                           .start_wall_ns = INT64_C(1780488000) * NS_PER_S },
                   &world.loop, &e),
          &e);
    struct kube_config config = { .where = S("fuzz"),
                                  .server = S("http://127.0.0.1:1"),
                                  .ns = S("default") };
    check(kube_new(&(struct kube_options){ .loop = world.loop, .config = &config, .rate = -1 },
                   &world.kube, &e),
          &e);
    check(manager_new(&(struct manager_options){ .kube = world.kube,
                                                 .identity = S("fuzz"),
                                                 .setting = setting,
                                                 .seed = 1 },
                      &world.manager, &e),
          &e);
    check(manager_add(world.manager, feature->feature, &e), &e);
    check(manager_run(world.manager, &e), &e);
    pass(40 * NS_PER_S);
    auto_buf struct buf why_not = { 0 };
    if (!manager_ready(world.manager, &why_not)) {
        fprintf(stderr, "reconcile: " STR_FMT "\n", STR_ARG(buf_str(&why_not)));
        abort();
    }
}

/* ---- an input */

static void change_object(size_t at)
{
    struct object *o = &world.objects[at];
    struct fuzz_bytes *b = &world.bytes;
    struct json *object = json_copy(&world.input, now_of(o));
    size_t other = fuzz_byte(b) % world.feature->object_n;
    struct mutation m = { &world.input, b, world.feature->words, world.objects[other].valid };
    for (int i = 0, n = 1 + fuzz_byte(b) % MUTATIONS_MAX; i < n; i++)
        mutate(&m, object);
    struct json *meta = json_get(object, "metadata");
    if (json_is(meta, JSON_OBJ))
        json_set_str(&world.input, meta, "resourceVersion", next_version(&world.input));
    if (o->now)
        tell(o->of, "DELETED", o->now, o->valid); /* it may have another name */
    o->now = object;
    tell(o->of, "MODIFIED", object, o->valid);
}

static void put_back(struct object *o)
{
    tell(o->of, "DELETED", o->now, o->valid);
    o->now = NULL;
    struct json *fresh = json_copy(&world.input, o->valid);
    json_set_str(&world.input, json_get(fresh, "metadata"), "resourceVersion",
                 next_version(&world.input));
    tell(o->of, "ADDED", fresh, o->valid);
}

void fuzz_reconcile(const struct fuzz_feature *feature, const uint8_t *data, size_t size)
{
    static const int64_t pauses_ms[] = { 0, 0, 0,  0,  0,   0,    0,     0,
                                         1, 1, 10, 10, 100, 1000, 16000, 61000 };
    if (!world.loop)
        world_start(feature);
    world.bytes = (struct fuzz_bytes){ data, data + size };
    struct fuzz_bytes *b = &world.bytes;
    uint8_t unkind = fuzz_byte(b);
    world.writes = 0;
    world.unkind = unkind < 128 ? 0 : (uint8_t)((unkind - 128) * 2);
    random_init(&world.random, fuzz_byte(b), 1);
    for (int i = 0; i < EVENTS_MAX && b->p < b->end; i++) {
        change_object(fuzz_byte(b) % feature->object_n);
        pass(pauses_ms[fuzz_byte(b) % countof(pauses_ms)] * NS_PER_MS + 1);
    }
    pass(NS_PER_S);
    world.unkind = 0;
    for (size_t i = 0; i < feature->object_n; i++)
        if (world.objects[i].now)
            put_back(&world.objects[i]);
    pass(NS_PER_S);
    for (; world.object_n > feature->object_n; world.object_n--) {
        const struct object *o = &world.objects[world.object_n - 1];
        tell(o->of, "DELETED", now_of(o), o->valid);
    }
    for (size_t i = 0; i < feature->object_n; i++)
        world.objects[i].now = NULL; /* what was written of it since */
    arena_reset(&world.input, (struct arena_mark){ 0 });
}
