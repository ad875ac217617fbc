/* What stands in the cells of built-in kinds. Pods are in table_pod.c. */
#include "kind_hooks.h"
#include "table.h"
#include "table_columns.h"

#include "../../base/rfc3339.h"

void cell_text(struct arena *a, struct json *cells, str text)
{
    json_push(a, cells, json_new_str(a, text));
}

void cell_or(struct arena *a, struct json *cells, str text, const char *otherwise)
{
    cell_text(a, cells, text.n ? text : str_c(otherwise));
}

void cell_int(struct arena *a, struct json *cells, int64_t value)
{
    json_push(a, cells, json_new_int(a, value));
}

str cell_age(struct arena *a, const struct json *instant, int64_t now_ns)
{
    int64_t seconds = 0;
    if (!json_text(instant).n || rfc3339_parse(json_text(instant), &seconds, NULL) < 0)
        return S("<unknown>");
    return table_age(a, now_ns / 1000000000 - seconds);
}

static str name_of(const struct json *object)
{
    return json_text(json_at(object, "metadata", "name", NULL));
}

static str age_of(struct arena *a, const struct json *object, int64_t now_ns)
{
    return cell_age(a, json_at(object, "metadata", "creationTimestamp", NULL), now_ns);
}

static int64_t status_int(const struct json *object, const char *key)
{
    return json_int(json_at(object, "status", key, NULL), 0);
}

/* The texts at `key` of every element, or the elements themselves, between commas. */
static str joined(struct arena *a, const struct json *list, const char *key)
{
    auto_buf struct buf text = { 0 };
    for (uint32_t i = 0; i < json_len(list); i++) {
        if (i)
            buf_putc(&text, ',');
        buf_put(&text, json_text(key ? json_get(list->items[i], key) : list->items[i]));
    }
    return arena_str(a, buf_str(&text));
}

static str labels_text(struct arena *a, const struct json *labels)
{
    struct json selector = { .type = JSON_OBJ };
    struct json_member member = { S("matchLabels"), (struct json *)labels };
    selector.members = &member, selector.n = 1;
    str text = kind_selector_text(a, labels ? &selector : NULL);
    return text.n ? text : S("<none>");
}

static str selector_text(struct arena *a, const struct json *object)
{
    str text = kind_selector_text(a, json_at(object, "spec", "selector", NULL));
    return text.n ? text : S("<none>");
}

static void cell_template(struct arena *a, const struct json *object, struct json *cells)
{
    const struct json *containers = json_at(object, "spec", "template", "spec", "containers", NULL);
    cell_text(a, cells, joined(a, containers, "name"));
    cell_text(a, cells, joined(a, containers, "image"));
}

static bool has_condition(const struct json *object, const char *type)
{
    const struct json *conditions = json_at(object, "status", "conditions", NULL);
    for (uint32_t i = 0; i < json_len(conditions); i++)
        if (str_eqc(json_text(json_get(conditions->items[i], "type")), type))
            return str_eqc(json_text(json_get(conditions->items[i], "status")), "True");
    return false;
}

/* ---- small kinds */

void cells_plain(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, age_of(a, object, now_ns));
}

void cells_namespace(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, json_text(json_at(object, "status", "phase", NULL)));
    cell_text(a, cells, age_of(a, object, now_ns));
}

void cells_configmap(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    size_t n = json_len(json_get(object, "data")) + json_len(json_get(object, "binaryData"));
    cell_text(a, cells, name_of(object));
    cell_int(a, cells, (int64_t)n);
    cell_text(a, cells, age_of(a, object, now_ns));
}

void cells_secret(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, json_text(json_get(object, "type")));
    cell_int(a, cells, (int64_t)json_len(json_get(object, "data")));
    cell_text(a, cells, age_of(a, object, now_ns));
}

void cells_lease(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, json_text(json_at(object, "spec", "holderIdentity", NULL)));
    cell_text(a, cells, age_of(a, object, now_ns));
}

void cells_role(struct arena *a, const struct json *object, int64_t now_ns UNUSED,
                struct json *cells)
{
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, json_text(json_at(object, "metadata", "creationTimestamp", NULL)));
}

static str subjects_of(struct arena *a, const struct json *binding, const char *kind)
{
    const struct json *subjects = json_get(binding, "subjects");
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < json_len(subjects); i++) {
        const struct json *s = json_item(subjects, i);
        str ns = json_text(json_get(s, "namespace"));
        if (!str_eqc(json_text(json_get(s, "kind")), kind))
            continue;
        buf_printf(&text, "%s" STR_FMT "%s" STR_FMT, text.n ? ", " : "", STR_ARG(ns),
                   ns.n ? "/" : "", STR_ARG(json_text(json_get(s, "name"))));
    }
    return arena_str(a, buf_str(&text));
}

void cells_binding(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    const struct json *role = json_get(object, "roleRef");
    cell_text(a, cells, name_of(object));
    cell_text(a, cells,
              arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(json_text(json_get(role, "kind"))),
                           STR_ARG(json_text(json_get(role, "name")))));
    cell_text(a, cells, age_of(a, object, now_ns));
    cell_text(a, cells, subjects_of(a, object, "User"));
    cell_text(a, cells, subjects_of(a, object, "Group"));
    cell_text(a, cells, subjects_of(a, object, "ServiceAccount"));
}

static str crd_versions(struct arena *a, const struct json *crd)
{
    const struct json *versions = json_at(crd, "spec", "versions", NULL);
    auto_buf struct buf text = { 0 };
    for (uint32_t i = 0; i < json_len(versions); i++) {
        bool stored = json_bool(json_get(versions->items[i], "storage"), false);
        if (!stored && !json_bool(json_get(versions->items[i], "served"), false))
            continue;
        if (text.n)
            buf_putc(&text, ',');
        buf_put(&text, json_text(json_get(versions->items[i], "name")));
        if (stored)
            buf_put(&text, S("(storage)"));
    }
    return arena_str(a, buf_str(&text));
}

void cells_crd(struct arena *a, const struct json *object, int64_t now_ns UNUSED,
               struct json *cells)
{
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, json_text(json_at(object, "spec", "scope", NULL)));
    cell_text(a, cells, crd_versions(a, object));
    cell_text(a, cells, json_text(json_at(object, "metadata", "creationTimestamp", NULL)));
}

/* ---- Node */

/* Each word once, in order. */
static str joined_set(struct arena *a, const struct json *words)
{
    auto_buf struct buf text = { 0 };
    for (str last = S(""), next;; last = next) {
        next = S("");
        for (uint32_t i = 0; i < json_len(words); i++) {
            str word = json_text(words->items[i]);
            if (str_cmp(word, last) > 0 && (!next.n || str_cmp(word, next) < 0))
                next = word;
        }
        if (!next.n)
            return arena_str(a, buf_str(&text));
        if (text.n)
            buf_putc(&text, ',');
        buf_put(&text, next);
    }
}

static str node_roles(struct arena *a, const struct json *node)
{
    static const char prefix[] = "node-role.kubernetes.io/";
    struct json *roles = json_new_arr(a);
    json_each(m, json_at(node, "metadata", "labels", NULL)) {
        if (str_starts(m->key, str_c(prefix)))
            json_push(a, roles, json_new_str(a, str_from(m->key, strlen(prefix))));
        else if (str_eqc(m->key, "kubernetes.io/role"))
            json_push(a, roles, m->value);
    }
    return joined_set(a, roles);
}

static str node_address(const struct json *node, const char *type)
{
    const struct json *addresses = json_at(node, "status", "addresses", NULL);
    for (uint32_t i = 0; i < json_len(addresses); i++)
        if (str_eqc(json_text(json_get(addresses->items[i], "type")), type))
            return json_text(json_get(addresses->items[i], "address"));
    return S("");
}

static str node_status(struct arena *a, const struct json *node)
{
    const struct json *conditions = json_at(node, "status", "conditions", NULL);
    const char *ready = "Unknown";
    for (uint32_t i = 0; i < json_len(conditions); i++)
        if (str_eqc(json_text(json_get(conditions->items[i], "type")), "Ready"))
            ready = has_condition(node, "Ready") ? "Ready" : "NotReady";
    bool closed = json_bool(json_at(node, "spec", "unschedulable", NULL), false);
    return arena_printf(a, "%s%s", ready, closed ? ",SchedulingDisabled" : "");
}

void cells_node(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    const struct json *info = json_at(object, "status", "nodeInfo", NULL);
    str kernel = json_text(json_get(info, "kernelVersion"));
    str architecture = json_text(json_get(info, "architecture"));
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, node_status(a, object));
    cell_or(a, cells, node_roles(a, object), "<none>");
    cell_text(a, cells, age_of(a, object, now_ns));
    cell_text(a, cells, json_text(json_get(info, "kubeletVersion")));
    cell_or(a, cells, node_address(object, "InternalIP"), "<none>");
    cell_or(a, cells, node_address(object, "ExternalIP"), "<none>");
    cell_or(a, cells, json_text(json_get(info, "osImage")), "<unknown>");
    if (!kernel.n)
        kernel = S("<unknown>");
    cell_text(a, cells,
              architecture.n ? arena_printf(a, STR_FMT " (" STR_FMT ")", STR_ARG(kernel),
                                            STR_ARG(architecture))
                             : kernel);
    cell_or(a, cells, json_text(json_get(info, "containerRuntimeVersion")), "<unknown>");
}

/* ---- Service */

static str service_ports(struct arena *a, const struct json *service)
{
    const struct json *ports = json_at(service, "spec", "ports", NULL);
    auto_buf struct buf text = { 0 };
    for (uint32_t i = 0; i < json_len(ports); i++) {
        int64_t node = json_int(json_get(ports->items[i], "nodePort"), 0);
        buf_printf(&text, "%s%lld", i ? "," : "",
                   (long long)json_int(json_get(ports->items[i], "port"), 0));
        if (node)
            buf_printf(&text, ":%lld", (long long)node);
        buf_putc(&text, '/');
        buf_put(&text, json_text(json_get(ports->items[i], "protocol")));
    }
    return text.n ? arena_str(a, buf_str(&text)) : S("<none>");
}

static str service_outside(struct arena *a, const struct json *service)
{
    str type = json_text(json_at(service, "spec", "type", NULL));
    str outside = joined(a, json_at(service, "spec", "externalIPs", NULL), NULL);
    if (str_eqc(type, "ExternalName"))
        return json_text(json_at(service, "spec", "externalName", NULL));
    if (!str_eqc(type, "LoadBalancer"))
        return outside.n ? outside : S("<none>");
    const struct json *ingress = json_at(service, "status", "loadBalancer", "ingress", NULL);
    struct json *addresses = json_new_arr(a);
    for (uint32_t i = 0; i < json_len(ingress); i++) {
        const struct json *ip = json_get(ingress->items[i], "ip");
        json_push(a, addresses, json_copy(a, ip ? ip : json_get(ingress->items[i], "hostname")));
    }
    str inside = joined_set(a, addresses);
    str all = arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(inside),
                           inside.n && outside.n ? "," : "", STR_ARG(outside));
    return all.n ? all : S("<pending>");
}

void cells_service(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, json_text(json_at(object, "spec", "type", NULL)));
    cell_or(a, cells, json_text(json_at(object, "spec", "clusterIP", NULL)), "<none>");
    cell_text(a, cells, service_outside(a, object));
    cell_text(a, cells, service_ports(a, object));
    cell_text(a, cells, age_of(a, object, now_ns));
    cell_text(a, cells, labels_text(a, json_at(object, "spec", "selector", NULL)));
}

/* ---- Event, of either version */

static const struct json *either(const struct json *object, const char *core, const char *other)
{
    const struct json *value = json_get(object, core);
    return value ? value : json_get(object, other);
}

static str lower(struct arena *a, str text)
{
    str copy = arena_str(a, text);
    for (size_t i = 0; i < copy.n; i++)
        if (copy.p[i] >= 'A' && copy.p[i] <= 'Z')
            ((char *)copy.p)[i] = (char)(copy.p[i] | 32);
    return copy;
}

static str event_source(struct arena *a, const struct json *event)
{
    const struct json *source = either(event, "source", "deprecatedSource");
    str who = json_text(json_get(source, "component")), host = json_text(json_get(source, "host"));
    if (!who.n) {
        who = json_text(either(event, "reportingComponent", "reportingController"));
        host = json_text(json_get(event, "reportingInstance"));
    }
    return host.n ? arena_printf(a, STR_FMT ", " STR_FMT, STR_ARG(who), STR_ARG(host)) : who;
}

void cells_event(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    const struct json *first = either(object, "firstTimestamp", "deprecatedFirstTimestamp");
    const struct json *last = either(object, "lastTimestamp", "deprecatedLastTimestamp");
    const struct json *series = json_get(object, "series");
    const struct json *about = either(object, "involvedObject", "regarding");
    int64_t count = json_int(either(object, "count", "deprecatedCount"), 0);
    if (!json_text(first).n)
        first = json_get(object, "eventTime");
    if (!json_text(last).n)
        last = first;
    if (series) {
        last = json_get(series, "lastObservedTime");
        count = json_int(json_get(series, "count"), count);
    }
    str kind = lower(a, json_text(json_get(about, "kind")));
    str name = json_text(json_get(about, "name"));
    cell_text(a, cells, cell_age(a, last, now_ns));
    cell_text(a, cells, json_text(json_get(object, "type")));
    cell_text(a, cells, json_text(json_get(object, "reason")));
    cell_text(a, cells,
              name.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(kind), STR_ARG(name)) : kind);
    cell_text(a, cells, json_text(json_get(about, "fieldPath")));
    cell_text(a, cells, event_source(a, object));
    cell_text(a, cells, str_trim(json_text(either(object, "message", "note"))));
    cell_text(a, cells, cell_age(a, first, now_ns));
    cell_int(a, cells, MAX(count, 1));
    cell_text(a, cells, name_of(object));
}

/* ---- PersistentVolumeClaim */

static str access_modes(struct arena *a, const struct json *claim)
{
    static const struct {
        const char *mode, *shown;
    } modes[] = { { "ReadWriteOnce", "RWO" },
                  { "ReadOnlyMany", "ROX" },
                  { "ReadWriteMany", "RWX" },
                  { "ReadWriteOncePod", "RWOP" } };
    const struct json *list = json_at(claim, "status", "accessModes", NULL);
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < countof(modes); i++)
        for (uint32_t j = 0; j < json_len(list); j++)
            if (str_eqc(json_text(list->items[j]), modes[i].mode))
                buf_printf(&text, "%s%s", text.n ? "," : "", modes[i].shown);
    return arena_str(a, buf_str(&text));
}

void cells_pvc(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    bool leaving = json_at(object, "metadata", "deletionTimestamp", NULL);
    bool bound = json_text(json_at(object, "spec", "volumeName", NULL)).n > 0;
    cell_text(a, cells, name_of(object));
    cell_text(a, cells,
              leaving ? S("Terminating") : json_text(json_at(object, "status", "phase", NULL)));
    cell_text(a, cells, json_text(json_at(object, "spec", "volumeName", NULL)));
    str capacity = json_text(json_at(object, "status", "capacity", "storage", NULL));
    cell_text(a, cells, !bound ? S("") : capacity.n ? capacity : S("0"));
    cell_text(a, cells, bound ? access_modes(a, object) : S(""));
    cell_text(a, cells, json_text(json_at(object, "spec", "storageClassName", NULL)));
    cell_or(a, cells, json_text(json_at(object, "spec", "volumeAttributesClassName", NULL)),
            "<unset>");
    cell_text(a, cells, age_of(a, object, now_ns));
    cell_or(a, cells, json_text(json_at(object, "spec", "volumeMode", NULL)), "<unset>");
}

/* ---- workloads */

static str of_all(struct arena *a, int64_t part, int64_t all)
{
    return arena_printf(a, "%lld/%lld", (long long)part, (long long)all);
}

void cells_deployment(struct arena *a, const struct json *object, int64_t now_ns,
                      struct json *cells)
{
    int64_t wanted = json_int(json_at(object, "spec", "replicas", NULL), 0);
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, of_all(a, status_int(object, "readyReplicas"), wanted));
    cell_int(a, cells, status_int(object, "updatedReplicas"));
    cell_int(a, cells, status_int(object, "availableReplicas"));
    cell_text(a, cells, age_of(a, object, now_ns));
    cell_template(a, object, cells);
    cell_text(a, cells, selector_text(a, object));
}

void cells_replicaset(struct arena *a, const struct json *object, int64_t now_ns,
                      struct json *cells)
{
    cell_text(a, cells, name_of(object));
    cell_int(a, cells, json_int(json_at(object, "spec", "replicas", NULL), 0));
    cell_int(a, cells, status_int(object, "replicas"));
    cell_int(a, cells, status_int(object, "readyReplicas"));
    cell_text(a, cells, age_of(a, object, now_ns));
    cell_template(a, object, cells);
    cell_text(a, cells, selector_text(a, object));
}

void cells_scale(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    cell_text(a, cells, name_of(object));
    cell_int(a, cells, json_int(json_at(object, "spec", "replicas", NULL), 0));
    cell_int(a, cells, status_int(object, "replicas"));
    cell_text(a, cells, age_of(a, object, now_ns));
}

void cells_statefulset(struct arena *a, const struct json *object, int64_t now_ns,
                       struct json *cells)
{
    int64_t wanted = json_int(json_at(object, "spec", "replicas", NULL), 0);
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, of_all(a, status_int(object, "readyReplicas"), wanted));
    cell_text(a, cells, age_of(a, object, now_ns));
    cell_template(a, object, cells);
}

void cells_daemonset(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    static const char *const counts[] = { "desiredNumberScheduled", "currentNumberScheduled",
                                          "numberReady", "updatedNumberScheduled",
                                          "numberAvailable" };
    cell_text(a, cells, name_of(object));
    for (size_t i = 0; i < countof(counts); i++)
        cell_int(a, cells, status_int(object, counts[i]));
    cell_text(a, cells,
              labels_text(a, json_at(object, "spec", "template", "spec", "nodeSelector", NULL)));
    cell_text(a, cells, age_of(a, object, now_ns));
    cell_template(a, object, cells);
    cell_text(a, cells, selector_text(a, object));
}

static const char *job_status(const struct json *job)
{
    static const char *const last[] = { "Suspended", "FailureTarget", "SuccessCriteriaMet" };
    if (has_condition(job, "Complete"))
        return "Complete";
    if (has_condition(job, "Failed"))
        return "Failed";
    if (json_at(job, "metadata", "deletionTimestamp", NULL))
        return "Terminating";
    for (size_t i = 0; i < countof(last); i++)
        if (has_condition(job, last[i]))
            return last[i];
    return "Running";
}

static str job_duration(struct arena *a, const struct json *job, int64_t now_ns)
{
    const struct json *end = json_at(job, "status", "completionTime", NULL);
    int64_t start_s = 0, end_s = now_ns / 1000000000;
    str start = json_text(json_at(job, "status", "startTime", NULL));
    if (!start.n || rfc3339_parse(start, &start_s, NULL) < 0)
        return S("");
    if (end && rfc3339_parse(json_text(end), &end_s, NULL) < 0)
        return S("");
    return table_age(a, end_s - start_s);
}

void cells_job(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    const struct json *completions = json_at(object, "spec", "completions", NULL);
    int64_t done = status_int(object, "succeeded");
    int64_t parallel = json_int(json_at(object, "spec", "parallelism", NULL), 0);
    cell_text(a, cells, name_of(object));
    cell_text(a, cells, str_c(job_status(object)));
    if (!completions && parallel > 1)
        cell_text(a, cells,
                  arena_printf(a, "%lld/1 of %lld", (long long)done, (long long)parallel));
    else
        cell_text(a, cells, of_all(a, done, json_int(completions, 1)));
    cell_text(a, cells, job_duration(a, object, now_ns));
    cell_text(a, cells, age_of(a, object, now_ns));
    cell_template(a, object, cells);
    cell_text(a, cells, selector_text(a, object));
}
