/* The node agent's configuration while it runs: defaults, then the ConfigMap, then the environment. A bad
 * value is told and its last good one stays; a whole that cannot be used is told and nothing changes. */
#ifndef FLYBALL_MARKET_AGENT_CONFIG_H
#define FLYBALL_MARKET_AGENT_CONFIG_H

#include "market_spec.h"

struct agent_config {
    struct market_config market; /* in force; its texts live in the arena */
    struct arena arena;
    struct json *good; /* the ConfigMap's values that are in force, by key */
};

struct agent_config_source {
    str data; /* of the ConfigMap, JSON; empty: there is none */
    const char *(*environment)(void *context, const char *name);
    void *environment_context;
    market_complain *complain; /* one sentence for each value that is ignored */
    void *complain_context;
};

/* Reads anew. Fails, changing nothing, when the result cannot be used. */
int market_agent_config_load(struct agent_config *c, const struct agent_config_source *source,
                             err_t *e);
void market_agent_config_done(struct agent_config *c);

#endif
