/* One setting of the market by itself: is there such a key, and is its value valid? The agent keeps the last
 * valid value of a key whose new one is not (market_agent_config.h), so keys are checked one by one.
 *
 * Ranges, choices, quantities and durations are tables or small functions. Whether a key exists is not listed
 * again: the value is read into a scratch configuration, which is printed back, and a key that does not appear
 * there is unknown. The nearest known key is suggested. */
#include "market_spec.h"

#include "../base/quantity.h"

#include <math.h>

struct bound {
    const char *key;
    double least, most;
};

static const struct bound bounds[] = {
    { "minChangePercent", 0, 100 },
    { "systemReservePercent", 0, 100 },
    { "throttlingThreshold", 0, 1 },
    { "fastStepSizeMin", 0, 1 },
    { "fastStepSizeMax", 0, 1 },
    { "agentLearningRate", 0, 1 },
    { "agentExplorationRate", 0, 1 },
    { "agentDiscountFactor", 0, 1 },
    { "needHeadroomFactor", 0, 4 },
    { "wantHeadroomFactor", 0, 4 },
    { "alphaDown", 0, 1 },
    { "alphaUp", 0, 1 },
    { "idleDecayRate", 0, 1 },
    { "targetThrottling", 0, 1 },
    { "maxMinCPUShare", 0, 1 },
    { "limitOvercommit", 1, 10 },
    { "limitCeiling", 0, 100 },
    { "requestHeadroomPercent", 0, 90 },
    { "absoluteMinAllocation", 10, 1000 },
    { "startupBoostFactor", 0, 100 },
    { "startupBoostDurationSeconds", 0, 3600 },
    { "startupBoostMaxSeconds", 1, 86400 },
    { "totalClusterCPUCapacityMilli", 1, 1e9 },
};

static const struct choice {
    const char *key, *text; /* the values, as an error shows them */
    const char *values[4];
} choices[] = {
    { "allocationMechanism", "nash or primal-dual", { "nash", "primal-dual" } },
    { "bids", "need or seed", { "need", "seed" } },
    { "hpaPeace", "hold or move", { "hold", "move" } },
    { "memoryManagement", "off, requests or full", { "off", "requests", "full" } },
    { "startupBoostType", "Factor or Quantity", { "Factor", "Quantity" } },
};

static int check_bounds(str key, double value, err_t *e)
{
    for (size_t i = 0; i < countof(bounds); i++)
        if (str_eqc(key, bounds[i].key) && !(value >= bounds[i].least && value <= bounds[i].most))
            return err_set(e, ERANGE, "%s is %g; it must be between %g and %g", bounds[i].key,
                           value, bounds[i].least, bounds[i].most);
    return 0;
}

static int check_choice(str key, str value, err_t *e)
{
    for (size_t i = 0; i < countof(choices); i++) {
        bool found = !str_eqc(key, choices[i].key);
        for (size_t k = 0; k < countof(choices[i].values) && choices[i].values[k]; k++)
            found |= str_eqc(value, choices[i].values[k]);
        if (!found)
            return err_set(e, EINVAL, "%s is \"" STR_FMT "\"; it must be %s", choices[i].key,
                           STR_ARG(value), choices[i].text);
    }
    return 0;
}

static int check_quantity(str key, str value, err_t *e)
{
    int64_t milli = 0;
    if (!str_eqc(key, "baselineCPUPerPod"))
        return 0;
    if (quantity_parse_milli(value, &milli, NULL) < 0)
        return err_set(e, EINVAL, "baselineCPUPerPod is \"" STR_FMT "\"; it must be a quantity",
                       STR_ARG(value));
    if (milli < 10)
        return err_set(e, ERANGE,
                       "baselineCPUPerPod is \"" STR_FMT
                       "\"; it must be at least 10m, the kernel's least quota",
                       STR_ARG(value));
    return 0;
}

static int check_duration(str key, int64_t ns, err_t *e)
{
    static const int64_t second = 1000000000;
    if (ns < 0 || (ns == 0 && !str_eqc(key, "startupGracePeriod")))
        return err_set(e, ERANGE, STR_FMT " must be positive", STR_ARG(key));
    if (str_eqc(key, "clusterReportInterval") && ns < 15 * second)
        return err_set(e, ERANGE, "clusterReportInterval must be at least 15s");
    return 0;
}

/* Number of edits between two words; stops counting above 2. */
static int edit_distance(str a, str b)
{
    enum { WORD_MAX = 64 };
    int row[WORD_MAX + 1];
    if (a.n > WORD_MAX || b.n > WORD_MAX)
        return WORD_MAX;
    for (size_t j = 0; j <= b.n; j++)
        row[j] = (int)j;
    for (size_t i = 1; i <= a.n; i++) {
        int diagonal = row[0];
        row[0] = (int)i;
        for (size_t j = 1; j <= b.n; j++) {
            int kept = row[j], change = diagonal + (a.p[i - 1] != b.p[j - 1]);
            row[j] = MIN(MIN(row[j] + 1, row[j - 1] + 1), change);
            diagonal = kept;
        }
    }
    return row[b.n];
}

static int fail_unknown_key(const struct json *known, str key, err_t *e)
{
    json_each(m, known)
        if (edit_distance(key, m->key) <= 2)
            return err_set(e, ENOENT, "unknown setting \"" STR_FMT "\"; did you mean " STR_FMT "?",
                           STR_ARG(key), STR_ARG(m->key));
    return err_set(e, ENOENT, "unknown setting \"" STR_FMT "\"", STR_ARG(key));
}

static void keep_sentence(void *context, const char *sentence)
{
    (void)err_set((err_t *)context, EINVAL, "%s", sentence);
}

int market_config_check_value(struct arena *a, str key, str value, err_t *e)
{
    struct market_config scratch = market_config_default(MARKET_DEFAULTS);
    struct json *alone = json_new_obj(a), *printed;
    err_t problem = { 0 };
    json_set(a, alone, key, json_new_str(a, value));
    if (market_config_read(&scratch, a, alone, keep_sentence, &problem))
        return err_set(e, EINVAL, "%s", problem.text);
    printed = market_config_print(&scratch, a);
    const struct json *now = json_get_str(printed, key);
    if (!now)
        return fail_unknown_key(printed, key, e);
    if (!value.n)
        return 0; /* counts as absent */
    int r = check_choice(key, value, e);
    if (r == 0)
        r = check_quantity(key, value, e);
    if (r == 0 && (json_is(now, JSON_REAL) || json_is(now, JSON_INT)))
        r = check_bounds(key, json_real(now, 0), e);
    if (r == 0 && json_is(now, JSON_INT) && market_config_is_duration(key))
        r = check_duration(key, now->integer, e);
    return r;
}
