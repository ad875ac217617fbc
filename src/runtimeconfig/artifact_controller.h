/* AIMArtifact: the files of one model, downloaded to a volume. */
#ifndef FLYBALL_ARTIFACT_CONTROLLER_H
#define FLYBALL_ARTIFACT_CONTROLLER_H

#include "consumer.h"

extern const struct aim_hooks aim_artifact_hooks;

#endif
