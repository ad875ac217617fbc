/* Finding the cgroup of a pod: see cgroup_tree.h.
 *
 *      1. places     directories where other pods were found        one access() per place
 *      2. patterns   where kubelets put pods, in MBCAS' order       one access() or a few listings
 *      3. walk       the four uppermost levels of the tree          expensive, limited per tick
 *
 * What 2 and 3 find becomes a place, so that a node pays for the walk once per QoS class, not
 * per pod. At most CGROUP_PLACES_MAX places are kept; the oldest is dropped. */
#include "cgroup_tree.h"

#include "cgroup_text.h"

#include <ctype.h>
#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { WALK_LEVELS = 4, UID_MAX = 128, FIRST_WALKS = 4 };

/* %u: the uid with underscores; %d: with its dashes. */
static const char *const patterns[] = {
    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%u.slice",
    "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod%u.slice",
    "kubepods.slice/kubepods-guaranteed.slice/kubepods-guaranteed-pod%u.slice",
    "kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod%d.slice",
    "kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod%d.slice",
    "kubepods/burstable/pod%d",
    "kubepods/besteffort/pod%d",
    "kubepods/guaranteed/pod%d",
    "kubepods.slice/kubepods-pod%u.slice",
    "kubepods/pod%d",
    "kubepods.slice/kubepods-*.slice/kubepods-*-pod%u.slice",
    "kubepods/kubepods-*/kubepods-*-pod%d",
};

/* ---- the machine's cgroups */

static bool is_folder(const char *base, const char *name)
{
    char path[PATH_MAX];
    struct stat st;
    int n = snprintf(path, sizeof(path), "%s/%s", base, name);
    return n > 0 && (size_t)n < sizeof(path) && stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

static void set_roots(struct cgroup_tree *tree, int version, str cpu, str usage)
{
    *tree = (struct cgroup_tree){ .version = version,
                                  .cpu = mem_dup(cpu.p, cpu.n),
                                  .usage = mem_dup(usage.p, usage.n) };
}

static void set_roots_by_files(struct cgroup_tree *tree, struct arena *a, const char *base)
{
    if (is_folder(base, "cpu,cpuacct")) {
        str both = arena_printf(a, "%s/cpu,cpuacct", base);
        set_roots(tree, 1, both, both);
    } else if (is_folder(base, "cpu") && is_folder(base, "cpuacct")) {
        set_roots(tree, 1, arena_printf(a, "%s/cpu", base), arena_printf(a, "%s/cpuacct", base));
    } else {
        set_roots(tree, 2, str_c(base), str_c(base));
    }
}

static bool is_plain(const char *root)
{
    enum { CGROUP1 = 0x27e0eb, CGROUP2 = 0x63677270 };
    struct statfs fs;
    return statfs(root, &fs) == 0 && fs.f_type != CGROUP1 && fs.f_type != CGROUP2;
}

int cgroup_tree_init(struct cgroup_tree *tree, const char *base, str mountinfo, err_t *e)
{
    if (!is_folder(base, "."))
        return err_set(e, ENOENT, "cgroup root %s is not a directory", base);
    auto_arena struct arena a = { 0 };
    struct cgroup_mounts mounts = cgroup_text_mounts(&a, mountinfo, str_c(base));
    if (mounts.cpu.n && mounts.cpuacct.n)
        set_roots(tree, 1, mounts.cpu, mounts.cpuacct);
    else if (mounts.unified.n)
        set_roots(tree, 2, mounts.unified, mounts.unified);
    else
        set_roots_by_files(tree, &a, base);
    tree->plain = is_plain(tree->cpu);
    tree->walks = FIRST_WALKS;
    return 0;
}

static void place_done(struct cgroup_place *place)
{
    free(place->folder);
    free(place->before);
    free(place->after);
}

void cgroup_tree_done(struct cgroup_tree *tree)
{
    for (size_t i = 0; i < tree->place_n; i++)
        place_done(&tree->places[i]);
    free(tree->cpu);
    free(tree->usage);
    *tree = (struct cgroup_tree){ 0 };
}

/* ---- patterns */

/* A uid becomes part of a path and of a pattern: accept only what API servers and kubelets
 * generate. */
static bool is_valid_uid(str uid)
{
    for (size_t i = 0; i < uid.n; i++)
        if (!isalnum((unsigned char)uid.p[i]) && uid.p[i] != '-' && uid.p[i] != '_')
            return false;
    return uid.n > 0 && uid.n <= UID_MAX;
}

static void put_uid(struct buf *out, str uid, bool underscores)
{
    for (size_t i = 0; i < uid.n; i++)
        buf_putc(out, underscores && uid.p[i] == '-' ? '_' : uid.p[i]);
}

static void put_pattern(struct buf *out, const char *pattern, str uid)
{
    buf_clear(out);
    for (const char *p = pattern; *p; p++) {
        if (*p == '%')
            put_uid(out, uid, *++p == 'u');
        else
            buf_putc(out, *p);
    }
}

static bool has_counters(const char *root, str path)
{
    char file[PATH_MAX];
    int n = snprintf(file, sizeof(file), "%s/" STR_FMT "/cpu.stat", root, STR_ARG(path));
    return n > 0 && (size_t)n < sizeof(file) && access(file, F_OK) == 0;
}

static struct dirent **list_folder(const char *root, str path, int *ret_n)
{
    char folder[PATH_MAX];
    struct dirent **entries = NULL;
    int n = snprintf(folder, sizeof(folder), "%s/" STR_FMT, root, STR_ARG(path));
    *ret_n = n > 0 && (size_t)n < sizeof(folder) ? scandir(folder, &entries, NULL, alphasort) : 0;
    return entries;
}

static void list_free(struct dirent **entries, int n)
{
    for (int i = 0; i < n; i++)
        free(entries[i]);
    free(entries);
}

/* Resolves a pattern part by part, trying every name that matches. Appends to `path` on success. */
static bool match_pattern(const char *root, struct buf *path, str pattern)
{
    str part;
    if (!str_cut(&pattern, '/', &part))
        return has_counters(root, buf_str(path));
    size_t before = path->n;
    char wanted[NAME_MAX + 1];
    snprintf(wanted, sizeof(wanted), STR_FMT, STR_ARG(part));
    int n;
    struct dirent **entries = list_folder(root, buf_str(path), &n);
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        if (fnmatch(wanted, entries[i]->d_name, 0) != 0)
            continue;
        buf_printf(path, "%s%s", before ? "/" : "", entries[i]->d_name);
        found = match_pattern(root, path, pattern);
        if (!found) {
            path->n = before;
            path->p[before] = '\0';
        }
    }
    list_free(entries, n);
    return found;
}

bool cgroup_tree_find_by_pattern(const char *root, str uid, struct buf *ret_path)
{
    auto_buf struct buf pattern = { 0 };
    for (size_t i = 0; is_valid_uid(uid) && i < countof(patterns); i++) {
        put_pattern(&pattern, patterns[i], uid);
        buf_clear(ret_path);
        if (strchr(pattern.p, '*') ? match_pattern(root, ret_path, buf_str(&pattern))
                                   : has_counters(root, buf_str(&pattern))) {
            if (!ret_path->n)
                buf_put(ret_path, buf_str(&pattern));
            return true;
        }
    }
    return false;
}

/* ---- places */

static bool find_in_places(const struct cgroup_tree *tree, str uid, struct buf *ret_path)
{
    for (size_t i = 0; i < tree->place_n; i++) {
        const struct cgroup_place *place = &tree->places[i];
        buf_clear(ret_path);
        buf_printf(ret_path, "%s/%s", place->folder, place->before);
        put_uid(ret_path, uid, place->underscores);
        buf_put(ret_path, str_c(place->after));
        if (has_counters(tree->cpu, buf_str(ret_path)))
            return true;
    }
    return false;
}

static size_t last_slash(str path)
{
    for (size_t i = path.n; i--;)
        if (path.p[i] == '/')
            return i;
    return SIZE_MAX;
}

/* Other pods of the same class are in the same directory: remember it. */
static void learn_place(struct cgroup_tree *tree, str path, str uid)
{
    auto_buf struct buf underscored = { 0 };
    put_uid(&underscored, uid, true);
    size_t slash = last_slash(path);
    str folder = slash == SIZE_MAX ? S(".") : str_upto(path, slash);
    str name = slash == SIZE_MAX ? path : str_from(path, slash + 1);
    size_t at = str_find(name, buf_str(&underscored));
    bool underscores = at != SIZE_MAX;
    if (!underscores && (at = str_find(name, uid)) == SIZE_MAX)
        return;
    if (tree->place_n == CGROUP_PLACES_MAX) {
        place_done(&tree->places[0]);
        memmove(tree->places, tree->places + 1, (CGROUP_PLACES_MAX - 1) * sizeof(*tree->places));
        tree->place_n--;
    }
    str after = str_from(name, at + uid.n);
    tree->places[tree->place_n++] = (struct cgroup_place){ .folder = mem_dup(folder.p, folder.n),
                                                           .before = mem_dup(name.p, at),
                                                           .after = mem_dup(after.p, after.n),
                                                           .underscores = underscores };
}

/* ---- the whole tree */

/* Does the text begin with this uid, rather than with a longer one? */
static bool starts_with_uid(str text, str uid)
{
    return str_starts(text, uid) && (text.n == uid.n || !isalnum((unsigned char)text.p[uid.n]));
}

/* Is this the "…pod<uid>…" directory of the pod? `ret_other`: it belongs to another pod, do not
 * descend. */
static bool is_pod_folder(str name, str uid, str underscored, bool *ret_other)
{
    size_t at = str_find(name, S("pod"));
    *ret_other = false;
    for (str rest = name; at != SIZE_MAX; at = str_find(rest, S("pod"))) {
        rest = str_from(rest, at + 3);
        if (starts_with_uid(rest, uid) || starts_with_uid(rest, underscored))
            return true;
        *ret_other |= rest.n >= 32;
    }
    return false;
}

/* Searches the tree depth first, `levels` deep. Appends to `path` on success. */
static bool walk_tree(const char *root, struct buf *path, str uid, str underscored, int levels)
{
    int n;
    struct dirent **entries = list_folder(root, buf_str(path), &n);
    size_t before = path->n;
    bool found = false;
    for (int i = 0; i < n && !found; i++) {
        bool other;
        str name = str_c(entries[i]->d_name);
        if (entries[i]->d_type != DT_DIR || name.p[0] == '.')
            continue;
        buf_printf(path, "%s%s", before ? "/" : "", name.p);
        found = is_pod_folder(name, uid, underscored, &other) && has_counters(root, buf_str(path));
        if (!found && !other && levels > 1)
            found = walk_tree(root, path, uid, underscored, levels - 1);
        if (!found) {
            path->n = before;
            path->p[before] = '\0';
        }
    }
    list_free(entries, n);
    return found;
}

int cgroup_tree_find(struct cgroup_tree *tree, str uid, struct buf *ret_path, err_t *e)
{
    if (!is_valid_uid(uid))
        return err_set(e, EINVAL, "invalid pod uid \"" STR_FMT "\"", STR_ARG(uid));
    if (find_in_places(tree, uid, ret_path))
        return 0;
    auto_buf struct buf underscored = { 0 };
    put_uid(&underscored, uid, true);
    bool found = cgroup_tree_find_by_pattern(tree->cpu, uid, ret_path);
    if (!found && tree->walks > 0) {
        tree->walks--;
        buf_clear(ret_path);
        found = walk_tree(tree->cpu, ret_path, uid, buf_str(&underscored), WALK_LEVELS);
    }
    if (!found)
        return err_set(e, ENOENT, "cgroup of the pod with uid " STR_FMT " not found below %s",
                       STR_ARG(uid), tree->cpu);
    learn_place(tree, buf_str(ret_path), uid);
    return 0;
}
