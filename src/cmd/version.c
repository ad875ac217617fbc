/* flyball version: which build this is. */
#include "cmd.h"

#include <stdio.h>

int cmd_version(int argc, char **argv)
{
    (void)argv;
    if (argc > 1) {
        fprintf(stderr, "flyball version: takes no arguments\n");
        return EXIT_USAGE;
    }
    printf("flyball %s\n", FLYBALL_VERSION);
    return EXIT_SUCCESS;
}
