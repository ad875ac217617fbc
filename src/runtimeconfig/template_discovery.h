/* Discovery of a template's model sources: a Job runs the image of the model, and its log has the answer. */
#ifndef FLYBALL_TEMPLATE_DISCOVERY_H
#define FLYBALL_TEMPLATE_DISCOVERY_H

#include "consumer.h"
#include "template_core.h"

/* Finds out how far discovery is (t->discovery), and sets what is known in `f`, which must live as long as the turn. */
void aim_discovery_observe(struct aim_turn *t, const struct json *model,
                           struct aim_template_facts *f);
/* Creates the Job, reads its log, or deletes it, whatever is next. */
void aim_discovery_advance(struct aim_turn *t);
/* The part of the status that discovery needs in the next turn; an answer of this turn is added to the facts. */
void aim_discovery_set_status(struct aim_turn *t);

/* Enqueues templates when their Jobs and pods change. */
void aim_discovery_watch(struct aim_consumers *of);

#endif
