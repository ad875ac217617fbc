/* flyball agent: what runs once on every node. */
#include "agent_local.h"
#include "cmd.h"
#include "runtime.h"

int cmd_agent(int argc, char **argv)
{
    static const struct runtime_spec spec = {
        .name = "agent",
        .summary =
            "Runs flyball's controllers for one node. It needs no leader: every node has its "
            "own.\nOn a machine without Kubernetes: flyball agent --local CGROUP (--local x --help "
            "tells more).",
        .on_node = true,
    };
    if (agent_is_local(argc, argv))
        return agent_local(argc, argv);
    return runtime_run(&spec, argc, argv);
}
