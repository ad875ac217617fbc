#include "tap.h"

#include "base/buf.h"
#include "base/metrics.h"

static void print_family(void *context, const struct metric_spec *spec)
{
    buf_printf(context, "%s:", spec->name);
}

static void print_series(void *context, const struct metric_view *s)
{
    struct buf *out = context;
    for (size_t i = 0; i < METRIC_LABELS_MAX && s->spec->labels[i]; i++)
        buf_printf(out, " " STR_FMT, STR_ARG(s->values[i]));
    buf_printf(out, "=%g", s->value);
    for (size_t i = 0; s->spec->kind == METRIC_HISTOGRAM && i <= s->spec->bound_n; i++)
        buf_printf(out, "/%d", (int)s->counts[i]);
    buf_putc(out, ';');
}

static const char *shown(struct metrics *m)
{
    static struct buf out;
    buf_clear(&out);
    metrics_read(m, &(struct metrics_reader){ print_family, print_series, &out });
    static char copy[4096];
    snprintf(copy, sizeof(copy), "%s", out.p ? out.p : "");
    buf_done(&out);
    return copy;
}

static void counts(void)
{
    struct metrics *m = metrics_new();
    struct metric_family *adds =
        metrics_family(m, &(struct metric_spec){
                              .name = "adds_total", .help = "x", .labels = { "name", "why" } });
    struct metric_family *depth =
        metrics_family(m, &(struct metric_spec){
                              .name = "a_depth", .help = "x", .kind = METRIC_GAUGE });
    metric_add(METRIC(adds, S("b"), S("x")), 1);
    metric_add(METRIC(adds, S("a"), S("y")), 2);
    metric_add(METRIC(adds, S("b"), S("x")), 1);
    metric_add(METRIC(adds, S("b"), S("")), 5);
    metric_set(METRIC_ALONE(depth), 7);
    metric_add(METRIC_ALONE(depth), -3);
    EQ_STR(str_c(shown(m)), S("a_depth:=4;adds_total: a y=2; b =5; b x=2;"));
    OK(metrics_family(m, &(struct metric_spec){ .name = "adds_total",
                                                .labels = { "name", "why" } }) == adds);
    metrics_free(m);
}

/* Different pairs of values never share a series. */
static void keeps_values_apart(void)
{
    struct metrics *m = metrics_new();
    struct metric_family *f =
        metrics_family(m,
                       &(struct metric_spec){ .name = "f", .help = "x", .labels = { "a", "b" } });
    struct metric *one = METRIC(f, S("ab"), S("c")), *two = METRIC(f, S("a"), S("bc"));
    OK(one != two && one == METRIC(f, S("ab"), S("c")));
    OK(METRIC(f, S("a\0b"), S("")) != METRIC(f, S("a"), S("b")));
    metrics_free(m);
}

static void drops(void)
{
    struct metrics *m = metrics_new();
    struct metric_family *f =
        metrics_family(m, &(struct metric_spec){
                              .name = "f", .help = "x", .labels = { "ns", "name" } });
    for (int i = 0; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "v%02d", i);
        metric_add(METRIC(f, i % 3 ? S("keep") : S("gone"), str_c(name)), 1);
    }
    OK(!metric_drop(f, (const str[]){ S("keep"), S("v00") }));
    OK(metric_drop(f, (const str[]){ S("gone"), S("v00") }));
    OK(!metric_drop(f, (const str[]){ S("gone"), S("v00") })); /* a second time */
    for (int i = 1; i < 100; i++) {
        char name[16];
        snprintf(name, sizeof(name), "v%02d", i);
        OK(metric_drop(f, (const str[]){ i % 3 ? S("keep") : S("gone"), str_c(name) }));
    }
    EQ_STR(str_c(shown(m)), S("f:"));
    metrics_free(m);
}

static void observes(void)
{
    static const double bounds[] = { 0.1, 1, 10 };
    struct metrics *m = metrics_new();
    struct metric_family *f =
        metrics_family(m, &(struct metric_spec){ .name = "h",
                                                 .help = "x",
                                                 .kind = METRIC_HISTOGRAM,
                                                 .bounds = bounds,
                                                 .bound_n = countof(bounds) });
    static const double values[] = { 0.1, 0.05, 0.11, 1, 9, 10.5, 100 };
    for (size_t i = 0; i < countof(values); i++)
        metric_observe(METRIC_ALONE(f), values[i]);
    EQ_STR(str_c(shown(m)), S("h:=120.76/2/2/1/2;"));
    metrics_free(m);
}

static void set_seven(void *context)
{
    metric_set(METRIC_ALONE(context), 7);
}

static void collects_before_reading(void)
{
    struct metrics *m = metrics_new();
    struct metric_family *f =
        metrics_family(m, &(struct metric_spec){ .name = "g", .help = "x", .kind = METRIC_GAUGE });
    metrics_on_read(m, set_seven, f);
    EQ_STR(str_c(shown(m)), S("g:=7;"));
    metrics_free(m);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(counts),
                                        TAP(keeps_values_apart),
                                        TAP(drops),
                                        TAP(observes),
                                        TAP(collects_before_reading),
                                        { 0 } });
}
