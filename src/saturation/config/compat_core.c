/* See compat_core.h. The messages are quoted: WVA. */
#include "compat_core.h"

static const double defaults[SAT_NUMBER_N] = { 0.80, 5, 0.10, 3, 0.85, 0.70 };

static bool is_token_entry(const struct compat_entry *x)
{
    return x->policy.analyzer_n > 0 || str_eqc(x->analyzer, "saturation");
}

/* Fills in what is unset; thresholds and the list of analyzers only if the token analyzer is
 * selected. */
static void set_defaults(struct arena *a, struct compat_entry *x)
{
    if (x->priority == 0)
        x->priority = 1;
    for (int i = 0; i < SAT_NUMBER_N; i++)
        if (x->number[i] == 0 && (i < SAT_UP_THRESHOLD || is_token_entry(x)))
            x->number[i] = defaults[i];
    if (!is_token_entry(x))
        return;
    size_t n = MAX(x->policy.analyzer_n, (size_t)1);
    struct policy_analyzer *list = arena_array(a, n, sizeof(*list));
    list[0] = (struct policy_analyzer){ .type = S("saturation"), .enabled = true };
    for (size_t i = 0; i < n; i++) {
        if (x->policy.analyzer_n)
            list[i] = x->policy.analyzers[i];
        if (list[i].score == 0)
            list[i].score = 1;
    }
    x->policy.analyzers = list;
    x->policy.analyzer_n = n;
}

static int check_thresholds(const struct compat_entry *x, err_t *e)
{
    double up = x->number[SAT_UP_THRESHOLD], down = x->number[SAT_DOWN_BOUNDARY];
    if (up != 0 && (up < 0 || up > 1))
        return err_set(e, EINVAL, "scaleUpThreshold must be in (0, 1], got %.2f", up);
    if (down != 0 && (down < 0 || down > 1))
        return err_set(e, EINVAL, "scaleDownBoundary must be in (0, 1], got %.2f", down);
    if (up != 0 && down != 0 && up <= down)
        return err_set(e, EINVAL, "scaleUpThreshold (%.2f) must be > scaleDownBoundary (%.2f)", up,
                       down);
    return is_token_entry(x) ? policy_check_analyzers(&x->policy, up, down, e) : 0;
}

static int check_entry(const struct compat_entry *x, err_t *e)
{
    struct sat_config c = { x->number[SAT_KV_THRESHOLD], x->number[SAT_QUEUE_THRESHOLD],
                            x->number[SAT_KV_SPARE_TRIGGER], x->number[SAT_QUEUE_SPARE_TRIGGER] };
    int r = sat_config_check_ranges(&c, e);
    if (r == 0 && x->priority < 0)
        r = err_set(e, EINVAL, "priority must be >= 0, got %.2f", x->priority);
    if (r == 0)
        r = sat_config_check_order(&c, e);
    if (r == 0)
        r = check_thresholds(x, e);
    return r == 0 ? policy_check_limiters(&x->policy, e) : r;
}

int compat_entry_load(struct arena *a, str yaml, struct compat_entry *ret, err_t *e)
{
    struct sat_entry entry;
    if (sat_entry_parse(a, yaml, SAT_ERA_09, &entry, e) < 0)
        return -EBADMSG;
    struct compat_entry x = { .priority = entry.policy.priority,
                              .analyzer = entry.analyzer,
                              .policy = entry.policy };
    memcpy(x.number, entry.number, sizeof(x.number));
    if (x.policy.invalid.n)
        return err_set(e, EINVAL, STR_FMT, STR_ARG(x.policy.invalid));
    set_defaults(a, &x);
    int r = check_entry(&x, e);
    if (r == 0)
        *ret = x;
    return r;
}

str compat_analyzer(const struct compat_entry *entry)
{
    return !entry ? S("") : entry->policy.analyzer_n ? S("saturation") : entry->analyzer;
}

static void merge_entry(struct compat_entry *x, const struct compat_entry *over)
{
    for (int i = 0; i < SAT_NUMBER_N; i++)
        if (over->number[i] != 0)
            x->number[i] = over->number[i];
    if (over->analyzer.n)
        x->analyzer = over->analyzer;
    if (over->priority != 0)
        x->priority = over->priority;
    x->policy.limiter |= over->policy.limiter;
    if (over->policy.analyzer_n) {
        x->policy.analyzers = over->policy.analyzers;
        x->policy.analyzer_n = over->policy.analyzer_n;
    }
    if (over->policy.has_zero_block) {
        x->policy.has_zero = over->policy.has_zero;
        x->policy.zero = over->policy.zero;
    }
}

struct compat_entry compat_resolve(struct arena *a, const struct compat_entry *base,
                                   const struct compat_entry *override)
{
    struct compat_entry x = { .analyzer = S(""), .policy = policy_none };
    if (base)
        x = *base;
    if (override)
        merge_entry(&x, override);
    set_defaults(a, &x);
    double *up = &x.number[SAT_UP_THRESHOLD], *down = &x.number[SAT_DOWN_BOUNDARY];
    *up = *up == 0 ? defaults[SAT_UP_THRESHOLD] : *up;
    *down = *down == 0 ? defaults[SAT_DOWN_BOUNDARY] : *down;
    if (*up <= *down) { /* inconsistent between the entries: WVA resets both */
        *up = defaults[SAT_UP_THRESHOLD];
        *down = defaults[SAT_DOWN_BOUNDARY];
    }
    return x;
}
