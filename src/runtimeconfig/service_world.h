/* The world around AIM, as far as its services, templates and caches stand on it: KServe's kinds, volumes, jobs, pods and
 * nodes. Of each only the fields that count are kept, and of volumes, jobs and runtimes only our own. */
#ifndef FLYBALL_SERVICE_WORLD_H
#define FLYBALL_SERVICE_WORLD_H

#include "../json/json.h"
#include "../kube/manager.h"

extern const struct resource resource_inference_services, resource_serving_runtimes,
    resource_cluster_serving_runtimes, resource_claims, resource_jobs, resource_storage_classes;

/* A child of ours. */
struct child_record {
    struct record meta;
    str labels, annotations, owners, spec, status; /* JSON; "" where absent */
    str owner_kind, owner_name;
    int64_t generation;
    bool deleting;
};

struct pod_container {
    str name, waiting, message; /* why it waits; "" when it does not */
};

struct predictor_record {
    struct record meta;
    str inference_service; /* the label */
    LIST(struct pod_container) containers, init_containers;
};

struct node_record {
    struct record meta;
    str product, beta_product, family, beta_family, device, beta_device, nvidia; /* GPU labels */
};

struct class_record {
    struct record meta;
    str binding_mode;
};

struct service_world {
    struct cache *inference_services, *runtimes, *cluster_runtimes, *claims, *jobs; /* children */
    struct cache *pods, *nodes, *classes;
    struct arena gpu_arena;
    struct json *gpus; /* of all nodes, once each; NULL: to be listed anew */
};

int service_world_start(struct service_world *w, struct manager *m, err_t *e);
void service_world_done(struct service_world *w); /* the caches are the manager's */

/* The object as the API server holds it, as far as it is kept; NULL for NULL. */
struct json *child_object(struct arena *a, const struct child_record *r);
/* The GPUs of all nodes, for template_gpu_present(). */
const struct json *service_world_gpus(struct service_world *w);
/* Is a volume of this class bound only when a pod wants it? Of a class that cannot be seen that is assumed. */
bool service_world_binds_late(const struct service_world *w, str storage_class);

#endif
