/* flyball simulate market: what sizes of pods would serve, under the market and what it is compared
 * with, in virtual time and without a cluster. The plant, the workloads and the policies are in
 * src/testbed; this file reads flags, runs every policy on every workload and seed, and prints
 * means. The same flags give the same bytes. */
#include "cmd.h"
#include "flags.h"
#include "simulate.h"

#include "../json/json.h"
#include "../testbed/market_loads.h"
#include "../testbed/market_policies.h"

#include <math.h>
#include <stdio.h>

enum { CHOSEN_MAX = 16, NODES_MAX = 100000 };

struct options {
    const char *workloads, *policies, *output;
    int64_t seed, seeds, nodes;
    bool busy_system, each;
};

struct row { /* means of one policy on one workload */
    const struct market_policy *policy;
    struct plant_score mean;
    double worst_served, worst_violated, worst_changes;
    int64_t runs;
};

static const char about[] =
    "Usage: flyball simulate market [FLAGS]\n"
    "\n"
    "Runs pods on simulated nodes and prints the share of their CPU demand that each sizing policy\n"
    "serves. Virtual time, no cluster; the same flags give the same output.\n"
    "\n";

/* ---- running */

/* Sums for the means, and the worst run of those numbers whose worst case matters. */
static void add_score(struct row *row, const struct plant_score *s)
{
    struct plant_score *m = &row->mean;
    row->worst_served = row->runs ? fmin(row->worst_served, s->served) : s->served;
    row->worst_violated = fmax(row->worst_violated, s->violated);
    row->worst_changes = fmax(row->worst_changes, s->changes);
    m->served += s->served;
    m->used += s->used;
    m->changes += s->changes;
    m->jain += s->jain;
    m->missed += s->missed;
    m->violated += s->violated;
    m->limits += s->limits;
    m->requests += s->requests;
    m->below_baseline += s->below_baseline;
    m->startup_s += s->startup_s;
    m->oom_kills += s->oom_kills;
    m->memory_used += s->memory_used;
    row->runs++;
}

static void divide_score(struct row *row)
{
    struct plant_score *m = &row->mean;
    double n = (double)row->runs;
    double *const fields[] = { &m->served,         &m->used,      &m->changes,   &m->jain,
                               &m->missed,         &m->violated,  &m->limits,    &m->requests,
                               &m->below_baseline, &m->startup_s, &m->oom_kills, &m->memory_used };
    for (size_t i = 0; i < countof(fields); i++)
        *fields[i] /= n;
}

/* A random workload is another node per seed; the others have the same pods, with other phases at most. */
static void run_policy(const struct options *o, const struct market_workload *w, struct row *row)
{
    int64_t runs = w->random ? o->nodes : o->seeds;
    for (int64_t i = 0; i < runs; i++) {
        struct plant_score s = plant_simulate(w, row->policy, (uint64_t)(o->seed + i),
                                              o->busy_system ? PLANT_RESERVE : 0);
        add_score(row, &s);
        if (o->each)
            fprintf(stderr, "%s %s seed %lld: served %.4f changes %.2f misses %.4f violated %.5f\n",
                    w->name, row->policy->name, (long long)o->seed + i, s.served, s.changes,
                    s.missed, s.violated);
    }
    divide_score(row);
}

/* ---- printing */

static void print_table(const struct market_workload *w, const struct row *rows, size_t n)
{
    printf("%s: %s, %lld %s\n", w->name, w->about, (long long)rows[0].runs,
           w->random ? "nodes" : "seeds");
    printf("  %-15s %7s %8s %7s %8s %6s %9s %8s %9s %9s %7s %7s %7s\n", "POLICY", "SERVED",
           "CHANGES", "MISSES", "VIOLATED", "JAIN", "USED/LIM", "LIM/CAP", "REQ/CORES", "<BASELINE",
           "START", "OOM/DAY", "WS/REQ");
    for (size_t i = 0; i < n; i++) {
        const struct plant_score *m = &rows[i].mean;
        printf("  %-15s %6.1f%% %8.1f %6.1f%% %7.3f%% %6.3f %8.1f%% %7.0f%% %8.0f%% %8.1f%% %6.1fs "
               "%7.2f %6.0f%%\n",
               rows[i].policy->name, m->served * 100, m->changes, m->missed * 100,
               m->violated * 100, m->jain, m->used * 100, m->limits * 100, m->requests * 100,
               m->below_baseline * 100, m->startup_s, m->oom_kills, m->memory_used * 100);
    }
    putchar('\n');
}

static void set_real(struct arena *a, struct json *o, const char *key, double value)
{
    json_set(a, o, str_c(key), json_new_real(a, round(value * 1e6) / 1e6));
}

/* Names state the unit or the denominator, since a reader of the JSON has no column titles. */
static struct json *make_row(struct arena *a, const struct row *row)
{
    struct json *o = json_new_obj(a);
    const struct plant_score *m = &row->mean;
    json_set_str(a, o, "policy", str_c(row->policy->name));
    json_set(a, o, S("runs"), json_new_int(a, row->runs));
    set_real(a, o, "served", m->served);
    set_real(a, o, "changesPerPodHour", m->changes);
    set_real(a, o, "misses", m->missed);
    set_real(a, o, "shareViolations", m->violated);
    set_real(a, o, "jain", m->jain);
    set_real(a, o, "usedOverLimit", m->used);
    set_real(a, o, "worstLimitsOverCapacity", m->limits);
    set_real(a, o, "worstRequestsOverCores", m->requests);
    set_real(a, o, "belowBaseline", m->below_baseline);
    set_real(a, o, "startupSeconds", m->startup_s);
    set_real(a, o, "oomKillsPerPodDay", m->oom_kills);
    set_real(a, o, "workingSetOverRequest", m->memory_used);
    set_real(a, o, "leastServed", row->worst_served);
    set_real(a, o, "mostChangesPerPodHour", row->worst_changes);
    set_real(a, o, "mostShareViolations", row->worst_violated);
    return o;
}

static struct json *make_workload(struct arena *a, const struct market_workload *w,
                                  const struct row *rows, size_t n)
{
    struct json *o = json_new_obj(a), *list = json_new_arr(a);
    json_set_str(a, o, "workload", str_c(w->name));
    json_set_str(a, o, "about", str_c(w->about));
    for (size_t i = 0; i < n; i++)
        json_push(a, list, make_row(a, &rows[i]));
    json_set(a, o, S("policies"), list);
    return o;
}

/* ---- what was asked for */

struct chosen {
    const struct market_workload *workloads[CHOSEN_MAX];
    const struct market_policy *policies[CHOSEN_MAX];
    size_t workload_n, policy_n;
};

/* Resolves the names of workloads and policies, and checks the ranges of all numbers. */
static int check_options(const struct options *o, struct chosen *c, err_t *e)
{
    str names = str_c(o->workloads);
    for (str name; str_cut(&names, ',', &name);) {
        if (c->workload_n == CHOSEN_MAX)
            return err_set(e, EINVAL, "--workload: at most %d workloads", CHOSEN_MAX);
        c->workloads[c->workload_n] = plant_workload_find(str_trim(name));
        if (!c->workloads[c->workload_n++])
            return err_set(e, EINVAL, "--workload " STR_FMT " is unknown; see --help",
                           STR_ARG(name));
    }
    names = str_c(o->policies);
    for (str name; str_cut(&names, ',', &name);) {
        if (c->policy_n == CHOSEN_MAX)
            return err_set(e, EINVAL, "--policy: at most %d policies", CHOSEN_MAX);
        c->policies[c->policy_n] = plant_policy_find(str_trim(name));
        if (!c->policies[c->policy_n++])
            return err_set(e, EINVAL, "--policy " STR_FMT " is unknown; see --help", STR_ARG(name));
    }
    if (o->seed < 0 || o->seeds < 1 || o->nodes < 1 || o->nodes > NODES_MAX || o->seeds > NODES_MAX)
        return err_set(e, EINVAL, "--seed must be 0 or more, --seeds and --nodes 1 to %d",
                       NODES_MAX);
    if (strcmp(o->output, "table") && strcmp(o->output, "json"))
        return err_set(e, EINVAL, "--output is \"%s\", but must be table or json", o->output);
    return 0;
}

/* Prints each workload as soon as it is done, since all of them together take a while; JSON is one document at
 * the end. */
static void run_all(const struct options *o, const struct chosen *c)
{
    auto_arena struct arena a = { 0 };
    bool table = !strcmp(o->output, "table");
    struct json *list = json_new_arr(&a);
    for (size_t i = 0; i < c->workload_n; i++) {
        struct row rows[CHOSEN_MAX] = { 0 };
        for (size_t k = 0; k < c->policy_n; k++) {
            rows[k].policy = c->policies[k];
            run_policy(o, c->workloads[i], &rows[k]);
        }
        if (table)
            print_table(c->workloads[i], rows, c->policy_n);
        else
            json_push(&a, list, make_workload(&a, c->workloads[i], rows, c->policy_n));
        fflush(stdout);
    }
    if (!table)
        printf("%s\n", json_to_str(&a, list).p);
}

/* Lists workloads and policies after the flags, from the tables that they are found in. */
static void print_help(const struct flag *flags)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, str_c(about));
    flags_help(&text, flags);
    buf_put(&text, S("\nWorkloads:\n"));
    for (size_t i = 0; i < market_workload_n; i++)
        buf_printf(&text, "  %-15s %s\n", market_workloads[i].name, market_workloads[i].about);
    buf_put(&text, S("\nPolicies:\n"));
    for (size_t i = 0; plant_policy_at(i); i++)
        buf_printf(&text, "  %-15s %s\n", plant_policy_at(i)->name, plant_policy_at(i)->about);
    fputs(text.p, stdout);
}

/* By default all workloads but `crowd`, on which no rule was tuned, and every policy. */
int cmd_simulate_market(int argc, char **argv)
{
    struct options o = {
        .workloads = "mix8,scarce,many-idle,greedy,not-resizable,web-batch,restarts,"
                     "together,hot-cold,memory,short-memory,random",
        .policies = "static,vpa,autopilot,mbcas,flyball-strict,flyball,flyball-moves,unlimited",
        .output = "table",
        .seed = 1,
        .seeds = 3,
        .nodes = 20
    };
    const struct flag flags[] = {
        { "workload", "LIST", FLAG_TEXT, &o.workloads, "Workloads, separated by commas" },
        { "policy", "LIST", FLAG_TEXT, &o.policies, "Policies to compare, separated by commas" },
        { "seed", "N", FLAG_INT, &o.seed, "First seed" },
        { "seeds", "N", FLAG_INT, &o.seeds, "Number of seeds for workloads that are not random" },
        { "nodes", "N", FLAG_INT, &o.nodes, "Number of random nodes" },
        { "busy-system", NULL, FLAG_BOOL, &o.busy_system,
          "Let the system use all of its reserve of 10 %" },
        { "each", NULL, FLAG_BOOL, &o.each, "Print every run to standard error" },
        { "output", "FORMAT", FLAG_TEXT, &o.output, "Output format: table or json", .letter = 'o' },
        { 0 },
    };
    struct chosen chosen = { 0 };
    bool help = false;
    err_t e;
    if (flags_parse(flags, argc, argv, &help, NULL, &e) < 0 ||
        (!help && check_options(&o, &chosen, &e) < 0))
        return fprintf(stderr, "flyball simulate market: %s\n", e.text), EXIT_USAGE;
    if (help)
        print_help(flags);
    else
        run_all(&o, &chosen);
    return EXIT_SUCCESS;
}
