/* The local mode of `flyball agent`. */
#ifndef FLYBALL_CMD_AGENT_LOCAL_H
#define FLYBALL_CMD_AGENT_LOCAL_H

#include "../base/base.h"

bool agent_is_local(int argc, char **argv); /* is --local among the flags? */
int agent_local(int argc, char **argv);     /* the exit code */

#endif
