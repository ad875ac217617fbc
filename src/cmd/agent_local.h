/* The local mode of `flyball agent`: the market on plain cgroups. */
#ifndef FLYBALL_CMD_AGENT_LOCAL_H
#define FLYBALL_CMD_AGENT_LOCAL_H

#include "../base/base.h"

bool cmd_agent_local_is_requested(int argc, char **argv); /* is --local in argv? */
int cmd_agent_local_run(int argc, char **argv);           /* returns the exit code */

#endif
