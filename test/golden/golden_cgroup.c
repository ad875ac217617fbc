/* Where a pod's cgroup is, on trees of files made for each case. The expected paths are those of the original,
 * which knows twelve patterns; ours must find the same wherever the original finds anything. */
#include "golden.h"

#include "../cgroup_files.h"
#include "market/cgroup_tree.h"

#include <stdio.h>

static void make_tree(const struct cgroup_files *f, const struct json *in)
{
    const struct json *dirs = json_get(in, "dirs");
    for (size_t i = 0; i < json_len(dirs); i++) {
        char path[PATH_MAX];
        bool lacks = i == 0 && json_bool(json_get(in, "first_dir_lacks_cpu_stat"), false);
        str dir = json_text(json_item(dirs, i));
        snprintf(path, sizeof(path), STR_FMT "/%s", STR_ARG(dir), lacks ? "cpu.max" : "cpu.stat");
        cgroup_files_put(f, path, "usage_usec 1\nthrottled_usec 1\n");
    }
}

static void run_path(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
    str uid = json_text(json_get(in, "uid"));
    struct cgroup_files f;
    struct cgroup_tree tree;
    auto_buf struct buf original = { 0 }, ours = { 0 };
    err_t e;
    cgroup_files_init(&f);
    make_tree(&f, in);
    bool found = cgroup_tree_find_by_pattern(f.root, uid, &original);
    golden_eq_bool(g, "found", found, json_get(want, "found"));
    golden_eq_str(g, "path", found ? buf_str(&original) : S(""), json_get(want, "path"));
    if (golden_ok(g, cgroup_tree_init(&tree, f.root, S(""), &e) == 0, "no root: %s", e.text)) {
        if (found && golden_ok(g, cgroup_tree_find(&tree, uid, &ours, &e) == 0, "%s", e.text))
            golden_eq_str(g, "our path", buf_str(&ours), json_get(want, "path"));
        cgroup_tree_done(&tree);
    }
    cgroup_files_done(&f);
}

const struct golden_family golden_cgroup[] = {
    { "mbcas-cgroup-path", run_path },
    { 0 },
};
