/* What a controller that watches all pods costs: the time, CPU and memory until its cache is synced, then
 * how long an event takes from the server to reconcile(). One JSON line for bench/sync.sh:
 *
 *   syncclient [-json] [EVENTS]     the cluster of $KUBECONFIG; waits for so many events before it ends. -json: as with
 *                                   a server that does not send protobuf
 */
#include "base/log.h"
#include "base/vec.h"
#include "kube/kube.h"

#include <malloc.h>
#include <stdio.h>
#include <unistd.h>

struct pod {
    struct record meta;
    const struct labels *labels;
    str node, owner;
    int64_t cpu_milli;
    int64_t sent_ns, serial; /* of the bench's events */
};

static const struct field pod_fields[] = {
    { "metadata.labels", F_MAP, offsetof(struct pod, labels) },
    { OWNER_UID, F_WORD, offsetof(struct pod, owner) },
    { "spec.nodeName", F_WORD, offsetof(struct pod, node) },
    { "spec.containers[].resources.limits.cpu", F_MILLI, offsetof(struct pod, cpu_milli) },
    { "metadata.annotations.sent", F_MILLI, offsetof(struct pod, sent_ns) },
    { "metadata.annotations.serial", F_MILLI, offsetof(struct pod, serial) },
};

/* Without its kind it is not found in the table of protobuf fields. */
static const struct resource pods_in_json = { "", "v1", "pods", "", true };

static struct cache_spec pods = { .resource = &resource_pods,
                                  .keep = FIELDS(struct pod, pod_fields),
                                  .indexes = { offsetof(struct pod, node) } };

static struct {
    struct loop *loop;
    struct manager *manager;
    struct cache *cache;
    int64_t start_ns, synced_ns, synced_cpu_ns, first_ns;
    long synced_peak_kb;
    size_t wanted, most_depth;
    struct controller *controller;
    VEC(int64_t) delays_ns;
} run;

/* Not getrusage(): that remembers the process we were forked from. */
static long peak_kb(void)
{
    char line[200];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof(line), f))
        if (sscanf(line, "VmHWM: %ld", &kb) == 1)
            break;
    if (f)
        fclose(f);
    return kb;
}

static struct reconciled reconcile(struct reconcile *r)
{
    const struct pod *p = cache_get(run.cache, r->ns, r->name);
    if (!run.synced_ns) {
        run.synced_ns = clock_mono_ns();
        run.synced_cpu_ns = clock_cpu_ns();
        run.synced_peak_kb = peak_kb();
        if (!run.wanted)
            loop_stop(run.loop);
    }
    if (!p || !p->sent_ns)
        return reconciled();
    if (!run.delays_ns.n)
        run.first_ns = clock_mono_ns();
    vec_push(&run.delays_ns, clock_mono_ns() - p->sent_ns / 1000);
    run.most_depth = MAX(run.most_depth, controller_queue(run.controller)->ready.n);
    /* events of one pod may be merged in the queue, but the last one is always seen */
    if ((size_t)p->serial / 1000 >= run.wanted)
        loop_stop(run.loop);
    return reconciled();
}

static int start_feature(struct manager *m, void **ret_state, err_t *e)
{
    *ret_state = NULL;
    if (manager_cache(m, &pods, &run.cache, e) < 0)
        return -e->code;
    run.controller =
        manager_controller(m, &(struct controller_spec){ .name = "pods", .reconcile = reconcile });
    controller_watch(run.controller, run.cache, NULL);
    return 0;
}

static const struct feature feature = { .name = "pods", .start = start_feature };

static int by_size(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

static void report(void)
{
    struct cache_sizes sizes = cache_sizes(run.cache);
    printf("{\"pods\":%zu,\"wall_ms\":%.0f,\"cpu_ms\":%.0f,\"peak_mb\":%.1f,\"bytes_a_pod\":%zu",
           sizes.records, (double)(run.synced_ns - run.start_ns) / 1e6,
           (double)run.synced_cpu_ns / 1e6, (double)run.synced_peak_kb / 1024,
           sizes.bytes / MAX(sizes.records, (size_t)1));
    size_t n = run.delays_ns.n;
    if (n) {
        qsort(run.delays_ns.at, n, sizeof(int64_t), by_size);
        int64_t now = clock_mono_ns();
        printf(",\"events\":%zu,\"events_a_second\":%.0f,\"p50_us\":%.0f,\"p99_us\":%.0f,"
               "\"cpu_us_an_event\":%.1f,\"most_depth\":%zu",
               n, (double)n / ((double)(now - run.first_ns) / 1e9),
               (double)run.delays_ns.at[n / 2] / 1e3, (double)run.delays_ns.at[n * 99 / 100] / 1e3,
               (double)(clock_cpu_ns() - run.synced_cpu_ns) / 1e3 / (double)n, run.most_depth);
    }
    puts("}");
}

int main(int argc, char **argv)
{
    int64_t wanted = 0;
    err_t e;
    struct kube_config *config;
    struct kube *kube;
    if (argc > 1 && !strcmp(argv[1], "-json"))
        pods.resource = &pods_in_json;
    if (argc > 1)
        str_to_i64(str_c(argv[argc - 1]), &wanted);
    run.wanted = (size_t)wanted;
    mallopt(M_ARENA_MAX, 1);
    log_setup(LOG_WARN, LOG_TEXT);
    run.start_ns = clock_mono_ns();
    if (loop_new(&(struct loop_options){ 0 }, &run.loop, &e) < 0 ||
        kube_config_load(&(struct kube_config_options){ 0 }, &config, &e) < 0 ||
        kube_new(&(struct kube_options){ .loop = run.loop, .config = config }, &kube, &e) < 0 ||
        manager_new(&(struct manager_options){ .kube = kube }, &run.manager, &e) < 0 ||
        manager_add(run.manager, &feature, &e) < 0 || manager_run(run.manager, &e) < 0) {
        fprintf(stderr, "syncclient: %s\n", e.text);
        return 1;
    }
    kube_config_free(config);
    loop_run(run.loop);
    report();
    manager_free(run.manager);
    kube_free(kube);
    loop_free(run.loop);
    vec_done(&run.delays_ns);
    return 0;
}
