/* The cells of pods. "Status" is what users look at first: the phase, unless an init container, a container or
 * the deletion of the pod is more informative ("Init:CrashLoopBackOff", "Terminating"). The rules and texts
 * follow kubectl's printer (quoted: kubectl), which reads the statuses in this order:
 *
 *   init containers, up to the first that is not complete -> "Init:..." and stop
 *   containers, last to first, so that the first one wins -> waiting reason, exit reason, readiness
 *   deletionTimestamp                                     -> "Terminating", unless finished */
#include "table.h"
#include "table_columns.h"

#include "../../base/rfc3339.h"

struct pod_state {
    str reason;
    int64_t ready, containers, restarts, sidecar_restarts;
    int64_t last_restart_s, last_sidecar_restart_s; /* Unix time; 0: never */
    bool initializing;
};

/* True if the condition has the status True. */
static bool is_condition_true(const struct json *pod, const char *type)
{
    const struct json *conditions = json_at(pod, "status", "conditions", NULL);
    for (uint32_t i = 0; i < json_len(conditions); i++)
        if (str_eqc(json_text(json_get(conditions->items[i], "type")), type))
            return str_eqc(json_text(json_get(conditions->items[i], "status")), "True");
    return false;
}

/* An init container that keeps running. */
static bool is_sidecar(const struct json *pod, const struct json *name)
{
    const struct json *list = json_at(pod, "spec", "initContainers", NULL);
    for (uint32_t i = 0; i < json_len(list); i++)
        if (json_eq(json_get(list->items[i], "name"), name))
            return str_eqc(json_text(json_get(list->items[i], "restartPolicy")), "Always");
    return false;
}

/* Unix time of the last termination; 0 if there was none. */
static int64_t get_last_end(const struct json *container)
{
    int64_t seconds = 0;
    str end = json_text(json_at(container, "lastState", "terminated", "finishedAt", NULL));
    return end.n && rfc3339_parse(end, &seconds, NULL) == 0 ? seconds : 0;
}

/* Why a container terminated: its reason, the signal or the exit code. */
static str format_end_reason(struct arena *a, const struct json *terminated, const char *prefix)
{
    str reason = json_text(json_get(terminated, "reason"));
    int64_t signal = json_int(json_get(terminated, "signal"), 0);
    int64_t code = json_int(json_get(terminated, "exitCode"), 0);
    if (reason.n)
        return arena_printf(a, "%s" STR_FMT, prefix, STR_ARG(reason));
    return signal ? arena_printf(a, "%sSignal:%lld", prefix, (long long)signal)
                  : arena_printf(a, "%sExitCode:%lld", prefix, (long long)code);
}

/* False if the pod waits for this init container; sets the reason. */
static bool is_init_complete(struct arena *a, const struct json *pod, const struct json *container,
                             struct pod_state *s)
{
    const struct json *terminated = json_at(container, "state", "terminated", NULL);
    str waiting = json_text(json_at(container, "state", "waiting", "reason", NULL));
    bool sidecar = is_sidecar(pod, json_get(container, "name"));
    if (terminated && json_int(json_get(terminated, "exitCode"), 0) == 0)
        return true;
    if (sidecar && json_bool(json_get(container, "started"), false)) {
        s->ready += json_bool(json_get(container, "ready"), false);
        return true;
    }
    if (terminated)
        s->reason = format_end_reason(a, terminated, "Init:");
    else if (waiting.n && !str_eqc(waiting, "PodInitializing"))
        s->reason = arena_printf(a, "Init:" STR_FMT, STR_ARG(waiting));
    else
        s->reason = S("");
    return false;
}

/* Stops at the first init container that is not complete; counts restarts of those before. */
static void read_init_containers(struct arena *a, const struct json *pod, struct pod_state *s)
{
    const struct json *statuses = json_at(pod, "status", "initContainerStatuses", NULL);
    size_t all = json_len(json_at(pod, "spec", "initContainers", NULL));
    for (uint32_t i = 0; i < json_len(statuses); i++) {
        const struct json *c = statuses->items[i];
        int64_t restarts = json_int(json_get(c, "restartCount"), 0);
        s->restarts += restarts;
        s->last_restart_s = MAX(s->last_restart_s, get_last_end(c));
        if (is_sidecar(pod, json_get(c, "name"))) {
            s->sidecar_restarts += restarts;
            s->last_sidecar_restart_s = MAX(s->last_sidecar_restart_s, get_last_end(c));
        }
        if (is_init_complete(a, pod, c, s))
            continue;
        s->initializing = true;
        if (!s->reason.n)
            s->reason = arena_printf(a, "Init:%u/%zu", i, all);
        return;
    }
}

/* Restarts of init containers no longer count once containers run, except those of sidecars. */
static void read_containers(struct arena *a, const struct json *pod, struct pod_state *s)
{
    const struct json *statuses = json_at(pod, "status", "containerStatuses", NULL);
    bool running = false;
    str fault = S("");
    s->restarts = s->sidecar_restarts;
    s->last_restart_s = s->last_sidecar_restart_s;
    for (size_t i = json_len(statuses); i > 0; i--) {
        const struct json *c = statuses->items[i - 1];
        const struct json *terminated = json_at(c, "state", "terminated", NULL);
        str waiting = json_text(json_at(c, "state", "waiting", "reason", NULL));
        s->restarts += json_int(json_get(c, "restartCount"), 0);
        s->last_restart_s = MAX(s->last_restart_s, get_last_end(c));
        if (waiting.n) {
            s->reason = waiting;
        } else if (terminated) {
            s->reason = format_end_reason(a, terminated, "");
            if (json_int(json_get(terminated, "exitCode"), 0))
                fault = s->reason;
        } else if (json_bool(json_get(c, "ready"), false) && json_at(c, "state", "running", NULL)) {
            running = true;
            s->ready++;
        }
    }
    if (!str_eqc(s->reason, "Completed"))
        return;
    if (running && is_condition_true(pod, "Ready"))
        s->reason = S("Running");
    else if (fault.n)
        s->reason = fault;
    else if (running)
        s->reason = S("NotReady");
}

/* Collects everything that the cells show. */
static struct pod_state read_pod_state(struct arena *a, const struct json *pod)
{
    str phase = json_text(json_at(pod, "status", "phase", NULL));
    str reason = json_text(json_at(pod, "status", "reason", NULL));
    struct pod_state s = { .reason = reason.n ? reason : phase };
    const struct json *inits = json_at(pod, "spec", "initContainers", NULL);
    const struct json *conditions = json_at(pod, "status", "conditions", NULL);
    for (uint32_t i = 0; i < json_len(conditions); i++)
        if (str_eqc(json_text(json_get(conditions->items[i], "type")), "PodScheduled") &&
            str_eqc(json_text(json_get(conditions->items[i], "reason")), "SchedulingGated"))
            s.reason = S("SchedulingGated");
    s.containers = (int64_t)json_len(json_at(pod, "spec", "containers", NULL));
    for (uint32_t i = 0; i < json_len(inits); i++)
        s.containers += str_eqc(json_text(json_get(inits->items[i], "restartPolicy")), "Always");
    read_init_containers(a, pod, &s);
    if (!s.initializing || is_condition_true(pod, "Initialized"))
        read_containers(a, pod, &s);
    bool over = str_eqc(phase, "Failed") || str_eqc(phase, "Succeeded");
    if (json_at(pod, "metadata", "deletionTimestamp", NULL))
        s.reason = str_eqc(reason, "NodeLost") ? S("Unknown") : over ? s.reason : S("Terminating");
    return s;
}

/* Passed gates out of all. */
static str format_readiness_gates(struct arena *a, const struct json *pod)
{
    const struct json *list = json_at(pod, "spec", "readinessGates", NULL);
    size_t open = 0;
    for (uint32_t i = 0; i < json_len(list); i++) {
        str type = arena_str(a, json_text(json_get(list->items[i], "conditionType")));
        open += is_condition_true(pod, type.p);
    }
    return json_len(list) ? arena_printf(a, "%zu/%zu", open, json_len(list)) : S("<none>");
}

/* Restarts also show how long ago the last one was. */
void table_cells_pod(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    struct pod_state s = read_pod_state(a, object);
    const struct json *ips = json_at(object, "status", "podIPs", NULL);
    str restarts = arena_printf(a, "%lld", (long long)s.restarts);
    if (s.restarts && s.last_restart_s)
        restarts = arena_printf(a, STR_FMT " (" STR_FMT " ago)", STR_ARG(restarts),
                                STR_ARG(table_age(a, now_ns / 1000000000 - s.last_restart_s)));
    table_cell_text(a, cells, json_text(json_at(object, "metadata", "name", NULL)));
    table_cell_text(a, cells,
                    arena_printf(a, "%lld/%lld", (long long)s.ready, (long long)s.containers));
    table_cell_text(a, cells, s.reason);
    table_cell_text(a, cells, restarts);
    table_cell_text(a, cells,
                    table_cell_age(a, json_at(object, "metadata", "creationTimestamp", NULL),
                                   now_ns));
    table_cell_text_or(a, cells, json_text(json_get(json_item(ips, 0), "ip")), "<none>");
    table_cell_text_or(a, cells, json_text(json_at(object, "spec", "nodeName", NULL)), "<none>");
    table_cell_text_or(a, cells, json_text(json_at(object, "status", "nominatedNodeName", NULL)),
                       "<none>");
    table_cell_text(a, cells, format_readiness_gates(a, object));
}
