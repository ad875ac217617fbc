/* Reading and setting one cgroup: see cgroup_reader.h.
 *
 * A group is an array of levels. levels[0] is the cgroup itself, the others are its children (at
 * most 63). Each level has an open descriptor of its cpu.stat and the counters of its last
 * reading; a reading adds the differences to the caller's total:
 *
 *      levels[0]  pod          --- usage ------------------------------> total.usage
 *                              --- throttled time --.
 *      levels[1]  container    --- throttled time --+---- sum ---------> total.throttled
 *      levels[2]  container    --- throttled time --'
 *                              --- periods, hits ------ worst level ---> total.periods, total.hits
 *
 * The invariant: totals never decrease. A level that restarts, or that is read for the first
 * time, contributes nothing to this interval. Readings are made once a second for every pod, so
 * system calls are saved where possible: a cgroup that used no CPU was not throttled, and only
 * its usage is read; children are listed only if the link count of the directory changed.
 *
 * cgroup v1 keeps usage in a separate file (cpuacct.usage) and the quota in two. */
#include "cgroup_reader.h"

#include "../base/sum.h"
#include "cgroup_text.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LEVELS_MAX = 64, FILE_MAX = 1024, PERIOD_USEC = 100000, QUOTA_MIN_USEC = 1000 };
enum { KEPT_FROM = 512 }; /* lower descriptors are left to connections */

struct level { /* one cgroup whose throttling is read */
    int fd;    /* of its cpu.stat; -1: not open */
    uint32_t name_sum : 30;
    uint32_t known : 1; /* the counters are those of a reading */
    uint32_t seen : 1;  /* found by the current scan */
    uint32_t nr_periods, nr_throttled;
    int64_t throttled_usec;
};

struct cgroup {
    const struct cgroup_tree *tree;
    struct level *levels; /* owned; the first is the cgroup itself */
    int usage_fd;         /* v1: cpuacct.usage; v2: cpu.pressure, opened when first read */
    uint16_t links;       /* of the directory at the last scan: 2 plus one per child */
    uint8_t level_n;
    bool rescan;      /* list the children before the next reading */
    bool no_pressure; /* the kernel does not report it */
    char path[];
};

/* ---- files */

static bool file_path(const struct cgroup *g, const char *root, const char *inside,
                      const char *file, char out[static PATH_MAX])
{
    int n =
        snprintf(out, PATH_MAX, "%s/%s/%s%s%s", root, g->path, inside, *inside ? "/" : "", file);
    return n > 0 && n < PATH_MAX;
}

static int open_file(const struct cgroup *g, const char *root, const char *inside, const char *file,
                     err_t *e)
{
    char path[PATH_MAX];
    if (!file_path(g, root, inside, file, path))
        return err_set(e, ENAMETOOLONG, "cgroup %s: path too long", g->path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    return fd >= 0 ? fd : err_set(e, errno, "%s: %s", path, strerror(errno));
}

/* Opens a file that stays open, with a high descriptor: libuv's table is as long as the highest
 * descriptor of a connection, which should not come after thousands of these. */
static int open_kept(const struct cgroup *g, const char *root, const char *inside, const char *file,
                     err_t *e)
{
    int fd = open_file(g, root, inside, file, e);
    int kept = fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, KEPT_FROM);
    if (kept < 0)
        return fd;
    close(fd);
    return kept;
}

/* Reads the whole file from an open descriptor. */
static int read_open_file(int fd, char out[static FILE_MAX], str *ret)
{
    ssize_t n;
    while ((n = pread(fd, out, FILE_MAX, 0)) < 0 && errno == EINTR)
        ;
    if (n < 0)
        return -errno;
    *ret = (str){ out, (size_t)n };
    return 0;
}

/* Reads a file that is rarely needed and not kept open. */
static int read_file(const struct cgroup *g, const char *file, char out[static FILE_MAX], str *ret,
                     err_t *e)
{
    auto_close int fd = open_file(g, g->tree->cpu, "", file, e);
    if (fd < 0)
        return fd;
    int r = read_open_file(fd, out, ret);
    return r < 0 ? err_set(e, r, "cgroup %s: %s: %s", g->path, file, strerror(-r)) : 0;
}

static void close_fd(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* ---- levels */

static struct level *level_find(struct cgroup *g, uint32_t name_sum)
{
    for (uint16_t i = 1; i < g->level_n; i++)
        if (g->levels[i].name_sum == name_sum)
            return &g->levels[i];
    return NULL;
}

static void level_remove(struct cgroup *g, size_t at)
{
    close_fd(&g->levels[at].fd);
    memmove(g->levels + at, g->levels + at + 1, (g->level_n - at - 1) * sizeof(*g->levels));
    g->level_n--;
}

static void level_add(struct cgroup *g, uint32_t name_sum, int fd)
{
    g->levels = mem_grow(g->levels, (size_t)g->level_n + 1, sizeof(*g->levels));
    g->levels[g->level_n++] =
        (struct level){ .fd = fd, .name_sum = name_sum & 0x3fffffff, .seen = true };
}

static void level_note_child(struct cgroup *g, const char *name)
{
    uint32_t sum = (uint32_t)sum64(str_c(name), 0) >> 2; /* as wide as name_sum */
    struct level *level = level_find(g, sum);
    if (level)
        level->seen = true;
    if ((level && level->fd >= 0) || (!level && g->level_n >= LEVELS_MAX))
        return;
    int fd = open_kept(g, g->tree->cpu, name, "cpu.stat", NULL);
    if (fd >= 0 && level)
        level->fd = fd;
    else if (fd >= 0)
        level_add(g, sum, fd);
}

/* Checking the link count costs a fifth of listing the directory. If one child replaced another,
 * the count is the same, but reading the removed one fails and triggers a rescan. */
void cgroup_rescan(struct cgroup *g)
{
    char path[PATH_MAX];
    struct stat st;
    if (!file_path(g, g->tree->cpu, "", "", path) || stat(path, &st) < 0)
        return; /* removed: the next reading fails */
    if (!g->rescan && st.st_nlink >= 2 && st.st_nlink == g->links)
        return;
    DIR *folder = opendir(path);
    if (!folder)
        return;
    g->links = (uint16_t)MIN(st.st_nlink, (nlink_t)UINT16_MAX);
    for (uint16_t i = 1; i < g->level_n; i++)
        g->levels[i].seen = false;
    for (struct dirent *entry; (entry = readdir(folder));)
        if (entry->d_type == DT_DIR && entry->d_name[0] != '.')
            level_note_child(g, entry->d_name);
    closedir(folder);
    for (size_t i = g->level_n; i-- > 1;)
        if (!g->levels[i].seen)
            level_remove(g, i);
    g->rescan = false;
}

size_t cgroup_level_count(const struct cgroup *g)
{
    return g->level_n;
}

/* ---- life */

static int open_counters(struct cgroup *g, err_t *e)
{
    int fd = open_kept(g, g->tree->cpu, "", "cpu.stat", e);
    if (fd < 0)
        return fd;
    g->levels[0].fd = fd;
    if (g->tree->version == 2)
        return 0;
    fd = open_kept(g, g->tree->usage, "", "cpuacct.usage", e);
    g->usage_fd = fd < 0 ? -1 : fd;
    return fd < 0 ? fd : 0;
}

int cgroup_open(const struct cgroup_tree *tree, str path, struct cgroup **ret, err_t *e)
{
    struct cgroup *g = mem_zero(1, offsetof(struct cgroup, path) + path.n + 1);
    g->tree = tree;
    g->usage_fd = -1;
    memcpy(g->path, path.p, path.n);
    level_add(g, 0, -1);
    int r = open_counters(g, e);
    if (r < 0) {
        cgroup_close(g);
        return r;
    }
    cgroup_rescan(g);
    *ret = g;
    return 0;
}

const char *cgroup_path(const struct cgroup *g)
{
    return g->path;
}

void cgroup_close(struct cgroup *g)
{
    if (!g)
        return;
    for (uint16_t i = 0; i < g->level_n; i++)
        close_fd(&g->levels[i].fd);
    close_fd(&g->usage_fd);
    free(g->levels);
    free(g);
}

/* ---- counters */

/* An ordinary file that was replaced keeps its old content for open descriptors: open it again. */
static int reopen_replaced(struct cgroup *g, err_t *e)
{
    struct stat st;
    if (!g->tree->plain || fstat(g->levels[0].fd, &st) < 0 || st.st_nlink > 0)
        return 0;
    for (uint16_t i = 0; i < g->level_n; i++)
        close_fd(&g->levels[i].fd);
    close_fd(&g->usage_fd);
    int r = open_counters(g, e);
    g->rescan = true;
    return r;
}

struct throttling { /* of one level since its last reading */
    int64_t usec, periods, hits;
};

/* Stores the reading and returns the difference to the last one; zero if a counter was reset. */
static struct throttling level_advance(struct level *level, struct demand_cpu_stat now)
{
    struct throttling since = { 0 };
    int64_t periods = (int32_t)(now.nr_periods - level->nr_periods),
            hits = (int32_t)(now.nr_throttled - level->nr_throttled);
    if (level->known && periods >= 0 && hits >= 0 && now.throttled_usec >= level->throttled_usec)
        since = (struct throttling){ now.throttled_usec - level->throttled_usec, periods, hits };
    level->throttled_usec = now.throttled_usec;
    level->nr_periods = now.nr_periods;
    level->nr_throttled = now.nr_throttled;
    level->known = true;
    return since;
}

/* Did `a` hit its quota in a larger share of its periods? */
static bool is_throttled_more(struct throttling a, struct throttling b)
{
    return (double)a.hits * (double)MAX(b.periods, (int64_t)1) >
               (double)b.hits * (double)MAX(a.periods, (int64_t)1) ||
           (a.hits == 0 && b.hits == 0 && a.periods > b.periods);
}

static int read_level(const struct level *level, struct demand_cpu_stat *ret)
{
    char text[FILE_MAX];
    str stat;
    int r = level->fd < 0 ? -ENODEV : read_open_file(level->fd, text, &stat);
    if (r == 0)
        *ret = demand_cpu_stat_parse(stat);
    return r;
}

static int read_usage(const struct cgroup *g, int64_t *ret_usec)
{
    char text[FILE_MAX];
    str number;
    int64_t ns;
    int r = read_open_file(g->usage_fd, text, &number);
    if (r == 0 && !cgroup_text_number(number, &ns))
        r = -EINVAL;
    if (r == 0)
        *ret_usec = ns / 1000;
    return r;
}

/* Reads the children, adds their throttled time, and returns the worst of them and `worst`. */
static struct throttling read_children(struct cgroup *g, struct throttling worst,
                                       int64_t *total_usec)
{
    for (size_t i = g->level_n; i-- > 1;) {
        struct demand_cpu_stat stat;
        if (read_level(&g->levels[i], &stat) < 0) {
            level_remove(g, i); /* the container ended; another may have replaced it */
            g->rescan = true;
            continue;
        }
        struct throttling since = level_advance(&g->levels[i], stat);
        *total_usec += since.usec;
        if (is_throttled_more(since, worst))
            worst = since;
    }
    return worst;
}

/* A cgroup that used no CPU cannot have hit its quota: the other counters are unchanged. */
static bool is_idle(const struct cgroup *g, const struct demand_cpu_stat *total, int64_t usage_usec)
{
    return g->levels[0].known && usage_usec == total->usage_usec;
}

int cgroup_read(struct cgroup *g, struct demand_cpu_stat *total, err_t *e)
{
    bool v1 = g->tree->version == 1;
    struct demand_cpu_stat own;
    int64_t usage_usec = 0;
    int r = reopen_replaced(g, e);
    if (r < 0)
        return r;
    if (g->rescan)
        cgroup_rescan(g);
    r = v1 ? read_usage(g, &usage_usec) : read_level(&g->levels[0], &own);
    if (r == 0 && is_idle(g, total, v1 ? usage_usec : own.usage_usec))
        return 0;
    if (r == 0 && v1 && (r = read_level(&g->levels[0], &own)) == 0)
        own.usage_usec = usage_usec;
    if (r < 0)
        return err_set(e, r, "cgroup %s: cannot read counters: %s", g->path, strerror(-r));
    struct throttling worst = level_advance(&g->levels[0], own);
    total->throttled_usec += worst.usec;
    worst = read_children(g, worst, &total->throttled_usec);
    total->nr_periods += (uint32_t)worst.periods;
    total->nr_throttled += (uint32_t)worst.hits;
    total->usage_usec = own.usage_usec;
    return 0;
}

/* Read once a second for busy pods, so the file stays open. Ordinary files (tests, the testbed) are
 * replaced while they are open. */
static int read_pressure_file(struct cgroup *g, char out[static FILE_MAX], str *ret)
{
    if (g->tree->plain)
        return read_file(g, "cpu.pressure", out, ret, NULL);
    if (g->usage_fd < 0)
        g->usage_fd = open_kept(g, g->tree->cpu, "", "cpu.pressure", NULL);
    if (g->usage_fd >= 0)
        return read_open_file(g->usage_fd, out, ret);
    g->usage_fd = -1;
    g->no_pressure = true;
    return -EOPNOTSUPP;
}

int cgroup_read_pressure(struct cgroup *g, int64_t *ret_usec)
{
    char text[FILE_MAX];
    str pressure;
    if (g->tree->version == 1 || g->no_pressure || read_pressure_file(g, text, &pressure) < 0 ||
        !cgroup_text_pressure(pressure, ret_usec))
        return -EOPNOTSUPP;
    return 0;
}

/* ---- quota */

/* Sets the error for a quota file that does not contain one. */
static int fail_bad_quota(const struct cgroup *g, const char *file, str text, err_t *e)
{
    return err_set(e, EINVAL, "cgroup %s: %s contains \"" STR_FMT "\", which is not a quota",
                   g->path, file, STR_ARG(str_trim(text)));
}

int cgroup_read_limit(const struct cgroup *g, int64_t *ret_milli, err_t *e)
{
    char text[FILE_MAX], other[FILE_MAX];
    str quota, period;
    if (g->tree->version == 2) {
        int r = read_file(g, "cpu.max", text, &quota, e);
        if (r == 0 && !cgroup_text_max(quota, ret_milli))
            r = fail_bad_quota(g, "cpu.max", quota, e);
        return r;
    }
    int r = read_file(g, "cpu.cfs_quota_us", text, &quota, e);
    if (r == 0)
        r = read_file(g, "cpu.cfs_period_us", other, &period, e);
    if (r == 0 && !cgroup_text_quota(quota, period, ret_milli))
        r = fail_bad_quota(g, "cpu.cfs_quota_us", quota, e);
    return r;
}

static int write_file(const struct cgroup *g, const char *file, str text, err_t *e)
{
    char path[PATH_MAX];
    if (!file_path(g, g->tree->cpu, "", file, path))
        return err_set(e, ENAMETOOLONG, "cgroup %s: path too long", g->path);
    auto_close int fd = open(path, O_WRONLY | O_CLOEXEC | (g->tree->plain ? O_TRUNC : 0));
    if (fd < 0)
        return err_set(e, errno, "%s: %s", path, strerror(errno));
    ssize_t n = write(fd, text.p, text.n);
    if (n != (ssize_t)text.n)
        return err_set(e, n < 0 ? errno : EIO, "%s: cannot write \"" STR_FMT "\": %s", path,
                       STR_ARG(text), strerror(n < 0 ? errno : EIO));
    return 0;
}

/* v1 keeps the period in a separate file, which is not changed. */
static int64_t read_period(const struct cgroup *g)
{
    char text[FILE_MAX];
    str period;
    int64_t usec = 0;
    bool known = g->tree->version == 1 &&
                 read_file(g, "cpu.cfs_period_us", text, &period, NULL) == 0 &&
                 cgroup_text_number(period, &usec);
    return known && usec > 0 ? usec : PERIOD_USEC;
}

int cgroup_set_limit(const struct cgroup *g, int64_t milli, err_t *e)
{
    char text[64];
    int64_t period = read_period(g), quota = 0;
    if (milli >= 0 && __builtin_mul_overflow(milli, period, &quota))
        return err_set(e, ERANGE, "cgroup %s: limit %lldm is too large", g->path, (long long)milli);
    quota = MAX(quota / 1000, (int64_t)QUOTA_MIN_USEC);
    bool v2 = g->tree->version == 2;
    if (milli < 0 && v2)
        snprintf(text, sizeof(text), "max %lld", (long long)period);
    else if (milli < 0)
        snprintf(text, sizeof(text), "-1");
    else if (v2)
        snprintf(text, sizeof(text), "%lld %lld", (long long)quota, (long long)period);
    else
        snprintf(text, sizeof(text), "%lld", (long long)quota);
    return write_file(g, v2 ? "cpu.max" : "cpu.cfs_quota_us", str_c(text), e);
}
