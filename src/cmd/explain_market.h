/* What the explainers of the market share: of a PodAllocation (explain_market.c), and of pods and nodes
 * (explain_node.c). */
#ifndef FLYBALL_CMD_EXPLAIN_MARKET_H
#define FLYBALL_CMD_EXPLAIN_MARKET_H

#include "explain.h"

static inline str explain_text_at(const struct json *object, const char *part, const char *field)
{
    return json_text(json_at(object, part, field, NULL));
}

/* From the label that the agent sets; empty for an allocation of an older agent. */
static inline str explain_market_node_name(const struct json *allocation)
{
    return json_text(json_at(allocation, "metadata", "labels", "mbcas.io/node", NULL));
}

/* The PodAllocation that has the name to explain, or whose pod has it. NULL: there is none. */
const struct json *explain_market_find(const struct explain *x, const struct json *list);

/* Shows one PodAllocation and the market that it is part of. `list`: all PodAllocations. */
int explain_market_put(struct explain *x, const struct json *list, const struct json *allocation,
                       err_t *e);

/* Shows the market of a node. `node` may be NULL, if the user may not read it; `marked_uid` is the PodAllocation to mark,
 * or empty. */
void explain_market_put_node(struct explain *x, const struct json *list, str node_name,
                             const struct json *node, str marked_uid);

#endif
