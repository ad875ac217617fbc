/* cmd: one file a command. A command parses its flags, calls the library and turns the result into
 * an exit code: 0 done, 1 it failed (one sentence on standard error), 2 it was called wrongly.
 * main.c lists the commands; nothing else knows them. */
#ifndef FLYBALL_CMD_H
#define FLYBALL_CMD_H

#include "../base/base.h"

struct command {
    const char *name;
    const char *summary;               /* one line of `flyball help` */
    int (*run)(int argc, char **argv); /* argv[0] is the command's name */
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
