/* Q-tables in ConfigMaps: see qtable_store.h.
 *
 *      startup   read_shard(0), (1), ... until 404            -> table texts, on_loaded()
 *                no shard at all: the tables of MBCAS, in mbcas-system
 *      every 30 s, and at shutdown
 *                collect() -> qtable_store_put() per agent    -> next of each table
 *                commit_next()                                -> changed?
 *                write_shard(0), (1), ...                     -> server-side apply, one at a time
 *
 * Pods of one workload share a table: the agent that learned most provides it. A failed write
 * sets `changed` again, so the next timer repeats all shards; at shutdown there is one attempt.
 * The store owns all texts; one call is pending at most. */
#include "qtable_store.h"

#include "../base/log.h"
#include "../base/map.h"
#include "../base/vec.h"
#include "market_agent_pod.h"
#include "qtable.h"

#include <stdio.h>

#define MBCAS_NAMESPACE "mbcas-system" /* where MBCAS wrote its tables */

static const int64_t save_every_ns = 30 * NS_PER_S;

enum { SHARD_BYTES_MAX = 900000, NAME_MAX_BYTES = 240, SHARDS_MAX = 64 };

struct table {
    char *text;   /* owned; as read or last written; "": neither */
    char *next;   /* owned; the best one put since then; NULL: none */
    int learned;  /* number of known values in `next` */
    bool present; /* the workload has a pod on this node; others are dropped when space is short */
    char key[];
};

struct qtable_store {
    struct qtable_store_options o;
    struct loop *loop;
    char *ns, *name;   /* owned */
    struct map tables; /* by key; owned */
    struct kube_call *call;
    struct timer timer;
    int shard, shards; /* being read or written; how many were written last time */
    bool loaded, changed;
    bool reads_old;        /* the tables of MBCAS are being read */
    bool stopping, failed; /* qtable_store_flush() was called; the write since then has failed */
};

/* ---- tables */

static struct table *find_or_add_table(struct qtable_store *s, str key)
{
    struct table *t = map_get(&s->tables, key);
    if (!t) {
        t = mem_zero(1, sizeof(*t) + key.n + 1);
        memcpy(t->key, key.p, key.n);
        t->text = mem_dup("", 0);
        map_put(&s->tables, (str){ t->key, key.n }, t);
    }
    return t;
}

/* Makes `next` the current text; true if it differs. */
static bool commit_next(struct table *t)
{
    char *next = take(t->next);
    if (!next || !strcmp(next, t->text)) {
        free(next);
        return false;
    }
    free(t->text);
    t->text = next;
    return true;
}

bool qtable_store_get(const struct qtable_store *s, str workload, str pod_uid, struct agent *agent)
{
    const struct table *t = map_get(&s->tables, workload);
    err_t e;
    if (!t)
        t = map_get(&s->tables, pod_uid);
    if (!t)
        return false;
    if (qtable_read(str_c(t->next ? t->next : t->text), agent, &e) == 0)
        return true;
    log_warn("invalid Q-table ignored", KV_C("key", t->key), KV_C("error", e.text));
    return false;
}

static int count_learnt(const struct agent *agent)
{
    int n = 0;
    for (uint8_t i = 0; i < agent->row_n; i++)
        n += __builtin_popcount(agent->rows[i].known);
    return n;
}

/* Of several pods of a workload, the agent that learned most wins; of equals, the larger text,
 * so that the result does not depend on the order. */
void qtable_store_put(struct qtable_store *s, str workload, const struct agent *agent)
{
    auto_buf struct buf text = { 0 };
    int learned = count_learnt(agent);
    if (!learned)
        return;
    qtable_write(agent, &text);
    struct table *t = find_or_add_table(s, workload);
    t->present = true;
    bool better = !t->next || learned > t->learned ||
                  (learned == t->learned && str_cmp(buf_str(&text), str_c(t->next)) > 0);
    if (!better)
        return;
    free(t->next);
    t->next = buf_take(&text);
    t->learned = learned;
}

/* ---- writing */

static int compare_tables(const void *a, const void *b)
{
    const struct table *const *x = a, *const *y = b;
    int presence = (*y)->present - (*x)->present;
    return presence ? presence : strcmp((*x)->key, (*y)->key);
}

static size_t table_bytes(const struct table *t)
{
    return strlen(t->key) + strlen(t->text);
}

/* Returns the `data` of this shard; NULL: no such shard. Only tables of present workloads start
 * a new shard. */
static struct json *shard_data(const struct qtable_store *s, struct arena *a, int shard)
{
    struct table **all = arena_array(a, s->tables.n + 1, sizeof(struct table *));
    size_t n = 0, bytes = 0;
    int at = 0;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->tables, slot));)
        all[n++] = slot->value;
    qsort(all, n, sizeof(*all), compare_tables);
    struct json *data = json_new_obj(a);
    for (size_t i = 0; i < n; i++) {
        bytes += table_bytes(all[i]);
        if (bytes > SHARD_BYTES_MAX) {
            if (!all[i]->present)
                break;
            at++;
            bytes = table_bytes(all[i]);
        }
        if (at == shard)
            json_append(a, data, str_c(all[i]->key), json_new_str(a, str_c(all[i]->text)));
    }
    return shard <= at ? data : NULL;
}

static void shard_name(const struct qtable_store *s, int shard, char out[static 256])
{
    if (shard)
        snprintf(out, 256, "%s-%d", s->name, shard);
    else
        snprintf(out, 256, "%s", s->name);
}

static void write_shard(struct qtable_store *s);

static void on_shard_written(void *context, const struct kube_reply *reply)
{
    struct qtable_store *s = context;
    s->call = NULL;
    if (reply->failure) {
        log_warn(s->stopping ? "cannot save Q-tables" : "cannot save Q-tables; retrying",
                 KV_C("error", reply->failure));
        s->changed = s->failed = true;
    } else {
        s->shard++;
        write_shard(s);
    }
    if (!s->call && s->o.on_saved)
        s->o.on_saved(s->o.context);
}

/* Shards that are no longer needed are emptied, so that old tables are not read again. */
static void write_shard(struct qtable_store *s)
{
    auto_arena struct arena a = { 0 };
    char name[256];
    struct json *data = shard_data(s, &a, s->shard);
    if (!data && s->shard >= s->shards) {
        s->shards = s->shard;
        return;
    }
    shard_name(s, s->shard, name);
    struct json *object = json_new_obj(&a), *meta = json_new_obj(&a);
    json_set_str(&a, object, "apiVersion", S("v1"));
    json_set_str(&a, object, "kind", S("ConfigMap"));
    json_set_str(&a, meta, "name", str_c(name));
    json_set_str(&a, meta, "namespace", str_c(s->ns));
    json_set(&a, object, S("metadata"), meta);
    if (data)
        json_set(&a, object, S("data"), data);
    s->call = kube_send(s->o.kube, &(struct kube_request){ .verb = KUBE_APPLY,
                                                           .resource = &resource_configmaps,
                                                           .ns = str_c(s->ns),
                                                           .name = str_c(name),
                                                           .body = json_to_str(&a, object),
                                                           .done = on_shard_written,
                                                           .context = s });
}

/* Writes if anything changed; true while a write is pending. */
static bool save_tables(struct qtable_store *s)
{
    if (s->call || !s->loaded)
        return s->loaded;
    for (struct map_slot *slot = NULL; (slot = map_next(&s->tables, slot));)
        ((struct table *)slot->value)->present = false;
    s->o.collect(s->o.context);
    for (struct map_slot *slot = NULL; (slot = map_next(&s->tables, slot));)
        s->changed |= commit_next(slot->value);
    if (!s->changed)
        return false;
    s->changed = false;
    s->shard = 0;
    write_shard(s);
    return s->call != NULL;
}

bool qtable_store_flush(struct qtable_store *s)
{
    if (!s->stopping)
        s->failed = false;
    s->stopping = true;
    return !s->failed && save_tables(s);
}

/* ---- reading */

static void read_shard(struct qtable_store *s);

static void on_timer(struct timer *timer)
{
    struct qtable_store *s = container_of(timer, struct qtable_store, timer);
    timer_set(s->loop, &s->timer, loop_mono_ns(s->loop) + save_every_ns, on_timer);
    if (s->loaded)
        save_tables(s);
    else if (!s->call)
        read_shard(s);
}

static void finish_loading(struct qtable_store *s)
{
    s->loaded = true;
    s->changed = false;
    s->shards = s->shard;
    log_debug("Q-tables loaded", KV_INT("tables", s->tables.n));
    s->o.on_loaded(s->o.context);
}

/* Stores the tables of a shard and reads the next one; 404 ends the loading. After a failure the
 * timer retries. */
static void on_shard_read(void *context, const struct kube_reply *reply)
{
    struct qtable_store *s = context;
    s->call = NULL;
    if (reply->reason == KUBE_NOT_FOUND && !s->shard && !s->reads_old &&
        !str_eqc(S(MBCAS_NAMESPACE), s->ns)) {
        s->reads_old = true;
        read_shard(s);
        return;
    }
    if (reply->reason == KUBE_NOT_FOUND || (s->reads_old && reply->reason == KUBE_FORBIDDEN)) {
        finish_loading(s);
        return;
    }
    if (reply->failure) {
        log_warn("cannot read Q-tables; retrying", KV_C("error", reply->failure));
        return;
    }
    json_each(m, json_get(reply->object, "data")) {
        struct table *t = find_or_add_table(s, m->key);
        free(t->text);
        t->text = mem_dup(json_text(m->value).p, json_text(m->value).n);
    }
    if (s->reads_old)
        log_info("Q-tables of MBCAS imported", KV_C("namespace", MBCAS_NAMESPACE));
    if (!s->reads_old && ++s->shard < SHARDS_MAX)
        read_shard(s);
    else
        finish_loading(s);
}

static void read_shard(struct qtable_store *s)
{
    char name[256];
    shard_name(s, s->shard, name);
    s->call = kube_send(s->o.kube, &(struct kube_request){ .verb = KUBE_GET,
                                                           .resource = &resource_configmaps,
                                                           .ns = s->reads_old ? S(MBCAS_NAMESPACE)
                                                                              : str_c(s->ns),
                                                           .name = str_c(name),
                                                           .done = on_shard_read,
                                                           .context = s });
}

/* ---- life */

struct qtable_store *qtable_store_new(const struct qtable_store_options *options)
{
    struct qtable_store *s = mem_zero(1, sizeof(*s));
    auto_buf struct buf name = { 0 }, whole = { 0 };
    s->o = *options;
    s->loop = kube_loop(options->kube);
    buf_printf(&whole, "mbcas-qtable-" STR_FMT, STR_ARG(options->node));
    market_agent_pod_shorten_name(buf_str(&whole), NAME_MAX_BYTES, &name);
    s->name = buf_take(&name);
    s->ns = mem_dup(options->ns.p, options->ns.n);
    timer_set(s->loop, &s->timer, loop_mono_ns(s->loop), on_timer);
    return s;
}

void qtable_store_free(struct qtable_store *s)
{
    if (!s)
        return;
    timer_stop(&s->timer);
    kube_call_cancel(s->call);
    for (struct map_slot *slot = NULL; (slot = map_next(&s->tables, slot));) {
        struct table *t = slot->value;
        free(t->text);
        free(t->next);
        free(t);
    }
    map_done(&s->tables);
    free(s->name);
    free(s->ns);
    free(s);
}

bool qtable_store_is_loaded(const struct qtable_store *s)
{
    return s->loaded;
}
