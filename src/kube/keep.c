/* State that survives a restart, as named texts in ConfigMaps. The contract is in keep.h.
 *
 *     keep_put --> entry in one shard --> dirty --> settle (5 s) and period (60 s) --> server-side apply
 *                                                                                           |
 *     keep_get <-- entries <-- cache of the ConfigMap <--------- watch ---------------------+
 *
 * Every text is in one shard (one ConfigMap) and stays there. A shard is written as a whole: server-side
 * apply then removes the keys that are no longer in it.
 *
 *   following   entries are copies of what the caches show
 *   writing     entries are authoritative; a cache that shows anything else makes its shard dirty
 *
 * The first keep_put() or keep_del() switches from following to writing, for good. A dirty shard is written
 * once its change has settled and its last write is a period ago; one timer serves all shards. A failed
 * write marks the shard dirty again, so it is retried after a period.
 *
 * Ownership: entries own their key and text; caches belong to the manager. */
#include "keep.h"

#include "../base/log.h"
#include "../base/map.h"
#include "../base/sha256.h"
#include "../base/vec.h"

#include <stdio.h>

enum { KEY_HEX = 16 };

struct keep_record {
    struct record meta;
    str data; /* JSON */
};

struct keep_entry {
    char *key, *text; /* owned */
    size_t key_n, text_n;
    size_t shard;
    uint64_t used; /* number of the last put: the smallest is the least recently used */
};

struct keep_shard {
    struct keep *k;
    struct cache *cache; /* owned by the manager */
    str name;            /* in the arena */
    size_t bytes;        /* of its entries */
    bool dirty;
    int64_t dirty_ns, written_ns; /* mono; written_ns 0: never */
    struct kube_call *call;       /* write in flight; NULL: none */
};

struct keep {
    struct manager *m;
    struct loop *loop;
    struct keep_options o;
    struct arena arena;
    struct map entries; /* of struct keep_entry, owned */
    struct keep_shard shards[KEEP_SHARDS_MAX];
    uint64_t puts;
    bool writing;
    bool failure_logged; /* writes fail, and that was logged */
    struct timer timer;
};

static const struct field keep_fields[] = {
    { "data", F_RAW, offsetof(struct keep_record, data) },
};
static const struct fields keep_kept = { sizeof(struct keep_record), keep_fields,
                                         countof(keep_fields) };

/* ---- entries */

static size_t entry_bytes(const struct keep_entry *x)
{
    return x->key_n + x->text_n;
}

static struct keep_entry *find_entry(const struct keep *k, str key)
{
    return map_get(&k->entries, key);
}

static void entry_remove(struct keep *k, struct keep_entry *x)
{
    k->shards[x->shard].bytes -= entry_bytes(x);
    map_del(&k->entries, (str){ x->key, x->key_n });
    free(take(x->key));
    free(take(x->text));
    free(x);
}

static struct keep_entry *entry_add(struct keep *k, size_t shard, str key, str text)
{
    struct keep_entry *x = mem_zero(1, sizeof(*x));
    *x = (struct keep_entry){ .key = mem_dup(key.p, key.n),
                              .text = mem_dup(text.p, text.n),
                              .key_n = key.n,
                              .text_n = text.n,
                              .shard = shard };
    map_put(&k->entries, (str){ x->key, x->key_n }, x);
    k->shards[shard].bytes += entry_bytes(x);
    return x;
}

/* Linear: only needed when all shards are full. */
static struct keep_entry *find_least_used(const struct keep *k)
{
    struct keep_entry *found = NULL;
    for (struct map_slot *slot = NULL; (slot = map_next(&k->entries, slot));) {
        struct keep_entry *x = slot->value;
        if (!found || x->used < found->used)
            found = x;
    }
    return found;
}

/* ---- writing */

static void schedule_write(struct keep *k);

static void mark_dirty(struct keep_shard *s)
{
    if (s->dirty)
        return;
    s->dirty = true;
    s->dirty_ns = loop_mono_ns(s->k->loop);
    schedule_write(s->k);
}

static struct json *shard_data(struct arena *a, const struct keep_shard *s)
{
    struct json *data = json_new_obj(a);
    const struct keep *k = s->k;
    for (struct map_slot *slot = NULL; (slot = map_next(&k->entries, slot));) {
        const struct keep_entry *x = slot->value;
        if (x->shard == (size_t)(s - k->shards))
            json_append(a, data, (str){ x->key, x->key_n },
                        json_new_str(a, (str){ x->text, x->text_n }));
    }
    return data;
}

static void on_shard_written(void *context, const struct kube_reply *reply)
{
    struct keep_shard *s = context;
    struct keep *k = s->k;
    s->call = NULL;
    if (reply->failure) {
        if (!k->failure_logged)
            log_warn("last good state cannot be saved: a restart may decide differently; retrying",
                     KV("namespace", k->o.ns), KV("name", s->name), KV_C("error", reply->failure));
        k->failure_logged = true;
        mark_dirty(s);
    } else {
        k->failure_logged = false;
    }
    schedule_write(k);
    manager_flushed(k->m);
}

/* Applies the whole shard as one ConfigMap. */
static void write_shard(struct keep_shard *s)
{
    auto_arena struct arena a = { 0 };
    struct keep *k = s->k;
    struct json *object = json_new_obj(&a), *meta = json_make(&a, object, "metadata", NULL);
    json_set_str(&a, object, "apiVersion", S("v1"));
    json_set_str(&a, object, "kind", S("ConfigMap"));
    json_set_str(&a, meta, "name", s->name);
    json_set_str(&a, meta, "namespace", k->o.ns);
    json_set_str(&a, json_make(&a, meta, "labels", NULL), "app.kubernetes.io/managed-by",
                 S("flyball"));
    json_set(&a, object, S("data"), shard_data(&a, s));
    s->dirty = false;
    s->written_ns = MAX(loop_mono_ns(k->loop), (int64_t)1);
    s->call =
        kube_send(manager_kube(k->m), &(struct kube_request){ .verb = KUBE_APPLY,
                                                              .resource = &resource_configmaps,
                                                              .ns = k->o.ns,
                                                              .name = s->name,
                                                              .field_manager = k->o.field_manager,
                                                              .body = json_to_str(&a, object),
                                                              .done = on_shard_written,
                                                              .context = s });
}

/* When a dirty shard may be written. */
static int64_t due_ns(const struct keep_shard *s)
{
    int64_t settled = s->dirty_ns + s->k->o.settle_ns;
    return s->written_ns ? MAX(settled, s->written_ns + s->k->o.period_ns) : settled;
}

static void on_write_timer(struct timer *timer)
{
    struct keep *k = container_of(timer, struct keep, timer);
    int64_t now = loop_mono_ns(k->loop);
    for (size_t i = 0; i < k->o.shards; i++) {
        struct keep_shard *s = &k->shards[i];
        if (s->dirty && !s->call && due_ns(s) <= now)
            write_shard(s);
    }
    schedule_write(k);
}

static void schedule_write(struct keep *k)
{
    int64_t next = INT64_MAX;
    for (size_t i = 0; i < k->o.shards; i++)
        if (k->shards[i].dirty && !k->shards[i].call)
            next = MIN(next, due_ns(&k->shards[i]));
    if (next != INT64_MAX)
        timer_set(k->loop, &k->timer, next, on_write_timer);
    else
        timer_stop(&k->timer);
}

bool keep_flush(struct keep *k)
{
    bool busy = false;
    for (size_t i = 0; k && i < k->o.shards; i++) {
        struct keep_shard *s = &k->shards[i];
        if (s->dirty && !s->call && !k->failure_logged)
            write_shard(s);
        busy |= s->call != NULL;
    }
    return busy;
}

/* ---- changing */

/* Returns a shard with room for `bytes` more, evicting the least recently used entries if necessary. */
static size_t make_room(struct keep *k, size_t bytes)
{
    for (;;) {
        for (size_t i = 0; i < k->o.shards; i++)
            if (k->shards[i].bytes + bytes <= KEEP_SHARD_BYTES)
                return i;
        struct keep_entry *x = find_least_used(k);
        assert(x); /* a full shard has entries */
        log_warn("state is full: evicted the least recently used entry", KV("name", k->o.name),
                 KV_C("key", x->key), KV_INT("bytes", entry_bytes(x)));
        mark_dirty(&k->shards[x->shard]);
        entry_remove(k, x);
    }
}

/* Stores a text under a key. An unchanged text only counts as used. False: it is too large to be kept. */
bool keep_put(struct keep *k, str key, str text)
{
    struct keep_entry *x = find_entry(k, key);
    k->writing = true;
    if (x && str_eq((str){ x->text, x->text_n }, text)) {
        x->used = ++k->puts;
        return true;
    }
    if (key.n + text.n > KEEP_SHARD_BYTES) {
        log_error("state entry is too large and will not survive a restart", KV("name", k->o.name),
                  KV("key", key), KV_INT("bytes", text.n), KV_INT("limit", KEEP_SHARD_BYTES));
        return false;
    }
    if (x) {
        mark_dirty(&k->shards[x->shard]);
        entry_remove(k, x);
    }
    size_t shard = make_room(k, key.n + text.n);
    entry_add(k, shard, key, text)->used = ++k->puts;
    mark_dirty(&k->shards[shard]);
    return true;
}

void keep_del(struct keep *k, str key)
{
    struct keep_entry *x = find_entry(k, key);
    k->writing = true;
    if (!x)
        return;
    mark_dirty(&k->shards[x->shard]);
    entry_remove(k, x);
}

/* ---- reading */

str keep_get(const struct keep *k, str key)
{
    const struct keep_entry *x = find_entry(k, key);
    return x ? (str){ x->text, x->text_n } : (str){ NULL, 0 };
}

size_t keep_count(const struct keep *k)
{
    return k->entries.n;
}

void keep_each(const struct keep *k, void (*fn)(void *context, str key, str text), void *context)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&k->entries, slot));) {
        const struct keep_entry *x = slot->value;
        fn(context, (str){ x->key, x->key_n }, (str){ x->text, x->text_n });
    }
}

bool keep_is_loaded(const struct keep *k)
{
    for (size_t i = 0; i < k->o.shards; i++)
        if (!cache_synced(k->shards[i].cache))
            return false;
    return true;
}

static void shard_clear(struct keep_shard *s)
{
    struct keep *k = s->k;
    VEC(struct keep_entry *) own = { 0 };
    for (struct map_slot *slot = NULL; (slot = map_next(&k->entries, slot));) {
        struct keep_entry *x = slot->value;
        if (x->shard == (size_t)(s - k->shards))
            vec_push(&own, x);
    }
    for (size_t i = 0; i < own.n; i++)
        entry_remove(k, own.at[i]);
    vec_done(&own);
}

/* Any client with write access may have edited it: entries that do not fit are skipped. */
static void shard_load(struct keep_shard *s, const struct json *data)
{
    struct keep *k = s->k;
    shard_clear(s);
    json_each(m, data) {
        str text = json_text(m->value);
        if (!json_is(m->value, JSON_STR) || find_entry(k, m->key) ||
            s->bytes + m->key.n + text.n > KEEP_SHARD_BYTES)
            continue;
        entry_add(k, (size_t)(s - k->shards), m->key, text);
    }
}

/* Following: loads the ConfigMap. Writing: restores our texts if another client changed or deleted it. */
static void on_shard_change(void *context, const struct record *old, const struct record *now)
{
    struct keep_shard *s = context;
    auto_arena struct arena a = { 0 };
    struct json *data = NULL;
    (void)old;
    str text = now ? record_as(struct keep_record, now)->data : S("");
    if (text.n && json_parse(&a, text, &data, NULL) < 0)
        data = NULL;
    if (!s->k->writing) {
        shard_load(s, data);
        if (s->k->o.on_read)
            s->k->o.on_read(s->k->o.context);
        return;
    }
    struct json *ours = shard_data(&a, s);
    if (!s->call && !json_eq(data ? data : json_new_obj(&a), ours))
        mark_dirty(s); /* another client changed or deleted it */
}

/* ---- life */

static int open_shard(struct keep *k, size_t i, err_t *e)
{
    struct keep_shard *s = &k->shards[i];
    s->k = k;
    s->name = i ? arena_printf(&k->arena, STR_FMT "-%zu", STR_ARG(k->o.name), i) : k->o.name;
    struct cache_spec spec = {
        .resource = &resource_configmaps,
        .need = CACHE_IF_ALLOWED,
        .keep = &keep_kept,
        .ns = k->o.ns,
        .field_selector = arena_printf(&k->arena, "metadata.name=" STR_FMT, STR_ARG(s->name)),
    };
    if (manager_cache(k->m, &spec, &s->cache, e) < 0)
        return -e->code;
    cache_handle(s->cache, on_shard_change, s);
    return 0;
}

int keep_new(struct manager *m, const struct keep_options *options, struct keep **ret, err_t *e)
{
    struct keep *k = mem_zero(1, sizeof(*k));
    assert(options->shards <= KEEP_SHARDS_MAX);
    *ret = k; /* handlers of the caches refer to it: freed when the features stop */
    k->m = m;
    k->loop = manager_loop(m);
    k->o = *options;
    k->o.ns = arena_str(&k->arena, options->ns);
    k->o.name = arena_str(&k->arena, options->name);
    k->o.field_manager = options->field_manager.n ? arena_str(&k->arena, options->field_manager)
                                                  : S("flyball-state");
    k->o.shards = options->shards ? options->shards : 1;
    k->o.settle_ns = options->settle_ns ? options->settle_ns : 5 * NS_PER_S;
    k->o.period_ns = options->period_ns ? options->period_ns : 60 * NS_PER_S;
    for (size_t i = 0; i < k->o.shards; i++)
        if (open_shard(k, i, e) < 0)
            return -e->code;
    return 0;
}

void keep_free(struct keep *k)
{
    if (!k)
        return;
    timer_stop(&k->timer);
    for (size_t i = 0; i < k->o.shards; i++) {
        kube_call_cancel(k->shards[i].call);
        if (k->shards[i].k)
            shard_clear(&k->shards[i]);
    }
    map_done(&k->entries);
    arena_done(&k->arena);
    free(k);
}

str keep_key(struct arena *a, const char *prefix, const str *parts, size_t n)
{
    struct sha256 h;
    uint8_t digest[SHA256_BYTES];
    char hex[KEY_HEX + 1];
    sha256_init(&h);
    for (size_t i = 0; i < n; i++) {
        sha256_feed(&h, i ? S("|") : S(""));
        sha256_feed(&h, parts[i]);
    }
    sha256_finish(&h, digest);
    for (size_t i = 0; i < KEY_HEX / 2; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
    return arena_printf(a, "%s.%s", prefix, hex);
}
