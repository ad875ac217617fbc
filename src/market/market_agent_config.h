/* The node agent's configuration at run time: defaults, overridden by the ConfigMap, overridden
 * by the environment. An invalid value is reported, and its last valid one stays in effect; if
 * the result as a whole is invalid, nothing changes. */
#ifndef FLYBALL_MARKET_AGENT_CONFIG_H
#define FLYBALL_MARKET_AGENT_CONFIG_H

#include "market_spec.h"

struct agent_config {
    struct market_config market; /* in effect; its strings live in the arena */
    struct arena arena;
    struct json *good; /* the values of the ConfigMap that are in effect, by key */
};

struct agent_config_source {
    str data; /* of the ConfigMap, as JSON; empty: no ConfigMap */
    const char *(*environment)(void *context, const char *name);
    void *environment_context;
    market_complain *complain; /* called with one sentence for each value that is ignored */
    void *complain_context;
};

/* Loads the configuration. If the result is invalid, fails and changes nothing. */
int market_agent_config_load(struct agent_config *c, const struct agent_config_source *source,
                             err_t *e);
void market_agent_config_done(struct agent_config *c);

#endif
