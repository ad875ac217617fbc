/* Pods as the node agent sees them: see market_agent_pod.h.
 *
 * The tables declare which fields the caches keep; json/project.c fills the records from them.
 * What follows is arithmetic on one record. In-force values are those that the node reports: a
 * pending resize counts as what the pod has, so a pod that requests more than exists takes
 * nothing from others. */
#include "market_agent_pod.h"

#include "../base/sha256.h"
#include "../kube/controller.h"
#include "floor_core.h"
#include "resize_core.h"

#include <math.h>

enum { NAME_BYTES_MAX = 253, HASH_CHARS = 12 };

static const struct field container_fields[] = {
    { "name", F_SUM, offsetof(struct agent_container, name_sum) },
    { "name", F_WORD, offsetof(struct agent_container, name) },
    { "resources.requests.memory", F_MILLI, offsetof(struct agent_container, memory_request),
      .otherwise = -1 },
    { "resources.limits.memory", F_MILLI, offsetof(struct agent_container, memory_limit),
      .otherwise = -1 },
    { "resizePolicy[resourceName=memory].restartPolicy", F_IS,
      offsetof(struct agent_container, memory_restarts), .text = "RestartContainer" },
    { "resources.requests.cpu", F_MILLI, offsetof(struct agent_container, request_milli),
      .otherwise = -1 },
    { "resources.limits.cpu", F_MILLI, offsetof(struct agent_container, limit_milli),
      .otherwise = -1 },
    { "restartPolicy", F_IS, offsetof(struct agent_container, sidecar), .text = "Always" },
    { "resizePolicy[resourceName=cpu].restartPolicy", F_IS,
      offsetof(struct agent_container, restarts), .text = "RestartContainer" },
};

static const struct field status_fields[] = {
    { "name", F_SUM, offsetof(struct agent_container_status, name_sum) },
    { "resources.limits.cpu", F_MILLI, offsetof(struct agent_container_status, limit_milli),
      .otherwise = -1 },
    { "allocatedResources.cpu", F_MILLI, offsetof(struct agent_container_status, admitted_milli),
      .otherwise = -1 },
    { "resources.limits.memory", F_MILLI, offsetof(struct agent_container_status, memory_limit),
      .otherwise = -1 },
    { "allocatedResources.memory", F_MILLI,
      offsetof(struct agent_container_status, memory_admitted), .otherwise = -1 },
    { "containerID", F_SUM, offsetof(struct agent_container_status, id_sum) },
    { "lastState.terminated.finishedAt", F_TIME,
      offsetof(struct agent_container_status, ended_ns) },
    { "lastState.terminated.reason", F_IS, offsetof(struct agent_container_status, oom_killed),
      .text = "OOMKilled" },
};

static const struct fields containers = { sizeof(struct agent_container), container_fields,
                                          countof(container_fields) };
static const struct fields statuses = { sizeof(struct agent_container_status), status_fields,
                                        countof(status_fields) };

#define MANAGED_LABEL "metadata.labels[\"" MARKET_MANAGED "\"]"
#define MANAGED_ANNOTATION "metadata.annotations[\"" MARKET_MANAGED "\"]"
#define POD(member) offsetof(struct agent_pod_record, member)
static const struct field pod_fields[] = {
    { "status.phase", F_IS, POD(running), .text = "Running" },
    { "status.phase", F_IS, POD(succeeded), .text = "Succeeded" },
    { "status.phase", F_IS, POD(failed), .text = "Failed" },
    { "status.qosClass", F_IS, POD(best_effort), .text = "BestEffort" },
    { "status.qosClass", F_IS, POD(guaranteed), .text = "Guaranteed" },
    { "spec.os.name", F_IS, POD(windows), .text = "windows" },
    { "metadata.deletionTimestamp", F_HAS, POD(deleting) },
    { "metadata.annotations[\"" MARKET_MIRROR "\"]", F_HAS, POD(mirror) },
    { MANAGED_LABEL, F_IS, POD(opted_out[0]), .text = "false" },
    { MANAGED_LABEL, F_IS, POD(opted_in[0]), .text = "true" },
    { MANAGED_ANNOTATION, F_IS, POD(opted_out[1]), .text = "false" },
    { MANAGED_ANNOTATION, F_IS, POD(opted_in[1]), .text = "true" },
    { "metadata.annotations[\"" MARKET_SKIP_GUARANTEED "\"]", F_IS, POD(unskipped),
      .text = "false" },
    { "metadata.annotations[\"" MARKET_ALLOW_RESTART "\"]", F_IS, POD(may_restart),
      .text = "true" },
    { "metadata.annotations[\"" MARKET_MIN_CPU "\"]", F_WORD, POD(min_cpu) },
    { "metadata.annotations[\"" MARKET_MAX_CPU "\"]", F_WORD, POD(max_cpu) },
    { "metadata.annotations[\"" MARKET_ELASTIC "\"]", F_IS, POD(elastic), .text = "true" },
    { "metadata.annotations[\"" MARKET_MEMORY_SHRINK "\"]", F_IS, POD(memory_shrink),
      .text = "true" },
    { "metadata.annotations[\"" MARKET_HPA "\"]", F_WORD, POD(hpa) },
    { "metadata.annotations[\"" MARKET_STARTUP_BOOST "\"]", F_WORD, POD(startup_boost) },
    { "status.startTime", F_TIME, POD(started_ns) },
    { "status.conditions[type=Ready].status", F_IS, POD(ready), .text = "True" },
    { "status.conditions[type=Ready].lastTransitionTime", F_TIME, POD(ready_ns) },
    { "metadata.annotations[\"" MARKET_TARGET_LATENCY "\"]", F_WORD, POD(target_latency) },
    { OWNER_KIND, F_WORD, POD(owner_kind) },
    { OWNER_NAME, F_WORD, POD(owner_name) },
    { "metadata.labels[\"pod-template-hash\"]", F_WORD, POD(template_hash) },
    { "spec.containers", F_LIST, POD(containers), .of = &containers },
    { "spec.initContainers", F_LIST, POD(init_containers), .of = &containers },
    { "status.containerStatuses", F_LIST, POD(statuses), .of = &statuses },
    { "status.initContainerStatuses", F_LIST, POD(init_statuses), .of = &statuses },
};
#undef POD

static const struct field node_fields[] = {
    { "status.allocatable.cpu", F_MILLI, offsetof(struct agent_node_record, allocatable_milli) },
    { "status.allocatable.memory", F_MILLI,
      offsetof(struct agent_node_record, allocatable_memory) },
    { "status.nodeInfo.kubeletVersion", F_WORD,
      offsetof(struct agent_node_record, kubelet_version) },
};

static const struct field config_fields[] = {
    { "data", F_RAW, offsetof(struct agent_config_record, data) },
};

static const struct field original_fields[] = {
    { "request", F_MILLI, offsetof(struct agent_original, request_milli) },
    { "limit", F_MILLI, offsetof(struct agent_original, limit_milli) },
};
static const struct fields originals = { sizeof(struct agent_original), original_fields,
                                         countof(original_fields) };

#define HPA_METRIC(member) offsetof(struct agent_hpa_metric, member)
static const struct field metric_fields[] = {
    { "type", F_WORD, HPA_METRIC(type) },
    { "resource.name", F_WORD, HPA_METRIC(name) },
    { "resource.target.type", F_WORD, HPA_METRIC(target) },
    { "resource.target.averageUtilization", F_INT, HPA_METRIC(percent) },
    { "containerResource.name", F_WORD, HPA_METRIC(container_name) },
    { "containerResource.target.type", F_WORD, HPA_METRIC(container_target) },
    { "containerResource.target.averageUtilization", F_INT, HPA_METRIC(container_percent) },
};
#undef HPA_METRIC
static const struct fields metrics = { sizeof(struct agent_hpa_metric), metric_fields,
                                       countof(metric_fields) };

#define HPA(member) offsetof(struct agent_hpa_record, member)
static const struct field hpa_fields[] = {
    { "spec.scaleTargetRef.kind", F_WORD, HPA(target_kind) },
    { "spec.scaleTargetRef.name", F_STR, HPA(target_name) },
    { "spec.behavior.scaleUp.tolerance", F_MILLI, HPA(tolerance_milli), .otherwise = 100 },
    { "spec.metrics", F_LIST, HPA(metrics), .of = &metrics },
};
#undef HPA

#define ALLOCATION(member) offsetof(struct agent_allocation_record, member)
static const struct field allocation_fields[] = {
    { "spec.podName", F_STR, ALLOCATION(pod_name) },
    { "spec.nodeName", F_WORD, ALLOCATION(node) },
    { "metadata.ownerReferences[kind=Pod].uid", F_SUM, ALLOCATION(owner_uid_sum) },
    { "spec.desiredCPULimit", F_MILLI, ALLOCATION(limit_milli) },
    { "spec.desiredCPURequest", F_MILLI, ALLOCATION(request_milli) },
    { "status.infeasibleCPULimit", F_MILLI, ALLOCATION(infeasible_milli) },
    { "status.infeasibleUntil", F_TIME, ALLOCATION(infeasible_until_ns) },
    { "status.memoryRefusedUntil", F_TIME, ALLOCATION(memory_refused_until_ns) },
    { "status.shadowPriceCPU", F_REAL, ALLOCATION(price), .otherwise = -1 },
    { "status.originalResources", F_LIST, ALLOCATION(originals), .of = &originals },
};
#undef ALLOCATION

static const struct fields pod_kept = { sizeof(struct agent_pod_record), pod_fields,
                                        countof(pod_fields) };
static const struct fields node_kept = { sizeof(struct agent_node_record), node_fields,
                                         countof(node_fields) };
static const struct fields config_kept = { sizeof(struct agent_config_record), config_fields,
                                           countof(config_fields) };

static const struct fields allocation_kept = { sizeof(struct agent_allocation_record),
                                               allocation_fields, countof(allocation_fields) };

const struct cache_spec market_agent_allocation_cache = { .resource = &market_allocation_resource,
                                                          .keep = &allocation_kept };
const struct cache_spec market_agent_pod_cache = { .resource = &resource_pods, .keep = &pod_kept };
const struct cache_spec market_agent_node_cache = { .resource = &resource_nodes,
                                                    .keep = &node_kept };
const struct cache_spec market_agent_config_cache = { .resource = &resource_configmaps,
                                                      .keep = &config_kept };

static const struct fields hpa_kept = { sizeof(struct agent_hpa_record), hpa_fields,
                                        countof(hpa_fields) };
const struct cache_spec market_agent_hpa_cache = { .resource = &resource_hpas,
                                                   .keep = &hpa_kept,
                                                   .indexes = { offsetof(struct agent_hpa_record,
                                                                         target_name) } };

/* ---- participation */

static bool list_contains(str names, str name)
{
    for (str one; str_cut(&names, ',', &one);)
        if (str_eq(str_trim(one), name))
            return true;
    return false;
}

static bool all_have_limits(const struct agent_pod_record *r)
{
    for (size_t i = 0; i < r->containers.n; i++)
        if (r->containers.at[i].limit_milli < 0)
            return false;
    for (size_t i = 0; i < r->init_containers.n; i++)
        if (r->init_containers.at[i].sidecar && r->init_containers.at[i].limit_milli < 0)
            return false;
    return r->containers.n > 0;
}

static bool all_restart(const struct agent_pod_record *r)
{
    bool restart = !r->may_restart && r->containers.n > 0;
    for (size_t i = 0; i < r->containers.n; i++)
        restart &= r->containers.at[i].restarts;
    for (size_t i = 0; i < r->init_containers.n; i++)
        restart &= !r->init_containers.at[i].sidecar || r->init_containers.at[i].restarts;
    return restart;
}

/* Returns the first reason that applies, so that the order of the table is the order of
 * precedence. */
static enum agent_exclusion find_exclusion(const struct agent_pod_record *r, str excluded)
{
    const struct {
        bool holds;
        enum agent_exclusion exclusion;
    } reasons[] = {
        { !r->running, AGENT_NOT_RUNNING },
        { r->deleting, AGENT_ENDING },
        { list_contains(excluded, r->meta.ns), AGENT_NAMESPACE },
        { r->opted_out[0] || r->opted_out[1], AGENT_OPTED_OUT },
        { r->mirror, AGENT_STATIC },
        { r->windows, AGENT_WINDOWS },
        { r->best_effort, AGENT_BEST_EFFORT },
        { r->guaranteed && !r->unskipped, AGENT_GUARANTEED },
        { all_restart(r), AGENT_RESTART },
        { !all_have_limits(r) && !r->opted_in[0] && !r->opted_in[1], AGENT_NO_LIMIT },
    };
    for (size_t i = 0; i < countof(reasons); i++)
        if (reasons[i].holds)
            return reasons[i].exclusion;
    return AGENT_TAKES_PART;
}

const char *market_agent_pod_exclusion_text(enum agent_exclusion exclusion)
{
    static const char *const texts[AGENT_EXCLUSION_N] = {
        [AGENT_TAKES_PART] = "",
        [AGENT_NOT_RUNNING] = "it is not running",
        [AGENT_ENDING] = "it is terminating",
        [AGENT_NAMESPACE] = "its namespace is excluded (--market-exclude-namespaces)",
        [AGENT_OPTED_OUT] = "it opted out with " MARKET_MANAGED "=false",
        [AGENT_STATIC] = "static pods cannot be resized",
        [AGENT_WINDOWS] = "Windows pods cannot be resized",
        [AGENT_BEST_EFFORT] = "BestEffort pods cannot be resized; set a CPU request and limit",
        [AGENT_GUARANTEED] =
            "Guaranteed pods are skipped; to include it, annotate it with " MARKET_SKIP_GUARANTEED
            "=false",
        [AGENT_RESTART] = "a resize would restart all its containers; to allow that, annotate it "
                          "with " MARKET_ALLOW_RESTART "=true",
        [AGENT_NO_LIMIT] = "a container has no CPU limit, and an added one cannot be removed "
                           "again; to include it, annotate it with " MARKET_MANAGED "=true",
    };
    return texts[exclusion];
}

/* ---- amounts */

/* Adds what the node reports for a container, or its spec if the node reports nothing. */
static void add_container(const struct agent_container *c, const struct agent_container_status *at,
                          size_t n, struct agent_pod_view *view)
{
    int64_t limit = -1, request = -1;
    for (size_t i = 0; i < n; i++) {
        if (at[i].name_sum == c->name_sum) {
            limit = at[i].limit_milli;
            request = at[i].admitted_milli;
        }
    }
    view->limit_milli += limit >= 0 ? limit : MAX(c->limit_milli, (int64_t)0);
    view->request_milli += request >= 0 ? request : MAX(c->request_milli, (int64_t)0);
}

static void sum_containers(const struct agent_pod_record *r, struct agent_pod_view *view)
{
    for (size_t i = 0; i < r->containers.n; i++)
        add_container(&r->containers.at[i], r->statuses.at, r->statuses.n, view);
    for (size_t i = 0; i < r->init_containers.n; i++)
        if (r->init_containers.at[i].sidecar)
            add_container(&r->init_containers.at[i], r->init_statuses.at, r->init_statuses.n, view);
}

static void add_room(const struct agent_pod_record *r, const struct agent_container *c,
                     struct resize_room *room)
{
    int64_t request = MAX(c->request_milli, (int64_t)0);
    resize_room_add(room, &(struct container_share){ .fixed = c->restarts && !r->may_restart,
                                                     .limit_milli = MAX(c->limit_milli, request),
                                                     .request_milli = request });
}

static struct resize_room resize_room_of(const struct agent_pod_record *r)
{
    struct resize_room room = { 0 };
    for (size_t i = 0; i < r->containers.n; i++)
        add_room(r, &r->containers.at[i], &room);
    for (size_t i = 0; i < r->init_containers.n; i++)
        if (r->init_containers.at[i].sidecar)
            add_room(r, &r->init_containers.at[i], &room);
    return room;
}

int64_t market_agent_pod_request(const struct agent_pod_record *r, int64_t limit_milli,
                                 int64_t request_milli)
{
    struct resize_room room = resize_room_of(r);
    return r->guaranteed ? limit_milli : resize_request_within(&room, limit_milli, request_milli);
}

static double parse_target(str text)
{
    double ms = 0;
    return str_to_f64(str_trim(text), &ms) == 0 && isfinite(ms) && ms > 0 ? ms : 0;
}

struct agent_pod_view market_agent_pod_view(const struct agent_pod_record *r, str excluded)
{
    struct agent_pod_view view = {
        .exclusion = find_exclusion(r, excluded),
        .target_ms = parse_target(r->target_latency),
    };
    if (r->min_cpu.n)
        view.min_milli = floor_read_min(r->min_cpu, &view.problems);
    if (r->max_cpu.n)
        view.max_milli = floor_read_max(r->max_cpu, &view.problems);
    sum_containers(r, &view);
    struct resize_room room = resize_room_of(r);
    if (view.min_milli)
        view.min_milli = resize_limit_within(&room, view.min_milli);
    view.least_milli = room.fixed_limit > 0 ? resize_limit_within(&room, 0) : 0;
    if (view.max_milli)
        view.max_milli = resize_limit_within(&room, view.max_milli);
    bool over = r->succeeded || r->failed;
    view.reserved_milli = view.exclusion == AGENT_TAKES_PART || over ? 0 : view.request_milli;
    for (size_t i = 0; view.exclusion != AGENT_TAKES_PART && !over && i < r->containers.n; i++)
        view.reserved_bytes += MAX(r->containers.at[i].memory_request, (int64_t)0) / 1000;
    return view;
}

/* ---- names */

void market_agent_pod_shorten_name(str text, size_t most, struct buf *out)
{
    if (text.n <= most) {
        buf_put(out, text);
        return;
    }
    char hex[SHA256_HEX + 1];
    sha256_hex(text, hex);
    buf_put(out, str_upto(text, most - HASH_CHARS - 1));
    buf_printf(out, "-%.*s", HASH_CHARS, hex);
}

void market_agent_pod_allocation_name(str ns, str pod, struct buf *out)
{
    auto_buf struct buf name = { 0 };
    buf_printf(&name, STR_FMT "-" STR_FMT, STR_ARG(ns), STR_ARG(pod));
    market_agent_pod_shorten_name(buf_str(&name), NAME_BYTES_MAX, out);
}

/* A Deployment's pods belong to a ReplicaSet whose name ends in the hash of the pod template. */
str market_agent_pod_deployment(const struct agent_pod_record *r)
{
    size_t suffix = r->template_hash.n + 1;
    str name = r->owner_name;
    if (!str_eqc(r->owner_kind, "ReplicaSet") || !r->template_hash.n || name.n <= suffix ||
        !str_ends(name, r->template_hash) || name.p[name.n - suffix] != '-')
        return S("");
    return str_upto(name, name.n - suffix);
}

/* Without the hash it is the Deployment's name, so that a Q-table survives a rollout. */
void market_agent_pod_workload_key(const struct agent_pod_record *r, struct buf *out)
{
    auto_buf struct buf key = { 0 };
    str kind = r->owner_kind.n ? r->owner_kind : S("Pod");
    str name = r->owner_name.n ? r->owner_name : r->meta.name;
    str deployment = market_agent_pod_deployment(r);
    if (deployment.n) {
        kind = S("Deployment");
        name = deployment;
    }
    buf_printf(&key, STR_FMT "." STR_FMT "." STR_FMT, STR_ARG(r->meta.ns), STR_ARG(kind),
               STR_ARG(name));
    market_agent_pod_shorten_name(buf_str(&key), NAME_BYTES_MAX, out);
}
