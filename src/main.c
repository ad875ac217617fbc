/* The table of commands, and the table of features, from which `operator` and `agent` run those
 * that --controllers selects. */
#include "cmd/cmd.h"
#include "cmd/runtime.h"
#include "market/market_agent.h"
#include "market/market_controller.h"
#include "runtimeconfig/runtimeconfig_controller.h"
#include "saturation/saturation_controller.h"
#include "schedule/schedule_controller.h"

#include <stdio.h>

const struct feature *const features[] = { &market_feature,        &market_agent_feature,
                                           &runtimeconfig_feature, &saturation_feature,
                                           &schedule_feature,      NULL };

static const struct command commands[] = {
    { "agent", "run the controllers of one node", cmd_agent },
    { "apiserver", "run a Kubernetes API server on this machine", cmd_apiserver },
    { "completion", "print a script that completes flyball's commands in a shell", cmd_completion },
    { "explain", "explain why flyball made a decision", cmd_explain },
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
    fputs("\nRun \"flyball COMMAND --help\" for the flags of a command.\n", out);
}

int main(int argc, char **argv)
{
    const char *word = argc > 1 ? argv[1] : "";
    if (!strcmp(word, "help") || !strcmp(word, "--help") || !strcmp(word, "-h")) {
        print_help(stdout);
        return EXIT_SUCCESS;
    }
    for (size_t i = 0; i < countof(commands); i++)
        if (!strcmp(word, commands[i].name))
            return commands[i].run(argc - 1, argv + 1);
    if (*word)
        fprintf(stderr, "flyball: unknown command \"%s\"\n\n", word);
    print_help(stderr);
    return EXIT_USAGE;
}
