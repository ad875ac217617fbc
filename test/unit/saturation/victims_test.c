/* Which pods a scale-down removes. */
#include "saturation_world.h"

static str cost_of(struct models *w, size_t pod)
{
    return json_text(json_at(cluster_get(&w->c, &resource_pods, MODELS_NS, w->pods[pod].name),
                             "metadata", "annotations",
                             "controller.kubernetes.io/pod-deletion-cost", NULL));
}

/* Four replicas, one of them busy, of which the load needs fewer. */
static void start_models(struct models *w, const char *const *settings, bool refuse)
{
    models_begin(w);
    models_workload(w, "web", 4);
    models_variant(w, "web", "A100", "10",
                   "minReplicas: 2, actuation: Scale, "
                   "behavior: {scaleDown: {stabilizationWindowSeconds: 0}},");
    models_load(w, "web", 0.02, 0);
    w->pods[3].kv = 0.4; /* the newest */
    w->c.fail_path = "/pods/";
    w->c.fail_code = 403;
    w->c.failures = refuse ? 1000 : 0;
    models_operate(w, settings);
}

static void the_least_busy_pods_are_marked_first(void)
{
    struct models w;
    start_models(&w, (const char *[]){ "wva-deletion-cost", "true", "wva-rules", "need", NULL },
                 false);
    models_patch(&w, &resource_pods, w.pods[0].name, NULL, /* perhaps too late, but it counts */
                 S("{\"metadata\":{\"annotations\":{\"flyball.dev/do-not-remove\":\"true\"}}}"));
    models_pass(&w, 400);
    int64_t left = models_replicas(&w, "web");
    EQ_INT(left, 2);
    EQ_STR(cost_of(&w, 3), S(""));
    EQ_STR(cost_of(&w, 0), S(""));
    OK(str_starts(cost_of(&w, 1), S("-")));
    str log = buf_str(&w.c.log); /* marked before the workload shrinks */
    OK(str_find(log, S("pod-deletion-cost")) < str_find(log, S("/scale")));
    for (size_t i = 0; i < 4; i++) /* what the ReplicaSet would do */
        if (models_count(&w, "web") > (size_t)left && cost_of(&w, i).n) {
            w.pods[i].gone = true;
            cluster_do(&w.c, KUBE_DELETE, &resource_pods, MODELS_NS, w.pods[i].name,
                       S("{\"gracePeriodSeconds\":0}"));
        }
    models_follow(&w, "web");
    models_pass(&w, 120);
    for (size_t i = 0; i < 4; i++) /* and no mark is left behind */
        if (!w.pods[i].gone && models_replicas(&w, "web") == left)
            EQ_STR(cost_of(&w, i), S(""));
    models_stop(&w);
}

static void without_the_flag_no_pod_is_written(void)
{
    struct models w;
    start_models(&w, (const char *[]){ "wva-rules", "need", NULL }, false);
    models_pass(&w, 400);
    OK(models_replicas(&w, "web") < 4);
    for (size_t i = 0; i < 4; i++)
        EQ_STR(cost_of(&w, i), S(""));
    models_stop(&w);
}

/* A pod that cannot be marked, or is never drained, delays a scale-down by the timeout only. */
static void waiting_ends(void)
{
    struct models w;
    start_models(&w,
                 (const char *[]){ "wva-deletion-cost", "true", "wva-rules", "need",
                                   "wva-drain-timeout", "400s", NULL },
                 true);
    models_pass(&w, 300);
    EQ_INT(models_replicas(&w, "web"), 4);
    models_pass(&w, 300);
    OK(models_replicas(&w, "web") < 4);
    models_stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(the_least_busy_pods_are_marked_first),
        TAP(without_the_flag_no_pod_is_written),
        TAP(waiting_ends),
        { 0 },
    });
}
