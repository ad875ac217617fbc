/* The table of built-in kinds. Discovery, routing, printing and field selectors read it as data; behavior
 * beyond the schema is in the hooks of a kind (kind_hooks.h).
 *
 * To add a kind: declare its types in types/, its columns in table_columns.c, and add an entry here:
 *
 *   { group, version, kind, plural, short names, categories, type in types/,
 *     verbs, subresources, flags, hooks, columns, field selectors, stored version }
 *
 * Short names and categories are separated by blanks. An entry with a stored version is another version of a
 * resource, which converts in its hooks. Kinds are built on first use and live in a static array, so
 * pointers to them can be compared and kept. */
#include "../schema/types.h"
#include "kind_hooks.h"
#include "table_columns.h"

enum {
    STORED = KIND_ALL_VERBS,
    NO_COLLECTION = KIND_ALL_VERBS & ~KIND_DELETECOLLECTION,
};

#define SUB(name) (1u << KIND_##name)

/* Flags of an entry. */
enum {
    CLUSTER = 1,             /* not namespaced */
    GENERATION = 2,          /* metadata.generation counts changes of the spec */
    PUT_CREATES = 4,         /* PUT creates an object that does not exist */
    PUT_NEEDS_RV = 8,        /* PUT requires a resourceVersion */
    DELETE_RETURNS = 16,     /* DELETE returns the object, not a Status */
    ANSWER_ONLY = 32,        /* never stored */
    ORPHANS_BY_DEFAULT = 64, /* DELETE without propagationPolicy orphans dependents */
    OWNS_NOTHING = 128,
};

struct entry {
    const char *group, *version, *kind, *plural, *short_names, *categories, *type;
    unsigned verbs, subresources, flags;
    const struct kind_hooks *hooks;
    const struct table_columns *columns;
    const char
        *selectable;     /* field selectors: label[:path][=value if absent, or =@other path] ... */
    const char *storage; /* group/version that is stored; NULL: this one */
};

static const struct entry entries[] = {
    { "", "v1", "Namespace", "namespaces", "ns", "", "core.v1.Namespace", NO_COLLECTION,
      SUB(STATUS) | SUB(FINALIZE), CLUSTER | DELETE_RETURNS, &kind_hooks_namespace,
      &table_columns_namespace, "status.phase" },
    { "", "v1", "Node", "nodes", "no", "", "core.v1.Node", STORED, SUB(STATUS), CLUSTER,
      &kind_hooks_node, &table_columns_node, "spec.unschedulable=false" },
    { "", "v1", "Pod", "pods", "po", "all", "core.v1.Pod", STORED,
      SUB(STATUS) | SUB(RESIZE) | SUB(EPHEMERAL) | SUB(LOG) | SUB(BINDING) | SUB(EVICTION),
      GENERATION | DELETE_RETURNS, &kind_hooks_pod, &table_columns_pod,
      "spec.nodeName spec.restartPolicy spec.schedulerName spec.serviceAccountName "
      "spec.hostNetwork=false status.phase status.podIP status.podIPs status.nominatedNodeName" },
    { "", "v1", "ConfigMap", "configmaps", "cm", "", "core.v1.ConfigMap", STORED, 0, 0,
      &kind_hooks_configmap, &table_columns_configmap },
    { "", "v1", "Secret", "secrets", "", "", "core.v1.Secret", STORED, 0, 0, &kind_hooks_secret,
      &table_columns_secret, "type" },
    { "", "v1", "ServiceAccount", "serviceaccounts", "sa", "", "core.v1.ServiceAccount", STORED,
      SUB(TOKEN), DELETE_RETURNS, &kind_hooks_serviceaccount, &table_columns_serviceaccount },
    { "", "v1", "Service", "services", "svc", "all", "core.v1.Service", STORED, SUB(STATUS),
      PUT_CREATES | DELETE_RETURNS, &kind_hooks_service, &table_columns_service,
      "spec.clusterIP spec.type" },
    { "", "v1", "Event", "events", "ev", "", "core.v1.Event", STORED, 0, PUT_CREATES | OWNS_NOTHING,
      &kind_hooks_event, &table_columns_event,
      "involvedObject.kind involvedObject.namespace involvedObject.name involvedObject.uid "
      "involvedObject.apiVersion involvedObject.resourceVersion involvedObject.fieldPath reason "
      "reportingComponent source:source.component=@reportingComponent type" },
    { "", "v1", "PersistentVolumeClaim", "persistentvolumeclaims", "pvc", "",
      "core.v1.PersistentVolumeClaim", STORED, SUB(STATUS), DELETE_RETURNS, &kind_hooks_pvc,
      &table_columns_pvc },
    { "", "v1", "Binding", "bindings", "", "", "core.v1.Binding", KIND_CREATE, 0, ANSWER_ONLY, NULL,
      &table_columns_plain },
    { "apps", "v1", "Deployment", "deployments", "deploy", "all", "apps.v1.Deployment", STORED,
      SUB(STATUS) | SUB(SCALE), GENERATION, &kind_hooks_deployment, &table_columns_deployment },
    { "apps", "v1", "ReplicaSet", "replicasets", "rs", "all", "apps.v1.ReplicaSet", STORED,
      SUB(STATUS) | SUB(SCALE), GENERATION, &kind_hooks_replicaset, &table_columns_replicaset },
    { "apps", "v1", "StatefulSet", "statefulsets", "sts", "all", "apps.v1.StatefulSet", STORED,
      SUB(STATUS) | SUB(SCALE), GENERATION, &kind_hooks_statefulset, &table_columns_statefulset },
    { "apps", "v1", "DaemonSet", "daemonsets", "ds", "all", "apps.v1.DaemonSet", STORED,
      SUB(STATUS), GENERATION, &kind_hooks_daemonset, &table_columns_daemonset },
    { "batch", "v1", "Job", "jobs", "", "all", "batch.v1.Job", STORED, SUB(STATUS),
      GENERATION | ORPHANS_BY_DEFAULT, &kind_hooks_job, &table_columns_job,
      "status.successful:status.succeeded=0" },
    { "autoscaling", "v2", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "all",
      "autoscaling.v2.HorizontalPodAutoscaler", STORED, SUB(STATUS), GENERATION, &kind_hooks_hpa,
      &table_columns_hpa },
    { "autoscaling", "v1", "HorizontalPodAutoscaler", "horizontalpodautoscalers", "hpa", "all",
      "autoscaling.v1.HorizontalPodAutoscaler", STORED, SUB(STATUS), GENERATION, &kind_hooks_hpa_v1,
      &table_columns_hpa, NULL, "autoscaling/v2" },
    { "rbac.authorization.k8s.io", "v1", "ClusterRole", "clusterroles", "", "",
      "rbac.v1.ClusterRole", STORED, 0, CLUSTER | PUT_CREATES, &kind_hooks_role,
      &table_columns_role },
    { "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding", "clusterrolebindings", "", "",
      "rbac.v1.ClusterRoleBinding", STORED, 0, CLUSTER | PUT_CREATES, &kind_hooks_binding,
      &table_columns_binding },
    { "rbac.authorization.k8s.io", "v1", "Role", "roles", "", "", "rbac.v1.Role", STORED, 0,
      PUT_CREATES, &kind_hooks_role, &table_columns_role },
    { "rbac.authorization.k8s.io", "v1", "RoleBinding", "rolebindings", "", "",
      "rbac.v1.RoleBinding", STORED, 0, PUT_CREATES, &kind_hooks_binding, &table_columns_binding },
    { "coordination.k8s.io", "v1", "Lease", "leases", "", "", "coordination.v1.Lease", STORED, 0,
      PUT_CREATES | PUT_NEEDS_RV, &kind_hooks_lease, &table_columns_lease },
    { "events.k8s.io", "v1", "Event", "events", "ev", "", "events.v1.Event", STORED, 0,
      PUT_CREATES | OWNS_NOTHING, &kind_hooks_event_v1, &table_columns_event,
      "regarding.kind regarding.namespace regarding.name regarding.uid regarding.apiVersion "
      "regarding.resourceVersion regarding.fieldPath reason reportingController type",
      "/v1" },
    { "apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions",
      "crd crds", "api-extensions", "apiextensions.v1.CustomResourceDefinition", STORED,
      SUB(STATUS), CLUSTER | GENERATION | PUT_NEEDS_RV, &kind_hooks_crd, &table_columns_crd },
    { "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicy",
      "validatingadmissionpolicies", "", "api-extensions",
      "admissionregistration.v1.ValidatingAdmissionPolicy", STORED, SUB(STATUS),
      CLUSTER | GENERATION | PUT_NEEDS_RV, &kind_hooks_policy, &table_columns_policy },
    { "admissionregistration.k8s.io", "v1", "ValidatingAdmissionPolicyBinding",
      "validatingadmissionpolicybindings", "", "api-extensions",
      "admissionregistration.v1.ValidatingAdmissionPolicyBinding", STORED, 0,
      CLUSTER | GENERATION | PUT_NEEDS_RV, &kind_hooks_policy_binding,
      &table_columns_policy_binding },
    { "admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicy", "mutatingadmissionpolicies",
      "", "api-extensions", "admissionregistration.v1.MutatingAdmissionPolicy", STORED, 0,
      CLUSTER | GENERATION | PUT_NEEDS_RV, &kind_hooks_policy, &table_columns_mutating_policy },
    { "admissionregistration.k8s.io", "v1", "MutatingAdmissionPolicyBinding",
      "mutatingadmissionpolicybindings", "", "api-extensions",
      "admissionregistration.v1.MutatingAdmissionPolicyBinding", STORED, 0,
      CLUSTER | GENERATION | PUT_NEEDS_RV, &kind_hooks_policy_binding,
      &table_columns_policy_binding },
    { "admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration",
      "validatingwebhookconfigurations", "", "api-extensions",
      "admissionregistration.v1.ValidatingWebhookConfiguration", STORED, 0,
      CLUSTER | GENERATION | PUT_NEEDS_RV, &kind_hooks_webhooks, &table_columns_webhooks },
    { "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration",
      "mutatingwebhookconfigurations", "", "api-extensions",
      "admissionregistration.v1.MutatingWebhookConfiguration", STORED, 0,
      CLUSTER | GENERATION | PUT_NEEDS_RV, &kind_hooks_webhooks, &table_columns_webhooks },
    { "batch", "v1", "CronJob", "cronjobs", "cj", "all", "batch.v1.CronJob", STORED, SUB(STATUS),
      GENERATION, &kind_hooks_cronjob, &table_columns_cronjob },
    { "networking.k8s.io", "v1", "Ingress", "ingresses", "ing", "", "networking.v1.Ingress", STORED,
      SUB(STATUS), GENERATION, &kind_hooks_ingress, &table_columns_ingress },
    { "networking.k8s.io", "v1", "IngressClass", "ingressclasses", "", "",
      "networking.v1.IngressClass", STORED, 0, CLUSTER | GENERATION, NULL,
      &table_columns_ingressclass },
    { "networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies", "netpol", "",
      "networking.v1.NetworkPolicy", STORED, 0, GENERATION, &kind_hooks_networkpolicy,
      &table_columns_networkpolicy },
    { "", "v1", "PersistentVolume", "persistentvolumes", "pv", "", "core.v1.PersistentVolume",
      STORED, SUB(STATUS), CLUSTER | DELETE_RETURNS, &kind_hooks_pv, &table_columns_pv },
    { "", "v1", "PodTemplate", "podtemplates", "", "", "core.v1.PodTemplate", STORED, 0,
      GENERATION | DELETE_RETURNS, &kind_hooks_podtemplate, &table_columns_podtemplate },
    { "", "v1", "ReplicationController", "replicationcontrollers", "rc", "all",
      "core.v1.ReplicationController", STORED, SUB(STATUS) | SUB(SCALE),
      GENERATION | ORPHANS_BY_DEFAULT, &kind_hooks_rc, &table_columns_rc },
    { "storage.k8s.io", "v1", "StorageClass", "storageclasses", "sc", "", "storage.v1.StorageClass",
      STORED, 0, CLUSTER | DELETE_RETURNS, &kind_hooks_storageclass, &table_columns_storageclass },
    { "storage.k8s.io", "v1", "CSIDriver", "csidrivers", "", "", "storage.v1.CSIDriver", STORED, 0,
      CLUSTER | DELETE_RETURNS | PUT_NEEDS_RV, &kind_hooks_csidriver, &table_columns_csidriver },
    { "storage.k8s.io", "v1", "CSINode", "csinodes", "", "", "storage.v1.CSINode", STORED, 0,
      CLUSTER | DELETE_RETURNS | PUT_NEEDS_RV, NULL, &table_columns_csinode },
    { "storage.k8s.io", "v1", "CSIStorageCapacity", "csistoragecapacities", "", "",
      "storage.v1.CSIStorageCapacity", STORED, 0, PUT_NEEDS_RV, &kind_hooks_csistoragecapacity,
      &table_columns_role },
    { "discovery.k8s.io", "v1", "EndpointSlice", "endpointslices", "", "",
      "discovery.v1.EndpointSlice", STORED, 0, GENERATION, &kind_hooks_endpointslice,
      &table_columns_endpointslice },
    { "apps", "v1", "ControllerRevision", "controllerrevisions", "", "",
      "apps.v1.ControllerRevision", STORED, 0, 0, NULL, &table_columns_revision },
    { "resource.k8s.io", "v1", "ResourceClaim", "resourceclaims", "", "",
      "resource.v1.ResourceClaim", STORED, SUB(STATUS), DELETE_RETURNS, &kind_hooks_resourceclaim,
      &table_columns_resourceclaim },
    { "resource.k8s.io", "v1", "ResourceClaimTemplate", "resourceclaimtemplates", "", "",
      "resource.v1.ResourceClaimTemplate", STORED, 0, DELETE_RETURNS, &kind_hooks_resourceclaim,
      &table_columns_plain },
    { "resource.k8s.io", "v1", "ResourceSlice", "resourceslices", "", "",
      "resource.v1.ResourceSlice", STORED, 0, CLUSTER | GENERATION | DELETE_RETURNS,
      &kind_hooks_resourceslice, &table_columns_resourceslice, "spec.nodeName spec.driver" },
    { "resource.k8s.io", "v1", "DeviceClass", "deviceclasses", "", "", "resource.v1.DeviceClass",
      STORED, 0, CLUSTER | GENERATION | DELETE_RETURNS, NULL, &table_columns_plain },
    { "policy", "v1", "PodDisruptionBudget", "poddisruptionbudgets", "pdb", "",
      "policy.v1.PodDisruptionBudget", STORED, SUB(STATUS), GENERATION | PUT_NEEDS_RV,
      &kind_hooks_pdb, &table_columns_pdb },
    { "", "v1", "ResourceQuota", "resourcequotas", "quota", "", "core.v1.ResourceQuota", STORED,
      SUB(STATUS), DELETE_RETURNS, &kind_hooks_quota, &table_columns_quota },
    { "", "v1", "LimitRange", "limitranges", "limits", "", "core.v1.LimitRange", STORED, 0,
      PUT_CREATES, &kind_hooks_limitrange, &table_columns_role },
    { "", "v1", "Endpoints", "endpoints", "ep", "", "core.v1.Endpoints", STORED, 0, PUT_CREATES,
      NULL, &table_columns_endpoints },
    { "", "v1", "ComponentStatus", "componentstatuses", "cs", "", "core.v1.ComponentStatus",
      KIND_GET | KIND_LIST, 0, CLUSTER, NULL, &table_columns_component },
    { "scheduling.k8s.io", "v1", "PriorityClass", "priorityclasses", "pc", "",
      "scheduling.v1.PriorityClass", STORED, 0, CLUSTER | GENERATION, &kind_hooks_priorityclass,
      &table_columns_priorityclass },
    { "node.k8s.io", "v1", "RuntimeClass", "runtimeclasses", "", "", "node.v1.RuntimeClass", STORED,
      0, CLUSTER | PUT_CREATES | PUT_NEEDS_RV, NULL, &table_columns_runtimeclass },
    { "flowcontrol.apiserver.k8s.io", "v1", "FlowSchema", "flowschemas", "", "",
      "flowcontrol.v1.FlowSchema", STORED, SUB(STATUS), CLUSTER | GENERATION,
      &kind_hooks_flowschema, &table_columns_flowschema },
    { "flowcontrol.apiserver.k8s.io", "v1", "PriorityLevelConfiguration",
      "prioritylevelconfigurations", "", "", "flowcontrol.v1.PriorityLevelConfiguration", STORED,
      SUB(STATUS), CLUSTER | GENERATION, &kind_hooks_prioritylevel, &table_columns_prioritylevel },
    { "certificates.k8s.io", "v1", "CertificateSigningRequest", "certificatesigningrequests", "csr",
      "", "certificates.v1.CertificateSigningRequest", STORED, SUB(STATUS) | SUB(APPROVAL), CLUSTER,
      &kind_hooks_csr, &table_columns_csr, "spec.signerName" },
    { "apiregistration.k8s.io", "v1", "APIService", "apiservices", "", "api-extensions",
      "apiregistration.v1.APIService", STORED, SUB(STATUS), CLUSTER | PUT_NEEDS_RV,
      &kind_hooks_apiservice, &table_columns_apiservice },
    { "networking.k8s.io", "v1", "IPAddress", "ipaddresses", "ip", "", "networking.v1.IPAddress",
      STORED, 0, CLUSTER, NULL, &table_columns_ipaddress },
    { "networking.k8s.io", "v1", "ServiceCIDR", "servicecidrs", "", "", "networking.v1.ServiceCIDR",
      STORED, SUB(STATUS), CLUSTER, NULL, &table_columns_servicecidr },
    { "storage.k8s.io", "v1", "VolumeAttachment", "volumeattachments", "", "",
      "storage.v1.VolumeAttachment", STORED, SUB(STATUS), CLUSTER | DELETE_RETURNS | PUT_NEEDS_RV,
      NULL, &table_columns_volumeattachment },
    { "authentication.k8s.io", "v1", "SelfSubjectReview", "selfsubjectreviews", "", "",
      "authentication.v1.SelfSubjectReview", KIND_CREATE, 0, CLUSTER | ANSWER_ONLY, NULL,
      &table_columns_plain },
    { "authentication.k8s.io", "v1", "TokenReview", "tokenreviews", "", "",
      "authentication.v1.TokenReview", KIND_CREATE, 0, CLUSTER | ANSWER_ONLY, NULL,
      &table_columns_plain },
    { "authorization.k8s.io", "v1", "LocalSubjectAccessReview", "localsubjectaccessreviews", "", "",
      "authorization.v1.LocalSubjectAccessReview", KIND_CREATE, 0, ANSWER_ONLY,
      &kind_hooks_access_review, &table_columns_plain },
    { "authorization.k8s.io", "v1", "SelfSubjectAccessReview", "selfsubjectaccessreviews", "", "",
      "authorization.v1.SelfSubjectAccessReview", KIND_CREATE, 0, CLUSTER | ANSWER_ONLY,
      &kind_hooks_access_review, &table_columns_plain },
    { "authorization.k8s.io", "v1", "SelfSubjectRulesReview", "selfsubjectrulesreviews", "", "",
      "authorization.v1.SelfSubjectRulesReview", KIND_CREATE, 0, CLUSTER | ANSWER_ONLY, NULL,
      &table_columns_plain },
    { "authorization.k8s.io", "v1", "SubjectAccessReview", "subjectaccessreviews", "", "",
      "authorization.v1.SubjectAccessReview", KIND_CREATE, 0, CLUSTER | ANSWER_ONLY,
      &kind_hooks_access_review, &table_columns_plain },
};

const char *const kind_sub_names[KIND_SUB_N] = { [KIND_MAIN] = "",
                                                 [KIND_STATUS] = "status",
                                                 [KIND_SCALE] = "scale",
                                                 [KIND_RESIZE] = "resize",
                                                 [KIND_EPHEMERAL] = "ephemeralcontainers",
                                                 [KIND_APPROVAL] = "approval",
                                                 [KIND_LOG] = "log",
                                                 [KIND_FINALIZE] = "finalize",
                                                 [KIND_BINDING] = "binding",
                                                 [KIND_EVICTION] = "eviction",
                                                 [KIND_TOKEN] = "token" };

static struct {
    struct arena arena;
    struct kind kinds[countof(entries)];
    const struct kind *at[countof(entries)];
    bool loaded;
} builtin;

/* Splits a text at blanks; at most four words. */
static const str *split_words(const char *text, uint32_t *ret_n)
{
    str *words = arena_array(&builtin.arena, 4, sizeof(*words));
    str rest = str_c(text), word;
    *ret_n = 0;
    while (rest.n && str_cut(&rest, ' ', &word)) {
        assert(*ret_n < 4);
        words[(*ret_n)++] = word;
    }
    return words;
}

/* Parses the `selectable` text of an entry. */
static void read_selectable(struct kind *k, const char *text)
{
    struct kind_selectable *fields = arena_array(&builtin.arena, 16, sizeof(*fields));
    str rest = str_c(text), word;
    while (rest.n && str_cut(&rest, ' ', &word)) {
        assert(k->n_selectable < 16);
        struct kind_selectable *f = &fields[k->n_selectable++];
        size_t equals = str_find_char(word, '=');
        if (equals != SIZE_MAX)
            f->value_if_absent = str_from(word, equals + 1);
        word = str_upto(word, equals);
        size_t colon = str_find_char(word, ':');
        f->label = str_upto(word, colon);
        f->path = colon == SIZE_MAX ? f->label : str_from(word, colon + 1);
    }
    k->selectable = fields;
}

/* Makes the columns of a kind from their text. */
static void read_columns(struct kind *k, const char *text)
{
    struct kind_column *columns = arena_array(&builtin.arena, 16, sizeof(*columns));
    str rest = str_c(text), word;
    while (rest.n && str_cut(&rest, '|', &word)) {
        assert(k->n_columns < 16);
        struct kind_column *c = &columns[k->n_columns++];
        c->priority = word.p[0] == '*';
        word = str_from(word, (size_t)c->priority);
        size_t colon = str_find_char(word, ':');
        str type = colon == SIZE_MAX ? S("string") : str_from(word, colon + 1);
        word = str_upto(word, colon);
        c->name = arena_printf(&builtin.arena, STR_FMT, STR_ARG(word)).p;
        c->type = arena_printf(&builtin.arena, STR_FMT, STR_ARG(type)).p;
        c->format = str_eqc(word, "Name") ? "name" : "";
        c->description = "";
    }
    k->columns = columns;
}

/* Turns an entry into a kind. */
static void load_kind(const struct entry *e, struct kind *k)
{
    *k = (struct kind){
        .group = str_c(e->group),
        .version = str_c(e->version),
        .kind = str_c(e->kind),
        .list_kind = arena_printf(&builtin.arena, STR_FMT "List", STR_ARG(str_c(e->kind))),
        .plural = str_c(e->plural),
        .singular = arena_lower(&builtin.arena, str_c(e->kind)),
        .namespaced = !(e->flags & CLUSTER),
        .verbs = e->verbs,
        .subresources = e->subresources,
        .has_generation = e->flags & GENERATION,
        .create_on_update = e->flags & PUT_CREATES,
        .unconditional_update = !(e->flags & PUT_NEEDS_RV),
        .delete_returns_object = e->flags & DELETE_RETURNS,
        .answer_only = e->flags & ANSWER_ONLY,
        .orphans_by_default = e->flags & ORPHANS_BY_DEFAULT,
        .owns_nothing = e->flags & OWNS_NOTHING,
        .schema = types_schema(e->type),
        .storage = k,
        .columns = e->columns->at,
        .n_columns = e->columns->n,
        .cells = e->columns->cells,
        .hooks = e->hooks,
    };
    if (e->subresources & SUB(SCALE)) {
        k->scale_spec_path = S(".spec.replicas");
        k->scale_status_path = S(".status.replicas");
        k->scale_selector_path = S(".spec.selector");
    }
    if (e->columns->columns)
        read_columns(k, e->columns->columns);
    k->short_names = split_words(e->short_names, &k->n_short_names);
    k->categories = split_words(e->categories, &k->n_categories);
    read_selectable(k, e->selectable ? e->selectable : "");
}

/* Builds all kinds, then connects each to its stored version. */
static void load_kinds(void)
{
    if (builtin.loaded)
        return;
    builtin.loaded = true;
    for (size_t i = 0; i < countof(entries); i++) {
        load_kind(&entries[i], &builtin.kinds[i]);
        builtin.at[i] = &builtin.kinds[i];
    }
    for (size_t i = 0; i < countof(entries); i++) {
        if (!entries[i].storage)
            continue;
        size_t slash = str_find_char(str_c(entries[i].storage), '/');
        str group = str_upto(str_c(entries[i].storage), slash);
        str version = str_from(str_c(entries[i].storage), slash + 1);
        builtin.kinds[i].storage = kinds_find(group, version, str_c(entries[i].plural));
        assert(builtin.kinds[i].storage);
    }
}

const struct kind *const *kinds_builtin(size_t *ret_n)
{
    load_kinds();
    *ret_n = countof(entries);
    return builtin.at;
}

/* A linear search: there are few kinds. */
const struct kind *kinds_find(str group, str version, str plural)
{
    load_kinds();
    for (size_t i = 0; i < countof(entries); i++) {
        const struct kind *k = &builtin.kinds[i];
        if (str_eq(k->group, group) && str_eq(k->version, version) && str_eq(k->plural, plural))
            return k;
    }
    return NULL;
}

/* Binding, Eviction and TokenRequest: kinds that exist only as bodies of a POST. */
const struct kind *kind_of_posted_sub(enum kind_sub sub)
{
    static const char *const names[][3] = {
        { "", "Binding", "core.v1.Binding" },
        { "policy", "Eviction", "policy.v1.Eviction" },
        { "authentication.k8s.io", "TokenRequest", "authentication.v1.TokenRequest" },
    };
    static struct kind posted[countof(names)];
    if (sub < KIND_BINDING)
        return NULL;
    size_t i = (size_t)sub - KIND_BINDING;
    struct kind *k = &posted[i];
    if (!k->schema)
        *k = (struct kind){ .group = str_c(names[i][0]),
                            .version = S("v1"),
                            .kind = str_c(names[i][1]),
                            .namespaced = true,
                            .schema = types_schema(names[i][2]),
                            .storage = k,
                            .columns = table_columns_plain.at,
                            .n_columns = table_columns_plain.n,
                            .cells = table_columns_plain.cells };
    return k;
}

const struct kind *kind_of_sub(const struct kind *k, enum kind_sub sub)
{
    const struct kind *posted = kind_of_posted_sub(sub);
    return sub == KIND_SCALE ? kind_scale_kind() : posted ? posted : k;
}

str kind_api_version(struct arena *a, const struct kind *k)
{
    return k->group.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(k->group), STR_ARG(k->version))
                      : arena_str(a, k->version);
}
