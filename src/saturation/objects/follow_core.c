/* See follow_core.h. Behavior of KEDA and of the HPA controller that the messages describe:
 *
 *   - `Value` compares the sum with the target and multiplies the current replicas by the ratio, so that a
 *     decision of 4 makes 4 replicas out of 1 and 16 out of 4. `AverageValue` 1 makes 4 in both cases. KEDA's
 *     default is AverageValue.
 *   - KEDA's fallback replaces a number that cannot be read. With `replicas: 0` and a minimum of 0, an error
 *     scales to zero after the cooldown period; without a fallback the HPA keeps the replicas. */
#include "follow_core.h"

static const char *const metrics[] = { "wva_desired_replicas", "workload_optimized_replicas",
                                       "wva_desired_ratio", "inferno_desired_replicas" };

static bool mentions_decision(str text)
{
    for (size_t i = 0; i < countof(metrics); i++)
        if (str_find(text, str_c(metrics[i])) != SIZE_MAX)
            return true;
    return false;
}

bool follow_is_interesting(str readings)
{
    return mentions_decision(readings) || str_find(readings, S("flyball")) != SIZE_MAX;
}

static bool reads_decision(const struct json *reading, bool by_keda)
{
    if (!by_keda)
        return mentions_decision(json_text(json_at(reading, "external", "metric", "name", NULL))) ||
               mentions_decision(json_text(json_at(reading, "object", "metric", "name", NULL)));
    str type = json_text(json_get(reading, "type"));
    str address = json_text(json_at(reading, "metadata", "scalerAddress", NULL));
    return (str_starts(type, S("external")) && str_find(address, S("flyball")) != SIZE_MAX) ||
           mentions_decision(json_text(json_at(reading, "metadata", "query", NULL)));
}

static str type_of(const struct json *reading, bool by_keda)
{
    if (by_keda)
        return json_text(json_get(reading, "metricType"));
    str type = json_text(json_at(reading, "external", "target", "type", NULL));
    return type.n ? type : json_text(json_at(reading, "object", "target", "type", NULL));
}

unsigned follow_check(const struct follow_scaler *scaler)
{
    bool reads = false;
    unsigned found = 0;
    for (size_t i = 0; i < json_len(scaler->readings); i++) {
        const struct json *reading = json_item(scaler->readings, i);
        if (!reads_decision(reading, scaler->by_keda))
            continue;
        reads = true;
        if (str_eqc(type_of(reading, scaler->by_keda), "Value"))
            found |= FOLLOW_WRONG_TYPE;
    }
    if (!reads)
        return scaler->managed ? FOLLOW_NOT_CONSUMED : 0;
    if (scaler->has_fallback && scaler->fallback <= 0 && scaler->min <= 0)
        found |= FOLLOW_FALLBACK;
    return found;
}

const char *follow_reason(enum follow_mistake one)
{
    return one == FOLLOW_NOT_CONSUMED ? "NotConsumed"
           : one == FOLLOW_WRONG_TYPE ? "WrongMetricType"
                                      : "DangerousFallback";
}

str follow_message(enum follow_mistake one)
{
    switch (one) {
    case FOLLOW_NOT_CONSUMED:
        return S("it describes a variant but does not read its decisions; add the metric "
                 "wva_desired_replicas, or a trigger for flyball's external scaler");
    case FOLLOW_WRONG_TYPE:
        return S("it reads a decision as Value, which multiplies it by the current replicas; use "
                 "AverageValue");
    case FOLLOW_FALLBACK:
        break;
    }
    return S("spec.fallback.replicas and minReplicaCount are 0, so an error of flyball scales the "
             "workload to zero; remove spec.fallback");
}
