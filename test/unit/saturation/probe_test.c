/* The startup check of Prometheus, as in WVA, in virtual time; and URLs without TLS. */
#include "saturation_world.h"

#define OPTIMIZATION_MAP "workload-variant-autoscaler-variantautoscaling-config"

struct prometheus {
    struct http_server *server;
    struct loop *loop;
    bool up;
    size_t probes, others; /* questions */
    int64_t at_ns[16];     /* of the probes */
};

static void on_request(void *context, struct exchange *x)
{
    struct prometheus *p = context;
    bool probe = str_starts(exchange_body(x), S("query=up"));
    if (probe && p->probes < countof(p->at_ns))
        p->at_ns[p->probes] = loop_mono_ns(p->loop);
    *(probe ? &p->probes : &p->others) += 1;
    exchange_answer(
        x, p->up ? 200 : 503, HTTP_HEADERS({ S("content-type"), S("application/json") }),
        S("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}"));
}

static void begin(struct models *w, struct prometheus *p)
{
    err_t e;
    models_begin(w);
    *p = (struct prometheus){ .loop = w->c.loop };
    cluster_check(http_server_new(w->c.loop,
                                  &(struct http_server_options){ .on_request = on_request,
                                                                 .context = p },
                                  &p->server, &e),
                  &e);
    models_workload(w, "web", 1);
    models_variant(w, "web", "A100", "10", "");
}

static void end(struct models *w, struct prometheus *p)
{
    http_server_free(p->server);
    models_stop(w);
}

static const char **settings(struct models *w, const struct prometheus *p)
{
    const char **s = arena_array(&w->c.arena, 7, sizeof(*s));
    s[0] = "wva-prometheus-url";
    s[1] = arena_printf(&w->c.arena, "http://127.0.0.1:%u", http_server_port(p->server)).p;
    s[2] = "wva-prometheus-allow-http";
    s[3] = "true";
    s[4] = "wva-prometheus-probe";
    s[5] = "true";
    return s;
}

static bool is_ready(const struct models *w, const char *or_why)
{
    auto_buf struct buf why = { 0 };
    bool ready = manager_ready(w->c.manager, &why);
    if (!ready)
        EQ_STR(buf_str(&why), str_c(or_why));
    return ready;
}

static void nothing_begins_before_prometheus_has_answered(void)
{
    struct models w;
    struct prometheus p;
    begin(&w, &p);
    models_operate(&w, settings(&w, &p));
    models_pass(&w, 10);
    OK(!is_ready(&w, "waiting for Prometheus"));
    EQ_INT((int64_t)p.probes, 2);
    EQ_INT((int64_t)(p.others + w.c.operator_writes), 0);
    OK(models_logged(&w, "Prometheus answered 503"));
    p.up = true;
    models_pass(&w, 10);
    OK(is_ready(&w, ""));
    EQ_INT((int64_t)p.probes, 3);
    OK(p.others > 0);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "MetricsMissing");
    p.up = false; /* a later failure does not end the process */
    models_pass(&w, 600);
    OK(is_ready(&w, "") && !w.c.operator_over);
    EQ_INT((int64_t)p.probes, 3);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "PrometheusError");
    end(&w, &p);
}

static void who_is_never_answered_ends(void)
{
    static const int64_t pauses_s[] = { 5, 10, 20, 40, 80 };
    struct models w;
    struct prometheus p;
    begin(&w, &p);
    models_operate(&w, settings(&w, &p));
    models_pass(&w, 153);
    OK(!w.c.operator_over);
    models_pass(&w, 20);
    OK(w.c.operator_over);
    EQ_INT((int64_t)p.probes, 6);
    for (size_t i = 0; i < countof(pauses_s); i++) {
        int64_t pause_ms = (p.at_ns[i + 1] - p.at_ns[i]) / NS_PER_MS;
        OK(pause_ms >= pauses_s[i] * 1000 && pause_ms <= pauses_s[i] * 1101);
    }
    EQ_INT((int64_t)(p.others + w.c.operator_writes), 0);
    OK(models_logged(&w, "error=\"Prometheus answered 503"));
    end(&w, &p);
}

/* One that the ConfigMap names is asked too; another in its place is asked from the beginning. Where none is named,
 * none is asked. */
static void the_configmap_may_name_it(void)
{
    struct models w;
    struct prometheus p;
    begin(&w, &p);
    static const char *const only_probe[] = { "wva-prometheus-probe", "true", NULL };
    models_operate(&w, only_probe);
    OK(is_ready(&w, ""));
    EQ_INT((int64_t)p.probes, 0);
    cluster_operator_down(&w.c);
    models_config(&w, MODELS_HOME, OPTIMIZATION_MAP,
                  "{PROMETHEUS_BASE_URL: 'http://127.0.0.1:1', PROMETHEUS_ALLOW_HTTP: 'true'}");
    models_operate(&w, only_probe);
    models_pass(&w, 100);
    OK(!is_ready(&w, "waiting for Prometheus"));
    models_edit(&w, OPTIMIZATION_MAP,
                arena_printf(&w.c.arena, "{PROMETHEUS_BASE_URL: 'http://127.0.0.1:%u'}",
                             http_server_port(p.server))
                    .p);
    models_pass(&w, 150);
    OK(!is_ready(&w, "waiting for Prometheus") && !w.c.operator_over);
    EQ_INT((int64_t)p.probes, 5);
    p.up = true;
    models_pass(&w, 50);
    OK(is_ready(&w, ""));
    end(&w, &p);
}

static void by_default_nobody_waits(void)
{
    struct models w;
    struct prometheus p;
    begin(&w, &p);
    const char **s = settings(&w, &p);
    s[4] = NULL;
    models_operate(&w, s);
    OK(is_ready(&w, ""));
    models_pass(&w, 60);
    MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "PrometheusError");
    EQ_INT((int64_t)p.probes, 0);
    end(&w, &p);
}

/* Without TLS only when asked for, and not with what needs TLS. */
static void http_needs_to_be_allowed(void)
{
    static const struct {
        const char *more, *said, *flag;
    } t[] = {
        { "", "PROMETHEUS_ALLOW_HTTP" },
        { ", PROMETHEUS_ALLOW_HTTP: 'yes'", "PROMETHEUS_ALLOW_HTTP" },
        { ", PROMETHEUS_ALLOW_HTTP: 'true', PROMETHEUS_BEARER_TOKEN: x",
          "remove the token and TLS settings" },
        { ", PROMETHEUS_ALLOW_HTTP: 'true', PROMETHEUS_TOKEN_PATH: /x",
          "remove the token and TLS settings" },
        { ", PROMETHEUS_ALLOW_HTTP: 'true', PROMETHEUS_CA_CERT_PATH: /x",
          "remove the token and TLS settings" },
        { ", PROMETHEUS_ALLOW_HTTP: 'true', PROMETHEUS_SERVER_NAME: x",
          "remove the token and TLS settings" },
        { ", PROMETHEUS_ALLOW_HTTP: 'true', PROMETHEUS_TLS_INSECURE_SKIP_VERIFY: 'true'",
          "remove the token and TLS settings" },
        { ", PROMETHEUS_ALLOW_HTTP: 'true', PROMETHEUS_TLS_INSECURE_SKIP_VERIFY: 'false'",
          "Failed to query Prometheus" },
        { ", PROMETHEUS_ALLOW_HTTP: 'no'", "Failed to query Prometheus", "true" },
        { ", PROMETHEUS_ALLOW_HTTP: 'true'", "PROMETHEUS_ALLOW_HTTP", "no" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct models w;
        models_begin(&w);
        models_config(
            &w, MODELS_HOME, "workload-variant-autoscaler-variantautoscaling-config",
            arena_printf(&w.c.arena, "{PROMETHEUS_BASE_URL: 'http://127.0.0.1:1'%s}", t[i].more).p);
        models_workload(&w, "web", 1);
        models_variant(&w, "web", "A100", "10", "");
        models_operate(&w, (const char *const[]){ "wva-prometheus-allow-http", t[i].flag, NULL });
        models_pass(&w, 20);
        MODELS_SAYS(&w, "web", "MetricsAvailable", "reason", "PrometheusError");
        str message = models_condition(&w, "web", "MetricsAvailable", "message");
        if (!OK(str_find(message, str_c(t[i].said)) != SIZE_MAX))
            printf("# case %zu: " STR_FMT "\n", i, STR_ARG(message));
        models_stop(&w);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(nothing_begins_before_prometheus_has_answered),
                                        TAP(who_is_never_answered_ends),
                                        TAP(the_configmap_may_name_it),
                                        TAP(by_default_nobody_waits),
                                        TAP(http_needs_to_be_allowed),
                                        { 0 } });
}
