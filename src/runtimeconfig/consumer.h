/* One turn on one object that names a runtime configuration, of whichever of the six kinds. It is the
 * place where the two halves of the feature meet:
 *
 *   1. the configuration is resolved: t->config, t->settings (resolution.c)
 *   2. the kind's `observe` looks at the world and fills in t->template (service_controller.c)
 *   3. the route is planned and written: t->route (route_controller.c)
 *   4. the kind's `reconcile` makes children (service_, model_, template_, cache_controller.c)
 *   5. when every write of the turn was answered, the kind's `finish` says its part of t->status, and
 *      the status is written once, if it changed
 *
 * Everything in a turn lives in r->arena, until the turn is over. */
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
struct aim_tracked;
struct aim_world;

/* What a kind does beside resolving its configuration. All may be NULL. */
struct aim_hooks {
    int (*start)(struct aim_consumers *of, err_t *e); /* more caches and watches */
    void (*observe)(struct aim_turn *t);
    void (*reconcile)(struct aim_turn *t);
    void (*set_status)(struct aim_turn *t);
};

struct aim_consumers { /* of one kind */
    struct aim *aim;
    enum aim_kind kind;
    struct cache *cache;
    struct controller *controller;
    const struct aim_hooks *hooks;
    struct map tracked; /* by "namespace/name"; owned */
};

struct aim_turn {
    struct reconcile *r;
    struct aim *aim;
    struct aim_consumers *of;
    struct aim_tracked *tracked;
    struct json *object; /* the whole object, without managedFields */
    str ns, name, uid;   /* of it */
    bool deleting;
    struct aim_resolved config;
    struct runtimeconfig_spec settings; /* of the configuration; zero when none governs */
    struct runtimeconfig_spec own;      /* the same fields of an AIMService's own spec */
    struct aim_route_template template; /* AIMService: what serves; `observe` fills it in */
    struct aim_route_plan route;        /* AIMService */
    bool route_wanted;                  /* the plan was carried out */
    str url;                            /* where it is reached; empty: not known */
    int64_t route_generation;           /* of the HTTPRoute; 0: there is none */
    struct aim_status status;
    void *view;                    /* what the kind's hooks tell each other */
    const char *write_failure;     /* the first of the children's, a sentence; NULL: none */
    enum kube_reason write_reason; /* and why */
    size_t pending;                /* what must still be answered before the turn can finish */
    str rv;                        /* of the cached object */
};

/* ---- for the kinds' controllers */

const struct aim_kinds *aim_kinds_of(const struct aim *aim);
struct manager *aim_manager(const struct aim *aim);
struct aim_consumers *aim_consumers(struct aim *aim, enum aim_kind kind);
struct cache *aim_cache(const struct aim *aim, enum aim_kind kind); /* any kind of AIM */
str aim_operator_namespace(const struct aim *aim);
struct aim_world *aim_world(struct aim *aim); /* what is around AIM: service_world.h */
/* Which configuration somebody in `ns` gets who names this one; copied into the arena. */
struct aim_resolved aim_resolve(const struct aim *aim, struct arena *a, str ns, str config_name);

/* Server-side apply of a child, unless it already is so. `live` is the child as the cache has it,
 * NULL: it is not there. The owner is set by who calls. */
void aim_apply(struct aim_turn *t, const struct resource *resource, const struct json *live,
               struct json *desired);
/* Any other request; a failure that is not 404 of a delete counts as the turn's, as with apply. */
void aim_send(struct aim_turn *t, const struct kube_request *request);
/* ownerReferences with the turn's object as the controller, for metadata. */
struct json *aim_owner(struct aim_turn *t);

#endif
