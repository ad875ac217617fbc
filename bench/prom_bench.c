/* prom: the answer of a query over 32,000 replicas (1,000 models × 4 variants × 8), read and packed.
 * Budget: 60 ms of CPU. Beside it, what one would write first: the whole answer as one JSON tree,
 * without even looking at it. Then our own /metrics with as many series, written and scraped. */
#include "base/clock.h"
#include "base/metrics.h"
#include "prom/exposition.h"
#include "prom/result.h"
#include "prom/scrape.h"
#include "json/json.h"

#include <stdio.h>

enum { SERIES = 32000, ROUNDS = 7 };

static void put_answer(struct buf *out)
{
    buf_put(out, S("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["));
    for (int i = 0; i < SERIES; i++)
        buf_printf(
            out,
            "%s{\"metric\":{\"pod\":\"llama-decode-%05d-7c9f8d6b54-x%03d\",\"namespace\":\"team-%d\","
            "\"model_name\":\"meta/llama-3.1-8b\"},\"value\":[1767611744.123,\"%.6f\"]}",
            i ? "," : "", i, i % 977, i % 40, (double)i / SERIES);
    buf_put(out, S("]}}"));
}

static double answer_ms(str body, size_t *ret_bytes)
{
    struct arena a = { 0 };
    struct prom_result result = { 0 };
    err_t e;
    int64_t start = clock_cpu_ns();
    if (prom_result_read(&a, body, &result, &e) || result.n != SERIES)
        abort();
    double ms = (double)(clock_cpu_ns() - start) / 1e6;
    *ret_bytes = arena_bytes(&a);
    arena_done(&a);
    return ms;
}

static double tree_ms(str body, size_t *ret_bytes)
{
    struct arena a = { 0 };
    struct json *tree;
    err_t e;
    int64_t start = clock_cpu_ns();
    if (json_parse(&a, body, &tree, &e))
        abort();
    double ms = (double)(clock_cpu_ns() - start) / 1e6;
    *ret_bytes = arena_bytes(&a);
    arena_done(&a);
    return ms;
}

static int count_sample(void *context, const struct scrape_sample *sample, err_t *e)
{
    (void)e;
    *(double *)context += sample->value;
    return 0;
}

static void metrics_round(struct metrics *m, struct buf *out, double *ret_write, double *ret_scrape)
{
    double sum = 0;
    err_t e;
    int64_t start = clock_cpu_ns();
    buf_clear(out);
    exposition_write(out, m);
    int64_t written = clock_cpu_ns();
    if (scrape_read(buf_str(out), count_sample, &sum, &e) || sum != SERIES)
        abort();
    *ret_write = MIN(*ret_write, (double)(written - start) / 1e6);
    *ret_scrape = MIN(*ret_scrape, (double)(clock_cpu_ns() - written) / 1e6);
}

static void bench_metrics(void)
{
    auto_buf struct buf out = { 0 };
    struct metrics *m = metrics_new();
    struct metric_family *f =
        metrics_family(m, &(struct metric_spec){ .name = "wva_desired_replicas",
                                                 .help = "Desired number of replicas",
                                                 .kind = METRIC_GAUGE,
                                                 .labels = { "variant_name", "namespace" } });
    for (int i = 0; i < SERIES; i++) {
        char name[32];
        snprintf(name, sizeof(name), "variant-%d", i);
        metric_set(METRIC(f, str_c(name), S("team")), 1);
    }
    double write = 1e9, scrape = 1e9;
    for (int i = 0; i < ROUNDS; i++)
        metrics_round(m, &out, &write, &scrape);
    printf("/metrics of %d series (%.1f MB): written in %.1f ms, scraped in %.1f ms\n", SERIES,
           (double)out.n / 1e6, write, scrape);
    metrics_free(m);
}

int main(void)
{
    auto_buf struct buf body = { 0 };
    put_answer(&body);
    double packed = 1e9, tree = 1e9;
    size_t packed_bytes = 0, tree_bytes = 0;
    for (int i = 0; i < ROUNDS; i++) {
        packed = MIN(packed, answer_ms(buf_str(&body), &packed_bytes));
        tree = MIN(tree, tree_ms(buf_str(&body), &tree_bytes));
    }
    printf("answer of %d series (%.1f MB): %.1f ms, %.1f MB packed (budget 60 ms)\n", SERIES,
           (double)body.n / 1e6, packed, (double)packed_bytes / 1e6);
    printf("the same as one JSON tree, unread: %.1f ms, %.1f MB: %.2f times ours\n", tree,
           (double)tree_bytes / 1e6, tree / packed);
    bench_metrics();
    return 0;
}
