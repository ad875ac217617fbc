/* Finds a pod's cgroup on this machine.
 *
 * There are two versions of cgroups (v1 keeps quotas and usage in two hierarchies, often mounted
 * together), two naming schemes of the kubelet (systemd slices, plain directories), nodes that
 * prefix all paths (kind), and --cgroup-root. None of this is configured: the mounts show the
 * version, and the first pod that is found shows where the others are. */
#ifndef FLYBALL_CGROUP_TREE_H
#define FLYBALL_CGROUP_TREE_H

#include "../base/buf.h"
#include "../base/vec.h"

enum { CGROUP_PLACES_MAX = 8 };

struct cgroup_place { /* where a pod was found: directory, and the text before and after its uid */
    char *folder, *before, *after; /* owned */
    bool underscores;              /* dashes of the uid are written as underscores */
};

struct cgroup_tree {
    int version;       /* 1 or 2 */
    char *cpu, *usage; /* owned: roots of quotas and throttling, and of usage; v2: the same */
    bool plain;        /* ordinary files instead of cgroups (tests): may be replaced at any time */
    struct cgroup_place places[CGROUP_PLACES_MAX];
    size_t place_n;
    int walks; /* how many walks of the whole tree are still allowed; the owner adds more */
};

/* Detects the version from the mounts at or below `base` ("/sys/fs/cgroup"); `mountinfo` is the
 * content of /proc/self/mountinfo. A directory without mounts is classified by its files. */
int cgroup_tree_init(struct cgroup_tree *tree, const char *base, str mountinfo, err_t *e);
void cgroup_tree_done(struct cgroup_tree *tree);

/* Returns the directory of the pod with this uid, relative to the root
 * ("kubepods/burstable/pod1234"). -ENOENT: it does not exist (yet). */
int cgroup_tree_find(struct cgroup_tree *tree, str uid, struct buf *ret_path, err_t *e);

/* The same as MBCAS does it: its twelve patterns in their order, and nothing else. */
bool cgroup_tree_find_by_pattern(const char *root, str uid, struct buf *ret_path);

#endif
