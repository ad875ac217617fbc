/* flyball explain: why a feature decided as it did, from the objects in the cluster and the same pure
 * code that the controllers run. Each feature has one file, explain_<feature>.c. */
#ifndef FLYBALL_CMD_EXPLAIN_H
#define FLYBALL_CMD_EXPLAIN_H

#include "../base/buf.h"
#include "../kube/client.h"

struct explain {
    struct loop *loop;
    struct kube *kube;
    struct arena arena; /* of what was fetched */
    str ns, name;       /* which object */
    str kind;           /* of it, once it was fetched; "": any of that name */
    int64_t at;         /* seconds since 1970: the moment in question */
    struct buf out;     /* the answer */
};

struct explainer {
    const char *const *words; /* what a user may call the kind; NULL-ended */
    const char *help;         /* one line */
    int (*run)(struct explain *x, err_t *e);
};

/* The last events that speak of the object, newest last: what changed, and when. */
int explain_changes(struct explain *x, err_t *e);

/* Fetches one object and waits for it. -ENOENT: there is none. */
int explain_get(struct explain *x, const struct resource *resource, str ns, str name,
                struct json **ret, err_t *e);

extern const struct explainer explain_aimcache;
extern const struct explainer explain_aimconfig;
extern const struct explainer explain_aimmodel;
extern const struct explainer explain_aimtemplate;
extern const struct explainer explain_market;
extern const struct explainer explain_saturation;
extern const struct explainer explain_runtimeconfig;
extern const struct explainer explain_schedule;

#endif
