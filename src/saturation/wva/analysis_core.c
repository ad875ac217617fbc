/* Spare capacity: see analysis_core.h.
 *
 * A replica without a sample is assumed to have exactly the spare that triggers a scale-up: it
 * gives no credit for scaling down and does not ask for scaling up. */
#include "analysis_core.h"

#include <math.h>

struct usage {
    double kv, queue;
};

/* The use that leaves `spare` below the threshold, and a hair more, so that rounding does not
 * trigger anything. */
static double usage_with_spare(double threshold, double spare)
{
    return threshold - spare * (1 + 1e-9);
}

static struct usage usage_or_assumed(const struct sat_config *c, const struct sat_replica *r)
{
    return (struct usage){
        isnan(r->kv_usage) ? usage_with_spare(c->kv_threshold, c->kv_spare_trigger) : r->kv_usage,
        isnan(r->queue) ? usage_with_spare(c->queue_threshold, c->queue_spare_trigger) : r->queue,
    };
}

static bool is_saturated(const struct sat_config *c, struct usage u)
{
    return u.kv >= c->kv_threshold || u.queue >= c->queue_threshold;
}

static int by_variant_then_place(const void *a, const void *b)
{
    const struct sat_replica *const *x = a, *const *y = b;
    int order = str_cmp((*x)->variant, (*y)->variant);
    return order ? order : (*x > *y) - (*x < *y);
}

/* Adds one replica to its variant; spares are sums until average_variant(). */
static void count_replica(struct sat_variant *v, const struct sat_config *c,
                          const struct sat_replica *r)
{
    struct usage u = usage_or_assumed(c, r);
    v->replicas++;
    v->max_kv = fmax(v->max_kv, u.kv);
    v->max_queue = fmax(v->max_queue, u.queue);
    if (!is_saturated(c, u)) {
        v->non_saturated++;
        v->spare_kv += c->kv_threshold - u.kv;
        v->spare_queue += c->queue_threshold - u.queue;
    }
}

static void average_variant(struct sat_analysis *result, struct sat_variant *v)
{
    result->replicas += v->replicas;
    result->non_saturated += v->non_saturated;
    if (!v->non_saturated)
        return;
    v->spare_kv /= v->non_saturated;
    v->spare_queue /= v->non_saturated;
    result->spare_kv += v->spare_kv * v->non_saturated;
    result->spare_queue += v->spare_queue * v->non_saturated;
}

/* The texts are WVA's (quoted: WVA). */
static void check_scale_up(struct arena *a, struct sat_analysis *r, const struct sat_config *c)
{
    bool kv = r->spare_kv < c->kv_spare_trigger, queue = r->spare_queue < c->queue_spare_trigger;
    r->scale_up = kv || queue;
    if (kv && queue)
        r->scale_up_reason =
            arena_printf(a, "both KV spare (%.3f < %.3f) and queue spare (%.1f < %.1f)",
                         r->spare_kv, c->kv_spare_trigger, r->spare_queue, c->queue_spare_trigger);
    else if (kv)
        r->scale_up_reason = arena_printf(a, "KV spare Saturation low (%.3f < %.3f)", r->spare_kv,
                                          c->kv_spare_trigger);
    else if (queue)
        r->scale_up_reason = arena_printf(a, "queue spare Saturation low (%.1f < %.1f)",
                                          r->spare_queue, c->queue_spare_trigger);
}

/* Whether the load of the non-saturated replicas would leave enough spare on one replica less. */
static bool survives_removal(const struct sat_analysis *r, const struct sat_config *c)
{
    if (r->non_saturated < 2)
        return false;
    double grows = (double)r->non_saturated / (r->non_saturated - 1);
    double kv = (c->kv_threshold - r->spare_kv) * grows;
    double queue = (c->queue_threshold - r->spare_queue) * grows;
    return c->kv_threshold - kv >= c->kv_spare_trigger &&
           c->queue_threshold - queue >= c->queue_spare_trigger;
}

struct sat_analysis sat_analyze(struct arena *a, const struct sat_config *config,
                                const struct sat_replica *replicas, size_t n)
{
    struct sat_analysis result = { .scale_up_reason = S("") };
    if (n == 0)
        return result;
    const struct sat_replica **order = arena_array(a, n, sizeof(struct sat_replica *));
    for (size_t i = 0; i < n; i++)
        order[i] = &replicas[i];
    qsort(order, n, sizeof(struct sat_replica *), by_variant_then_place);
    result.variants = arena_array(a, n, sizeof(*result.variants));
    struct sat_variant *v = NULL;
    for (size_t i = 0; i < n; i++) {
        const struct sat_replica *r = order[i];
        if (!v || !str_eq(v->name, r->variant)) {
            v = &result.variants[result.variant_n++];
            *v = (struct sat_variant){ .name = r->variant,
                                       .accelerator = r->accelerator,
                                       .cost = r->cost };
        }
        count_replica(v, config, r);
        struct usage u = usage_or_assumed(config, r);
        result.load_kv += u.kv;
        result.load_queue += u.queue;
    }
    for (size_t i = 0; i < result.variant_n; i++)
        average_variant(&result, &result.variants[i]);
    if (result.non_saturated) {
        result.spare_kv /= result.non_saturated;
        result.spare_queue /= result.non_saturated;
    }
    check_scale_up(a, &result, config);
    result.scale_down_safe = survives_removal(&result, config);
    return result;
}
