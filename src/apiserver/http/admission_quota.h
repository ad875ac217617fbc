/* Quotas at the time of a write: refuses what would exceed one, and charges what is written. */
#ifndef FLYBALL_QUOTA_ADMISSION_H
#define FLYBALL_QUOTA_ADMISSION_H

#include "write.h"

/* Whether all quotas of the namespace have room for the object in place of `old` (NULL: a create). False: answered with
 * 403. */
bool admission_quota_has_room(struct call *c, const struct json *object, const struct json *old);
/* Adds what admission_quota_has_room() found to the quotas; right before the object is staged. */
void admission_quota_charge(struct call *c);

/* What all objects of the namespace use now becomes the status of its quotas. True: one has changed. */
bool admission_quota_count(struct server *s, str ns);

#endif
