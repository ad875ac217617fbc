/* A cluster with the Gateway API, a model, a template for it and a gateway, for tests of runtime
 * configuration. */
#ifndef FLYBALL_AIM_WORLD_H
#define FLYBALL_AIM_WORLD_H

#include "cluster.h"
#include "runtimeconfig/aim_kinds.h"
#include "runtimeconfig/runtimeconfig_controller.h"
#include "runtimeconfig/status_core.h"
#include "tap.h"

enum { WORLD_START = 1780000000 };

#define WORLD_GATEWAY                                                                              \
    "{metadata: {name: inference-gateway}, spec: {gatewayClassName: test, listeners: [{name: "     \
    "http, port: 80, protocol: HTTP, hostname: models.example.org}]}}"
#define WORLD_MODEL "{metadata: {name: meta-llama-3-8b}, spec: {image: 'example.org/llama:1'}}"
#define WORLD_TEMPLATE                                                                             \
    "{metadata: {name: llama-latency}, spec: {modelName: meta-llama-3-8b, metric: latency, "       \
    "precision: fp16, modelSources: [{name: meta-llama/Llama-3-8B, sourceUri: 'hf://meta-llama/Ll" \
    "ama-3-8B', size: 16Gi}]}}"

const struct resource *aim_test_kind(enum aim_kind k);
struct json *aim_test_yaml(struct cluster *c, const char *text);
void aim_test_create(struct cluster *c, const struct resource *resource, const char *ns,
                     const char *text);
/* Merge patch; fails the test if the server refuses it. */
void aim_test_patch(struct cluster *c, const struct resource *resource, const char *ns,
                    const char *name, const char *text);
/* Fails the test if the server refuses it. */
void aim_test_delete(struct cluster *c, const struct resource *resource, const char *ns,
                     const char *name);
/* The model and the template above, which aim_test_start() creates. */
void aim_test_create_model(struct cluster *c);
void aim_test_delete_model(struct cluster *c);
void aim_test_create_template(struct cluster *c);
void aim_test_delete_template(struct cluster *c);
/* Three seconds of cluster time. */
void aim_test_wait(struct cluster *c);
/* Writes a status as another controller would, and waits until ours has seen it. */
void aim_test_set_status(struct cluster *c, const struct resource *resource, const char *ns,
                         const char *name, const char *status);
/* The cluster with the objects above, without the operator. */
void aim_test_start(struct cluster *c);
void aim_test_start_operator(struct cluster *c);
struct json *aim_test_status(struct cluster *c, enum aim_kind k, const char *ns, const char *name);
str aim_test_reason(const struct json *status, const char *type);
str aim_test_path(const struct json *status);
str aim_test_route_path(struct cluster *c, const char *ns, const char *name);
/* How often an event with this reason was emitted for the object. */
size_t aim_test_count_events(struct cluster *c, const char *ns, const char *about,
                             const char *reason);

#endif
