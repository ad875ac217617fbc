/* Memory in the node agent: what it desires for a container, and when it desires nothing. */
#include "agent_scene.h"

#include "market/market_agent_pod.h"

static void configure(struct scene *s, const char *data)
{
    const struct json *have =
        cluster_get(&s->c, &resource_configmaps, "default", "mbcas-agent-config");
    str body = arena_printf(&s->c.arena,
                            "{\"metadata\":{\"name\":\"mbcas-agent-config\"},\"data\":%s}", data);
    cluster_do(&s->c, have ? KUBE_MERGE_PATCH : KUBE_CREATE, &resource_configmaps, "default",
               "mbcas-agent-config", body);
}

#define MIB(n) ((long long)(n) << 20)

/* The counters of the only container, and what the node reports about it. */
static void put_memory(struct scene *s, long long mib, int kills)
{
    static const char *const files[] = { "memory.current", "memory.stat", "memory.events" };
    struct buf texts[3] = { { 0 } };
    buf_printf(&texts[0], "%lld\n", MIB(mib + 50));
    buf_printf(&texts[1], "anon %lld\ninactive_file %lld\n", MIB(mib), MIB(50));
    buf_printf(&texts[2], "low 0\nhigh 0\nmax 3\noom 1\noom_kill %d\n", kills);
    for (size_t i = 0; i < countof(files); i++) {
        char path[PATH_MAX];
        snprintf(path, sizeof(path), "%s/abc123/%s", group_of(s, "default", "leak")->path,
                 files[i]);
        cgroup_files_put(&s->world.files, path, buf_str(&texts[i]).p);
    }
    buf_done(&texts[0]), buf_done(&texts[1]), buf_done(&texts[2]);
}

static void report_memory(struct scene *s, long long limit_mib, long long request_mib)
{
    str body = arena_printf(
        &s->c.arena,
        "{\"status\":{\"containerStatuses\":[{\"name\":\"a\",\"ready\":true,\"restartCount\":0,"
        "\"image\":\"i\",\"imageID\":\"\",\"containerID\":\"containerd://abc123\",\"state\":"
        "{\"running\":{}},\"resources\":{\"limits\":{\"cpu\":\"200m\",\"memory\":\"%lldMi\"}},"
        "\"allocatedResources\":{\"cpu\":\"100m\",\"memory\":\"%lldMi\"}}]}}",
        limit_mib, request_mib);
    EQ_INT(patch_sub(&s->c, &resource_pods, "default", "leak", "status", body).code, 200);
}

static void begin_memory(struct scene *s, const char *mode)
{
    begin(s);
    s->idle_kubelet = true;
    patch_sub(&s->c, &resource_nodes, "default", "n1", "status",
              S("{\"status\":{\"allocatable\":{\"memory\":\"4Gi\"},\"nodeInfo\":{"
                "\"kubeletVersion\":\"v1.34.1\"}}}"));
    configure(s, arena_printf(&s->c.arena, "{\"memoryManagement\":\"%s\"}", mode).p);
    add_pod(s, (struct pod_spec){ "default", "leak", NULL, 100, 200, 50 });
    report_memory(s, 256, 128);
    put_memory(s, 100, 0);
    agent_up(s);
    pass(s, 30);
}

static str desired_memory(struct scene *s, const char *field)
{
    const struct json *list = json_at(allocation(s, "default-leak"), "spec", "desiredMemory", NULL);
    return json_text(json_get(json_item(list, 0), field));
}

static void a_limit_grows_before_the_container_is_killed(void)
{
    struct scene s;
    begin_memory(&s, "full");
    OK(!desired_memory(&s, "limit").n); /* page cache is no reason */
    EQ_REAL(metric(&s, "mbcas_memory_working_set_bytes{pod=\"leak\",namespace=\"default\"} "),
            (double)MIB(100));
    put_memory(&s, 240, 0);
    pass(&s, 15);
    EQ_STR(desired_memory(&s, "limit"), S("300Mi"));
    EQ_STR(desired_memory(&s, "request"), S("240Mi"));
    report_memory(&s, 300, 240);
    put_memory(&s, 20, 1); /* killed in spite of it */
    pass(&s, 15);
    EQ_STR(desired_memory(&s, "limit"), S("400Mi"));
    EQ_REAL(metric(&s, "mbcas_memory_oom_kills_total "), 1);
    /* the node refuses: nothing more is asked for until then */
    patch_sub(&s.c, &market_allocation_resource, "default", "default-leak", "status",
              S("{\"status\":{\"memoryRefusedUntil\":\"2099-01-01T00:00:00Z\"}}"));
    put_memory(&s, 299, 1);
    pass(&s, 90);
    EQ_STR(desired_memory(&s, "limit"), S("400Mi"));
    end(&s);
}

static void requests_alone_move_if_so_configured(void)
{
    struct scene s;
    begin_memory(&s, "requests\",\"samplingInterval\":\"10s\",\"fastLoopInterval\":\"10s");
    put_memory(&s, 240, 0);
    pass(&s, 60);
    OK(!desired_memory(&s, "limit").n); /* known for less than an hour */
    s.world.silent = true;              /* the hour is long enough without CPU */
    pass(&s, 3600);
    EQ_STR(desired_memory(&s, "limit"), S("256Mi"));
    EQ_STR(desired_memory(&s, "request"), S("240Mi"));
    end(&s);
}

static void without_the_setting_no_memory_is_touched(void)
{
    struct scene s;
    begin_memory(&s, "off");
    put_memory(&s, 250, 0);
    pass(&s, 60);
    OK(!desired_memory(&s, "limit").n);
    OK(isnan(metric(&s, "mbcas_memory_working_set_bytes{pod")));
    configure(&s, "{\"memoryManagement\":\"full\"}");
    pass(&s, 30);
    EQ_STR(desired_memory(&s, "limit"), S("313Mi"));
    configure(&s, "{\"memoryManagement\":\"off\"}");
    pass(&s, 30);
    OK(isnan(metric(&s, "mbcas_memory_working_set_bytes{pod")));
    end(&s);
}

/* ---- the report about the node */

static const struct json *report(struct scene *s)
{
    return json_get(cluster_get(&s->c, &market_node_resource, NULL, "n1"), "status");
}

static str condition(struct scene *s, const char *type, const char *field)
{
    const struct json *list = json_get(report(s), "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            return json_text(json_get(json_item(list, i), field));
    return S("");
}

static void a_node_reports_prices_and_what_is_invalid(void)
{
    struct scene s;
    begin_memory(&s, "full");
    pass(&s, 60);
    EQ_STR(json_text(json_get(report(&s), "mode")), S("uncongested"));
    EQ_STR(json_text(json_get(report(&s), "modeMemory")), S("uncongested"));
    EQ_INT(json_int(json_get(report(&s), "bidders"), 0), 1);
    EQ_STR(condition(&s, "ConfigValid", "status"), S("True"));
    configure(&s, "{\"slowLoopIntervall\":\"5s\",\"fastLoopInterval\":\"30s\","
                  "\"systemReservePercent\":\"50\",\"limitOvercommit\":\"0.9\"}");
    pass(&s, 30);
    EQ_STR(condition(&s, "ConfigValid", "status"), S("False"));
    EQ_STR(condition(&s, "ConfigValid", "reason"), S("InvalidSetting"));
    EQ_REAL(metric(&s, "mbcas_config_problems "), 3);
    EQ_REAL(metric(&s, "mbcas_capacity_millicores "), 1000); /* the valid one applies */
    const struct json *problems = json_get(report(&s), "problems");
    EQ_INT(json_len(problems), 3);
    const struct json *events =
        json_get(cluster_do(&s.c, KUBE_LIST, &resource_events, "default", NULL, S("")).object,
                 "items");
    size_t told = 0;
    for (size_t i = 0; i < json_len(events); i++)
        told += str_eqc(json_text(json_get(json_item(events, i), "reason")), "InvalidSetting");
    EQ_INT(told, 1);
    configure(&s, "{\"slowLoopIntervall\":null,\"fastLoopInterval\":\"2s\","
                  "\"limitOvercommit\":\"1\"}");
    pass(&s, 30);
    EQ_STR(condition(&s, "ConfigValid", "status"), S("True"));
    EQ_STR(condition(&s, "Overcommit", "reason"), S("Off"));
    /* deleted by a user: it returns */
    cluster_do(&s.c, KUBE_DELETE, &market_node_resource, NULL, "n1", S(""));
    pass(&s, 150);
    OK(report(&s));
    end(&s);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(a_limit_grows_before_the_container_is_killed),
        TAP(requests_alone_move_if_so_configured),
        TAP(without_the_setting_no_memory_is_touched),
        TAP(a_node_reports_prices_and_what_is_invalid),
        { 0 },
    });
}
