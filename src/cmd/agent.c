/* flyball agent: the controllers that run once per node, and the local mode. */
#include "agent_local.h"
#include "cmd.h"
#include "runtime.h"

int cmd_agent(int argc, char **argv)
{
    static const struct runtime_spec spec = {
        .name = "agent",
        .summary =
            "Runs the controllers of one node. There is no leader election: each node has its own "
            "agent.\nTo govern cgroups without Kubernetes, see \"flyball agent --local CGROUP --help\".",
        .on_node = true,
    };
    if (cmd_agent_local_is_requested(argc, argv))
        return cmd_agent_local_run(argc, argv);
    return runtime_run(&spec, argc, argv);
}
