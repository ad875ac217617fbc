/* The node agent: what it desires for which pods, and what it stores. */
#include "agent_scene.h"

static void who_starves_gets_what_another_hoards(void)
{
    struct scene s;
    begin(&s);
    add_pod(&s, (struct pod_spec){ "default", "starved", NULL, 100, 200, 900 });
    add_pod(&s, (struct pod_spec){ "default", "hoarder", NULL, 100, 1400, 30 });
    char pressure[PATH_MAX];
    snprintf(pressure, sizeof(pressure), "%s/cpu.pressure",
             group_of(&s, "default", "starved")->path);
    cgroup_files_put(&s.world.files, pressure, "some total=0\n");
    agent_up(&s);
    pass(&s, 15);
    cgroup_files_put(&s.world.files, pressure, "some total=9000000\n");
    int64_t hits = group_of(&s, "default", "starved")->cfs.nr_throttled;
    OK(hits > 10);
    pass(&s, 30);
    EQ_INT(group_of(&s, "default", "starved")->cfs.nr_throttled, hits);
    OK(s.most_milli <= 1800 && s.most_promised <= 1800); /* two cores less a tenth */
    const struct json *a = allocation(&s, "default-starved");
    int64_t limit = milli_of(json_at(a, "spec", "desiredCPULimit", NULL));
    OK(limit >= 900);
    EQ_INT(milli_of(json_at(a, "spec", "desiredCPURequest", NULL)), llround(0.9 * (double)limit));
    const struct json *owner = json_item(json_at(a, "metadata", "ownerReferences", NULL), 0);
    EQ_STR(json_text(json_get(owner, "kind")), S("Pod"));
    EQ_STR(json_text(json_at(a, "metadata", "labels", "mbcas.io/node", NULL)), S("n1"));
    OK(json_at(a, "status", "shadowPriceCPU", NULL));
    EQ_REAL(metric(&s, "mbcas_managed_pods "), 2);
    EQ_REAL(metric(&s, "mbcas_nash_mode{mode=\"uncongested\"} "), 1);
    EQ_REAL(metric(&s,
                   "mbcas_pod_cpu_allocation_millicores{pod=\"starved\",namespace=\"default\"} "),
            (double)limit);
    OK(metric(
           &s,
           "mbcas_allocation_changes_total{pod=\"starved\",namespace=\"default\",direction=\"up\"} ") >=
       2);
    OK(metric(&s,
              "mbcas_allocation_latency_seconds_count{pod=\"starved\",namespace=\"default\"} ") >=
       1);
    OK(isfinite(metric(&s, "mbcas_cpu_pressure_ratio{pod=\"starved\",namespace=\"default\"} ")));
    OK(isnan(metric(&s, "mbcas_cpu_pressure_ratio{pod=\"hoarder\""))); /* not reported */
    end(&s);
}

static void nothing_is_written_when_nothing_changed(void)
{
    struct scene s;
    begin(&s);
    add_pod(&s, (struct pod_spec){ "default", "steady", NULL, 100, 330, 300 });
    agent_up(&s);
    pass(&s, 60);
    OK(allocation(&s, "default-steady"));
    size_t writes = s.c.operator_writes;
    for (size_t i = 0; i < 2; i++) {
        pass(&s, 120);
        agent_down(&s); /* the Q-tables are one write, and there is no other */
        OK(s.c.operator_writes - writes <= 12);
        OK(!strstr(s.c.log.p + s.c.log.n / 2, "podallocations"));
        buf_clear(&s.c.log);
        writes = s.c.operator_writes;
        agent_up(&s);
        pass(&s, 40);
        OK(!s.c.log.n || !strstr(s.c.log.p, "podallocations")); /* a restart changes nothing */
    }
    end(&s);
}

static void only_some_pods_take_part(void)
{
    struct scene s;
    begin(&s);
    cluster_do(&s.c, KUBE_CREATE, &resource_namespaces, NULL, "kube-system",
               S("{\"metadata\":{\"name\":\"kube-system\"}}"));
    add_pod(&s, (struct pod_spec){ "default", "in", NULL, 100, 200, 2000 });
    add_pod(&s, (struct pod_spec){ "default", "out", "\"mbcas.io/managed\":\"false\"", 300, 400,
                                   2000 });
    add_pod(&s, (struct pod_spec){ "default", "free", NULL, 200, 0, 100 });
    add_pod(&s, (struct pod_spec){ "kube-system", "dns", NULL, 100, 200, 100 });
    agent_up(&s);
    pass(&s, 60);
    EQ_INT(json_len(allocations(&s)), 1);
    /* 2000 - 300 - 200 - 100, less a tenth */
    EQ_INT(milli_of(json_at(allocation(&s, "default-in"), "spec", "desiredCPULimit", NULL)), 1260);
    EQ_REAL(metric(&s, "mbcas_capacity_millicores "), 1260);
    EQ_INT(patch_sub(&s.c, &resource_pods, "default", "out", NULL,
                     S("{\"metadata\":{\"annotations\":{\"mbcas.io/managed\":null}}}"))
               .code,
           200);
    pass(&s, 60);
    EQ_INT(json_len(allocations(&s)), 2);
    int64_t in = milli_of(json_at(allocation(&s, "default-in"), "spec", "desiredCPULimit", NULL)),
            out = milli_of(json_at(allocation(&s, "default-out"), "spec", "desiredCPULimit", NULL));
    OK(out > 0 && in < 1260);
    OK(metric(&s, "mbcas_nash_iterations ") >= 1);
    EQ_INT(in + out, 1530); /* both want more than there is: all of it is shared out */
    end(&s);
}

static void pods_come_and_go(void)
{
    struct scene s;
    begin(&s);
    add_pod(&s, (struct pod_spec){ "default", "one", NULL, 100, 200, 100 });
    agent_up(&s);
    pass(&s, 20);
    OK(allocation(&s, "default-one"));
    cgroup_world_drop(&s.world, group_of(&s, "default", "one"));
    cluster_do(&s.c, KUBE_DELETE, &resource_pods, "default", "one",
               S("{\"gracePeriodSeconds\":0}"));
    add_pod(&s, (struct pod_spec){ "default", "two", NULL, 100, 200, 100 });
    pass(&s, 20);
    OK(!allocation(&s, "default-one"));
    OK(allocation(&s, "default-two"));
    EQ_REAL(metric(&s, "mbcas_managed_pods "), 1);
    OK(isnan(metric(&s, "mbcas_pod_cpu_usage_millicores{pod=\"one\",namespace=\"default\"} ")));
    end(&s);
}

static void the_configuration_is_live(void)
{
    struct scene s;
    begin(&s);
    add_pod(&s, (struct pod_spec){ "default", "in", NULL, 100, 200, 2000 });
    agent_up(&s);
    pass(&s, 40);
    EQ_REAL(metric(&s, "mbcas_capacity_millicores "), 1800);
    struct cluster_answer made = cluster_do(
        &s.c, KUBE_CREATE, &resource_configmaps, "default", "mbcas-agent-config",
        S("{\"metadata\":{\"name\":\"mbcas-agent-config\"},\"data\":{\"systemReservePercent\":\"50\","
          "\"slowLoopInterval\":\"never\"}}"));
    EQ_INT(made.code, 201);
    pass(&s, 40);
    EQ_REAL(metric(&s, "mbcas_capacity_millicores "), 1000);
    cluster_do(
        &s.c, KUBE_MERGE_PATCH, &resource_configmaps, "default", "mbcas-agent-config",
        S("{\"data\":{\"totalClusterCPUCapacityMilli\":\"1000\",\"slowLoopInterval\":\"5s\"}}"));
    pass(&s, 40);
    EQ_REAL(metric(&s, "mbcas_capacity_millicores "), 500);
    OK(metric(&s, "mbcas_agent_allocation_duration_seconds_count ") > 9);
    end(&s);
}

static void what_was_learnt_outlives_agent_and_pod(void)
{
    struct scene s;
    begin(&s);
    add_pod(&s, (struct pod_spec){ "default", "pupil", NULL, 100, 400, 300 });
    agent_up(&s);
    pass(&s, 100);
    agent_down(&s);
    struct json *map = cluster_get(&s.c, &resource_configmaps, "default", "mbcas-qtable-n1");
    str before = arena_str(&s.c.arena, json_text(json_at(map, "data", "default.Pod.pupil", NULL)));
    OK(before.n > 20);
    s.c.deaf = true; /* what cannot be read is not overwritten */
    agent_up(&s);
    cluster_until(&s.c, cluster_now(&s.c) + 45);
    s.c.deaf = false;
    pass(&s, 120);
    map = cluster_get(&s.c, &resource_configmaps, "default", "mbcas-qtable-n1");
    str after = json_text(json_at(map, "data", "default.Pod.pupil", NULL));
    OK(after.n >= before.n); /* it continued from there: known values are kept */
    agent_down(&s);
    end(&s);
}

static void pods_of_one_workload_learn_into_one_table(void)
{
    struct scene s;
    begin(&s);
    const struct json *set =
        cluster_do(
            &s.c, KUBE_CREATE, &resource_statefulsets, "default", "twins",
            S("{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":"
              "\"twins\"},\"spec\":{\"serviceName\":\"x\",\"selector\":{\"matchLabels\":{\"a\":"
              "\"b\"}},\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{"
              "\"containers\":[{\"name\":\"a\",\"image\":\"i\"}]}}}}"))
            .object;
    OK(set);
    add_pod(&s, (struct pod_spec){ "default", "busy", NULL, 100, 200, 900, set });
    add_pod(&s, (struct pod_spec){ "default", "idle", NULL, 100, 400, 20, set });
    agent_up(&s);
    pass(&s, 100);
    struct json *map = cluster_get(&s.c, &resource_configmaps, "default", "mbcas-qtable-n1");
    EQ_INT(json_len(json_get(map, "data")), 1);
    OK(json_at(map, "data", "default.StatefulSet.twins", NULL));
    buf_clear(&s.c.log);
    agent_down(&s); /* their tables differ, yet the end is reached: one write at the most */
    const char *first = s.c.log.n ? strstr(s.c.log.p, "/mbcas-qtable") : NULL;
    OK(!first || !strstr(first + 1, "/mbcas-qtable"));
    end(&s);
}

static void an_outage_loses_nothing(void)
{
    struct scene s;
    begin(&s);
    add_pod(&s, (struct pod_spec){ "default", "starved", NULL, 100, 200, 200 });
    add_pod(&s, (struct pod_spec){ "default", "other", NULL, 100, 300, 100 });
    agent_up(&s);
    pass(&s, 40);
    s.c.deaf = true;
    group_of(&s, "default", "starved"); /* answered from memory of this test only when not deaf */
    s.world.groups[0].demand_milli = 900;
    cluster_until(&s.c, cluster_now(&s.c) + 60);
    s.c.deaf = false;
    s.c.failures = 5; /* and a storm of conflicts after it */
    s.c.fail_path = "podallocations";
    pass(&s, 90);
    EQ_INT(s.c.failures, 0);
    struct json *list = allocations(&s);
    EQ_INT(json_len(list), 2);
    for (size_t i = 0; i < s.world.n; i++) {
        const struct json *pod =
            i ? allocation(&s, "default-other") : allocation(&s, "default-starved");
        EQ_INT(milli_of(json_at(pod, "spec", "desiredCPULimit", NULL)),
               s.world.groups[i].cfs.limit_milli);
    }
    OK(s.world.groups[0].cfs.limit_milli >= 900);
    OK(s.most_milli <= 1800);
    end(&s);
}

static void what_the_node_cannot_give_is_not_asked_again(void)
{
    struct scene s;
    begin(&s);
    s.idle_kubelet = true;
    add_pod(&s, (struct pod_spec){ "default", "big", NULL, 100, 500, 2000 });
    agent_up(&s);
    pass(&s, 20);
    int64_t wanted =
        milli_of(json_at(allocation(&s, "default-big"), "spec", "desiredCPULimit", NULL));
    OK(wanted > 500);
    char until[RFC3339_TEXT_MAX];
    rfc3339_text(cluster_now(&s.c) + 70, until);
    str body = arena_printf(&s.c.arena,
                            "{\"status\":{\"phase\":\"Failed\",\"reason\":\"Infeasible\","
                            "\"infeasibleCPULimit\":\"600m\",\"infeasibleUntil\":\"%s\"}}",
                            until);
    EQ_INT(
        patch_sub(&s.c, &market_allocation_resource, "default", "default-big", "status", body).code,
        200);
    pass(&s, 60);
    wanted = milli_of(json_at(allocation(&s, "default-big"), "spec", "desiredCPULimit", NULL));
    OK(wanted < 600 && wanted >= 500);
    pass(&s, 60); /* now it may be tried again */
    wanted = milli_of(json_at(allocation(&s, "default-big"), "spec", "desiredCPULimit", NULL));
    OK(wanted > 600);
    end(&s);
}

/* Growth waits for other pods to shrink, which never happens here; the pod is visible in the
 * market at once. */
static void who_waits_for_room_has_an_allocation(void)
{
    struct scene s;
    begin(&s);
    s.idle_kubelet = true;
    add_pod(&s, (struct pod_spec){ "default", "hog", NULL, 100, 1700, 20 });
    agent_up(&s);
    pass(&s, 200);
    add_pod(&s, (struct pod_spec){ "default", "late", NULL, 50, 100, 700 });
    pass(&s, 60);
    const struct json *spec = json_get(allocation(&s, "default-late"), "spec");
    EQ_INT(milli_of(json_get(spec, "desiredCPULimit")), 100);
    EQ_INT(milli_of(json_get(spec, "desiredCPURequest")), 50);
    end(&s);
}

/* The rejected limit is less than the pod has: nothing else is desired until that expires. */
static void who_cannot_be_resized_keeps_what_it_has(void)
{
    struct scene s;
    begin(&s);
    s.idle_kubelet = true;
    add_pod(&s, (struct pod_spec){ "default", "pinned", NULL, 100, 500, 30 });
    agent_up(&s);
    pass(&s, 200);
    int64_t wanted =
        milli_of(json_at(allocation(&s, "default-pinned"), "spec", "desiredCPULimit", NULL));
    OK(wanted < 500);
    char until[RFC3339_TEXT_MAX];
    rfc3339_text(cluster_now(&s.c) + 600, until);
    str body = arena_printf(&s.c.arena,
                            "{\"status\":{\"phase\":\"Failed\",\"reason\":\"Infeasible\","
                            "\"infeasibleCPULimit\":\"%lldm\",\"infeasibleUntil\":\"%s\"}}",
                            (long long)wanted, until);
    EQ_INT(patch_sub(&s.c, &market_allocation_resource, "default", "default-pinned", "status", body)
               .code,
           200);
    for (int i = 0; i < 20; i++) {
        pass(&s, 10);
        const struct json *spec = json_get(allocation(&s, "default-pinned"), "spec");
        EQ_INT(milli_of(json_get(spec, "desiredCPULimit")), 500);
        EQ_INT(milli_of(json_get(spec, "desiredCPURequest")), 100);
    }
    end(&s);
}

struct prometheus {
    struct http_server *server;
    size_t questions;
    bool asked_of_targets;
};

/* Prometheus reports half a second for every pod, whatever the query. */
static void answer_latency(void *context, struct exchange *x)
{
    struct prometheus *p = context;
    p->questions++;
    p->asked_of_targets = str_find(exchange_body(x), S("tardy")) != SIZE_MAX &&
                          str_find(exchange_body(x), S("prompt")) == SIZE_MAX;
    exchange_answer(
        x, 200, HTTP_HEADERS({ S("content-type"), S("application/json") }),
        S("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
          "{\"metric\":{\"namespace\":\"default\",\"pod\":\"tardy\"},\"value\":[1,\"0.5\"]},"
          "{\"metric\":{\"namespace\":\"default\",\"pod\":\"prompt\"},\"value\":[1,\"0.5\"]},"
          "{\"metric\":{\"namespace\":\"default\",\"pod\":\"idle\"},\"value\":[1,\"NaN\"]}]}}"));
}

static void a_missed_latency_target_raises_the_limit(void)
{
    struct scene s;
    struct prometheus p = { 0 };
    err_t e;
    begin(&s);
    OK_CALL(http_server_new(s.c.loop,
                            &(struct http_server_options){ .on_request = answer_latency,
                                                           .context = &p },
                            &p.server, &e),
            &e);
    str data = arena_printf(&s.c.arena,
                            "{\"metadata\":{\"name\":\"mbcas-agent-config\"},\"data\":{"
                            "\"prometheusURL\":\"http://127.0.0.1:%d\"}}",
                            http_server_port(p.server));
    cluster_do(&s.c, KUBE_CREATE, &resource_configmaps, "default", "mbcas-agent-config", data);
    const char *target = "\"mbcas.io/target-latency-ms\":\"100\"";
    add_pod(&s, (struct pod_spec){ "default", "tardy", target, 100, 300, 200 });
    add_pod(&s, (struct pod_spec){ "default", "idle", target, 100, 300, 200 });
    add_pod(&s, (struct pod_spec){ "default", "prompt", NULL, 100, 300, 200 });
    agent_up(&s);
    pass(&s, 32);
    OK(p.questions >= 5 && p.questions <= 8); /* all pods at once, every 5 s */
    OK(p.asked_of_targets);
    OK(milli_of(json_at(allocation(&s, "default-tardy"), "spec", "desiredCPULimit", NULL)) > 400);
    EQ_INT(milli_of(json_at(allocation(&s, "default-idle"), "spec", "desiredCPULimit", NULL)), 300);
    EQ_INT(milli_of(json_at(allocation(&s, "default-prompt"), "spec", "desiredCPULimit", NULL)),
           300);
    cluster_operator_down(&s.c);
    http_server_free(p.server);
    end(&s);
}

static const struct json *create(struct scene *s, const struct resource *resource, const char *name,
                                 const char *text)
{
    return cluster_do(&s->c, KUBE_CREATE, resource, "default", name, str_c(text)).object;
}

/* An HPA on utilization divides by the request: only the limit moves, and the status shows why. */
static void requests_of_an_hpa_are_held(void)
{
    struct scene s;
    unsetenv("MBCAS_LIMIT_OVERCOMMIT");
    begin(&s);
    const struct json *set = create(
        &s, &resource_statefulsets, "web",
        "{\"apiVersion\":\"apps/v1\",\"kind\":\"StatefulSet\",\"metadata\":{\"name\":\"web\"},"
        "\"spec\":{\"serviceName\":\"x\",\"selector\":{\"matchLabels\":{\"a\":\"b\"}},"
        "\"template\":{\"metadata\":{\"labels\":{\"a\":\"b\"}},\"spec\":{\"containers\":[{"
        "\"name\":\"a\",\"image\":\"i\"}]}}}}");
    OK(set);
    OK(create(
        &s, &resource_hpas, "web",
        "{\"apiVersion\":\"autoscaling/v2\",\"kind\":\"HorizontalPodAutoscaler\",\"metadata\":{"
        "\"name\":\"web\"},\"spec\":{\"maxReplicas\":5,\"scaleTargetRef\":{\"apiVersion\":"
        "\"apps/v1\",\"kind\":\"StatefulSet\",\"name\":\"web\"},\"metrics\":[{\"type\":"
        "\"Resource\",\"resource\":{\"name\":\"cpu\",\"target\":{\"type\":\"Utilization\","
        "\"averageUtilization\":90}}}]}}"));
    add_pod(&s, (struct pod_spec){ "default", "held", NULL, 100, 200, 600, set });
    add_pod(&s, (struct pod_spec){ "default", "free", NULL, 100, 200, 600 });
    agent_up(&s);
    pass(&s, 120);
    const struct json *held = allocation(&s, "default-held"),
                      *other = allocation(&s, "default-free");
    EQ_INT(milli_of(json_at(held, "spec", "desiredCPURequest", NULL)), 100);
    OK(milli_of(json_at(held, "spec", "desiredCPULimit", NULL)) > 500);
    OK(milli_of(json_at(other, "spec", "desiredCPURequest", NULL)) > 400);
    EQ_STR(json_text(json_at(held, "status", "hpaPeace", "state", NULL)), S("Held"));
    EQ_STR(json_text(json_at(held, "status", "hpaPeace", "hpa", NULL)), S("web"));
    EQ_STR(json_text(json_at(held, "status", "hpaPeace", "floor", NULL)), S("108m"));
    EQ_STR(json_text(json_at(other, "status", "hpaPeace", "state", NULL)), S("None"));
    agent_down(&s);
    end(&s);
    setenv("MBCAS_LIMIT_OVERCOMMIT", "1", 1);
}

/* One annotation took all of a node, and the agent wrote a limit below the request. */
static void min_cpu_is_bounded(void)
{
    struct scene s;
    unsetenv("MBCAS_LIMIT_OVERCOMMIT");
    begin(&s);
    add_pod(&s,
            (struct pod_spec){ "default", "greedy", "\"mbcas.io/min-cpu\":\"10\"", 200, 500, 300 });
    add_pod(&s, (struct pod_spec){ "default", "modest", NULL, 100, 300, 260 });
    agent_up(&s);
    pass(&s, 300);
    const struct json *greedy = allocation(&s, "default-greedy"),
                      *modest = allocation(&s, "default-modest");
    EQ_STR(json_text(json_at(greedy, "status", "guaranteedCPU", NULL)), S("500m"));
    EQ_INT(json_len(json_at(greedy, "status", "problems", NULL)), 1); /* above the original limit */
    OK(milli_of(json_at(modest, "spec", "desiredCPULimit", NULL)) >= 260);
    OK(milli_of(json_at(modest, "spec", "desiredCPURequest", NULL)) <
       milli_of(json_at(modest, "spec", "desiredCPULimit", NULL)));
    EQ_REAL(metric(&s, "mbcas_agent_refused_writes_total "), 0);
    agent_down(&s);
    end(&s);
    setenv("MBCAS_LIMIT_OVERCOMMIT", "1", 1);
}

int main(void)
{
    setenv("MBCAS_LIMIT_OVERCOMMIT", "1", 1); /* the sums below are those of the strict promise */
    return tap_run((struct tap_case[]){ TAP(who_starves_gets_what_another_hoards),
                                        TAP(nothing_is_written_when_nothing_changed),
                                        TAP(only_some_pods_take_part),
                                        TAP(pods_come_and_go),
                                        TAP(the_configuration_is_live),
                                        TAP(what_was_learnt_outlives_agent_and_pod),
                                        TAP(pods_of_one_workload_learn_into_one_table),
                                        TAP(an_outage_loses_nothing),
                                        TAP(what_the_node_cannot_give_is_not_asked_again),
                                        TAP(who_cannot_be_resized_keeps_what_it_has),
                                        TAP(who_waits_for_room_has_an_allocation),
                                        TAP(a_missed_latency_target_raises_the_limit),
                                        TAP(requests_of_an_hpa_are_held),
                                        TAP(min_cpu_is_bounded),
                                        { 0 } });
}
