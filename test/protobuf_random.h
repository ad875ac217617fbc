/* Objects of built-in kinds made of arbitrary bytes, valid for their table: the same object in JSON and protobuf must give
 * the same record. `{0}` choices are an object with nothing but what is always written. */
#ifndef FLYBALL_TEST_PROTOBUF_RANDOM_H
#define FLYBALL_TEST_PROTOBUF_RANDOM_H

#include "protobuf_write.h"
#include "json/project.h"
#include "json/prototable.h"

struct choices {
    const uint8_t *p;
    size_t n;
};

static UNUSED unsigned choose(struct choices *c, unsigned below)
{
    if (!c->n)
        return 0;
    c->n--;
    return *c->p++ % below;
}

static UNUSED struct json *choose_text(struct arena *a, struct choices *c)
{
    static const char *const parts[] = { "a",  "Ready", "True", "main", "cpu",          "\"",
                                         "\\", "\n",    "\xc3", "\x80", "\xe2\x82\xac", "x-1",
                                         "0",  "\x01",  "/",    "" };
    auto_buf struct buf text = { 0 };
    for (unsigned left = 1 + choose(c, 4); left; left--) {
        unsigned part = choose(c, countof(parts) + 1);
        if (part < countof(parts))
            buf_put(&text, str_c(parts[part]));
        else
            buf_putc(&text, '\0');
    }
    return json_new_str(a, text.n ? buf_str(&text) : S("x"));
}

static UNUSED struct json *choose_integer(struct arena *a, struct choices *c, bool wide)
{
    static const int64_t ends[] = { 1, -1, 7, INT32_MAX, INT32_MIN, 128, INT64_MAX, INT64_MIN };
    return json_new_int(a, ends[choose(c, wide ? 8 : 6)]);
}

static UNUSED struct json *choose_time(struct arena *a, struct choices *c, bool micro)
{
    static const int64_t at[] = { 1760000000, 0, -1, -5000000000, 253402300799, -62135596799, 1 };
    char text[RFC3339_TEXT_MAX];
    int64_t s = at[choose(c, countof(at))];
    return json_new_str(a, micro ? rfc3339_micro_text(s * 1000000 + choose(c, 250), text)
                                 : rfc3339_text(s, text));
}

static UNUSED struct json *choose_object(struct arena *a, const struct prototable *t,
                                         const struct prototable_message *m, struct choices *c);

/* A value that is not zero. */
static UNUSED struct json *choose_value(struct arena *a, const struct prototable *t,
                                        const struct prototable_field *f, struct choices *c)
{
    static const char *const quantities[] = { "1", "250m", "1Gi", "0", "-3", "1e3", "100k", "odd" };
    switch ((enum prototable_type)f->type) {
    case PROTO_BYTES:
        return json_new_str(a, S("aGk="));
    case PROTO_INT32:
    case PROTO_INT64:
        return choose_integer(a, c, f->type == PROTO_INT64);
    case PROTO_BOOL:
        return json_new_bool(a, true);
    case PROTO_QUANTITY:
        return json_new_str(a, str_c(quantities[choose(c, countof(quantities))]));
    case PROTO_TIME:
    case PROTO_MICRO_TIME:
        return choose_time(a, c, f->type == PROTO_MICRO_TIME);
    case PROTO_INT_OR_STRING:
        return choose(c, 2) ? choose_text(a, c) : choose_integer(a, c, false);
    case PROTO_MESSAGE:
        return choose_object(a, t, &t->messages[f->message], c);
    default:
        return choose_text(a, c);
    }
}

static UNUSED struct json *choose_zero(struct arena *a, const struct prototable *t,
                                       const struct prototable_field *f)
{
    struct choices none = { 0 };
    if (f->flags & (PROTO_LIST | PROTO_MAP) || f->type == PROTO_TIME || f->type == PROTO_MICRO_TIME)
        return json_new_null(a);
    return f->type == PROTO_STRING || f->type == PROTO_BYTES ? json_new_str(a, S(""))
           : f->type == PROTO_BOOL                           ? json_new_bool(a, false)
           : f->type == PROTO_QUANTITY                       ? json_new_str(a, S("0"))
           : f->type == PROTO_MESSAGE ? choose_object(a, t, &t->messages[f->message], &none)
                                      : json_new_int(a, 0);
}

static UNUSED struct json *choose_many(struct arena *a, const struct prototable *t,
                                       const struct prototable_field *f, struct choices *c)
{
    static const char *const keys[] = { "a/b", "app", "cpu", "nvidia.com/gpu", "zz\"" };
    bool map = f->flags & PROTO_MAP;
    struct json *all = map ? json_new_obj(a) : json_new_arr(a);
    for (unsigned i = 0, n = 1 + choose(c, countof(keys)); i < n; i++) {
        struct json *value = choose_value(a, t, f, c);
        if (map)
            json_set(a, all, str_c(keys[i]), value);
        else
            json_push(a, all, value);
    }
    return all;
}

/* NULL: the field is not written. */
static UNUSED struct json *choose_field(struct arena *a, const struct prototable *t,
                                        const struct prototable_field *f, struct choices *c)
{
    unsigned what = choose(c, 4);
    bool many = f->flags & (PROTO_LIST | PROTO_MAP), pointer = f->flags & PROTO_IF_SET;
    if (what > 1 && many)
        return choose_many(a, t, f, c);
    if (what > 1)
        return choose_value(a, t, f, c);
    if (f->flags & PROTO_ALWAYS)
        return pointer ? json_new_null(a) : choose_zero(a, t, f);
    return pointer && what == 1 && !many && f->type < PROTO_QUANTITY ? choose_zero(a, t, f) : NULL;
}

static UNUSED struct json *choose_object(struct arena *a, const struct prototable *t,
                                         const struct prototable_message *m, struct choices *c)
{
    struct json *object = json_new_obj(a);
    for (unsigned i = 0; i < m->n; i++) {
        const struct prototable_field *f = &t->fields[m->first + i];
        struct json *value = choose_field(a, t, f, c);
        if (value)
            json_set(a, object, prototable_name(t, f), value);
    }
    return object;
}

/* ---- what is declared: every type of field, and every type on the wire */

struct random_record {
    struct record meta;
    const struct labels *maps[4];
    str texts[12], raws[4];
    int64_t numbers[10];
    bool flags[8];
    uint64_t sum;
    LIST(struct random_part {
        str name;
        int64_t milli;
        bool is;
        uint64_t sum;
        const struct labels *map;
    })
    parts;
};

#define RANDOM(member) offsetof(struct random_record, member)
#define RANDOM_PART(member) offsetof(struct random_part, member)

static const struct field random_container_fields[] = {
    { "name", F_SUM, RANDOM_PART(sum) },
    { "image", F_WORD, RANDOM_PART(name) },
    { "resources.limits.cpu", F_MILLI, RANDOM_PART(milli), .otherwise = -1 },
    { "restartPolicy", F_IS, RANDOM_PART(is), .text = "a" },
    { "resources.requests", F_MAP, RANDOM_PART(map) },
};
static const struct fields random_container = { sizeof(struct random_part), random_container_fields,
                                                countof(random_container_fields) };
static const struct field random_metric_fields[] = {
    { "type", F_WORD, RANDOM_PART(name) },
    { "resource.target.averageValue", F_MILLI, RANDOM_PART(milli) },
};
static const struct fields random_metric = { sizeof(struct random_part), random_metric_fields,
                                             countof(random_metric_fields) };

static const struct field random_pod[] = {
    { "metadata.labels", F_MAP, RANDOM(maps[0]) },
    { "metadata.annotations.app", F_WORD, RANDOM(texts[0]) },
    { "metadata.annotations[\"a/b\"]", F_HAS, RANDOM(flags[0]) },
    { "metadata.deletionTimestamp", F_HAS, RANDOM(flags[1]) },
    { "metadata.creationTimestamp", F_TIME, RANDOM(numbers[0]) },
    { "metadata.generation", F_INT, RANDOM(numbers[1]), .otherwise = 5 },
    { "metadata.ownerReferences[controller=true].uid", F_WORD, RANDOM(texts[1]) },
    { "metadata.ownerReferences", F_RAW, RANDOM(raws[0]) },
    { "metadata.finalizers", F_RAW, RANDOM(raws[1]) },
    { "spec.nodeName", F_WORD, RANDOM(texts[2]) },
    { "spec.os.name", F_IS, RANDOM(flags[2]), .text = "a" },
    { "spec.tolerations", F_RAW, RANDOM(raws[2]) },
    { "spec.containers", F_LIST, RANDOM(parts), .of = &random_container },
    { "spec.containers[].resources.limits[\"nvidia.com/gpu\"]", F_MILLI, RANDOM(numbers[2]) },
    { "spec.containers[].ports[name=main].containerPort", F_INT, RANDOM(numbers[3]) },
    { "spec.terminationGracePeriodSeconds", F_INT, RANDOM(numbers[4]), .otherwise = 30 },
    { "spec.hostNetwork", F_BOOL, RANDOM(flags[3]) },
    { "spec.enableServiceLinks", F_BOOL, RANDOM(flags[4]), .otherwise = 1 },
    { "spec.nodeSelector", F_MAP, RANDOM(maps[1]) },
    { "status.phase", F_SUM, RANDOM(sum) },
    { "status.podIP", F_STR, RANDOM(texts[3]) },
    { "status.conditions[type=Ready].status", F_WORD, RANDOM(texts[4]) },
    { "status.conditions[type=Ready].lastTransitionTime", F_TIME, RANDOM(numbers[5]) },
    { "status.containerStatuses[].state.waiting.reason", F_WORD, RANDOM(texts[5]) },
    { "status.containerStatuses", F_HAS, RANDOM(flags[5]) },
    { "spec.priority", F_REAL, RANDOM(numbers[6]) },
};
static const struct field random_node[] = {
    { "spec.taints", F_RAW, RANDOM(raws[0]) },
    { "spec", F_RAW, RANDOM(raws[1]) },
    { "status.allocatable", F_MAP, RANDOM(maps[0]) },
    { "status.allocatable.cpu", F_MILLI, RANDOM(numbers[0]) },
    { "spec.unschedulable", F_BOOL, RANDOM(flags[0]) },
    { "status.conditions[type=Ready].status", F_WORD, RANDOM(texts[0]) },
};
static const struct field random_service[] = {
    { "spec.selector", F_MAP, RANDOM(maps[0]) },
    { "spec.ports", F_RAW, RANDOM(raws[0]) },
    { "status", F_RAW, RANDOM(raws[1]) },
    { "spec.ports[].port", F_INT, RANDOM(numbers[0]) },
    { "spec.ports[].targetPort", F_STR, RANDOM(texts[0]) },
    { "spec.ports[name=main].targetPort", F_INT, RANDOM(numbers[1]) },
};
static const struct field random_deployment[] = {
    { "spec.replicas", F_INT, RANDOM(numbers[0]), .otherwise = 1 },
    { "status.readyReplicas", F_INT, RANDOM(numbers[1]), .otherwise = 9 },
    { "spec.selector", F_RAW, RANDOM(raws[0]) },
    { "spec.strategy", F_RAW, RANDOM(raws[1]) },
    { "status", F_RAW, RANDOM(raws[2]) },
    { "spec.template.spec.tolerations", F_RAW, RANDOM(raws[3]) },
    { "spec.template.metadata.labels", F_MAP, RANDOM(maps[0]) },
};
static const struct field random_hpa[] = {
    { "spec", F_RAW, RANDOM(raws[0]) },
    { "status", F_RAW, RANDOM(raws[1]) },
    { "spec.metrics", F_LIST, RANDOM(parts), .of = &random_metric },
    { "spec.behavior.scaleUp.tolerance", F_MILLI, RANDOM(numbers[0]), .otherwise = 100 },
    { "spec.minReplicas", F_HAS, RANDOM(flags[0]) },
};
static const struct field random_map[] = {
    { "data", F_RAW, RANDOM(raws[0]) },
    { "binaryData", F_RAW, RANDOM(raws[1]) },
    { "immutable", F_HAS, RANDOM(flags[0]) },
};
static const struct field random_lease[] = {
    { "spec", F_RAW, RANDOM(raws[0]) },
    { "spec.renewTime", F_TIME, RANDOM(numbers[0]) },
    { "spec.holderIdentity", F_STR, RANDOM(texts[0]) },
};

#define RANDOM_FIELDS(table) { sizeof(struct random_record), table, countof(table) }
static UNUSED const struct {
    const char *group, *version, *kind, *type;
    struct fields fields;
} random_kinds[] = {
    { "", "v1", "Pod", "core.v1.Pod", RANDOM_FIELDS(random_pod) },
    { "", "v1", "Node", "core.v1.Node", RANDOM_FIELDS(random_node) },
    { "", "v1", "Service", "core.v1.Service", RANDOM_FIELDS(random_service) },
    { "apps", "v1", "Deployment", "apps.v1.Deployment", RANDOM_FIELDS(random_deployment) },
    { "autoscaling", "v2", "HorizontalPodAutoscaler", "autoscaling.v2.HorizontalPodAutoscaler",
      RANDOM_FIELDS(random_hpa) },
    { "", "v1", "ConfigMap", "core.v1.ConfigMap", RANDOM_FIELDS(random_map) },
    { "coordination.k8s.io", "v1", "Lease", "coordination.v1.Lease", RANDOM_FIELDS(random_lease) },
};

#endif
