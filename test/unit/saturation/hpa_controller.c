/* See hpa_controller.h. */
#include "hpa_controller.h"

double hpa_controller_wanted(const struct hpa_controller *h, size_t v)
{
    return h->w->c.manager ? MODELS_GAUGE(h->w, "wva_desired_replicas", h->variants[v].name.p,
                                          MODELS_NS, h->accelerators[v])
                           : -1;
}

static void hpa_controller_answer(struct exchange *x, int code, str body)
{
    exchange_answer(x, code, HTTP_HEADERS({ S("content-type"), S("application/json") }), body);
}

static void hpa_controller_serve(void *context, struct exchange *x)
{
    struct hpa_controller *h = context;
    auto_buf struct buf body = { 0 };
    char now[RFC3339_TEXT_MAX];
    if (str_eq(exchange_path(x), S(HPA_METRICS))) {
        hpa_controller_answer(
            x, 200,
            S("{\"kind\":\"APIResourceList\",\"apiVersion\":\"v1\",\"groupVersion\":"
              "\"external.metrics.k8s.io/v1beta1\",\"resources\":[{\"name\":\"wva_desired_replicas\","
              "\"singularName\":\"\",\"namespaced\":true,\"kind\":\"ExternalMetricValueList\","
              "\"verbs\":[\"get\"]}]}"));
        return;
    }
    for (size_t v = 0; v < h->variant_n; v++) {
        double wanted = hpa_controller_wanted(h, v);
        if (!str_starts(exchange_path(x), S(HPA_METRICS "/namespaces/" MODELS_NS "/")) ||
            str_find(exchange_query(x), h->variants[v].name) == SIZE_MAX || wanted < 0)
            continue;
        h->asked++;
        buf_printf(&body,
                   "{\"kind\":\"ExternalMetricValueList\",\"apiVersion\":\"external.metrics.k8s.io/"
                   "v1beta1\",\"metadata\":{},\"items\":[{\"metricName\":\"wva_desired_replicas\","
                   "\"metricLabels\":{},\"timestamp\":\"" STR_FMT "\",\"value\":\"%g\"}]}",
                   STR_ARG(rfc3339_text(clock_wall_ns() / NS_PER_S, now)), wanted);
        hpa_controller_answer(x, 200, buf_str(&body));
        return;
    }
    hpa_controller_answer(x, 404, S("{\"kind\":\"Status\",\"status\":\"Failure\",\"code\":404}"));
}

/* The right to read metrics, and the server as part of the API. */
static void hpa_controller_register(struct hpa_controller *h)
{
    static const struct resource services = { "", "v1", "services", "Service", true },
                                 api_services = { "apiregistration.k8s.io", "v1", "apiservices",
                                                  "APIService", false },
                                 roles = { "rbac.authorization.k8s.io", "v1", "clusterroles",
                                           "ClusterRole", false },
                                 bindings = { "rbac.authorization.k8s.io", "v1",
                                              "clusterrolebindings", "ClusterRoleBinding", false };
    struct arena *a = &h->w->c.arena;
    unsigned port = http_server_port(h->server);
    models_create(
        h->w, &roles, NULL,
        S("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRole, metadata: {name: "
          "external-metrics}, rules: [{apiGroups: [external.metrics.k8s.io], resources: "
          "['*'], verbs: [get, list]}]}"));
    models_create(
        h->w, &bindings, NULL,
        S("{apiVersion: rbac.authorization.k8s.io/v1, kind: ClusterRoleBinding, metadata: {name: "
          "external-metrics}, roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, "
          "name: external-metrics}, subjects: [{kind: ServiceAccount, name: "
          "horizontal-pod-autoscaler, namespace: kube-system}]}"));
    models_create(
        h->w, &services, MODELS_NS,
        arena_printf(a,
                     "{apiVersion: v1, kind: Service, metadata: {name: metrics}, spec: {type: "
                     "ExternalName, externalName: localhost, ports: [{port: %u}]}}",
                     port));
    models_create(
        h->w, &api_services, NULL,
        arena_printf(a,
                     "{apiVersion: apiregistration.k8s.io/v1, kind: APIService, metadata: {name: "
                     "v1beta1.external.metrics.k8s.io}, spec: {group: external.metrics.k8s.io, "
                     "version: v1beta1, groupPriorityMinimum: 100, versionPriority: 100, "
                     "insecureSkipTLSVerify: true, service: {name: metrics, namespace: " MODELS_NS
                     ", port: %u}}}",
                     port));
}

void hpa_controller_start(struct hpa_controller *h, const char *folder)
{
    err_t e;
    struct arena *a = &h->w->c.arena;
    cluster_check(tls_server_new(
                      &(struct tls_server_options){
                          .cert_file = arena_printf(a, "%s/server.crt", folder).p,
                          .key_file = arena_printf(a, "%s/server.key", folder).p },
                      &h->tls, &e),
                  &e);
    cluster_check(http_server_new(h->w->c.loop,
                                  &(struct http_server_options){ .tls = h->tls,
                                                                 .on_request = hpa_controller_serve,
                                                                 .context = h },
                                  &h->server, &e),
                  &e);
    hpa_controller_register(h);
}

void hpa_controller_follow(struct hpa_controller *h, size_t v)
{
    const char *name = h->variants[v].name.p;
    models_create(
        h->w, &resource_hpas, MODELS_NS,
        arena_printf(
            &h->w->c.arena,
            "{apiVersion: autoscaling/v2, kind: HorizontalPodAutoscaler, metadata: {name: %s}, "
            "spec: {scaleTargetRef: {apiVersion: apps/v1, kind: Deployment, name: %s}, minReplicas: "
            "%d, maxReplicas: %d, behavior: {scaleUp: {tolerance: 0, policies: [{type: Pods, value: "
            "100, periodSeconds: 15}]}, scaleDown: {tolerance: 0, stabilizationWindowSeconds: 0, "
            "policies: [{type: Pods, value: 100, periodSeconds: 15}]}}, metrics: [{type: External, "
            "external: {metric: {name: wva_desired_replicas, selector: {matchLabels: "
            "{variant_name: %s}}}, target: {type: AverageValue, averageValue: '1'}}}]}}",
            name, name, h->variants[v].min, h->variants[v].max, name));
}

void hpa_controller_stop(struct hpa_controller *h)
{
    http_server_free(h->server);
    tls_unref(h->tls);
}
