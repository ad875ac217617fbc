/* The clients of bench/storm.py, each without a limit of its own:
 *
 *   stormclient make N HH:MM:SS          N HPAs in 10 namespaces, and schedules that raise them to 5/50 then
 *   stormclient patch N IN_FLIGHT MIN    bare merge patches of all HPAs; prints the seconds that they take
 *   stormclient watch N MIN              waits until all HPAs have this minReplicas; prints the wall clock of each change
 *   stormclient other SECONDS            what another client sees: a GET each 20 ms; prints wall clock and latency
 */
#include "base/log.h"
#include "base/vec.h"
#include "kube/kube.h"

#include <stdio.h>

enum { NAMESPACES = 10, MAKE_IN_FLIGHT = 32 };

static const struct resource schedules = { "autoscaling.sarabala.io", "v1alpha1",
                                           "smarthorizontalpodautoscalers",
                                           "SmartHorizontalPodAutoscaler", true };

static struct {
    struct loop *loop;
    struct kube *kube;
    const char *boundary;
    long n, next, answered, in_flight, min;
    bool makes;
    int64_t start_ns, sent_ns;
    struct timer again;
    struct cache *hpas;
    long reached;
} run;

static void send_next(void);

static void on_reply(void *context, const struct kube_reply *reply)
{
    (void)context;
    if (reply->failure && reply->reason != KUBE_ALREADY_EXISTS) {
        fprintf(stderr, "%s\n", reply->failure);
        exit(EXIT_FAILURE);
    }
    run.answered++;
    send_next();
}

/* One request of a run: a namespace, an HPA, its schedule, or a patch. */
static void send_one(long at)
{
    char ns[40], name[40], body[1200];
    struct kube_request request = { .done = on_reply };
    if (run.makes && at < NAMESPACES) {
        snprintf(name, sizeof(name), "storm-%ld", at);
        snprintf(body, sizeof(body), "{\"metadata\":{\"name\":\"%s\"}}", name);
        request.resource = &resource_namespaces;
        request.verb = KUBE_CREATE;
    } else {
        long number = run.makes ? (at - NAMESPACES) / 2 : at;
        bool is_hpa = !run.makes || (at - NAMESPACES) % 2 == 0;
        snprintf(ns, sizeof(ns), "storm-%ld", number % NAMESPACES);
        snprintf(name, sizeof(name), "web-%ld", number);
        request.ns = str_c(ns);
        request.name = str_c(name);
        request.resource = is_hpa ? &resource_hpas : &schedules;
        request.verb = run.makes ? KUBE_CREATE : KUBE_MERGE_PATCH;
        if (!run.makes)
            snprintf(body, sizeof(body), "{\"spec\":{\"minReplicas\":%ld,\"maxReplicas\":%ld}}",
                     run.min, run.min * 10);
        else if (is_hpa)
            snprintf(
                body, sizeof(body),
                "{\"metadata\":{\"name\":\"%s\"},\"spec\":{\"minReplicas\":2,\"maxReplicas\":9,"
                "\"scaleTargetRef\":{\"apiVersion\":\"apps/v1\",\"kind\":\"Deployment\",\"name\":\"%s\"}}}",
                name, name);
        else
            snprintf(
                body, sizeof(body),
                "{\"apiVersion\":\"autoscaling.sarabala.io/v1alpha1\",\"kind\":\"SmartHorizontalPodAutoscaler\","
                "\"metadata\":{\"name\":\"%s\"},\"spec\":{\"HPAObjectRef\":{\"name\":\"%s\"},\"triggers\":[{"
                "\"name\":\"day\",\"interval\":{\"recurring\":\"M,TU,W,TH,F,SAT,SUN\"},\"startTime\":\"%s\","
                "\"endTime\":\"23:59:59\",\"startHPAConfig\":{\"minReplicas\":5,\"maxReplicas\":50},"
                "\"endHPAConfig\":{\"minReplicas\":1,\"maxReplicas\":10}}]}}",
                name, name, run.boundary);
    }
    request.body = str_c(body);
    kube_send(run.kube, &request);
}

static void send_next(void)
{
    /* namespaces first, before what is in them */
    long room = run.makes && run.answered < NAMESPACES ? NAMESPACES : run.n;
    while (run.next < room && run.next - run.answered < run.in_flight)
        send_one(run.next++);
    if (run.answered == run.n)
        loop_stop(run.loop);
}

/* ---- another client */

static void send_get(struct timer *timer);

static void on_got(void *context, const struct kube_reply *reply)
{
    (void)context;
    int64_t now = clock_mono_ns();
    if (reply->failure)
        fprintf(stderr, "%s\n", reply->failure);
    printf("%.6f %.3f\n", (double)clock_wall_ns() / 1e9, (double)(now - run.sent_ns) / 1e6);
    if (now - run.start_ns > run.n * NS_PER_S)
        loop_stop(run.loop);
    timer_set(run.loop, &run.again, loop_mono_ns(run.loop) + 20 * NS_PER_MS, send_get);
}

static void send_get(struct timer *timer)
{
    (void)timer;
    run.sent_ns = clock_mono_ns();
    kube_send(run.kube, &(struct kube_request){ .verb = KUBE_GET,
                                                .resource = &resource_configmaps,
                                                .ns = S("kube-system"),
                                                .name = S("extension-apiserver-authentication"),
                                                .done = on_got });
}

/* ---- the bounds as the server reports them */

struct hpa {
    struct record meta;
    int64_t min;
};

static const struct field hpa_fields[] = { { "spec.minReplicas", F_INT,
                                             offsetof(struct hpa, min) } };
static const struct cache_spec hpas = { .resource = &resource_hpas,
                                        .keep = FIELDS(struct hpa, hpa_fields) };

static void on_hpa(void *context, const struct record *old, const struct record *now)
{
    (void)context;
    const struct hpa *was = (const struct hpa *)old, *is = (const struct hpa *)now;
    if (!is || is->min != run.min || (was && was->min == run.min))
        return;
    printf("%.6f\n", (double)clock_wall_ns() / 1e9);
    if (++run.reached == run.n)
        loop_stop(run.loop);
}

static int start_watch(struct manager *m, void **ret_state, err_t *e)
{
    *ret_state = NULL;
    if (manager_cache(m, &hpas, &run.hpas, e) < 0)
        return -e->code;
    cache_handle(run.hpas, on_hpa, NULL);
    return 0;
}

static void connect_kube(void)
{
    struct kube_config *config;
    err_t e;
    if (loop_new(&(struct loop_options){ 0 }, &run.loop, &e) < 0 ||
        kube_config_load(&(struct kube_config_options){ 0 }, &config, &e) < 0 ||
        kube_new(&(struct kube_options){ .loop = run.loop, .config = config, .rate = -1 },
                 &run.kube, &e) < 0) {
        fprintf(stderr, "%s\n", e.text);
        exit(EXIT_FAILURE);
    }
    kube_config_free(config);
}

int main(int argc, char **argv)
{
    const char *mode = argc > 2 ? argv[1] : "";
    log_setup(LOG_ERROR, LOG_TEXT);
    connect_kube();
    run.n = argc > 2 ? strtol(argv[2], NULL, 10) : 0;
    run.start_ns = clock_mono_ns();
    struct manager *manager = NULL;
    err_t e;
    if (!strcmp(mode, "make") && argc == 4) {
        run.makes = true;
        run.boundary = argv[3];
        run.n = NAMESPACES + 2 * run.n;
        run.in_flight = MAKE_IN_FLIGHT;
        send_next();
    } else if (!strcmp(mode, "patch") && argc == 5) {
        run.in_flight = strtol(argv[3], NULL, 10);
        run.min = strtol(argv[4], NULL, 10);
        send_next();
    } else if (!strcmp(mode, "other")) {
        send_get(NULL);
    } else if (!strcmp(mode, "watch") && argc == 4) {
        static const struct feature feature = { .name = "hpas", .start = start_watch };
        run.min = strtol(argv[3], NULL, 10);
        if (manager_new(&(struct manager_options){ .kube = run.kube, .identity = S("storm") },
                        &manager, &e) < 0 ||
            manager_add(manager, &feature, &e) < 0 || manager_run(manager, &e) < 0) {
            fprintf(stderr, "%s\n", e.text);
            return EXIT_FAILURE;
        }
    } else {
        fprintf(stderr, "usage: stormclient make|patch|watch|other ...\n");
        return 2;
    }
    loop_run(run.loop);
    if (!strcmp(mode, "patch"))
        printf("%.3f\n", (double)(clock_mono_ns() - run.start_ns) / 1e9);
    fflush(stdout);
    manager_free(manager);
    kube_free(run.kube);
    loop_free(run.loop);
    return 0;
}
