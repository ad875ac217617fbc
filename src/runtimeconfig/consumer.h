/* One turn on one object that names a runtime configuration, of any of the seven kinds. The order of the steps:
 *
 *   1. the configuration is resolved: t->config, t->settings (resolution.c)
 *   2. the kind's `observe` reads the caches and sets t->template (service_observe.c)
 *   3. the route is planned and written: t->route (route_controller.c)
 *   4. the kind's `reconcile` creates children (service_, model_, template_, cache_controller.c)
 *   5. when every write of the turn is answered, the kind's `set_status` adds its part to t->status, and the
 *      status is written once, if it changed
 *
 * Everything in a turn lives in r->arena, until the turn ends. */
#ifndef FLYBALL_CONSUMER_H
#define FLYBALL_CONSUMER_H

#include "../base/map.h"
#include "../kube/manager.h"
#include "aim_records.h"
#include "resolve_core.h"
#include "route_core.h"
#include "runtimeconfig_spec.h"
#include "status_core.h"

struct aim;
struct aim_consumers;
struct aim_turn;
struct aim_discovery;
struct aim_tracked;
struct aim_world;

/* What a kind does in addition to resolving its configuration. Any hook may be NULL. */
struct aim_hooks {
    int (*start)(struct aim_consumers *of, err_t *e); /* adds caches and watches */
    void (*observe)(struct aim_turn *t);
    void (*reconcile)(struct aim_turn *t);
    void (*set_status)(struct aim_turn *t);
};

struct aim_consumers { /* all objects of one kind */
    struct aim *aim;
    enum aim_kind kind;
    struct cache *cache;
    struct controller *controller;
    const struct aim_hooks *hooks;
    struct map tracked; /* by "namespace/name"; owned */
};

struct aim_turn {
    struct reconcile *r; /* whose `turn` this is */
    struct aim *aim;
    struct aim_consumers *of;
    struct aim_tracked *tracked;
    struct json *object; /* the object, without managedFields */
    str ns, name, uid;   /* of the object */
    bool deleting;
    struct aim_resolved config;
    struct runtimeconfig_spec settings; /* of the configuration; zero if none applies */
    struct runtimeconfig_spec own;      /* AIMService: the same fields of its own spec */
    struct aim_route_template template; /* AIMService: the template in use; set by `observe` */
    struct aim_route_plan route;        /* AIMService */
    str route_name;                     /* of its HTTPRoute: an adopted one keeps its name */
    bool route_wanted;                  /* the route was written or is up to date */
    str url;                            /* address of the service; empty: unknown */
    int64_t route_generation;           /* of the HTTPRoute; 0: none */
    struct aim_status status;
    struct aim_discovery *discovery; /* templates: see template_discovery.c; NULL: none needed */
    void *view;                      /* state that the hooks of a kind share */
    const char *write_failure;       /* the first failed write, one sentence; NULL: none */
    enum kube_reason write_reason;   /* its cause */
    size_t pending;                  /* unanswered writes, plus one while the turn runs */
    str rv;                          /* resourceVersion of the cached object */
};

/* ---- for the controllers of the kinds */

const struct aim_kinds *aim_kinds_of(const struct aim *aim);
struct manager *aim_manager(const struct aim *aim);
struct aim_consumers *aim_consumers(struct aim *aim, enum aim_kind kind);
struct cache *aim_cache(const struct aim *aim, enum aim_kind kind); /* of any AIM kind */
str aim_operator_namespace(const struct aim *aim);
struct runtimeconfig_metrics;
const struct runtimeconfig_metrics *aim_metrics(const struct aim *aim);
struct aim_world *aim_world(struct aim *aim); /* the caches of other kinds: service_world.h */
/* The configuration for an object in `ns` that names this one; copied into the arena. */
struct aim_resolved aim_resolve(const struct aim *aim, struct arena *a, str ns, str config_name);

/* Server-side apply of a child, unless it is up to date. `live` is the cached child; NULL: it does not exist.
 * The caller sets the owner. */
void aim_apply(struct aim_turn *t, const struct resource *resource, const struct json *live,
               struct json *desired);
/* The same, owned by the turn's object: it is deleted with it. */
void aim_apply_owned(struct aim_turn *t, const struct resource *resource, const struct json *live,
                     struct json *desired);
/* A child from a cache of struct aim_child_record; NULL: there is none. One that is being deleted counts as absent: its
 * successor may not have the same name yet, so creating it waits. */
const struct json *aim_find_child(struct aim_turn *t, struct cache *cache, str name);
/* Any other request. A failure becomes the turn's failure, except 404 for a delete. */
void aim_send(struct aim_turn *t, const struct kube_request *request);
/* Deletes a Job with its pods, unless another one has the name by now. */
void aim_delete_job(struct aim_turn *t, str ns, str name, str uid);
/* ownerReferences with the turn's object as the controller, for metadata. */
struct json *aim_owner(struct aim_turn *t);

#endif
