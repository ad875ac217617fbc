/* See pods.h. */
#include "pods.h"

#include "../test/protobuf_write.h"
#include "json/protowire.h"

#include <stdlib.h>

static void put_env(struct buf *out, size_t n, size_t index)
{
    buf_put(out, S("\"env\":["));
    for (size_t i = 0; i < n; i++)
        buf_printf(out,
                   "%s{\"name\":\"SETTING_NUMBER_%02zu\",\"value\":\"a value that is as long as "
                   "they are in practice %zu\"}",
                   i ? "," : "", i, index % 50);
    buf_put(out, S(",{\"name\":\"POD_NAME\",\"valueFrom\":{\"fieldRef\":{\"apiVersion\":\"v1\","
                   "\"fieldPath\":\"metadata.name\"}}}]"));
}

static void put_container(struct buf *out, const char *name, size_t index)
{
    buf_printf(out,
               "{\"name\":\"%s\",\"image\":\"registry.example.org/team-%zu/%s:v1.%zu.0\","
               "\"ports\":[{\"name\":\"http\",\"containerPort\":8080,\"protocol\":\"TCP\"}],",
               name, index % 10, name, index % 50);
    put_env(out, 36, index);
    buf_printf(
        out,
        ",\"resources\":{\"limits\":{\"cpu\":\"%zum\",\"memory\":\"512Mi\"},\"requests\":"
        "{\"cpu\":\"100m\",\"memory\":\"256Mi\"}},\"volumeMounts\":[{\"name\":\"config\","
        "\"mountPath\":\"/etc/config\",\"readOnly\":true},{\"name\":\"kube-api-access-x%zu\","
        "\"readOnly\":true,\"mountPath\":\"/var/run/secrets/kubernetes.io/serviceaccount\"}],"
        "\"livenessProbe\":{\"httpGet\":{\"path\":\"/healthz\",\"port\":\"http\",\"scheme\":"
        "\"HTTP\"},\"initialDelaySeconds\":10,\"timeoutSeconds\":1,\"periodSeconds\":10,"
        "\"successThreshold\":1,\"failureThreshold\":3},\"terminationMessagePath\":"
        "\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":"
        "\"IfNotPresent\"}",
        250 + index % 8 * 250, index % 97);
}

static void put_spec(struct buf *out, size_t index)
{
    buf_printf(out,
               "\"spec\":{\"volumes\":[{\"name\":\"config\",\"configMap\":{\"name\":\"app-%zu\","
               "\"defaultMode\":420}}],\"containers\":[",
               index % 50);
    put_container(out, "main", index);
    buf_putc(out, ',');
    put_container(out, "proxy", index);
    buf_printf(
        out,
        "],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,\"dnsPolicy\":"
        "\"ClusterFirst\",\"serviceAccountName\":\"default\",\"nodeName\":\"node-%03zu\","
        "\"securityContext\":{},\"schedulerName\":\"default-scheduler\",\"tolerations\":["
        "{\"key\":\"node.kubernetes.io/not-ready\",\"operator\":\"Exists\",\"effect\":"
        "\"NoExecute\",\"tolerationSeconds\":300}],\"priority\":0,\"enableServiceLinks\":true}",
        index * 7 % 500);
}

static void put_managed_fields(struct buf *out)
{
    buf_put(out, S("\"managedFields\":[{\"manager\":\"kube-controller-manager\",\"operation\":"
                   "\"Update\",\"apiVersion\":\"v1\",\"time\":\"2026-11-01T10:00:00Z\","
                   "\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{\"f:spec\":{\"f:containers\":{"));
    for (int c = 0; c < 2; c++) {
        buf_printf(out, "%s\"k:{\\\"name\\\":\\\"%s\\\"}\":{\".\":{},\"f:env\":{\".\":{}",
                   c ? "," : "", c ? "proxy" : "main");
        for (int i = 0; i < 36; i++)
            buf_printf(out,
                       ",\"k:{\\\"name\\\":\\\"SETTING_NUMBER_%02d\\\"}\":{\".\":{},\"f:name\":{},"
                       "\"f:value\":{}}",
                       i);
        buf_put(out, S("},\"f:image\":{},\"f:imagePullPolicy\":{},\"f:name\":{},\"f:ports\":{},"
                       "\"f:resources\":{\".\":{},\"f:limits\":{\".\":{},\"f:cpu\":{},"
                       "\"f:memory\":{}}}}"));
    }
    buf_put(out, S("},\"f:dnsPolicy\":{},\"f:enableServiceLinks\":{}}}},{\"manager\":\"kubelet\","
                   "\"operation\":\"Update\",\"apiVersion\":\"v1\",\"time\":"
                   "\"2026-11-01T10:00:09Z\",\"fieldsType\":\"FieldsV1\",\"subresource\":"
                   "\"status\",\"fieldsV1\":{\"f:status\":{\"f:conditions\":{"));
    static const char *const types[] = { "ContainersReady", "Initialized", "Ready",
                                         "PodScheduled" };
    for (size_t i = 0; i < countof(types); i++)
        buf_printf(out,
                   "%s\"k:{\\\"type\\\":\\\"%s\\\"}\":{\".\":{},\"f:lastProbeTime\":{},"
                   "\"f:lastTransitionTime\":{},\"f:status\":{},\"f:type\":{}}",
                   i ? "," : "", types[i]);
    buf_put(out,
            S("},\"f:containerStatuses\":{},\"f:hostIP\":{},\"f:phase\":{},\"f:podIP\":{}}}}]"));
}

static void put_name(struct buf *out, size_t index)
{
    buf_printf(out, "application-%zu-5f6d8c7b9d-%05zx", index % 50, index);
}

static void put_uid(struct buf *out, size_t index)
{
    buf_printf(out, "%08zx-1234-4abc-8def-0123456789ab", index);
}

static void put_metadata(struct buf *out, size_t index, uint64_t rv)
{
    size_t app = index % 50;
    buf_put(out, S("\"metadata\":{\"name\":\""));
    put_name(out, index);
    buf_printf(
        out,
        "\",\"generateName\":\"application-%zu-5f6d8c7b9d-\",\"namespace\":\"team-%zu\",\"uid\":\"",
        app, app % 10);
    put_uid(out, index);
    buf_printf(out,
               "\",\"resourceVersion\":\"%llu\","
               "\"creationTimestamp\":\"2026-11-01T10:00:00Z\",\"labels\":{\"app\":"
               "\"application-%zu\",\"app.kubernetes.io/name\":\"application\","
               "\"app.kubernetes.io/part-of\":\"shop\",\"pod-template-hash\":\"5f6d8c7b9d\","
               "\"tier\":\"%s\"},\"annotations\":{\"prometheus.io/scrape\":\"true\"},"
               "\"ownerReferences\":[{\"apiVersion\":\"apps/v1\",\"kind\":\"ReplicaSet\",\"name\":"
               "\"application-%zu-5f6d8c7b9d\",\"uid\":\"aaaa%04zx-1234-4abc-8def-0123456789ab\","
               "\"controller\":true,\"blockOwnerDeletion\":true}],",
               (unsigned long long)rv, app, app % 2 ? "front" : "back", app, app);
    put_managed_fields(out);
    buf_putc(out, '}');
}

static void put_status(struct buf *out, size_t index)
{
    static const char *const types[] = { "Initialized", "Ready", "ContainersReady",
                                         "PodScheduled" };
    buf_put(out, S("\"status\":{\"phase\":\"Running\",\"conditions\":["));
    for (size_t i = 0; i < countof(types); i++)
        buf_printf(out,
                   "%s{\"type\":\"%s\",\"status\":\"True\",\"lastProbeTime\":null,"
                   "\"lastTransitionTime\":\"2026-11-01T10:00:09Z\"}",
                   i ? "," : "", types[i]);
    buf_printf(out,
               "],\"hostIP\":\"10.1.%zu.%zu\",\"podIP\":\"10.2.%zu.%zu\",\"startTime\":"
               "\"2026-11-01T10:00:00Z\",\"containerStatuses\":[",
               index % 250, index / 250 % 250, index % 250, index / 250 % 250);
    for (int c = 0; c < 2; c++)
        buf_printf(
            out,
            "%s{\"name\":\"%s\",\"state\":{\"running\":{\"startedAt\":"
            "\"2026-11-01T10:00:08Z\"}},\"lastState\":{},\"ready\":true,\"restartCount\":0,"
            "\"image\":\"registry.example.org/x:v1\",\"imageID\":\"registry.example.org/x@sha256:"
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\","
            "\"containerID\":\"containerd://0123456789abcdef0123456789abcdef0123456789abcdef"
            "01234567%08zx\",\"started\":true}",
            c ? "," : "", c ? "proxy" : "main", index);
    buf_put(out, S("],\"qosClass\":\"Burstable\"}"));
}

void pods_write(struct buf *out, size_t index, uint64_t rv)
{
    buf_putc(out, '{');
    put_metadata(out, index, rv);
    buf_putc(out, ',');
    put_spec(out, index % PODS_SHAPES);
    buf_putc(out, ',');
    put_status(out, index % PODS_SHAPES);
    buf_putc(out, '}');
}

/* Encoding a pod takes longer than reading it; so each shape is encoded once, without what makes a pod an individual. */
struct pod_shape {
    struct buf metadata, rest;
};

static const struct pod_shape *shape_of(size_t index)
{
    static struct pod_shape shapes[PODS_SHAPES]; /* until the process ends */
    struct pod_shape *shape = &shapes[index % PODS_SHAPES];
    if (shape->rest.n)
        return shape;
    auto_arena struct arena a = { 0 };
    auto_buf struct buf text = { 0 }, whole = { 0 };
    struct json *pod;
    pods_write(&text, index, 0);
    if (json_parse(&a, buf_str(&text), &pod, NULL) < 0)
        abort();
    struct json *meta = json_get(pod, "metadata");
    json_del(meta, S("name"));
    json_del(meta, S("uid"));
    json_del(meta, S("resourceVersion"));
    json_del(meta, S("annotations"));
    wire_put_message(&shape->metadata, types_message("meta.v1.ObjectMeta"), meta);
    json_del(pod, S("metadata"));
    wire_put_message(&whole, types_message("core.v1.Pod"), pod);
    str bytes = buf_str(&whole), first;
    /* metadata is always on the wire, here as an empty message in front */
    if (!protowire_find(bytes, 1, &first))
        abort();
    buf_put(&shape->rest, str_from(bytes, (size_t)(first.p + first.n - bytes.p)));
    return shape;
}

void pods_write_protobuf(struct buf *metadata, struct buf *rest, size_t index)
{
    enum { NAME = 1, UID = 5 }; /* of ObjectMeta */
    const struct pod_shape *shape = shape_of(index);
    auto_buf struct buf text = { 0 };
    buf_put(metadata, buf_str(&shape->metadata));
    put_name(&text, index);
    wire_put_bytes(metadata, NAME, buf_str(&text));
    buf_clear(&text);
    put_uid(&text, index);
    wire_put_bytes(metadata, UID, buf_str(&text));
    buf_put(rest, buf_str(&shape->rest));
}

void pods_list_begin(struct buf *out)
{
    buf_put(out, S("{\"kind\":\"PodList\",\"apiVersion\":\"v1\",\"items\":["));
}

void pods_list_end(struct buf *out, uint64_t rv)
{
    buf_printf(out, "],\"metadata\":{\"resourceVersion\":\"%llu\"}}", (unsigned long long)rv);
}
