/* What flyball simulate prints: a table for people, JSON for programs.
 *
 * Both are part of the interface: columns and members are only ever added. A value that does not exist (a
 * ratio to a yardstick that was not run, the latency of a request that was never served) is "-" or "never"
 * in the table and absent in the JSON, which has no way to write infinity. */
#include "simulate.h"

#include "../json/json.h"

#include <math.h>

static void put_ratio(struct buf *out, double value)
{
    if (isnan(value))
        buf_printf(out, " %9s", "-");
    else
        buf_printf(out, " %9.3f", value);
}

static void put_seconds(struct buf *out, int width, double seconds)
{
    if (!isfinite(seconds))
        buf_printf(out, " %*s", width, "never");
    else
        buf_printf(out, " %*.3f", width, seconds);
}

/* A line on the inputs, a line on the start, then one row per policy in the order of --policy. */
void simulate_print_table(struct buf *out, const struct simulate_report *r)
{
    const struct fleet_config *c = r->config;
    buf_printf(out,
               "%zu requests in %.0f s; TTFT <= %g s and ITL <= %g ms for %g %% of them; replicas "
               "start in %g s +- %g s; seed %llu\nAt the start:",
               r->trace.n, (double)r->trace.at[r->trace.n - 1].arrived_ns / 1e9, c->ttft_s,
               c->itl_s * 1e3, c->goal * 100, c->start_mean_s, c->start_sd_s,
               (unsigned long long)c->seed);
    for (size_t v = 0; v < c->variant_n; v++)
        buf_printf(out, "%s %d " STR_FMT, v ? "," : "", r->initial[v],
                   STR_ARG(c->variants[v].name));
    if (r->note)
        buf_printf(out, "\n%s", r->note);
    buf_printf(out, "\n\n%-12s %9s %10s %9s %9s %9s %9s %9s %9s %7s\n", "POLICY", "ATTAINED",
               "COST", "/STATIC", "/ORACLE", "WORST MIN", "CHANGES/H", "P99 TTFT", "P99 ITL",
               "BROKEN");
    for (size_t i = 0; i < r->result_n; i++) {
        const struct fleet_score *s = &r->results[i].score;
        buf_printf(out, "%-12s %8.2f%% %10.2f", r->results[i].policy, s->attained * 100, s->cost);
        put_ratio(out, s->cost / r->best_static_cost);
        put_ratio(out, s->cost / r->oracle_cost);
        buf_printf(out, " %8.2f%% %9.1f", s->worst_minute * 100, s->changes_per_hour);
        put_seconds(out, 8, s->p99_ttft_s);
        buf_putc(out, 's');
        put_seconds(out, 8, s->p99_tpot_s);
        buf_printf(out, "s %7llu\n", (unsigned long long)s->broken);
    }
}

/* Rounded so that the text stays readable and does not depend on the last bits. */
static void set_real(struct arena *a, struct json *o, const char *key, double value)
{
    if (isfinite(value))
        json_set(a, o, str_c(key), json_new_real(a, round(value * 1e6) / 1e6));
}

/* One object; fields that were not computed are left out, so that a reader cannot mistake them for zero. */
void simulate_print_json(struct buf *out, const struct simulate_report *r)
{
    auto_arena struct arena a = { 0 };
    const struct fleet_config *c = r->config;
    struct json *root = json_new_obj(&a), *list = json_new_arr(&a), *initial = json_new_obj(&a);
    json_set_int(&a, root, "requests", (int64_t)r->trace.n);
    set_real(&a, root, "seconds", (double)r->trace.at[r->trace.n - 1].arrived_ns / 1e9);
    set_real(&a, root, "ttftSeconds", c->ttft_s);
    set_real(&a, root, "itlSeconds", c->itl_s);
    set_real(&a, root, "goalPercent", c->goal * 100);
    set_real(&a, root, "startSeconds", c->start_mean_s);
    json_set_int(&a, root, "seed", (int64_t)c->seed);
    for (size_t v = 0; v < c->variant_n; v++)
        json_set(&a, initial, c->variants[v].name, json_new_int(&a, r->initial[v]));
    json_set(&a, root, S("initial"), initial);
    if (r->note)
        json_set_str(&a, root, "note", str_c(r->note));
    json_set(&a, root, S("policies"), list);
    for (size_t i = 0; i < r->result_n; i++) {
        const struct fleet_score *s = &r->results[i].score;
        struct json *o = json_new_obj(&a);
        json_set_str(&a, o, "policy", str_c(r->results[i].policy));
        set_real(&a, o, "attainedPercent", s->attained * 100);
        set_real(&a, o, "cost", s->cost);
        set_real(&a, o, "costOverBestStatic", s->cost / r->best_static_cost);
        set_real(&a, o, "costOverOracle", s->cost / r->oracle_cost);
        set_real(&a, o, "worstMinutePercent", s->worst_minute * 100);
        set_real(&a, o, "changesPerHour", s->changes_per_hour);
        set_real(&a, o, "p99TtftSeconds", s->p99_ttft_s);
        set_real(&a, o, "p99ItlSeconds", s->p99_tpot_s);
        json_set_int(&a, o, "brokenRequests", (int64_t)s->broken);
        json_push(&a, list, o);
    }
    json_write_pretty(out, root);
    buf_putc(out, '\n');
}
