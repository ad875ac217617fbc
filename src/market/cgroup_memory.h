/* The memory of one container, from the files of its cgroup. They are opened for each reading: it
 * happens every ten seconds, not every second. Reading needs no privilege. */
#ifndef FLYBALL_CGROUP_MEMORY_H
#define FLYBALL_CGROUP_MEMORY_H

#include "cgroup_tree.h"

struct cgroup_memory {
    int64_t working_set;  /* bytes: what is in use without inactive page cache */
    int64_t oom_kills;    /* since the cgroup exists; 0 if the kernel does not report it */
    int64_t stalled_usec; /* in which some task waited for memory; -1: not reported */
    bool swap;            /* some of it is in swap */
};

/* Calls `found` for each child cgroup of `path` (relative to the tree's root) whose memory can be
 * read. `id` is the container's: the name of the directory without the runtime's prefix and
 * ".scope". */
void cgroup_memory_each(const struct cgroup_tree *tree, const char *path,
                        void (*found)(void *context, str id, const struct cgroup_memory *memory),
                        void *context);

/* The number after `key` in a file of lines "key number". */
bool cgroup_memory_field(str text, const char *key, int64_t *ret);

#endif
