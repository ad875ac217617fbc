/* A controller of 100,000 pods and 10,000 custom resources that change all the time: what it holds and costs after its start,
 * and whether that stays so. One JSON line for bench/scale.py:
 *
 *   scaleclient SECONDS     the cluster of $KUBECONFIG; measures this long after both caches are synced
 *
 * Resident memory is sampled twice a second. "early" is the median of the second fifth of the time, when buffers and tables
 * have the size that churn needs, "late" that of the last fifth. */
#include "base/log.h"
#include "base/vec.h"
#include "budget.h"
#include "kube/kube.h"

#include <malloc.h>
#include <stdio.h>

struct pod {
    struct record meta;
    const struct labels *labels;
    str node, owner;
    int64_t cpu_milli, sent_ns;
};

static const struct field pod_fields[] = {
    { "metadata.labels", F_MAP, offsetof(struct pod, labels) },
    { OWNER_UID, F_WORD, offsetof(struct pod, owner) },
    { "spec.nodeName", F_WORD, offsetof(struct pod, node) },
    { "spec.containers[].resources.limits.cpu", F_MILLI, offsetof(struct pod, cpu_milli) },
    { "metadata.annotations.sent", F_MILLI, offsetof(struct pod, sent_ns) },
};

static const struct cache_spec pods = { .resource = &resource_pods,
                                        .keep = FIELDS(struct pod, pod_fields),
                                        .indexes = { offsetof(struct pod, node),
                                                     offsetof(struct pod, owner) } };

struct widget {
    struct record meta;
    int64_t size, sent_ns;
};

static const struct field widget_fields[] = {
    { "spec.size", F_INT, offsetof(struct widget, size) },
    { "status.sentNs", F_INT, offsetof(struct widget, sent_ns) },
};

static const struct resource widget_resource = { "bench.example.org", "v1", "widgets", "Widget",
                                                 true };
static const struct cache_spec widgets = { .resource = &widget_resource,
                                           .keep = FIELDS(struct widget, widget_fields) };

enum kind { PODS, WIDGETS, KINDS };
enum { DELAYS_KEPT = 1 << 16 };

static struct {
    struct loop *loop;
    struct cache *caches[KINDS];
    struct controller *controllers[KINDS];
    struct timer sample;
    int64_t seconds, start_ns, synced_ns, synced_cpu_ns;
    size_t most_depth, changes;
    VEC(long) resident_kb;
    size_t delays;
    int64_t delays_ns[DELAYS_KEPT]; /* the last ones: it must not grow itself */
} run;

static void sample_state(struct timer *timer)
{
    for (size_t i = 0; i < KINDS; i++)
        run.most_depth = MAX(run.most_depth, controller_queue(run.controllers[i])->ready.n);
    vec_push(&run.resident_kb, budget_resident_kb());
    if (clock_mono_ns() - run.synced_ns >= run.seconds * NS_PER_S)
        loop_stop(run.loop);
    else
        timer_set(run.loop, timer, loop_mono_ns(run.loop) + NS_PER_S / 2, sample_state);
}

static void note_delay(int64_t sent_ns)
{
    if (run.synced_ns && sent_ns > run.synced_ns)
        run.delays_ns[run.delays++ % DELAYS_KEPT] = clock_mono_ns() - sent_ns;
}

static struct reconciled reconcile_pod(struct reconcile *r)
{
    const struct pod *p = cache_get(run.caches[PODS], r->ns, r->name);
    run.most_depth = MAX(run.most_depth, controller_queue(r->controller)->ready.n);
    if (p)
        note_delay(p->sent_ns / 1000);
    return reconciled();
}

static struct reconciled reconcile_widget(struct reconcile *r)
{
    const struct widget *w = cache_get(run.caches[WIDGETS], r->ns, r->name);
    if (w)
        note_delay(w->sent_ns);
    return reconciled();
}

static void on_change(void *context, const struct record *old, const struct record *now)
{
    (void)context, (void)old, (void)now;
    run.changes++;
    if (run.synced_ns || !cache_synced(run.caches[PODS]) || !cache_synced(run.caches[WIDGETS]))
        return;
    /* the first change after the list: what came before is the start */
    run.synced_ns = clock_mono_ns();
    run.synced_cpu_ns = clock_cpu_ns();
    run.changes = 0;
    run.most_depth = 0;
    sample_state(&run.sample);
}

static int start_feature(struct manager *m, void **ret_state, err_t *e)
{
    static const struct cache_spec *const specs[] = { &pods, &widgets };
    static struct reconciled (*const functions[])(struct reconcile *) = { reconcile_pod,
                                                                          reconcile_widget };
    *ret_state = NULL;
    for (size_t i = 0; i < KINDS; i++) {
        if (manager_cache(m, specs[i], &run.caches[i], e) < 0)
            return -e->code;
        cache_handle(run.caches[i], on_change, NULL);
        run.controllers[i] =
            manager_controller(m, &(struct controller_spec){ .name = specs[i]->resource->plural,
                                                             .reconcile = functions[i] });
        controller_watch(run.controllers[i], run.caches[i], NULL);
    }
    return 0;
}

static const struct feature feature = { .name = "scale", .start = start_feature };

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static int by_long(const void *a, const void *b)
{
    long x = *(const long *)a, y = *(const long *)b;
    return (x > y) - (x < y);
}

/* The median of the samples from `first` to `last`, in MB. */
static double median_mb(size_t first, size_t last)
{
    size_t n = last - first;
    qsort(run.resident_kb.at + first, n, sizeof(long), by_long);
    return n ? (double)run.resident_kb.at[first + n / 2] / 1024 : 0;
}

static void report(void)
{
    size_t n = run.resident_kb.n, delays = MIN(run.delays, (size_t)DELAYS_KEPT);
    double took_s = (double)(clock_mono_ns() - run.synced_ns) / 1e9;
    double cpu_s = (double)(clock_cpu_ns() - run.synced_cpu_ns) / 1e9;
    double early = median_mb(n / 5, n * 2 / 5), late = median_mb(n * 4 / 5, n);
    if (delays)
        qsort(run.delays_ns, delays, sizeof(int64_t), by_size);
    printf("{\"pods\":%zu,\"widgets\":%zu,\"start_wall_ms\":%.0f,\"start_cpu_ms\":%.0f,"
           "\"seconds\":%.1f,\"changes_a_second\":%.0f,\"cpu_share\":%.4f,\"early_mb\":%.2f,"
           "\"late_mb\":%.2f,\"most_depth\":%zu,\"p50_us\":%.0f,\"p99_us\":%.0f}\n",
           cache_count(run.caches[PODS]), cache_count(run.caches[WIDGETS]),
           (double)(run.synced_ns - run.start_ns) / 1e6, (double)run.synced_cpu_ns / 1e6, took_s,
           (double)run.changes / took_s, cpu_s / took_s, early, late, run.most_depth,
           delays ? (double)run.delays_ns[delays / 2] / 1e3 : 0,
           delays ? (double)run.delays_ns[delays * 99 / 100] / 1e3 : 0);
}

int main(int argc, char **argv)
{
    err_t e;
    struct kube_config *config;
    struct kube *kube;
    struct manager *manager;
    if (argc < 2 || str_to_i64(str_c(argv[1]), &run.seconds) < 0 || run.seconds < 5) {
        fprintf(stderr, "usage: scaleclient SECONDS (5 at least)\n");
        return 2;
    }
    mallopt(M_MMAP_THRESHOLD, 128 << 10); /* as cmd/runtime.c */
    mallopt(M_TOP_PAD, 16 << 10);
    mallopt(M_TRIM_THRESHOLD, 64 << 10);
    mallopt(M_ARENA_MAX, 1);
    memset(run.delays_ns, 1, sizeof(run.delays_ns)); /* resident from the start */
    log_setup(LOG_WARN, LOG_TEXT);
    run.start_ns = clock_mono_ns();
    if (loop_new(&(struct loop_options){ 0 }, &run.loop, &e) < 0 ||
        kube_config_load(&(struct kube_config_options){ 0 }, &config, &e) < 0 ||
        kube_new(&(struct kube_options){ .loop = run.loop, .config = config }, &kube, &e) < 0 ||
        manager_new(&(struct manager_options){ .kube = kube }, &manager, &e) < 0 ||
        manager_add(manager, &feature, &e) < 0 || manager_run(manager, &e) < 0) {
        fprintf(stderr, "scaleclient: %s\n", e.text);
        return 1;
    }
    kube_config_free(config);
    loop_run(run.loop);
    report();
    manager_free(manager);
    kube_free(kube);
    loop_free(run.loop);
    vec_done(&run.resident_kb);
    return 0;
}
