#include "tap.h"

#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/protobuf.h"
#include "base/base64.h"

/* Decodes a body as its kind and compares it with the same object in JSON. */
static void reads(const char *base64, const char *plural, const char *want)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf body = { 0 };
    struct json *object = NULL, *wanted = NULL;
    err_t e;
    OK(base64_decode(&body, str_c(base64)) == 0);
    if (!OK_CALL(protobuf_decode(&a, buf_str(&body), &object, &e), &e))
        return;
    str version = json_text(json_get(object, "apiVersion"));
    size_t slash = str_find_char(version, '/');
    str group = slash == SIZE_MAX ? S("") : str_upto(version, slash);
    const struct kind *k =
        kinds_find(group, slash == SIZE_MAX ? version : str_from(version, slash + 1),
                   str_c(plural));
    if (!OK(k) || !OK_CALL(kind_decode(k, &a, object, NULL, &e), &e) ||
        !OK_CALL(json_parse(&a, str_c(want), &wanted, &e), &e))
        return;
    json_each(m, wanted)
        if (!json_eq(m->value, json_get_str(object, m->key)))
            tap_note(__FILE__, __LINE__, STR_FMT " is " STR_FMT ", want " STR_FMT, STR_ARG(m->key),
                     STR_ARG(json_to_str(&a, json_get_str(object, m->key))),
                     STR_ARG(json_to_str(&a, m->value)));
}

static void bodies_of_real_clients_decode(void)
{
    reads(
        "azhzAAoPCgJ2MRIJQ29uZmlnTWFwEiYKHAoCcGISABoAIgAqADIAOABCAFoICgNhcHASAXgSBgoBaxIBdhoAIgA=",
        "configmaps",
        "{\"kind\":\"ConfigMap\",\"metadata\":{\"name\":\"pb\",\"labels\":{\"app\":\"x\"}},"
        "\"data\":{\"k\":\"v\"}}");
    reads(
        "azhzAAofChZjb29yZGluYXRpb24uazhzLmlvL3YxEgVMZWFzZRI6ChQKBGxvY2sSABoAIgAqADIAOABCABIiCgFhEA8a"
        "DAiAwq/wBRCAyrXuASILCIDCr/AFEICU7zooABoAIgA=",
        "leases",
        "{\"spec\":{\"holderIdentity\":\"a\",\"leaseDurationSeconds\":15,\"acquireTime\":"
        "\"2020-01-01T00:00:00.500000Z\",\"renewTime\":\"2020-01-01T00:00:00.123456Z\","
        "\"leaseTransitions\":0}}");
    reads(
        "azhzAAoyChdhdXRob3JpemF0aW9uLms4cy5pby92MRIXU2VsZlN1YmplY3RBY2Nlc3NSZXZpZXcSPAoQCgASABoAIgAq"
        "ADIAOABCABIeChwKB2RlZmF1bHQSA2dldBoAIgAqBHBvZHMyADoAGggIABIAGgAgABoAIgA=",
        "selfsubjectaccessreviews",
        "{\"spec\":{\"resourceAttributes\":{\"namespace\":\"default\",\"verb\":\"get\","
        "\"resource\":\"pods\"}}}");
}

static void templates_and_embedded_fields_decode(void)
{
    reads(
        "azhzAAoVCgdhcHBzL3YxEgpEZXBsb3ltZW50ElAKEQoBZBIAGgAiACoAMgA4AEIAEjsIABIKCggKA2FwcBIBZBopCgpa"
        "CAoDYXBwEgFkEhsSGQoEbWFpbhIRZXhhbXBsZS5jb20vYXBwOjE4ARoAIgA=",
        "deployments",
        "{\"apiVersion\":\"apps/v1\",\"metadata\":{\"name\":\"d\"},\"spec\":{\"replicas\":0,"
        "\"selector\":{\"matchLabels\":{\"app\":\"d\"}},\"template\":{\"metadata\":{\"labels\":"
        "{\"app\":\"d\"}},\"spec\":{\"containers\":[{\"name\":\"main\",\"image\":"
        "\"example.com/app:1\",\"resources\":{},\"terminationMessagePath\":"
        "\"/dev/termination-log\",\"terminationMessagePolicy\":\"File\",\"imagePullPolicy\":"
        "\"IfNotPresent\"}],\"restartPolicy\":\"Always\",\"terminationGracePeriodSeconds\":30,"
        "\"dnsPolicy\":\"ClusterFirst\",\"securityContext\":{},\"schedulerName\":"
        "\"default-scheduler\"}},\"strategy\":{\"type\":\"RollingUpdate\",\"rollingUpdate\":"
        "{\"maxUnavailable\":\"25%\",\"maxSurge\":\"25%\"}},\"revisionHistoryLimit\":10,"
        "\"paused\":true,\"progressDeadlineSeconds\":600}}");
}

/* Builds a message: number, then text or message. */
static void put(struct buf *out, unsigned number, str bytes)
{
    assert(number < 16 && bytes.n < 128);
    buf_putc(out, (char)(number << 3 | 2));
    buf_putc(out, (char)bytes.n);
    buf_put(out, bytes);
}

static int decode(struct arena *a, const char *version, const char *kind, str raw,
                  struct json **ret, err_t *e)
{
    auto_buf struct buf type = { 0 }, body = { 0 };
    put(&type, 1, str_c(version));
    put(&type, 2, str_c(kind));
    buf_put(&body, (str){ "k8s", 4 });
    put(&body, 1, buf_str(&type));
    put(&body, 2, raw);
    return protobuf_decode(a, buf_str(&body), ret, e);
}

static void wrapped_values_decode(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf service = { 0 }, spec = { 0 }, port = { 0 };
    struct json *object = NULL;
    err_t e;
    buf_put(&port,
            (str){ "\x18\x50\x22\x06\x08\x01\x1a\x02hi", 10 }); /* port 80, targetPort "hi" */
    put(&spec, 1, buf_str(&port));
    put(&service, 2, buf_str(&spec));
    OK_CALL(decode(&a, "v1", "Service", buf_str(&service), &object, &e), &e);
    EQ_STR(json_to_str(&a, json_at(object, "spec", "ports", NULL)),
           S("[{\"port\":80,\"targetPort\":\"hi\"}]"));

    auto_buf struct buf secret = { 0 }, entry = { 0 };
    put(&entry, 1, S("k"));
    put(&entry, 2, (str){ "\0\xff", 2 });
    put(&secret, 2, buf_str(&entry));
    OK_CALL(decode(&a, "v1", "Secret", buf_str(&secret), &object, &e), &e);
    EQ_STR(json_text(json_at(object, "data", "k", NULL)), S("AP8="));

    OK_CALL(decode(&a, "v1", "DeleteOptions", (str){ "\x08\x05", 2 }, &object, &e), &e);
    EQ_INT(json_int(json_get(object, "gracePeriodSeconds"), 0), 5);
}

static void malformed_bodies_are_refused(void)
{
    static const str bodies[] = {
        { "k8s", 4 },           { "k8s\0\x0a\x7f", 6 }, { "junk", 4 },
        { "k8s\0\xff\xff", 6 }, { "k8s\0\x0b", 5 },
    };
    auto_arena struct arena a = { 0 };
    struct json *object = NULL;
    err_t e;
    EQ_INT(protobuf_decode(&a, bodies[0], &object, &e), -ENOTSUP); /* of no kind at all */
    for (size_t i = 1; i < countof(bodies); i++)
        EQ_INT(protobuf_decode(&a, bodies[i], &object, &e), -EINVAL);
    EQ_INT(decode(&a, "example.com/v1", "Widget", S(""), &object, &e), -ENOTSUP);
    EQ_INT(decode(&a, "v1", "ConfigMap", (str){ "\x0a\x7f", 2 }, &object, &e), -EINVAL);
    EQ_INT(decode(&a, "v1", "ConfigMap", (str){ "\x08\x01", 2 }, &object, &e), -EINVAL);
    /* unknown field numbers are skipped */
    OK_CALL(decode(&a, "v1", "ConfigMap", (str){ "\xf8\x07\x01", 3 }, &object, &e), &e);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(bodies_of_real_clients_decode),
        TAP(templates_and_embedded_fields_decode),
        TAP(wrapped_values_decode),
        TAP(malformed_bodies_are_refused),
        { 0 },
    });
}
