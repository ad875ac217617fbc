/* Pods as consumers of CPU (cpu.h). The annotations of a pod describe its demand as curves (curve.h) in
 * cores:
 *
 *     testbed.flyball.dev/cpu: "0s=200m 60s=1500m"     of its first container, from the pod's creation on
 *     testbed.flyball.dev/cpu-NAME: 50m                of its container NAME
 *     testbed.flyball.dev/memory: "0s=100Mi 600s=1Gi"  working set of its first container, from its start on;
 *                                                      above its limit it is killed
 *     testbed.flyball.dev/memory-NAME: 64Mi            of its container NAME
 *     testbed.flyball.dev/cpu-shared: "0s=1 60s=6"     of the whole workload, from the ReplicaSet's creation on,
 *                                                      divided evenly among the pods that run
 *
 * Requests and limits are taken from status.containerStatuses, not from the spec: a resize has effect when
 * the kubelet has enacted it. */
#include "cluster.h"

#include "../base/quantity.h"
#include "../base/sha256.h"
#include "../json/json.h"

static int64_t read_milli(const struct json *resources, const char *kind)
{
    int64_t milli;
    const struct json *cpu = json_at(resources, kind, "cpu", NULL);
    return cpu && quantity_parse_milli(json_text(cpu), &milli, NULL) == 0 ? milli : 0;
}

str cluster_container_id(struct arena *a, const struct pod *pod, str container)
{
    char hex[SHA256_HEX + 1];
    sha256_hex(arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(pod->meta.uid), STR_ARG(container)),
               hex);
    return arena_str(a, str_c(hex));
}

/* "testbed.flyball.dev/KIND-NAME", or without a name for the first container. */
static str find_curve(struct reconcile *r, const struct pod *pod, const char *kind, str name,
                      bool first)
{
    str key = arena_printf(r->arena, TESTBED_DOMAIN "/%s-" STR_FMT, kind, STR_ARG(name));
    str curve = intern_labels_get(pod->annotations, key);
    if (!curve.n && first)
        curve =
            intern_labels_get(pod->annotations, arena_printf(r->arena, TESTBED_DOMAIN "/%s", kind));
    return curve;
}

static struct cpu_container_spec read_container(struct reconcile *r, const struct pod *pod,
                                                const struct json *status, bool first)
{
    str name = json_text(json_get(status, "name"));
    const struct json *resources = json_get(status, "resources");
    int64_t memory = 0;
    (void)quantity_parse_milli(json_text(json_at(resources, "limits", "memory", NULL)), &memory,
                               NULL);
    return (struct cpu_container_spec){ .name = name,
                                        .id = cluster_container_id(r->arena, pod, name),
                                        .demand = find_curve(r, pod, "cpu", name, first),
                                        .memory = find_curve(r, pod, "memory", name, first),
                                        .memory_limit = memory / 1000,
                                        .request_milli = read_milli(resources, "requests"),
                                        .limit_milli = read_milli(resources, "limits") };
}

int cluster_update_cpu(struct reconcile *r, const struct pod *pod, const struct json *statuses,
                       const struct json *init_statuses, err_t *e)
{
    struct cluster *c = r->context;
    const struct workload *set = cache_get(c->sets, r->ns, pod->owner);
    size_t n = json_len(statuses), sidecars = json_len(init_statuses);
    struct cpu_container_spec *containers =
        arena_array(r->arena, n + sidecars, sizeof(*containers));
    for (size_t i = 0; i < n; i++)
        containers[i] = read_container(r, pod, json_item(statuses, i), i == 0);
    for (size_t i = 0; i < sidecars; i++)
        if (json_at(json_item(init_statuses, i), "state", "running", NULL))
            containers[n++] = read_container(r, pod, json_item(init_statuses, i), false);
    struct cpu_pod_spec spec = {
        .ns = r->ns,
        .name = r->name,
        .uid = pod->meta.uid,
        .node = pod->node,
        .qos = pod->qos,
        .workload = pod->owner_uid,
        .shared = intern_labels_get(pod->annotations, S(TESTBED_DOMAIN "/cpu-shared")),
        .origin_ns = pod->created_ns,
        .shared_origin_ns = set ? set->created_ns : pod->created_ns,
        .now_ns = r->now_ns,
        .containers = containers,
        .container_n = n,
    };
    int failed = cpu_put(&c->cpu, &spec, e);
    if (failed < 0)
        cluster_report_invalid(r, &resource_pods, &pod->meta, e->text);
    return failed;
}

static double get_capacity_milli(void *context, str name)
{
    const struct cluster *c = context;
    const struct node *node = cache_get(c->nodes, S(""), name);
    return node ? (double)node->cpu_milli : 0;
}

static void report_kill(void *context, str ns, str name)
{
    const struct cluster *c = context;
    controller_add(c->kubelet, ns, name);
}

int cluster_start_cpu(struct cluster *c, err_t *e)
{
    c->cpu.root = manager_setting(c->manager, "testbed-cgroup-root");
    c->cpu.capacity = get_capacity_milli;
    c->cpu.on_kill = report_kill;
    c->cpu.context = c;
    return c->cpu.root && *c->cpu.root ? cpu_files_clear(c->cpu.root, e) : 0;
}
