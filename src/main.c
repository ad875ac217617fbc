/* The table of commands, and the table of features, from which `operator` and `agent` run those
 * that --controllers selects. */
#include "cmd/cmd.h"
#include "cmd/runtime.h"
#include "market/market_agent.h"
#include "market/market_controller.h"
#include "runtimeconfig/runtimeconfig_controller.h"
#include "saturation/saturation_controller.h"
#include "schedule/schedule_controller.h"

#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

const struct feature *const features[] = { &market_feature,        &market_agent_feature,
                                           &runtimeconfig_feature, &saturation_feature,
                                           &schedule_feature,      NULL };

static const struct command commands[] = {
    { "agent", "run the controllers of one node", cmd_agent },
    { "apiserver", "run a Kubernetes API server on this machine", cmd_apiserver },
    { "check", "check whether a cluster is ready and its installation healthy", cmd_check },
    { "completion", "print a script that completes flyball's commands in a shell", cmd_completion },
    { "envtest", "make a folder of binaries for envtest (KUBEBUILDER_ASSETS)", cmd_envtest },
    { "explain", "explain why flyball made a decision", cmd_explain },
    { "get", "list variants, with and without a VariantAutoscaling", cmd_get },
    { "install", "print the manifests that run flyball in a cluster", cmd_install },
    { "operator", "run the controllers of a cluster", cmd_operator },
    { "render", "show which configuration and route model services get, without a cluster",
      cmd_render },
    { "schedule", "show what a schedule will do, without a cluster", cmd_schedule },
    { "simulate", "compare scaling policies on a recorded trace, without a cluster", cmd_simulate },
    { "up", "run everything on this machine, without a cluster", cmd_up },
    { "version", "print the version", cmd_version },
};

static void print_help(FILE *out)
{
    fputs(
        "flyball decides how Kubernetes workloads are configured, scheduled, scaled and sized.\n\n"
        "Usage: flyball COMMAND [FLAGS]\n\nCommands:\n",
        out);
    for (size_t i = 0; i < countof(commands); i++)
        fprintf(out, "  %-12s %s\n", commands[i].name, commands[i].summary);
    fputs("\nRun \"flyball help COMMAND\" for the flags of a command.\n", out);
}

static const struct command *find_command(const char *name)
{
    for (size_t i = 0; i < countof(commands); i++)
        if (!strcmp(name, commands[i].name))
            return &commands[i];
    return NULL;
}

static int refuse_command(const char *name)
{
    if (*name)
        fprintf(stderr, "flyball: unknown command \"%s\"\n\n", name);
    print_help(stderr);
    return EXIT_USAGE;
}

/* `flyball help COMMAND` is `flyball COMMAND --help`. */
static int run_help(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stdout);
        return EXIT_SUCCESS;
    }
    const struct command *command = find_command(argv[1]);
    char flag[] = "--help", *words[] = { argv[1], flag, NULL };
    return command ? command->run(2, words) : refuse_command(argv[1]);
}

/* The name by which the program was called selects a face of it: see cmd/envtest.c. */
static const struct command faces[] = {
    { "kube-apiserver", NULL, cmd_envtest_apiserver },
    { "etcd", NULL, cmd_envtest_etcd },
};

/* A descriptor 0, 1 or 2 that the caller closed would become a socket or a pipe of the loop, and the log would be
 * written into it. */
static void open_missing_stdio(void)
{
    int fd;
    do
        fd = open("/dev/null", O_RDWR);
    while (fd >= 0 && fd <= STDERR_FILENO);
    if (fd >= 0)
        close(fd);
}

int main(int argc, char **argv)
{
    open_missing_stdio();
    const char *word = argc > 1 ? argv[1] : "", *slash = argc ? strrchr(argv[0], '/') : NULL;
    const char *called = slash ? slash + 1 : argc ? argv[0] : "";
    for (size_t i = 0; i < countof(faces); i++)
        if (!strcmp(called, faces[i].name))
            return faces[i].run(argc, argv);
    if (!strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h"))
        return run_help(argc - 1, argv + 1);
    if (!strcmp(word, "--version"))
        word = "version";
    const struct command *command = find_command(word);
    return command ? command->run(argc - 1, argv + 1) : refuse_command(word);
}
