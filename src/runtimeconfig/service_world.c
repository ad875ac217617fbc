/* Caches of the kinds around AIM: see service_world.h.
 *
 * KServe may not be installed, and nodes and storage classes may not be readable: those caches are optional, and an
 * absent one is empty. Claims and jobs are selected by our label, pods by the label that KServe sets, so that a large
 * cluster costs no more memory than our part of it. InferenceServices and runtimes are not: one of another owner under
 * the name that we would use must be seen, because it must be kept. The manager owns the caches. */
#include "service_world.h"

#include "aim_kinds.h"
#include "artifact_core.h"
#include "template_core.h"

const struct resource aim_resource_inference_services = { "serving.kserve.io", "v1beta1",
                                                          "inferenceservices", "InferenceService",
                                                          true };
const struct resource aim_resource_serving_runtimes = { "serving.kserve.io", "v1alpha1",
                                                        "servingruntimes", "ServingRuntime", true };
const struct resource aim_resource_cluster_serving_runtimes = { "serving.kserve.io", "v1alpha1",
                                                                "clusterservingruntimes",
                                                                "ClusterServingRuntime", false };
const struct resource aim_resource_claims = { "", "v1", "persistentvolumeclaims",
                                              "PersistentVolumeClaim", true };
const struct resource aim_resource_jobs = { "batch", "v1", "jobs", "Job", true };
const struct resource aim_resource_storage_classes = { "storage.k8s.io", "v1", "storageclasses",
                                                       "StorageClass", false };
const struct resource aim_resource_pools = { "inference.networking.k8s.io", "v1", "inferencepools",
                                             "InferencePool", true };
const struct resource aim_resource_role_bindings = { "rbac.authorization.k8s.io", "v1",
                                                     "rolebindings", "RoleBinding", true };

static const struct field child_fields[] = {
    { "metadata.labels", F_RAW, offsetof(struct aim_child_record, labels) },
    { "metadata.annotations", F_RAW, offsetof(struct aim_child_record, annotations) },
    { "metadata.ownerReferences", F_RAW, offsetof(struct aim_child_record, owners) },
    { OWNER_KIND, F_WORD, offsetof(struct aim_child_record, owner_kind) },
    { OWNER_NAME, F_STR, offsetof(struct aim_child_record, owner_name) },
    { "metadata.labels[\"app.kubernetes.io/managed-by\"]", F_WORD,
      offsetof(struct aim_child_record, managed_by) },
    { "spec.predictor.model.runtime", F_STR, offsetof(struct aim_child_record, runtime_name) },
    { "metadata.generation", F_INT, offsetof(struct aim_child_record, generation) },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct aim_child_record, deleting) },
    { "spec", F_RAW, offsetof(struct aim_child_record, spec) },
    { "status", F_RAW, offsetof(struct aim_child_record, status) },
};

static const struct field container_fields[] = {
    { "name", F_WORD, offsetof(struct aim_pod_container, name) },
    { "state.waiting.reason", F_WORD, offsetof(struct aim_pod_container, waiting) },
    { "state.waiting.message", F_STR, offsetof(struct aim_pod_container, message) },
};
static const struct fields container_kept = { sizeof(struct aim_pod_container), container_fields,
                                              countof(container_fields) };

static const struct field predictor_fields[] = {
    { "metadata.labels[\"serving.kserve.io/inferenceservice\"]", F_WORD,
      offsetof(struct aim_predictor_record, inference_service) },
    { "status.containerStatuses", F_LIST, offsetof(struct aim_predictor_record, containers),
      .of = &container_kept },
    { "status.initContainerStatuses", F_LIST,
      offsetof(struct aim_predictor_record, init_containers), .of = &container_kept },
};

static const struct field discovery_fields[] = {
    { "metadata.labels[\"job-name\"]", F_STR,
      offsetof(struct aim_predictor_record, inference_service) },
    { "status.phase", F_WORD, offsetof(struct aim_predictor_record, phase) },
    { "status.containerStatuses", F_LIST, offsetof(struct aim_predictor_record, containers),
      .of = &container_kept },
    { "status.initContainerStatuses", F_LIST,
      offsetof(struct aim_predictor_record, init_containers), .of = &container_kept },
};

#define GPU_LABEL(name) "metadata.labels[\"" name "\"]"
static const struct field node_fields[] = {
    { GPU_LABEL("amd.com/gpu.product-name"), F_WORD, offsetof(struct aim_node_record, product) },
    { GPU_LABEL("beta.amd.com/gpu.product-name"), F_WORD,
      offsetof(struct aim_node_record, beta_product) },
    { GPU_LABEL("amd.com/gpu.family"), F_WORD, offsetof(struct aim_node_record, family) },
    { GPU_LABEL("beta.amd.com/gpu.family"), F_WORD, offsetof(struct aim_node_record, beta_family) },
    { GPU_LABEL("amd.com/gpu.device-id"), F_WORD, offsetof(struct aim_node_record, device) },
    { GPU_LABEL("beta.amd.com/gpu.device-id"), F_WORD,
      offsetof(struct aim_node_record, beta_device) },
    { GPU_LABEL("nvidia.com/gpu.product"), F_WORD, offsetof(struct aim_node_record, nvidia) },
    { GPU_LABEL("amd.com/gpu.vram"), F_WORD, offsetof(struct aim_node_record, memory) },
    { GPU_LABEL("beta.amd.com/gpu.vram"), F_WORD, offsetof(struct aim_node_record, beta_memory) },
    { GPU_LABEL("kubernetes.io/arch"), F_WORD, offsetof(struct aim_node_record, architecture) },
};

static const struct field class_fields[] = {
    { "volumeBindingMode", F_WORD, offsetof(struct aim_class_record, binding_mode) },
};

/* One table per group: the annotation has the group as its domain. */
#define NAMESPACE_FIELDS(group)                                                                    \
    {                                                                                              \
        { "metadata.annotations[\"" group "/artifact-storage-quota\"]", F_STR,                     \
          offsetof(struct aim_namespace_record, quota) },                                          \
    }
static const struct field older_namespace_fields[] = NAMESPACE_FIELDS(AIM_GROUP),
                          newer_namespace_fields[] = NAMESPACE_FIELDS(AIM_GROUP_NEWER);
static const struct fields older_namespace_kept = { sizeof(struct aim_namespace_record),
                                                    older_namespace_fields, 1 },
                           newer_namespace_kept = { sizeof(struct aim_namespace_record),
                                                    newer_namespace_fields, 1 };

static const struct fields child_kept = { sizeof(struct aim_child_record), child_fields,
                                          countof(child_fields) },
                           predictor_kept = { sizeof(struct aim_predictor_record), predictor_fields,
                                              countof(predictor_fields) },
                           discovery_kept = { sizeof(struct aim_predictor_record), discovery_fields,
                                              countof(discovery_fields) },
                           node_kept = { sizeof(struct aim_node_record), node_fields,
                                         countof(node_fields) },
                           class_kept = { sizeof(struct aim_class_record), class_fields,
                                          countof(class_fields) };

/* The list of GPUs is built again when it is next read. */
static void on_node_change(void *context, const struct record *old, const struct record *now)
{
    struct aim_world *w = context;
    (void)old;
    (void)now;
    w->gpus = NULL;
}

/* Kinds that may not be installed (KServe) or not be readable (nodes) are optional. */
int aim_world_start(struct aim_world *w, struct manager *m, const char *group, err_t *e)
{
    bool older = !strcmp(group, AIM_GROUP);
    const str of_template = older ? S(AIM_GROUP "/template") : S(AIM_GROUP_NEWER "/template");
    /* not by our label: children of artifacts that another operator created have none */
    const str of_artifact = older ? S(AIM_GROUP "/cache.name") : S(AIM_GROUP_NEWER "/cache.name");
    const str ours = S("app.kubernetes.io/managed-by=aim-controller");
    const str predictors = S("serving.kserve.io/inferenceservice");
    const struct {
        struct cache **cache;
        struct cache_spec spec;
    } all[] = {
        { &w->inference_services,
          { .resource = &aim_resource_inference_services,
            .need = CACHE_IF_KNOWN,
            .keep = &child_kept,
            .indexes = { [AIM_CHILD_INDEX_OWNER] = offsetof(struct aim_child_record, owner_name),
                         [AIM_CHILD_INDEX_RUNTIME] =
                             offsetof(struct aim_child_record, runtime_name) } } },
        { &w->runtimes,
          { .resource = &aim_resource_serving_runtimes,
            .need = CACHE_IF_KNOWN,
            .keep = &child_kept } },
        { &w->cluster_runtimes,
          { .resource = &aim_resource_cluster_serving_runtimes,
            .need = CACHE_IF_KNOWN,
            .keep = &child_kept } },
        { &w->claims,
          { .resource = &aim_resource_claims, .keep = &child_kept, .label_selector = ours } },
        { &w->jobs,
          { .resource = &aim_resource_jobs, .keep = &child_kept, .label_selector = ours } },
        { &w->pods,
          { .resource = &resource_pods,
            .keep = &predictor_kept,
            .label_selector = predictors,
            .indexes = { offsetof(struct aim_predictor_record, inference_service) } } },
        { &w->discovery_pods,
          { .resource = &resource_pods,
            .keep = &discovery_kept,
            .label_selector = of_template,
            .indexes = { offsetof(struct aim_predictor_record, inference_service) } } },
        { &w->artifact_claims,
          { .resource = &aim_resource_claims,
            .keep = &child_kept,
            .label_selector = of_artifact } },
        { &w->artifact_jobs,
          { .resource = &aim_resource_jobs, .keep = &child_kept, .label_selector = of_artifact } },
        { &w->artifact_pods,
          { .resource = &resource_pods,
            .keep = &child_kept,
            .label_selector = of_artifact,
            .indexes = { [AIM_CHILD_INDEX_OWNER] =
                             offsetof(struct aim_child_record, owner_name) } } },
        { &w->role_bindings,
          { .resource = &aim_resource_role_bindings,
            .need = CACHE_IF_ALLOWED,
            .keep = &class_kept,
            .field_selector = S("metadata.name=" ARTIFACT_ROLE),
            .metadata_only = true } },
        { &w->namespaces,
          { .resource = &resource_namespaces,
            .need = CACHE_IF_ALLOWED,
            .keep = older ? &older_namespace_kept : &newer_namespace_kept,
            .metadata_only = true } },
        { &w->pools,
          { .resource = &aim_resource_pools, .need = CACHE_IF_KNOWN, .keep = &child_kept } },
        { &w->nodes,
          { .resource = &resource_nodes, .need = CACHE_IF_ALLOWED, .keep = &node_kept } },
        { &w->classes,
          { .resource = &aim_resource_storage_classes,
            .need = CACHE_IF_ALLOWED,
            .keep = &class_kept } },
    };
    for (size_t i = 0; i < countof(all); i++) {
        int r = manager_cache(m, &all[i].spec, all[i].cache, e);
        if (r < 0)
            return r;
    }
    cache_handle(w->nodes, on_node_change, w);
    return 0;
}

/* Text that does not parse is left out: it was JSON when it was cached. */
static void put_raw(struct arena *a, struct json *o, const char *key, str text)
{
    struct json *tree = NULL;
    if (text.n && json_parse(a, text, &tree, NULL) == 0)
        json_append(a, o, str_c(key), tree);
}

/* The kind is known to the caller and left out. */
struct json *aim_child_object(struct arena *a, const struct aim_child_record *r)
{
    if (!r)
        return NULL;
    struct json *o = json_new_obj(a), *metadata = json_make(a, o, "metadata", NULL);
    json_set_str(a, metadata, "name", r->meta.name);
    if (r->meta.ns.n)
        json_set_str(a, metadata, "namespace", r->meta.ns);
    json_set_str(a, metadata, "uid", r->meta.uid);
    json_set_int(a, metadata, "generation", r->generation);
    put_raw(a, metadata, "labels", r->labels);
    put_raw(a, metadata, "annotations", r->annotations);
    put_raw(a, metadata, "ownerReferences", r->owners);
    put_raw(a, o, "spec", r->spec);
    put_raw(a, o, "status", r->status);
    return o;
}

bool aim_world_names_runtime(const struct aim_world *w, str ns, str runtime)
{
    const struct aim_child_record *r;
    cache_each_in(r, w->inference_services, AIM_CHILD_INDEX_RUNTIME, runtime)
        if (!ns.n || str_eq(r->meta.ns, ns))
            return true;
    return false;
}

/* Adds the GPUs of one node to the list. */
static void put_gpus_of(struct arena *a, const struct aim_node_record *n, struct json *gpus)
{
    const struct {
        const char *key;
        str value;
    } labels[] = { { "amd.com/gpu.product-name", n->product },
                   { "beta.amd.com/gpu.product-name", n->beta_product },
                   { "amd.com/gpu.family", n->family },
                   { "beta.amd.com/gpu.family", n->beta_family },
                   { "amd.com/gpu.device-id", n->device },
                   { "beta.amd.com/gpu.device-id", n->beta_device },
                   { "nvidia.com/gpu.product", n->nvidia },
                   { "amd.com/gpu.vram", n->memory },
                   { "beta.amd.com/gpu.vram", n->beta_memory } };
    struct json *set = json_new_obj(a);
    for (size_t i = 0; i < countof(labels); i++)
        if (labels[i].value.n)
            json_set_str(a, set, labels[i].key, labels[i].value);
    aim_template_gpus_of_node(a, set, gpus);
}

/* Listed on demand and kept until a node changes: a pass of every template and service reads it. */
const struct json *aim_world_gpus(struct aim_world *w)
{
    const struct aim_node_record *n;
    if (w->gpus)
        return w->gpus;
    arena_reset(&w->gpu_arena, (struct arena_mark){ 0 });
    w->gpus = json_new_arr(&w->gpu_arena);
    cache_each(n, w->nodes)
        put_gpus_of(&w->gpu_arena, n, w->gpus);
    return w->gpus;
}

const char *aim_world_architecture(const struct aim_world *w)
{
    static const char *const known[] = { "amd64", "arm64", "ppc64le", "s390x", "riscv64" };
    size_t best = countof(known);
    const struct aim_node_record *n;
    cache_each(n, w->nodes)
        for (size_t i = 0; i < best; i++)
            if (str_eqc(n->architecture, known[i]))
                best = i;
    return known[best < countof(known) ? best : 0];
}

void aim_world_done(struct aim_world *w)
{
    arena_done(&w->gpu_arena);
}

/* Whether a claim stays pending until a pod uses it. Unknown classes count as such: waiting for them would
 * never end. */
bool aim_world_binds_late(const struct aim_world *w, str storage_class)
{
    const struct aim_class_record *c =
        storage_class.n ? cache_get(w->classes, S(""), storage_class) : NULL;
    return !c || str_eqc(c->binding_mode, "WaitForFirstConsumer");
}
