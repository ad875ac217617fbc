/* Reading memory: see cgroup_memory.h.
 *
 * v2: memory.current, memory.stat (inactive_file), memory.events (oom_kill), memory.pressure and
 * memory.swap.current. v1 has a hierarchy of its own for memory, other names for the first three,
 * and no pressure. */
#include "cgroup_memory.h"

#include "../base/file.h"
#include "cgroup_text.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>

enum { STAT_MAX = 16 << 10 };

struct names {
    const char *current, *inactive, *kills;
};
static const struct names of_version[] = {
    { "memory.usage_in_bytes", "total_inactive_file", "memory.oom_control" },
    { "memory.current", "inactive_file", "memory.events" },
};

bool cgroup_memory_field(str text, const char *key, int64_t *ret)
{
    for (str line; str_cut(&text, '\n', &line);) {
        size_t end = str_find_char(line, ' ');
        if (end < line.n && str_eqc(str_upto(line, end), key))
            return str_to_i64(str_trim(str_from(line, end)), ret) == 0 && *ret >= 0;
    }
    return false;
}

static bool read_text(const char *dir, const char *file, struct buf *out)
{
    char path[PATH_MAX];
    int n = snprintf(path, sizeof(path), "%s/%s", dir, file);
    buf_clear(out);
    return n > 0 && (size_t)n < sizeof(path) && file_read(path, STAT_MAX, out, NULL) == 0;
}

static bool read_memory(const char *dir, const struct names *names, struct cgroup_memory *ret)
{
    auto_buf struct buf text = { 0 };
    int64_t current = 0, inactive = 0, swap = 0;
    *ret = (struct cgroup_memory){ .stalled_usec = -1 };
    if (!read_text(dir, names->current, &text) || !cgroup_text_number(buf_str(&text), &current))
        return false;
    if (!read_text(dir, "memory.stat", &text) ||
        !cgroup_memory_field(buf_str(&text), names->inactive, &inactive))
        return false; /* without it, page cache would count as use */
    ret->working_set = MAX(current - inactive, (int64_t)0);
    if (read_text(dir, names->kills, &text))
        (void)cgroup_memory_field(buf_str(&text), "oom_kill", &ret->oom_kills);
    if (read_text(dir, "memory.pressure", &text) &&
        !cgroup_text_pressure(buf_str(&text), &ret->stalled_usec))
        ret->stalled_usec = -1;
    if (read_text(dir, "memory.swap.current", &text))
        ret->swap = cgroup_text_number(buf_str(&text), &swap) && swap > 0;
    return true;
}

/* "cri-containerd-ID.scope", "crio-ID.scope", "docker-ID.scope" or "ID". */
static str container_id(str name)
{
    static const char *const before[] = { "cri-containerd-", "crio-", "docker-" };
    if (str_ends(name, S(".scope")))
        name = str_upto(name, name.n - 6);
    for (size_t i = 0; i < countof(before); i++)
        if (str_starts(name, str_c(before[i])))
            return str_from(name, strlen(before[i]));
    return name;
}

/* v1: the hierarchy beside that of the quotas. */
static bool memory_root(const struct cgroup_tree *tree, const char *path, char out[static PATH_MAX])
{
    const char *slash = strrchr(tree->cpu, '/');
    int root = tree->version == 2 || !slash ? (int)strlen(tree->cpu) : (int)(slash - tree->cpu);
    int n = snprintf(out, PATH_MAX, "%.*s%s/%s", root, tree->cpu,
                     tree->version == 2 ? "" : "/memory", path);
    return n > 0 && n < PATH_MAX;
}

void cgroup_memory_each(const struct cgroup_tree *tree, const char *path,
                        void (*found)(void *context, str id, const struct cgroup_memory *memory),
                        void *context)
{
    char dir[PATH_MAX], child[PATH_MAX];
    DIR *list = memory_root(tree, path, dir) ? opendir(dir) : NULL;
    if (!list)
        return;
    for (const struct dirent *entry; (entry = readdir(list));) {
        struct cgroup_memory memory;
        int n = snprintf(child, sizeof(child), "%s/%s", dir, entry->d_name);
        if (entry->d_name[0] != '.' && entry->d_type == DT_DIR && n > 0 &&
            (size_t)n < sizeof(child) &&
            read_memory(child, &of_version[tree->version - 1], &memory))
            found(context, container_id(str_c(entry->d_name)), &memory);
    }
    closedir(list);
}
