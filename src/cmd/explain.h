/* flyball explain: why a feature made a decision, from the objects in the cluster and the same
 * pure code that the controllers run. Each feature has one file, explain_<feature>.c. */
#ifndef FLYBALL_CMD_EXPLAIN_H
#define FLYBALL_CMD_EXPLAIN_H

#include "../base/buf.h"
#include "../kube/client.h"

struct explain {
    struct loop *loop;
    struct kube *kube;
    struct arena arena; /* owns the fetched objects */
    str ns, name;       /* of the object */
    str kind;           /* of the object, once fetched; "": not known yet */
    int64_t at;         /* the time to explain, in seconds since 1970 */
    struct buf out;     /* the text to print */
};

struct explainer {
    const char *const *words; /* names that users may give the kind; ends with NULL */
    const char *help;         /* one line */
    int (*run)(struct explain *x, err_t *e);
};

/* Appends the last events about the object, newest last. */
int explain_changes(struct explain *x, err_t *e);

/* Fetches one object, or a list if the name is empty, and waits for it. -ENOENT: not found. */
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
