/* flyball operator: the controllers of a cluster. */
#include "cmd.h"
#include "runtime.h"

int cmd_operator(int argc, char **argv)
{
    static const struct runtime_spec spec = {
        .name = "operator",
        .summary =
            "Runs flyball's controllers against a Kubernetes cluster. You can run several replicas: one "
            "is the\nleader, the others are ready to take over.",
    };
    return runtime_run(&spec, argc, argv);
}
