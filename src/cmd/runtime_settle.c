/* After the start: the code that ran once, for certificates, configuration and the first handshake, need not
 * stay in memory. Pages of programs and libraries come back from the page cache when they are used, so
 * letting them all go costs some page faults, and of 10 MB the work needs 7. */
#include "runtime_internal.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/mman.h>

/* Only code: other read-only pages of a library may have been written to when it was loaded. */
static void let_go(const char *line)
{
    unsigned long from, until;
    char mode[5], path[8];
    if (sscanf(line, "%lx-%lx %4s %*s %*s %*s %7s", &from, &until, mode, path) == 4 &&
        !strcmp(mode, "r-xp") && path[0] == '/')
        madvise((void *)from, until - from, MADV_DONTNEED);
}

void runtime_settle(void)
{
    char line[600];
    FILE *maps = fopen("/proc/self/maps", "re");
    while (maps && fgets(line, sizeof(line), maps))
        let_go(line);
    if (maps)
        fclose(maps);
    malloc_trim(0);
}
