/* Mapping changes to keys, shared by the controllers of the kinds. The context of their controllers is struct
 * aim_consumers. */
#ifndef FLYBALL_SERVICE_WATCH_H
#define FLYBALL_SERVICE_WATCH_H

#include "consumer.h"

/* A child (struct aim_child_record) changed: enqueues its owner, if that is of the controller's kind. */
void aim_watch_on_child_change(struct controller *c, const struct record *old,
                               const struct record *now);

/* Did anything change that other objects depend on? */
bool aim_watch_has_changed(const struct record *old, const struct record *now);
/* Enqueues the consumers of the namespace (empty: all) that mention one of these names. */
void aim_watch_enqueue_mentioning(const struct aim_consumers *of, str ns, const str *names,
                                  size_t n);

#endif
