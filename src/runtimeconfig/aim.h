/* The state of the feature, for its own files only; the controllers of the kinds include consumer.h. */
#ifndef FLYBALL_AIM_H
#define FLYBALL_AIM_H

#include "../kube/own_write.h"
#include "claims_core.h"
#include "configs.h"
#include "consumer.h"
#include "discovery_core.h"
#include "runtimeconfig_metrics.h"
#include "service_world.h"

/* How long our own status is used if the watch does not deliver it; then the cache counts in any case. */
#define AIM_OWN_WRITE_NS (5 * NS_PER_S)

/* One object that names a configuration. Exists as long as the cache has it. */
struct aim_sync;
struct aim_tracked {
    struct aim_consumers *of;
    char *key; /* owned "namespace/name" */
    str ns, name;
    struct aim_config_link link;   /* in the list of its configuration */
    struct aim_claim_holder claim; /* AIMService: the path that it claims */
    bool conflict;                 /* AIMService: an older service or route owns the path */
    unsigned missing;              /* consecutive passes in which its configuration did not exist */
    struct own_write status;       /* JSON */
    struct aim_inspection *inspection; /* models: of their image; NULL: none yet; owned */
    struct aim_sync *sync;             /* model sources; NULL: none yet; owned */
    struct map applied;                /* "Kind name" to struct aim_applied; owned */
};

/* A discovery Job that was created and may not be in the cache yet; it counts as running meanwhile. */
struct aim_recent_job {
    uint64_t key; /* hash of namespace and name; 0: none */
    int64_t until_ns;
};

/* The last artifact whose volume a quota allowed; it counts until the cache shows the volume. */
struct aim_quota_grant {
    char uid[64];
    int64_t until_ns;
};

struct aim {
    struct manager *manager;
    const struct aim_kinds *kinds;
    char *operator_ns; /* owned */
    enum aim_path_encoding encoding;
    struct aim_consumers consumers[AIM_CONSUMER_N];
    struct cache *caches[AIM_KIND_N];
    struct controller *config_controllers[2]; /* of AIM_CONFIG and AIM_CLUSTER_CONFIG */
    struct aim_configs configs;
    struct cache *routes, *gateways;
    struct aim_world world; /* started by service_controller.c */
    struct aim_claims claims;
    int64_t conflicts;  /* number of services whose path another one owns */
    struct map foreign; /* "namespace/name" of an HTTPRoute to struct aim_foreign_route; owned */
    struct aim_recent_job recent_jobs[DISCOVERY_JOBS_MAX];
    struct aim_quota_grant quota_grant;
    struct registry_inspector *inspector; /* of images; NULL: disabled */
    struct runtimeconfig_metrics metrics;
    bool stopping;
    bool primed; /* aim_link_all() has run */
};

/* Links every cached object to its configuration and path, once. Must run before the first turn. */
void aim_link_all(struct aim *aim); /* runtimeconfig_controller.c */

/* ---- consumer.c: turns */

struct reconciled aim_consumer_reconcile(struct reconcile *r); /* context: struct aim_consumers */
struct aim_tracked *aim_consumer_find(const struct aim_consumers *of, str ns, str name);
struct aim_tracked *aim_consumer_put(struct aim_consumers *of, const struct aim_record *r);
void aim_consumer_drop(struct aim_consumers *of, str ns, str name);
void aim_consumers_done(struct aim_consumers *of);
/* Sends a request of the turn; `then` receives the answer and must end with aim_turn_answered(). */
void aim_turn_call(struct aim_turn *t, const struct kube_request *request,
                   void (*then)(struct reconcile *r, const struct kube_reply *reply));
void aim_turn_answered(struct aim_turn *t, const struct kube_reply *reply);

/* ---- aim_apply.c: children */

bool aim_apply_covers(const struct json *live, const struct json *desired);
/* aim_apply() with a callback for the answer; true if a request was sent. */
bool aim_apply_then(struct aim_turn *t, const struct resource *resource, const struct json *live,
                    struct json *desired,
                    void (*then)(struct reconcile *r, const struct kube_reply *reply));
void aim_apply_forget(
    struct aim_tracked *tracked); /* after a failed write the state of the children is unknown */

/* ---- resolution.c: which configuration */

struct aim_config *aim_resolution_config(const struct aim *aim, str ns, str config_name);
void aim_resolution_turn(struct aim_turn *t);   /* sets t->config and t->settings */
void aim_resolution_status(struct aim_turn *t); /* sets ConfigResolved and the references */
/* Links a consumer to its configuration, and claims the path of a service. */
void aim_resolution_link(struct aim *aim, struct aim_tracked *tracked, const struct aim_record *r);
str aim_resolution_guard(const struct aim *aim, str config_name); /* requiredPrefix; "": none */

/* ---- route_controller.c */

int aim_route_start(struct aim *aim, err_t *e);
void aim_route_stop(struct aim *aim);
void aim_route_turn(struct aim_turn *t);
void aim_route_status(struct aim_turn *t);
/* Claims the path that a service wants, from its record alone; true if its configuration's template fails. */
bool aim_route_claim(struct aim *aim, struct aim_tracked *tracked, const struct aim_record *r,
                     const struct aim_config *config);
void aim_route_drop_claim(struct aim *aim, struct aim_tracked *tracked);
void aim_route_track_foreign(
    struct aim *aim,
    const struct aim_route_record *now); /* a route that is not ours claims its paths */

/* ---- config_controller.c: status of the configurations themselves */

void aim_config_start(struct aim *aim);
void aim_config_enqueue(struct aim *aim, const struct aim_config *config); /* its counts changed */

#endif
