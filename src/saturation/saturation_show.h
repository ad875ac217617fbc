/* Publishing decisions: metrics, events and views of variants. See saturation_engine.c for who calls it. */
#ifndef FLYBALL_SATURATION_SHOW_H
#define FLYBALL_SATURATION_SHOW_H

#include "saturation_gather.h"

/* A known condition of a view. */
struct sat_condition saturation_show_condition(bool holds, const char *reason, str message);
struct variant_labels saturation_show_labels(const struct saturation *s, const struct variant *v);

/* Stores the view and queues a status write, unless the view only repeats what is already shown. */
void saturation_show_view(struct saturation *s, struct variant *v, const struct sat_view *view,
                          str reason);
/* Shows why a variant takes no part in the decision. */
void saturation_show_skipped(struct saturation *s, struct arena *a,
                             const struct saturation_skipped *x);
/* Publishes the answer for one variant: metrics, event and status. */
void saturation_show_answer(struct gathering *g, size_t i, const struct decide_answer *x,
                            struct sat_condition metrics);

#endif
