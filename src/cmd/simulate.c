/* flyball simulate: what scaling policies would have attained and cost on a recorded trace, in virtual time
 * and without a cluster.
 *
 *     flags --> trace (file, or simulate_prometheus.c) --+
 *               variants (simulate_variants.c)         --+--> initial replicas --> one fleet per policy --> report
 *                                                                                  (testbed/fleet.h)
 *
 * All policies run on the same trace with the same seed and the same initial replicas, one after the other
 * in one thread: the output is a function of the flags and the files, byte for byte. The replica model, the
 * fleet and the policies are in src/testbed; this file only reads flags, runs and prints.
 *
 * Four entries of --policy are not policies but yardsticks that know the trace or part of it: static-peak, the
 * cheapest fleet that never changes, oracle, the cheapest plan (the search for the first is expensive
 * and shared by both), and known-mean and last-minute (testbed/fleet_bounds.c).
 *
 * struct simulation owns everything of a run; strings are borrowed from argv or live in its arena. */
#include "simulate.h"
#include "cmd.h"
#include "flags.h"

#include "../base/clock.h"
#include "../base/duration.h"
#include "../testbed/fleet_search.h"
#include "../testbed/policies.h"

#include <math.h>
#include <stdio.h>
#include <unistd.h>

enum { POLICIES_MAX = 32 };

struct options {
    const char *trace, *variants, *policies, *start, *initial, *reserve, *output, *since;
    struct simulate_source source;
    int64_t ttft_ns, itl_ns, grace_ns, seed;
    double goal, scale, lost; /* percent, factor, percent */
    bool explain, cold, history, no_gateway, marks_victims;
};

struct simulation {
    const struct options *o;
    struct arena arena;
    struct trace trace;
    struct fleet_config config;
    int initial[FLEET_VARIANTS_MAX];
    str policies[POLICIES_MAX];
    size_t policy_n;
    struct simulate_result results[POLICIES_MAX];
    struct simulate_report report;
    bool on_terminal;
    struct fleet_static best_static; /* valid if has_static */
    bool has_static;
    struct policy_history *history; /* owned; NULL: none */
    const char *doing;              /* for the progress bar: the policy or step that runs */
    int64_t shown_ns;               /* when the bar was last drawn, on the monotonic clock */
};

static const char about[] =
    "Usage: flyball simulate --trace FILE --variants FILE [FLAGS]\n"
    "       flyball simulate --from-prometheus URL --model NAME --variants FILE [FLAGS]\n"
    "       flyball simulate market [FLAGS]\n"
    "\n"
    "Replays a recorded trace of requests against simulated vLLM replicas and prints what each scaling\n"
    "policy would have attained and cost. Virtual time, no cluster; the same seed gives the same output.\n"
    "\n"
    "The trace is CSV (TIMESTAMP,ContextTokens,GeneratedTokens as Azure publishes it, or seconds,in,out) or\n"
    "JSON lines ({\"timestamp\": MS, \"input_length\": N, \"output_length\": N}), gzip or plain. The variants are\n"
    "a YAML list of {name, cost, min, max, initial, profile: {baseMs, perSeqMs, perPromptTokenMs,\n"
    "perCachedTokenMs, kvBlocks, blockTokens, maxSeqs, maxBatchedTokens}}.\n"
    "\n";

static const char mean_lengths[] =
    "The trace is made of Prometheus series: arrivals at the measured rate of each step, every request with the "
    "mean prompt and answer length of its step.";

/* ---- flags */

/* "120s", "120s+-15s" or with the sign U+00B1. The default deviation is an eighth of the mean: 15 s of two minutes. */
static int parse_start(const char *text, double *ret_mean, double *ret_sd, err_t *e)
{
    str all = str_c(text), mean = all, deviation = S("");
    static const char *const signs[] = { "\u00b1", "+-", "+/-" };
    for (size_t i = 0; i < countof(signs); i++) {
        size_t at = str_find(all, str_c(signs[i]));
        if (at != SIZE_MAX) {
            mean = str_upto(all, at);
            deviation = str_from(all, at + strlen(signs[i]));
        }
    }
    int64_t mean_ns, sd_ns = -1;
    if (duration_parse(mean, &mean_ns, e) < 0 ||
        (deviation.n && duration_parse(deviation, &sd_ns, e) < 0))
        return err_wrap(e, "--start %s", text);
    if (mean_ns < 0 || mean_ns > 86400 * NS_PER_S || sd_ns > mean_ns)
        return err_set(e, EINVAL,
                       "--start is %s, but must be 0s to 24h, with a deviation of at most that",
                       text);
    *ret_mean = (double)mean_ns / 1e9;
    *ret_sd = sd_ns >= 0 ? (double)sd_ns / 1e9 : *ret_mean / 8;
    return 0;
}

/* "20%" of what the load needs, or a number of replicas. */
static int parse_reserve(const char *text, struct fleet_config *c, err_t *e)
{
    str value = str_c(text ? text : "0");
    bool percent = str_ends(value, S("%"));
    double n;
    if (str_to_f64(percent ? str_upto(value, value.n - 1) : value, &n) < 0 ||
        !(n >= 0 && n <= 10000))
        return err_set(e, EINVAL,
                       "--reserve is %s, but must be a number of replicas or a percentage", text);
    c->reserve = percent ? n / 100 : 0;
    c->reserve_replicas = percent ? 0 : n;
    return 0;
}

/* What can be checked before any file is read, so that a typo is reported at once. */
static int check_options(const struct options *o, err_t *e)
{
    if (!o->trace && !o->source.url)
        return err_set(e, EINVAL, "--trace is missing; it names the file with the requests");
    if (o->trace && o->source.url)
        return err_set(e, EINVAL, "--trace and --from-prometheus exclude each other");
    if (o->source.url && !o->source.model)
        return err_set(e, EINVAL, "--from-prometheus needs --model, the model_name of its series");
    if (!o->variants)
        return err_set(e, EINVAL, "--variants is missing; it names the file with the variants");
    if (o->ttft_ns <= 0 || o->itl_ns <= 0)
        return err_set(e, EINVAL, "--ttft and --itl must be more than 0");
    if (!(o->goal > 0 && o->goal < 100))
        return err_set(e, EINVAL, "--goal is %g, but must be a percentage between 0 and 100",
                       o->goal);
    if (!(o->scale > 0 && o->scale <= 1000))
        return err_set(e, EINVAL, "--scale is %g, but must be more than 0 and at most 1000",
                       o->scale);
    if (!(o->lost >= 0 && o->lost < 100))
        return err_set(e, EINVAL, "--lost-scrapes is %g, but must be a percentage below 100",
                       o->lost);
    if (o->seed < 0)
        return err_set(e, EINVAL, "--seed is %lld, but must be 0 or more", (long long)o->seed);
    if (strcmp(o->output, "table") && strcmp(o->output, "json") && strcmp(o->output, "svg"))
        return err_set(e, EINVAL, "--output is \"%s\", but must be table, json or svg", o->output);
    return 0;
}

/* A Go duration, or days: "7d". */
static int parse_since(const char *text, int64_t *ret_ns, err_t *e)
{
    str value = str_c(text);
    double days;
    if (str_ends(value, S("d"))) {
        if (str_to_f64(str_upto(value, value.n - 1), &days) < 0 || !(days > 0 && days <= 366))
            return err_set(e, EINVAL, "--since is %s, but must be at most 366d", text);
        *ret_ns = (int64_t)(days * 86400e9);
        return 0;
    }
    if (duration_parse(value, ret_ns, e) < 0)
        return err_wrap(e, "--since");
    return *ret_ns > 0 && *ret_ns <= 366 * 86400 * NS_PER_S
               ? 0
               : err_set(e, EINVAL, "--since is %s, but must be more than 0 and at most 366d",
                         text);
}

/* ---- progress, on a terminal only */

/* Draws a bar on standard error, at most ten times per second. Never gives up: returns true. */
static bool show_progress(void *context, double share)
{
    struct simulation *s = context;
    int64_t now = clock_mono_ns();
    if (!s->on_terminal || now - s->shown_ns < 100 * NS_PER_MS)
        return true;
    s->shown_ns = now;
    enum { WIDTH = 40 };
    char bar[WIDTH + 1];
    for (int i = 0; i < WIDTH; i++)
        bar[i] = i < (int)(share * WIDTH) ? '#' : '.';
    bar[WIDTH] = '\0';
    fprintf(stderr, "\r%-14s [%s] %3.0f %%", s->doing, bar, share * 100);
    return true;
}

static void clear_progress(const struct simulation *s)
{
    if (s->on_terminal)
        fprintf(stderr, "\r%*s\r", 64, "");
}

/* ---- --explain */

/* One line per decision. Goes to standard error if standard output is for a program. */
static void print_decision(void *context, const struct fleet *f, const int *before,
                           const struct fleet_answer *answer)
{
    struct simulation *s = context;
    if (!s->o->explain)
        return;
    FILE *out = strcmp(s->o->output, "table") ? stderr : stdout;
    fprintf(out, "%-12s %8.0f s ", s->doing, fleet_now_s(f));
    for (size_t v = 0; v < f->config->variant_n; v++) {
        if (before[v] == answer->targets[v])
            fprintf(out, " " STR_FMT "=%d", STR_ARG(f->config->variants[v].name), before[v]);
        else
            fprintf(out, " " STR_FMT "=%d->%d", STR_ARG(f->config->variants[v].name), before[v],
                    answer->targets[v]);
    }
    fprintf(out, "  %s\n", answer->reason);
}

/* ---- what is simulated */

/* Reads variants and trace and fills the configuration of the fleet, including the mean lengths that peers
 * are tuned with. */
static int load_inputs(struct simulation *s, err_t *e)
{
    const struct options *o = s->o;
    struct fleet_config *c = &s->config;
    struct fleet_variant *variants = NULL;
    if (parse_start(o->start, &c->start_mean_s, &c->start_sd_s, e) < 0 ||
        parse_reserve(o->reserve, c, e) < 0 ||
        simulate_read_variants(&s->arena, o->variants, &variants, &c->variant_n, e) < 0)
        return -e->code;
    int r = o->source.url
                ? simulate_trace_from_prometheus(&o->source, (uint64_t)o->seed, &s->trace, e)
                : trace_load(o->trace, &s->trace, e);
    if (r < 0)
        return r;
    if (s->trace.length_ns > 31 * 86400 * NS_PER_S)
        return err_set(e, EINVAL, "the trace spans %.0f days, but must span at most 31",
                       (double)s->trace.length_ns / 86400e9);
    if (s->trace.moved)
        fprintf(stderr, "flyball simulate: %zu requests of %s are out of order; sorted by time\n",
                s->trace.moved, o->trace);
    if (o->scale != 1)
        trace_scale(&s->trace, o->scale, (uint64_t)o->seed);
    c->variants = variants;
    c->ttft_s = (double)o->ttft_ns / 1e9;
    c->itl_s = (double)o->itl_ns / 1e9;
    c->goal = o->goal / 100;
    c->scrape_s = 15;
    c->scrape_loss = o->lost / 100;
    c->has_gateway = !o->no_gateway;
    c->grace_s = (double)o->grace_ns / 1e9;
    c->marks_victims = o->marks_victims;
    c->seed = (uint64_t)o->seed;
    for (size_t i = 0; i < s->trace.requests.n; i++) {
        c->mean_prompt += s->trace.requests.at[i].prompt_tokens;
        c->mean_output += s->trace.requests.at[i].output_tokens;
    }
    c->mean_prompt /= (double)s->trace.requests.n;
    c->mean_output /= (double)s->trace.requests.n;
    return 0;
}

/* Splits --policy. Each policy is made once here to check its name before the first one runs. */
static int split_policies(struct simulation *s, err_t *e)
{
    str rest = str_c(s->o->policies), name;
    while (str_cut(&rest, ',', &name)) {
        name = str_trim(name);
        struct fleet_policy *p = fleet_policy_new(name, &s->config);
        if (!p && !str_eqc(name, "static-peak") && !str_eqc(name, "oracle") &&
            !str_eqc(name, "known-mean") && !str_eqc(name, "last-minute"))
            return err_set(e, EINVAL, "--policy contains \"" STR_FMT "\", but must be a list of %s",
                           STR_ARG(name), policy_names);
        fleet_policy_free(p);
        if (s->policy_n == POLICIES_MAX)
            return err_set(e, EINVAL, "--policy lists more than %d policies", POLICIES_MAX);
        s->policies[s->policy_n++] = name;
    }
    return 0;
}

/* "l40s=12,a100=0" */
static int parse_initial(struct simulation *s, err_t *e)
{
    str rest = str_c(s->o->initial), pair;
    while (str_cut(&rest, ',', &pair)) {
        str name;
        int64_t n;
        size_t v = 0;
        str value = pair;
        bool cut = str_cut(&value, '=', &name);
        while (v < s->config.variant_n && !str_eq(s->config.variants[v].name, str_trim(name)))
            v++;
        if (!cut || v == s->config.variant_n || str_to_i64(str_trim(value), &n) < 0 || n < 0 ||
            n > s->config.variants[v].max)
            return err_set(
                e, EINVAL,
                "--initial is %s, but must be NAME=REPLICAS of the variants, within their maximum, "
                "or \"variants\"",
                s->o->initial);
        s->initial[v] = (int)n;
    }
    return 0;
}

/* One replica of the cheapest variant, the others at their minimum. */
static void set_one_replica(struct simulation *s)
{
    size_t cheapest = 0;
    for (size_t v = 0; v < s->config.variant_n; v++) {
        s->initial[v] = s->config.variants[v].min;
        if (s->config.variants[v].cost < s->config.variants[cheapest].cost)
            cheapest = v;
    }
    s->initial[cheapest] = MAX(s->initial[cheapest], 1);
}

/* What the fullest of the first five minutes needs. */
static void find_warm(struct simulation *s, const struct fleet_hooks *hooks, int *ret_replicas)
{
    const struct fleet_config *c = &s->config;
    s->doing = "warm start";
    struct fleet_static warm = fleet_find_warm(c, s->report.trace, hooks);
    for (size_t v = 0; v < c->variant_n; v++)
        ret_replicas[v] = MAX(warm.replicas[v], c->variants[v].min);
}

/* Replicas at the start: from --initial, from the variants file, or what the fullest of the first five
 * minutes needs. */
static int find_initial(struct simulation *s, const struct fleet_hooks *hooks, err_t *e)
{
    const struct fleet_config *c = &s->config;
    if (s->o->initial && strcmp(s->o->initial, "variants"))
        return parse_initial(s, e);
    if (s->o->initial) {
        for (size_t v = 0; v < c->variant_n; v++)
            s->initial[v] = MAX(c->variants[v].initial, c->variants[v].min);
        return 0;
    }
    if (s->o->cold) {
        set_one_replica(s);
        return 0;
    }
    find_warm(s, hooks, s->initial);
    return 0;
}

/* The past was served by a fleet that was large enough. */
static void make_history(struct simulation *s, const struct fleet_hooks *hooks)
{
    int warm[FLEET_VARIANTS_MAX] = { 0 };
    if (!s->o->history)
        return;
    find_warm(s, hooks, warm);
    s->doing = "history";
    s->history = fleet_policy_history_new(&s->config, s->report.trace, warm);
    s->config.history = s->history;
}

/* ---- running */

/* The cheapest fleet that never changes; searched for once, because static-peak and the oracle both need it. */
static const struct fleet_static *best_static(struct simulation *s)
{
    struct fleet_hooks quiet = { NULL, show_progress, s };
    if (!s->has_static)
        s->best_static = fleet_find_static(&s->config, s->report.trace, &quiet);
    s->has_static = true;
    return &s->best_static;
}

static void run_oracle(struct simulation *s, struct simulate_result *result,
                       const struct fleet_hooks *hooks)
{
    struct fleet_hooks quiet = { NULL, show_progress, s };
    const struct fleet_static *best = best_static(s);
    struct fleet_plan plan = fleet_find_oracle(&s->config, s->report.trace, best, &quiet);
    if (plan.replicas) {
        result->score = fleet_run_plan(&s->config, s->report.trace, &plan, hooks, &result->course);
        s->report.oracle_cost = result->score.cost;
    } else { /* no plan attains the goal, nor does a static fleet: show the latter */
        result->score = best->score;
    }
    fleet_plan_done(&plan);
}

/* A plan with limited knowledge. Where none attains the goal: the best static fleet, as for the oracle. */
static void run_bound(struct simulation *s, struct simulate_result *result, enum fleet_bound kind,
                      const struct fleet_hooks *hooks)
{
    struct fleet_plan plan = fleet_find_bound(&s->config, s->report.trace, kind);
    if (plan.replicas)
        result->score = fleet_run_plan(&s->config, s->report.trace, &plan, hooks, &result->course);
    else
        result->score = best_static(s)->score;
    fleet_plan_done(&plan);
}

static void run_static_peak(struct simulation *s, struct simulate_result *result,
                            const struct fleet_hooks *hooks)
{
    struct fleet_static best = *best_static(s);
    struct fleet_run run = {
        .config = &s->config, .trace = s->report.trace, .initial = best.replicas, .hooks = hooks
    };
    result->score = fleet_simulate(&run, &result->course);
    s->report.best_static_cost = best.attains ? result->score.cost : NAN;
}

/* Runs the policies in the order of the flag. The yardsticks have runs of their own. */
static void run_policies(struct simulation *s, const struct fleet_hooks *hooks)
{
    for (size_t i = 0; i < s->policy_n; i++) {
        struct simulate_result *result = &s->results[i];
        result->policy = arena_str(&s->arena, s->policies[i]).p;
        s->doing = result->policy;
        if (str_eqc(s->policies[i], "static-peak")) {
            run_static_peak(s, result, hooks);
            continue;
        }
        if (str_eqc(s->policies[i], "oracle")) {
            run_oracle(s, result, hooks);
            continue;
        }
        bool known = str_eqc(s->policies[i], "known-mean");
        if (known || str_eqc(s->policies[i], "last-minute")) {
            run_bound(s, result, known ? FLEET_KNOWN_MEAN : FLEET_LAST_MINUTE, hooks);
            continue;
        }
        struct fleet_policy *policy = fleet_policy_new(s->policies[i], &s->config);
        struct fleet_run run = { .config = &s->config,
                                 .trace = s->report.trace,
                                 .initial = s->initial,
                                 .policy = policy,
                                 .hooks = hooks };
        result->score = fleet_simulate(&run, &result->course);
        fleet_policy_free(policy);
    }
}

/* Everything between flags and exit code: inputs, initial replicas, policies, report. */
static int run_simulation(struct simulation *s, err_t *e)
{
    if (check_options(s->o, e) < 0 || load_inputs(s, e) < 0 || split_policies(s, e) < 0)
        return -e->code;
    s->report = (struct simulate_report){ .config = &s->config,
                                          .trace = { s->trace.requests.at, s->trace.requests.n },
                                          .initial = s->initial,
                                          .results = s->results,
                                          .result_n = s->policy_n,
                                          .best_static_cost = NAN,
                                          .oracle_cost = NAN,
                                          .note = s->o->source.url ? mean_lengths : NULL };
    struct fleet_hooks hooks = { print_decision, show_progress, s };
    struct fleet_hooks quiet = { NULL, show_progress, s };
    if (find_initial(s, &quiet, e) < 0)
        return -e->code;
    make_history(s, &quiet);
    run_policies(s, &hooks);
    clear_progress(s);
    auto_buf struct buf out = { 0 };
    if (!strcmp(s->o->output, "json"))
        simulate_print_json(&out, &s->report);
    else if (!strcmp(s->o->output, "svg"))
        simulate_print_svg(&out, &s->report);
    else
        simulate_print_table(&out, &s->report);
    fputs(out.p, stdout);
    return 0;
}

static void simulation_done(struct simulation *s)
{
    for (size_t i = 0; i < s->policy_n; i++)
        vec_done(&s->results[i].course.points);
    fleet_policy_history_free(s->history);
    trace_done(&s->trace);
    arena_done(&s->arena);
}

/* Fills `o` from the command line. Returns 0, 1 when help was printed, or an error. */
static int parse_options(int argc, char **argv, struct options *o, err_t *e)
{
    const struct flag flags[] = {
        { "trace", "FILE", FLAG_TEXT, &o->trace, "Requests to replay; - for standard input" },
        { "from-prometheus", "URL", FLAG_TEXT, &o->source.url,
          "Build the trace from the vLLM series of this Prometheus server, selected with:" },
        { "model", "NAME", FLAG_TEXT, &o->source.model, "model_name of the series" },
        { "namespace", "NAME", FLAG_TEXT, &o->source.ns, "Namespace of the series (default: all)" },
        { "since", "DURATION", FLAG_TEXT, &o->since, "Time span up to now, such as 12h or 7d" },
        { "token-file", "FILE", FLAG_TEXT, &o->source.token_file,
          "File with a bearer token for Prometheus" },
        { "variants", "FILE", FLAG_TEXT, &o->variants,
          "File with the variants of the model: hardware, cost, profile" },
        { "policy", "LIST", FLAG_TEXT, &o->policies, "Comma-separated policies to compare" },
        { "ttft", "DURATION", FLAG_DURATION, &o->ttft_ns, "Target for the time to first token" },
        { "itl", "DURATION", FLAG_DURATION, &o->itl_ns,
          "Target for the mean time per output token" },
        { "goal", "PERCENT", FLAG_REAL, &o->goal,
          "Share of requests that must be within both targets" },
        { "start", "DURATION", FLAG_TEXT, &o->start,
          "Time until a new replica serves, and its standard deviation" },
        { "scale", "N", FLAG_REAL, &o->scale, "Factor for the load of the trace" },
        { "initial", "LIST", FLAG_TEXT, &o->initial,
          "Replicas at the start: NAME=N,...; or \"variants\": those of the file (default: what the "
          "busiest of the first five minutes needs)" },
        { "cold", NULL, FLAG_BOOL, &o->cold,
          "Start with one replica of the cheapest variant, unless --initial is set; nothing is known "
          "about the load and the variants, unless --history is set" },
        { "history", NULL, FLAG_BOOL, &o->history,
          "Policy slo: start with 20 minutes of history in Prometheus, made of the requests of the "
          "trace's first two minutes (default: nothing is known)" },
        { "reserve", "N", FLAG_TEXT, &o->reserve,
          "Policy slo: replicas to keep free, or N% of what the load needs (default 0)" },
        { "seed", "N", FLAG_INT, &o->seed, "Seed of all random numbers" },
        { "no-gateway", NULL, FLAG_BOOL, &o->no_gateway,
          "Simulate a cluster without gateway metrics" },
        { "grace", "DURATION", FLAG_DURATION, &o->grace_ns,
          "Time that a replica has to finish its requests when it is removed" },
        { "deletion-cost", NULL, FLAG_BOOL, &o->marks_victims,
          "Remove the least busy replicas, as --wva-deletion-cost of the operator does, not the youngest" },
        { "lost-scrapes", "PERCENT", FLAG_REAL, &o->lost, "Share of scrapes that fail" },
        { "explain", NULL, FLAG_BOOL, &o->explain, "Print every decision with its reason" },
        { "output", "FORMAT", FLAG_TEXT, &o->output, "Output format: table, json or svg",
          .letter = 'o' },
        { 0 },
    };
    bool help = false;
    if (flags_parse(flags, argc, argv, &help, NULL, e) < 0)
        return -e->code;
    if (!help)
        return 0;
    auto_buf struct buf text = { 0 };
    buf_put(&text, str_c(about));
    flags_help(&text, flags);
    buf_printf(&text, "\nPolicies: %s.\n", policy_names);
    fputs(text.p, stdout);
    return 1;
}

/* The defaults are a small LLM service: two seconds to the first token, 60 ms between tokens, two minutes to
 * start. */
int cmd_simulate(int argc, char **argv)
{
    if (argc > 1 && !strcmp(argv[1], "market"))
        return cmd_simulate_market(argc - 1, argv + 1);
    struct options o = { .policies = "slo,need,2026,v2,hpa-running,keda,static-peak",
                         .start = "120s+-15s",
                         .since = "24h",
                         .output = "table",
                         .ttft_ns = 2 * NS_PER_S,
                         .itl_ns = 60 * NS_PER_MS,
                         .grace_ns = 30 * NS_PER_S,
                         .seed = 1,
                         .goal = 99,
                         .scale = 1 };
    err_t e;
    int r = parse_options(argc, argv, &o, &e);
    if (r < 0)
        return fprintf(stderr, "flyball simulate: %s\n", e.text), EXIT_USAGE;
    if (r > 0)
        return EXIT_SUCCESS;
    struct simulation s = { .o = &o, .on_terminal = isatty(STDERR_FILENO) };
    r = parse_since(o.since, &o.source.since_ns, &e);
    r = r < 0 ? r : run_simulation(&s, &e);
    simulation_done(&s);
    if (r == 0)
        return EXIT_SUCCESS;
    fprintf(stderr, "flyball simulate: %s\n", e.text);
    return EXIT_FAILURE;
}
