/* The API group external.metrics.k8s.io as text: what a path asks for, and the documents that answer it.
 *
 * The HPA controller finds the group through the API server's aggregation layer: it reads the discovery
 * documents (/apis, /apis/GROUP, /apis/GROUP/v1beta1), then asks for values with
 *
 *   GET /apis/external.metrics.k8s.io/v1beta1/namespaces/NS/METRIC?labelSelector=variant_name%3Da
 *
 * Metric names and labels are those that flyball also exports to Prometheus, so an HPA that was written for
 * prometheus-adapter works unchanged. Paths come from the network; nothing here allocates except from the arena
 * of the request, and every unknown path is EMETRICS_NOT_FOUND, never an assertion. */
#include "emetrics_core.h"

#include "../base/clock.h"
#include "../base/rfc3339.h"

#include <inttypes.h>
#include <math.h>

const char *const emetrics_names[EMETRICS_METRIC_N] = {
    [EMETRICS_DESIRED] = "wva_desired_replicas",
    [EMETRICS_OPTIMIZED] = "workload_optimized_replicas",
    [EMETRICS_RATIO] = "wva_desired_ratio",
};

/* ---- requests */

/* Removes "/NAME" from the front of the path; false: it starts otherwise. */
static bool take_part(str *path, const char *name)
{
    size_t n = strlen(name);
    bool same = path->n > n && path->p[0] == '/' && str_eqc(str_upto(str_from(*path, 1), n), name);
    if (!same || (path->n > n + 1 && path->p[n + 1] != '/'))
        return false;
    *path = str_from(*path, n + 1);
    return true;
}

/* "/namespaces/NS/METRIC" and nothing after it. An unknown metric is a valid request without values. */
static struct emetrics_request parse_values(str rest)
{
    struct emetrics_request r = { .metric = EMETRICS_METRIC_N };
    str part;
    if (!take_part(&rest, "namespaces") || !rest.n)
        return r;
    rest = str_from(rest, 1);
    if (!str_cut(&rest, '/', &r.ns) || !r.ns.n || !rest.p || !str_cut(&rest, '/', &part) ||
        rest.p || !part.n)
        return (struct emetrics_request){ .metric = EMETRICS_METRIC_N };
    r.kind = EMETRICS_VALUES;
    r.metric_name = part;
    for (int i = 0; i < EMETRICS_METRIC_N; i++)
        if (str_eqc(part, emetrics_names[i]))
            r.metric = (enum emetrics_metric)i;
    return r;
}

struct emetrics_request emetrics_parse_path(str path)
{
    struct emetrics_request r = { .metric = EMETRICS_METRIC_N };
    if (str_eqc(path, "/healthz") || str_eqc(path, "/livez") || str_eqc(path, "/readyz"))
        r.kind = EMETRICS_HEALTH;
    else if (str_eqc(path, "/openapi/v2") || str_eqc(path, "/openapi/v3"))
        r.kind = EMETRICS_OPENAPI;
    if (r.kind || !take_part(&path, "apis"))
        return r;
    if (!path.n) {
        r.kind = EMETRICS_GROUPS;
    } else if (take_part(&path, EMETRICS_GROUP)) {
        r.kind = path.n ? EMETRICS_NOT_FOUND : EMETRICS_GROUP_DOC;
        if (take_part(&path, "v1beta1")) {
            r.kind = EMETRICS_RESOURCES;
            if (path.n)
                return parse_values(path);
        }
    }
    return r;
}

static int hex_digit(char c)
{
    return c >= '0' && c <= '9'   ? c - '0'
           : c >= 'a' && c <= 'f' ? c - 'a' + 10
           : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                  : -1;
}

/* Decodes "%XX" and "+" of a query value. */
static int decode_value(struct arena *a, str text, str *ret, err_t *e)
{
    char *out = arena_alloc(a, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '%') {
            out[n++] = text.p[i] == '+' ? ' ' : text.p[i];
            continue;
        }
        int high = i + 2 < text.n ? hex_digit(text.p[i + 1]) : -1;
        int low = high >= 0 ? hex_digit(text.p[i + 2]) : -1;
        if (low < 0)
            return err_set(e, EINVAL, "the query has an invalid percent-encoding");
        out[n++] = (char)(high * 16 + low);
        i += 2;
    }
    *ret = (str){ out, n };
    return 0;
}

int emetrics_parse_selector(struct arena *a, str query, str *ret, err_t *e)
{
    str rest = query, part;
    *ret = S("");
    while (rest.p && str_cut(&rest, '&', &part))
        if (str_starts(part, S("labelSelector=")))
            return decode_value(a, str_from(part, strlen("labelSelector=")), ret, e);
    return 0;
}

/* ---- discovery */

/* The two fields that every document of the API begins with. */
static struct json *start_document(struct arena *a, const char *kind, const char *version)
{
    struct json *doc = json_new_obj(a);
    json_set_str(a, doc, "kind", str_c(kind));
    json_set_str(a, doc, "apiVersion", str_c(version));
    return doc;
}

/* One version, which is also the preferred one. */
static void describe_group(struct arena *a, struct json *group)
{
    struct json *version = json_new_obj(a), *versions = json_new_arr(a);
    json_set_str(a, version, "groupVersion", S(EMETRICS_VERSION));
    json_set_str(a, version, "version", S("v1beta1"));
    json_push(a, versions, version);
    json_set_str(a, group, "name", S(EMETRICS_GROUP));
    json_set(a, group, S("versions"), versions);
    json_set(a, group, S("preferredVersion"), json_copy(a, version));
}

static struct json *list_resources(struct arena *a)
{
    struct json *doc = start_document(a, "APIResourceList", "v1"), *list = json_new_arr(a);
    json_set_str(a, doc, "groupVersion", S(EMETRICS_VERSION));
    for (int i = 0; i < EMETRICS_METRIC_N; i++) {
        struct json *r = json_new_obj(a), *verbs = json_new_arr(a);
        json_push(a, verbs, json_new_str(a, S("get")));
        json_set_str(a, r, "name", str_c(emetrics_names[i]));
        json_set_str(a, r, "singularName", S(""));
        json_set_bool(a, r, "namespaced", true);
        json_set_str(a, r, "kind", S("ExternalMetricValueList"));
        json_set(a, r, S("verbs"), verbs);
        json_push(a, list, r);
    }
    json_set(a, doc, S("resources"), list);
    return doc;
}

/* An empty document: the aggregation layer asks for one, and merges it with its own. */
static struct json *describe_openapi(struct arena *a)
{
    struct json *doc = json_new_obj(a), *info = json_new_obj(a);
    json_set_str(a, doc, "swagger", S("2.0"));
    json_set_str(a, info, "title", S("flyball"));
    json_set_str(a, info, "version", S("v1beta1"));
    json_set(a, doc, S("info"), info);
    json_set(a, doc, S("paths"), json_new_obj(a));
    return doc;
}

struct json *emetrics_discovery(struct arena *a, enum emetrics_kind kind)
{
    if (kind == EMETRICS_RESOURCES)
        return list_resources(a);
    if (kind == EMETRICS_OPENAPI)
        return describe_openapi(a);
    struct json *group = json_new_obj(a);
    if (kind == EMETRICS_GROUP_DOC) {
        group = start_document(a, "APIGroup", "v1");
        describe_group(a, group);
        return group;
    }
    struct json *doc = start_document(a, "APIGroupList", "v1"), *groups = json_new_arr(a);
    describe_group(a, group);
    json_push(a, groups, group);
    json_set(a, doc, S("groups"), groups);
    return doc;
}

/* ---- values */

/* The labels of the metrics that flyball exports; exported_namespace is what Prometheus makes of
 * namespace, so that selectors of an HPA work with both. */
static const struct {
    const char *name;
    size_t at;
} item_labels[] = {
    { "variant_name", offsetof(struct emetrics_item, variant) },
    { "namespace", offsetof(struct emetrics_item, ns) },
    { "exported_namespace", offsetof(struct emetrics_item, ns) },
    { "accelerator_type", offsetof(struct emetrics_item, accelerator) },
    { "model_id", offsetof(struct emetrics_item, model) },
    { "variant", offsetof(struct emetrics_item, variant) },
    { "deployment", offsetof(struct emetrics_item, target) },
};

/* Labels are read from the item by offset; every label exists, so a selector can only compare values. */
bool emetrics_get_label(const void *labels, str key, str *ret_value)
{
    for (size_t i = 0; i < countof(item_labels); i++)
        if (str_eqc(key, item_labels[i].name)) {
            memcpy(ret_value, (const char *)labels + item_labels[i].at, sizeof(str));
            return true;
        }
    return false;
}

/* An ExternalMetricValueList without items yet. */
struct json *emetrics_list(struct arena *a)
{
    struct json *doc = start_document(a, "ExternalMetricValueList", EMETRICS_VERSION);
    json_set(a, doc, S("metadata"), json_new_obj(a));
    json_set(a, doc, S("items"), json_new_arr(a));
    return doc;
}

/* A ratio in thousandths, as a quantity; without a replica it is the desired number, as exported. */
static str show_ratio(struct arena *a, const struct emetrics_item *item)
{
    if (item->current <= 0)
        return arena_printf(a, "%" PRId64, item->desired);
    double milli = round(1000.0 * (double)item->desired / (double)item->current);
    return arena_printf(a, "%.0fm", milli);
}

void emetrics_add(struct arena *a, struct json *list, enum emetrics_metric metric,
                  const struct emetrics_item *item)
{
    struct json *value = json_new_obj(a), *labels = json_new_obj(a);
    char time[RFC3339_TEXT_MAX];
    for (size_t i = 0; i < countof(item_labels); i++) {
        str text;
        emetrics_get_label(item, str_c(item_labels[i].name), &text);
        json_set_str(a, labels, item_labels[i].name, text);
    }
    json_set_str(a, value, "metricName", str_c(emetrics_names[metric]));
    json_set(a, value, S("metricLabels"), labels);
    json_set_str(a, value, "timestamp", rfc3339_text(item->decided_ns / NS_PER_S, time));
    json_set_str(a, value, "value",
                 metric == EMETRICS_RATIO ? show_ratio(a, item)
                                          : arena_printf(a, "%" PRId64, item->desired));
    json_push(a, json_get(list, "items"), value);
}

struct json *emetrics_status(struct arena *a, int code, const char *reason, str message)
{
    struct json *doc = start_document(a, "Status", "v1");
    json_set(a, doc, S("metadata"), json_new_obj(a));
    json_set_str(a, doc, "status", S("Failure"));
    json_set_str(a, doc, "message", message);
    json_set_str(a, doc, "reason", str_c(reason));
    json_set_int(a, doc, "code", code);
    return doc;
}
