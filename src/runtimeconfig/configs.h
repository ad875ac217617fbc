/* The runtime configurations, each parsed once for all its consumers, and the reverse index: which objects use
 * it. An edit enqueues exactly those. */
#ifndef FLYBALL_CONFIGS_H
#define FLYBALL_CONFIGS_H

#include "../base/list.h"
#include "../base/map.h"
#include "aim_records.h"
#include "resolve_core.h"
#include "runtimeconfig_spec.h"

struct aim_config;

/* A consumer in the list of its configuration; embedded in struct aim_tracked. */
struct aim_config_link {
    struct aim_config *config; /* NULL: no configuration applies */
    struct list_item item;     /* in the list of `config` */
    enum aim_kind kind;
    bool failing; /* has no path because of its configuration */
    str ns, name; /* borrowed from the owner */
};

struct aim_config {
    char *key;    /* owned "namespace/name"; "/name" for a cluster configuration */
    str ns, name; /* parts of `key` */
    bool cluster;
    struct arena arena; /* holds the object */
    struct aim_resolve_config kept;
    struct runtimeconfig_spec spec;
    struct list consumers; /* struct aim_config_link, unordered */
    size_t total, failing, by_kind[AIM_CONSUMER_N];
};

struct aim_configs {
    struct map by_key; /* owned */
};

void aim_configs_done(struct aim_configs *c);

struct aim_config *aim_configs_find(const struct aim_configs *c, str ns,
                                    str name); /* ns "": cluster configuration */
/* Adds or updates a configuration. `*ret_changed`: its spec is new or different. */
struct aim_config *aim_configs_put(struct aim_configs *c, const struct resource *resource,
                                   const struct aim_record *r, bool *ret_changed);
/* Removes a configuration; its consumers are left without one. */
void aim_configs_drop(struct aim_configs *c, str ns, str name);

/* Moves a consumer to a configuration (NULL: none). Returns whether any count changed. */
bool aim_config_link_to(struct aim_config_link *link, struct aim_config *config, bool failing);

#endif
