/* cmd: one file per command. A command parses its flags, calls the library and returns an exit
 * code: 0 success, 1 failure (with one sentence on standard error), 2 usage error. main.c lists
 * the commands; no other file refers to them. */
#ifndef FLYBALL_CMD_H
#define FLYBALL_CMD_H

#include "../base/base.h"

struct command {
    const char *name;
    const char *summary;               /* one line of `flyball help` */
    int (*run)(int argc, char **argv); /* argv[0] is the name of the command */
};

enum { EXIT_USAGE = 2 };

int cmd_agent(int argc, char **argv);
int cmd_apiserver(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_explain(int argc, char **argv);
int cmd_install(int argc, char **argv);
int cmd_operator(int argc, char **argv);
int cmd_render(int argc, char **argv);
int cmd_schedule(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_version(int argc, char **argv);

#endif
