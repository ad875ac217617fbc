#include "tap.h"

#include "market/floor_core.h"
#include "market/market_agent_pod.h"

static const str excluded = STR_INIT("kube-system, mbcas-system");

struct reader {
    struct projector *projector;
    struct projection *projection;
    struct record *record;
    struct buf text;
};

/* A Burstable pod of one container, with what the case puts into it. */
struct pod_text {
    const char *ns, *meta, *spec, *container, *status, *qos, *phase;
};

static const struct agent_pod_record *read_pod(struct reader *r, struct pod_text t)
{
    err_t e;
    if (!r->projector) {
        r->projector = projector_new();
        OK_CALL(projection_new(r->projector, market_agent_pod_cache.keep, 0, &r->projection, &e),
                &e);
    }
    record_unref(r->record);
    buf_clear(&r->text);
    buf_printf(
        &r->text,
        "{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"%s\",\"uid\":\"u1\"%s},\"spec\":{%s"
        "\"containers\":[{\"name\":\"a\",\"resources\":{%s}}]},\"status\":{%s\"phase\":\"%s\","
        "\"qosClass\":\"%s\"}}",
        t.ns ? t.ns : "shop", t.meta ? t.meta : "", t.spec ? t.spec : "",
        t.container ? t.container : "\"limits\":{\"cpu\":\"500m\"},\"requests\":{\"cpu\":\"200m\"}",
        t.status ? t.status : "", t.phase ? t.phase : "Running", t.qos ? t.qos : "Burstable");
    OK_CALL(project(r->projection, buf_str(&r->text), &r->record, &e), &e);
    return (const void *)r->record;
}

static void reader_done(struct reader *r)
{
    record_unref(r->record);
    projection_free(r->projection);
    projector_free(r->projector);
    buf_done(&r->text);
}

static void some_pods_are_left_alone(void)
{
#define ANNOTATION(key, value) ",\"annotations\":{\"" key "\":\"" value "\"}"
#define LABEL(key, value) ",\"labels\":{\"" key "\":\"" value "\"}"
    static const char no_limit[] = "\"requests\":{\"cpu\":\"200m\"}";
    const struct {
        struct pod_text pod;
        enum agent_exclusion want;
    } cases[] = {
        { { 0 }, AGENT_TAKES_PART },
        { { .phase = "Pending" }, AGENT_NOT_RUNNING },
        { { .meta = ",\"deletionTimestamp\":\"2026-01-01T00:00:00Z\"" }, AGENT_ENDING },
        { { .ns = "kube-system" }, AGENT_NAMESPACE },
        { { .ns = "mbcas-system" }, AGENT_NAMESPACE },
        { { .ns = "kube" }, AGENT_TAKES_PART },
        { { .meta = LABEL("mbcas.io/managed", "false") }, AGENT_OPTED_OUT },
        { { .meta = ANNOTATION("mbcas.io/managed", "false") }, AGENT_OPTED_OUT },
        { { .meta = ANNOTATION("kubernetes.io/config.mirror", "x") }, AGENT_STATIC },
        { { .spec = "\"os\":{\"name\":\"windows\"}," }, AGENT_WINDOWS },
        { { .qos = "BestEffort", .container = "" }, AGENT_BEST_EFFORT },
        { { .qos = "Guaranteed" }, AGENT_GUARANTEED },
        { { .qos = "Guaranteed", .meta = ANNOTATION("mbcas.io/skip-guaranteed", "false") },
          AGENT_TAKES_PART },
        { { .container = no_limit }, AGENT_NO_LIMIT },
        { { .container = no_limit, .meta = ANNOTATION("mbcas.io/managed", "true") },
          AGENT_TAKES_PART },
    };
    struct reader r = { 0 };
    for (size_t i = 0; i < countof(cases); i++) {
        struct agent_pod_view view = market_agent_pod_view(read_pod(&r, cases[i].pod), excluded);
        EQ_INT(view.exclusion, cases[i].want);
        bool reserves = cases[i].want != AGENT_TAKES_PART && cases[i].want != AGENT_BEST_EFFORT;
        EQ_INT(view.reserved_milli, reserves ? 200 : 0);
    }
    struct agent_pod_view over =
        market_agent_pod_view(read_pod(&r, (struct pod_text){ .phase = "Succeeded" }), excluded);
    EQ_INT(over.reserved_milli, 0); /* it has ended and needs no room */
    reader_done(&r);
}

static void what_the_node_reports_is_in_force(void)
{
    struct reader r = { 0 };
    struct pod_text t = {
        .spec =
            "\"initContainers\":[{\"name\":\"side\",\"restartPolicy\":\"Always\",\"resources\":{"
            "\"limits\":{\"cpu\":\"100m\"},\"requests\":{\"cpu\":\"50m\"}}},{\"name\":\"once\","
            "\"resources\":{\"limits\":{\"cpu\":\"4\"}}}],",
        .status =
            "\"containerStatuses\":[{\"name\":\"a\",\"resources\":{\"limits\":{\"cpu\":\"300m\"}}}],"
    };
    struct agent_pod_view view = market_agent_pod_view(read_pod(&r, t), excluded);
    EQ_INT(view.limit_milli, 400); /* reported, and the sidecar's spec; what ran once is over */
    EQ_INT(view.request_milli, 250);
    t.status = "";
    view = market_agent_pod_view(read_pod(&r, t), excluded);
    EQ_INT(view.limit_milli, 600);
    struct pod_text greedy = { .ns = "kube-system", /* asks for much more than it was given */
                               .container =
                                   "\"limits\":{\"cpu\":\"40\"},\"requests\":{\"cpu\":\"34\"}",
                               .status =
                                   "\"containerStatuses\":[{\"name\":\"a\",\"allocatedResources\":{"
                                   "\"cpu\":\"100m\"}}]," };
    view = market_agent_pod_view(read_pod(&r, greedy), excluded);
    EQ_INT(view.reserved_milli, 100);
    reader_done(&r);
}

static void owners_say_what_they_want(void)
{
    struct reader r = { 0 };
    struct pod_text t = {
        .meta = ",\"annotations\":{\"mbcas.io/min-cpu\":\"250m\",\"mbcas.io/max-cpu\":"
                "\"2\",\"mbcas.io/target-latency-ms\":\"100\"}"
    };
    struct agent_pod_view view = market_agent_pod_view(read_pod(&r, t), excluded);
    EQ_INT(view.min_milli, 250);
    EQ_INT(view.max_milli, 2000);
    EQ_REAL(view.target_ms, 100);
    t.meta =
        ",\"annotations\":{\"mbcas.io/min-cpu\":\"much\",\"mbcas.io/target-latency-ms\":\"nan\"}";
    view = market_agent_pod_view(read_pod(&r, t), excluded);
    EQ_INT(view.min_milli, 0);
    EQ_INT(view.problems, 1u << FLOOR_MIN_BAD_QUANTITY);
    EQ_REAL(view.target_ms, 0);
    reader_done(&r);
}

static void what_a_resize_would_restart_stays(void)
{
    struct reader r = { 0 };
    struct pod_text t = { .meta = ",\"annotations\":{\"mbcas.io/max-cpu\":\"300m\"}",
                          .container = "\"limits\":{\"cpu\":\"500m\"}},\"resizePolicy\":[{"
                                       "\"resourceName\":\"memory\",\"restartPolicy\":"
                                       "\"NotRequired\"},{\"resourceName\":\"cpu\","
                                       "\"restartPolicy\":\"RestartContainer\"}]},{\"name\":\"b\","
                                       "\"resources\":{\"limits\":{\"cpu\":\"50m\"}" };
    struct agent_pod_view view = market_agent_pod_view(read_pod(&r, t), excluded);
    EQ_INT(view.least_milli, 511); /* all of the one, and the least that the other can have */
    EQ_INT(view.max_milli, 511);
    t.meta = ",\"annotations\":{\"mbcas.io/max-cpu\":\"300m\",\"mbcas.io/allow-restart\":\"true\"}";
    view = market_agent_pod_view(read_pod(&r, t), excluded);
    EQ_INT(view.least_milli, 0);
    EQ_INT(view.max_milli, 300);
    reader_done(&r);
}

/* 90 %, but fixed containers keep their request, and no request reaches its limit. */
static void requests_are_such_as_a_resize_can_give(void)
{
    struct reader r = { 0 };
    struct pod_text t = { .container =
                              "\"requests\":{\"cpu\":\"10m\"},\"limits\":{\"cpu\":\"12m\"}},"
                              "\"resizePolicy\":[{\"resourceName\":\"cpu\","
                              "\"restartPolicy\":\"RestartContainer\"}]},{\"name\":\"b\","
                              "\"resources\":{\"limits\":{\"cpu\":\"50m\"}" };
    EQ_INT(market_agent_pod_request(read_pod(&r, t), 23, 21),
           20); /* 10 stay, and 10 of the other's 11 */
    EQ_INT(market_agent_pod_request(read_pod(&r, t), 100, 90), 90);
    t.meta = ",\"annotations\":{\"mbcas.io/allow-restart\":\"true\"}";
    EQ_INT(market_agent_pod_request(read_pod(&r, t), 23, 21), 21);
    t.qos = "Guaranteed";
    EQ_INT(market_agent_pod_request(read_pod(&r, t), 100, 90), 100);
    reader_done(&r);
}

static void learning_belongs_to_the_workload(void)
{
    struct reader r = { 0 };
    auto_buf struct buf key = { 0 };
#define OWNER(kind, name)                                                                          \
    "\"ownerReferences\":[{\"kind\":\"" kind "\",\"name\":\"" name "\",\"controller\":true}]"
    const struct {
        const char *meta, *want;
    } cases[] = {
        { "," OWNER("ReplicaSet", "web-6d4f") LABEL("pod-template-hash", "6d4f"),
          "shop.Deployment.web" },
        { "," OWNER("ReplicaSet", "web"), "shop.ReplicaSet.web" },
        { "," OWNER("StatefulSet", "db"), "shop.StatefulSet.db" },
        { "", "shop.Pod.web-1" },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        buf_clear(&key);
        market_agent_pod_workload_key(read_pod(&r, (struct pod_text){ .meta = cases[i].meta }),
                                      &key);
        EQ_STR(buf_str(&key), str_c(cases[i].want));
    }
    reader_done(&r);
}

static void long_names_stay_names(void)
{
    char pod[254];
    memset(pod, 'p', 253);
    pod[253] = '\0';
    auto_buf struct buf one = { 0 }, other = { 0 }, short_one = { 0 };
    market_agent_pod_allocation_name(S("shop"), S("web"), &short_one);
    EQ_STR(buf_str(&short_one), S("shop-web"));
    market_agent_pod_allocation_name(S("shop"), str_c(pod), &one);
    pod[252] = 'q';
    market_agent_pod_allocation_name(S("shop"), str_c(pod), &other);
    EQ_INT(one.n, 253);
    EQ_INT(other.n, 253);
    OK(!str_eq(buf_str(&one), buf_str(&other)));
    OK(memcmp(one.p, other.p, 240) == 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(some_pods_are_left_alone),
                                        TAP(what_the_node_reports_is_in_force),
                                        TAP(owners_say_what_they_want),
                                        TAP(what_a_resize_would_restart_stays),
                                        TAP(requests_are_such_as_a_resize_can_give),
                                        TAP(learning_belongs_to_the_workload),
                                        TAP(long_names_stay_names),
                                        { 0 } });
}
