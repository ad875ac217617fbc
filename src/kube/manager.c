/* The manager: puts client, caches, controllers, events and leader election together and runs the features
 * of `flyball operator` and `flyball agent`. The interface is in manager.h.
 *
 * The problem. A process must not act before its caches are complete (it would see workloads without pods),
 * before its features are ready, or while another process leads; and it must not take the lease away from
 * a replica that could work while it cannot. At the end it must finish its writes and give the lease back
 * quickly, so that the next leader does not wait for the lease to expire.
 *
 *     manager_add()       feature->start(): declares caches and controllers
 *          |
 *     manager_run()       every cache lists and watches
 *          |
 *          |  features ready ------------> election starts (start_election_if_ready)
 *          |  all caches synced               |
 *          |  = /readyz                       |  lease acquired
 *          v                                  v
 *     start_controllers_if_ready(): ready and leading --> controllers start, once
 *          |
 *          |  manager_stop()                          lease lost: controllers stop,
 *          v                                          on_lost ends the process
 *     no new turns; watches stop; running turns end; features flush (5 s at most)
 *          |
 *          v
 *     lease released, `done` is called
 *
 * There is no state machine: start_controllers_if_ready() checks all conditions each time one of them may
 * have changed (a cache synced, the lease was acquired, a feature called manager_recheck()) and does
 * nothing unless all hold. Events may therefore arrive in any order.
 *
 * Invariants: controllers run only while this process leads (or runs without election), and they start at
 * most once: a process that lost the lease does not come back but exits (on_lost). Writes are stopped
 * earlier and independently of this file, by the client's write gate (election.h).
 *
 * A follower runs its caches too. That costs memory, but a failover then needs no list. Rejected: polling every
 * 10 ms at the end for turns and flushes; controller_drain() and manager_flushed() report them instead.
 *
 * Memory: all caches share one limit, by default three eighths of the cgroup's limit, see cache_bytes_of_cgroup().
 *
 * Ownership: the manager owns caches, listwatches, controllers, events and election. manager_free()
 * releases them in this order: controllers, features' own state, caches; so a feature's stop() may still
 * read its caches. */
#include "manager.h"

#include "../base/file.h"
#include "../base/log.h"
#include "../base/random.h"
#include "../base/vec.h"
#include "manager_internal.h"

static const int64_t stop_wait_ns = 5 * NS_PER_S, repeat_log_ns = 300 * NS_PER_S;

static void start_controllers_if_ready(struct manager *m);

/* Three eighths of the cgroup's memory limit; 0 (no limit) if there is none. The shipped manifest sets 128 MiB: 48 for
 * caches (100,000 pods take 25), the rest for parsing one large object (36 MiB at most), buffers, the decisions and what
 * the controllers remember of each object. With a half, a server that invented names without end reached the limit. */
static size_t cache_bytes_of_cgroup(void)
{
    static const char *const files[] = { "/sys/fs/cgroup/memory.max",
                                         "/sys/fs/cgroup/memory/memory.limit_in_bytes" };
    for (size_t i = 0; i < countof(files); i++) {
        auto_buf struct buf text = { 0 };
        int64_t limit;
        if (file_read(files[i], 64, &text, NULL) == 0 &&
            str_to_i64(str_trim(buf_str(&text)), &limit) == 0 && /* not "max" */
            limit > 0 && limit < INT64_C(1) << 50)               /* cgroup v1's "max" */
            return (size_t)limit / 8 * 3;
    }
    return 0;
}

int manager_new(const struct manager_options *o, struct manager **ret, err_t *e)
{
    (void)e;
    struct manager *m = mem_zero(1, sizeof(*m));
    m->o = *o;
    if (!m->o.cache_bytes_max)
        m->o.cache_bytes_max = cache_bytes_of_cgroup();
    m->o.watch_namespace = arena_str(&m->arena, o->watch_namespace);
    m->o.identity = arena_str(&m->arena, o->identity);
    m->o.election.ns = arena_str(&m->arena, o->election.ns);
    m->o.election.name = arena_str(&m->arena, o->election.name);
    m->o.election.pod = arena_str(&m->arena, o->election.pod);
    m->loop = kube_loop(o->kube);
    m->projector = projector_new();
    manager_metrics_init(m);
    m->events = events_new(o->kube, "flyball");
    random_init(&m->random, o->seed, 3);
    *ret = m;
    return 0;
}

/* A feature that fails before it has declared a controller is left out: the others do not depend on it, and run. */
int manager_add(struct manager *m, const struct feature *feature, err_t *e)
{
    size_t controllers = m->controllers.n;
    vec_push(&m->features, ((struct manager_feature){ .feature = feature }));
    struct manager_feature *added = &m->features.at[m->features.n - 1];
    int r = feature->start(m, &added->state, e);
    if (r >= 0)
        return 0;
    bool is_usage =
        str_starts(str_c(e->text), S("--")); /* an invalid flag is a mistake to correct now */
    err_wrap(e, "%s", feature->name);
    if (m->controllers.n != controllers || is_usage)
        return r;
    added->failure = arena_str(&m->arena, str_c(e->text)).p;
    return -ECANCELED;
}

bool manager_has_features(const struct manager *m)
{
    for (size_t i = 0; i < m->features.n; i++)
        if (!m->features.at[i].failure)
            return true;
    return false;
}

/* ---- caches */

static void on_synced(void *context)
{
    struct manager_cache *c = context;
    log_debug("cache synced", KV_C("resource", cache_spec(c->cache)->resource->plural),
              KV_INT("objects", cache_count(c->cache)));
    start_controllers_if_ready(c->m);
}

/* Grows whenever the server sent something useful; distinguishes a repeated failure from a new one. */
static uint64_t count_progress(const struct manager_cache *c)
{
    const struct listwatch_stats *s = c->listwatch ? listwatch_stats(c->listwatch) : &c->reported;
    return s->events + s->lists;
}

/* Logs a failure of list or watch; the same failure without progress in between only every 5 minutes. */
static void on_trouble(void *context, const char *sentence)
{
    struct manager_cache *c = context;
    int64_t now = loop_mono_ns(c->m->loop);
    bool same =
        c->trouble && !strcmp(c->trouble, sentence) && count_progress(c) == c->progress_then;
    if (same && now - c->logged_ns < repeat_log_ns) {
        c->suppressed++;
        return;
    }
    log_warn("list or watch failed; retrying", KV_C("error", sentence),
             KV_C("resource", cache_spec(c->cache)->resource->plural),
             KV_INT("repeated", same ? c->suppressed : 0));
    free(c->trouble);
    c->trouble = mem_dup(sentence, strlen(sentence));
    c->logged_ns = now;
    c->suppressed = 0;
    c->progress_then = count_progress(c);
}

static uint64_t draw_seed(struct manager *m)
{
    return (uint64_t)random_u32(&m->random) << 32 | random_u32(&m->random);
}

static void on_kind_change(void *context, str name)
{
    struct manager *m = context;
    for (struct manager_cache *c = m->caches; c; c = c->next)
        if (c->listwatch && kube_kinds_defines(name, cache_spec(c->cache)->resource))
            listwatch_retry(c->listwatch);
}

/* A kind is absent: definitions are watched from now on. */
static bool kind_is_announced(void *context)
{
    struct manager *m = ((struct manager_cache *)context)->m;
    if (!m->kinds)
        m->kinds = kube_kinds_new(&(struct kinds_options){ .kube = m->o.kube,
                                                           .projector = m->projector,
                                                           .seed = draw_seed(m),
                                                           .total_max = m->o.cache_bytes_max,
                                                           .on_change = on_kind_change,
                                                           .context = m });
    return kube_kinds_is_watched(m->kinds);
}

static void manager_cache_start(struct manager_cache *c)
{
    struct manager *m = c->m;
    uint64_t seed = draw_seed(m);
    c->listwatch = listwatch_start(&(struct listwatch_options){ .kube = m->o.kube,
                                                                .cache = c->cache,
                                                                .seed = seed,
                                                                .total_max = m->o.cache_bytes_max,
                                                                .is_announced = kind_is_announced,
                                                                .on_synced = on_synced,
                                                                .on_trouble = on_trouble,
                                                                .context = c });
}

int manager_cache(struct manager *m, const struct cache_spec *spec, struct cache **ret, err_t *e)
{
    struct cache_spec own = *spec;
    if (!own.ns.n && own.resource->namespaced)
        own.ns = m->o.watch_namespace;
    struct cache *cache;
    int r = cache_new(m->projector, &own, &cache, e);
    if (r < 0)
        return r;
    struct manager_cache *c = mem_zero(1, sizeof(*c));
    *c = (struct manager_cache){ .m = m, .cache = cache, .next = m->caches };
    m->caches = c;
    if (m->running)
        manager_cache_start(c);
    *ret = cache;
    return 0;
}

struct cache *manager_find_cache(const struct manager *m, const struct cache_spec *spec)
{
    for (struct manager_cache *c = m->caches; c; c = c->next) {
        const struct cache_spec *own = cache_spec(c->cache);
        if (own->keep == spec->keep && !strcmp(own->resource->group, spec->resource->group) &&
            !strcmp(own->resource->plural, spec->resource->plural))
            return c->cache;
    }
    return NULL;
}

void *manager_find_state(const struct manager *m, const struct feature *feature)
{
    for (size_t i = 0; i < m->features.n; i++)
        if (m->features.at[i].feature == feature && !m->features.at[i].failure)
            return m->features.at[i].state;
    return NULL;
}

static bool all_synced(const struct manager *m)
{
    for (struct manager_cache *c = m->caches; c; c = c->next)
        if (!cache_synced(c->cache))
            return false;
    return true;
}

/* Asks every feature, even after one is not ready, so that `why_not` lists all reasons. */
static bool features_ready(const struct manager *m, struct buf *why_not)
{
    bool ready = true;
    for (size_t i = 0; i < m->features.n; i++) {
        const struct manager_feature *f = &m->features.at[i];
        if (f->failure) { /* reported, but no reason to keep the others from working */
            buf_printf(why_not, "%s%s", why_not->n ? ", " : "", f->failure);
            continue;
        }
        if (f->feature->ready && !f->feature->ready(f->state, why_not))
            ready = false;
    }
    return ready;
}

bool manager_ready(const struct manager *m, struct buf *why_not)
{
    if (!m->running) {
        buf_put(why_not, S("not started"));
        return false;
    }
    for (struct manager_cache *c = m->caches; c; c = c->next)
        if (!cache_synced(c->cache))
            buf_printf(why_not, "%swaiting for %s%s%s", why_not->n ? ", " : "",
                       cache_spec(c->cache)->resource->plural, c->trouble ? ": " : "",
                       c->trouble ? c->trouble : "");
    return all_synced(m) && features_ready(m, why_not);
}

/* ---- controllers */

struct controller *manager_controller(struct manager *m, const struct controller_spec *spec)
{
    struct controller *c = controller_new(m->o.kube, spec);
    vec_push(&m->controllers, c);
    if (m->controllers_started)
        controller_start(c);
    return c;
}

static int start_election_if_ready(struct manager *m, err_t *e);

/* Starts the controllers once all conditions hold; called whenever one of them may have changed. */
static void start_controllers_if_ready(struct manager *m)
{
    err_t e;
    auto_buf struct buf why_not = { 0 };
    if (m->controllers_started || !m->running || m->stopping)
        return;
    if (start_election_if_ready(m, &e) < 0) {
        manager_fail(m, e.text);
        return;
    }
    if (!manager_leads(m) || !manager_ready(m, &why_not))
        return;
    m->controllers_started = true;
    log_info("starting controllers", KV_INT("controllers", m->controllers.n),
             KV("identity", m->o.identity));
    for (size_t i = 0; i < m->controllers.n; i++)
        controller_start(m->controllers.at[i]);
}

void manager_recheck(struct manager *m)
{
    start_controllers_if_ready(m);
}

/* ---- election */

static void on_lead(void *context)
{
    struct manager *m = context;
    log_info("became leader", KV("identity", m->o.identity));
    start_controllers_if_ready(m);
}

static void on_lost(void *context)
{
    struct manager *m = context;
    log_error("lost leadership; all writes are stopped", KV("identity", m->o.identity));
    for (size_t i = 0; i < m->controllers.n; i++)
        controller_stop(m->controllers.at[i]);
    if (m->o.on_lost)
        m->o.on_lost(m->o.context);
}

static void on_election_trouble(void *context, const char *sentence)
{
    (void)context;
    log_warn("leader election failed; retrying", KV_C("error", sentence));
}

void manager_fail(struct manager *m, const char *why)
{
    log_error("unrecoverable failure; shutting down", KV_C("error", why));
    if (m->o.on_lost)
        m->o.on_lost(m->o.context);
}

/* Joins the election once the features are ready: a replica that is not must not take the lease from one
 * that is. */
static int start_election_if_ready(struct manager *m, err_t *e)
{
    auto_buf struct buf why_not = { 0 };
    if (!m->o.elect || m->election || !features_ready(m, &why_not))
        return 0;
    struct election_options election = m->o.election;
    election.kube = m->o.kube;
    election.identity = m->o.identity;
    election.seed = m->o.seed + 1;
    election.on_lead = on_lead;
    election.on_lost = on_lost;
    election.on_trouble = on_election_trouble;
    election.context = m;
    return election_start(&election, &m->election, e);
}

int manager_run(struct manager *m, err_t *e)
{
    int r = start_election_if_ready(m, e);
    if (r < 0)
        return r;
    m->running = true;
    for (struct manager_cache *c = m->caches; c; c = c->next) {
        kube_add_burst(m->o.kube, 1);
        manager_cache_start(c);
    }
    start_controllers_if_ready(m); /* with no cache there is nothing to wait for */
    return 0;
}

bool manager_leads(const struct manager *m)
{
    return m->o.elect ? election_leads(m->election) : m->running;
}

/* ---- stop */

static void finish_stop(void *context)
{
    struct manager *m = context;
    m->stopped(m->stopped_context);
}

static size_t count_running_turns(const struct manager *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->controllers.n; i++)
        n += controller_turns(m->controllers.at[i]);
    return n;
}

static bool flush_features(const struct manager *m)
{
    bool busy = false;
    for (size_t i = 0; i < m->features.n; i++)
        if (m->features.at[i].feature->flush && !m->features.at[i].failure)
            busy |= m->features.at[i].feature->flush(m->features.at[i].state);
    return busy;
}

/* Waits for running turns, then for the features' last writes, then releases the lease. Called when one of them
 * may have ended (resume_stop), and once more when the time is up. */
static void continue_stop(struct manager *m)
{
    bool is_late = loop_mono_ns(m->loop) >= m->stop_by_ns;
    if (!m->waits_to_stop || (!is_late && (count_running_turns(m) || flush_features(m))))
        return;
    m->waits_to_stop = false;
    timer_stop(&m->stop_timer);
    struct election *election = take(m->election);
    if (election)
        election_stop(election, finish_stop, m);
    else
        finish_stop(m);
}

static void on_stop_timeout(struct timer *timer)
{
    continue_stop(container_of(timer, struct manager, stop_timer));
}

static void on_stop_resumed(struct deferred *deferred)
{
    continue_stop(container_of(deferred, struct manager, stop_resumed));
}

/* Deferred: the caller is a turn or a feature, which the end of the stop frees. */
static void resume_stop(void *context)
{
    struct manager *m = context;
    if (m->waits_to_stop)
        loop_defer(m->loop, LOOP_SOON, &m->stop_resumed, on_stop_resumed);
}

void manager_flushed(struct manager *m)
{
    resume_stop(m);
}

/* Controllers finish the turns that they have begun and start no others; watches end at once. What does not
 * finish within stop_wait_ns is abandoned. */
void manager_stop(struct manager *m, void (*done)(void *context), void *context)
{
    m->stopping = m->waits_to_stop = true;
    m->stopped = done;
    m->stopped_context = context;
    for (size_t i = 0; i < m->controllers.n; i++)
        controller_drain(m->controllers.at[i], resume_stop, m);
    for (struct manager_cache *c = m->caches; c; c = c->next)
        listwatch_stop(take(c->listwatch));
    kube_kinds_free(take(m->kinds));
    m->stop_by_ns = loop_mono_ns(m->loop) + stop_wait_ns;
    timer_set(m->loop, &m->stop_timer, m->stop_by_ns, on_stop_timeout);
    resume_stop(m);
}

void manager_free(struct manager *m)
{
    if (!m)
        return;
    timer_stop(&m->stop_timer);
    loop_cancel_deferred(&m->stop_resumed);
    election_free(m->election);
    for (size_t i = 0; i < m->controllers.n; i++)
        controller_free(m->controllers.at[i]);
    for (size_t i = m->features.n; i--;)
        if (m->features.at[i].feature->stop)
            m->features.at[i].feature->stop(m->features.at[i].state);
    kube_kinds_free(m->kinds);
    for (struct manager_cache *c = m->caches, *next; c; c = next) {
        next = c->next;
        listwatch_stop(c->listwatch);
        cache_free(c->cache);
        free(c->trouble);
        free(c);
    }
    metrics_off_read(kube_metrics(m->o.kube), m);
    events_free(m->events);
    projector_free(m->projector);
    vec_done(&m->controllers);
    vec_done(&m->features);
    arena_done(&m->arena);
    free(m);
}

/* ---- for features */

struct loop *manager_loop(const struct manager *m)
{
    return m->loop;
}

struct metrics *manager_metrics(const struct manager *m)
{
    return kube_metrics(m->o.kube);
}

struct kube *manager_kube(const struct manager *m)
{
    return m->o.kube;
}

struct events *manager_events(const struct manager *m)
{
    return m->events;
}

str manager_identity(const struct manager *m)
{
    return m->o.identity;
}

str manager_watch_namespace(const struct manager *m)
{
    return m->o.watch_namespace;
}

static const char *find_default(const struct feature *feature, const char *name)
{
    for (const struct feature_setting *s = feature ? feature->settings : NULL; s && s->name; s++)
        if (!strcmp(s->name, name))
            return s->value;
    return NULL;
}

const char *manager_setting(const struct manager *m, const char *name)
{
    const char *value = m->o.setting ? m->o.setting(m->o.context, name) : NULL;
    for (size_t i = 0; i < m->features.n && !value; i++)
        value = find_default(m->features.at[i].feature, name);
    return value;
}

int manager_setting_bool(const struct manager *m, const char *name, bool *ret, err_t *e)
{
    const char *value = manager_setting(m, name);
    if (!value || (strcmp(value, "true") != 0 && strcmp(value, "false") != 0))
        return err_set(e, EINVAL, "--%s is \"%s\", but must be true or false", name,
                       value ? value : "");
    *ret = !strcmp(value, "true");
    return 0;
}
