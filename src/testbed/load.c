/* Simulated load: ConfigMaps become traffic (traffic.h), pods become servers (serving.h), and one timer lets
 * time pass for both and for the CPUs (demand.c).
 *
 *     ConfigMap, label .../load: requests --reconcile_load--> traffic source
 *     ConfigMap, label .../load: trace    --played by---------> the sources that name it
 *     pod, annotation .../model           --kubelet.c---------> server
 *     timer, every --testbed-tick         --advance_load------> requests arrive, servers work, CPUs run
 *
 * Objects decide what exists and the timer decides when it moves: reconcilers never advance time, and the
 * timer never reads the API. A value that cannot be parsed is reported as a warning event on its ConfigMap
 * or pod; an edit of the object, or of the trace it names, is what retries it. */
#include "cluster.h"

#include "../base/duration.h"
#include "../json/json.h"

#define LOAD_LABEL TESTBED_DOMAIN "/load"

struct load { /* a ConfigMap with the label testbed.flyball.dev/load */
    struct record meta;
    int64_t created_ns;
    str data; /* raw JSON */
    const struct labels *labels;
};

static const struct field load_fields[] = {
    { "metadata.creationTimestamp", F_TIME, offsetof(struct load, created_ns) },
    { "metadata.labels", F_MAP, offsetof(struct load, labels) },
    { "data", F_RAW, offsetof(struct load, data) },
};

static const struct cache_spec load_cache = { .resource = &resource_configmaps,
                                              .keep = FIELDS(struct load, load_fields),
                                              .label_selector = { LOAD_LABEL,
                                                                  sizeof(LOAD_LABEL) - 1 } };

static str get_load_kind(const struct load *load)
{
    return intern_labels_get(load->labels, S(LOAD_LABEL));
}

void cluster_report_invalid(struct reconcile *r, const struct resource *resource,
                            const struct record *about, const char *why)
{
    struct cluster *c = r->context;
    events_emit(manager_events(c->manager), &(struct kube_event){ .resource = resource,
                                                                  .ns = about->ns,
                                                                  .name = about->name,
                                                                  .uid = about->uid,
                                                                  .warning = true,
                                                                  .reason = "LoadInvalid",
                                                                  .message = str_c(why) });
}

/* ---- traffic */

/* The text of a trace in the same namespace; "" if there is none. It lives as long as the reconciliation. */
static str find_trace(struct reconcile *r, str name)
{
    struct cluster *c = r->context;
    const struct load *trace = cache_get(c->loads, r->ns, name);
    struct json *data = NULL;
    if (!trace || json_parse(r->arena, trace->data, &data, NULL) < 0)
        return S("");
    return json_text(json_get(data, "trace.csv"));
}

/* Makes the traffic source match its ConfigMap: replaced on any change, removed with the object or its
 * label. */
static struct reconciled reconcile_load(struct reconcile *r)
{
    struct cluster *c = r->context;
    const struct load *load = cache_get(c->loads, r->ns, r->name);
    if (!load || !str_eqc(get_load_kind(load), "requests")) {
        traffic_remove(&c->traffic, r->ns, r->name);
        return reconciled();
    }
    struct traffic_spec spec = {
        .ns = r->ns, .name = r->name, .created_ns = load->created_ns, .now_ns = r->now_ns
    };
    struct json *data = NULL;
    (void)json_parse(r->arena, load->data, &data, NULL);
    spec.data = data;
    str trace = json_text(json_get(data, "trace"));
    spec.trace_csv = trace.n ? find_trace(r, trace) : S("");
    err_t e;
    if (trace.n && !spec.trace_csv.n)
        err_set(&e, ENOENT,
                "trace is \"" STR_FMT
                "\", but no ConfigMap with that name has the label " LOAD_LABEL
                ": trace and the key trace.csv",
                STR_ARG(trace));
    else if (traffic_put(&c->traffic, &spec, &e) == 0)
        return reconciled();
    cluster_report_invalid(r, &resource_configmaps, &load->meta, e.text);
    return reconciled(); /* an edit of either ConfigMap retries it */
}

/* A changed trace is reloaded by every source of its namespace. */
static void enqueue_players(struct controller *controller, const struct record *old,
                            const struct record *now)
{
    struct cluster *c = controller_context(controller);
    const struct load *changed = record_as(struct load, now ? now : old), *load;
    controller_add(controller, changed->meta.ns, changed->meta.name);
    if (!str_eqc(get_load_kind(changed), "trace"))
        return;
    cache_each(load, c->loads)
        if (str_eq(load->meta.ns, changed->meta.ns))
            controller_add(controller, load->meta.ns, load->meta.name);
}

/* ---- servers */

int cluster_start_server(struct reconcile *r, const struct pod *pod, str ip,
                         const struct json *containers, err_t *e)
{
    struct cluster *c = r->context;
    str model = intern_labels_get(pod->annotations, S(TESTBED_DOMAIN "/model"));
    if (!model.n)
        return 0;
    int failed =
        serving_put(&c->serving,
                    &(struct serving_pod){
                        .ns = r->ns,
                        .name = r->name,
                        .ip = ip,
                        .model = model,
                        .accelerator =
                            intern_labels_get(pod->annotations, S(TESTBED_DOMAIN "/accelerator")),
                        .port = intern_labels_get(pod->annotations, S("prometheus.io/port")),
                        .containers = containers,
                        .now_ns = r->now_ns },
                    e);
    if (failed < 0)
        cluster_report_invalid(r, &resource_pods, &pod->meta, e->text);
    return failed;
}

/* ---- time */

static void advance_load(struct timer *timer)
{
    struct cluster *c = container_of(timer, struct cluster, tick);
    struct loop *loop = manager_loop(c->manager);
    traffic_advance(&c->traffic, loop_wall_ns(loop));
    cpu_advance(&c->cpu, loop_wall_ns(loop));
    timer_set(loop, timer, loop_mono_ns(loop) + c->tick_ns, advance_load);
}

int cluster_start_load(struct cluster *c, err_t *e)
{
    struct loop *loop = manager_loop(c->manager);
    if (duration_parse(str_c(manager_setting(c->manager, "testbed-tick")), &c->tick_ns, e) < 0)
        return err_wrap(e, "--testbed-tick");
    if (c->tick_ns < NS_PER_MS)
        return err_set(e, EINVAL, "--testbed-tick must be 1ms or more");
    int failed = cluster_start_cpu(c, e);
    failed = failed ? failed : manager_cache(c->manager, &load_cache, &c->loads, e);
    if (failed)
        return failed;
    c->serving.loop = loop;
    c->serving.orphaned = traffic_reroute;
    c->serving.context = &c->traffic;
    c->traffic.serving = &c->serving;
    c->load_controller =
        manager_controller(c->manager, &(struct controller_spec){ .name = "testbed-load",
                                                                  .reconcile = reconcile_load,
                                                                  .context = c });
    controller_watch(c->load_controller, c->loads, enqueue_players);
    timer_set(loop, &c->tick, loop_mono_ns(loop) + c->tick_ns, advance_load);
    return 0;
}

void cluster_stop_load(struct cluster *c)
{
    timer_stop(&c->tick);
    traffic_done(&c->traffic);
    serving_done(&c->serving);
    cpu_done(&c->cpu);
}
