/* The slo policy in a closed loop of real parts: simulated replicas serve a load; a real Prometheus stores what their
 * exporters show; the operator asks it, decides and scales Deployments on an API server; the replicas follow. What it
 * decides must be what `flyball simulate` decides on the same load.
 *
 *     fleet ──page──► Prometheus ──answers──► operator ──scale──► API server
 *       ▲                                                             │
 *       └──────────────── replicas of the Deployments ◄───────────────┘
 *
 *     closed_loop_test                       on the embedded API server
 *     closed_loop_test --kubeconfig FILE     on another one, whose controllers create the pods
 *     closed_loop_test --kubeconfig FILE --hpa DIR     and whose HPA controller scales the Deployments
 *
 * The fleet is fleet.h's, with a policy that hands each step to the parts and returns what they decided. Time is
 * virtual: Prometheus takes the times of the samples from the page and is asked as of the fleet's time. */
#include "decisions.h"
#include "fleet_page.h"
#include "hpa_controller.h"
#include "real_prometheus.h"
#include "saturation_world.h"

#include "base/rfc3339.h"
#include "testbed/fleet_query.h"
#include "testbed/policies.h"

#include <math.h>
#include <sys/timerfd.h>

enum { PODS_MAX = 512 };

static struct kube_config *remote; /* of another API server; NULL: the embedded one */
static const char *hpa_folder; /* of its certificates: an HPA follows what is decided; NULL: none */
static int initial[VARIANTS] = { 0, 4 };

/* ---- the load */

/* A server with a clock of its own shows no start delays in the fleet's time: there they are all 120 s. */
static struct fleet_config fleet_settings(void)
{
    return (struct fleet_config){ .variants = variants,
                                  .variant_n = VARIANTS,
                                  .ttft_s = 2,
                                  .itl_s = 0.06,
                                  .goal = 0.99,
                                  .start_mean_s = 120,
                                  .start_sd_s = remote ? 0 : 15,
                                  .scrape_s = 15,
                                  .has_gateway = true,
                                  .mean_prompt = 1100,
                                  .mean_output = 210,
                                  .seed = 1 };
}

/* ---- the parts */

struct part_pod {
    char name[64];
    size_t variant;
    const struct fleet_replica *replica; /* NULL: not yet */
    char replica_name[24];
    size_t scrapes; /* published */
    bool ready, gone;
};

struct parts {
    struct fleet_policy policy;
    struct models w;
    struct prometheus prometheus;
    struct http_server *proxy;
    struct part_pod pods[PODS_MAX];
    size_t pod_n;
    int64_t base_ms;      /* of second 0 of the fleet */
    double now_s;         /* of the fleet */
    size_t gateway_shown; /* scrapes of the gateway that were published */
    double restart_s;     /* of the fleet: when the operator is started again; 0: never */
    bool forgets;         /* and what it had saved is gone */
    bool mute;            /* ranges are not answered */
    struct exchange *held[1 + VARIANTS]; /* those ranges */
    size_t fetches, ranges;
    int64_t fetched_ns; /* mono: the last one began */
    struct fd_watch *ticker;
    int ticks_fd;
    size_t ticks;
    const char *settings[8];
    struct hpa_controller hpa;
};

/* The latest, because a replica may get the memory of one that is long gone. */
static struct part_pod *find_pod(struct parts *p, const struct fleet_replica *r)
{
    for (size_t i = p->pod_n; i--;)
        if (p->pods[i].replica == r && !strcmp(p->pods[i].replica_name, r->name))
            return &p->pods[i];
    return NULL;
}

/* ---- time */

static void on_tick(void *context, unsigned events UNUSED)
{
    struct parts *p = context;
    uint64_t count;
    p->ticks += read(p->ticks_fd, &count, sizeof(count)) > 0;
}

/* Virtual time does not wait for a server in another process: the loop is held, and time goes on only when that
 * server has been silent for 40 ms. */
static void settle_parts(struct parts *p)
{
    for (int quiet = 0; remote && quiet < 2;) {
        size_t before = p->ticks, turns = 0;
        for (; p->ticks == before; turns++)
            loop_turn(p->w.c.loop);
        quiet = turns == 1 ? quiet + 1 : 0;
    }
}

static void start_ticks(struct parts *p)
{
    struct timespec tick = { .tv_nsec = 20 * NS_PER_MS };
    p->ticks_fd = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    timerfd_settime(p->ticks_fd, 0, &(struct itimerspec){ tick, tick }, NULL);
    if (fd_watch_new(p->w.c.loop, p->ticks_fd, on_tick, p, &p->ticker) < 0)
        exit(EXIT_FAILURE);
    fd_watch_set(p->ticker, FD_READ);
    loop_hold(p->w.c.loop);
}

/* One turn in which time may go on. */
static void pass_turn(struct parts *p)
{
    if (remote)
        loop_release(p->w.c.loop);
    loop_turn(p->w.c.loop);
    if (remote)
        loop_hold(p->w.c.loop);
    settle_parts(p);
}

/* ---- metrics: every scrape of the fleet that Prometheus has not got yet */

static void publish(struct parts *p, const struct fleet *f)
{
    auto_buf struct buf out = { 0 };
    for (size_t i = 0; i < f->replicas.n; i++) { /* also of one that drains */
        const struct series *s = f->replicas.at[i]->series;
        struct part_pod *pod = find_pod(p, f->replicas.at[i]);
        for (; s && pod && pod->scrapes < s->n; pod->scrapes++)
            fleet_page_put(&out, pod->name, &variants[pod->variant].profile,
                           &s->ring[pod->scrapes % SERIES_SCRAPES], p->base_ms);
    }
    for (; p->gateway_shown < f->gateway_n; p->gateway_shown++) {
        const struct fleet_gateway_scrape *g =
            &f->gateway[p->gateway_shown % FLEET_GATEWAY_SCRAPES];
        long long at_ms = p->base_ms + llround(g->at_s * 1000);
        buf_printf(&out,
                   "inference_objective_request_total{" FLEET_PAGE_LABELS "} %g %lld\n"
                   "inference_extension_flow_control_queue_size{" FLEET_PAGE_LABELS "} %g %lld\n",
                   g->requests, at_ms, g->queued, at_ms);
    }
    OK(prometheus_publish(&p->prometheus, buf_str(&out), p->base_ms + llround(p->now_s * 1000)));
}

/* A range of the operator's clock, moved to the fleet's, and its answer moved back. */
static int ask_range(struct parts *p, str form, struct buf *answer)
{
    auto_buf struct buf moved = { 0 }, theirs = { 0 };
    double by =
        (double)p->base_ms / 1000 + p->now_s - (double)loop_wall_ns(p->w.c.loop) / (double)NS_PER_S;
    p->ranges++;
    buf_printf(&moved, STR_FMT "&start=%.3f&end=%.3f&step=%g",
               STR_ARG(str_upto(form, str_find(form, S("&start=")))),
               prometheus_form_number(form, "&start=") + by,
               prometheus_form_number(form, "&end=") + by, prometheus_form_number(form, "&step="));
    int code = prometheus_post(&p->prometheus, "query_range", buf_str(&moved), &theirs);
    prometheus_move_times(answer, buf_str(&theirs), -by);
    return code;
}

/* As of the fleet's time. */
static int ask_instant(struct parts *p, str form, struct buf *answer)
{
    auto_buf struct buf timed = { 0 };
    buf_printf(&timed, STR_FMT "&time=%.3f", STR_ARG(form), (double)p->base_ms / 1000 + p->now_s);
    if (str_find(form, S("kv_cache_usage_perc%7B")) != SIZE_MAX &&
        str_find(form, S("label_replace")) == SIZE_MAX) {
        p->fetches++; /* the query that each fetch begins with */
        p->fetched_ns = loop_mono_ns(p->w.c.loop);
    }
    return prometheus_post(&p->prometheus, "query", buf_str(&timed), answer);
}

/* Queries of the operator go to Prometheus with the fleet's time. */
static void serve_query(void *context, struct exchange *x)
{
    auto_buf struct buf answer = { 0 };
    struct parts *p = context;
    bool is_range = str_ends(exchange_path(x), S("query_range"));
    if (is_range && p->mute && p->ranges < countof(p->held)) {
        p->held[p->ranges++] = x;
        return;
    }
    int code = is_range ? ask_range(context, exchange_body(x), &answer)
                        : ask_instant(context, exchange_body(x), &answer);
    exchange_answer(x, code ? code : 502,
                    HTTP_HEADERS({ S("content-type"), S("application/json") }), buf_str(&answer));
}

/* ---- pods: one for each replica of the fleet that was asked for and does not drain */

static void create_pod(struct parts *p, size_t v)
{
    struct part_pod *pod = &p->pods[p->pod_n++];
    struct arena *a = &p->w.c.arena;
    const char *workload = variants[v].name.p;
    str set = arena_printf(a, "%s-1", workload);
    snprintf(pod->name, sizeof(pod->name), "%s-1-%05zu", workload,
             p->pod_n); /* as a Deployment's */
    pod->variant = v;
    models_create(
        &p->w, &resource_pods, MODELS_NS,
        arena_printf(a,
                     "{apiVersion: v1, kind: Pod, metadata: {name: %s, ownerReferences: "
                     "[{apiVersion: apps/v1, kind: ReplicaSet, name: %s, uid: " STR_FMT
                     ", controller: true}]}, spec: {containers: [{name: vllm, image: vllm}]}}",
                     pod->name, set.p, STR_ARG(models_uid(&p->w, &resource_replicasets, set.p))));
}

/* ---- another API server: its controllers create and delete the pods */

static bool is_known(const struct parts *p, str name)
{
    for (size_t i = 0; i < p->pod_n; i++)
        if (str_eqc(name, p->pods[i].name))
            return true;
    return false;
}

/* The controller of ReplicaSets deletes those that are not ready first, then the cheapest: as the fleet, the youngest. */
static void adopt_pod(struct parts *p, size_t v, str name)
{
    struct part_pod *pod = &p->pods[p->pod_n++];
    snprintf(pod->name, sizeof(pod->name), STR_FMT, STR_ARG(name));
    pod->variant = v;
    models_patch(&p->w, &resource_pods, pod->name, NULL,
                 arena_printf(&p->w.c.arena,
                              "{\"metadata\":{\"annotations\":{\"controller.kubernetes.io/"
                              "pod-deletion-cost\":\"-%zu\"}}}",
                              p->pod_n));
}

/* Waits until the Deployment has as many pods as it should, and takes note of new ones. */
static void adopt_pods(struct parts *p, size_t v, size_t wanted)
{
    for (size_t n = SIZE_MAX; n != wanted;) {
        struct cluster_answer a =
            cluster_do(&p->w.c, KUBE_LIST, &resource_pods, MODELS_NS, NULL, S(""));
        const struct json *list = json_get(a.object, "items");
        n = 0;
        for (size_t i = 0; i < json_len(list); i++) {
            const struct json *meta = json_get(json_item(list, i), "metadata");
            str name = json_text(json_get(meta, "name"));
            if (!str_eq(json_text(json_at(meta, "labels", "app", NULL)), variants[v].name) ||
                json_get(meta, "deletionTimestamp"))
                continue;
            n++;
            if (!is_known(p, name))
                adopt_pod(p, v, name);
        }
        settle_parts(p);
    }
}

static void await_ready(struct parts *p, size_t v, int ready)
{
    for (int64_t n = -1; n != ready; settle_parts(p)) {
        const struct json *o =
            cluster_get(&p->w.c, &resource_deployments, MODELS_NS, variants[v].name.p);
        n = json_int(json_at(o, "status", "readyReplicas", NULL), 0);
    }
}

static void make_ready(struct parts *p, struct part_pod *pod)
{
    struct arena *a = &p->w.c.arena;
    const struct json *o = cluster_get(&p->w.c, &resource_pods, MODELS_NS, pod->name);
    int64_t created = 0, took = (pod->replica->ready_ns - pod->replica->created_ns) / NS_PER_S;
    char at[RFC3339_TEXT_MAX];
    rfc3339_parse(json_text(json_at(o, "metadata", "creationTimestamp", NULL)), &created, NULL);
    models_patch(&p->w, &resource_pods, pod->name, "status",
                 arena_printf(a,
                              "{\"status\":{\"phase\":\"Running\",\"conditions\":[{\"type\":"
                              "\"Ready\",\"status\":\"True\",\"lastTransitionTime\":\"" STR_FMT
                              "\"}]}}",
                              STR_ARG(rfc3339_text(created + took, at))));
    pod->ready = true;
}

/* Gives each new replica one of the pods that were created for it, in order. */
static void bind_replicas(struct parts *p, const struct fleet *f)
{
    for (size_t i = 0; i < f->replicas.n; i++) {
        const struct fleet_replica *r = f->replicas.at[i];
        if (r->phase > FLEET_READY || find_pod(p, r))
            continue;
        for (size_t k = 0; k < p->pod_n; k++)
            if (!p->pods[k].replica && !p->pods[k].gone && p->pods[k].variant == r->variant) {
                p->pods[k].replica = r;
                memcpy(p->pods[k].replica_name, r->name, sizeof(r->name));
                break;
            }
        OK(find_pod(p, r) != NULL);
    }
}

static bool is_serving(const struct fleet *f, const struct fleet_replica *r)
{
    for (size_t i = 0; i < f->replicas.n; i++)
        if (f->replicas.at[i] == r)
            return r->phase <= FLEET_READY;
    return false;
}

static void follow_fleet(struct parts *p, const struct fleet *f)
{
    bind_replicas(p, f);
    for (size_t i = 0; i < p->pod_n; i++) {
        struct part_pod *pod = &p->pods[i];
        if (pod->gone || !pod->replica)
            continue;
        if (!is_serving(f, pod->replica)) {
            pod->gone = true;
            if (!remote)
                cluster_do(&p->w.c, KUBE_DELETE, &resource_pods, MODELS_NS, pod->name,
                           S("{\"gracePeriodSeconds\":0}"));
        } else if (pod->replica->phase == FLEET_READY && !pod->ready) {
            make_ready(p, pod);
        }
    }
    for (size_t v = 0; v < VARIANTS && remote; v++)
        await_ready(p, v, f->ready[v]);
    for (size_t v = 0; v < VARIANTS && !remote; v++)
        models_patch(&p->w, &resource_deployments, variants[v].name.p, "status",
                     arena_printf(&p->w.c.arena,
                                  "{\"status\":{\"replicas\":%d,\"readyReplicas\":%d}}",
                                  f->current[v], f->ready[v]));
}

/* ---- a step */

static void run_until(struct parts *p, int64_t mono_ns)
{
    struct timer timer = { 0 };
    timer_set(p->w.c.loop, &timer, MAX(mono_ns, loop_mono_ns(p->w.c.loop)), cluster_tick);
    while (timer_is_set(&timer))
        pass_turn(p);
}

/* The HPA controller asks in its own time, every second. */
static void await_hpa(struct parts *p, size_t v)
{
    int64_t until = clock_mono_ns() + 60 * NS_PER_S;
    double wanted = hpa_controller_wanted(&p->hpa, v);
    OK(wanted >= 0);
    while ((double)models_replicas(&p->w, variants[v].name.p) != wanted) {
        if (!OK(clock_mono_ns() < until))
            exit(EXIT_FAILURE);
        settle_parts(p);
    }
}

/* The cluster's clock goes on from fetch to fetch, the fleet's from step to step; both are 15 s apart. */
static void step_parts(struct fleet_policy *policy, const struct fleet *f,
                       struct fleet_answer *answer)
{
    struct parts *p = container_of(policy, struct parts, policy);
    p->now_s = fleet_now_s(f);
    if (p->fetches)
        run_until(p, p->fetched_ns + CYCLE_S * NS_PER_S - 200 * NS_PER_MS);
    follow_fleet(p, f);
    publish(p, f);
    settle_parts(p);
    if (p->restart_s > 0 && p->now_s >= p->restart_s) {
        p->restart_s = 0;
        cluster_operator_down(&p->w.c);
        if (p->forgets)
            cluster_do(&p->w.c, KUBE_DELETE, &resource_configmaps, MODELS_HOME,
                       "flyball-saturation-state", S(""));
    }
    size_t before = p->fetches;
    if (!p->w.c.manager) {
        cluster_operator(&p->w.c, &saturation_feature, p->settings);
        run_until(p, loop_mono_ns(p->w.c.loop) + 8 * NS_PER_S); /* the fetch that sets the pace */
    }
    while (p->fetches == before)
        pass_turn(p);
    run_until(p, p->fetched_ns + 300 * NS_PER_MS);
    for (size_t v = 0; v < VARIANTS && hpa_folder; v++)
        await_hpa(p, v);
    for (size_t v = 0; v < VARIANTS; v++) {
        const char *name = variants[v].name.p;
        answer->targets[v] = (int)models_replicas(&p->w, name);
        for (int i = f->current[v]; !remote && i < answer->targets[v]; i++)
            create_pod(p, v);
        if (remote)
            adopt_pods(p, v, (size_t)answer->targets[v]);
    }
    str message = models_condition(&p->w, "l40s", "OptimizationReady", "message");
    snprintf(answer->reason, sizeof(answer->reason), STR_FMT, STR_ARG(message));
    arena_reset(&p->w.c.arena, (struct arena_mark){ 0 });
}

/* Where there is no controller of Deployments, with the ReplicaSet that it would create. */
static void create_workload(struct parts *p, const char *name, int replicas)
{
    struct arena *a = &p->w.c.arena;
    str pods = arena_printf(
        a,
        "replicas: %d, selector: {matchLabels: {app: %s}}, template: {metadata: {labels: {app: "
        "%s}}, spec: {containers: [{name: vllm, image: vllm}]}}",
        replicas, name, name);
    models_create(
        &p->w, &resource_deployments, MODELS_NS,
        arena_printf(a,
                     "{apiVersion: apps/v1, kind: Deployment, metadata: {name: %s}, spec: {" STR_FMT
                     "}}",
                     name, STR_ARG(pods)));
    if (!remote)
        models_create(
            &p->w, &resource_replicasets, MODELS_NS,
            arena_printf(
                a,
                "{apiVersion: apps/v1, kind: ReplicaSet, metadata: {name: %s-1, ownerReferences: "
                "[{apiVersion: apps/v1, kind: Deployment, name: %s, uid: " STR_FMT
                ", controller: true}]}, spec: {" STR_FMT "}}",
                name, name, STR_ARG(models_uid(&p->w, &resource_deployments, name)),
                STR_ARG(pods)));
}

static bool start_parts(struct parts *p)
{
    *p = (struct parts){ .policy = { "parts", CYCLE_S, step_parts, NULL } };
    if (!prometheus_start(&p->prometheus)) {
        prometheus_stop(&p->prometheus);
        return false;
    }
    err_t e;
    models_prepare(&p->w);
    cluster_start_on(&p->w.c, clock_wall_ns() / NS_PER_S, remote);
    if (remote)
        start_ticks(p);
    models_spaces(&p->w);
    models_config(&p->w, MODELS_HOME, "saturation-scaling-config",
                  "{default: \"" MODELS_THRESHOLDS "slo: {ttft: 2s, itl: 60ms, goal: 99}\\n\"}");
    cluster_check(http_server_new(p->w.c.loop,
                                  &(struct http_server_options){ .on_request = serve_query,
                                                                 .context = p },
                                  &p->proxy, &e),
                  &e);
    p->base_ms = (clock_wall_ns() / NS_PER_S - LENGTH_S - 60) * 1000;
    static char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", http_server_port(p->proxy));
    memcpy(p->settings,
           (const char *[]){ "wva-prometheus-url", url, "wva-prometheus-allow-http", "true" },
           4 * sizeof(*p->settings));
    p->hpa = (struct hpa_controller){ &p->w, NULL, NULL, variants, accelerators, VARIANTS, 0 };
    if (hpa_folder)
        hpa_controller_start(&p->hpa, hpa_folder);
    for (size_t v = 0; v < VARIANTS; v++) {
        const char *name = variants[v].name.p;
        create_workload(p, name, initial[v]);
        models_variant(&p->w, name, accelerators[v], v ? "15" : "40",
                       hpa_folder ? "" : "actuation: Scale, minReplicas: 0, maxReplicas: 16,");
        if (hpa_folder)
            hpa_controller_follow(&p->hpa, v);
        for (int i = 0; !remote && i < initial[v]; i++)
            create_pod(p, v);
        if (remote)
            adopt_pods(p, v, (size_t)initial[v]);
    }
    return true;
}

static void stop_parts(struct parts *p)
{
    cluster_operator_down(&p->w.c);
    for (size_t i = 0; p->mute && i < p->ranges; i++)
        exchange_answer(p->held[i], 503, HTTP_HEADERS({ 0 }), S(""));
    http_server_free(p->proxy);
    hpa_controller_stop(&p->hpa);
    if (remote) {
        loop_release(p->w.c.loop);
        fd_watch_free(p->ticker);
        close(p->ticks_fd);
    }
    models_stop(&p->w);
    prometheus_stop(&p->prometheus);
}

/* ---- the comparison */

static struct fleet_score run_fleet(struct fleet_policy *policy, struct decisions *d)
{
    static struct replica_request requests[65536];
    struct fleet_config config = fleet_settings();
    struct fleet_run run = { .config = &config,
                             .trace = { requests, make_trace(requests, countof(requests)) },
                             .initial = initial,
                             .policy = policy,
                             .hooks = &(struct fleet_hooks){ note_decision, NULL, d } };
    return fleet_simulate(&run, NULL);
}

/* What Prometheus and the operator are like in one run. */
struct conditions {
    double restart_s;
    bool forgets, mute;
};

static struct fleet_score run_parts(struct conditions c, struct decisions *got)
{
    static struct parts parts;
    if (!start_parts(&parts))
        return (struct fleet_score){ .aborted = true };
    parts.restart_s = c.restart_s;
    parts.forgets = c.forgets;
    parts.mute = c.mute;
    struct fleet_score real = run_fleet(&parts.policy, got);
    EQ_INT((int64_t)parts.ranges, (c.restart_s > 0 ? 2 : 1) * (1 + VARIANTS)); /* once per start */
    OK(!hpa_folder || parts.hpa.asked > got->n);
    stop_parts(&parts);
    return real;
}

static void compare_with_simulation(struct conditions c)
{
    static struct decisions got, want;
    got.n = want.n = 0;
    struct fleet_score real = run_parts(c, &got);
    if (real.aborted)
        SKIP("there is no prometheus");
    struct fleet_config config = fleet_settings();
    struct fleet_policy *slo = fleet_policy_slo(&config);
    struct fleet_score simulated = run_fleet(slo, &want);
    fleet_policy_free(slo);
    printf("# attained %.2f %%, cost %.1f; simulated %.2f %%, %.1f\n", real.attained * 100,
           real.cost, simulated.attained * 100, simulated.cost);
    if (!c.forgets) {
        compare(&want, &got);
        return;
    }
    OK(real.attained >= simulated.attained - 0.005);
    OK(real.cost <= simulated.cost * 1.06);
}

static void real_parts_decide_as_simulated(void)
{
    compare_with_simulation((struct conditions){ 0 });
}

/* What was learned is in a ConfigMap, the loads are in Prometheus: after a restart decisions go on as before. */
static void a_restart_changes_no_decision(void)
{
    compare_with_simulation((struct conditions){ .restart_s = 750 });
}

/* Prometheus alone knows what was: the error budget is lost, the speeds and the loads are not. */
static void history_replaces_what_was_not_saved(void)
{
    compare_with_simulation((struct conditions){ .restart_s = 750, .forgets = true });
}

static void no_decision_waits_for_history(void)
{
    compare_with_simulation((struct conditions){ .mute = true });
}

int main(int argc, char **argv)
{
    err_t e;
    if (argc == 5 && !strcmp(argv[3], "--hpa")) {
        hpa_folder = argv[4];
        for (size_t v = 0; v < VARIANTS; v++)
            variants[v].min = 1; /* an HPA leaves a workload without replicas alone */
        memcpy(initial, (const int[VARIANTS]){ 1, 2 }, sizeof(initial));
    }
    if (argc >= 3 && !strcmp(argv[1], "--kubeconfig"))
        cluster_check(kube_config_load(&(struct kube_config_options){ .kubeconfig = argv[2] },
                                       &remote, &e),
                      &e);
    struct tap_case cases[] = { TAP(real_parts_decide_as_simulated),
                                TAP(a_restart_changes_no_decision),
                                TAP(history_replaces_what_was_not_saved),
                                TAP(no_decision_waits_for_history),
                                { 0 } };
    if (remote) /* each case needs a cluster of its own, and there is one */
        cases[1] = (struct tap_case){ 0 };
    int code = tap_run(cases);
    kube_config_free(remote);
    return code;
}
