/* AIMTemplateCache of the newer generation: which artifacts it takes, which ones it creates, and its state. Pure. */
#ifndef FLYBALL_TEMPLATECACHE_CORE_H
#define FLYBALL_TEMPLATECACHE_CORE_H

#include "engine_core.h"

struct aim_templatecache_facts {
    const char *group;
    const struct json *cache;
    const struct json *template, *cluster_template; /* of the name in the spec; NULL: none */
    const struct json *artifacts;                   /* of the namespace: a list */
    bool config_default_missing;
    bool as_original; /* an artifact without a condition adds no text, as in the original */
};

enum { TEMPLATECACHE_COMPONENTS = 3 };

struct aim_templatecache_state {
    struct aim_engine_component components[TEMPLATECACHE_COMPONENTS];
    size_t n;
    struct json
        *artifacts; /* status.artifacts: name -> {name, model, status, uid, ...}; NULL: none */
    struct json *creates; /* artifacts to create, without owners: a list; NULL: none */
    bool owned;           /* the cache owns what it creates */
};

struct aim_templatecache_state aim_templatecache_state(struct arena *a,
                                                       const struct aim_templatecache_facts *f);

#endif
