/* flyball version: prints the version. */
#include "cmd.h"

#include <stdio.h>

int cmd_version(int argc, char **argv)
{
    if (argc == 2 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"))) {
        puts("Usage: flyball version\n\nPrints the version.");
        return EXIT_SUCCESS;
    }
    if (argc > 1) {
        fprintf(stderr, "flyball version: takes no arguments\n");
        return EXIT_USAGE;
    }
    printf("flyball %s\n", FLYBALL_VERSION);
    return EXIT_SUCCESS;
}
