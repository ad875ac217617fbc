/* The files of simulated cgroups: see cpu.h.
 *
 * A file is overwritten in place and truncated afterwards, so a reader never finds it empty; replacing it by
 * rename would break readers that keep it open, as the node agent does with the kernel's files. Failures do
 * not stop the simulation: the first one is logged. */
#include "cpu.h"

#include "../base/log.h"

#include <fcntl.h>
#include <ftw.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

static void write_file(const char *dir, const char *name, str text)
{
    char path[4096];
    static bool logged;
    if (snprintf(path, sizeof(path), "%s/%s", dir, name) >= (int)sizeof(path))
        return;
    auto_close int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
    bool written = fd >= 0 && pwrite(fd, text.p, text.n, 0) == (ssize_t)text.n &&
                   ftruncate(fd, (off_t)text.n) == 0;
    if (written || logged)
        return;
    logged = true;
    log_warn("cannot write a simulated cgroup file", KV_C("file", path),
             KV_C("error", strerror(errno)));
}

static int remove_entry(const char *path, const struct stat *status, int type, struct FTW *where)
{
    (void)status;
    (void)type;
    (void)where;
    return remove(path) < 0 && errno != ENOENT ? -1 : 0;
}

int cpu_files_clear(const char *root, err_t *e)
{
    if (access(root, F_OK) == 0 && nftw(root, remove_entry, 8, FTW_DEPTH | FTW_PHYS) < 0)
        return err_set(e, errno, "cannot remove the simulated cgroups of an earlier run in %s: %s",
                       root, strerror(errno));
    return 0;
}

/* mkdir -p; `path` is modified on the way and restored. */
static int make_directories(char *path, err_t *e)
{
    for (char *p = path + 1;; p++) {
        if (*p && *p != '/')
            continue;
        char was = *p;
        *p = '\0';
        if (mkdir(path, 0755) < 0 && errno != EEXIST)
            return err_set(e, errno, "cannot create directory %s: %s", path, strerror(errno));
        *p = was;
        if (!was)
            return 0;
    }
}

int cpu_files_make(const char *root, str node, const char *dir, err_t *e)
{
    char path[4096];
    if (snprintf(path, sizeof(path), "%s", dir) >= (int)sizeof(path))
        return err_set(e, ENAMETOOLONG, "cannot create directory %.100s...: its path is too long",
                       dir);
    int r = make_directories(path, e);
    if (r < 0)
        return r;
    snprintf(path, sizeof(path), "%s/" STR_FMT, root, STR_ARG(node));
    write_file(path, "cgroup.controllers", S("cpu\n"));
    return 0;
}

/* Quota and weight as the kubelet computes them. */
void cpu_files_limits(const struct cpu_group *group)
{
    if (!group->dir)
        return;
    char text[64];
    int64_t limit = group->cfs.limit_milli;
    int n = limit > 0 ? snprintf(text, sizeof(text), "%lld 100000\n",
                                 (long long)MAX(limit * 100, (int64_t)1000))
                      : snprintf(text, sizeof(text), "max 100000\n");
    write_file(group->dir, "cpu.max", (str){ text, (size_t)n });
    int64_t shares = MAX((int64_t)2, MIN((int64_t)262144, group->cfs.request_milli * 1024 / 1000));
    int64_t weight = 1 + (shares - 2) * 9999 / 262142;
    n = snprintf(text, sizeof(text), "%lld\n", (long long)weight);
    write_file(group->dir, "cpu.weight", (str){ text, (size_t)n });
}

void cpu_files_counters(struct cpu_group *group)
{
    bool changed = floor(group->cfs.usage_usec) != group->written_usec;
    if (!group->dir || !changed)
        return;
    group->written_usec = floor(group->cfs.usage_usec);
    auto_buf struct buf text = { 0 };
    cfs_print_stat(&group->cfs, &text);
    write_file(group->dir, "cpu.stat", buf_str(&text));
    buf_clear(&text);
    buf_printf(&text,
               "some avg10=%.2f avg60=%.2f avg300=%.2f total=%.0f\n"
               "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
               group->avg10, group->avg60, group->avg300, floor(group->stalled_usec));
    write_file(group->dir, "cpu.pressure", buf_str(&text));
}

/* All of it is anonymous memory: there is no page cache. */
void cpu_files_memory(const struct cpu_container *container)
{
    char text[256];
    const char *dir = container->group.dir;
    if (!dir)
        return;
    int n = snprintf(text, sizeof(text), "%lld\n", (long long)container->working_set);
    write_file(dir, "memory.current", (str){ text, (size_t)n });
    n = snprintf(text, sizeof(text), "anon %lld\ninactive_file 0\n",
                 (long long)container->working_set);
    write_file(dir, "memory.stat", (str){ text, (size_t)n });
    n = snprintf(text, sizeof(text), "low 0\nhigh 0\nmax %d\noom %d\noom_kill %d\n",
                 container->kills, container->kills, container->kills);
    write_file(dir, "memory.events", (str){ text, (size_t)n });
}

void cpu_files_remove(const char *dir)
{
    (void)nftw(dir, remove_entry, 4, FTW_DEPTH | FTW_PHYS);
}
