/* The scale-to-zero ConfigMap: which models may scale to zero, and after how long without a
 * request. */
#ifndef FLYBALL_ZERO_CORE_H
#define FLYBALL_ZERO_CORE_H

#include "../../json/json.h"

struct zero_entry {
    str key;   /* in the ConfigMap */
    str model; /* "default": for all models without an entry */
    str model_id, ns, retention;
    bool has_enabled, enabled;
};

struct zero_table {
    const struct zero_entry *at; /* sorted by model */
    size_t n;
};

struct zero_load {
    struct zero_table table;
    str problems; /* which entries are invalid, and why; "": none */
};

/* Of several entries for one model the first by key wins. An entry that cannot be read is replaced
 * by that of the same key in `before`, if there is one. The result lives in the arena. */
struct zero_load zero_table_load(struct arena *a, const struct json *data,
                                 const struct zero_table *before);

/* `otherwise` is used if neither the entry of the model nor `default` sets it. */
bool zero_enabled(const struct zero_table *table, str model, bool otherwise);
int64_t zero_retention_ns(const struct zero_table *table, str model); /* default: 10 minutes */

#endif
