#include "tap.h"

#include "prom/exposition.h"
#include "prom/scrape.h"

static void writes_the_text_format(void)
{
    static const double bounds[] = { 0.005, 2.5 };
    struct metrics *m = metrics_new();
    struct metric_family *replicas =
        metrics_family(m, &(struct metric_spec){ .name = "wva_desired_replicas",
                                                 .help = "Desired \\ number\nof \"replicas\"",
                                                 .kind = METRIC_GAUGE,
                                                 .labels = { "variant_name", "namespace" } });
    struct metric_family *took = metrics_family(m, &(struct metric_spec){ .name = "took_seconds",
                                                                          .help = "Time",
                                                                          .kind = METRIC_HISTOGRAM,
                                                                          .labels = { "name" },
                                                                          .bounds = bounds,
                                                                          .bound_n = 2 });
    metrics_family(m, &(struct metric_spec){ .name = "zero_total", .help = "None yet" });
    metric_set(METRIC(replicas, S("a\"b\\c\nd"), S("ns")), 3);
    metric_set(METRIC(replicas, S("nan"), S("")), NAN);
    metric_set(METRIC(replicas, S("inf"), S("")), -INFINITY);
    metric_observe(METRIC(took, S("q")), 0.5);
    metric_observe(METRIC(took, S("q")), 0.001);
    auto_buf struct buf out = { 0 };
    exposition_write(&out, m);
    EQ_STR(buf_str(&out),
           S("# HELP took_seconds Time\n"
             "# TYPE took_seconds histogram\n"
             "took_seconds_bucket{name=\"q\",le=\"0.005\"} 1\n"
             "took_seconds_bucket{name=\"q\",le=\"2.5\"} 2\n"
             "took_seconds_bucket{name=\"q\",le=\"+Inf\"} 2\n"
             "took_seconds_sum{name=\"q\"} 0.501\n"
             "took_seconds_count{name=\"q\"} 2\n"
             "# HELP wva_desired_replicas Desired \\\\ number\\nof \"replicas\"\n"
             "# TYPE wva_desired_replicas gauge\n"
             "wva_desired_replicas{variant_name=\"a\\\"b\\\\c\\nd\",namespace=\"ns\"} 3\n"
             "wva_desired_replicas{variant_name=\"inf\",namespace=\"\"} -Inf\n"
             "wva_desired_replicas{variant_name=\"nan\",namespace=\"\"} NaN\n"
             "# HELP zero_total None yet\n"
             "# TYPE zero_total counter\n"));
    metrics_free(m);
}

static int find_odd(void *context, const struct scrape_sample *s, err_t *e)
{
    (void)e;
    if (str_eq(scrape_label(s, S("l")), S("\\\"\n{}=,")) && s->value == 1e300)
        ++*(int *)context;
    return 0;
}

static void what_is_written_reads_back(void)
{
    struct metrics *m = metrics_new();
    struct metric_family *f =
        metrics_family(m, &(struct metric_spec){
                              .name = "x", .help = "", .kind = METRIC_GAUGE, .labels = { "l" } });
    metric_set(METRIC(f, S("\\\"\n{}=,")), 1e300);
    auto_buf struct buf out = { 0 };
    exposition_write(&out, m);
    int found = 0;
    err_t e;
    OK_CALL(scrape_read(buf_str(&out), find_odd, &found, &e), &e);
    EQ_INT(found, 1);
    metrics_free(m);
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(writes_the_text_format), TAP(what_is_written_reads_back), { 0 } });
}
