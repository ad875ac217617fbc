/* The fields that the watch caches keep of the AIM kinds, of HTTPRoutes and of Gateways. */
#ifndef FLYBALL_AIM_RECORDS_H
#define FLYBALL_AIM_RECORDS_H

#include "../json/json.h"
#include "../kube/cache.h"
#include "aim_kinds.h"

/* For all AIM kinds. */
struct aim_record {
    struct record meta;
    str labels, annotations, finalizers, owners, spec, status; /* JSON; "" where absent */
    str config_name;                                           /* spec.runtimeConfigName */
    str model_name;                                            /* templates: spec.modelName */
    str image;                                                 /* models: spec.image */
    str route_group;                                           /* services: spec.routing.group */
    str word;                                                  /* status.status */
    str created;                                               /* creationTimestamp as text */
    int64_t generation, created_ns;
    bool deleting;
};

enum { AIM_INDEX_CONFIG, AIM_INDEX_MODEL, AIM_INDEX_IMAGE }; /* for cache_each_in() */

enum { AIM_ROUTE_INDEX_OWNER }; /* of HTTPRoutes, by the uid of their owner */

struct aim_route_record {
    struct record meta;
    str labels, annotations, owners, spec, parents; /* JSON; "" where absent */
    str managed_by, owner_kind, owner_uid, owner_name;
    int64_t generation, created_ns;
};

/* The status of the listeners is left out: it changes with every route. */
struct aim_gateway_record {
    struct record meta;
    str listeners, addresses; /* JSON */
};

struct cache_spec aim_cache_spec(const struct resource *resource);
extern const struct cache_spec aim_route_cache, aim_gateway_cache;

/* The object as a tree in the arena, with the fields that the cache keeps. */
struct json *aim_record_object(struct arena *a, const struct resource *resource,
                               const struct aim_record *r);
struct json *aim_route_record_object(struct arena *a, const struct aim_route_record *r);

/* Did anything but the status change? Our own status writes need no new pass. */
bool aim_record_has_changed(const struct aim_record *old, const struct aim_record *now);

#endif
