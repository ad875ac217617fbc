#include "tap.h"

#include "cgroup_files.h"
#include "market/cgroup_reader.h"
#include "market/cgroup_text.h"

#include <dirent.h>

#define UID "6b3c1f2e-9a47-4d0e-8f5b-1c2d3e4f5a6b"
#define UID_ "6b3c1f2e_9a47_4d0e_8f5b_1c2d3e4f5a6b"
#define UID2 "00000000-9a47-4d0e-8f5b-1c2d3e4f5a6b"
#define UID2_ "00000000_9a47_4d0e_8f5b_1c2d3e4f5a6b"

static const char one_core_second[] =
    "usage_usec 1000000\nnr_periods 10\nnr_throttled 0\nthrottled_usec 0\n";

/* ---- texts */

static void quotas_are_read(void)
{
    int64_t milli = 7;
    OK(cgroup_text_max(S("20000 100000\n"), &milli));
    EQ_INT(milli, 200);
    OK(cgroup_text_max(S("max 100000\n"), &milli));
    EQ_INT(milli, -1);
    OK(cgroup_text_quota(S("50000\n"), S("25000\n"), &milli));
    EQ_INT(milli, 2000);
    OK(cgroup_text_quota(S("-1\n"), S("100000\n"), &milli));
    EQ_INT(milli, -1);
    milli = 7;
    OK(!cgroup_text_max(S("20000"), &milli) && !cgroup_text_max(S("20000 0"), &milli));
    OK(!cgroup_text_max(S("max 1 2"), &milli) && !cgroup_text_max(S(""), &milli));
    OK(!cgroup_text_max(S("9223372036854775807 1"), &milli));
    OK(!cgroup_text_quota(S("-2"), S("100000"), &milli));
    EQ_INT(milli, 7);
}

static void pressure_is_read(void)
{
    int64_t usec = 0;
    OK(cgroup_text_pressure(
        S("some avg10=0.00 avg60=1.00 avg300=0.00 total=3360000\nfull avg10=0.00 total=9\n"),
        &usec));
    EQ_INT(usec, 3360000);
    OK(!cgroup_text_pressure(S("full avg10=0.00 total=9\n"), &usec));
    OK(!cgroup_text_pressure(S("some total=x\n"), &usec));
}

static void mounts_show_the_version(void)
{
    auto_arena struct arena a = { 0 };
    str text = S(
        "30 23 0:26 / /sys/fs/cgroup rw - tmpfs tmpfs rw,mode=755\n"
        "31 30 0:27 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:9 - cgroup cgroup rw,cpu,cpuacct\n"
        "32 30 0:28 / /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
        "33 30 0:29 / /sys/fs/cgroup/a\\040b rw - cgroup2 cgroup2 rw\n"
        "34 30 0:30 / /elsewhere rw - cgroup cgroup rw,cpu\n");
    struct cgroup_mounts m = cgroup_text_mounts(&a, text, S("/sys/fs/cgroup"));
    EQ_STR(m.cpu, S("/sys/fs/cgroup/cpu,cpuacct"));
    EQ_STR(m.cpuacct, S("/sys/fs/cgroup/cpu,cpuacct"));
    EQ_STR(m.unified, S("/sys/fs/cgroup/a b"));
    m = cgroup_text_mounts(&a, text, S("/elsewhere/"));
    EQ_STR(m.cpu, S("/elsewhere"));
    OK(!m.unified.n && !m.cpuacct.n);
    m = cgroup_text_mounts(&a, text, S("/else"));
    OK(!m.cpu.n);
}

static void counters_of_both_versions_are_read(void)
{
    struct demand_cpu_stat stat =
        demand_cpu_stat_parse(S("nr_periods 50\nnr_throttled 49\nthrottled_time 3380000000\n"));
    EQ_INT(stat.throttled_usec, 3380000);
    EQ_INT(stat.nr_throttled, 49);
}

/* ---- finding */

static void check_layout(const char *first, const char *second)
{
    struct cgroup_files f;
    cgroup_files_init(&f);
    char path[PATH_MAX];
    for (int i = 0; i < 2; i++) {
        snprintf(path, sizeof(path), "%s/cpu.stat", i ? second : first);
        cgroup_files_put(&f, path, one_core_second);
    }
    struct cgroup_tree tree;
    auto_buf struct buf found = { 0 };
    err_t e;
    OK_CALL(cgroup_tree_init(&tree, f.root, S(""), &e), &e);
    EQ_INT(tree.version, 2);
    OK_CALL(cgroup_tree_find(&tree, S(UID), &found, &e), &e);
    EQ_STR(buf_str(&found), str_c(first));
    EQ_INT(tree.place_n, 1);
    OK_CALL(cgroup_tree_find(&tree, S(UID2), &found, &e),
            &e); /* found through the place of the first */
    EQ_STR(buf_str(&found), str_c(second));
    EQ_INT(tree.place_n, 1);
    EQ_INT(cgroup_tree_find(&tree, S("11111111-9a47-4d0e-8f5b-1c2d3e4f5a6b"), &found, &e), -ENOENT);
    EQ_INT(cgroup_tree_find(&tree, S("../../etc"), &found, &e), -EINVAL);
    EQ_INT(cgroup_tree_find(&tree, S(""), &found, &e), -EINVAL);
    cgroup_tree_done(&tree);
    cgroup_files_done(&f);
}

static void pods_are_found_in_every_layout(void)
{
#define SYSTEMD "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"
    check_layout(SYSTEMD UID_ ".slice", SYSTEMD UID2_ ".slice");
    check_layout("kubepods.slice/kubepods-pod" UID_ ".slice",
                 "kubepods.slice/kubepods-pod" UID2_ ".slice");
    check_layout("kubepods/burstable/pod" UID, "kubepods/burstable/pod" UID2);
    check_layout("kubepods/pod" UID, "kubepods/pod" UID2);
#define KIND                                                                                       \
    "kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod"
    check_layout(KIND UID_ ".slice", KIND UID2_ ".slice");
    check_layout("custom/kubepods/besteffort/pod" UID, "custom/kubepods/besteffort/pod" UID2);
}

static void a_longer_uid_is_another_pod(void)
{
    struct cgroup_files f;
    cgroup_files_init(&f);
    cgroup_files_put(&f, "x/y/pod1234567/cpu.stat", one_core_second);
    cgroup_files_put(&f, "x/z/pod12345/cpu.stat", one_core_second);
    struct cgroup_tree tree;
    auto_buf struct buf found = { 0 };
    err_t e;
    OK_CALL(cgroup_tree_init(&tree, f.root, S(""), &e), &e);
    OK_CALL(cgroup_tree_find(&tree, S("12345"), &found, &e), &e);
    EQ_STR(buf_str(&found), S("x/z/pod12345"));
    cgroup_tree_done(&tree);
    cgroup_files_done(&f);
}

static void no_directory_is_no_root(void)
{
    struct cgroup_tree tree;
    err_t e;
    EQ_INT(cgroup_tree_init(&tree, "/nowhere/at/all", S(""), &e), -ENOENT);
    OK(strstr(e.text, "/nowhere/at/all"));
}

/* ---- reading */

static struct cgroup *opened(struct cgroup_tree *tree, const struct cgroup_files *f,
                             const char *path)
{
    err_t e;
    struct cgroup *g = NULL;
    OK_CALL(cgroup_tree_init(tree, f->root, S(""), &e), &e);
    OK_CALL(cgroup_open(tree, str_c(path), &g, &e), &e);
    return g;
}

static void throttled_containers_count(void)
{
    struct cgroup_files f;
    cgroup_files_init(&f);
    cgroup_files_put(&f, "pod/cpu.stat",
                     "usage_usec 1000000\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
    cgroup_files_put(&f, "pod/a/cpu.stat",
                     "usage_usec 1\nnr_periods 100\nnr_throttled 50\nthrottled_usec 700\n");
    cgroup_files_put(&f, "pod/b/cpu.stat",
                     "usage_usec 1\nnr_periods 100\nnr_throttled 0\nthrottled_usec 0\n");
    struct cgroup_tree tree;
    struct cgroup *g = opened(&tree, &f, "pod");
    struct demand_cpu_stat first = { 0 }, second;
    err_t e;
    EQ_INT(cgroup_level_count(g), 3);
    OK_CALL(cgroup_read(g, &first, &e), &e);
    EQ_INT(first.nr_throttled, 0); /* what was before is not ours to count */
    cgroup_files_put(&f, "pod/cpu.stat",
                     "usage_usec 1200000\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
    cgroup_files_put(&f, "pod/a/cpu.stat",
                     "usage_usec 1\nnr_periods 110\nnr_throttled 58\nthrottled_usec 900\n");
    cgroup_files_put(&f, "pod/b/cpu.stat",
                     "usage_usec 1\nnr_periods 110\nnr_throttled 2\nthrottled_usec 50\n");
    second = first;
    OK_CALL(cgroup_read(g, &second, &e), &e);
    struct demand_window w = demand_measure(first, second, 1000000000);
    EQ_INT(w.usage_milli, 200);
    EQ_REAL(w.throttled, 0.8); /* of the container that is worst off */
    EQ_INT(second.throttled_usec - first.throttled_usec, 250);

    /* while the pod uses nothing its containers are not read; nothing is lost by that */
    cgroup_files_put(&f, "pod/a/cpu.stat",
                     "usage_usec 1\nnr_periods 112\nnr_throttled 59\nthrottled_usec 930\n");
    first = second;
    OK_CALL(cgroup_read(g, &first, &e), &e);
    EQ_INT(first.throttled_usec, second.throttled_usec);
    cgroup_files_put(&f, "pod/cpu.stat",
                     "usage_usec 1300000\nnr_periods 0\nnr_throttled 0\nthrottled_usec 0\n");
    OK_CALL(cgroup_read(g, &first, &e), &e);
    EQ_INT(first.throttled_usec - second.throttled_usec, 30);
    EQ_INT(first.nr_throttled - second.nr_throttled, 1);
    cgroup_close(g);
    cgroup_tree_done(&tree);
    cgroup_files_done(&f);
}

static void containers_come_and_go(void)
{
    struct cgroup_files f;
    cgroup_files_init(&f);
    cgroup_files_put(&f, "pod/cpu.stat", one_core_second);
    cgroup_files_put(&f, "pod/a/cpu.stat", one_core_second);
    struct cgroup_tree tree;
    struct cgroup *g = opened(&tree, &f, "pod");
    struct demand_cpu_stat stat = { 0 };
    err_t e;
    cgroup_files_put(&f, "pod/b/cpu.stat", one_core_second);
    cgroup_rescan(g);
    EQ_INT(cgroup_level_count(g), 3);
    cgroup_files_drop(&f, "pod/a");
    cgroup_rescan(g);
    EQ_INT(cgroup_level_count(g), 2);
    OK_CALL(cgroup_read(g, &stat, &e), &e);
    cgroup_files_drop(&f, "pod");
    OK(cgroup_read(g, &stat, &e) < 0);
    OK(strstr(e.text, "pod"));
    cgroup_close(g);
    cgroup_tree_done(&tree);
    cgroup_files_done(&f);
}

static void replaced_files_are_read_anew(void)
{
    struct cgroup_files f;
    cgroup_files_init(&f);
    cgroup_files_put(&f, "pod/cpu.stat", one_core_second);
    cgroup_files_put(&f, "pod/a/cpu.stat", "nr_periods 10\nnr_throttled 1\n");
    struct cgroup_tree tree;
    struct cgroup *g = opened(&tree, &f, "pod");
    struct demand_cpu_stat stat = { 0 };
    err_t e;
    OK_CALL(cgroup_read(g, &stat, &e), &e);
    cgroup_files_drop(&f, "pod/cpu.stat");
    cgroup_files_put(&f, "pod/cpu.stat", "usage_usec 2000000\n");
    cgroup_files_put(&f, "pod/a/cpu.stat", "nr_periods 20\nnr_throttled 6\n");
    OK_CALL(cgroup_read(g, &stat, &e), &e);
    EQ_INT(stat.usage_usec, 2000000);
    EQ_INT(stat.nr_throttled, 5); /* counting continued after the replacement */
    cgroup_close(g);
    cgroup_tree_done(&tree);
    cgroup_files_done(&f);
}

static void version_1_reads_two_hierarchies(void)
{
    struct cgroup_files f;
    cgroup_files_init(&f);
    cgroup_files_put(&f, "cpu/pod/cpu.stat", "nr_periods 5\nnr_throttled 1\nthrottled_time 2000\n");
    cgroup_files_put(&f, "cpu/pod/cpu.cfs_quota_us", "20000\n");
    cgroup_files_put(&f, "cpu/pod/cpu.cfs_period_us", "50000\n");
    cgroup_files_put(&f, "cpuacct/pod/cpuacct.usage", "1500000\n");
    struct cgroup_tree tree;
    struct cgroup *g = opened(&tree, &f, "pod");
    struct demand_cpu_stat stat = { 0 };
    int64_t milli;
    err_t e;
    EQ_INT(tree.version, 1);
    OK_CALL(cgroup_read(g, &stat, &e), &e);
    EQ_INT(stat.usage_usec, 1500);
    OK_CALL(cgroup_read_limit(g, &milli, &e), &e);
    EQ_INT(milli, 400);
    OK_CALL(cgroup_set_limit(g, 500, &e), &e);
    OK_CALL(cgroup_read_limit(g, &milli, &e), &e);
    EQ_INT(milli, 500);
    OK_CALL(cgroup_set_limit(g, -1, &e), &e);
    OK_CALL(cgroup_read_limit(g, &milli, &e), &e);
    EQ_INT(milli, -1);
    EQ_INT(cgroup_read_pressure(g, &milli), -EOPNOTSUPP);
    cgroup_close(g);
    cgroup_tree_done(&tree);
    cgroup_files_done(&f);
}

static void version_2_has_quota_and_pressure(void)
{
    struct cgroup_files f;
    cgroup_files_init(&f);
    cgroup_files_put(&f, "pod/cpu.stat", one_core_second);
    cgroup_files_put(&f, "pod/cpu.max", "max 100000\n");
    cgroup_files_put(&f, "pod/cpu.pressure", "some avg10=0.00 avg60=0.00 avg300=0.00 total=77\n");
    struct cgroup_tree tree;
    struct cgroup *g = opened(&tree, &f, "pod");
    int64_t value;
    err_t e;
    OK_CALL(cgroup_read_limit(g, &value, &e), &e);
    EQ_INT(value, -1);
    OK_CALL(cgroup_set_limit(g, 1, &e), &e); /* the kernel takes no quota below 1 ms */
    OK_CALL(cgroup_read_limit(g, &value, &e), &e);
    EQ_INT(value, 10);
    OK_CALL(cgroup_read_pressure(g, &value), &e);
    EQ_INT(value, 77);
    cgroup_files_put(&f, "pod/cpu.max", "lots\n");
    EQ_INT(cgroup_read_limit(g, &value, &e), -EINVAL);
    OK(strstr(e.text, "lots"));
    cgroup_close(g);
    cgroup_tree_done(&tree);
    cgroup_files_done(&f);
}

static size_t descriptors(void)
{
    size_t n = 0;
    DIR *folder = opendir("/proc/self/fd");
    while (folder && readdir(folder))
        n++;
    if (folder)
        closedir(folder);
    return n;
}

static void churn_leaks_nothing(void)
{
    struct cgroup_files f;
    cgroup_files_init(&f);
    struct cgroup_tree tree;
    err_t e;
    cgroup_files_put(&f, "pod/cpu.stat", one_core_second);
    OK_CALL(cgroup_tree_init(&tree, f.root, S(""), &e), &e);
    size_t before = descriptors();
    for (int i = 0; i < 200; i++) {
        struct cgroup *g = NULL;
        struct demand_cpu_stat stat = { 0 };
        cgroup_files_put(&f, i % 2 ? "pod/a/cpu.stat" : "pod/b/cpu.stat", one_core_second);
        OK_CALL(cgroup_open(&tree, S("pod"), &g, &e), &e);
        OK_CALL(cgroup_read(g, &stat, &e), &e);
        cgroup_files_drop(&f, i % 2 ? "pod/b" : "pod/a");
        cgroup_rescan(g);
        OK_CALL(cgroup_read(g, &stat, &e), &e);
        cgroup_close(g);
    }
    EQ_INT(descriptors(), before);
    EQ_INT(cgroup_open(&tree, S("not/there"), &(struct cgroup *){ NULL }, &e), -ENOENT);
    EQ_INT(descriptors(), before);
    cgroup_tree_done(&tree);
    cgroup_files_done(&f);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(quotas_are_read),
                                        TAP(pressure_is_read),
                                        TAP(mounts_show_the_version),
                                        TAP(counters_of_both_versions_are_read),
                                        TAP(pods_are_found_in_every_layout),
                                        TAP(a_longer_uid_is_another_pod),
                                        TAP(no_directory_is_no_root),
                                        TAP(throttled_containers_count),
                                        TAP(containers_come_and_go),
                                        TAP(replaced_files_are_read_anew),
                                        TAP(version_1_reads_two_hierarchies),
                                        TAP(version_2_has_quota_and_pressure),
                                        TAP(churn_leaks_nothing),
                                        { 0 } });
}
