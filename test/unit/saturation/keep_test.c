/* A restart repeats the last decision, whatever became of the configuration meanwhile. */
#include "saturation_world.h"

#define STATE "flyball-saturation-state"
#define CONFIG "saturation-scaling-config"

static double shown(struct models *w)
{
    return MODELS_GAUGE(w, "workload_optimized_replicas", "llama", "web", "llm");
}

/* At 0.6 of load two replicas do under the built-in thresholds, and under these it takes three. */
static void begin(struct models *w)
{
    models_start(w);
    models_config(w, MODELS_HOME, CONFIG, "{default: 'kvCacheThreshold: 0.5'}");
    models_workload(w, "web", 2);
    models_variant(w, "web", "A100", "10", "");
    models_load(w, "web", 0.6, 0);
    models_operate(w, NULL);
    models_pass(w, 10);
    EQ_INT(models_desired(w, "web"), 3);
    EQ_REAL(shown(w), 3);
}

/* Not asked to end: whatever was not written by then is lost. */
static void kill_operator(struct models *w)
{
    cluster_operator_down(&w->c);
    buf_clear(&w->log);
}

/* Looks every second: the decision never moves, and the metric is there from the first decision on. */
static void stays_at_three(struct models *w)
{
    models_operate(w, NULL);
    for (int i = 0; i < 90; i++) {
        models_pass(w, 1);
        EQ_INT(models_desired(w, "web"), 3);
        EQ_REAL(shown(w), 3);
    }
    MODELS_SAYS(w, "web", "OptimizationReady", "status", "True");
}

static void remove_config(struct models *w)
{
    cluster_do(&w->c, KUBE_DELETE, &resource_configmaps, MODELS_HOME, CONFIG, S(""));
}

static size_t state_entries(struct models *w)
{
    return json_len(json_get(cluster_get(&w->c, &resource_configmaps, MODELS_HOME, STATE), "data"));
}

static void a_broken_default_changes_nothing(void)
{
    static const char *const broken[] = { "{default: 'kvCacheThreshold: ['}",
                                          "{default: 'kvCacheThreshold: 7'}",
                                          "{default: null}" /* empty */ };
    for (size_t i = 0; i < countof(broken); i++) {
        struct models w;
        begin(&w);
        kill_operator(&w);
        models_edit(&w, CONFIG, broken[i]);
        stays_at_three(&w);
        if (i < 2)
            EQ_REAL(MODELS_GAUGE(&w, "flyball_config_fallback", CONFIG, "default"), 1);
        kill_operator(&w); /* twice: entries in use as a fallback are still kept */
        stays_at_three(&w);
        models_edit(&w, CONFIG, "{default: 'kvCacheThreshold: 0.3'}");
        models_pass(&w, 100);
        OK(models_desired(&w, "web") > 3);
        EQ_REAL(MODELS_GAUGE(&w, "flyball_config_fallback", CONFIG, "default"), 0);
        models_stop(&w);
    }
}

static void a_configmap_that_is_gone_changes_nothing(void)
{
    struct models w;
    begin(&w);
    kill_operator(&w);
    remove_config(&w);
    stays_at_three(&w);
    OK(models_logged(&w, "ConfigMap not found or empty; its last good entries stay in force"));
    EQ_REAL(MODELS_GAUGE(&w, "flyball_config_fallback", CONFIG, ""), 1);
    models_config(&w, MODELS_HOME, CONFIG, "{default: 'kvCacheThreshold: 0.3'}");
    models_pass(&w, 100);
    OK(models_desired(&w, "web") > 3);
    EQ_REAL(MODELS_GAUGE(&w, "flyball_config_fallback", CONFIG, ""), 0);
    models_stop(&w);

    begin(&w); /* gone while it runs, which is the same after a restart */
    remove_config(&w);
    models_pass(&w, 61);
    EQ_INT(models_desired(&w, "web"), 3);
    kill_operator(&w);
    stays_at_three(&w);
    models_stop(&w);
}

static void the_interval_is_kept_and_secrets_are_not(void)
{
    struct models w;
    begin(&w);
    models_config(&w, MODELS_HOME, "workload-variant-autoscaler-variantautoscaling-config",
                  "{GLOBAL_OPT_INTERVAL: 5s, PROMETHEUS_BEARER_TOKEN: hush}");
    models_pass(&w, 120);
    EQ_INT((int64_t)state_entries(&w), 2);
    str text = json_to_str(&w.c.arena, cluster_get(&w.c, &resource_configmaps, MODELS_HOME, STATE));
    OK(str_find(text, S("hush")) == SIZE_MAX);
    kill_operator(&w);
    models_edit(&w, "workload-variant-autoscaler-variantautoscaling-config",
                "{GLOBAL_OPT_INTERVAL: soon}");
    models_operate(&w, NULL);
    models_pass(&w, 11);
    double decided = MODELS_GAUGE(&w, "saturation_decisions_total", "decided");
    models_pass(&w, 20);
    EQ_REAL(MODELS_GAUGE(&w, "saturation_decisions_total", "decided"), decided + 4);
    models_stop(&w);
}

static void what_is_taken_out_is_forgotten(void)
{
    struct models w;
    begin(&w);
    models_edit(&w, CONFIG, "{web: 'kvCacheThreshold: 0.4'}");
    models_config(&w, MODELS_NS, CONFIG, "{default: 'kvCacheThreshold: 0.5'}");
    models_pass(&w, 120);
    EQ_INT((int64_t)state_entries(&w), 3);
    models_edit(&w, CONFIG, "{web: null}");
    cluster_do(&w.c, KUBE_DELETE, &resource_configmaps, MODELS_NS, CONFIG, S(""));
    models_pass(&w, 120);
    EQ_INT((int64_t)state_entries(&w), 1);
    models_stop(&w);
}

static void a_namespace_keeps_its_own(void)
{
    struct models w;
    begin(&w);
    models_edit(&w, CONFIG, "{default: 'kvCacheThreshold: 0.8'}");
    models_config(&w, MODELS_NS, CONFIG, "{default: 'kvCacheThreshold: 0.5'}");
    models_pass(&w, 120);
    EQ_INT(models_desired(&w, "web"), 3);
    kill_operator(&w);
    cluster_do(&w.c, KUBE_MERGE_PATCH, &resource_configmaps, MODELS_NS, CONFIG,
               S("{\"data\":{\"default\":\"kvCacheThreshold: {\"}}"));
    stays_at_three(&w);
    models_stop(&w);
}

static size_t state_writes(const struct models *w)
{
    size_t n = 0;
    for (str line, rest = buf_str(&w->c.log); str_cut(&rest, '\n', &line);)
        n += str_find(line, S(STATE)) != SIZE_MAX;
    return n;
}

static void it_is_written_seldom_and_restored(void)
{
    struct models w;
    begin(&w);
    OK(state_entries(&w) == 1);
    buf_clear(&w.c.log);
    models_pass(&w, 600);
    EQ_INT((int64_t)state_writes(&w), 0); /* nothing changed */
    buf_clear(&w.c.log);
    for (int i = 0; i < 60; i++) { /* an edit every 10 s, each of which counts */
        models_edit(&w, CONFIG,
                    arena_printf(&w.c.arena, "{other: 'kvCacheThreshold: 0.%d'}", 20 + i).p);
        models_pass(&w, 10);
    }
    OK(state_writes(&w) >= 9 && state_writes(&w) <= 11);
    cluster_do(&w.c, KUBE_DELETE, &resource_configmaps, MODELS_HOME, STATE, S(""));
    models_pass(&w, 70);
    EQ_INT((int64_t)state_entries(&w), 2); /* who deletes it finds it again */
    models_stop(&w);
}

static void without_the_right_it_works_as_before(void)
{
    struct models w;
    models_start(&w);
    w.c.failures = 1000;
    w.c.fail_code = 403;
    w.c.fail_path = STATE;
    models_config(&w, MODELS_HOME, CONFIG, "{default: 'kvCacheThreshold: 0.5'}");
    models_workload(&w, "web", 2);
    models_variant(&w, "web", "A100", "10", "");
    models_load(&w, "web", 0.6, 0);
    models_operate(&w, NULL);
    models_pass(&w, 600);
    EQ_INT(models_desired(&w, "web"), 3);
    size_t n = 0;
    for (str line, rest = buf_str(&w.log); str_cut(&rest, '\n', &line);)
        n += str_find(line, S("last good state cannot be saved")) != SIZE_MAX;
    EQ_INT((int64_t)n, 1);
    OK(1000 - w.c.failures <= 11); /* once a minute */
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_broken_default_changes_nothing),
                                        TAP(a_configmap_that_is_gone_changes_nothing),
                                        TAP(the_interval_is_kept_and_secrets_are_not),
                                        TAP(what_is_taken_out_is_forgotten),
                                        TAP(a_namespace_keeps_its_own),
                                        TAP(it_is_written_seldom_and_restored),
                                        TAP(without_the_right_it_works_as_before),
                                        { 0 } });
}
