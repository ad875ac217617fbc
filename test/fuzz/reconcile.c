/* See reconcile.h: starts a feature, changes its objects as the input asks, and lets time pass. The API server that it
 * talks to is in reconcile_server.c. */
#include "reconcile_world.h"

#include "base/log.h"
#include "json/yaml.h"

#include <stdio.h>

enum {
    EVENTS_MAX = 8,     /* chosen by the input */
    STORM_OBJECTS = 56, /* chosen by a sequence that the input seeds */
    STORM_BYTES = 48,   /* for one of them: a few changes of the tree */
    STORM_RESTORE = 8,  /* objects until all are valid again */
    LEAK_CHECK_RUNS = 4096,
    REPORT_RUNS = 1 << 14,
    MUTATIONS_MAX = 6,
    TURNS_MAX = 100000, /* of the loop, in one pause */
};

#define STORM_PAUSE_NS (150 * NS_PER_MS) /* retries are limited to 10 per second */

/* ---- totals */

static void add_turns(void *context, const struct metric_view *series)
{
    if (!strcmp(series->spec->name, "controller_runtime_reconcile_total"))
        *(double *)context += series->value;
}

static void print_totals(void)
{
    double turns = 0;
    metrics_read(manager_metrics(world.manager),
                 &(struct metrics_reader){ .series = add_turns, .context = &turns });
    fprintf(stderr, "reconcile: %llu runs, %llu changed objects, %.0f reconciles, %llu writes\n",
            (unsigned long long)world.runs, (unsigned long long)world.changed, turns,
            (unsigned long long)world.written);
}

/* libFuzzer looks for leaks after each run that frees less than it allocates, which here is every other one: the
 * caches keep what they receive. With -detect_leaks=0 this looks from time to time instead. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

static void end_run(void)
{
    world.runs++;
    if (world.runs % REPORT_RUNS == 0)
        print_totals();
    if (world.runs % LEAK_CHECK_RUNS == 0 && __lsan_do_recoverable_leak_check &&
        __lsan_do_recoverable_leak_check())
        abort();
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
        json_set_str(&world.arena, meta, "resourceVersion", world_next_version(&world.arena));
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
    atexit(print_totals);
    pass(40 * NS_PER_S);
    auto_buf struct buf why_not = { 0 };
    if (!manager_ready(world.manager, &why_not)) {
        fprintf(stderr, "reconcile: " STR_FMT "\n", STR_ARG(buf_str(&why_not)));
        abort();
    }
}

/* ---- an input */

static void change_object(size_t at, const struct json *from)
{
    struct object *o = &world.objects[at];
    struct fuzz_bytes *b = &world.bytes;
    struct json *object = json_copy(&world.input, from);
    world.changed++;
    size_t other = fuzz_byte(b) % world.feature->object_n;
    struct mutation m = { &world.input, b, world.feature->words, world.objects[other].valid };
    for (int i = 0, n = 1 + fuzz_byte(b) % MUTATIONS_MAX; i < n; i++)
        mutate(&m, object);
    struct json *meta = json_get(object, "metadata");
    if (json_is(meta, JSON_OBJ))
        json_set_str(&world.input, meta, "resourceVersion", world_next_version(&world.input));
    if (o->now)
        world_send_event(o->of, "DELETED", o->now, o->valid); /* it may have another name */
    o->now = object;
    world_send_event(o->of, "MODIFIED", object, o->valid);
}

static void put_back(struct object *o)
{
    world_send_event(o->of, "DELETED", o->now, o->valid);
    o->now = NULL;
    struct json *fresh = json_copy(&world.input, o->valid);
    json_set_str(&world.input, json_get(fresh, "metadata"), "resourceVersion",
                 world_next_version(&world.input));
    world_send_event(o->of, "ADDED", fresh, o->valid);
}

static void put_all_back(void)
{
    for (size_t i = 0; i < world.feature->object_n; i++)
        if (world.objects[i].now)
            put_back(&world.objects[i]);
    pass(STORM_PAUSE_NS);
}

static uint64_t seed_of(const uint8_t *data, size_t size) /* FNV-1a: the same in every run */
{
    uint64_t seed = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < size; i++)
        seed = (seed ^ data[i]) * UINT64_C(0x100000001b3);
    return seed;
}

/* Many more objects. Each begins valid, so that changes do not pile up until nothing is left to reconcile. Time passes
 * and all become valid now and then, because a key that fails again and again waits longer each time, and changes in
 * between would be seen by no reconcile. */
static void storm(uint64_t seed)
{
    struct random random;
    random_init(&random, seed, 2);
    for (int i = 0; i < STORM_OBJECTS; i++) {
        uint8_t bytes[STORM_BYTES];
        for (size_t at = 0; at < sizeof(bytes); at++)
            bytes[at] = (uint8_t)random_below(&random, 256);
        world.bytes = (struct fuzz_bytes){ bytes, bytes + sizeof(bytes) };
        size_t at = random_below(&random, (uint32_t)world.feature->object_n);
        change_object(at, world.objects[at].valid);
        pass(STORM_PAUSE_NS);
        if (i % STORM_RESTORE == STORM_RESTORE - 1)
            put_all_back();
    }
    world.bytes = (struct fuzz_bytes){ 0 };
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
        size_t at = fuzz_byte(b) % feature->object_n;
        change_object(at, world_object_now(&world.objects[at]));
        pass(pauses_ms[fuzz_byte(b) % countof(pauses_ms)] * NS_PER_MS + 1);
    }
    storm(seed_of(data, size));
    pass(NS_PER_S);
    world.unkind = 0;
    put_all_back();
    pass(NS_PER_S);
    for (; world.object_n > feature->object_n; world.object_n--) {
        const struct object *o = &world.objects[world.object_n - 1];
        world_send_event(o->of, "DELETED", world_object_now(o), o->valid);
    }
    for (size_t i = 0; i < feature->object_n; i++)
        world.objects[i].now = NULL; /* what was written of it since */
    arena_reset(&world.input, (struct arena_mark){ 0 });
    end_run();
}
