/* See crash_world.h.
 *
 *     stage_write --> commit --> acknowledged: the model keeps it
 *                        |
 *                        +-- each write and sync of the disk --> on_point --> crash_world_check_crash
 *                                                                    |
 *                                                                    +-- the life ends: `next` is what is left
 *
 * Checks open copies of the disk, so they do not disturb the run; `checking` keeps their own writes from being points.
 * struct crash_world owns its disks, its store and the objects of the model. */
#include "crash_world.h"

#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    KEYS = 10,
    HISTORY_EVENTS = 24,
    LOG_FRAMES = 40, /* checkpoints come often */
    BATCHES = 60,    /* of a run */
    LARGE_BYTES = 300 << 10,
    TIDY_STEPS_MAX = 1000, /* more: a step that achieves nothing is asked for again and again */
};

const char *const crash_world_kind_names[CRASH_KIND_N] = {
    "process killed, then power failure", "all unsynced writes lost",
    "all unsynced writes kept",           "a torn write",
    "lost, reordered and torn sectors",   "late writes without earlier ones"
};

/* ---- failures */

static void report_failure(struct crash_world *w, const char *what, long long got, long long want)
{
    w->counts->failed++;
    if (!w->quiet && w->counts->failed < 20)
        printf("# seed %llu, write %zu, %s: %s (%lld, %lld)\n", (unsigned long long)w->seed,
               w->acked, w->doing ? w->doing : "start", what, got, want);
}

/* ---- checking a disk */

int crash_world_open_store(const char *path, struct store **ret, err_t *e)
{
    struct store_options o = { .path = path,
                               .history_events = HISTORY_EVENTS,
                               .log_frames = LOG_FRAMES };
    return store_open(&o, ret, e);
}

/* The newest write of a key among the first n. */
static const struct crash_world_write *find_newest(const struct crash_world *w, size_t n, str key)
{
    while (n--)
        if (str_eq(object_key(w->writes.at[n].now), key))
            return &w->writes.at[n];
    return NULL;
}

static bool is_same_object(const struct object *a, const struct object *b)
{
    return a->rev == b->rev && a->deleted == b->deleted && str_eq(object_json(a), object_json(b));
}

static void check_tree(struct crash_world *w, const struct store *s, size_t n)
{
    size_t found = 0, want = 0;
    for (size_t i = 0; i < n; i++) {
        const struct object *o = w->writes.at[i].now;
        want += !o->deleted && find_newest(w, n, object_key(o))->now == o;
    }
    struct tree_cursor c = tree_seek(store_tree(s), S(""));
    for (struct object *o; (o = tree_next(&c)); found++) {
        const struct crash_world_write *last = find_newest(w, n, object_key(o));
        if (!last || !is_same_object(last->now, o))
            report_failure(w, "an object is not what was acknowledged", o->rev,
                           last ? last->now->rev : 0);
    }
    if (found != want)
        report_failure(w, "objects are missing or too many", (long long)found, (long long)want);
}

static void check_history(struct crash_world *w, const struct store *s, size_t n)
{
    const struct history *h = store_history(s);
    if (n == w->acked && h->compacted > w->compacted)
        report_failure(w, "the history lost its beginning", h->compacted, w->compacted);
    size_t i = 0;
    while (i < n && w->writes.at[i].now->rev <= h->compacted)
        i++;
    for (uint64_t at = h->first; at < h->next; at++, i++) {
        const struct event *e = history_at(h, at);
        if (i >= n || !is_same_object(e->now, w->writes.at[i].now)) {
            report_failure(w, "an event is wrong", e->now->rev,
                           i < n ? w->writes.at[i].now->rev : -1);
            return;
        }
        if ((e->was ? e->was->rev : 0) != w->writes.at[i].prev_rev)
            report_failure(w, "an event replaced something else", e->now->rev,
                           w->writes.at[i].prev_rev);
    }
    if (i != n)
        report_failure(w, "events are missing", (long long)i, (long long)n);
}

/* How many of the writes the store holds, or -1: its version is none that it may have. */
static long count_held_writes(struct crash_world *w, const struct store *s, size_t at_least)
{
    int64_t rev = store_rev(s), least = at_least ? w->writes.at[at_least - 1].now->rev : 0;
    if (rev == least)
        return (long)at_least;
    size_t most = w->acked + w->in_flight;
    if (w->in_flight && rev == w->writes.at[most - 1].now->rev)
        return (long)most;
    report_failure(w,
                   rev < least ? "acknowledged writes are lost"
                               : "half a transaction or a refused one",
                   rev, least);
    return -1;
}

long crash_world_check_store(struct crash_world *w, const struct store *s, size_t at_least)
{
    long n = count_held_writes(w, s, at_least);
    if (n < 0)
        return n;
    check_tree(w, s, (size_t)n);
    check_history(w, s, (size_t)n);
    return n;
}

static void check_integrity(struct crash_world *w, const char *path)
{
    sqlite3 *raw;
    sqlite3_stmt *s = NULL;
    sqlite3_open_v2(path, &raw, SQLITE_OPEN_READWRITE, NULL);
    sqlite3_exec(raw, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL);
    if (sqlite3_prepare_v2(raw, "PRAGMA integrity_check(1)", -1, &s, NULL) != SQLITE_OK ||
        sqlite3_step(s) != SQLITE_ROW || strcmp((const char *)sqlite3_column_text(s, 0), "ok") != 0)
        report_failure(w, "SQLite's integrity check found damage", 0, 0);
    sqlite3_finalize(s);
    sqlite3_close(raw);
}

/* Opens the disk "crash" as a start after the crash does. Returns how many writes it holds, or -1. */
static long check_start(struct crash_world *w, size_t at_least)
{
    struct store *s;
    err_t e = { 0 };
    if (crash_world_open_store("/crash/state.db", &s, &e) < 0) {
        report_failure(w, e.text, 0, 0);
        return -1;
    }
    long n = crash_world_check_store(w, s, at_least);
    store_close(s);
    check_integrity(w, "/crash/state.db");
    return n;
}

static bool is_known_state(struct crash_world *w, const struct crash_disk *d)
{
    uint64_t sum = crash_disk_sum(d) + w->acked * 0x9e3779b97f4a7c15 + w->writes.n + 1;
    for (uint64_t i = sum;; i++) {
        uint64_t *slot = &w->seen[i % CRASH_WORLD_SEEN_SLOTS];
        if (*slot == sum)
            return true;
        if (!*slot) {
            *slot = sum;
            return false;
        }
    }
}

/* ---- the process dies, and perhaps the power goes later */

static void tamper_with_log(struct crash_world *w, struct crash_disk *d)
{
    struct crash_file *log = crash_disk_file(d, "state.db-wal");
    if (!log || !log->now.n)
        return;
    switch (random_below(&w->random, 4)) {
    case 0:
        log->now.n = 0;
        break;
    case 1:
        log->now.n = random_below(&w->random, (uint32_t)log->now.n);
        break;
    case 2:
        log->now.p[random_below(&w->random, (uint32_t)log->now.n)] ^= 0x10;
        break;
    default:
        if (w->old_log_n)
            crash_file_replace(log, (str){ w->old_log, w->old_log_n });
    }
}

/* Whatever is done to the log: what was acknowledged is there, or the start is refused. */
static void check_tampered(struct crash_world *w)
{
    struct crash_disk *d = crash_disk_after(w->live, "crash", CRASH_KILL, &w->random);
    struct store *s;
    err_t e = { 0 };
    tamper_with_log(w, d);
    w->counts->tampered++;
    if (crash_world_open_store("/crash/state.db", &s, &e) < 0) {
        w->counts->tampered_refused++;
        if (!e.text[0])
            report_failure(w, "a refusal without a message", 0, 0);
    } else {
        crash_world_check_store(w, s, w->acked);
        store_close(s);
    }
    crash_disk_free(d);
}

/* What a start showed to readers must survive the power failure that follows. */
static void check_killed(struct crash_world *w)
{
    struct crash_disk *killed = crash_disk_after(w->live, "killed", CRASH_KILL, &w->random);
    killed->full = w->live->full && random_below(&w->random, 2);
    struct store *s;
    err_t e = { 0 };
    if (crash_world_open_store("/killed/state.db", &s, &e) < 0) {
        report_failure(w, e.text, 0, 0);
    } else {
        long n = crash_world_check_store(w, s, w->acked);
        enum crash_kind kind = 1 + random_below(&w->random, CRASH_KIND_N - 1);
        struct crash_disk *d = crash_disk_after(killed, "crash", kind, &w->random);
        if (n >= 0)
            check_start(w, (size_t)n);
        crash_disk_free(d);
        store_close(s);
    }
    crash_disk_free(killed);
}

void crash_world_check_crash(struct crash_world *w, enum crash_kind kind)
{
    w->doing = crash_world_kind_names[kind];
    if (kind == CRASH_KILL) {
        check_killed(w);
        w->doing = "tampered log";
        /* until a start after a power failure is done, the mark may be older than the last acknowledgement */
        if (w->store && random_below(&w->random, 2))
            check_tampered(w);
    } else {
        struct crash_disk *d = crash_disk_after(w->live, "crash", kind, &w->random);
        d->full = w->live->full && random_below(&w->random, 2); /* a start on a full disk */
        if (w->seen && is_known_state(w, d)) {
            w->counts->repeated++;
            crash_disk_free(d);
            return;
        }
        check_start(w, w->acked);
        crash_disk_free(d);
    }
    w->counts->states++;
    w->counts->kinds[kind]++;
    w->doing = NULL;
}

/* ---- points */

static enum crash_kind pick_kind(struct crash_world *w)
{
    return random_below(&w->random, 3) ? CRASH_REORDERED : random_below(&w->random, CRASH_KIND_N);
}

static void on_point(void *context, bool sync)
{
    struct crash_world *w = context;
    if (w->checking)
        return;
    w->checking = true;
    /* Large states take long: fewer of them. */
    size_t bytes = crash_disk_bytes(w->live);
    bool looks = !w->blind &&
                 (bytes < LARGE_BYTES || random_below(&w->random, (uint32_t)bytes) < LARGE_BYTES);
    if (w->full_in && !sync && --w->full_in == 0)
        w->live->full = true;
    if (sync && looks) {
        for (enum crash_kind kind = 0; kind < CRASH_KIND_N; kind++)
            if (kind != CRASH_KILL || random_below(&w->random, 8) == 0)
                crash_world_check_crash(w, kind);
        crash_world_check_crash(w, CRASH_REORDERED);
    } else if (looks && random_below(&w->random, 16) < w->density) {
        crash_world_check_crash(w, pick_kind(w));
    }
    if (w->dies_in && --w->dies_in == 0) {
        w->next = crash_disk_after(w->live, "next", w->dies_late ? CRASH_LATE_ONLY : pick_kind(w),
                                   &w->random);
        if (w->next->throwaway)
            crash_disk_keep(w->next);
        w->live->off = true;
    }
    w->checking = false;
}

/* ---- work */

static size_t pick_size(struct crash_world *w)
{
    uint32_t chance = random_below(&w->random, 1000);
    if (chance < 800)
        return 100 + random_below(&w->random, 3000);
    if (chance < 970)
        return 3000 + random_below(&w->random, 30000);
    return chance < 997 ? 200000 + random_below(&w->random, 100000) : 1400000;
}

static void pick_key(struct crash_world *w, char *text, size_t n)
{
    static const char *const places[] = { "/configmaps/default/c", "/namespaces//n",
                                          "/apiextensions.k8s.io/customresourcedefinitions//d",
                                          "/apps/deployments/default/w" };
    uint32_t i = random_below(&w->random, KEYS);
    snprintf(text, n, "%s%u", places[i % countof(places)], i);
}

static void stage_write(struct crash_world *w)
{
    char key[80];
    pick_key(w, key, sizeof(key));
    struct object *was = store_latest(w->store, str_c(key));
    int64_t rev = store_next_rev(w->store);
    bool deletes = was && random_below(&w->random, w->full_for ? 2 : 3) == 0;
    auto_buf struct buf json = { 0 };
    buf_printf(&json,
               "{\"kind\":\"T\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
               "\"resourceVersion\":\"%lld\"},\"data\":\"",
               strrchr(key, '/') + 1, (long long)rev);
    size_t size = deletes ? 100 : pick_size(w), at = json.n;
    buf_reserve(&json, size + 3);
    memset(json.p + at, 'a' + (int)(rev % 26), size);
    json.n += size;
    buf_put(&json, S("\"}"));
    struct object *o;
    if (object_new(str_c(key), buf_str(&json), rev, deletes, &o) < 0)
        abort();
    w->needs_room |= !deletes && (!was || o->json_n > was->json_n);
    struct crash_world_write made = { object_ref(o), was ? was->rev : 0 };
    vec_push(&w->writes, made);
    store_stage(w->store, o);
}

struct outcome {
    struct store_waiter waiter;
    int result;
};

static void record_outcome(struct store_waiter *waiter, int result, const err_t *e UNUSED)
{
    container_of(waiter, struct outcome, waiter)->result = result;
}

void crash_world_forget(struct crash_world *w, size_t keep)
{
    while (w->writes.n > keep)
        object_unref(w->writes.at[--w->writes.n].now);
}

void crash_world_run_tidy(struct crash_world *w, bool idle)
{
    int steps = 0;
    for (struct store_batch *b; (b = store_tidy(w->store, idle)) && steps < TIDY_STEPS_MAX;
         steps++) {
        store_batch_write(b);
        store_finish(w->store, b);
        w->counts->checkpoints++;
    }
    if (steps == TIDY_STEPS_MAX)
        report_failure(w, "maintenance does not end", steps, 0);
}

/* Decides when the disk becomes full, and for how long. */
static void fill_disk(struct crash_world *w)
{
    if (w->full_for)
        return;
    w->live->copies = random_below(&w->random, 4) == 0;
    if (random_below(&w->random, w->often_full ? 2 : 12))
        return;
    w->full_in = 1 + random_below(&w->random, 20);
    if (w->stays_full || random_below(&w->random, 3) == 0) {
        w->full_for = 2 + random_below(&w->random, 12);
        w->live->copies = false;
    }
}

/* After a batch: another process has removed its files, or has taken what is left. */
static void empty_disk(struct crash_world *w)
{
    w->full_in = 0;
    w->known_full = w->live->full && w->full_for > 1;
    if (w->known_full) {
        w->full_for--;
        w->live->room = random_below(&w->random, 4) ? w->live->room : 0;
        return;
    }
    w->full_for = 0;
    w->live->full = false;
    w->live->room = 0;
}

/* What became of a batch that was not committed; what was staged after it is lost as well. */
static void take_refusal(struct crash_world *w, int result, bool may_fail)
{
    if (result == -ENOSPC) {
        if (w->known_full && !w->needs_room && !w->lost_reserve)
            report_failure(w, "a full disk refused what needs no room", w->live->room, 0);
        crash_world_forget(w, w->acked);
        w->in_flight = 0;
        w->counts->refused++;
    } else if (!w->live->off) {
        if (!may_fail)
            report_failure(w, "a commit failed", result, 0);
        w->live->off = true; /* nothing more can be written: kill it */
    }
}

/* Writes the next batch of what was staged: on a full disk there may be several. */
static bool write_batch(struct crash_world *w)
{
    struct store_batch *b = store_flush(w->store);
    if (!b)
        return false;
    int64_t rev = store_rev(w->store);
    size_t n = store_batch_size(b);
    w->in_flight = n;
    store_batch_write(b);
    store_finish(w->store, b);
    if (store_rev(w->store) == rev)
        return false; /* refused, or the disk is off and it may be there */
    w->in_flight = 0;
    w->acked += n;
    w->compacted = store_kept_from(w->store);
    w->counts->commits++;
    w->counts->taken_full += w->live->full;
    return true;
}

void crash_world_run_batch(struct crash_world *w)
{
    uint32_t n = random_below(&w->random, 4) ? 1 : 1 + random_below(&w->random, 6);
    w->needs_room = false;
    while (n--)
        stage_write(w);
    struct outcome outcome = { .waiter.done = record_outcome };
    store_wait(w->store, &outcome.waiter);
    fill_disk(w);
    while (write_batch(w))
        ;
    if (outcome.result < 0)
        take_refusal(w, outcome.result, w->live->full && w->live->copies);
    else if (!w->live->full)
        w->lost_reserve = false; /* a commit with room makes it again; room alone does not */
    empty_disk(w);
}

/* Only logs that led to what there is now: after a power failure, another one may hold what was never
 * acknowledged, and it would be right to continue with that. */
static void copy_old_log(struct crash_world *w)
{
    struct crash_file *log = crash_disk_file(w->live, "state.db-wal");
    if (!log || random_below(&w->random, 20) || w->live->off)
        return;
    free(w->old_log);
    w->old_log = mem_dup(log->now.n ? log->now.p : "", log->now.n);
    w->old_log_n = log->now.n;
}

/* A full disk is still full after the crash, half of the time; what a released reserve left is gone then. */
static void switch_disk(struct crash_world *w)
{
    bool full = w->full_for && w->live->full && random_below(&w->random, 2);
    w->next->full = full;
    w->counts->writes += w->live->writes;
    w->counts->syncs += w->live->syncs;
    crash_disk_free(w->live);
    w->live = w->next;
    w->next = NULL;
    snprintf(w->live->folder, sizeof(w->live->folder), "live");
    w->live->point = on_point;
    w->live->context = w;
    w->old_log_n = 0;
    w->full_for = full ? w->full_for : 0;
    w->known_full = false;
    w->lost_reserve = full;
}

bool crash_world_start(struct crash_world *w)
{
    for (int i = 0; i < 20; i++) {
        err_t e = { 0 };
        w->store = NULL;
        int result = crash_world_open_store("/live/state.db", &w->store, &e);
        if (result == 0) {
            long n = crash_world_check_store(w, w->store, w->acked);
            if (n < 0)
                return false;
            crash_world_forget(w, (size_t)n);
            w->acked = (size_t)n;
            w->in_flight = 0;
            w->compacted = store_history(w->store)->compacted;
            return true;
        }
        if (!w->live->off) {
            report_failure(w, e.text, 0, 0);
            return false;
        }
        switch_disk(w);
    }
    return false;
}

/* After an orderly stop, a kill or a power failure. */
static bool restart_store(struct crash_world *w)
{
    if (!w->live->off && random_below(&w->random, 2))
        w->live->off = random_below(&w->random, 2); /* a kill: closing does nothing */
    store_close(w->store);
    w->store = NULL;
    if (!w->next) {
        w->live->off = false;
    } else {
        switch_disk(w);
    }
    w->counts->lives++;
    bool dies = w->dies_late || random_below(&w->random, 3) == 0;
    w->dies_in = dies ? 1 + random_below(&w->random, 60) : 0;
    return crash_world_start(w);
}

void crash_world_begin(struct crash_world *w)
{
    w->counts->runs++;
    random_init(&w->random, w->seed, 1);
    w->live = crash_disk_new("live");
    w->live->point = on_point;
    w->live->context = w;
}

void crash_world_end(struct crash_world *w)
{
    store_close(w->store);
    w->counts->writes += w->live->writes;
    w->counts->syncs += w->live->syncs;
    crash_disk_free(w->live);
    crash_disk_free(w->next);
    crash_world_forget(w, 0);
    vec_done(&w->writes);
    free(w->old_log);
}

void crash_world_run(struct crash_world *w)
{
    crash_world_begin(w);
    uint64_t failed = w->counts->failed;
    bool goes_on = crash_world_start(w);
    for (int i = 0; i < BATCHES && goes_on && w->counts->failed == failed; i++) {
        if (!w->live->off)
            crash_world_run_batch(w);
        if (!w->live->off)
            crash_world_run_tidy(w, random_below(&w->random, 8) == 0);
        copy_old_log(w);
        if (w->live->off || random_below(&w->random, 15) == 0)
            goes_on = restart_store(w);
    }
    crash_world_end(w);
}
