/* From zero: whether requests wait for a model that has no replica, and which of its variants to
 * start for them.
 *
 * The signal is the queue of the gateway's endpoint picker (EPP), which holds requests for a model
 * without endpoints. What cannot be read is unknown, which is neither demand nor idleness. */
#ifndef FLYBALL_WAKE_CORE_H
#define FLYBALL_WAKE_CORE_H

#include "../../base/arena.h"
#include "../objects/text_core.h"

enum wake_demand { WAKE_UNKNOWN, WAKE_IDLE, WAKE_PENDING };

struct wake_sample { /* of one EPP pod */
    str metric;
    str model, target_model; /* labels model_name and target_model_name */
    double value;
};

/* WVA knows only the older name of the metric, requires target_model_name, and takes Inf for a
 * queue. */
enum wake_rules { WAKE_OURS, WAKE_WVA };

enum wake_demand wake_read_demand(const struct wake_sample *samples, size_t n, str model,
                                  enum wake_rules rules);

bool wake_is_queue_metric(str name);

/* ---- the pool of a workload */

struct wake_pool {
    str ns, name;
    const struct text_pair *selector;
    size_t selector_n;
};

/* The pool in the namespace whose selector the labels of the pods satisfy: the most specific, then
 * by name. NULL: none. */
const struct wake_pool *wake_find_pool(const struct wake_pool *pools, size_t n, str ns,
                                       const struct text_pair *labels, size_t label_n);

/* ---- which variant to start */

struct wake_candidate {
    str variant;
    str role; /* "": both */
    double cost;
    int64_t min, max;      /* a max of 0: unbounded */
    bool resolved;         /* its workload exists and is not shared with another model */
    bool has_room;         /* accelerators are free for it, or their number is unknown */
    bool forbidden;        /* by a quota: not even if nodes are added */
    bool failing;          /* its pods could not start recently */
    int64_t start_time_ns; /* observed; 0: unknown */
    int64_t waiting_ns;    /* since it was started without becoming ready; 0: it was not */
};

struct wake_choice {
    size_t at[2]; /* indexes of candidates: one that serves alone, or prefill and decode */
    size_t n;     /* 0: nothing can be started */
    bool slow;    /* another one was started before and is late */
};

struct wake_choice wake_choose(const struct wake_candidate *candidates, size_t n);
/* The replicas to start a candidate with. */
int64_t wake_replicas(const struct wake_candidate *c);

#endif
