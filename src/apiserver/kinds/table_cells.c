/* The cells of built-in kinds.
 *
 * Each function appends one cell per column, in the order of table_columns.c; a mismatch shifts the columns of
 * kubectl, so table_test.c compares the numbers. Cells are text or integers, as the type of the column states.
 * A missing value has a placeholder that scripts rely on: "<none>" for nothing, "<unknown>" for a value that
 * is not known yet, "<pending>" for an address to come, "<unset>" for a default. They are quoted: kubectl.
 * Pods are in table_pod.c, autoscalers in table_hpa.c. */
#include "kind_hooks.h"
#include "table.h"
#include "table_columns.h"

#include "../../base/rfc3339.h"

void table_cell_text(struct arena *a, struct json *cells, str text)
{
    json_push(a, cells, json_new_str(a, text));
}

void table_cell_text_or(struct arena *a, struct json *cells, str text, const char *otherwise)
{
    table_cell_text(a, cells, text.n ? text : str_c(otherwise));
}

void table_cell_int(struct arena *a, struct json *cells, int64_t value)
{
    json_push(a, cells, json_new_int(a, value));
}

str table_cell_age(struct arena *a, const struct json *instant, int64_t now_ns)
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
    return table_cell_age(a, json_at(object, "metadata", "creationTimestamp", NULL), now_ns);
}

static int64_t status_int(const struct json *object, const char *key)
{
    return json_int(json_at(object, "status", key, NULL), 0);
}

/* Joins the texts at `key` of every item (NULL: the items themselves) with commas. */
static str join_texts(struct arena *a, const struct json *list, const char *key)
{
    auto_buf struct buf text = { 0 };
    for (uint32_t i = 0; i < json_len(list); i++) {
        if (i)
            buf_putc(&text, ',');
        buf_put(&text, json_text(key ? json_get(list->items[i], key) : list->items[i]));
    }
    return arena_str(a, buf_str(&text));
}

/* Labels in the form of a selector; "<none>" if there are none. */
static str labels_text(struct arena *a, const struct json *labels)
{
    struct json selector = { .type = JSON_OBJ };
    struct json_member member = { S("matchLabels"), (struct json *)labels };
    selector.members = &member, selector.n = 1;
    str text = kind_selector_text(a, labels ? &selector : NULL);
    return text.n ? text : S("<none>");
}

/* The selector of a workload; "<none>" if it is empty. */
static str selector_text(struct arena *a, const struct json *object)
{
    str text = kind_selector_text(a, json_at(object, "spec", "selector", NULL));
    return text.n ? text : S("<none>");
}

/* Names and images of the containers, for -o wide. */
static void add_template_cells(struct arena *a, const struct json *object, struct json *cells)
{
    const struct json *containers = json_at(object, "spec", "template", "spec", "containers", NULL);
    table_cell_text(a, cells, join_texts(a, containers, "name"));
    table_cell_text(a, cells, join_texts(a, containers, "image"));
}

/* True if the condition has the status True. */
static bool has_condition(const struct json *object, const char *type)
{
    const struct json *conditions = json_at(object, "status", "conditions", NULL);
    for (uint32_t i = 0; i < json_len(conditions); i++)
        if (str_eqc(json_text(json_get(conditions->items[i], "type")), type))
            return str_eqc(json_text(json_get(conditions->items[i], "status")), "True");
    return false;
}

/* ---- small kinds */

void table_cells_plain(struct arena *a, const struct json *object, int64_t now_ns,
                       struct json *cells)
{
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, age_of(a, object, now_ns));
}

void table_cells_namespace(struct arena *a, const struct json *object, int64_t now_ns,
                           struct json *cells)
{
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, json_text(json_at(object, "status", "phase", NULL)));
    table_cell_text(a, cells, age_of(a, object, now_ns));
}

/* The number of entries: of a ConfigMap, or of the webhooks in a configuration. */
void table_cells_configmap(struct arena *a, const struct json *object, int64_t now_ns,
                           struct json *cells)
{
    size_t n = json_len(json_get(object, "data")) + json_len(json_get(object, "binaryData")) +
               json_len(json_get(object, "webhooks"));
    table_cell_text(a, cells, name_of(object));
    table_cell_int(a, cells, (int64_t)n);
    table_cell_text(a, cells, age_of(a, object, now_ns));
}

void table_cells_secret(struct arena *a, const struct json *object, int64_t now_ns,
                        struct json *cells)
{
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, json_text(json_get(object, "type")));
    table_cell_int(a, cells, (int64_t)json_len(json_get(object, "data")));
    table_cell_text(a, cells, age_of(a, object, now_ns));
}

void table_cells_lease(struct arena *a, const struct json *object, int64_t now_ns,
                       struct json *cells)
{
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, json_text(json_at(object, "spec", "holderIdentity", NULL)));
    table_cell_text(a, cells, age_of(a, object, now_ns));
}

void table_cells_role(struct arena *a, const struct json *object, int64_t now_ns UNUSED,
                      struct json *cells)
{
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, json_text(json_at(object, "metadata", "creationTimestamp", NULL)));
}

/* Subjects of one kind, with the namespace of service accounts. */
static str format_subjects(struct arena *a, const struct json *binding, const char *kind)
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

/* Subjects are shown with -o wide, by kind. */
void table_cells_binding(struct arena *a, const struct json *object, int64_t now_ns,
                         struct json *cells)
{
    const struct json *role = json_get(object, "roleRef");
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells,
                    arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(json_text(json_get(role, "kind"))),
                                 STR_ARG(json_text(json_get(role, "name")))));
    table_cell_text(a, cells, age_of(a, object, now_ns));
    table_cell_text(a, cells, format_subjects(a, object, "User"));
    table_cell_text(a, cells, format_subjects(a, object, "Group"));
    table_cell_text(a, cells, format_subjects(a, object, "ServiceAccount"));
}

/* Served versions, with "(storage)" behind the stored one. */
static str format_crd_versions(struct arena *a, const struct json *crd)
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

void table_cells_crd(struct arena *a, const struct json *object, int64_t now_ns UNUSED,
                     struct json *cells)
{
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, json_text(json_at(object, "spec", "scope", NULL)));
    table_cell_text(a, cells, format_crd_versions(a, object));
    table_cell_text(a, cells, json_text(json_at(object, "metadata", "creationTimestamp", NULL)));
}

/* ---- Node */

/* Joins the distinct texts, sorted, with commas. Quadratic, for lists of a few. */
static str join_sorted(struct arena *a, const struct json *words)
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

/* From the labels node-role.kubernetes.io/ROLE and kubernetes.io/role. */
static str format_node_roles(struct arena *a, const struct json *node)
{
    static const char prefix[] = "node-role.kubernetes.io/";
    struct json *roles = json_new_arr(a);
    json_each(m, json_at(node, "metadata", "labels", NULL)) {
        if (str_starts(m->key, str_c(prefix)))
            json_push(a, roles, json_new_str(a, str_from(m->key, strlen(prefix))));
        else if (str_eqc(m->key, "kubernetes.io/role"))
            json_push(a, roles, m->value);
    }
    return join_sorted(a, roles);
}

static str get_node_address(const struct json *node, const char *type)
{
    const struct json *addresses = json_at(node, "status", "addresses", NULL);
    for (uint32_t i = 0; i < json_len(addresses); i++)
        if (str_eqc(json_text(json_get(addresses->items[i], "type")), type))
            return json_text(json_get(addresses->items[i], "address"));
    return S("");
}

/* Ready, NotReady or Unknown, and whether pods can be scheduled. */
static str format_node_status(struct arena *a, const struct json *node)
{
    const struct json *conditions = json_at(node, "status", "conditions", NULL);
    const char *ready = "Unknown";
    for (uint32_t i = 0; i < json_len(conditions); i++)
        if (str_eqc(json_text(json_get(conditions->items[i], "type")), "Ready"))
            ready = has_condition(node, "Ready") ? "Ready" : "NotReady";
    bool closed = json_bool(json_at(node, "spec", "unschedulable", NULL), false);
    return arena_printf(a, "%s%s", ready, closed ? ",SchedulingDisabled" : "");
}

/* The cells after the version are shown with -o wide. */
void table_cells_node(struct arena *a, const struct json *object, int64_t now_ns,
                      struct json *cells)
{
    const struct json *info = json_at(object, "status", "nodeInfo", NULL);
    str kernel = json_text(json_get(info, "kernelVersion"));
    str architecture = json_text(json_get(info, "architecture"));
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, format_node_status(a, object));
    table_cell_text_or(a, cells, format_node_roles(a, object), "<none>");
    table_cell_text(a, cells, age_of(a, object, now_ns));
    table_cell_text(a, cells, json_text(json_get(info, "kubeletVersion")));
    table_cell_text_or(a, cells, get_node_address(object, "InternalIP"), "<none>");
    table_cell_text_or(a, cells, get_node_address(object, "ExternalIP"), "<none>");
    table_cell_text_or(a, cells, json_text(json_get(info, "osImage")), "<unknown>");
    if (!kernel.n)
        kernel = S("<unknown>");
    table_cell_text(a, cells,
                    architecture.n ? arena_printf(a, STR_FMT " (" STR_FMT ")", STR_ARG(kernel),
                                                  STR_ARG(architecture))
                                   : kernel);
    table_cell_text_or(a, cells, json_text(json_get(info, "containerRuntimeVersion")), "<unknown>");
}

/* ---- Service */

/* "80:30080/TCP" with a node port, else "80/TCP". */
static str format_service_ports(struct arena *a, const struct json *service)
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

/* The addresses of the load balancer, then externalIPs; "<pending>" until there is one. */
static str format_external_addresses(struct arena *a, const struct json *service)
{
    str type = json_text(json_at(service, "spec", "type", NULL));
    str outside = join_texts(a, json_at(service, "spec", "externalIPs", NULL), NULL);
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
    str inside = join_sorted(a, addresses);
    str all = arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(inside),
                           inside.n && outside.n ? "," : "", STR_ARG(outside));
    return all.n ? all : S("<pending>");
}

void table_cells_service(struct arena *a, const struct json *object, int64_t now_ns,
                         struct json *cells)
{
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, json_text(json_at(object, "spec", "type", NULL)));
    table_cell_text_or(a, cells, json_text(json_at(object, "spec", "clusterIP", NULL)), "<none>");
    table_cell_text(a, cells, format_external_addresses(a, object));
    table_cell_text(a, cells, format_service_ports(a, object));
    table_cell_text(a, cells, age_of(a, object, now_ns));
    table_cell_text(a, cells, labels_text(a, json_at(object, "spec", "selector", NULL)));
}

/* ---- Event, of either version */

/* A field of an event, by its name in either version. */
static const struct json *get_either(const struct json *object, const char *core, const char *other)
{
    const struct json *value = json_get(object, core);
    return value ? value : json_get(object, other);
}

/* Component and host, from the older or the newer fields. */
static str format_event_source(struct arena *a, const struct json *event)
{
    const struct json *source = get_either(event, "source", "deprecatedSource");
    str who = json_text(json_get(source, "component")), host = json_text(json_get(source, "host"));
    if (!who.n) {
        who = json_text(get_either(event, "reportingComponent", "reportingController"));
        host = json_text(json_get(event, "reportingInstance"));
    }
    return host.n ? arena_printf(a, STR_FMT ", " STR_FMT, STR_ARG(who), STR_ARG(host)) : who;
}

/* Both versions: the newer one calls the same fields by other names. A series replaces the last
 * time and the count. */
void table_cells_event(struct arena *a, const struct json *object, int64_t now_ns,
                       struct json *cells)
{
    const struct json *first = get_either(object, "firstTimestamp", "deprecatedFirstTimestamp");
    const struct json *last = get_either(object, "lastTimestamp", "deprecatedLastTimestamp");
    const struct json *series = json_get(object, "series");
    const struct json *about = get_either(object, "involvedObject", "regarding");
    int64_t count = json_int(get_either(object, "count", "deprecatedCount"), 0);
    if (!json_text(first).n)
        first = json_get(object, "eventTime");
    if (!json_text(last).n)
        last = first;
    if (series) {
        last = json_get(series, "lastObservedTime");
        count = json_int(json_get(series, "count"), count);
    }
    str kind = arena_lower(a, json_text(json_get(about, "kind")));
    str name = json_text(json_get(about, "name"));
    table_cell_text(a, cells, table_cell_age(a, last, now_ns));
    table_cell_text(a, cells, json_text(json_get(object, "type")));
    table_cell_text(a, cells, json_text(json_get(object, "reason")));
    table_cell_text(a, cells,
                    name.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(kind), STR_ARG(name))
                           : kind);
    table_cell_text(a, cells, json_text(json_get(about, "fieldPath")));
    table_cell_text(a, cells, format_event_source(a, object));
    table_cell_text(a, cells, str_trim(json_text(get_either(object, "message", "note"))));
    table_cell_text(a, cells, table_cell_age(a, first, now_ns));
    table_cell_int(a, cells, MAX(count, 1));
    table_cell_text(a, cells, name_of(object));
}

/* ---- PersistentVolumeClaim */

/* RWO, ROX, RWX and RWOP, in this order. */
str table_access_modes(struct arena *a, const struct json *list)
{
    static const struct {
        const char *mode, *shown;
    } modes[] = { { "ReadWriteOnce", "RWO" },
                  { "ReadOnlyMany", "ROX" },
                  { "ReadWriteMany", "RWX" },
                  { "ReadWriteOncePod", "RWOP" } };
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < countof(modes); i++)
        for (uint32_t j = 0; j < json_len(list); j++)
            if (str_eqc(json_text(list->items[j]), modes[i].mode))
                buf_printf(&text, "%s%s", text.n ? "," : "", modes[i].shown);
    return arena_str(a, buf_str(&text));
}

/* Capacity and modes are shown only for a bound claim. */
void table_cells_pvc(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    bool terminating = json_at(object, "metadata", "deletionTimestamp", NULL);
    bool bound = json_text(json_at(object, "spec", "volumeName", NULL)).n > 0;
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells,
                    terminating ? S("Terminating")
                                : json_text(json_at(object, "status", "phase", NULL)));
    table_cell_text(a, cells, json_text(json_at(object, "spec", "volumeName", NULL)));
    str capacity = json_text(json_at(object, "status", "capacity", "storage", NULL));
    table_cell_text(a, cells, !bound ? S("") : capacity.n ? capacity : S("0"));
    table_cell_text(a, cells,
                    bound ? table_access_modes(a, json_at(object, "status", "accessModes", NULL))
                          : S(""));
    table_cell_text(a, cells, json_text(json_at(object, "spec", "storageClassName", NULL)));
    table_cell_text_or(a, cells,
                       json_text(json_at(object, "spec", "volumeAttributesClassName", NULL)),
                       "<unset>");
    table_cell_text(a, cells, age_of(a, object, now_ns));
    table_cell_text_or(a, cells, json_text(json_at(object, "spec", "volumeMode", NULL)), "<unset>");
}

/* ---- workloads */

static str format_ratio(struct arena *a, int64_t part, int64_t all)
{
    return arena_printf(a, "%lld/%lld", (long long)part, (long long)all);
}

/* Ready pods are shown out of the desired ones. */
void table_cells_deployment(struct arena *a, const struct json *object, int64_t now_ns,
                            struct json *cells)
{
    int64_t wanted = json_int(json_at(object, "spec", "replicas", NULL), 0);
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, format_ratio(a, status_int(object, "readyReplicas"), wanted));
    table_cell_int(a, cells, status_int(object, "updatedReplicas"));
    table_cell_int(a, cells, status_int(object, "availableReplicas"));
    table_cell_text(a, cells, age_of(a, object, now_ns));
    add_template_cells(a, object, cells);
    table_cell_text(a, cells, selector_text(a, object));
}

void table_cells_replicaset(struct arena *a, const struct json *object, int64_t now_ns,
                            struct json *cells)
{
    table_cell_text(a, cells, name_of(object));
    table_cell_int(a, cells, json_int(json_at(object, "spec", "replicas", NULL), 0));
    table_cell_int(a, cells, status_int(object, "replicas"));
    table_cell_int(a, cells, status_int(object, "readyReplicas"));
    table_cell_text(a, cells, age_of(a, object, now_ns));
    add_template_cells(a, object, cells);
    table_cell_text(a, cells, selector_text(a, object));
}

void table_cells_scale(struct arena *a, const struct json *object, int64_t now_ns,
                       struct json *cells)
{
    table_cell_text(a, cells, name_of(object));
    table_cell_int(a, cells, json_int(json_at(object, "spec", "replicas", NULL), 0));
    table_cell_int(a, cells, status_int(object, "replicas"));
    table_cell_text(a, cells, age_of(a, object, now_ns));
}

void table_cells_statefulset(struct arena *a, const struct json *object, int64_t now_ns,
                             struct json *cells)
{
    int64_t wanted = json_int(json_at(object, "spec", "replicas", NULL), 0);
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, format_ratio(a, status_int(object, "readyReplicas"), wanted));
    table_cell_text(a, cells, age_of(a, object, now_ns));
    add_template_cells(a, object, cells);
}

/* Counts of nodes, not of pods. */
void table_cells_daemonset(struct arena *a, const struct json *object, int64_t now_ns,
                           struct json *cells)
{
    static const char *const counts[] = { "desiredNumberScheduled", "currentNumberScheduled",
                                          "numberReady", "updatedNumberScheduled",
                                          "numberAvailable" };
    table_cell_text(a, cells, name_of(object));
    for (size_t i = 0; i < countof(counts); i++)
        table_cell_int(a, cells, status_int(object, counts[i]));
    table_cell_text(a, cells,
                    labels_text(a,
                                json_at(object, "spec", "template", "spec", "nodeSelector", NULL)));
    table_cell_text(a, cells, age_of(a, object, now_ns));
    add_template_cells(a, object, cells);
    table_cell_text(a, cells, selector_text(a, object));
}

/* The first condition that applies, in kubectl's order. */
static const char *get_job_status(const struct json *job)
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

/* From start to completion, or until now; empty before the start. */
static str format_job_duration(struct arena *a, const struct json *job, int64_t now_ns)
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

/* A work queue (no completions, several pods at a time) shows "1/1 of 3". */
void table_cells_job(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells)
{
    const struct json *completions = json_at(object, "spec", "completions", NULL);
    int64_t done = status_int(object, "succeeded");
    int64_t parallel = json_int(json_at(object, "spec", "parallelism", NULL), 0);
    table_cell_text(a, cells, name_of(object));
    table_cell_text(a, cells, str_c(get_job_status(object)));
    if (!completions && parallel > 1)
        table_cell_text(a, cells,
                        arena_printf(a, "%lld/1 of %lld", (long long)done, (long long)parallel));
    else
        table_cell_text(a, cells, format_ratio(a, done, json_int(completions, 1)));
    table_cell_text(a, cells, format_job_duration(a, object, now_ns));
    table_cell_text(a, cells, age_of(a, object, now_ns));
    add_template_cells(a, object, cells);
    table_cell_text(a, cells, selector_text(a, object));
}
