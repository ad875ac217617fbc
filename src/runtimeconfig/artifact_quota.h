/* Storage quotas of artifacts in a turn: may the volume of this artifact be created now? The rule is in quota_core.h. */
#ifndef FLYBALL_ARTIFACT_QUOTA_H
#define FLYBALL_ARTIFACT_QUOTA_H

#include "consumer.h"
#include "engine_core.h"

/* For an artifact without a volume that needs `bytes`. True: create it. `*ret` is the condition StorageQuotaExceeded; its type is
 * empty if no quota applies. Deletes the artifacts that make room; the volume then waits for another turn. */
bool aim_artifact_quota_turn(struct aim_turn *t, int64_t bytes, struct aim_engine_condition *ret);
/* Enqueues the artifacts that wait for room. */
void aim_artifact_quota_enqueue(const struct aim_consumers *of);

#endif
