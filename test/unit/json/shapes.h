/* Shapes for the tests of patches and apply: the parts of Deployment, Service, ConfigMap and a
 * custom resource that the recorded transcripts touch. */
#ifndef FLYBALL_TEST_SHAPES_H
#define FLYBALL_TEST_SHAPES_H

#include "json/shape.h"

#define FIELDS(...)                                                                                \
    .fields = (const struct shape_field[]){ __VA_ARGS__ },                                         \
    .n_fields = sizeof((const struct shape_field[]){ __VA_ARGS__ }) / sizeof(struct shape_field)
#define KEYS(...)                                                                                  \
    .keys = (const str[]){ __VA_ARGS__ },                                                          \
    .n_keys = sizeof((const str[]){ __VA_ARGS__ }) / sizeof(str)
#define TEXT(field_name) { .name = STR_INIT(field_name), .shape = &shape_string }
#define NUMBER(field_name) { .name = STR_INIT(field_name), .shape = &shape_number }
#define BOOLEAN(field_name) { .name = STR_INIT(field_name), .shape = &shape_boolean }
#define ANY(field_name) { .name = STR_INIT(field_name), .shape = &shape_scalar }
#define MERGES(field_name, of, by)                                                                 \
    { .name = STR_INIT(field_name),                                                                \
      .shape = &(of),                                                                              \
      .patch = SHAPE_PATCH_MERGE,                                                                  \
      .patch_key = STR_INIT(by) }
#define HOLDS(field_name, of) { .name = STR_INIT(field_name), .shape = &(of) }
#define EMBEDS(field_name, of) { .name = STR_INIT(field_name), .shape = &(of), .always = true }
#define LIST_BY(of, ...) { SHAPE_LIST, .list = SHAPE_MAP_LIST, .element = &(of), KEYS(__VA_ARGS__) }

static const struct json test_tcp = { .type = JSON_STR, .n = 3, .text = "TCP" };
#define PROTOCOL                                                                                   \
    { .name = STR_INIT("protocol"), .shape = &shape_string, .value_if_absent = &test_tcp }

static const struct shape owner = { SHAPE_OBJ, .atomic = true,
                                    FIELDS(TEXT("apiVersion"), TEXT("kind"), TEXT("name"),
                                           TEXT("uid"), BOOLEAN("controller")) };
static const struct shape owners = LIST_BY(owner, STR_INIT("uid"));
static const struct shape text_map = { SHAPE_OBJ, .element = &shape_string };
static const struct shape text_set = { SHAPE_LIST, .list = SHAPE_SET_LIST,
                                       .element = &shape_string };
static const struct shape text_list = { SHAPE_LIST, .element = &shape_string };
static const struct shape metadata = {
    SHAPE_OBJ, FIELDS(TEXT("name"), TEXT("namespace"), TEXT("uid"), TEXT("resourceVersion"),
                      NUMBER("generation"), TEXT("creationTimestamp"), HOLDS("labels", text_map),
                      HOLDS("annotations", text_map), MERGES("finalizers", text_set, ""),
                      MERGES("ownerReferences", owners, "uid"), HOLDS("managedFields", shape_any))
};
#define OBJECT TEXT("apiVersion"), TEXT("kind"), EMBEDS("metadata", metadata)

static const struct shape env = { SHAPE_OBJ, FIELDS(TEXT("name"), TEXT("value")) };
static const struct shape envs = LIST_BY(env, STR_INIT("name"));
static const struct shape container_port = { SHAPE_OBJ, FIELDS(TEXT("name"),
                                                               NUMBER("containerPort"), PROTOCOL) };
static const struct shape container_ports =
    LIST_BY(container_port, STR_INIT("containerPort"), STR_INIT("protocol"));
static const struct shape quantities = { SHAPE_OBJ, .element = &shape_scalar };
static const struct shape resources = { SHAPE_OBJ, FIELDS(HOLDS("limits", quantities),
                                                          HOLDS("requests", quantities)) };
static const struct shape container = {
    SHAPE_OBJ,
    FIELDS(TEXT("name"), TEXT("image"), HOLDS("args", text_list), MERGES("env", envs, "name"),
           MERGES("ports", container_ports, "containerPort"), EMBEDS("resources", resources),
           TEXT("imagePullPolicy"), TEXT("terminationMessagePath"),
           TEXT("terminationMessagePolicy"))
};
static const struct shape containers = LIST_BY(container, STR_INIT("name"));
static const struct shape empty_dir = { SHAPE_OBJ, FIELDS(TEXT("medium")) };
static const struct shape volume = { SHAPE_OBJ, FIELDS(TEXT("name"), HOLDS("emptyDir", empty_dir),
                                                       HOLDS("hostPath", empty_dir)) };
static const struct shape volumes = LIST_BY(volume, STR_INIT("name"));
static const struct shape toleration = { SHAPE_OBJ, FIELDS(TEXT("key"), TEXT("value")) };
static const struct shape tolerations = { SHAPE_LIST, .element = &toleration };
static const struct shape pod_spec = {
    SHAPE_OBJ, FIELDS({ .name = STR_INIT("containers"),
                        .shape = &containers,
                        .patch = SHAPE_PATCH_MERGE,
                        .patch_key = STR_INIT("name"),
                        .always = true },
                      { .name = STR_INIT("volumes"),
                        .shape = &volumes,
                        .patch = SHAPE_PATCH_MERGE | SHAPE_PATCH_RETAIN_KEYS,
                        .patch_key = STR_INIT("name") },
                      HOLDS("tolerations", tolerations), TEXT("restartPolicy"),
                      NUMBER("terminationGracePeriodSeconds"), TEXT("dnsPolicy"),
                      HOLDS("securityContext", shape_any), TEXT("schedulerName"))
};
static const struct shape pod_template = { SHAPE_OBJ, FIELDS(EMBEDS("metadata", metadata),
                                                             EMBEDS("spec", pod_spec)) };
static const struct shape selector = { SHAPE_OBJ, .atomic = true,
                                       FIELDS(HOLDS("matchLabels", text_map)) };
static const struct shape rolling = { SHAPE_OBJ, FIELDS(ANY("maxSurge"), ANY("maxUnavailable")) };
static const struct shape strategy = { SHAPE_OBJ,
                                       FIELDS(TEXT("type"), HOLDS("rollingUpdate", rolling)) };
static const struct shape deployment_spec = {
    SHAPE_OBJ, FIELDS(NUMBER("replicas"), BOOLEAN("paused"), NUMBER("revisionHistoryLimit"),
                      NUMBER("progressDeadlineSeconds"), HOLDS("selector", selector),
                      EMBEDS("template", pod_template),
                      { .name = STR_INIT("strategy"),
                        .shape = &strategy,
                        .patch = SHAPE_PATCH_RETAIN_KEYS,
                        .always = true })
};
static const struct shape condition = {
    SHAPE_OBJ, FIELDS(TEXT("type"), TEXT("status"), TEXT("reason"), TEXT("message"),
                      TEXT("lastTransitionTime"), TEXT("lastUpdateTime"))
};
static const struct shape conditions = LIST_BY(condition, STR_INIT("type"));
static const struct shape deployment_status = {
    SHAPE_OBJ, FIELDS(NUMBER("replicas"), NUMBER("observedGeneration"),
                      NUMBER("terminatingReplicas"), MERGES("conditions", conditions, "type"))
};
static const struct shape deployment = { SHAPE_OBJ, FIELDS(OBJECT, EMBEDS("spec", deployment_spec),
                                                           EMBEDS("status", deployment_status)) };

static const struct shape service_port = { SHAPE_OBJ, FIELDS(TEXT("name"), NUMBER("port"), PROTOCOL,
                                                             ANY("targetPort")) };
static const struct shape service_ports =
    LIST_BY(service_port, STR_INIT("port"), STR_INIT("protocol"));
static const struct shape atomic_texts = { SHAPE_OBJ, .atomic = true, .element = &shape_string };
static const struct shape service_spec = {
    SHAPE_OBJ,
    FIELDS(MERGES("ports", service_ports, "port"), HOLDS("selector", atomic_texts), TEXT("type"),
           TEXT("clusterIP"), HOLDS("clusterIPs", text_list), TEXT("sessionAffinity"),
           HOLDS("ipFamilies", text_list), TEXT("ipFamilyPolicy"), TEXT("internalTrafficPolicy"))
};
static const struct shape service UNUSED = { SHAPE_OBJ, FIELDS(OBJECT, EMBEDS("spec", service_spec),
                                                               EMBEDS("status", shape_any)) };

static const struct shape config_map UNUSED = { SHAPE_OBJ, FIELDS(OBJECT, HOLDS("data", text_map),
                                                                  BOOLEAN("immutable")) };

static const struct shape widget_owner = { SHAPE_OBJ, .atomic = true,
                                           FIELDS(TEXT("name"), TEXT("team")) };
static const struct shape widget_port = { SHAPE_OBJ,
                                          FIELDS(TEXT("name"), NUMBER("port"), PROTOCOL) };
static const struct shape widget_ports =
    LIST_BY(widget_port, STR_INIT("port"), STR_INIT("protocol"));
static const struct shape widget_spec = {
    SHAPE_OBJ,
    FIELDS(NUMBER("replicas"), TEXT("color"), NUMBER("size"), HOLDS("owner", widget_owner),
           HOLDS("ports", widget_ports), HOLDS("tags", text_set), HOLDS("args", text_list),
           HOLDS("options", text_map), HOLDS("free", shape_any))
};
static const struct shape widget_status = { SHAPE_OBJ, FIELDS(NUMBER("replicas"),
                                                              HOLDS("conditions", conditions)) };
static const struct shape widget UNUSED = {
    SHAPE_OBJ, FIELDS(TEXT("apiVersion"), TEXT("kind"), HOLDS("metadata", metadata),
                      HOLDS("spec", widget_spec), HOLDS("status", widget_status))
};

#endif
