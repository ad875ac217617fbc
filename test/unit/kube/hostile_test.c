/* A server that does not end, repeats itself, sends what no server stores or asks to come back at once. Whatever it does
 * to one kind, memory stays within the limits, the failure is logged, retries back off, and the other kinds go on. */
#include "fake.h"
#include "kube/listwatch.h"
#include "kube/pause_core.h"

#include <malloc.h>

size_t __sanitizer_get_current_allocated_bytes(void) __attribute__((weak));

static size_t heap_bytes(void)
{
    return __sanitizer_get_current_allocated_bytes ? __sanitizer_get_current_allocated_bytes()
                                                   : mallinfo2().uordblks;
}

struct thing {
    struct record meta;
    str spec, note;
};

static const struct field thing_fields[] = {
    { "spec", F_RAW, offsetof(struct thing, spec) },
    { "metadata.annotations.note", F_WORD, offsetof(struct thing, note) },
};
static const struct resource bad = { "test", "v1", "bads", "Bad", true };
static const struct resource good = { "test", "v1", "goods", "Good", true };

enum { TOTAL_MAX = 16 << 20 };
enum { MANY = 12, JUNK = 100000, ATTEMPT_ITEMS = 300 };

/* What the bad kind's server sends: a head, then `unit` for ever or `times`, then a tail. */
struct evil {
    const char *head, *tail;
    void (*unit)(struct buf *out, uint64_t number);
    uint64_t times;    /* 0: for ever */
    bool streams_list; /* it knows streaming lists; else it refuses them */
    bool compress;
};

static const struct evil *evil;
static str field_selector; /* of the bad kind */

struct sending {
    uint64_t at;
    bool begun;
};

struct world {
    struct fake f;
    struct projector *projector;
    struct cache *bads, *goods;
    struct listwatch *bad_watch, *good_watch;
    struct buf trouble; /* the last */
    int troubles;
    size_t heap_before, heap_most;
    int pages;
};

static struct world *world;

static void look_at_heap(void)
{
    size_t now = heap_bytes() - world->heap_before;
    world->heap_most = MAX(world->heap_most, now);
}

static enum stream_more pull(void *context, struct buf *out, size_t room)
{
    struct sending *s = context;
    size_t end = out->n + MIN(room, (size_t)65536);
    look_at_heap();
    if (!s->begun)
        buf_put(out, str_c(evil->head));
    s->begun = true;
    while (out->n < end && (!evil->times || s->at < evil->times))
        evil->unit(out, s->at++);
    if (!evil->times || s->at < evil->times)
        return STREAM_MORE;
    buf_put(out, str_c(evil->tail));
    return STREAM_END;
}

static void closed(void *context, bool complete)
{
    (void)complete;
    free(context);
}

static void send_evil(struct exchange *x)
{
    struct stream_source source = { .pull = pull,
                                    .closed = closed,
                                    .context = mem_zero(1, sizeof(struct sending)),
                                    .compress = evil->compress,
                                    .length = -1 };
    world->pages++;
    exchange_stream(x, 200, HTTP_HEADERS({ S("content-type"), S("application/json") }), &source);
}

static enum stream_more wait_for_ever(void *context, struct buf *out, size_t room)
{
    bool *said = context;
    (void)room;
    if (!*said)
        buf_put(
            out,
            S("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\",\"namespace\":\"n\","
              "\"resourceVersion\":\"1\"}}}\n{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{"
              "\"resourceVersion\":\"1\",\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}"
              "}}}\n"));
    *said = true;
    return STREAM_WAIT;
}

static void serve(struct fake *f, struct exchange *x)
{
    (void)f;
    bool watches = str_find(exchange_query(x), S("watch=true")) != SIZE_MAX;
    if (str_find(exchange_path(x), S("goods")) != SIZE_MAX)
        exchange_stream(x, 200, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                        &(struct stream_source){ .pull = wait_for_ever,
                                                 .closed = closed,
                                                 .context = mem_zero(1, sizeof(bool)),
                                                 .length = -1 });
    else if (watches && !evil->streams_list)
        fake_answer(x, 422, "{\"reason\":\"Invalid\"}");
    else
        send_evil(x);
}

static void on_trouble(void *context, const char *sentence)
{
    struct world *w = context;
    buf_clear(&w->trouble);
    buf_put(&w->trouble, str_c(sentence));
    w->troubles++;
    look_at_heap();
}

static struct cache *open_cache(struct world *w, const struct resource *resource)
{
    struct cache *cache;
    err_t e;
    OK_CALL(cache_new(w->projector,
                      &(struct cache_spec){ .resource = resource,
                                            .field_selector =
                                                resource == &bad ? field_selector : S(""),
                                            .keep = FIELDS(struct thing, thing_fields) },
                      &cache, &e),
            &e);
    return cache;
}

static struct listwatch *watch(struct world *w, struct cache *cache, bool is_bad)
{
    return listwatch_start(&(struct listwatch_options){ .kube = w->f.kube,
                                                        .cache = cache,
                                                        .seed = 3,
                                                        .total_max = TOTAL_MAX,
                                                        .items_max = 50000,
                                                        .on_trouble = is_bad ? on_trouble : NULL,
                                                        .context = w });
}

/* Twenty minutes with it. The other kind is there all the time; the heap has never more than `most` MiB. */
static void endure(const struct evil *e, const char *trouble, size_t most_mib)
{
    struct world w = { 0 };
    world = &w;
    evil = e;
    fake_start(&w.f, serve);
    w.projector = projector_new();
    w.bads = open_cache(&w, &bad);
    w.goods = open_cache(&w, &good);
    w.heap_before = heap_bytes();
    w.good_watch = watch(&w, w.goods, false);
    w.bad_watch = watch(&w, w.bads, true);
    int64_t end = loop_mono_ns(w.f.loop) + 1200 * NS_PER_S;
    while (loop_mono_ns(w.f.loop) < end && w.troubles < 9)
        loop_turn(w.f.loop);
    if (!OK(str_find(buf_str(&w.trouble), str_c(trouble)) != SIZE_MAX))
        printf("# log: " STR_FMT "\n", STR_ARG(buf_str(&w.trouble)));
    OK(w.troubles >= 8);
    OK(loop_mono_ns(w.f.loop) - (end - 1200 * NS_PER_S) > 60 * NS_PER_S); /* it backs off */
    if (!OK(w.heap_most < most_mib << 20))
        printf("# %s: %zu KiB of heap\n", trouble, w.heap_most >> 10);
    OK(cache_synced(w.goods) && cache_count(w.goods) == 1);
    listwatch_stop(w.bad_watch);
    listwatch_stop(w.good_watch);
    cache_free(w.bads);
    cache_free(w.goods);
    projector_free(w.projector);
    fake_stop(&w.f);
    buf_done(&w.trouble);
}

/* ---- lists */

#define LIST_HEAD "{\"kind\":\"BadList\",\"metadata\":{\"resourceVersion\":\"5\"},\"items\":["
#define PAGE(token)                                                                                \
    "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"" token "\"},\"items\":["

static void put_item(struct buf *out, uint64_t number)
{
    buf_printf(
        out,
        "%s{\"metadata\":{\"name\":\"o%llu\",\"namespace\":\"n\",\"resourceVersion\":\"%llu\"},"
        "\"spec\":{\"text\":\"%0900d\"}}",
        number ? "," : "", (unsigned long long)number, (unsigned long long)number, 7);
}

static void put_junk(struct buf *out, uint64_t number)
{
    static char junk[JUNK];
    buf_printf(out, "%s{\"metadata\":{\"name\":\"o%llu\",\"resourceVersion\":\"5\"},\"junk\":\"",
               number ? "," : "", (unsigned long long)number);
    memset(junk, 'x', sizeof(junk));
    buf_put(out, (str){ junk, sizeof(junk) });
    buf_put(out, S("\"}"));
}

static void put_same_item(struct buf *out, uint64_t number)
{
    buf_printf(out, "%s{\"metadata\":{\"name\":\"o\",\"resourceVersion\":\"5\"}}",
               number ? "," : "");
}

static void put_shared_text(struct buf *out, uint64_t number)
{
    buf_printf(
        out,
        "%s{\"metadata\":{\"name\":\"o%llu\",\"resourceVersion\":\"5\",\"annotations\":{\"note\":"
        "\"%0900llu\"}}}",
        number ? "," : "", (unsigned long long)number, (unsigned long long)number);
}

static void a_list_without_end(void)
{
    endure(&(struct evil){ .head = LIST_HEAD, .unit = put_item }, "cache is full", 48);
    endure(&(struct evil){ .head = LIST_HEAD, .unit = put_shared_text }, "cache is full", 48);
}

static void a_list_of_one_object_without_end(void)
{
    endure(&(struct evil){ .head = LIST_HEAD, .unit = put_same_item }, "more than 50000 objects",
           24);
}

/* A backoff limits how often a list is tried, not what a try costs: the lists of all kinds together stay within what
 * struct waste allows. The work is counted in bytes. */
static void lists_without_end_cost_little(void)
{
    struct listwatch *watches[MANY];
    struct cache *caches[MANY];
    struct world w = { 0 };
    const uint64_t attempt = ATTEMPT_ITEMS * (JUNK + 100);
    const uint64_t seconds = 10;
    world = &w;
    evil = &(struct evil){ .head = LIST_HEAD, .unit = put_junk };
    fake_start(&w.f, serve);
    w.projector = projector_new();
    for (size_t i = 0; i < MANY; i++) {
        caches[i] = open_cache(&w, &bad);
        watches[i] = listwatch_start(&(struct listwatch_options){
            .kube = w.f.kube, .cache = caches[i], .seed = i, .items_max = ATTEMPT_ITEMS });
    }
    fake_for(&w.f, (int64_t)seconds * NS_PER_S);
    uint64_t bytes = 0, failures = 0;
    for (size_t i = 0; i < MANY; i++) {
        bytes += listwatch_stats(watches[i])->bytes;
        failures += listwatch_stats(watches[i])->failures;
        listwatch_stop(watches[i]);
        cache_free(caches[i]);
    }
    OK(failures >= MANY);
    uint64_t most = (256 + 8 * seconds) * UINT64_C(1048576) + MANY * attempt;
    if (!OK(bytes < most))
        printf("# %llu MiB were read, %llu lists failed\n", (unsigned long long)bytes >> 20,
               (unsigned long long)failures);
    projector_free(w.projector);
    fake_stop(&w.f);
}

static void wasted_bytes_are_paid_off(void)
{
    struct waste w = { 0 };
    int64_t now = 5 * NS_PER_S;
    const uint64_t mib = 1 << 20;
    EQ_INT(pause_add_waste_ns(&w, 0, now), 0);
    EQ_INT(pause_add_waste_ns(&w, 256 * mib, now), 0); /* a large list may break off once */
    int64_t delay = pause_add_waste_ns(&w, 80 * mib, now);
    OK(delay > 9900 * NS_PER_MS && delay < 10100 * NS_PER_MS);
    OK(pause_add_waste_ns(&w, 0, now + 5 * NS_PER_S) > 4900 * NS_PER_MS);
    EQ_INT(pause_add_waste_ns(&w, 0, now + 11 * NS_PER_S), 0);
    delay = pause_add_waste_ns(&w, UINT64_MAX, now + 11 * NS_PER_S);
    OK(delay > 590 * NS_PER_S && delay < 601 * NS_PER_S);
    EQ_INT(pause_add_waste_ns(&w, 0, now + (int64_t)365 * 86400 * NS_PER_S), 0);
    EQ_INT(w.bytes, 0);
}

static void objects_that_were_not_requested(void)
{
    static const struct evil every_name = { .head = LIST_HEAD, .unit = put_item };
    field_selector = S("metadata.name=one");
    endure(&every_name, "not requested", 24);
    field_selector = S("");
}

static void put_nothing(struct buf *out, uint64_t number)
{
    (void)out;
    (void)number;
}

static void pages_without_end(void)
{
    endure(&(struct evil){ .head = PAGE("x"), .tail = "]}", .unit = put_item, .times = 3 },
           "repeats its continue token", 24);
}

static uint64_t page_number;

static void put_page(struct buf *out, uint64_t number)
{
    (void)number;
    buf_printf(out,
               "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"t%llu\"},\"items\":[]}",
               (unsigned long long)page_number++);
}

static void empty_pages_without_end(void)
{
    endure(&(struct evil){ .head = "", .tail = "", .unit = put_page, .times = 1 },
           "the list never ends", 24);
}

static void put_long_token(struct buf *out, uint64_t number)
{
    (void)number;
    buf_printf(out,
               "{\"metadata\":{\"resourceVersion\":\"5\",\"continue\":\"%0500000d\"},\"items\":[]}",
               1);
}

static void put_long_version(struct buf *out, uint64_t number)
{
    (void)number;
    buf_printf(out, "{\"metadata\":{\"resourceVersion\":\"%0500000d\"},\"items\":[]}", 1);
}

static void words_that_would_be_in_our_next_request(void)
{
    endure(&(struct evil){ .head = "", .tail = "", .unit = put_long_token, .times = 1 },
           "continue token of 500000 bytes", 24);
    endure(&(struct evil){ .head = "", .tail = "", .unit = put_long_version, .times = 1 },
           "resourceVersion of 500000 bytes", 24);
}

/* ---- objects */

#define OBJECT "{\"metadata\":{\"name\":\"o\",\"resourceVersion\":\"5\"},\"spec\":"

static void put_text(struct buf *out, uint64_t number)
{
    (void)number;
    buf_printf(out, "%01000d", 7);
}

static void put_open(struct buf *out, uint64_t number)
{
    (void)number;
    buf_put(out, S("[[[[[[[[[["));
}

static void put_zeros(struct buf *out, uint64_t number)
{
    (void)number;
    buf_put(out, S("0,0,0,0,0,0,0,0,0,0,"));
}

static void an_object_that_is_too_large(void)
{
    endure(&(struct evil){ .head = LIST_HEAD OBJECT "\"", .unit = put_text }, "larger than 4 MiB",
           48);
    endure(&(struct evil){ .head = LIST_HEAD OBJECT "\"", .unit = put_text, .compress = true },
           "larger than 4 MiB", 48);
    endure(&(struct evil){ .head = "{\"type\":\"ADDED\",\"object\":" OBJECT "\"",
                           .unit = put_text,
                           .streams_list = true },
           "larger than 4 MiB", 48);
}

static void an_object_that_costs_more_than_its_text(void)
{
    endure(&(struct evil){ .head = LIST_HEAD OBJECT, .unit = put_open }, "larger than 4 MiB", 48);
    endure(&(struct evil){ .head = "{\"type\":\"ADDED\",\"object\":" OBJECT,
                           .tail = "\n",
                           .unit = put_open,
                           .times = 400000,
                           .streams_list = true },
           "nested more than 512 levels", 48);
    endure(&(struct evil){ .head = "{\"type\":\"ADDED\",\"object\":" OBJECT "[",
                           .tail = "0]}}\n",
                           .unit = put_zeros,
                           .times = 200000,
                           .streams_list = true },
           "more than 300000 values", 48);
}

static void put_blank(struct buf *out, uint64_t number)
{
    (void)number;
    buf_printf(out, "%1000s", "");
}

static void no_list_at_all(void)
{
    endure(&(struct evil){ .head = "{\"a\":\"", .unit = put_text }, "is no list", 24);
    endure(&(struct evil){ .head = "{\"a\":\"", .unit = put_text, .compress = true }, "is no list",
           24);
    endure(&(struct evil){ .head = "{\"a\":", .unit = put_blank, .compress = true }, "is no list",
           24);
    endure(&(struct evil){ .head = "", .tail = "", .unit = put_nothing, .times = 1 },
           "ended in the middle of a list", 24);
}

/* ---- watches */

static void put_bookmark(struct buf *out, uint64_t number)
{
    buf_printf(out,
               "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%llu\"}}}\n",
               (unsigned long long)number);
}

static void bookmarks_without_end(void)
{
    endure(&(struct evil){ .head = "", .unit = put_bookmark, .streams_list = true },
           "bookmarks without end", 24);
}

static void put_event(struct buf *out, uint64_t number)
{
    buf_printf(
        out,
        "{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"o%llu\",\"resourceVersion\":\"%llu\"},"
        "\"spec\":{\"text\":\"%0900d\"}}}\n",
        (unsigned long long)number, (unsigned long long)number, 7);
}

static void initial_events_without_end(void)
{
    endure(&(struct evil){ .head = "", .unit = put_event, .streams_list = true }, "cache is full",
           48);
}

/* ---- answers */

static const char *retry_after;

static void serve_busy(struct fake *f, struct exchange *x)
{
    (void)f;
    exchange_answer(x, 429, HTTP_HEADERS({ S("retry-after"), str_c(retry_after) }), S("{}"));
}

static void on_reply(void *context, const struct kube_reply *reply)
{
    OK(reply->failure != NULL);
    *(bool *)context = true;
}

static void retry_after_is_no_loop(void)
{
    static const char *const all[] = { "0",  "-5",    "Wed, 21 Oct 2015 07:28:00 GMT",
                                       "0x", "1e999", "99999999999999999999999" };
    for (size_t i = 0; i < countof(all); i++) {
        struct fake f;
        bool done = false;
        retry_after = all[i];
        fake_start(&f, serve_busy);
        int64_t start = loop_mono_ns(f.loop);
        kube_send(f.kube, &(struct kube_request){ .verb = KUBE_GET,
                                                  .resource = &resource_pods,
                                                  .ns = S("a"),
                                                  .name = S("b"),
                                                  .done = on_reply,
                                                  .context = &done });
        fake_until(&f, &done);
        OK(f.requests <= 8);
        OK(f.requests == 1 || loop_mono_ns(f.loop) - start > 20 * NS_PER_S);
        OK(loop_mono_ns(f.loop) - start <= 60 * NS_PER_S);
        fake_stop(&f);
    }
}

static void an_answer_without_end(void)
{
    static const struct evil texts = { .head = "{\"a\":\"", .unit = put_text };
    static const struct evil values = {
        .head = "{\"a\":[", .tail = "0]}", .unit = put_zeros, .times = 200000
    };
    for (int i = 0; i < 2; i++) {
        struct world w = { 0 };
        bool done = false;
        world = &w;
        evil = i ? &values : &texts;
        fake_start(&w.f, serve);
        w.heap_before = heap_bytes();
        kube_send(w.f.kube, &(struct kube_request){ .verb = KUBE_GET,
                                                    .resource = &bad,
                                                    .ns = S("a"),
                                                    .name = S("b"),
                                                    .done = on_reply,
                                                    .context = &done });
        fake_until(&w.f, &done);
        look_at_heap();
        if (!OK(w.heap_most < (size_t)(80 << 20)))
            printf("# %zu KiB of heap\n", w.heap_most >> 10);
        fake_stop(&w.f);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_list_without_end),
                                        TAP(a_list_of_one_object_without_end),
                                        TAP(lists_without_end_cost_little),
                                        TAP(wasted_bytes_are_paid_off),
                                        TAP(objects_that_were_not_requested),
                                        TAP(pages_without_end),
                                        TAP(empty_pages_without_end),
                                        TAP(words_that_would_be_in_our_next_request),
                                        TAP(an_object_that_is_too_large),
                                        TAP(an_object_that_costs_more_than_its_text),
                                        TAP(no_list_at_all),
                                        TAP(bookmarks_without_end),
                                        TAP(initial_events_without_end),
                                        TAP(retry_after_is_no_loop),
                                        TAP(an_answer_without_end),
                                        { 0 } });
}
