/* Pods out of a byte stream into a cache, without a network: framing, parsing, projecting, indexing. */
#include "../test/protobuf_write.h"
#include "base/clock.h"
#include "budget.h"
#include "kube/cache.h"
#include "pods.h"
#include "json/frame.h"

#include <malloc.h>
#include <stdio.h>

struct pod {
    struct record meta;
    const struct labels *labels;
    str node, owner;
    int64_t cpu_milli;
};

static const struct field pod_fields[] = {
    { "metadata.labels", F_MAP, offsetof(struct pod, labels) },
    { "metadata.ownerReferences[controller=true].uid", F_WORD, offsetof(struct pod, owner) },
    { "spec.nodeName", F_WORD, offsetof(struct pod, node) },
    { "spec.containers[].resources.limits.cpu", F_MILLI, offsetof(struct pod, cpu_milli) },
};

static const struct cache_spec spec = { .resource = &resource_pods,
                                        .keep = FIELDS(struct pod, pod_fields),
                                        .indexes = { offsetof(struct pod, node) } };

static int on_item(void *context, str text, err_t *e)
{
    struct record *r;
    int result = project(cache_projection(context), text, &r, e);
    if (result == 0)
        cache_put(context, r);
    return result;
}

static void run(size_t count)
{
    enum { CHUNK = 16 << 10 };
    struct projector *j = projector_new();
    struct cache *cache;
    struct frame frame;
    err_t e = { 0 };
    if (cache_new(j, &spec, &cache, &e) < 0)
        abort();
    frame_init(&frame, FRAME_LIST, on_item, cache);
    struct buf text = { 0 };
    pods_list_begin(&text);
    size_t bytes = 0, heap_before = mallinfo2().uordblks;
    long before = budget_resident_kb();
    int64_t cpu = 0;
    for (size_t i = 0; i <= count; i++) {
        if (i < count)
            pods_write(&text, i, 1000 + i);
        else
            pods_list_end(&text, 7);
        if (i + 1 < count)
            buf_putc(&text, ',');
        bool last = i == count;
        size_t feed = last ? text.n : text.n / CHUNK * CHUNK;
        int64_t start = clock_cpu_ns();
        for (size_t at = 0; at < feed; at += CHUNK)
            if (frame_feed(&frame,
                           str_upto(str_from(buf_str(&text), at), MIN(feed - at, (size_t)CHUNK)),
                           &e) < 0)
                fprintf(stderr, "%s\n", e.text), abort();
        cpu += clock_cpu_ns() - start;
        bytes += feed;
        buf_consume(&text, feed);
    }
    struct cache_sizes sizes = cache_sizes(cache);
    size_t heap = mallinfo2().uordblks - heap_before;
    printf(
        "%7zu pods, %6.1f MB: %6.1f ms CPU, %5.0f MB/s; %zu bytes per pod (heap %zu), RSS +%.1f MB\n",
        sizes.records, (double)bytes / 1e6, (double)cpu / 1e6,
        (double)bytes / 1e6 / ((double)cpu / 1e9), sizes.bytes / count, heap / count,
        (double)(budget_resident_kb() - before) / 1024);
    cache_free(cache);
    frame_done(&frame);
    buf_done(&text);
    projector_free(j);
    malloc_trim(0);
}

/* ---- one event of a watch, again and again */

static void put_protobuf_event(struct buf *out, size_t index, const char *rv)
{
    auto_buf struct buf metadata = { 0 }, rest = { 0 }, message = { 0 }, object = { 0 };
    pods_write_protobuf(&metadata, &rest, index);
    wire_put_bytes(&metadata, 6, str_c(rv));
    wire_put_bytes(&message, 1, buf_str(&metadata));
    buf_put(&message, buf_str(&rest));
    wire_put_object(&object, S("v1"), S("Pod"), buf_str(&message));
    wire_put_event(out, S("MODIFIED"), buf_str(&object));
}

static void put_json_event(struct buf *out, size_t index, uint64_t rv)
{
    buf_put(out, S("{\"type\":\"MODIFIED\",\"object\":"));
    pods_write(out, index, rv);
    buf_put(out, S("}\n"));
}

struct events {
    struct cache *cache;
    bool protobuf;
};

static int on_event(void *context, str text, err_t *e)
{
    struct events *events = context;
    struct projection *p = cache_projection(events->cache);
    struct watch_line line;
    int result = events->protobuf ? project_watch_event(p, text, &line, e)
                                  : project_watch_line(p, text, &line, e);
    if (result == 0)
        cache_put(events->cache, line.record);
    return result;
}

/* Two versions of a pod in turn, of which only the version differs: what most events of a cluster are. */
static void run_events(bool protobuf)
{
    enum { COUNT = 50000 };
    struct projector *j = projector_new();
    struct buf events[2] = { 0 };
    struct frame frame;
    err_t e = { 0 };
    struct events to = { .protobuf = protobuf };
    if (cache_new(j, &spec, &to.cache, &e) < 0)
        abort();
    frame_init(&frame, protobuf ? FRAME_PROTO_WATCH : FRAME_LINES, on_event, &to);
    for (unsigned i = 0; i < 2; i++)
        if (protobuf)
            put_protobuf_event(&events[i], 1, i ? "1001" : "1002");
        else
            put_json_event(&events[i], 1, 1001 + i);
    int64_t start = clock_cpu_ns();
    for (size_t i = 0; i < COUNT; i++)
        if (frame_feed(&frame, buf_str(&events[i % 2]), &e) < 0)
            fprintf(stderr, "%s\n", e.text), abort();
    double us = (double)(clock_cpu_ns() - start) / 1e3 / (double)COUNT;
    printf("watch event of %.1f KB in %s: %.2f us CPU\n", (double)events[0].n / 1e3,
           protobuf ? "protobuf" : "JSON", us);
    budget(protobuf ? "watch event in protobuf, framed and projected"
                    : "watch event in JSON, framed and projected",
           us, protobuf ? 3 : 8, "us CPU");
    cache_free(to.cache);
    frame_done(&frame);
    for (unsigned i = 0; i < 2; i++)
        buf_done(&events[i]);
    projector_free(j);
}

int main(void)
{
    run_events(false);
    run_events(true);
    run(5000);
    run(100000);
    return 0;
}
