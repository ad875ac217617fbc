/* flyball agent: what runs once on every node. */
#include "cmd.h"
#include "runtime.h"

int cmd_agent(int argc, char **argv)
{
    static const struct runtime_spec spec = {
        .name = "agent",
        .summary =
            "Runs flyball's controllers for one node. It needs no leader: every node has its "
            "own.",
        .on_node = true,
    };
    return runtime_run(&spec, argc, argv);
}
