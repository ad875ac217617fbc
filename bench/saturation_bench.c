/* saturation: one cycle over 1,000 models of 4 variants with 8 replicas each, from caches and feeds that
 * are filled: gathering, deciding, metrics out. Budget: 20 ms of CPU.
 *
 * The feature is the real one; its caches are filled by hand and no server is asked. Two kinds of cycle
 * are measured: one in which nothing is new, as nearly all are, and one in which every model's load moved,
 * so that decisions, metrics and the turns to come are made again. */
#include "base/log.h"
#include "budget.h"
#include "saturation/saturation_controller.h"
#include "saturation/saturation_state.h"

#include <stdio.h>
#include <unistd.h>

enum { MODELS = 1000, VARIANTS = 4, REPLICAS = 8, ROUNDS = 20 };

static void check(int result, const err_t *e)
{
    if (result < 0) {
        fprintf(stderr, "saturation_bench: %s\n", e->text);
        exit(EXIT_FAILURE);
    }
}

static void put(struct cache *cache, str json)
{
    struct record *r;
    err_t e;
    check(project(cache_projection(cache), json, &r, &e), &e);
    cache_put(cache, r);
}

static void put_variant(struct saturation *s, struct arena *a, int m, int v)
{
    put(s->deployments,
        arena_printf(
            a,
            "{\"metadata\":{\"namespace\":\"llm\",\"name\":\"d-%d-%d\",\"uid\":\"du-%d-%d\","
            "\"resourceVersion\":\"1\"},\"spec\":{\"replicas\":%d},\"status\":{\"replicas\":%d,"
            "\"readyReplicas\":%d}}",
            m, v, m, v, REPLICAS, REPLICAS, REPLICAS));
    put(s->sets, arena_printf(a,
                              "{\"metadata\":{\"namespace\":\"llm\",\"name\":\"d-%d-%d-x\",\"uid\":"
                              "\"ru-%d-%d\",\"ownerReferences\":[{\"controller\":true,\"uid\":"
                              "\"du-%d-%d\"}]}}",
                              m, v, m, v, m, v));
    for (int p = 0; p < REPLICAS; p++)
        put(s->pods,
            arena_printf(
                a,
                "{\"metadata\":{\"namespace\":\"llm\",\"name\":\"d-%d-%d-x-%d\",\"uid\":"
                "\"p-%d-%d-%d\",\"ownerReferences\":[{\"controller\":true,\"uid\":\"ru-%d-%d\"}]},"
                "\"status\":{\"podIP\":\"10.0.0.1\",\"conditions\":[{\"type\":\"Ready\","
                "\"status\":\"True\"}]}}",
                m, v, p, m, v, p, m, v));
    put(s->variant_records,
        arena_printf(
            a,
            "{\"metadata\":{\"namespace\":\"llm\",\"name\":\"v-%d-%d\",\"uid\":\"vu-%d-%d\","
            "\"generation\":1,\"labels\":{\"inference.optimization/acceleratorName\":\"A100\"}},"
            "\"spec\":{\"modelID\":\"model-%d\",\"variantCost\":\"%d.0\",\"scaleTargetRef\":{"
            "\"kind\":\"Deployment\",\"name\":\"d-%d-%d\"}}}",
            m, v, m, v, m, 10 + v, m, v));
}

static void fill(struct saturation *s)
{
    struct cache *all[] = {
        s->variant_records, s->deployments, s->statefulsets, s->sets, s->pods, s->hpas,
        s->namespaces
    };
    struct sat_report news;
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(all); i++)
        cache_list_begin(all[i]);
    for (int m = 0; m < MODELS; m++)
        for (int v = 0; v < VARIANTS; v++)
            put_variant(s, &a, m, v);
    for (size_t i = 0; i < countof(all); i++)
        cache_list_end(all[i]);
    sat_snapshot_unref(s->snapshot);
    s->snapshot =
        sat_snapshot_new(&(struct sat_sources){ .saturation =
                                                    S("{\"default\":\"kvCacheThreshold: 0.8\"}") },
                         NULL, &news);
}

/* What a fetch would have brought. */
static void feed_all(struct saturation *s, double kv)
{
    int64_t now = loop_mono_ns(manager_loop(s->manager));
    for (struct map_slot *slot = NULL; (slot = map_next(&s->models, slot));) {
        struct sat_model *m = slot->value;
        m->fed = m->feed.asked = true;
        m->feed.fetched_ns = now;
        list_each(struct variant, v, &m->variants, of_model)
            for (int p = 0; p < REPLICAS; p++) {
                char pod[80];
                int n =
                    snprintf(pod, sizeof(pod), STR_FMT "-x-%d", STR_ARG(v->spec.target_name), p);
                struct sat_sample *sample =
                    collect_add_sample(&m->feed.samples, (str){ pod, (size_t)n }, now);
                sample->kv = kv;
                sample->queue = 0;
            }
    }
}

static double cycle_ms(struct saturation *s)
{
    struct arena arena = { 0 };
    struct reconcile r = {
        .name = S("cycle"), .ns = S(""), .now_ns = clock_wall_ns(), .arena = &arena, .context = s
    };
    int64_t begin = clock_cpu_ns();
    saturation_run_cycle(&r);
    double ms = (double)(clock_cpu_ns() - begin) / 1e6;
    arena_done(&arena);
    return ms;
}

static double best_of(struct saturation *s, bool moving)
{
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        if (moving)
            feed_all(s, i % 2 ? 0.65 : 0.05);
        double ms = cycle_ms(s);
        best = ms < best ? ms : best;
    }
    return best;
}

int main(void)
{
    struct loop *loop;
    struct kube *kube;
    struct manager *m;
    void *state;
    err_t e;
    struct kube_config config = { .where = S("a benchmark"), .server = S("http://127.0.0.1:1") };
    log_setup(LOG_ERROR, LOG_TEXT);
    check(loop_new(&(struct loop_options){ 0 }, &loop, &e), &e);
    check(kube_new(&(struct kube_options){ .loop = loop, .config = &config }, &kube, &e), &e);
    check(manager_new(&(struct manager_options){ .kube = kube, .identity = S("bench") }, &m, &e),
          &e);
    long before = budget_resident_kb();
    check(saturation_feature.start(m, &state, &e), &e);
    struct saturation *s = state;
    fill(s);
    feed_all(s, 0.65);
    cycle_ms(s);
    printf("%d models, %d variants, %d replicas: %.1f MB\n", MODELS, MODELS * VARIANTS,
           MODELS * VARIANTS * REPLICAS, (double)(budget_resident_kb() - before) / 1024);
    budget("saturation cycle of 1,000 models", best_of(s, false), 20, "ms");
    budget("saturation cycle, every model moved", best_of(s, true), 20, "ms");
    return 0; /* the system takes back what is left */
}
