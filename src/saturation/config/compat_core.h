/* The saturation ConfigMap exactly as WVA 0.9 reads it, for comparison: a field of 0 is unset, every
 * entry gets all defaults before it is merged (so that an override also overwrites what it does not
 * mention), an entry that is invalid is dropped, and only `<model>#<namespace>` overrides. What
 * flyball does instead is in config_core.h. */
#ifndef FLYBALL_COMPAT_CORE_H
#define FLYBALL_COMPAT_CORE_H

#include "config_core.h"

struct compat_entry {
    double number[SAT_NUMBER_N];
    double priority;
    str analyzer;             /* analyzerName */
    struct sat_policy policy; /* analyzers with their defaults, limiters, switches */
};

/* -EBADMSG: unreadable; -EINVAL: invalid. */
int compat_entry_load(struct arena *a, str yaml, struct compat_entry *ret, err_t *e);

/* The analyzer that the global default selects for all models; "": by percentages. */
str compat_analyzer(const struct compat_entry *entry);

/* The configuration of a model; both entries may be NULL. */
struct compat_entry compat_resolve(struct arena *a, const struct compat_entry *base,
                                   const struct compat_entry *override);

#endif
