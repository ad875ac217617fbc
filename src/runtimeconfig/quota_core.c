/* Quotas: see quota_core.h.
 *
 * The limit of the namespace comes first, then that of the cluster. To make room, artifacts are evicted that are ready,
 * shared, used by no cache, not protected, and have a retention priority: the lowest first, then the oldest, and no more
 * than are needed. If that is not enough, nothing is evicted and the new volume waits. */
#include "quota_core.h"

#include "../base/quantity.h"
#include "artifact_core.h"
#include "names_core.h"

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

static str meta_of(const struct json *object, const char *key)
{
    return json_text(json_at(object, "metadata", key, NULL));
}

/* What an artifact takes, or will take. */
static int64_t usage_of(const struct json *artifact, int64_t percent)
{
    int64_t allocated = aim_artifact_quantity(json_at(artifact, "status", "allocatedSize", NULL));
    int64_t found = json_int(json_at(artifact, "status", "discoveredSizeBytes", NULL), 0);
    int64_t given = aim_artifact_quantity(json_at(artifact, "spec", "size", NULL));
    return allocated > 0
               ? allocated
               : aim_names_volume_bytes(MAX(found > 0 ? found : given, (int64_t)0), percent);
}

/* The artifact in question and those that are being deleted do not count. */
static bool is_counted(const struct json *artifact, str self)
{
    return !meta_of(artifact, "deletionTimestamp").n && !str_eq(meta_of(artifact, "uid"), self);
}

static int64_t sum_usage(const struct aim_quota_question *q, const struct json *list)
{
    int64_t sum = 0;
    for (size_t i = 0; i < json_len(list); i++)
        if (is_counted(json_item(list, i), meta_of(q->artifact, "uid")) &&
            __builtin_add_overflow(sum, usage_of(json_item(list, i), q->headroom_percent), &sum))
            return INT64_MAX;
    return sum;
}

/* ---- eviction */

struct candidate {
    const struct json *artifact;
    int64_t priority, bytes;
    str created;
};

static bool is_used(const struct aim_quota_question *q, str uid)
{
    for (size_t i = 0; i < json_len(q->in_use); i++)
        if (str_eq(json_text(json_item(q->in_use, i)), uid))
            return true;
    return false;
}

/* May it be evicted, and with what priority? */
static bool find_priority(struct arena *a, const struct aim_quota_question *q,
                          const struct json *artifact, int64_t *ret)
{
    const struct json *own = json_at(artifact, "spec", "retentionPriority", NULL);
    const struct json *priority = json_is(own, JSON_INT) ? own : q->default_priority;
    const struct json *status = json_get(artifact, "status");
    str key = arena_printf(a, "%s/eviction-protected", q->group);
    str kept = json_text(json_get_str(json_at(artifact, "metadata", "annotations", NULL), key));
    str label = json_text(json_get_str(json_at(artifact, "metadata", "labels", NULL), key));
    str mode = text_of(status, "mode");
    if (!json_is(priority, JSON_INT) || !str_eqc(text_of(status, "status"), "Ready") ||
        (mode.n && !str_eqc(mode, "Shared")) || str_eqc(kept, "true") || str_eqc(label, "true") ||
        is_used(q, meta_of(artifact, "uid")) || !is_counted(artifact, meta_of(q->artifact, "uid")))
        return false;
    *ret = priority->integer;
    return true;
}

/* Names break ties, so that the same question always has the same answer. */
static int compare_candidates(const void *x, const void *y)
{
    const struct candidate *a = x, *b = y;
    if (a->priority != b->priority)
        return a->priority < b->priority ? -1 : 1;
    int order = str_cmp(a->created, b->created);
    return order ? order : str_cmp(meta_of(a->artifact, "name"), meta_of(b->artifact, "name"));
}

/* Frees at least `need` bytes; false: not possible. Appends to `evict`. */
static bool make_room(struct arena *a, const struct aim_quota_question *q, const struct json *list,
                      int64_t need, struct json *evict)
{
    struct candidate *at = arena_array(a, json_len(list) + 1, sizeof(*at));
    size_t n = 0, taken = 0;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *one = json_item(list, i);
        int64_t priority;
        if (find_priority(a, q, one, &priority))
            at[n++] = (struct candidate){ one, priority, usage_of(one, q->headroom_percent),
                                          meta_of(one, "creationTimestamp") };
    }
    qsort(at, n, sizeof(*at), compare_candidates);
    for (; taken < n && need > 0; taken++)
        need -= at[taken].bytes;
    if (need > 0)
        return false;
    for (size_t i = 0; i < taken; i++)
        json_push(a, evict,
                  json_new_str(a, arena_printf(a, STR_FMT "/" STR_FMT,
                                               STR_ARG(meta_of(at[i].artifact, "namespace")),
                                               STR_ARG(meta_of(at[i].artifact, "name")))));
    return true;
}

/* ---- limits */

static str bytes_text(struct arena *a, int64_t bytes)
{
    char room[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_of(bytes, 0, QUANTITY_BINARY);
    return arena_str(a, quantity_text(&q, room));
}

/* The annotation of the namespace, else the default; 0: no limit. */
static int64_t namespace_limit(struct arena *a, const struct aim_quota_question *q,
                               str *ret_warning)
{
    str key = arena_printf(a, "%s/artifact-storage-quota", q->group);
    str text = json_text(json_get_str(json_at(q->ns, "metadata", "annotations", NULL), key));
    int64_t bytes = 0;
    err_t e;
    if (text.n && quantity_parse_value(text, &bytes, &e) == 0)
        return bytes;
    if (text.n)
        *ret_warning = arena_printf(a,
                                    "invalid " STR_FMT " annotation \"" STR_FMT
                                    "\" on namespace " STR_FMT ": %s",
                                    STR_ARG(key), STR_ARG(text), STR_ARG(meta_of(q->ns, "name")),
                                    "quantities must match the regular expression "
                                    "'^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'");
    return aim_artifact_quantity(json_get(q->quota, "defaultNamespaceLimit"));
}

/* Written without a sum that could overflow. */
static bool exceeds_limit(int64_t used, int64_t needed, int64_t limit)
{
    return limit > 0 && (used > limit || needed > limit - used);
}

static str exceeded_text(struct arena *a, const char *what, int64_t used, int64_t needed,
                         int64_t limit)
{
    return arena_printf(a,
                        "%s quota exceeded: " STR_FMT " used + " STR_FMT " needed > " STR_FMT
                        " limit",
                        what, STR_ARG(bytes_text(a, used)), STR_ARG(bytes_text(a, needed)),
                        STR_ARG(bytes_text(a, limit)));
}

/* A namespace over its limit makes room among its own artifacts; the cluster's limit is checked only otherwise. */
struct aim_quota_answer aim_quota_check(struct arena *a, const struct aim_quota_question *q)
{
    struct aim_quota_answer r = { .evict = json_new_arr(a) };
    const struct json *all = q->in_cluster ? q->in_cluster : q->in_namespace;
    int64_t limit = namespace_limit(a, q, &r.warning);
    int64_t most = aim_artifact_quantity(json_get(q->quota, "clusterLimit"));
    r.namespace_bytes = sum_usage(q, q->in_namespace);
    r.cluster_bytes = sum_usage(q, all);
    r.namespace_exceeded = exceeds_limit(r.namespace_bytes, q->bytes, limit);
    r.cluster_exceeded = exceeds_limit(r.cluster_bytes, q->bytes, most);
    if (r.namespace_exceeded) {
        r.blocked =
            !make_room(a, q, q->in_namespace, r.namespace_bytes + q->bytes - limit, r.evict);
        if (r.blocked)
            r.message = exceeded_text(a, "Namespace", r.namespace_bytes, q->bytes, limit);
    } else if (r.cluster_exceeded) {
        r.blocked = !make_room(a, q, all, r.cluster_bytes + q->bytes - most, r.evict);
        if (r.blocked)
            r.message = exceeded_text(a, "Cluster", r.cluster_bytes, q->bytes, most);
    }
    if (!r.evict->n || r.blocked)
        r.evict = NULL;
    return r;
}
