/* See cgroup_world.h. */
#include "cgroup_world.h"

#include <stdio.h>

void cgroup_world_read_quota(struct cgroup_world *w, struct world_group *g)
{
    char path[PATH_MAX];
    long long quota = -1, period = 100000;
    snprintf(path, sizeof(path), "%s/%s/cpu.max", w->files.root, g->path);
    FILE *in = fopen(path, "r");
    if (!in || fscanf(in, "%lld %lld", &quota, &period) < 1)
        quota = -1; /* "max" */
    if (in)
        fclose(in);
    g->cfs.limit_milli = quota < 0 ? 0 : quota * 1000 / period;
}

void cgroup_world_write(struct cgroup_world *w, struct world_group *g)
{
    char path[PATH_MAX];
    auto_buf struct buf text = { 0 };
    cfs_print_stat(&g->cfs, &text);
    snprintf(path, sizeof(path), "%s/cpu.stat", g->path);
    cgroup_files_put(&w->files, path, text.p);
}

void cgroup_world_step(struct timer *timer)
{
    struct cgroup_world *w = container_of(timer, struct cgroup_world, timer);
    for (size_t i = 0; i < w->n; i++) {
        struct world_group *g = &w->groups[i];
        if (g->gone)
            continue;
        if (g->quota_file)
            cgroup_world_read_quota(w, g);
        cfs_run(&g->cfs, g->demand_milli, 1e9, 100 * NS_PER_MS);
        if (!w->silent)
            cgroup_world_write(w, g);
    }
    timer_set(w->loop, timer, loop_mono_ns(w->loop) + 100 * NS_PER_MS, cgroup_world_step);
}

void cgroup_world_init(struct cgroup_world *w, struct loop *loop)
{
    *w = (struct cgroup_world){ .loop = loop };
    cgroup_files_init(&w->files);
    timer_set(loop, &w->timer, loop_mono_ns(loop), cgroup_world_step);
}

void cgroup_world_done(struct cgroup_world *w)
{
    timer_stop(&w->timer);
    cgroup_files_done(&w->files);
}

struct world_group *cgroup_world_add(struct cgroup_world *w, const char *path, double demand_milli,
                                     int64_t limit_milli)
{
    struct world_group *g = &w->groups[w->n++];
    *g = (struct world_group){ .demand_milli = demand_milli };
    snprintf(g->path, sizeof(g->path), "%s", path);
    g->cfs.limit_milli = limit_milli;
    g->cfs.request_milli = 100;
    cgroup_world_write(w, g);
    return g;
}

struct world_group *cgroup_world_add_quota(struct cgroup_world *w, const char *path,
                                           double demand_milli, int64_t limit_milli)
{
    char file[PATH_MAX], text[64];
    struct world_group *g = cgroup_world_add(w, path, demand_milli, limit_milli);
    g->quota_file = true;
    snprintf(file, sizeof(file), "%s/cpu.max", path);
    if (limit_milli > 0)
        snprintf(text, sizeof(text), "%lld 100000\n", (long long)limit_milli * 100);
    else
        snprintf(text, sizeof(text), "max 100000\n");
    cgroup_files_put(&w->files, file, text);
    return g;
}

void cgroup_world_drop(struct cgroup_world *w, struct world_group *g)
{
    g->gone = true;
    cgroup_files_drop(&w->files, g->path);
}

void cgroup_world_run(struct cgroup_world *w, int64_t seconds)
{
    int64_t until = loop_mono_ns(w->loop) + seconds * NS_PER_S;
    while (loop_mono_ns(w->loop) < until)
        loop_turn(w->loop);
}
