/* Reads the metrics of a HorizontalPodAutoscaler for the model (hpa_model.h) and for its status.
 *
 * Resource metrics: the CPU usage of ready pods as a metrics server would report it (cpu.h), as a share of
 * their requests or as a value. External metrics come from adapter.h. Pods, Object and ContainerResource
 * metrics are not simulated: they count as unavailable, and an unavailable metric never scales down. */
#include "cluster.h"

#include "../base/quantity.h"
#include "../json/json.h"

#include <math.h>

struct usage {             /* CPU of the pods of a Deployment */
    double milli;          /* used by pods that are ready and report */
    int64_t request_milli; /* requested by these */
    size_t pods;           /* their number */
    int64_t unknown_milli; /* requested by all others */
};

/* Adds a pod to the known or to the unknown part of the sum. Pods being deleted do not count. */
static void add_pod_usage(struct reconcile *r, const struct pod *pod, struct usage *sum)
{
    const struct cluster *c = r->context;
    double milli = cpu_mean_milli(&c->cpu, pod->meta.ns, pod->meta.name);
    if (pod->deleting)
        return;
    int64_t request = cluster_pod_allocated_milli(pod);
    if (isnan(milli) || !str_eqc(pod->ready, "True")) {
        sum->unknown_milli += request;
        return;
    }
    sum->milli += milli;
    sum->request_milli += request;
    sum->pods++;
}

/* Mean utilization in percent, with Kubernetes' assumption for pods without metrics: they are idle when the others
 * ask for more replicas, and exactly at the target when they ask for fewer. So they dampen a change but never
 * reverse it. */
static double estimate_utilization(const struct usage *usage, double target)
{
    double known = 100 * usage->milli / (double)usage->request_milli;
    double all = (double)(usage->request_milli + usage->unknown_milli);
    if (known > target)
        return fmax(100 * usage->milli / all, target);
    return (100 * usage->milli + target * (double)usage->unknown_milli) / all;
}

static struct usage sum_usage(struct reconcile *r, const struct workload *d)
{
    const struct cluster *c = r->context;
    struct usage sum = { 0 };
    const struct workload *set;
    const struct pod *pod;
    cache_each_in(set, c->sets, SETS_BY_OWNER, d->meta.uid)
        cache_each_in(pod, c->pods, PODS_BY_OWNER, set->meta.uid)
            add_pod_usage(r, pod, &sum);
    return sum;
}

static double parse_real(const struct json *v)
{
    int64_t milli;
    return quantity_parse_milli(json_text(v), &milli, NULL) ? NAN : (double)milli / 1000;
}

/* A value as the API prints it, rounded to thousandths. */
static struct json *new_quantity(struct arena *a, double value)
{
    char text[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_of((int64_t)llround(value * 1000), -3, QUANTITY_DECIMAL);
    return json_new_str(a, quantity_text(&q, text));
}

/* ---- one function per type; each fills `current` for the status */

/* CPU of the target's pods. Unavailable for other resources, and while no ready pod reports. */
static struct hpa_metric read_resource(struct reconcile *r, const struct workload *d,
                                       const struct json *resource, struct json *current)
{
    const struct json *target = json_get(resource, "target");
    struct usage usage = sum_usage(r, d);
    bool percent = str_eqc(json_text(json_get(target, "type")), "Utilization");
    bool is_cpu = str_eqc(json_text(json_get(resource, "name")), "cpu");
    if (!is_cpu || !usage.pods || (percent && !usage.request_milli))
        return (struct hpa_metric){ 0 };
    double mean = usage.milli / (double)usage.pods;
    double utilization = usage.request_milli ? 100 * usage.milli / (double)usage.request_milli : 0;
    if (usage.request_milli)
        json_set_int(r->arena, current, "averageUtilization", (int64_t)utilization);
    json_set(r->arena, current, S("averageValue"), new_quantity(r->arena, floor(mean) / 1000));
    double wanted = (double)json_int(json_get(target, "averageUtilization"), 0);
    if (percent)
        return (struct hpa_metric){ .available = true,
                                    .kind = HPA_UTILIZATION,
                                    .target = wanted,
                                    .value = estimate_utilization(&usage, wanted) };
    return (struct hpa_metric){ .available = true,
                                .kind = HPA_AVERAGE_VALUE,
                                .target = parse_real(json_get(target, "averageValue")),
                                .value = usage.milli / 1000 };
}

/* The adapter's value. For AverageValue the status shows the share of one replica, as Kubernetes does. */
static struct hpa_metric read_external(struct reconcile *r, const struct workload *d,
                                       const struct json *external, struct json *current)
{
    const struct cluster *c = r->context;
    const struct json *metric = json_get(external, "metric"),
                      *target = json_get(external, "target");
    bool average = str_eqc(json_text(json_get(target, "type")), "AverageValue");
    double value = adapter_value(&c->adapter, json_text(json_get(metric, "name")),
                                 json_at(metric, "selector", "matchLabels", NULL));
    if (isnan(value))
        return (struct hpa_metric){ 0 };
    double shown = average && d->replicas > 0 ? value / (double)d->replicas : value;
    json_set(r->arena, current, average ? S("averageValue") : S("value"),
             new_quantity(r->arena, shown));
    return (struct hpa_metric){ .available = true,
                                .kind = average ? HPA_AVERAGE_VALUE : HPA_VALUE,
                                .target = parse_real(
                                    json_get(target, average ? "averageValue" : "value")),
                                .value = value };
}

struct hpa_metric cluster_read_metric(struct reconcile *r, const struct workload *d,
                                      const struct json *spec, struct json *ret_status)
{
    str type = json_text(json_get(spec, "type"));
    struct json *current = json_new_obj(r->arena), *body = json_new_obj(r->arena);
    struct hpa_metric metric = { 0 };
    if (str_eqc(type, "Resource")) {
        const struct json *resource = json_get(spec, "resource");
        metric = read_resource(r, d, resource, current);
        json_set_str(r->arena, body, "name", json_text(json_get(resource, "name")));
        json_set(r->arena, ret_status, S("resource"), body);
    } else if (str_eqc(type, "External")) {
        const struct json *external = json_get(spec, "external");
        metric = read_external(r, d, external, current);
        json_set(r->arena, body, S("metric"), json_copy(r->arena, json_get(external, "metric")));
        json_set(r->arena, ret_status, S("external"), body);
    }
    json_set_str(r->arena, ret_status, "type", type);
    json_set(r->arena, body, S("current"), current);
    metric.available &= !isnan(metric.target) && metric.target > 0;
    return metric;
}
