/* The cells of autoscalers: each metric as "current/target". A version 1 object shows its single metric. The
 * texts follow kubectl's printer, which shows at most two metrics. */
#include "table.h"
#include "table_columns.h"

enum { METRICS_SHOWN = 2 };

static str format_percent(struct arena *a, const struct json *value, const char *otherwise)
{
    return value ? arena_printf(a, "%lld%%", (long long)json_int(value, 0)) : str_c(otherwise);
}

static str text_or(const struct json *value, const char *otherwise)
{
    return json_text(value).n ? json_text(value) : str_c(otherwise);
}

/* The field that holds the source of a metric: its type with a lower-case first letter. */
static str source_key(struct arena *a, const struct json *metric)
{
    str key = arena_str(a, json_text(json_get(metric, "type")));
    if (key.n)
        ((char *)key.p)[0] = (char)(key.p[0] | 32);
    return key;
}

/* "cpu: 50%/80%" for a resource, "12/10" or "12/10 (avg)" for other metrics. */
static str format_metric(struct arena *a, const struct json *metric, const struct json *status)
{
    str key = source_key(a, metric);
    const struct json *source = json_get_str(metric, key);
    const struct json *target = json_get(source, "target");
    const struct json *current = json_get(json_get_str(status, key), "current");
    const struct json *average = json_get(target, "averageValue");
    if (!source)
        return S("<unknown type>");
    str now = text_or(json_get(current, average ? "averageValue" : "value"), "<unknown>");
    str want = text_or(average ? average : json_get(target, "value"), "<unknown>");
    if (str_eqc(key, "resource") || str_eqc(key, "containerResource")) {
        if (!average) {
            now = format_percent(a, json_get(current, "averageUtilization"), "<unknown>");
            want = format_percent(a, json_get(target, "averageUtilization"), "<auto>");
        }
        return arena_printf(a, STR_FMT ": " STR_FMT "/" STR_FMT,
                            STR_ARG(json_text(json_get(source, "name"))), STR_ARG(now),
                            STR_ARG(want));
    }
    bool of_pods = str_eqc(key, "pods");
    return arena_printf(a, STR_FMT "/" STR_FMT "%s", STR_ARG(now), STR_ARG(want),
                        average && !of_pods ? " (avg)" : "");
}

/* The first two metrics, and how many more there are. */
static str format_targets(struct arena *a, const struct json *hpa)
{
    const struct json *metrics = json_at(hpa, "spec", "metrics", NULL);
    const struct json *statuses = json_at(hpa, "status", "currentMetrics", NULL);
    const struct json *cpu = json_at(hpa, "spec", "targetCPUUtilizationPercentage", NULL);
    if (cpu) {
        str now = format_percent(a, json_at(hpa, "status", "currentCPUUtilizationPercentage", NULL),
                                 "<unknown>");
        return arena_printf(a, "cpu: " STR_FMT "/" STR_FMT, STR_ARG(now),
                            STR_ARG(format_percent(a, cpu, "")));
    }
    if (!json_len(metrics))
        return S("<none>");
    auto_buf struct buf text = { 0 };
    for (uint32_t i = 0; i < json_len(metrics) && i < METRICS_SHOWN; i++) {
        if (i)
            buf_put(&text, S(", "));
        buf_put(&text, format_metric(a, metrics->items[i], json_item(statuses, i)));
    }
    if (json_len(metrics) > METRICS_SHOWN)
        buf_printf(&text, " + %zu more...", json_len(metrics) - METRICS_SHOWN);
    return arena_str(a, buf_str(&text));
}

/* Both versions: a version 1 object has its percentage in a field. */
void table_cells_hpa(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    const struct json *ref = json_at(object, "spec", "scaleTargetRef", NULL);
    const struct json *min = json_at(object, "spec", "minReplicas", NULL);
    table_cell_text(a, cells, json_text(json_at(object, "metadata", "name", NULL)));
    table_cell_text(a, cells,
                    arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(json_text(json_get(ref, "kind"))),
                                 STR_ARG(json_text(json_get(ref, "name")))));
    table_cell_text(a, cells, format_targets(a, object));
    table_cell_text(a, cells,
                    min ? arena_printf(a, "%lld", (long long)json_int(min, 0)) : S("<unset>"));
    table_cell_int(a, cells, json_int(json_at(object, "spec", "maxReplicas", NULL), 0));
    table_cell_int(a, cells, json_int(json_at(object, "status", "currentReplicas", NULL), 0));
    table_cell_text(a, cells,
                    table_cell_age(a, json_at(object, "metadata", "creationTimestamp", NULL),
                                   now_ns));
}
