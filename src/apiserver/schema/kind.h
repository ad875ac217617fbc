/* A served resource as data: its names, verbs, subresources, columns and schema. The built-in kinds are
 * listed in kinds/kinds.c; a CustomResourceDefinition makes others at run time. Discovery, OpenAPI and
 * printing need no more than this. */
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
    KIND_FINALIZE,
    KIND_BINDING, /* this and the following are only posted to */
    KIND_EVICTION,
    KIND_TOKEN,
    KIND_SUB_N
};
extern const char *const kind_sub_names[KIND_SUB_N]; /* in paths */

struct kind_hooks; /* what a built-in kind does beyond its schema; see kind_hooks.h */

struct kind_column {
    const char *name, *type, *format, *description;
    int priority;
    const struct jsonpath *find; /* of a custom resource's column; NULL for built-in kinds */
};

struct kind_selectable { /* a field selector the kind knows, beside metadata.name/.namespace */
    str label;           /* "spec.nodeName" */
    str path;            /* where it is; mostly the same */
    str value_if_absent; /* what an unset field compares as: "" or "0" or "false" */
};

struct kind {
    str group; /* "" for core */
    str version;
    str kind, list_kind, plural, singular;
    const str *short_names, *categories; /* n_* of them */
    uint32_t n_short_names, n_categories;
    bool namespaced;
    bool custom;                 /* of a CustomResourceDefinition */
    unsigned verbs;              /* of enum kind_verb */
    unsigned subresources;       /* bit 1 << enum kind_sub */
    bool has_generation;         /* metadata.generation is kept */
    bool create_on_update;       /* PUT of a missing object makes it */
    bool unconditional_update;   /* PUT may come without a resourceVersion */
    bool delete_returns_object;  /* DELETE answers with the object, not with a Status */
    bool answer_only;            /* created, answered, never stored (SelfSubjectAccessReview) */
    bool orphans_by_default;     /* a delete that says nothing leaves what the object owns */
    bool owns_nothing;           /* a delete needs no word about that */
    const struct schema *schema; /* of the whole object */
    const struct json *openapi;  /* of a custom resource: its schema as written; or NULL */
    const struct kind *storage;  /* the version objects are stored as; itself in most kinds */
    const struct kind_column *columns; /* n_columns */
    uint32_t n_columns;
    /* Pushes one cell for each column; NULL: each column has a path. */
    void (*cells)(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells);
    const struct kind_selectable *selectable;
    uint32_t n_selectable;
    str scale_spec_path, scale_status_path, scale_selector_path; /* ".spec.replicas", or empty */
    bool deprecated;
    str deprecation_warning; /* sent with every answer of a deprecated custom version */
    bool has_rules;          /* CEL rules that are not enforced: warn when the CRD is written */
    const struct kind_hooks *hooks; /* NULL for custom resources */
};

#endif
