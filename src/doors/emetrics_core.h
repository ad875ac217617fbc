/* The API group external.metrics.k8s.io/v1beta1 as text: what a path asks for, and the documents
 * that answer it. */
#ifndef FLYBALL_EMETRICS_CORE_H
#define FLYBALL_EMETRICS_CORE_H

#include "../base/labels.h"
#include "../json/json.h"

#define EMETRICS_GROUP "external.metrics.k8s.io"
#define EMETRICS_VERSION EMETRICS_GROUP "/v1beta1"

enum emetrics_kind {
    EMETRICS_NOT_FOUND,
    EMETRICS_HEALTH,    /* /healthz, /livez, /readyz */
    EMETRICS_GROUPS,    /* /apis */
    EMETRICS_GROUP_DOC, /* /apis/GROUP */
    EMETRICS_RESOURCES, /* /apis/GROUP/v1beta1 */
    EMETRICS_OPENAPI,   /* /openapi/v2, /openapi/v3 */
    EMETRICS_VALUES,    /* /apis/GROUP/v1beta1/namespaces/NS/METRIC */
};

/* The metrics that are served. */
enum emetrics_metric { EMETRICS_DESIRED, EMETRICS_OPTIMIZED, EMETRICS_RATIO, EMETRICS_METRIC_N };
extern const char *const emetrics_names[EMETRICS_METRIC_N];

struct emetrics_request {
    enum emetrics_kind kind;
    str ns;                      /* of EMETRICS_VALUES */
    str metric_name;             /* as in the path */
    enum emetrics_metric metric; /* EMETRICS_METRIC_N: unknown */
};

struct emetrics_request emetrics_parse_path(str path);
/* The decoded value of `labelSelector` in a query; "" if there is none. -EINVAL: not decodable. */
int emetrics_parse_selector(struct arena *a, str query, str *ret, err_t *e);

/* The document of a discovery path. */
struct json *emetrics_discovery(struct arena *a, enum emetrics_kind kind);

struct emetrics_item { /* a variant, as metrics label it */
    str ns, variant, target, model, accelerator;
    int64_t desired, current;
    int64_t decided_ns; /* wall clock */
};

/* A label of an item, for labels_match(). */
labels_get_fn emetrics_get_label;

struct json *emetrics_list(struct arena *a);
void emetrics_add(struct arena *a, struct json *list, enum emetrics_metric metric,
                  const struct emetrics_item *item);

/* A Status, as the API server sends on failure. */
struct json *emetrics_status(struct arena *a, int code, const char *reason, str message);

#endif
