/* Storage quotas of artifacts: whether a new volume fits, and which artifacts make room for it. Pure. */
#ifndef FLYBALL_QUOTA_CORE_H
#define FLYBALL_QUOTA_CORE_H

#include "../json/json.h"

struct aim_quota_question {
    const char *group;
    const struct json *artifact; /* the one that needs a volume */
    int64_t bytes;               /* how large */
    int64_t headroom_percent;
    const struct json *ns;    /* the Namespace object */
    const struct json *quota; /* artifactStorageQuota of the cluster configuration; NULL: none */
    const struct json *in_namespace; /* artifacts: a list; NULL: none */
    const struct json *in_cluster;   /* NULL: the same as in the namespace */
    const struct json *in_use;       /* uids that a cache uses: a list */
    const struct json
        *default_priority; /* retention priority without one of its own; NULL: never evicted */
};

struct aim_quota_answer {
    bool blocked, namespace_exceeded, cluster_exceeded;
    int64_t namespace_bytes, cluster_bytes; /* in use, without the new one */
    struct json *evict;                     /* "namespace/name": a list; NULL: none */
    str message;                            /* why it is blocked */
    str warning;                            /* about an annotation that cannot be read */
};

struct aim_quota_answer aim_quota_check(struct arena *a, const struct aim_quota_question *q);

#endif
