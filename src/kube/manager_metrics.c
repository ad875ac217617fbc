/* Metrics of the manager's caches and leadership, collected when the registry is read. */
#include "manager_internal.h"

enum { OBJECTS, BYTES, EVENTS, LISTS, FAILURES };

static const struct metric_spec cache_specs[MANAGER_CACHE_FAMILIES] = {
    [OBJECTS] = { "flyball_cache_objects",
                  "Objects in a cache.",
                  METRIC_GAUGE,
                  { "group", "resource" } },
    [BYTES] = { "flyball_cache_bytes",
                "Memory of a cache's records and tables.",
                METRIC_GAUGE,
                { "group", "resource" } },
    [EVENTS] = { "flyball_watch_events_total",
                 "Events received.",
                 METRIC_COUNTER,
                 { "group", "resource" } },
    [LISTS] = { "flyball_watch_lists_total",
                "Complete lists received.",
                METRIC_COUNTER,
                { "group", "resource" } },
    [FAILURES] = { "flyball_watch_failures_total",
                   "Lists and watches that failed.",
                   METRIC_COUNTER,
                   { "group", "resource" } },
};

static struct metric *cache_metric(struct manager_cache *c, size_t family)
{
    const struct resource *r = cache_spec(c->cache)->resource;
    return METRIC(c->m->cache_families[family], str_c(r->group), str_c(r->plural));
}

static void collect_cache(struct manager_cache *c)
{
    struct listwatch_stats now = c->listwatch ? *listwatch_stats(c->listwatch) : c->reported;
    metric_add(cache_metric(c, EVENTS), (double)(now.events - c->reported.events));
    metric_add(cache_metric(c, LISTS), (double)(now.lists - c->reported.lists));
    metric_add(cache_metric(c, FAILURES), (double)(now.failures - c->reported.failures));
    c->reported = now;
    /* several caches may be of one resource: they share its gauges */
    struct cache_sizes sizes = cache_sizes(c->cache);
    metric_add(cache_metric(c, OBJECTS), (double)sizes.records);
    metric_add(cache_metric(c, BYTES), (double)sizes.bytes);
}

/* Gauges start from zero at each read, because several caches of one resource add to the same series. */
static void collect_metrics(void *context)
{
    struct manager *m = context;
    for (struct manager_cache *c = m->caches; c; c = c->next) {
        metric_set(cache_metric(c, OBJECTS), 0);
        metric_set(cache_metric(c, BYTES), 0);
    }
    for (struct manager_cache *c = m->caches; c; c = c->next)
        collect_cache(c);
    if (m->leads)
        metric_set(m->leads, election_leads(m->election));
}

void manager_metrics_init(struct manager *m)
{
    static const struct metric_spec leads = {
        "leader_election_master_status", "1 while this process leads.", METRIC_GAUGE, { "name" }
    };
    struct metrics *metrics = kube_metrics(m->o.kube);
    for (size_t i = 0; i < MANAGER_CACHE_FAMILIES; i++)
        m->cache_families[i] = metrics_family(metrics, &cache_specs[i]);
    if (m->o.elect)
        m->leads = METRIC(metrics_family(metrics, &leads), m->o.election.name);
    metrics_on_read(metrics, collect_metrics, m);
}
