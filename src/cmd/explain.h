/* flyball explain: why a feature made a decision, from the objects in the cluster and the same
 * pure code that the controllers run. Each feature has one file, explain_<feature>.c. */
#ifndef FLYBALL_CMD_EXPLAIN_H
#define FLYBALL_CMD_EXPLAIN_H

#include "../base/buf.h"
#include "../kube/cache.h"
#include "../kube/client.h"

struct explain {
    struct loop *loop;
    struct kube *kube;
    struct arena arena;      /* owns the fetched objects */
    str ns, name;            /* of the object */
    str kind;                /* of the object, once fetched; "": not known yet */
    int64_t at;              /* the time to explain, in seconds since 1970 */
    const char *operator_ns; /* where shared calendars are; NULL: flyball-system */
    struct buf out;          /* the text to print */
};

struct explainer {
    const char *const *words; /* names that users may give the kind; ends with NULL */
    const char *help;         /* one line */
    int (*run)(struct explain *x, err_t *e);
    const struct resource *resource; /* of the objects that the name refers to */
};

struct explain_cluster { /* flags that select the cluster */
    const char *kubeconfig, *context, *ns;
    bool insecure_token;
};

/* The flags that all commands on a cluster have, for their tables; the namespace means something else in each. */
#define EXPLAIN_CLUSTER_FLAGS(cluster)                                                             \
    { "kubeconfig", "FILE", FLAG_TEXT, &(cluster).kubeconfig, "Path of the kubeconfig" },          \
        { "context", "NAME", FLAG_TEXT, &(cluster).context,                                        \
          "Context of the kubeconfig (default: the current one)" },                                \
        { "allow-insecure-token", NULL, FLAG_BOOL, &(cluster).insecure_token,                      \
          "Send the token over plain HTTP, even to a host that is not loopback" }

/* Uses the same kubeconfig rules as the operator, so that both see the same cluster. Release with explain_close(), also
 * after a failure. */
int explain_open(struct explain *x, const struct explain_cluster *cluster, err_t *e);
void explain_close(struct explain *x);
void explain_print(struct explain *x); /* x->out, without control characters */

/* A copy without control characters, which objects of other users may hold: a terminal would obey them. */
str explain_clean(struct arena *a, str text);

/* Sends any request and runs the loop until the reply arrives. -ENOENT: not found. */
int explain_send(struct explain *x, struct kube_request request, struct json **ret, err_t *e);
/* The same for a GET. */
int explain_fetch(struct explain *x, struct kube_request request, struct json **ret, err_t *e);

/* Fetches one object, or a list if the name is empty, and waits for it. -ENOENT: not found. */
int explain_get(struct explain *x, const struct resource *resource, str ns, str name,
                struct json **ret, err_t *e);

/* Fetches the objects of all namespaces that have this label. */
int explain_list(struct explain *x, const struct resource *resource, str label, struct json **ret,
                 err_t *e);

/* Fetches the objects of all namespaces that this field selector matches. */
int explain_list_by_field(struct explain *x, const struct resource *resource, str selector,
                          struct json **ret, err_t *e);

/* The record that a controller's cache would hold, for the pure code that decides; free it with
 * explain_record_done(). record NULL: there is no object, or it cannot be read. */
struct explain_record {
    struct projector *projector;
    struct projection *projection;
    struct record *record;
};
struct explain_record explain_record_make(struct explain *x, const struct cache_spec *cache,
                                          const struct json *object);
void explain_record_done(struct explain_record *r);

extern const struct explainer explain_aimcache;
extern const struct explainer explain_aimconfig;
extern const struct explainer explain_aimmodel;
extern const struct explainer explain_aimtemplate;
extern const struct explainer explain_hpa;
extern const struct explainer explain_market;
extern const struct explainer explain_node;
extern const struct explainer explain_nodes;
extern const struct explainer explain_pod;
extern const struct explainer explain_saturation;
extern const struct explainer explain_runtimeconfig;
extern const struct explainer explain_schedule;

#endif
