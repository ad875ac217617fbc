/* Pieces of the maps from changes to keys, shared by the kinds' controllers. Their controllers' context is struct
 * aim_consumers. */
#ifndef FLYBALL_SERVICE_WATCH_H
#define FLYBALL_SERVICE_WATCH_H

#include "consumer.h"

/* A child (struct aim_child_record) leads to its owner, if that is of the controller's kind. */
void aim_watch_on_child_change(struct controller *c, const struct record *old,
                               const struct record *now);

/* Does the object name this, in its spec or status? */
bool aim_watch_mentions(const struct aim_record *r, str name);
/* Did anything change that others may look at? */
bool aim_watch_has_changed(const struct aim_record *old, const struct aim_record *now);
/* Adds the consumers of the namespace (empty: of all) that name one of these. */
void aim_watch_enqueue_mentioning(const struct aim_consumers *of, str ns, const str *names,
                                  size_t n);

#endif
