/* Where on this machine a pod's cgroup is.
 *
 * There are two versions of cgroups (v1 keeps quotas and usage in two hierarchies, often mounted together),
 * two ways in which the kubelet names them (systemd slices, plain directories), nodes that prefix all of
 * it (kind), and --cgroup-root. Nobody has to say which: the mounts tell the version, and the first pod
 * that is found tells where the others are. */
#ifndef FLYBALL_CGROUP_TREE_H
#define FLYBALL_CGROUP_TREE_H

#include "../base/buf.h"
#include "../base/vec.h"

enum { CGROUP_PLACES_MAX = 8 };

struct cgroup_place { /* where a pod was found: directory, and what stands around its uid */
    char *folder, *before, *after; /* owned */
    bool underscores;              /* the uid's dashes are written so */
};

struct cgroup_tree {
    int version;       /* 1 or 2 */
    char *cpu, *usage; /* owned: roots of quotas and throttling, and of usage; v2: the same */
    bool plain;        /* ordinary files that stand for cgroups: may be replaced at any time */
    struct cgroup_place places[CGROUP_PLACES_MAX];
    size_t place_n;
    int walks; /* of the whole tree that finding may still make; the owner gives more */
};

/* Looks at what is mounted at or below `base` ("/sys/fs/cgroup"); `mountinfo` is /proc/self/mountinfo.
 * A directory without mounts is taken by its files. */
int cgroup_tree_init(struct cgroup_tree *tree, const char *base, str mountinfo, err_t *e);
void cgroup_tree_done(struct cgroup_tree *tree);

/* The directory of the pod with this uid, below the root ("kubepods/burstable/pod1234"). -ENOENT: there is
 * none (yet). */
int cgroup_tree_find(struct cgroup_tree *tree, str uid, struct buf *ret_path, err_t *e);

/* The same as the original finds it: its twelve patterns in their order, and nothing else. */
bool cgroup_tree_find_by_pattern(const char *root, str uid, struct buf *ret_path);

#endif
