/* See fleet_search.h.
 *
 * More replicas never attain noticeably less, so the least number is found by doubling and halving. A run is given
 * up as soon as it has missed more requests than the goal allows, which makes most of the search cheap. A
 * variant that cannot attain the goal at less than the best cost so far is ruled out by one run. */
#include "fleet_search.h"

#include <math.h>

enum { REPLICAS_MAX = 4096, WARM_MINUTES = 4 };

struct search {
    const struct fleet_config *config;
    struct fleet_trace trace;
    const struct fleet_hooks *hooks;
};

/* One run with `n` replicas of one variant. Unless the whole score is needed, it stops at the first miss too
 * many. */
static struct fleet_score try_static(const struct search *s, size_t variant, int n, bool to_the_end)
{
    int initial[FLEET_VARIANTS_MAX] = { 0 };
    initial[variant] = n;
    uint64_t allowed = (uint64_t)((1 - s->config->goal) * (double)s->trace.n);
    return fleet_simulate(&(struct fleet_run){ .config = s->config,
                                               .trace = s->trace,
                                               .initial = initial,
                                               .hooks = s->hooks,
                                               .misses_max = to_the_end ? 0 : allowed + 1 },
                          NULL);
}

static bool attains_goal(const struct search *s, size_t variant, int n)
{
    struct fleet_score score = try_static(s, variant, n, false);
    return !score.aborted && score.attained >= s->config->goal;
}

/* The least number from `low` (which fails, or is 0) to `most` that attains the goal; 0: none does. */
static int find_least(const struct search *s, size_t variant, int guess, int most)
{
    int low = 0, high = MIN(MAX(guess, 1), most);
    while (!attains_goal(s, variant, high)) {
        low = high;
        if (high == most)
            return 0;
        high = MIN(high + MAX(high / 2, 1), most);
    }
    while (high - low > 1) {
        int middle = low ? (low + high) / 2 : MAX(high * 3 / 4, 1);
        if (middle >= high)
            middle = high - 1;
        if (attains_goal(s, variant, middle))
            high = middle;
        else
            low = middle;
    }
    return high;
}

/* A first guess: how many replicas the mean load keeps busy, by the profile. */
static int guess_replicas(const struct search *s, size_t variant)
{
    const struct replica_profile *p = &s->config->variants[variant].profile;
    double seconds = (double)s->trace.at[s->trace.n - 1].arrived_ns / 1e9, prompt = 0, attended = 0;
    for (size_t i = 0; i < s->trace.n; i++) {
        const struct replica_request *r = &s->trace.at[i];
        prompt += r->prompt_tokens;
        attended += (double)r->output_tokens * (r->prompt_tokens + r->output_tokens / 2.0);
    }
    double work_s = (p->per_prompt_token_ms * prompt + p->per_cached_token_ms * attended) / 1e3;
    double itl_ms = s->config->itl_s * 1e3, free_share = fmax(0.1, 1 - p->base_ms / itl_ms);
    return (int)fmin(REPLICAS_MAX, 1 + ceil(work_s / fmax(seconds, 1) / free_share));
}

/* Tries each variant with no more replicas than would still be cheaper than the best so far. */
static struct fleet_static find_cheapest(const struct search *s)
{
    const struct fleet_config *c = s->config;
    struct fleet_static best = { .variant = SIZE_MAX };
    double cost = INFINITY;
    for (size_t v = 0; v < c->variant_n; v++) {
        const struct fleet_variant *variant = &c->variants[v];
        int most = MIN(variant->max, REPLICAS_MAX);
        if (isfinite(cost) && variant->cost > 0)
            most = (int)fmin(most, ceil(cost / variant->cost) - 1);
        if (most < 1 || (isfinite(cost) && !attains_goal(s, v, most)))
            continue;
        int n = find_least(s, v, guess_replicas(s, v), most);
        if (!n)
            continue;
        best = (struct fleet_static){ .variant = v, .attains = true };
        best.replicas[v] = n;
        cost = n * variant->cost;
    }
    return best;
}

/* No fleet attains the goal: the variant that comes nearest with all it may have. */
static struct fleet_static find_nearest(const struct search *s)
{
    struct fleet_static best = { .variant = 0 };
    double most = -1;
    for (size_t v = 0; v < s->config->variant_n; v++) {
        int n = MIN(s->config->variants[v].max, 4 * guess_replicas(s, v));
        double attained = n > 0 ? try_static(s, v, n, true).attained : -1;
        if (attained > most) {
            most = attained;
            best = (struct fleet_static){ .variant = v };
            best.replicas[v] = n;
        }
    }
    return best;
}

static struct fleet_static find_static(const struct search *s)
{
    struct fleet_static best = find_cheapest(s);
    return best.attains ? best : find_nearest(s);
}

struct fleet_static fleet_find_static_of(const struct fleet_config *config,
                                         struct fleet_trace trace, size_t variant, double most_cost)
{
    struct search s = { config, trace, NULL };
    struct fleet_static found = { .variant = variant };
    const struct fleet_variant *v = &config->variants[variant];
    int most = (int)fmin(MIN(v->max, REPLICAS_MAX), most_cost / v->cost);
    int n = most > 0 ? find_least(&s, variant, guess_replicas(&s, variant), most) : 0;
    if (!n)
        return found;
    found.attains = true;
    found.replicas[variant] = n;
    found.score = try_static(&s, variant, n, true);
    return found;
}

/* ---- the start of a run */

static const int64_t minute_ns = 60 * (int64_t)1000000000;

struct minute {
    size_t first, n; /* requests */
    int64_t begin_ns;
};

/* The one of the first five in which the most tokens arrive. */
static struct minute find_fullest_minute(const struct fleet_trace *trace)
{
    struct minute fullest = { 0, 1, trace->at[0].arrived_ns };
    double most = -1;
    size_t i = 0;
    for (int64_t begin = 0; begin < 5 * minute_ns; begin += minute_ns) {
        struct minute m = { i, 0, begin };
        double tokens = 0;
        for (; i < trace->n && trace->at[i].arrived_ns < begin + minute_ns; i++, m.n++)
            tokens += (double)trace->at[i].prompt_tokens + trace->at[i].output_tokens;
        if (m.n && tokens > most) {
            most = tokens;
            fullest = m;
        }
    }
    return fullest;
}

struct fleet_static fleet_find_warm(const struct fleet_config *config, struct fleet_trace trace,
                                    const struct fleet_hooks *hooks)
{
    struct minute fullest = find_fullest_minute(&trace);
    struct replica_request *requests = mem_alloc(fullest.n * WARM_MINUTES * sizeof(*requests));
    for (size_t i = 0; i < fullest.n * WARM_MINUTES; i++) {
        requests[i] = trace.at[fullest.first + i % fullest.n];
        requests[i].arrived_ns += (int64_t)(i / fullest.n) * minute_ns - fullest.begin_ns;
    }
    struct fleet_static warm =
        find_static(&(struct search){ config, { requests, fullest.n * WARM_MINUTES }, hooks });
    free(requests);
    return warm;
}

struct fleet_static fleet_find_static(const struct fleet_config *config, struct fleet_trace trace,
                                      const struct fleet_hooks *hooks)
{
    struct search s = { config, trace, hooks };
    struct fleet_static best = find_static(&s);
    best.score = try_static(&s, best.variant, best.replicas[best.variant], true);
    return best;
}
