/* A served resource as data: its names, verbs, subresources, columns and schema. The built-in kinds are
 * listed in kinds/kinds.c; a CustomResourceDefinition adds others at run time. Discovery, OpenAPI and
 * tables need nothing else. */
#ifndef FLYBALL_APISERVER_KIND_H
#define FLYBALL_APISERVER_KIND_H

#include "../../json/jsonpath.h"
#include "schema.h"

enum kind_verb {
    KIND_CREATE = 1,
    KIND_DELETE = 2,
    KIND_DELETECOLLECTION = 4,
    KIND_GET = 8,
    KIND_LIST = 16,
    KIND_PATCH = 32,
    KIND_UPDATE = 64,
    KIND_WATCH = 128,
    KIND_ALL_VERBS = 255,
};

enum kind_sub {
    KIND_MAIN,
    KIND_STATUS,
    KIND_SCALE,
    KIND_RESIZE,
    KIND_EPHEMERAL, /* ephemeral containers of a pod */
    KIND_APPROVAL,  /* of a certificate signing request */
    KIND_LOG,       /* GET only, text */
    KIND_FINALIZE,
    KIND_BINDING, /* this one and the following accept POST only */
    KIND_EVICTION,
    KIND_TOKEN,
    KIND_SUB_N
};
extern const char *const kind_sub_names[KIND_SUB_N]; /* the last segment of the path */

struct cel_validator;
struct kind_hooks; /* behavior of a built-in kind beyond its schema; see kinds/kind_hooks.h */

struct kind_column {
    const char *name, *type, *format, *description;
    int priority;
    const struct jsonpath
        *find; /* where a custom resource has the value; NULL for built-in kinds */
};

struct kind_selectable { /* a supported field selector besides metadata.name and .namespace */
    str label;           /* "spec.nodeName" */
    str path;            /* of the value; usually the label */
    str value_if_absent; /* what an unset field compares as, such as "false"; "@path": another field */
};

struct kind {
    str group; /* "" for core */
    str version;
    str kind, list_kind, plural, singular;
    const str *short_names, *categories; /* n_* of them */
    uint32_t n_short_names, n_categories;
    bool namespaced;
    bool custom;                /* defined by a CustomResourceDefinition */
    unsigned verbs;             /* of enum kind_verb */
    unsigned subresources;      /* bit 1 << enum kind_sub */
    bool has_generation;        /* metadata.generation counts changes of the spec */
    bool create_on_update;      /* PUT creates an object that does not exist */
    bool unconditional_update;  /* PUT works without a resourceVersion */
    bool delete_returns_object; /* DELETE returns the object, not a Status */
    bool answer_only;        /* never stored; POST returns the result (SelfSubjectAccessReview) */
    bool orphans_by_default; /* DELETE without propagationPolicy orphans dependents */
    bool owns_nothing;       /* DELETE never waits for dependents */
    const struct schema *schema;       /* of the whole object */
    const struct cel_validator *rules; /* x-kubernetes-validations of a custom resource; or NULL */
    const struct json
        *openapi; /* schema of a custom resource as its definition states it; or NULL */
    const struct kind *storage; /* the version that is stored; most kinds: itself */
    const struct json *
        conversion; /* webhook that converts versions of a custom resource; NULL: apiVersion is all that
                                    * differs */
    int64_t generation;                /* of the definition of a custom resource */
    const struct kind_column *columns; /* n_columns */
    uint32_t n_columns;
    /* Appends one cell per column; NULL: each column has a path. */
    void (*cells)(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells);
    const struct kind_selectable *selectable;
    uint32_t n_selectable;
    str scale_spec_path, scale_status_path, scale_selector_path; /* ".spec.replicas", or empty */
    bool deprecated;
    str deprecation_warning;        /* sent with every response of a deprecated custom version */
    const struct kind_hooks *hooks; /* NULL for custom resources */
};

#endif
