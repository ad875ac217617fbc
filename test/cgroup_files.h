/* A tree of ordinary files in place of cgroups, in a directory of its own below $TMPDIR. */
#ifndef FLYBALL_CGROUP_FILES_H
#define FLYBALL_CGROUP_FILES_H

#include "base/buf.h"

#include <limits.h>

struct cgroup_files {
    char root[PATH_MAX / 2];
};

void cgroup_files_init(struct cgroup_files *f);
void cgroup_files_done(struct cgroup_files *f);
/* The folders on the way to `path` are made; the file is written in place. */
void cgroup_files_put(const struct cgroup_files *f, const char *path, const char *text);
void cgroup_files_drop(const struct cgroup_files *f, const char *path);

#endif
