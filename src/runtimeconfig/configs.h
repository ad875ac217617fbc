/* The runtime configurations that there are, each read once and used by all its consumers, and who they
 * are: the reverse index. An edit asks it for exactly those that it concerns. */
#ifndef FLYBALL_CONFIGS_H
#define FLYBALL_CONFIGS_H

#include "../base/map.h"
#include "aim_records.h"
#include "resolve_core.h"
#include "runtimeconfig_spec.h"

struct aim_config;

/* Somebody who is governed; part of who it is. */
struct aim_config_link {
    struct aim_config *config; /* NULL: nothing governs */
    struct aim_config_link *next, *previous;
    enum aim_kind kind;
    bool failing; /* has no path because of its configuration */
    str ns, name; /* the owner's */
};

struct aim_config {
    char *key;    /* owned "namespace/name"; "/name" of the cluster's */
    str ns, name; /* parts of it */
    bool cluster;
    struct arena arena; /* of the object */
    struct aim_resolve_config kept;
    struct runtimeconfig_spec spec;
    struct aim_config_link *first; /* consumers, in no order */
    size_t total, failing, by_kind[AIM_CONSUMER_N];
};

struct aim_configs {
    struct map by_key; /* owned */
};

/* "namespace/name"; "" when it is longer than any the server takes. */
enum { AIM_KEY_MAX = 600 };
str aim_key(char out[static AIM_KEY_MAX], str ns, str name);

void aim_configs_done(struct aim_configs *c);

struct aim_config *aim_configs_find(const struct aim_configs *c, str ns,
                                    str name); /* ns "": the cluster's */
/* Takes over a record. `*ret_changed`: the spec is another one than before, or there was none. */
struct aim_config *aim_configs_put(struct aim_configs *c, const struct resource *resource,
                                   const struct aim_record *r, bool *ret_changed);
/* Its consumers are governed by nothing then. */
void aim_configs_drop(struct aim_configs *c, str ns, str name);

/* Moves a consumer under a configuration (NULL: under none). Answers whether any count changed. */
bool aim_config_link_to(struct aim_config_link *link, struct aim_config *config, bool failing);

#endif
