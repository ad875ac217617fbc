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
      "Wait for an answer from Prometheus at startup and exit without one if true (default false; true "
      "with --wva)" },
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
    s->o.defaults = read_defaults(s);
    s->probe.due = flag_setting(s, "wva-prometheus-probe", NULL);
    s->o.transition_ns = 300 * NS_PER_S;
    if (timeout && duration_parse(str_c(timeout), &s->o.transition_ns, e) < 0)
        return err_wrap(e, "--wva-transition-timeout");
    saturation_metrics_init(&s->metrics, manager_metrics(s->manager), s->o.instance,
                            flag_setting(s, "wva-inferno-metrics", NULL));
    if (read_rules(s, e) < 0 || read_mode(s, e) < 0)
        return -e->code;
    return 0;
}
