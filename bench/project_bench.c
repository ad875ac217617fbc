/* Pods out of a byte stream into a cache, without a network: framing, parsing, projecting, indexing. */
#include "base/clock.h"
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

static long resident_kb(void)
{
    long pages = 0, unused;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%ld %ld", &unused, &pages) != 2)
        pages = 0;
    if (f)
        fclose(f);
    return pages * 4;
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
    long before = resident_kb();
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
        "%7zu pods, %6.1f MB: %6.1f ms CPU, %5.0f MB/s; %zu bytes a pod (heap %zu), RSS +%.1f MB\n",
        sizes.records, (double)bytes / 1e6, (double)cpu / 1e6,
        (double)bytes / 1e6 / ((double)cpu / 1e9), sizes.bytes / count, heap / count,
        (double)(resident_kb() - before) / 1024);
    cache_free(cache);
    frame_done(&frame);
    buf_done(&text);
    projector_free(j);
    malloc_trim(0);
}

int main(void)
{
    run(5000);
    run(100000);
    return 0;
}
