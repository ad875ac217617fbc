/* Many models in one query.
 *
 * The problem. A fetch is up to twelve queries. For 300 models that are asked about one by one,
 * Prometheus parses and answers 3,000 queries per cycle, though the series are the same as in
 * twelve. So feeds that are due at the same time form a group: each query names all their namespaces
 * and models and keeps these two labels, and the answer is split by them.
 *
 *     due feeds ─► group (at most 512) ─► KV ─► answered ─► QUEUE, ARRIVAL, … ─► split ─► fetches
 *                                         └─► failed ─► each member asks for itself, as without groups
 *
 * The invariant. A series counts for a feed only if both labels are equal to the feed's namespace and
 * model. Namespaces and models are separate sets in the query, so the answer may also have series
 * that no member asked for; they are dropped. A metric without the label model_name
 * (vllm:cache_config_info) counts for the feeds of its namespace that know the pod.
 *
 * A group is an optimization and never the reason for a failure: if its query fails, or takes too
 * long, each member sends the same query for itself. A member that then fails too (its series are
 * too many, or hang) leaves the group until it succeeds, so it delays the others once. If all members
 * succeed alone, the group was too large for Prometheus (limits on samples, bytes or time): groups
 * are halved, and grow again after ten minutes.
 *
 * Ownership. A group lives until its last fetch ends; its fetches belong to their feeds, and one
 * that is stopped leaves the group. A query belongs to its group until it is answered. */
#include "../../base/list.h"
#include "../../base/log.h"
#include "collect_query.h"

static const int64_t first_wait_ns = NS_PER_S; /* a new model must not wait for one that hangs */
static const int64_t wait_ns = 5 * NS_PER_S;
static const int64_t grow_after_ns = 600 * NS_PER_S;
enum {
    MODELS_MAX = 512,
    NAME_BYTES_MAX = 64 << 10, /* of namespaces and models: the size of a query */
    SERIES_MAX = 100000,       /* in an answer: larger ones make groups smaller */
};

struct group_query {
    struct list_item item; /* of group->queries */
    struct sat_group *group;
    enum collect_kind kind;
    int64_t sent_ns;
    struct prom_call *call; /* NULL: answered */
    size_t n;
    struct sat_fetch *members[]; /* borrowed; NULL: its feed was stopped */
};

struct sat_group {
    struct sat_collector *collector;
    size_t held; /* by fetches, and while an answer is handled */
    size_t size; /* fetches at the start */
    struct list queries;
    bool failed;  /* a query failed: its members sent it for themselves, */
    bool helped;  /* at least one of them got an answer, */
    bool failing; /* and at least one failed too */
};

/* ---- life of a group */

static void halve_groups(struct sat_collector *c, size_t size)
{
    c->group_max = MAX(size / 2, 1);
    c->grow_ns = loop_mono_ns(c->loop) + grow_after_ns;
}

static void release_group(struct sat_group *g)
{
    if (--g->held)
        return;
    if (g->failed && g->helped && !g->failing)
        halve_groups(g->collector, g->size);
    for (struct group_query *x; (x = list_first(&g->queries, struct group_query, item));) {
        list_remove(&x->item);
        prom_call_cancel(x->call);
        free(x);
    }
    free(g);
}

void collect_leave_group(struct sat_fetch *q)
{
    struct sat_group *g = q->group;
    if (!g)
        return;
    g->helped |= q->answered_apart;
    g->failing |= q->feed->alone;
    list_each(struct group_query, x, &g->queries, item)
        for (size_t i = 0; i < x->n; i++)
            if (x->members[i] == q)
                x->members[i] = NULL;
    q->group = NULL;
    release_group(g);
}

/* ---- sending */

static void on_group_answer(void *context, const struct prom_result *result, const err_t *failure);

/* Sends one query about `n` members; about one alone it is the member's own. */
static void send_group_query(struct sat_group *g, struct sat_fetch **members, size_t n,
                             enum collect_kind kind)
{
    auto_buf struct buf promql = { 0 };
    struct sat_collector *c = g->collector;
    bool first = false;
    if (n == 1)
        collect_send_query(members[0], kind);
    if (n <= 1)
        return;
    struct group_query *query = mem_zero(1, sizeof(*query) + n * sizeof(struct sat_fetch *));
    *query =
        (struct group_query){ .group = g, .kind = kind, .sent_ns = loop_mono_ns(c->loop), .n = n };
    memcpy(query->members, members, n * sizeof(*members));
    list_append(&g->queries, &query->item);
    for (size_t i = 0; i < n; i++) {
        members[i]->left++;
        first |= !members[i]->feed->asked;
    }
    collect_put_query(&promql, &(struct collect_scope){ members, n }, kind);
    bool probes = first && kind == COLLECT_KV; /* it is small, and shows who hangs */
    int64_t wait = loop_scale_timeout(c->loop, probes ? first_wait_ns : wait_ns);
    query->call =
        prom_client_query(c->prometheus,
                          &(struct prom_query){ .promql = buf_str(&promql),
                                                .deadline_ns = loop_mono_ns(c->loop) + wait,
                                                .on_done = on_group_answer,
                                                .context = query });
}

/* The members that a later query is about: those that need it, with the same retention if it counts
 * requests of that time. */
static size_t select_members(const struct group_query *query, enum collect_kind kind,
                             int64_t retention_ns, struct sat_fetch **ret)
{
    size_t n = 0;
    for (size_t i = 0; i < query->n; i++) {
        struct sat_fetch *q = query->members[i];
        if (!q ||
            (kind == COLLECT_OLD_KV ? !collect_has_queue_without_kv(q) : !collect_needs(q, kind)))
            continue;
        if (kind != COLLECT_REQUESTS || q->feed->retention_ns == retention_ns)
            ret[n++] = q;
    }
    return n;
}

/* One query per retention period, which is part of its text. */
static void send_request_counts(const struct group_query *query, struct sat_fetch **members)
{
    for (size_t i = 0; i < query->n; i++) {
        int64_t retention = query->members[i] ? query->members[i]->feed->retention_ns : 0;
        bool seen = retention == 0;
        for (size_t j = 0; j < i && !seen; j++)
            seen = query->members[j] && query->members[j]->feed->retention_ns == retention;
        if (!seen)
            send_group_query(query->group, members,
                             select_members(query, COLLECT_REQUESTS, retention, members),
                             COLLECT_REQUESTS);
    }
}

/* Sends what follows an answer, as collect_prometheus.c does for one model. */
static void send_later_queries(const struct group_query *query, bool answered)
{
    struct sat_fetch **members = mem_zero(query->n, sizeof(struct sat_fetch *));
    bool all = query->kind == COLLECT_KV && (answered || query->group->collector->load_matters);
    for (int i = 0; all && i < COLLECT_KIND_N; i++) {
        enum collect_kind kind = (enum collect_kind)i;
        if (kind == COLLECT_REQUESTS)
            send_request_counts(query, members);
        else
            send_group_query(query->group, members, select_members(query, kind, 0, members), kind);
    }
    if (query->kind == COLLECT_QUEUE && answered)
        send_group_query(query->group, members, select_members(query, COLLECT_OLD_KV, 0, members),
                         COLLECT_OLD_KV);
    free(members);
}

/* ---- answers */

/* A name in a namespace, as a key. Labels may contain anything, so two pairs may have the same key:
 * compare the namespace of what was found. */
static str make_key(struct arena *a, str ns, str name)
{
    return arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name));
}

struct pod_owner {
    struct sat_fetch *fetch;
    struct pod_owner *next; /* another model that the pod serves */
};

/* Gives series without a label model_name to the members of the namespace that know the pod. */
static void take_shared_series(const struct group_query *query, const struct prom_result *shared)
{
    auto_arena struct arena a = { 0 };
    auto_map struct map owners = { 0 };
    for (size_t i = 0; shared->n && i < query->n; i++) {
        struct sat_fetch *q = query->members[i];
        for (struct map_slot *slot = NULL; q && (slot = map_next(&q->samples, slot));) {
            struct pod_owner *owner = arena_array(&a, 1, sizeof(*owner));
            str key = make_key(&a, q->feed->ns, slot->key);
            *owner = (struct pod_owner){ q, map_get(&owners, key) };
            map_put(&owners, key, owner);
        }
    }
    for (size_t i = 0; i < shared->n; i++) {
        const struct prom_series *s = &shared->series[i];
        struct arena_mark mark = arena_mark(&a);
        str ns = prom_series_label(s, S("namespace"));
        const struct pod_owner *owner =
            map_get(&owners, make_key(&a, ns, prom_series_label(s, S("pod"))));
        for (; owner; owner = owner->next)
            if (str_eq(owner->fetch->feed->ns, ns))
                collect_take_answer(owner->fetch, query->kind,
                                    &(struct prom_result){ .series = s, .n = 1 }, NULL);
        arena_reset(&a, mark);
    }
}

/* The member that each series belongs to: an index, or `query->n` for none, or n + 1 for a series
 * without a model. */
static size_t *find_owners(struct arena *a, const struct group_query *query,
                           const struct prom_result *result)
{
    auto_map struct map by_name = { 0 };
    size_t *owners = arena_array(a, result->n, sizeof(*owners));
    size_t *index = arena_array(a, query->n, sizeof(*index));
    for (size_t i = 0; i < query->n; i++) {
        const struct sat_fetch *q = query->members[i];
        index[i] = i;
        if (q)
            map_put(&by_name, make_key(a, q->feed->ns, q->feed->model), &index[i]);
    }
    for (size_t i = 0; i < result->n; i++) {
        const struct prom_series *s = &result->series[i];
        str ns = prom_series_label(s, S("namespace")),
            model = prom_series_label(s, S("model_name"));
        struct arena_mark mark = arena_mark(a);
        const size_t *found = map_get(&by_name, make_key(a, ns, model));
        bool owned = found && str_eq(query->members[*found]->feed->ns, ns);
        owners[i] = !model.n ? query->n + 1 : owned ? *found : query->n;
        arena_reset(a, mark);
    }
    return owners;
}

/* Splits the answer: series are sorted by owner, in the order of the answer, and each member gets
 * its part. A member without series gets an empty answer, as if it had asked alone. */
static void split_answer(const struct group_query *query, const struct prom_result *result)
{
    auto_arena struct arena a = { 0 };
    size_t *owners = find_owners(&a, query, result);
    size_t *ends = arena_array(&a, query->n + 2, sizeof(*ends));
    struct prom_series *sorted = arena_array(&a, result->n, sizeof(*sorted));
    memset(ends, 0, (query->n + 2) * sizeof(*ends));
    for (size_t i = 0; i < result->n; i++)
        ends[owners[i]]++;
    for (size_t i = 1; i < query->n + 2; i++)
        ends[i] += ends[i - 1];
    for (size_t i = result->n; i--;)
        sorted[--ends[owners[i]]] = result->series[i]; /* from the end: `ends` become beginnings */
    for (size_t i = 0; i < query->n; i++)
        if (query->members[i])
            collect_take_answer(query->members[i], query->kind,
                                &(struct prom_result){ .series = sorted + ends[i],
                                                       .n = ends[i + 1] - ends[i] },
                                NULL);
    take_shared_series(query, &(struct prom_result){ .series = sorted + ends[query->n + 1],
                                                     .n = result->n - ends[query->n + 1] });
}

/* Each member sends the query for itself. */
static void ask_apart(const struct group_query *query, const err_t *failure)
{
    log_info("a query for many models failed; sending one per model",
             KV_INT("models", (int64_t)query->n), KV_C("error", failure->text));
    query->group->failed = true;
    for (size_t i = 0; i < query->n; i++) {
        if (!query->members[i])
            continue;
        query->members[i]->apart = true;
        collect_send_query(query->members[i], query->kind);
    }
}

static void on_group_answer(void *context, const struct prom_result *result, const err_t *failure)
{
    struct group_query *query = context;
    struct sat_group *g = query->group;
    g->held++;
    query->call = NULL;
    if (!failure || failure->code != ECANCELED)
        collect_observe(g->collector, query->kind, query->sent_ns, failure);
    list_remove(&query->item);
    if (failure && failure->code != ECANCELED) {
        ask_apart(query, failure);
    } else {
        if (result && result->n > SERIES_MAX)
            halve_groups(g->collector, g->size);
        if (result)
            split_answer(query, result);
        for (size_t i = 0; failure && i < query->n; i++)
            if (query->members[i])
                collect_take_answer(query->members[i], query->kind, NULL, failure);
        send_later_queries(query, result != NULL);
    }
    for (size_t i = 0; i < query->n; i++)
        if (query->members[i])
            collect_finish_answer(query->members[i]);
    free(query);
    release_group(g);
}

/* ---- forming groups */

static void start_group(struct sat_collector *c, struct sat_feed **feeds, size_t n)
{
    if (n == 1) {
        collect_start_fetch(feeds[0]);
        return;
    }
    struct sat_group *g = mem_zero(1, sizeof(*g));
    struct sat_fetch **members = mem_zero(n, sizeof(struct sat_fetch *));
    *g = (struct sat_group){ .collector = c, .held = n + 1, .size = n };
    for (size_t i = 0; i < n; i++) {
        members[i] = collect_open_fetch(feeds[i]);
        members[i]->group = g;
    }
    send_group_query(g, members, n, COLLECT_KV);
    for (size_t i = 0; i < n; i++)
        collect_finish_answer(members[i]); /* the one that kept the fetch open */
    free(members);
    release_group(g);
}

/* By namespace, so that a group has few of them and its answer few series that no member asked for. */
static int compare_feeds(const void *a, const void *b)
{
    const struct sat_feed *x = *(struct sat_feed *const *)a, *y = *(struct sat_feed *const *)b;
    int by_ns = str_cmp(x->ns, y->ns);
    return by_ns ? by_ns : str_cmp(x->model, y->model);
}

static size_t take_group_max(struct sat_collector *c)
{
    int64_t now = loop_mono_ns(c->loop);
    c->group_max = c->group_max ? c->group_max : MODELS_MAX;
    if (c->group_max < MODELS_MAX && now >= c->grow_ns) {
        c->group_max = MIN(c->group_max * 2, (size_t)MODELS_MAX);
        c->grow_ns = now + grow_after_ns;
    }
    return c->group_max;
}

static void on_gather(struct timer *timer)
{
    struct sat_collector *c = container_of(timer, struct sat_collector, gather);
    size_t n = c->due.n, most = take_group_max(c);
    struct sat_feed **feeds = mem_zero(n + 1, sizeof(struct sat_feed *));
    for (size_t i = 0; i < n; i++) {
        feeds[i] = list_first(&c->due, struct sat_feed, due);
        list_remove(&feeds[i]->due);
    }
    qsort(feeds, n, sizeof(struct sat_feed *), compare_feeds);
    for (size_t begin = 0, end; begin < n; begin = end) {
        size_t bytes = 0;
        for (end = begin; end < n && end - begin < most && bytes < NAME_BYTES_MAX; end++)
            bytes += feeds[end]->ns.n + feeds[end]->model.n;
        start_group(c, feeds + begin, end - begin);
    }
    free(feeds);
}

void collect_join_group(struct sat_feed *feed, int64_t delay_ns)
{
    struct sat_collector *c = feed->collector;
    int64_t at = loop_mono_ns(c->loop) + delay_ns;
    if (!feed->due.in)
        list_append(&c->due, &feed->due);
    if (!timer_is_set(&c->gather) || !delay_ns)
        timer_set(c->loop, &c->gather, at, on_gather);
}
