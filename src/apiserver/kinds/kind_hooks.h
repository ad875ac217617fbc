/* What a built-in kind does beyond its schema. One table a kind; every entry may be NULL. */
#ifndef FLYBALL_APISERVER_KIND_HOOKS_H
#define FLYBALL_APISERVER_KIND_HOOKS_H

#include "../../json/seen.h"
#include "kinds.h"

struct kind_hooks {
    /* What is wrong with metadata.name, NULL when nothing is; absent: must be a DNS subdomain. */
    const char *(*name)(str name);
    /* Defaults that depend on other fields; runs after those of the schema, on every decode. */
    void (*fill)(struct arena *a, struct json *object);
    /* Runs after status and generation are settled. */
    void (*prepare)(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault);
    /* Runs after names, labels and the limits of the schema. */
    void (*validate)(const struct kind_change *c, struct kind_env *env,
                     struct field_errors *errors);
    /* Between this version and the one stored; in place. */
    void (*to_storage)(struct arena *a, struct json *object);
    void (*from_storage)(struct arena *a, struct json *object);
    bool status_on_create; /* the status given at creation is kept */
    bool metadata_twice;   /* an update is told about faulty labels and the like twice */
};

extern const struct kind_hooks hooks_namespace, hooks_node, hooks_pod, hooks_configmap,
    hooks_secret, hooks_serviceaccount, hooks_service, hooks_event, hooks_event_v1, hooks_pvc,
    hooks_deployment, hooks_replicaset, hooks_statefulset, hooks_daemonset, hooks_job, hooks_hpa,
    hooks_hpa_v1, hooks_lease, hooks_crd, hooks_access_review, hooks_role, hooks_binding;

/* ---- shared by the kinds */

void kind_fault_set(struct kind_fault *fault, int code, const char *reason, str message);

/* The rules of metadata for every object; `old` NULL: a create. */
void kind_check_metadata(const struct kind_change *c, struct field_errors *errors);

/* What is accepted but hardly meant so. */
void kind_warn(const struct kind_change *c, struct kind_env *env);

/* needed, enum, min and max of the schema of a built-in type. */
void kind_check_schema(const struct schema *s, const struct json *value,
                       const struct field_path *at, struct field_errors *errors);

/* Keys of labels and the like, and names of ports: every rule that is broken is told. */
void kind_check_qualified(const struct json *name, const struct field_path *at,
                          struct field_errors *errors);
void kind_check_port_name(const struct json *name, const struct field_path *at,
                          struct field_errors *errors);

void kind_check_labels(const struct json *labels, const struct field_path *at,
                       struct field_errors *errors);
/* Of a namespace; those of metadata name their place otherwise. */
void kind_check_finalizer(const struct json *name, const struct field_path *at,
                          struct field_errors *errors);
void kind_check_annotations(const struct json *annotations, const struct field_path *at,
                            struct field_errors *errors);
/* The spec of a claim, alone or in a stateful set. */
void kind_check_claim(const struct json *spec, const struct field_path *at,
                      struct field_errors *errors);
/* matchLabels and matchExpressions. */
void kind_check_selector(const struct json *selector, const struct field_path *at,
                         struct field_errors *errors);
bool kind_selector_matches(const struct json *selector, const struct json *labels);
bool kind_selector_empty(const struct json *selector);
bool kind_selector_readable(const struct json *selector); /* can be asked whether it matches */
/* "app=web,tier in (a,b)": the text of a selector, as Scale shows it. */
str kind_selector_text(struct arena *a, const struct json *selector);

/* "must not change": Invalid unless both are equal. */
void kind_check_immutable(const struct json *object, const struct json *old,
                          const struct field_path *at, struct field_errors *errors);

/* of a pod (pod_status.c) */
void pod_check_status(const struct kind_change *c, struct field_errors *errors);
/* of a job (job_status.c) */
void job_check_status(const struct kind_change *c, struct field_errors *errors);

/* definitions of custom resources (crd.c, crd_check.c) */
void crd_mark_deleting(struct arena *a, struct json *object);
void crd_check(const struct kind_change *c, struct kind_env *env, struct field_errors *errors);
void crd_check_conversion(const struct json *conversion, const struct field_path *at,
                          struct field_errors *errors);

/* pods and templates: defaults and rules of a PodSpec (podspec.c, podspec_check.c) */
void podspec_fill(struct arena *a, struct json *spec, bool is_pod);
struct podspec_rules {
    const char *restart_policy; /* the only one allowed; NULL: any */
    bool template;              /* of a workload */
};
void podspec_check(const struct json *spec, const struct field_path *at, struct podspec_rules rules,
                   struct field_errors *errors);
/* Answers the volumes that are in order: only those can be mounted. */
/* The names of the volumes that are alright. */
struct seen podspec_check_volumes(const struct json *volumes, struct podspec_rules rules,
                                  const struct field_path *up, struct field_errors *errors);
void podspec_check_mounts(const struct json *container, const struct seen *volumes,
                          const struct field_path *up, struct field_errors *errors);
/* env and envFrom of a container; what they and volumes tell of the pod: a field of those allowed, a
 * resource (of a container that must be named?). */
void podspec_check_env(const struct json *container, const struct field_path *at,
                       struct field_errors *errors);
void podspec_check_field_ref(const struct json *ref, const char *const *allowed,
                             const struct field_path *at, struct field_errors *errors);
void podspec_check_resource_ref(const struct json *ref, bool names_container,
                                const struct field_path *at, struct field_errors *errors);
void podspec_check_place(const struct json *spec, const struct field_path *at,
                         struct field_errors *errors);
/* securityContext of a pod or a container; what it takes of the host. */
void podspec_check_context(const struct json *context, const struct field_path *at,
                           struct field_errors *errors);
void podspec_check_host(const struct json *spec, const struct field_path *up,
                        struct field_errors *errors);
void podspec_check_resource_name(str name, const struct field_path *at,
                                 struct field_errors *errors);
void podspec_check_resources(const struct json *resources, const struct field_path *at,
                             struct field_errors *errors);
const char *podspec_qos(const struct json *spec); /* "Guaranteed", "Burstable", "BestEffort" */

#endif
