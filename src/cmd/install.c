/* flyball install: prints the manifests that run flyball in a cluster, for `kubectl apply -f -`.
 *
 * They are the files of deploy/, embedded in the program. Only the namespaces (flyball-system
 * and flyball-agent) and the image are replaced, in the parsed objects rather than in the text:
 * a namespace also occurs in role bindings and, as part of a service account's name, in
 * admission policies. */
#include "cmd.h"
#include "flags.h"
#include "install_doors.h"
#include "manifests.h"
#include "runtime.h"

#include "../json/yaml.h"

#include <stdio.h>

struct options {
    const char *ns, *agent_ns, *image, *controllers;
    bool crds, namespaces, monitors, policies, calendars;
    struct install_doors doors;
};

static const char usage[] =
    "Usage: flyball install [FLAGS] | kubectl apply --server-side -f -\n\n"
    "Prints the manifests to run flyball in a cluster: custom resource definitions, one role per\n"
    "component, admission policies, the operator's Deployment, the agent's DaemonSet, services and\n"
    "monitors. Does not contact a cluster. To uninstall, pipe the output of the same command to\n"
    "`kubectl delete -f -`.\n\nFlags:\n";

#define AGENT_NAMESPACE "flyball-agent" /* as in the manifests */

/* The configured namespace for the one that a manifest names. */
static str replace_namespace(const struct options *o, const struct json *name)
{
    if (str_eqc(json_text(name), "kube-system"))
        return S("kube-system"); /* the cluster's own */
    return str_c(str_eqc(json_text(name), AGENT_NAMESPACE) ? o->agent_ns : o->ns);
}

/* Sets a namespace that the object names under `key`; one that it does not name stays absent. */
static void replace_member(struct arena *a, const struct options *o, struct json *object,
                           const char *key)
{
    const struct json *name = json_get(object, key);
    if (name)
        json_set_str(a, object, key, replace_namespace(o, name));
}

/* Policies refer to the agent's service account by user name, and to its namespace by the label
 * that every namespace has. */
static void replace_in_policy(struct arena *a, const struct options *o, struct json *object)
{
    const struct json *conditions = json_at(object, "spec", "matchConditions", NULL);
    const str account = S("serviceaccount:" AGENT_NAMESPACE ":");
    for (size_t i = 0; i < json_len(conditions); i++) {
        struct json *one = json_item(conditions, i);
        str text = json_text(json_get(one, "expression"));
        size_t at = str_find(text, account);
        if (at == SIZE_MAX)
            continue;
        str rest = str_from(text, at + account.n);
        json_set_str(a, one, "expression",
                     arena_printf(a, STR_FMT "serviceaccount:%s:" STR_FMT,
                                  STR_ARG(str_upto(text, at)), o->agent_ns, STR_ARG(rest)));
    }
    struct json *labels =
        json_at(object, "spec", "matchConstraints", "namespaceSelector", "matchLabels", NULL);
    if (labels)
        replace_member(a, o, labels, "kubernetes.io/metadata.name");
}

static bool is_namespace(const struct json *o)
{
    return str_eqc(json_text(json_get(o, "kind")), "Namespace");
}

/* Replaces the namespace wherever an object names one: its own, subjects of bindings, policies. */
static void replace_namespaces(struct arena *a, struct json *object, const struct options *o)
{
    struct json *meta = json_get(object, "metadata");
    if (is_namespace(object))
        replace_member(a, o, meta, "name");
    replace_member(a, o, meta, "namespace");
    const struct json *subjects = json_get(object, "subjects");
    for (size_t i = 0; i < json_len(subjects); i++)
        replace_member(a, o, json_item(subjects, i), "namespace");
    replace_in_policy(a, o, object);
}

/* Every container runs the same program; init containers do not exist. */
static void set_image(struct arena *a, struct json *o, str image)
{
    const struct json *containers = json_at(o, "spec", "template", "spec", "containers", NULL);
    for (size_t i = 0; i < json_len(containers); i++)
        json_set_str(a, json_item(containers, i), "image", image);
}

static bool is_monitor(const struct json *o)
{
    return str_starts(json_text(json_get(o, "apiVersion")), S("monitoring.coreos.com/"));
}

static bool is_policy(const struct json *o)
{
    return str_starts(json_text(json_get(o, "apiVersion")), S("admissionregistration.k8s.io/"));
}

/* Is the object of a controller that --controllers leaves out? The names of roles and policies begin with that of their
 * controller; the agent belongs to the market. */
static bool is_left_out(const struct options *o, const struct json *object)
{
    static const struct {
        const char *prefix, *controller;
    } owners[] = {
        { "flyball-schedule", "schedule" },
        { "flyball-saturation", "saturation" },
        { "flyball-market", "market" },
        { "flyball-agent", "market" },
        { "flyball-metrics-auth-agent", "market" },
        { "flyball-runtimeconfig", "runtimeconfig" },
        { "aim-engine-", "runtimeconfig" },
    };
    str name = json_text(json_at(object, "metadata", "name", NULL));
    for (size_t i = 0; i < countof(owners); i++)
        if (str_starts(name, str_c(owners[i].prefix)))
            return !runtime_list_has(o->controllers, owners[i].controller);
    return false;
}

/* Adds to the operator's Deployment what flags enable; its other objects have no containers. */
static void extend_operator(struct arena *a, const struct options *o, struct json *object)
{
    const struct json *containers = json_at(object, "spec", "template", "spec", "containers", NULL);
    struct json *args = json_get(json_item(containers, 0), "args");
    if (args && strcmp(o->controllers, "*") != 0)
        json_push(a, args, json_new_str(a, arena_printf(a, "--controllers=%s", o->controllers)));
    if (o->calendars && args)
        json_push(a, args, json_new_str(a, S("--smarthpa-calendars")));
    install_doors_extend(a, &o->doors, object);
}

/* Appends the documents of a manifest, except those that flags exclude. */
static int put_manifest(struct buf *out, const struct manifest *m, const struct options *o,
                        err_t *e)
{
    auto_arena struct arena a = { 0 };
    struct json *documents;
    int r = manifest_read(m, &a, &documents, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < json_len(documents); i++) {
        struct json *object = json_item(documents, i);
        if ((is_monitor(object) && !o->monitors) || (is_policy(object) && !o->policies) ||
            (is_namespace(object) && !o->namespaces) || is_left_out(o, object))
            continue;
        replace_namespaces(&a, object, o);
        set_image(&a, object, str_c(o->image));
        if (str_eqc(json_text(json_at(object, "metadata", "name", NULL)), "flyball-operator"))
            extend_operator(&a, o, object);
        install_doors_finish(&a, &o->doors, o->ns, object);
        buf_put(out, S("---\n"));
        yaml_write(out, object);
    }
    return 0;
}

/* The manifests of the doors that the flags select, after the Secret that they need. */
static int put_doors(struct buf *out, const struct options *o, err_t *e)
{
    auto_arena struct arena a = { 0 };
    int r = 0;
    if (!o->doors.scaler && !o->doors.external_metrics)
        return 0;
    buf_put(out, S("---\n"));
    yaml_write(out, install_doors_secret(&a, &o->doors, o->ns));
    for (const struct manifest *m = manifests_doors; m->name && r >= 0; m++)
        if (!(strcmp(m->name, "scaler.yaml") == 0 && !o->doors.scaler) &&
            !(strcmp(m->name, "external-metrics.yaml") == 0 && !o->doors.external_metrics))
            r = put_manifest(out, m, o, e);
    return r;
}

/* Definitions come first: a cluster refuses objects of kinds that it does not know yet. */
static int put_all(struct buf *out, const struct options *o, err_t *e)
{
    int r = 0;
    for (const struct manifest *m = manifests_crds; o->crds && m->name && r >= 0; m++)
        r = put_manifest(out, m, o, e);
    for (const struct manifest *m = manifests_install; m->name && r >= 0; m++)
        if (o->calendars || strcmp(m->name, "schedule-calendars.yaml") != 0)
            r = put_manifest(out, m, o, e);
    return r < 0 ? r : put_doors(out, o, e);
}

/* Must be a DNS label. Checked here, because otherwise the API server would reject only a part
 * of the manifests. */
static int check_namespace(const char *flag, const char *ns, err_t *e)
{
    size_t n = strlen(ns);
    bool good = n > 0 && n <= 63 && strspn(ns, "abcdefghijklmnopqrstuvwxyz0123456789-") == n &&
                ns[0] != '-' && ns[n - 1] != '-';
    return good ? 0
                : err_set(e, EINVAL,
                          "--%s is \"%s\", but must be 1 to 63 lower-case letters, digits and "
                          "inner dashes",
                          flag, ns);
}

/* An empty name would be refused only when the pods are created. */
static int check_image(const char *image, err_t *e)
{
    return *image && !strpbrk(image, " \t\n")
               ? 0
               : err_set(e, EINVAL,
                         "--image is \"%s\", but must be an image such as "
                         "registry.example/flyball:" FLYBALL_VERSION,
                         image);
}

/* Pod security is set per namespace: in a common one the operator would be allowed what only the
 * agent needs. */
static int check_namespaces(const struct options *o, err_t *e)
{
    int r = check_namespace("namespace", o->ns, e);
    r = r < 0 ? r : check_namespace("agent-namespace", o->agent_ns, e);
    return r < 0 || strcmp(o->ns, o->agent_ns) != 0
               ? r
               : err_set(e, EINVAL,
                         "--namespace and --agent-namespace are both \"%s\", but must differ: only "
                         "the agent's namespace allows pods to mount host paths",
                         o->ns);
}

/* Prints the manifests only if all of them could be made, so that a pipe to kubectl never applies half of them. */
int cmd_install(int argc, char **argv)
{
    struct options o = { .ns = "flyball-system",
                         .agent_ns = AGENT_NAMESPACE,
                         .image = "flyball:" FLYBALL_VERSION,
                         .controllers = "*",
                         .crds = true,
                         .namespaces = true,
                         .policies = true };
    const struct flag flags[] = {
        { "namespace", "NAME", FLAG_TEXT, &o.ns, "Namespace of the operator" },
        { "agent-namespace", "NAME", FLAG_TEXT, &o.agent_ns, "Namespace of the agent" },
        { "image", "IMAGE", FLAG_TEXT, &o.image,
          "Image of both, built with deploy/image/Containerfile" },
        { "controllers", "LIST", FLAG_TEXT, &o.controllers,
          "Comma-separated controllers to run; * is all, -NAME excludes one. Roles of others are left out" },
        { "crds", NULL, FLAG_BOOL, &o.crds, "Include the custom resource definitions" },
        { "namespaces", NULL, FLAG_BOOL, &o.namespaces,
          "Include both namespaces; set to false if they exist, so that uninstalling keeps them" },
        { "monitors", NULL, FLAG_BOOL, &o.monitors,
          "Include ServiceMonitors, for clusters with the Prometheus operator" },
        { "policies", NULL, FLAG_BOOL, &o.policies,
          "Include admission policies; set to false before Kubernetes 1.30 (then the agent of one node "
          "can write PodAllocations of another)" },
        { "calendars", NULL, FLAG_BOOL, &o.calendars,
          "Let schedules use calendars; the operator may then read the ConfigMaps of all namespaces" },
        { "scaler", NULL, FLAG_BOOL, &o.doors.scaler,
          "Include KEDA's external scaler: Service flyball-scaler on port 9443" },
        { "external-metrics", NULL, FLAG_BOOL, &o.doors.external_metrics,
          "Include the API group external.metrics.k8s.io; a cluster can have one provider of it" },
        { 0 },
    };
    err_t e = { 0 };
    bool help = false;
    auto_buf struct buf out = { 0 };
    auto_arena struct arena a = { 0 };
    int r = flags_parse(flags, argc, argv, &help, NULL, &e);
    if (r >= 0 && help) {
        buf_put(&out, str_c(usage));
        flags_help(&out, flags);
    } else if (r >= 0 && (r = check_namespaces(&o, &e)) >= 0 &&
               (r = check_image(o.image, &e)) >= 0 &&
               (r = runtime_list_check(o.controllers, false, &e)) >= 0 &&
               (r = install_doors_init(&a, o.ns, &o.doors, &e)) >= 0) {
        r = put_all(&out, &o, &e);
    }
    if (r < 0) {
        fprintf(stderr, "flyball install: %s\n", e.text);
        return EXIT_USAGE;
    }
    bool written = fwrite(out.p, 1, out.n, stdout) == out.n && fflush(stdout) == 0;
    if (!written)
        fprintf(stderr, "flyball install: standard output: %s\n", strerror(errno));
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}
