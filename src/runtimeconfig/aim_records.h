/* What the watch caches keep of the kinds of AIM, of HTTPRoutes and of Gateways. */
#ifndef FLYBALL_AIM_RECORDS_H
#define FLYBALL_AIM_RECORDS_H

#include "../json/json.h"
#include "../kube/cache.h"
#include "aim_kinds.h"

/* Of every kind of AIM. */
struct aim_record {
    struct record meta;
    str labels, annotations, finalizers, owners, spec, status; /* JSON; "" where absent */
    str config_name;                                           /* spec.runtimeConfigName */
    str model_name;                                            /* templates: spec.modelName */
    str image;                                                 /* models: spec.image */
    str word;                                                  /* status.status */
    str created;                                               /* as written */
    int64_t generation, created_ns;
    bool deleting;
};

enum { AIM_INDEX_CONFIG, AIM_INDEX_MODEL, AIM_INDEX_IMAGE }; /* for cache_each_in() */

struct aim_route_record {
    struct record meta;
    str labels, annotations, owners, spec, parents; /* JSON; "" where absent */
    str managed_by, owner_kind, owner_uid, owner_name;
    int64_t generation, created_ns;
};

/* Without the listeners' status, which changes with every route. */
struct aim_gateway_record {
    struct record meta;
    str listeners, addresses; /* JSON */
};

struct cache_spec aim_cache_spec(const struct resource *resource);
extern const struct cache_spec aim_route_cache, aim_gateway_cache;

/* The objects as the API server holds them, as far as they are kept. */
struct json *aim_record_object(struct arena *a, const struct resource *resource,
                               const struct aim_record *r);
struct json *aim_route_record_object(struct arena *a, const struct aim_route_record *r);

/* Did anything change but the status? Our own writes there need no new pass. */
bool aim_record_has_changed(const struct aim_record *old, const struct aim_record *now);

#endif
