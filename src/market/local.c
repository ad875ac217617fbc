/* The market on this machine's cgroups: see local.h.
 *
 * A thin owner of a sampler. At each tick sync_groups() compares the directory with the known
 * groups; resize() writes the quota at once, so a limit is never pending. Other programs may
 * change quotas too, so after each slow round the limits are read again.
 *
 * The quota found when a group appeared is its original. At the end it is restored for every
 * group that was changed, unless --keep is set. `struct local` owns its groups; each group
 * embeds a `struct sampled`. */
#include "local_internal.h"

#include "../base/file.h"
#include "../base/log.h"
#include "../base/sum.h"
#include "limit_core.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <unistd.h>

enum { MOUNTINFO_MAX = 4 << 20 };

static struct local_group *group_of(struct sampled *pod)
{
    return container_of(pod, struct local_group, sampled);
}

/* ---- which cgroups there are */

static int group_path(const struct local *l, const struct local_group *group, struct buf *out)
{
    buf_printf(out, "%s%s%s", l->path, *l->path ? "/" : "", group->name);
    return 0;
}

static int locate_group(void *context, struct sampled *pod, struct buf *ret_path, err_t *e)
{
    (void)e;
    return group_path(context, group_of(pod), ret_path);
}

/* Reads the quota, which another program may have changed; -1: none. */
static int64_t read_limit(const struct local *l, const struct local_group *group)
{
    auto_buf struct buf path = { 0 };
    struct cgroup *g = NULL;
    int64_t milli = -1;
    group_path(l, group, &path);
    if (cgroup_open(&l->tree, buf_str(&path), &g, NULL) == 0)
        (void)cgroup_read_limit(g, &milli, NULL);
    cgroup_close(g);
    return milli;
}

static struct local_group *group_find(const struct local *l, const char *name)
{
    for (size_t i = 0; i < l->groups.n; i++)
        if (!strcmp(l->groups.at[i]->name, name))
            return l->groups.at[i];
    return NULL;
}

static int compare_names(const void *a, const void *b)
{
    const struct local_group *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static void group_add(struct local *l, const char *name)
{
    size_t n = strlen(name);
    struct local_group *group = mem_zero(1, sizeof(*group) + n + 1);
    memcpy(group->name, name, n);
    group->local = l;
    group->seen = true;
    group->original_milli = read_limit(l, group);
    sampler_add(l->sampler, &group->sampled, sum64(str_c(name), l->o.seed));
    sampler_set_limit(&group->sampled, MAX(group->original_milli, (int64_t)0), 0);
    vec_push(&l->groups, group);
    qsort(l->groups.at, l->groups.n, sizeof(*l->groups.at), compare_names);
}

static void group_remove(struct local *l, size_t at)
{
    struct local_group *group = l->groups.at[at];
    sampler_remove(l->sampler, &group->sampled);
    vec_remove(&l->groups, at);
    free(group);
}

static DIR *open_folder(const struct local *l)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", l->tree.cpu, l->path);
    return n > 0 && (size_t)n < sizeof(path) ? opendir(path) : NULL;
}

/* Adds groups for new directories and removes those of deleted ones. */
static void sync_groups(void *context)
{
    struct local *l = context;
    DIR *folder = open_folder(l);
    for (size_t i = 0; i < l->groups.n; i++)
        l->groups.at[i]->seen = false;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
            continue;
        struct local_group *group = group_find(l, entry->d_name);
        if (group)
            group->seen = true;
        else
            group_add(l, entry->d_name);
    }
    if (folder)
        closedir(folder);
    for (size_t i = l->groups.n; i--;)
        if (!l->groups.at[i]->seen)
            group_remove(l, i);
}

/* ---- what they may have */

static int64_t read_own_quota(const struct local *l)
{
    struct cgroup *g = NULL;
    int64_t milli = -1;
    if (cgroup_open(&l->tree, str_c(l->path), &g, NULL) == 0)
        (void)cgroup_read_limit(g, &milli, NULL);
    cgroup_close(g);
    return milli;
}

int64_t local_capacity(const struct local *l)
{
    if (l->o.capacity_milli)
        return l->o.capacity_milli;
    int64_t quota = read_own_quota(l);
    if (quota >= 0)
        return quota;
    int64_t machine = MAX(sysconf(_SC_NPROCESSORS_ONLN), 1L) * 1000;
    return machine - (int64_t)((double)machine * l->o.config.system_reserve_percent / 100);
}

static int64_t read_capacity(void *context)
{
    return local_capacity(context);
}

static void set_limit(void *context, struct sampled *pod, int64_t limit_milli)
{
    struct local *l = context;
    struct local_group *group = group_of(pod);
    err_t e;
    if (l->o.dry_run || !pod->cgroup)
        return;
    if (cgroup_set_limit(pod->cgroup, limit_milli, &e) < 0) {
        log_warn("cannot set CPU limit", KV_C("cgroup", group->name), KV_C("error", e.text));
        pod->wanted_milli = 0;
        return;
    }
    group->changed = true;
    log_debug("limit set", KV_C("cgroup", group->name), KV_INT("milli", limit_milli),
              KV_INT("was", pod->market.limit_milli));
    sampler_set_limit(pod, limit_milli, limit_request(limit_milli));
}

static void on_round(void *context, const struct round_report *report)
{
    struct local *l = context;
    l->report = *report;
    l->rounded = true;
    for (size_t i = 0; i < l->groups.n; i++) {
        struct local_group *group = l->groups.at[i];
        int64_t milli = MAX(read_limit(l, group), (int64_t)0);
        if (milli != group->sampled.market.limit_milli)
            sampler_set_limit(&group->sampled, milli, 0);
    }
}

static void on_tick(void *context)
{
    struct local *l = context;
    bool after_round = l->rounded;
    l->rounded = false;
    if (l->o.on_tick)
        l->o.on_tick(l->o.context, after_round);
}

/* ---- life */

/* "/sys/fs/cgroup/cpu/web", "/web", "web" and "web/" are equivalent. */
static char *strip_root(const struct local *l, const char *given)
{
    str path = str_c(given), root = str_c(l->tree.cpu);
    if (str_starts(path, root) && (path.n == root.n || path.p[root.n] == '/'))
        path = str_from(path, root.n);
    while (path.n && path.p[0] == '/')
        path = str_from(path, 1);
    while (path.n && path.p[path.n - 1] == '/')
        path.n--;
    return mem_dup(path.p, path.n);
}

static int open_tree(struct local *l, err_t *e)
{
    auto_buf struct buf mountinfo = { 0 };
    int r = file_read("/proc/self/mountinfo", MOUNTINFO_MAX, &mountinfo, e);
    if (r < 0)
        return r;
    if ((r = cgroup_tree_init(&l->tree, l->o.root, buf_str(&mountinfo), e)) < 0)
        return r;
    l->path = strip_root(l, l->o.cgroup);
    DIR *folder = open_folder(l);
    if (!folder)
        return err_set(e, errno, "cgroup %s not found below %s: %s", l->o.cgroup, l->tree.cpu,
                       strerror(errno));
    closedir(folder);
    return 0;
}

int local_new(const struct local_options *options, struct local **ret, err_t *e)
{
    struct local *l = mem_zero(1, sizeof(*l));
    l->o = *options;
    int r = open_tree(l, e);
    if (r < 0) {
        local_free(l);
        return r;
    }
    l->sampler = sampler_new(&(struct sampler_options){ .loop = l->o.loop,
                                                        .tree = &l->tree,
                                                        .sync = sync_groups,
                                                        .locate = locate_group,
                                                        .capacity = read_capacity,
                                                        .resize = set_limit,
                                                        .on_round = on_round,
                                                        .on_tick = on_tick,
                                                        .context = l });
    sampler_configure(l->sampler, &l->o.config);
    *ret = l;
    return 0;
}

static void group_restore(const struct local_group *group)
{
    err_t e;
    if (group->sampled.cgroup &&
        cgroup_set_limit(group->sampled.cgroup, group->original_milli, &e) < 0)
        log_warn("cannot restore the original CPU limit", KV_C("cgroup", group->name),
                 KV_C("error", e.text));
}

void local_free(struct local *l)
{
    if (!l)
        return;
    for (size_t i = 0; i < l->groups.n; i++)
        if (l->groups.at[i]->changed && !l->o.keep)
            group_restore(l->groups.at[i]);
    sampler_free(l->sampler);
    for (size_t i = 0; i < l->groups.n; i++)
        free(l->groups.at[i]);
    vec_done(&l->groups);
    cgroup_tree_done(&l->tree);
    free(l->path);
    free(l);
}
