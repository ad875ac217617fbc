/* The other kinds that services, templates and caches depend on: KServe, volumes, jobs, pods and nodes. The caches keep
 * only the fields that are used; of volumes, jobs and runtimes only our own objects. */
#ifndef FLYBALL_SERVICE_WORLD_H
#define FLYBALL_SERVICE_WORLD_H

#include "../json/json.h"
#include "../kube/manager.h"

extern const struct resource aim_resource_inference_services, aim_resource_serving_runtimes,
    aim_resource_cluster_serving_runtimes, aim_resource_claims, aim_resource_jobs,
    aim_resource_storage_classes;

/* An object that we created. */
struct aim_child_record {
    struct record meta;
    str labels, annotations, owners, spec, status; /* JSON; "" where absent */
    str owner_kind, owner_name;
    int64_t generation;
    bool deleting;
};

struct aim_pod_container {
    str name, waiting, message; /* why it waits; "": it does not */
};

struct aim_predictor_record {
    struct record meta;
    str inference_service; /* label serving.kserve.io/inferenceservice */
    LIST(struct aim_pod_container) containers, init_containers;
};

struct aim_node_record {
    struct record meta;
    str product, beta_product, family, beta_family, device, beta_device, nvidia; /* GPU labels */
};

struct aim_class_record {
    struct record meta;
    str binding_mode;
};

struct aim_world {
    struct cache *inference_services, *runtimes, *cluster_runtimes, *claims, *jobs; /* children */
    struct cache *pods, *nodes, *classes;
    struct arena gpu_arena;
    struct json *gpus; /* of all nodes, without duplicates; NULL: must be listed again */
};

int aim_world_start(struct aim_world *w, struct manager *m, err_t *e);
void aim_world_done(struct aim_world *w); /* the manager owns the caches */

/* The object as a tree, with the fields that the cache keeps; NULL for NULL. */
struct json *aim_child_object(struct arena *a, const struct aim_child_record *r);
/* The GPUs of all nodes, for aim_template_has_gpu(). */
const struct json *aim_world_gpus(struct aim_world *w);
/* Are volumes of this class bound only when a pod uses them? Assumed for an unknown class. */
bool aim_world_binds_late(const struct aim_world *w, str storage_class);

#endif
