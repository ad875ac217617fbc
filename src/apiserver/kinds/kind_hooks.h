/* What a built-in kind does beyond its schema: one table of hooks per kind, any of which may be NULL, and
 * the checks that several kinds share. Private to kinds/. */
#ifndef FLYBALL_APISERVER_KIND_HOOKS_H
#define FLYBALL_APISERVER_KIND_HOOKS_H

#include "../../json/seen.h"
#include "kinds.h"

struct kind_hooks {
    /* Checks metadata.name: NULL, or what is wrong. No hook: the name must be a DNS subdomain. */
    const char *(*name)(str name);
    /* Sets defaults that depend on other fields; runs after those of the schema, on every decode. */
    void (*fill)(struct arena *a, struct json *object);
    /* Sets what the server owns; status and generation are already set. May refuse the write. */
    void (*prepare)(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault);
    /* Rules that span fields; runs after metadata and the field-local rules of the schema. */
    void (*validate)(const struct kind_change *c, struct kind_env *env,
                     struct field_errors *errors);
    /* Convert between this version and the stored one, in place. */
    void (*to_storage)(struct arena *a, struct json *object);
    void (*from_storage)(struct arena *a, struct json *object);
    bool status_on_create; /* a create may set the status */
    bool rules_twice;      /* an update reports field-local errors twice, as kube-apiserver does */
    bool metadata_twice;   /* an update reports metadata errors once more, as kube-apiserver does */
};

extern const struct kind_hooks kind_hooks_namespace, kind_hooks_node, kind_hooks_pod,
    kind_hooks_configmap, kind_hooks_secret, kind_hooks_serviceaccount, kind_hooks_service,
    kind_hooks_event, kind_hooks_event_v1, kind_hooks_pvc, kind_hooks_deployment,
    kind_hooks_replicaset, kind_hooks_statefulset, kind_hooks_daemonset, kind_hooks_job,
    kind_hooks_hpa, kind_hooks_hpa_v1, kind_hooks_lease, kind_hooks_crd, kind_hooks_access_review,
    kind_hooks_role, kind_hooks_binding, kind_hooks_policy, kind_hooks_policy_binding,
    kind_hooks_cronjob, kind_hooks_ingress, kind_hooks_networkpolicy, kind_hooks_pv,
    kind_hooks_podtemplate, kind_hooks_rc, kind_hooks_endpointslice, kind_hooks_resourceclaim,
    kind_hooks_resourceslice, kind_hooks_storageclass, kind_hooks_csidriver,
    kind_hooks_csistoragecapacity, kind_hooks_webhooks, kind_hooks_pdb, kind_hooks_quota,
    kind_hooks_limitrange, kind_hooks_priorityclass, kind_hooks_flowschema,
    kind_hooks_prioritylevel, kind_hooks_csr, kind_hooks_apiservice;

/* ---- shared by the kinds */

void kind_fault_set(struct kind_fault *fault, int code, const char *reason, str message);

/* The rules for metadata, which hold for every object. */
void kind_check_metadata(const struct kind_change *c, struct field_errors *errors);

/* Warns about what is accepted but is probably a mistake. */
void kind_warn(const struct kind_change *c, struct kind_env *env);

/* The field-local rules of a built-in type, from its .types table (kind_rules.c); and, for updates, the
 * fields that may not change. */
void kind_check_schema(const struct schema *s, const struct json *value,
                       const struct field_path *at, struct field_errors *errors);
void kind_check_changes(const struct schema_message *m, const struct json *object,
                        const struct json *old, const struct field_path *at,
                        struct field_errors *errors);

/* Qualified names and port names; each broken rule is an error of its own. */
void kind_check_qualified(const struct json *name, const struct field_path *at,
                          struct field_errors *errors);
void kind_check_port_name(const struct json *name, const struct field_path *at,
                          struct field_errors *errors);

void kind_check_labels(const struct json *labels, const struct field_path *at,
                       struct field_errors *errors);
/* A finalizer of a namespace; metadata.finalizers reports other paths. */
void kind_check_finalizer(const struct json *name, const struct field_path *at,
                          struct field_errors *errors);
void kind_check_annotations(const struct json *annotations, const struct field_path *at,
                            struct field_errors *errors);
/* The spec of a PersistentVolumeClaim, by itself or in a StatefulSet. */
void kind_check_claim(const struct json *spec, const struct field_path *at,
                      struct field_errors *errors);
/* A number, or a percentage as text, of at most `percent_max`; NULL is fine. */
void kind_check_count_or_percent(const struct json *value, const struct field_path *at,
                                 int64_t percent_max, struct field_errors *errors);
/* matchLabels and matchExpressions. */
void kind_check_selector(const struct json *selector, const struct field_path *at,
                         struct field_errors *errors);
bool kind_selector_is_valid(const struct json *selector); /* well-formed, so it can be evaluated */
/* The text form, as Scale has it: "app=web,tier in (a,b)". */
str kind_selector_text(struct arena *a, const struct json *selector);

/* Where a webhook is, by URL or service (crd_conversion.c); what it sees, by resource (policy_check.c). */
void kind_check_webhook_url(const struct json *url, const struct field_path *at,
                            struct field_errors *errors);
void kind_check_webhook_service(const struct json *service, const struct field_path *at,
                                struct field_errors *errors);
void kind_check_review_versions(const struct json *versions, const struct field_path *at,
                                const char *if_none, struct field_errors *errors);
void kind_check_admission_rules(const struct json *rules, const struct field_path *up,
                                struct field_errors *errors);

/* Reports "field is immutable" unless both values are equal. */
void kind_check_immutable(const struct json *object, const struct json *old,
                          const struct field_path *at, struct field_errors *errors);

/* Shared by pod.c and pod_resize.c: a 403 about the pod; counts a change of its spec as a generation. */
void kind_pod_refuse(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault,
                     str why);
void kind_pod_set_generation(const struct kind_change *c, struct arena *a);
/* pod_resize.c */
void kind_pod_prepare_resize(const struct kind_change *c, struct kind_env *env,
                             struct kind_fault *fault);
void kind_pod_check_resize(const struct kind_change *c, struct field_errors *errors);
/* pod_status.c */
void kind_check_pod_status(const struct kind_change *c, struct field_errors *errors);
/* job_status.c */
void kind_check_job_status(const struct kind_change *c, struct field_errors *errors);

/* CustomResourceDefinitions (crd.c, crd_check.c, crd_conversion.c) */
void crd_mark_deleting(struct arena *a, struct json *object);
void crd_check(const struct kind_change *c, struct kind_env *env, struct field_errors *errors);
void crd_check_conversion(const struct json *conversion, const struct field_path *at,
                          struct field_errors *errors);

/* ---- PodSpec: defaults and rules, for pods and for pod templates (podspec*.c) */

void podspec_fill(struct arena *a, struct json *spec, bool is_pod);
struct podspec_rules {
    const char *restart_policy; /* the only value allowed; NULL: any */
    bool template;              /* the pod template of a workload */
};
void podspec_check(const struct json *spec, const struct field_path *at, struct podspec_rules rules,
                   struct field_errors *errors);
/* Returns the names of the valid volumes: only those can be mounted. */
struct seen podspec_check_volumes(const struct json *volumes, struct podspec_rules rules,
                                  const struct field_path *up, struct field_errors *errors);
void podspec_check_mounts(const struct json *container, const struct seen *volumes,
                          const struct field_path *up, struct field_errors *errors);
/* env and envFrom of a container. Variables and downward API volumes refer to a field of the pod (one of
 * `allowed`) or to a resource (of a container that the reference must name, for volumes). */
void podspec_check_env(const struct json *container, const struct field_path *at,
                       struct field_errors *errors);
void podspec_check_field_ref(const struct json *ref, const char *const *allowed,
                             const struct field_path *at, struct field_errors *errors);
void podspec_check_resource_ref(const struct json *ref, bool names_container,
                                const struct field_path *at, struct field_errors *errors);
void podspec_check_scheduling(const struct json *spec, const struct field_path *at,
                              struct field_errors *errors);
/* securityContext of a pod or container; host ports, sysctls, namespaces of the host. */
void podspec_check_context(const struct json *context, const struct field_path *at,
                           struct field_errors *errors);
void podspec_check_host(const struct json *spec, const struct field_path *up,
                        struct field_errors *errors);
void podspec_check_resource_name(str name, const struct field_path *at,
                                 struct field_errors *errors);
const char *podspec_qos_class(
    const struct json *spec); /* "Guaranteed", "Burstable", "BestEffort" */

#endif
