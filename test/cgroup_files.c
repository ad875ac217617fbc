/* A tree of files in place of cgroups: see cgroup_files.h. */
#include "cgroup_files.h"

#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

void cgroup_files_init(struct cgroup_files *f)
{
    const char *tmp = getenv("TMPDIR");
    snprintf(f->root, sizeof(f->root), "%s/cgroups-XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(f->root))
        abort();
}

static int cgroup_files_remove(const char *path, const struct stat *st, int type, struct FTW *at)
{
    (void)st, (void)type, (void)at;
    return remove(path);
}

void cgroup_files_done(struct cgroup_files *f)
{
    nftw(f->root, cgroup_files_remove, 16, FTW_DEPTH | FTW_PHYS);
}

void cgroup_files_put(const struct cgroup_files *f, const char *path, const char *text)
{
    auto_buf struct buf full = { 0 };
    buf_printf(&full, "%s/%s", f->root, path);
    for (char *slash = full.p + strlen(f->root) + 1; (slash = strchr(slash, '/')); slash++) {
        *slash = '\0';
        mkdir(full.p, 0755);
        *slash = '/';
    }
    FILE *out = fopen(full.p, "w");
    if (!out || fputs(text, out) < 0 || fclose(out) != 0)
        abort();
}

void cgroup_files_drop(const struct cgroup_files *f, const char *path)
{
    auto_buf struct buf full = { 0 };
    buf_printf(&full, "%s/%s", f->root, path);
    nftw(full.p, cgroup_files_remove, 16, FTW_DEPTH | FTW_PHYS);
}
