/* Flags and environment of the feature.
 *
 * A setting is the flag, else WVA's environment variable, else its default; for Prometheus the
 * optimization ConfigMap is consulted too (saturation_config.c). Values are copied into the arena
 * of struct saturation. */
#include "../base/duration.h"
#include "saturation_state.h"

const struct feature_setting saturation_settings[] = {
    { "wva-namespace", NULL,
      "Namespace of the global ConfigMaps (default $POD_NAMESPACE, else "
      "workload-variant-autoscaler-system)" },
    { "wva-config-map", NULL,
      "ConfigMap with GLOBAL_OPT_INTERVAL (default $CONFIG_MAP_NAME, else "
      "workload-variant-autoscaler-variantautoscaling-config)" },
    { "wva-saturation-config-map", NULL,
      "ConfigMap with thresholds and latency targets (default $SATURATION_CONFIG_MAP_NAME, else "
      "saturation-scaling-config)" },
    { "wva-scale-to-zero-config-map", NULL,
      "ConfigMap with the models that may scale to zero (default wva-model-scale-to-zero-config)" },
    { "wva-instance", NULL,
      "Only manage variants with this value of the label wva.llmd.ai/controller-instance (default "
      "$CONTROLLER_INSTANCE, else all variants)" },
    { "wva-metrics-source", NULL,
      "Source of metrics: prometheus, pods, or auto, which uses Prometheus if its URL is set (default "
      "auto)" },
    { "wva-prometheus-url", NULL,
      "URL of Prometheus, https:// (default $PROMETHEUS_BASE_URL, else from the ConfigMap)" },
    { "wva-prometheus-allow-http", NULL,
      "Allow an http:// URL if true (default $PROMETHEUS_ALLOW_HTTP, else false)" },
    { "wva-prometheus-token-file", NULL,
      "File with the bearer token for Prometheus (default $PROMETHEUS_TOKEN_PATH)" },
    { "wva-prometheus-ca-file", NULL,
      "CA certificates for Prometheus (default $PROMETHEUS_CA_CERT_PATH)" },
    { "wva-prometheus-cert-file", NULL,
      "Client certificate for Prometheus (default $PROMETHEUS_CLIENT_CERT_PATH)" },
    { "wva-prometheus-key-file", NULL,
      "Key of the client certificate (default $PROMETHEUS_CLIENT_KEY_PATH)" },
    { "wva-prometheus-server-name", NULL,
      "Expected name in the certificate of Prometheus (default $PROMETHEUS_SERVER_NAME, else the host "
      "of the URL)" },
    { "wva-prometheus-skip-verify", NULL,
      "Do not verify the certificate of Prometheus if true (default "
      "$PROMETHEUS_TLS_INSECURE_SKIP_VERIFY, else false)" },
    { "wva-prometheus-probe", NULL,
      "Wait for Prometheus at startup, and exit if it does not answer, if true (default false; true with "
      "--wva)" },
    { "wva-queries", NULL,
      "Prometheus queries: grouped (many models in one query) or model (one model, worded as in WVA) "
      "(default grouped)" },
    { "wva-rules", NULL,
      "Scaling rule: slo (latency targets), need (KV cache and queue), or seed or 2026, the rules of "
      "WVA (default $WVA_RULES, else slo where servers report token counters, need elsewhere)" },
    { "wva-optimizer", NULL,
      "Model-based optimizer: off, on or model-only (default $EXPERIMENTAL_HYBRID_OPTIMIZATION, else "
      "off)" },
    { "wva-transition-timeout", NULL,
      "Time without progress after which a decision no longer waits for a workload to reach its target "
      "(default 5m)" },
    { "wva-service-monitor", NULL,
      "ServiceMonitor of the controller's metrics; its deletion is reported as an event (default "
      "workload-variant-autoscaler-controller-manager-metrics-monitor)" },
    { "wva-analyzer", NULL,
      "Analyzer: auto (by analyzerName and analyzers of a model's entry), percentage or token "
      "(default auto)" },
    { "wva-metrics", NULL,
      "Names of metrics and events: auto (those of WVA 0.9 too, if its ConfigMaps or annotations are in use), 0.9 "
      "or seed (default auto)" },
    { "wva-limiter-compose", NULL,
      "Apply all limiters at once; if false, a quota replaces the inventory, as in WVA (default true)" },
    { "wva-resource-quota", NULL,
      "Where limiters are on, also stay within ResourceQuotas of accelerators (default true)" },
    { "wva-dra", NULL,
      "Count devices of dynamic resource allocation (ResourceSlices of gpu.nvidia.com) as accelerators "
      "if true (default false)" },
    { "wva-variant-alias", NULL,
      "none, or target: export the metrics of a variant also with the name of its workload as "
      "variant_name (default none)" },
    { "scaler-listen", NULL,
      "Address to serve KEDA's external scaler on, such as :9443 (default: not served)" },
    { "scaler-client-ca", NULL,
      "CA file; clients of the external scaler need a certificate that it signed" },
    { "scaler-token-file", NULL,
      "File with a bearer token that clients of the external scaler may use instead" },
    { "external-metrics-listen", NULL,
      "Address to serve the API group external.metrics.k8s.io on, such as :6443 (default: not "
      "served)" },
    { "serving-cert-dir", NULL,
      "Directory with tls.crt and tls.key for both (default: plain HTTP/2 for the scaler, "
      "self-signed for external metrics)" },
    { "wva-wake-interval", NULL,
      "Interval between reads of the gateway's queue while a model is scaled to zero, at least 250ms; 0: "
      "do not wake models (default 1s)" },
    { "wva-deletion-cost", NULL,
      "Mark the least busy pods of a Deployment before a scale-down, so that they are removed, if true; "
      "needs permission to patch pods (default false)" },
    { "wva-drain-max", NULL,
      "With --wva-deletion-cost: scale down once the marked pods have at most this many requests (default: "
      "do not wait)" },
    { "wva-drain-timeout", NULL,
      "With --wva-deletion-cost: maximum time to wait for the pods (default 1m)" },
    { "wva-inferno-metrics", NULL, "Also export metrics under inferno_* if true (default false)" },
    { 0 },
};

/* ---- settings */

const char *saturation_options_get(const struct saturation *s, const char *flag, const char *env)
{
    const char *value = manager_setting(s->manager, flag);
    if ((!value || !*value) && env)
        value = getenv(env);
    return value && *value ? value : NULL;
}

static str text_setting(struct saturation *s, const char *flag, const char *env,
                        const char *otherwise)
{
    const char *value = saturation_options_get(s, flag, env);
    return arena_str(&s->arena, str_c(value ? value : otherwise));
}

static bool flag_setting(const struct saturation *s, const char *flag, const char *env)
{
    const char *value = saturation_options_get(s, flag, env);
    return value && str_eq_nocase(str_c(value), S("true"));
}

static bool is_off(const struct saturation *s, const char *flag)
{
    const char *value = saturation_options_get(s, flag, NULL);
    return value && str_eq_nocase(str_c(value), S("false"));
}

static int read_rules(struct saturation *s, err_t *e)
{
    const char *rules = saturation_options_get(s, "wva-rules", "WVA_RULES");
    s->o.slo_by_default = !rules;
    if (!rules || !strcmp(rules, "need"))
        s->o.rules = DECIDE_BY_NEED;
    else if (!strcmp(rules, "slo"))
        s->o.rules = DECIDE_SLO;
    else if (!strcmp(rules, "seed"))
        s->o.rules = DECIDE_SEED;
    else if (!strcmp(rules, "2026"))
        s->o.rules = DECIDE_2026;
    else
        return err_set(e, EINVAL, "invalid --wva-rules \"%s\"; use slo, need, seed or 2026", rules);
    return 0;
}

static int read_mode(struct saturation *s, err_t *e)
{
    const char *mode =
        saturation_options_get(s, "wva-optimizer", "EXPERIMENTAL_HYBRID_OPTIMIZATION");
    bool proactive = flag_setting(s, "", "EXPERIMENTAL_PROACTIVE_MODEL") ||
                     flag_setting(s, "", "WVA_EXPERIMENTAL_PROACTIVE_MODEL");
    if (mode && !strcmp(mode, "model-only"))
        s->o.mode = DECIDE_MODEL_ONLY;
    else if (mode && !strcmp(mode, "on"))
        s->o.mode = DECIDE_HYBRID;
    else if (mode && strcmp(mode, "off") != 0)
        return err_set(e, EINVAL, "invalid --wva-optimizer \"%s\"; use off, on or model-only",
                       mode);
    else
        s->o.mode = proactive ? DECIDE_HYBRID : DECIDE_CAPACITY;
    return 0;
}

static int read_analyzer(struct saturation *s, err_t *e)
{
    const char *name = saturation_options_get(s, "wva-analyzer", NULL);
    if (!name || !strcmp(name, "auto"))
        s->o.analyzer = ANALYZER_AUTO;
    else if (!strcmp(name, "percentage"))
        s->o.analyzer = ANALYZER_PERCENTAGE;
    else if (!strcmp(name, "token"))
        s->o.analyzer = ANALYZER_TOKEN;
    else
        return err_set(e, EINVAL, "invalid --wva-analyzer \"%s\"; use auto, percentage or token",
                       name);
    return 0;
}

static int read_metric_names(struct saturation *s, err_t *e)
{
    const char *name = saturation_options_get(s, "wva-metrics", NULL);
    if (!name || !strcmp(name, "auto"))
        s->o.metrics = METRICS_AUTO;
    else if (!strcmp(name, "seed"))
        s->o.metrics = METRICS_SEED;
    else if (!strcmp(name, "0.9"))
        s->o.metrics = METRICS_NINE;
    else
        return err_set(e, EINVAL, "invalid --wva-metrics \"%s\"; use auto, seed or 0.9", name);
    s->nine = s->o.metrics == METRICS_NINE;
    return 0;
}

static int read_queries(struct saturation *s, err_t *e)
{
    const char *name = saturation_options_get(s, "wva-queries", NULL);
    s->collector.grouped = !name || !strcmp(name, "grouped");
    if (name && !s->collector.grouped && strcmp(name, "model") != 0)
        return err_set(e, EINVAL, "invalid --wva-queries \"%s\"; use grouped or model", name);
    return 0;
}

static int read_victims(struct saturation *s, err_t *e)
{
    const char *most = saturation_options_get(s, "wva-drain-max", NULL);
    const char *timeout = saturation_options_get(s, "wva-drain-timeout", NULL);
    s->o.deletion_cost = flag_setting(s, "wva-deletion-cost", NULL);
    s->o.drain_max = -1;
    s->o.drain_timeout_ns = 60 * NS_PER_S;
    if (most && (str_to_f64(str_c(most), &s->o.drain_max) < 0 || !(s->o.drain_max >= 0)))
        return err_set(e, EINVAL, "invalid --wva-drain-max \"%s\"; use a number of requests", most);
    if (timeout && duration_parse(str_c(timeout), &s->o.drain_timeout_ns, e) < 0)
        return err_wrap(e, "--wva-drain-timeout");
    return 0;
}

/* As in WVA: which nodes the inventory counts. */
static int read_node_labels(struct saturation *s, err_t *e)
{
    str text = text_setting(s, "", "WVA_NODE_SELECTOR", "");
    if (labels_parse(&s->arena, text, &s->o.node_labels, e) < 0)
        return err_wrap(e, "WVA_NODE_SELECTOR");
    return 0;
}

static int read_wake_interval(struct saturation *s, err_t *e)
{
    const char *text = saturation_options_get(s, "wva-wake-interval", NULL);
    s->o.wake_ns = NS_PER_S;
    if (text && duration_parse(str_c(text), &s->o.wake_ns, e) < 0)
        return err_wrap(e, "--wva-wake-interval");
    if (s->o.wake_ns && s->o.wake_ns < 250 * NS_PER_MS)
        return err_set(e, EINVAL, "invalid --wva-wake-interval \"%s\"; use at least 250ms, or 0",
                       text);
    return 0;
}

/* Keys of the optimization ConfigMap from the environment, as JSON: the default for each key. */
static str read_defaults(struct saturation *s)
{
    static const char *const keys[] = { "GLOBAL_OPT_INTERVAL",
                                        "PROMETHEUS_METRICS_CACHE_ENABLED",
                                        "PROMETHEUS_METRICS_CACHE_TTL",
                                        "PROMETHEUS_METRICS_CACHE_FETCH_INTERVAL",
                                        "PROMETHEUS_METRICS_CACHE_FRESH_THRESHOLD",
                                        "PROMETHEUS_METRICS_CACHE_UNAVAILABLE_THRESHOLD" };
    struct json *found = json_new_obj(&s->arena);
    for (size_t i = 0; i < countof(keys); i++) {
        const char *value = getenv(keys[i]);
        if (value && *value)
            json_set_str(&s->arena, found, keys[i], str_c(value));
    }
    return json_to_str(&s->arena, found);
}

int saturation_options_read(struct saturation *s, err_t *e)
{
    const char *timeout = saturation_options_get(s, "wva-transition-timeout", NULL);
    s->o.ns =
        text_setting(s, "wva-namespace", "POD_NAMESPACE", "workload-variant-autoscaler-system");
    s->o.optimization_map = text_setting(s, "wva-config-map", "CONFIG_MAP_NAME",
                                         "workload-variant-autoscaler-variantautoscaling-config");
    s->o.saturation_map = text_setting(s, "wva-saturation-config-map", "SATURATION_CONFIG_MAP_NAME",
                                       "saturation-scaling-config");
    s->o.zero_map =
        text_setting(s, "wva-scale-to-zero-config-map", NULL, "wva-model-scale-to-zero-config");
    s->o.monitor = text_setting(s, "wva-service-monitor", NULL,
                                "workload-variant-autoscaler-controller-manager-metrics-monitor");
    s->o.instance = text_setting(s, "wva-instance", "CONTROLLER_INSTANCE", "");
    s->o.zero_by_default = flag_setting(s, "", "WVA_SCALE_TO_ZERO");
    s->o.limited = flag_setting(s, "", "WVA_LIMITED_MODE");
    s->o.quota_alone = is_off(s, "wva-limiter-compose");
    s->o.dra = flag_setting(s, "wva-dra", NULL);
    s->o.ignores_resource_quota = is_off(s, "wva-resource-quota");
    s->o.defaults = read_defaults(s);
    s->probe.due = flag_setting(s, "wva-prometheus-probe", NULL);
    s->o.transition_ns = 300 * NS_PER_S;
    if (timeout && duration_parse(str_c(timeout), &s->o.transition_ns, e) < 0)
        return err_wrap(e, "--wva-transition-timeout");
    saturation_metrics_init(&s->metrics, manager_metrics(s->manager), s->o.instance,
                            flag_setting(s, "wva-inferno-metrics", NULL));
    const char *alias = saturation_options_get(s, "wva-variant-alias", NULL);
    s->metrics.by_target = alias && !strcmp(alias, "target");
    if (alias && !s->metrics.by_target && strcmp(alias, "none") != 0)
        return err_set(e, EINVAL, "invalid --wva-variant-alias \"%s\"; use none or target", alias);
    if (read_victims(s, e) < 0 || read_wake_interval(s, e) < 0 || read_rules(s, e) < 0 ||
        read_mode(s, e) < 0 || read_analyzer(s, e) < 0 || read_queries(s, e) < 0 ||
        read_metric_names(s, e) < 0 || read_node_labels(s, e) < 0)
        return -e->code;
    return 0;
}
