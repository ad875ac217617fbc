/* The probes of flyball check that look at the cluster and at flyball's own workloads.
 *
 * A 404 answers a question ("not installed"); any other failure, usually 403, leaves it unknown. Each probe adds at least
 * one line, so that a report of the same cluster always has the same subjects and a pipeline can look for one of them.
 *
 *      check_installation()   operator, agents, lease        "is it running?"
 *      check_cluster()        version, definitions, resize   "could it run?"
 *                             external metrics, KEDA         "who reads the decisions?"
 *                             other controllers              "who works against it?"
 *
 * Failed means that flyball, or a feature of it, cannot work. What only limits it is a warning: a cluster before 1.33 has
 * no market, and everything else. */
#include "../base/rfc3339.h"
#include "check.h"
#include "manifests.h"

static const char apply_remedy[] = "flyball install | kubectl apply --server-side -f -";

#define add(c, state, subject, remedy, ...)                                                        \
    check_add(c, state, subject, arena_printf(&(c)->x.arena, __VA_ARGS__), str_c(remedy))

static void add_unknown(struct check *c, const char *subject, const err_t *e)
{
    add(c, CHECK_UNKNOWN, subject, "", "%s", e->text);
}

/* A request for a path: NULL, with its reason in `ret_code`, unless it succeeds. */
static const struct json *get_path(struct check *c, const char *path, int *ret_code, err_t *e)
{
    struct json *object = NULL;
    *ret_code = explain_send(&c->x, (struct kube_request){ .verb = KUBE_GET, .path = str_c(path) },
                             &object, e);
    return *ret_code < 0 ? NULL : object;
}

static str condition_of(const struct json *object, const char *type, const char *field)
{
    const struct json *list = json_at(object, "status", "conditions", NULL);
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            return json_text(json_get(json_item(list, i), field));
    return S("");
}

/* ---- flyball's own workloads */

/* Two replicas are the default, of which one leads: a single one that is left works, but nothing takes over from it. */
static void check_operator(struct check *c)
{
    struct json *found;
    err_t e;
    int r =
        explain_get(&c->x, &resource_deployments, str_c(c->ns), S("flyball-operator"), &found, &e);
    if (r == -ENOENT)
        add(c, CHECK_WARNING, "operator", apply_remedy,
            "there is no Deployment flyball-operator in namespace %s", c->ns);
    if (r < 0) {
        if (r != -ENOENT)
            add_unknown(c, "operator", &e);
        return;
    }
    int64_t wanted = json_int(json_at(found, "spec", "replicas", NULL), 1),
            available = json_int(json_at(found, "status", "availableReplicas", NULL), 0);
    c->installed = true;
    add(c,
        !available            ? CHECK_FAILED
        : available >= wanted ? CHECK_OK
                              : CHECK_WARNING,
        "operator",
        available && available >= wanted
            ? ""
            : "kubectl describe pods -A -l app.kubernetes.io/part-of=flyball",
        "%lld of %lld replicas are available", (long long)available, (long long)wanted);
}

/* A node without its agent keeps the CPU limits that it has. Not being scheduled anywhere is no fault: the cluster may
 * have no nodes yet. */
static void check_agents(struct check *c)
{
    int r;
    err_t e;
    str path = arena_printf(&c->x.arena, "/apis/apps/v1/namespaces/%s/daemonsets/flyball-agent",
                            c->agent_ns);
    const struct json *found = get_path(c, path.p, &r, &e);
    if (r == -ENOENT)
        add(c, CHECK_WARNING, "agents", apply_remedy,
            "there is no DaemonSet flyball-agent in namespace %s; the market needs it",
            c->agent_ns);
    else if (r < 0)
        add_unknown(c, "agents", &e);
    if (!found)
        return;
    int64_t wanted = json_int(json_at(found, "status", "desiredNumberScheduled", NULL), 0),
            ready = json_int(json_at(found, "status", "numberReady", NULL), 0);
    add(c, ready >= wanted ? CHECK_OK : CHECK_WARNING, "agents",
        ready >= wanted ? "" : "kubectl describe pods -A -l app.kubernetes.io/part-of=flyball",
        "ready on %lld of %lld nodes", (long long)ready, (long long)wanted);
}

/* A lease that is twice its duration old has no live holder, unless the clocks differ by as much. One renewed in the future
 * was written by a broken clock: the holder may be gone, and no other operator takes it over until then. */
static void check_lease(struct check *c)
{
    struct json *lease;
    int64_t renewed_us;
    err_t e;
    str remedy = arena_printf(&c->x.arena, "kubectl logs -n %s deployment/flyball-operator", c->ns);
    int r = explain_get(&c->x, &resource_leases, str_c(c->ns), S("flyball-operator"), &lease, &e);
    if (r < 0) {
        if (r == -ENOENT)
            add(c, CHECK_FAILED, "leader", remedy.p,
                "there is no lease flyball-operator in namespace %s: no operator leads", c->ns);
        else
            add_unknown(c, "leader", &e);
        return;
    }
    str holder = json_text(json_at(lease, "spec", "holderIdentity", NULL));
    int64_t seconds = json_int(json_at(lease, "spec", "leaseDurationSeconds", NULL), 15);
    bool known = rfc3339_parse_micro(json_text(json_at(lease, "spec", "renewTime", NULL)),
                                     &renewed_us, NULL) == 0;
    int64_t age = known ? c->x.at - renewed_us / 1000000 : INT64_MAX;
    if (holder.n && age <= 2 * seconds && age >= -2 * seconds)
        add(c, CHECK_OK, "leader", "", STR_FMT " leads", STR_ARG(holder));
    else
        add(c, CHECK_FAILED, "leader", remedy.p,
            age < 0 ? "unknown: the clock that renewed the lease is ahead of this one, at " STR_FMT
                    : "no operator leads: the lease was last renewed at " STR_FMT,
            STR_ARG(json_text(json_at(lease, "spec", "renewTime", NULL))));
}

void check_installation(struct check *c)
{
    check_operator(c);
    check_agents(c);
    if (c->installed)
        check_lease(c);
}

/* ---- the cluster */

/* The oldest versions that features depend on: in-place resize is on by default since 1.33, admission policies are served
 * since 1.30. */
bool check_version(struct check *c)
{
    int r;
    err_t e;
    const struct json *version = get_path(c, "/version", &r, &e);
    if (!version) {
        add(c, CHECK_FAILED, "API server", "check the kubeconfig and the network", "%s", e.text);
        return false;
    }
    str text = json_text(json_get(version, "gitVersion")),
        minor = json_text(json_get(version, "minor"));
    long number = strtol(minor.n ? minor.p : "0", NULL, 10); /* "33+" on some clouds */
    if (number >= 33)
        add(c, CHECK_OK, "Kubernetes", "", STR_FMT, STR_ARG(text));
    else
        add(c, CHECK_WARNING, "Kubernetes",
            number >= 30
                ? "upgrade the cluster, or do not use the market"
                : "upgrade the cluster, or use flyball install --policies=false without the market",
            STR_FMT "; the market needs 1.33 or later, the admission policies 1.30", STR_ARG(text));
    return true;
}

/* Why a definition cannot be used; "" if it can. One that exists but is not established, because its names conflict with
 * another, is not served, and one that is being deleted takes all its objects with it. A 404 is an answer; anything else
 * leaves open whether it exists. */
static int find_definition(struct check *c, str name, const char **ret_fault, err_t *e)
{
    struct json *crd;
    int r = explain_get(&c->x, &resource_crds, S(""), name, &crd, e);
    if (r == 0)
        *ret_fault = json_at(crd, "metadata", "deletionTimestamp", NULL) ? " (being deleted)"
                     : str_eqc(condition_of(crd, "Established", "status"), "True")
                         ? ""
                         : " (not established)";
    else
        *ret_fault = " (missing)";
    return r == -ENOENT ? 0 : r;
}

/* Compares with the definitions that `flyball install` prints, by name. */
static void check_definitions(struct check *c)
{
    auto_buf struct buf missing = { 0 };
    size_t n = 0, found = 0;
    int r = 0;
    err_t e = { 0 };
    for (const struct manifest *m = manifests_crds; m->name && r == 0; m++) {
        struct json *documents;
        r = manifest_read(m, &c->x.arena, &documents, &e);
        for (size_t i = 0; r == 0 && i < json_len(documents); i++, n++) {
            str name = json_text(json_at(json_item(documents, i), "metadata", "name", NULL));
            const char *fault;
            r = find_definition(c, name, &fault, &e);
            found += !*fault;
            if (*fault)
                buf_printf(&missing, "%s" STR_FMT "%s", missing.n ? ", " : "", STR_ARG(name),
                           fault);
        }
    }
    if (r < 0)
        add_unknown(c, "definitions", &e);
    else if (found == n)
        add(c, CHECK_OK, "definitions", "", "all %zu are established", n);
    else
        add(c, CHECK_FAILED, "definitions", apply_remedy, "%zu of %zu cannot be used: %s",
            n - found, n, missing.p);
}

/* By discovery, which shows what this server serves whatever its version is. */
static void check_resize(struct check *c)
{
    int r;
    err_t e;
    const struct json *list = json_get(get_path(c, "/api/v1", &r, &e), "resources");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "name")), "pods/resize")) {
            add(c, CHECK_OK, "in-place resize", "", "pods/resize is served");
            return;
        }
    if (r < 0)
        add_unknown(c, "in-place resize", &e);
    else
        add(c, CHECK_WARNING, "in-place resize",
            "upgrade to Kubernetes 1.33 or enable InPlacePodVerticalScaling",
            "pods/resize is not served; the market cannot resize pods");
}

/* HPAs read decisions from this API group. Without it, decisions need KEDA or actuation: Scale. */
static void check_external_metrics(struct check *c)
{
    int r;
    err_t e;
    const struct json *service =
        get_path(c, "/apis/apiregistration.k8s.io/v1/apiservices/v1beta1.external.metrics.k8s.io",
                 &r, &e);
    if (r == -ENOENT)
        add(c, CHECK_WARNING, "external metrics",
            "flyball install --external-metrics, KEDA, or actuation: Scale",
            "no provider: HPAs cannot read decisions");
    else if (r < 0)
        add_unknown(c, "external metrics", &e);
    if (!service)
        return;
    str ns = json_text(json_at(service, "spec", "service", "namespace", NULL)),
        name = json_text(json_at(service, "spec", "service", "name", NULL));
    bool available = str_eqc(condition_of(service, "Available", "status"), "True");
    add(c, available ? CHECK_OK : CHECK_FAILED, "external metrics",
        available ? "" : "check the pods of that service",
        "served by " STR_FMT "/" STR_FMT "%s" STR_FMT, STR_ARG(ns), STR_ARG(name),
        available ? "" : ": ",
        STR_ARG(available ? S("") : condition_of(service, "Available", "message")));
}

/* ---- neighbors */

/* Does this trigger read from flyball? By its address, which contains the name of the Service that `install` creates. */
static bool reads_flyball(const struct json *trigger)
{
    str type = json_text(json_get(trigger, "type"));
    return str_starts(type, S("external")) &&
           str_find(json_text(json_at(trigger, "metadata", "scalerAddress", NULL)), S("flyball")) !=
               SIZE_MAX;
}

/* KEDA's fallback replaces a missing number by a fixed one: an error of flyball, which should hold the replicas, then
 * scales the workload. */
static void check_fallback(struct check *c, const struct json *scaled)
{
    const struct json *triggers = json_at(scaled, "spec", "triggers", NULL);
    bool ours = false;
    for (size_t i = 0; i < json_len(triggers); i++)
        ours |= reads_flyball(json_item(triggers, i));
    if (ours && json_at(scaled, "spec", "fallback", NULL))
        add(c, CHECK_WARNING, "KEDA",
            "remove spec.fallback, so that KEDA keeps the replicas while flyball is away",
            "ScaledObject " STR_FMT "/" STR_FMT " has a fallback of %lld replicas",
            STR_ARG(json_text(json_at(scaled, "metadata", "namespace", NULL))),
            STR_ARG(json_text(json_at(scaled, "metadata", "name", NULL))),
            (long long)json_int(json_at(scaled, "spec", "fallback", "replicas", NULL), 0));
}

static void check_keda(struct check *c)
{
    int r;
    err_t e;
    const struct json *list = get_path(c, "/apis/keda.sh/v1alpha1/scaledobjects", &r, &e);
    if (r == -ENOENT)
        add(c, CHECK_OK, "KEDA", "", "not installed, and not required");
    else if (r < 0)
        add_unknown(c, "KEDA", &e);
    if (!list)
        return;
    const struct json *items = json_get(list, "items");
    add(c, CHECK_OK, "KEDA", "", "installed, %zu ScaledObjects", json_len(items));
    for (size_t i = 0; i < json_len(items); i++)
        check_fallback(c, json_item(items, i));
}

/* The replaced system that an image belongs to; NULL: none. */
static const char *replaced_system(str image)
{
    static const struct {
        const char *part, *system;
    } known[] = {
        { "workload-variant-autoscaler", "Workload-Variant-Autoscaler" },
        { "smart-hpa", "SmartHPA" },
        { "smarthpa", "SmartHPA" },
        { "mbcas", "MBCAS" },
        { "aim-engine", "AIM" },
    };
    for (size_t i = 0; i < countof(known); i++)
        if (str_find(image, str_c(known[i].part)) != SIZE_MAX)
            return known[i].system;
    return NULL;
}

/* A controller that is scaled to zero does no harm. Unknown counts as a rival, since "none" would be a guess. */
static size_t add_rivals(struct check *c, const struct resource *resource)
{
    struct json *list = NULL;
    err_t e;
    size_t n = 0;
    int r = explain_list(&c->x, resource, S(""), &list, &e);
    const struct json *items = json_get(list, "items");
    if (r < 0)
        add_unknown(c, "other controllers", &e);
    for (size_t i = 0; i < json_len(items); i++) {
        const struct json *one = json_item(items, i),
                          *containers =
                              json_at(one, "spec", "template", "spec", "containers", NULL);
        const char *system = NULL;
        for (size_t k = 0; k < json_len(containers) && !system; k++)
            system = replaced_system(json_text(json_get(json_item(containers, k), "image")));
        if (!system || json_int(json_at(one, "spec", "replicas", NULL), 1) == 0)
            continue;
        n++;
        add(c, CHECK_FAILED, "other controllers",
            "scale it to zero or delete it: both would write the same objects",
            "%s runs: %s " STR_FMT "/" STR_FMT, system, resource->kind,
            STR_ARG(json_text(json_at(one, "metadata", "namespace", NULL))),
            STR_ARG(json_text(json_at(one, "metadata", "name", NULL))));
    }
    return r < 0 ? 1 : n;
}

/* The definition refuses credentials in a cluster configuration; those that were stored before are ignored, so that pods
 * which rely on them cannot pull their images. */
static void check_credentials(struct check *c)
{
    auto_buf struct buf names = { 0 };
    int r;
    err_t e;
    const struct json *list =
        json_get(get_path(c, "/apis/aim.silogen.ai/v1alpha1/aimclusterruntimeconfigs", &r, &e),
                 "items");
    /* without the definition there is nothing to check: check_definitions() reports it */
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *one = json_item(list, i), *spec = json_get(one, "spec");
        if (json_get(spec, "imagePullSecrets") || json_get(spec, "serviceAccountName"))
            buf_printf(&names, "%s" STR_FMT, names.n ? ", " : "",
                       STR_ARG(json_text(json_at(one, "metadata", "name", NULL))));
    }
    if (r < 0 && r != -ENOENT)
        add_unknown(c, "credentials", &e);
    else if (names.n)
        add(c, CHECK_FAILED, "credentials", "move them to an AIMRuntimeConfig",
            "ignored in cluster configurations, which every namespace uses: %s", names.p);
    else
        add(c, CHECK_OK, "credentials", "", "none in cluster configurations");
}

void check_cluster(struct check *c)
{
    static const struct resource daemonsets = { "apps", "v1", "daemonsets", "DaemonSet", true };
    check_definitions(c);
    check_credentials(c);
    check_resize(c);
    check_external_metrics(c);
    check_keda(c);
    size_t rivals = add_rivals(c, &resource_deployments);
    rivals += add_rivals(c, &daemonsets);
    if (!rivals)
        add(c, CHECK_OK, "other controllers", "", "none of the replaced systems runs");
}
