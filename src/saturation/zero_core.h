/* The scale-to-zero ConfigMap: which models may go to zero replicas, and after how long without a
 * request. */
#ifndef FLYBALL_ZERO_CORE_H
#define FLYBALL_ZERO_CORE_H

#include "../json/json.h"

struct zero_entry {
    str key;   /* in the ConfigMap */
    str model; /* "default": for all that have none of their own */
    str model_id, ns, retention;
    bool has_enabled, enabled;
};

struct zero_table {
    const struct zero_entry *at; /* sorted by model */
    size_t n;
};

struct zero_load {
    struct zero_table table;
    str problems; /* which entries do not count, and why; "": all do */
};

/* Keys in byte order; of several for one model the first counts. In the place of what cannot be read stands
 * the entry of that key in `before`, if there is one. Lives in the arena. */
struct zero_load zero_table_load(struct arena *a, const struct json *data,
                                 const struct zero_table *before);

const struct zero_entry *zero_table_find(const struct zero_table *table, str model);

/* `otherwise` holds where neither the model's entry nor `default` says so. */
bool zero_enabled(const struct zero_table *table, str model, bool otherwise);
int64_t zero_retention_ns(const struct zero_table *table, str model); /* 10 minutes unless said */

#endif
