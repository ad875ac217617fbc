/* The other kinds that services, templates and caches depend on: KServe, volumes, jobs, pods and nodes. The caches keep
 * only the fields that are used; of volumes and jobs only our own objects. */
#ifndef FLYBALL_SERVICE_WORLD_H
#define FLYBALL_SERVICE_WORLD_H

#include "../json/json.h"
#include "../kube/manager.h"

extern const struct resource aim_resource_inference_services, aim_resource_serving_runtimes,
    aim_resource_cluster_serving_runtimes, aim_resource_claims, aim_resource_jobs,
    aim_resource_storage_classes, aim_resource_role_bindings, aim_resource_pools;

/* An object that we created, or one of KServe's that has the name of one. */
struct aim_child_record {
    struct record meta;
    str labels, annotations, owners, spec, status; /* JSON; "" where absent */
    str owner_kind, owner_name;
    str managed_by;   /* label app.kubernetes.io/managed-by */
    str runtime_name; /* InferenceService: the (Cluster)ServingRuntime that it names */
    int64_t generation;
    bool deleting;
};

struct aim_pod_container {
    str name, waiting, message; /* why it waits; "": it does not */
};

struct aim_predictor_record {
    struct record meta;
    str inference_service; /* label serving.kserve.io/inferenceservice; of a discovery: job-name */
    str phase;
    LIST(struct aim_pod_container) containers, init_containers;
};

struct aim_node_record {
    struct record meta;
    str product, beta_product, family, beta_family, device, beta_device, nvidia; /* GPU labels */
    str memory, beta_memory; /* of a GPU: "192G" */
    str architecture;        /* label kubernetes.io/arch */
};

struct aim_class_record {
    struct record meta;
    str binding_mode;
};

struct aim_namespace_record {
    struct record meta;
    str quota; /* annotation artifact-storage-quota */
};

enum { AIM_CHILD_INDEX_OWNER, AIM_CHILD_INDEX_RUNTIME }; /* of InferenceServices */

struct aim_world {
    struct cache *inference_services, *runtimes, *cluster_runtimes, *claims, *jobs; /* children */
    struct cache *pods, *nodes, *classes;
    struct cache *discovery_pods; /* struct aim_predictor_record, by the name of their Job */
    /* Of artifacts, also those that another operator created: struct aim_child_record; pods by the name of their Job. */
    struct cache *artifact_claims, *artifact_jobs, *artifact_pods;
    struct cache *role_bindings; /* those that let download pods report their progress */
    struct cache *namespaces;    /* struct aim_namespace_record */
    struct cache *pools;         /* InferencePools: struct aim_child_record */
    struct arena gpu_arena;
    struct json *gpus; /* of all nodes, without duplicates; NULL: must be listed again */
};

/* `group` is the domain of labels. */
int aim_world_start(struct aim_world *w, struct manager *m, const char *group, err_t *e);
void aim_world_done(struct aim_world *w); /* the manager owns the caches */

/* The object as a tree, with the fields that the cache keeps; NULL for NULL. */
struct json *aim_child_object(struct arena *a, const struct aim_child_record *r);
/* Does an InferenceService of this namespace ("": of any) name this runtime? */
bool aim_world_names_runtime(const struct aim_world *w, str ns, str runtime);
/* The GPUs of all nodes, for aim_template_has_gpu(). */
const struct json *aim_world_gpus(struct aim_world *w);
/* Which image of several a cluster runs: "amd64" if a node has it, or if the nodes are unknown. */
const char *aim_world_architecture(const struct aim_world *w);
/* Are volumes of this class bound only when a pod uses them? Assumed for an unknown class. */
bool aim_world_binds_late(const struct aim_world *w, str storage_class);

#endif
