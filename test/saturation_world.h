/* Models on a virtual cluster (cluster.h): workloads with pods that serve /metrics as a vLLM server does,
 * and the ConfigMaps and variants around them. Time costs nothing.
 *
 *     struct models w;
 *     models_start(&w);
 *     models_workload(&w, "web", 2);
 *     models_variant(&w, "web", "A100", "10", "");
 *     models_load(&w, "web", 0.9, 7);          every pod of web: KV cache, queue
 *     models_pass(&w, 60);
 */
#ifndef FLYBALL_SATURATION_WORLD_H
#define FLYBALL_SATURATION_WORLD_H

#include "base/log.h"
#include "cluster.h"
#include "saturation/saturation_controller.h"
#include "saturation/saturation_records.h"
#include "tap.h"

#define MODELS_NS "llm"
#define MODELS_HOME "workload-variant-autoscaler-system"
#define MODELS_THRESHOLDS                                                                          \
    "kvCacheThreshold: 0.80\\nqueueLengthThreshold: 5\\nkvSpareTrigger: 0.10\\nqueueSpareTrigger: 3\\n"

enum { MODELS_PODS = 64 };

struct models_pod {
    char name[64], workload[64];
    struct http_server *server;
    double kv, queue, requests;
    size_t scrapes;
    const char *page; /* served instead; NULL: made from the numbers */
    bool silent;      /* answers 500 */
    bool mute;        /* serves no series of the model */
    bool countless;   /* nor how many requests it had */
    bool gone;
};

struct models {
    struct cluster c;
    struct models_pod pods[MODELS_PODS];
    size_t pod_n;
    struct buf log;
};

void models_serve(void *context, struct exchange *x);
/* ---- objects */

struct json *models_read(struct models *w, const char *text);
void models_create(struct models *w, const struct resource *resource, const char *ns, str text);
/* A kind that others bring along, and that may come after us. */
void models_define(struct models *w, const struct resource *r);
struct cluster_answer models_patch(struct models *w, const struct resource *resource,
                                   const char *name, const char *subresource, str body);
str models_uid(struct models *w, const struct resource *resource, const char *name);
void models_config(struct models *w, const char *ns, const char *name, const char *data);
void models_edit(struct models *w, const char *name, const char *data);
/* ---- workloads and pods */

void models_ready(struct models *w, const char *pod, bool ready);
/* Owned by a ReplicaSet, or by a StatefulSet of the workload's name. */
void models_pod(struct models *w, const char *workload, bool stateful);
size_t models_count(const struct models *w, const char *workload);
/* What a Deployment's controller and kubelets would do: as many ready pods as in its spec. */
void models_follow(struct models *w, const char *workload);
void models_scale(struct models *w, const char *workload, int replicas);
void models_workload(struct models *w, const char *name, int replicas);
/* The variant has the workload's name. `more` is added to its spec: "minReplicas: 2, ". */
void models_variant(struct models *w, const char *name, const char *accelerator, const char *cost,
                    const char *more);
void models_load(struct models *w, const char *workload, double kv, double queue);
/* ---- what is reported */

const struct json *models_status(struct models *w, const char *variant);
int64_t models_desired(struct models *w, const char *variant);
str models_condition(struct models *w, const char *variant, const char *type, const char *field);
int64_t models_replicas(struct models *w, const char *workload);
size_t models_events(struct models *w, const char *reason);
bool models_logged(const struct models *w, const char *text);
/* A field of a condition: MODELS_SAYS(&w, "web", "TargetResolved", "reason", "TargetFound"). */
#define MODELS_SAYS(w, variant, type, field, text)                                                 \
    EQ_STR(models_condition(w, variant, type, field), S(text))

struct models_gauge {
    const char *family;
    const char *const *values;
    double found;
};

void models_look(void *context, const struct metric_view *view);
/* The value of a series, by its labels' values in their order; -1: it is not shown. */
#define MODELS_GAUGE(w, family, ...)                                                               \
    models_gauge(w, family, (const char *const[]){ __VA_ARGS__, NULL })
double models_gauge(struct models *w, const char *family, const char *const *values);
/* ---- life */

void models_pass(struct models *w, int64_t seconds);
void models_line(void *context, str line);
void models_operate(struct models *w, const char *const *settings);
void models_start(struct models *w);
/* The parts of models_start() around the start of the cluster: the log, and the namespaces. */
void models_prepare(struct models *w);
void models_spaces(struct models *w);
/* With thresholds for all. */
void models_begin(struct models *w);
/* The usual beginning: one variant "web" on A100s, at a load, and a first decision about it. */
void models_web(struct models *w, int replicas, double kv, double queue, const char *more);
void models_stop(struct models *w);

#endif
