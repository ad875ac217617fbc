/* cmd: one file per command. A command parses its flags, calls the library and returns an exit
 * code: 0 success, 1 failure (with one sentence on standard error), 2 usage error, 3 part of the work is
 * left to the user. main.c lists the commands; no other file refers to them.
 *
 *   operator, agent, apiserver, up    long-running: runtime.c has what they share (flags, signals, leader lease)
 *   explain_*                         one file per kind; explain.c finds the object and its events
 *   get                               lists of what has no kind of its own
 *   schedule*, simulate*, render      the cores of the features, without a cluster
 *   install, manifest*                the embedded manifests, printed, applied or checked
 *   check*                            probes of a cluster, one line each; they ask as explain does
 *   envtest                           faces of the API server under the names kube-apiserver and etcd
 *
 * Read first: operator.c, then runtime.h. */
#ifndef FLYBALL_CMD_H
#define FLYBALL_CMD_H

#include "../base/base.h"

struct apiserver_options;

struct command {
    const char *name;
    const char *summary;               /* one line of `flyball help` */
    int (*run)(int argc, char **argv); /* argv[0] is the name of the command */
};

enum { EXIT_USAGE = 2, EXIT_PARTIAL = 3 /* some of the input was left out */ };

int cmd_agent(int argc, char **argv);
int cmd_apiserver(int argc, char **argv);
int cmd_apiserver_run(
    const struct apiserver_options *o); /* until a signal; returns the exit code */
int cmd_check(int argc, char **argv);
int cmd_completion(int argc, char **argv);
int cmd_envtest(int argc, char **argv);
int cmd_envtest_apiserver(int argc, char **argv); /* called as kube-apiserver */
int cmd_envtest_etcd(int argc, char **argv);      /* called as etcd */
int cmd_explain(int argc, char **argv);
int cmd_get(int argc, char **argv);
int cmd_install(int argc, char **argv);
int cmd_operator(int argc, char **argv);
int cmd_render(int argc, char **argv);
int cmd_schedule(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_up(int argc, char **argv);
int cmd_version(int argc, char **argv);

#endif
