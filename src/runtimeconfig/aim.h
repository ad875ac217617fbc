/* The feature's state, for its own files only; the kinds' controllers see consumer.h. */
#ifndef FLYBALL_AIM_H
#define FLYBALL_AIM_H

#include "claims_core.h"
#include "configs.h"
#include "consumer.h"
#include "own_write.h"
#include "runtimeconfig_metrics.h"
#include "service_world.h"

/* What the server answered to our last status write, used until the cache shows it: otherwise a pass
 * that comes in between would tell every event twice. */
#define AIM_ECHO_NS (5 * NS_PER_S)
struct aim_echo {
    char *rv, *status; /* owned; NULL: nothing */
    int64_t until_ns;  /* mono; then the cache is believed whatever it shows */
};

/* One consumer. Lives from its first to its last appearance in the cache. */
struct aim_tracked {
    struct aim_consumers *of;
    char *key; /* owned "namespace/name" */
    str ns, name;
    struct aim_config_link link;   /* under the configuration that governs */
    struct aim_claim_holder claim; /* AIMService: the path it wants */
    bool conflict;                 /* AIMService: somebody else has it */
    unsigned missing;              /* passes in a row without the configuration it names */
    struct aim_echo echo;
    struct aim_own_write status;
    struct map applied;    /* "Kind name" to struct aim_applied, owned */
    struct aim_turn *turn; /* under way, in the turn's arena; NULL: none */
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
    struct aim_world world; /* service_controller.c starts it */
    struct aim_claims claims;
    int64_t conflicts;  /* services whose path another has */
    struct map foreign; /* "namespace/name" of an HTTPRoute to struct aim_foreign_route, owned */
    struct runtimeconfig_metrics metrics;
    bool stopping;
    bool primed; /* all that the caches held at the start is placed */
};

/* Settles where everybody belongs from what the caches hold, once; no turn may begin before. */
void aim_link_all(struct aim *aim); /* runtimeconfig_controller.c */

/* ---- consumer.c: turns */

struct reconciled aim_consumer_reconcile(struct reconcile *r); /* context: struct aim_consumers */
struct aim_tracked *aim_consumer_find(const struct aim_consumers *of, str ns, str name);
struct aim_tracked *aim_consumer_put(struct aim_consumers *of, const struct aim_record *r);
void aim_consumer_drop(struct aim_consumers *of, str ns, str name);
void aim_consumers_done(struct aim_consumers *of);
/* A write of the turn whose answer `then` sees; it must end with aim_turn_answered(). */
void aim_turn_call(struct aim_turn *t, const struct kube_request *request,
                   void (*then)(struct reconcile *r, const struct kube_reply *reply));
void aim_turn_answered(struct aim_turn *t, const struct kube_reply *reply);
struct aim_turn *aim_turn_get(struct reconcile *r); /* NULL when its object went away meanwhile */

/* ---- apply.c: children */

bool aim_apply_covers(const struct json *live, const struct json *desired);
/* aim_apply() with an answer of one's own; true when something was sent. */
bool aim_apply_then(struct aim_turn *t, const struct resource *resource, const struct json *live,
                    struct json *desired,
                    void (*then)(struct reconcile *r, const struct kube_reply *reply));
void aim_apply_forget(struct aim_tracked *tracked); /* a write failed: nothing is known to be so */

/* ---- resolution.c: which configuration */

struct aim_config *aim_resolution_config(const struct aim *aim, str ns, str config_name);
void aim_resolution_turn(struct aim_turn *t);   /* fills config and settings in */
void aim_resolution_status(struct aim_turn *t); /* says so */
/* Puts a consumer where it belongs: under its configuration, and a service at its path. */
void aim_resolution_link(struct aim *aim, struct aim_tracked *tracked, const struct aim_record *r);
str aim_resolution_guard(const struct aim *aim, str config_name); /* requiredPrefix; "": none */

/* ---- route_controller.c */

int aim_route_start(struct aim *aim, err_t *e);
void aim_route_stop(struct aim *aim);
void aim_route_turn(struct aim_turn *t);
void aim_route_status(struct aim_turn *t);
/* What a service wants, from its record alone; answers whether its path cannot be rendered. */
bool aim_route_claim(struct aim *aim, struct aim_tracked *tracked, const struct aim_record *r,
                     const struct aim_config *config);
void aim_route_drop_claim(struct aim *aim, struct aim_tracked *tracked);
void aim_route_track_foreign(
    struct aim *aim, const struct aim_route_record *now); /* a foreign one claims its paths */

/* ---- config_controller.c: status of the configurations themselves */

void aim_config_start(struct aim *aim);
void aim_config_enqueue(struct aim *aim, const struct aim_config *config); /* its numbers changed */

#endif
