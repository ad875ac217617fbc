/* Power failures at every moment: the store works on a simulated disk (crash_disk.h); at each sync, and at random
 * points between, copies of the disk as a crash would leave it are opened with the real start-up code. Then:
 *
 *   - every acknowledged write is there, with its bytes; nothing that was refused is;
 *   - of the transaction being written, all is there or nothing;
 *   - the resourceVersion has not gone back;
 *   - the history continues exactly: every event after its beginning, with what it replaced;
 *   - SQLite's integrity check finds nothing;
 *   - after the death of the process alone, a log that was removed, cut, damaged or replaced by an older one is
 *     refused at the start, unless nothing acknowledged is missing.
 *
 * Runs go on from what a crash left: they have several lives. Without arguments: 10,000 states as tests. For more:
 *
 *     crash_test --states N --seconds N [--seed N] [--jobs N]        ./dev crash */
#include "tap.h"

#include "apiserver/store/store.h"
#include "base/buf.h"
#include "base/clock.h"
#include "crash_disk.h"

#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    KEYS = 10,
    HISTORY_EVENTS = 24,
    LOG_FRAMES = 40, /* checkpoints come often */
    BATCHES = 60,    /* of a run */
    LARGE_BYTES = 300 << 10,
    SEEN_SLOTS = 1 << 22,
};

struct counts {
    uint64_t states, kinds[CRASH_KIND_N], tampered, tampered_refused, repeated, failed;
    uint64_t commits, refused, checkpoints, lives, runs, syncs, writes;
};

struct write {          /* of the model */
    struct object *now; /* owned reference */
    int64_t prev_rev;
};

struct world {
    struct random random;
    struct crash_disk *live, *next; /* next: what a crash has left of live */
    struct store *store;
    VEC(struct write) writes;
    size_t acked;      /* of `writes`; the rest is being written */
    int64_t compacted; /* of the history, after the last acknowledgement */
    struct counts *counts;
    uint64_t *seen; /* sums of states already checked; NULL: do not look */
    char *old_log;  /* a copy of an earlier log, owned */
    size_t old_log_n;
    uint32_t dies_in, full_in; /* points; 0: never */
    uint32_t density;          /* of 16: how many points between syncs are checked */
    bool quiet, checking;
    const char *doing; /* for complaints */
    uint64_t seed;
};

static const char *const kind_names[CRASH_KIND_N] = {
    "process killed, then power failure", "all unsynced writes lost",
    "all unsynced writes kept",           "a torn write",
    "lost, reordered and torn sectors",   "late writes without earlier ones"
};

/* ---- complaints */

static void complain(struct world *w, const char *what, long long got, long long want)
{
    w->counts->failed++;
    if (!w->quiet && w->counts->failed < 20)
        printf("# seed %llu, write %zu, %s: %s (%lld, %lld)\n", (unsigned long long)w->seed,
               w->acked, w->doing ? w->doing : "start", what, got, want);
}

/* ---- checking a disk */

static int open_store(const char *path, struct store **ret, err_t *e)
{
    struct store_options o = { .path = path,
                               .history_events = HISTORY_EVENTS,
                               .log_frames = LOG_FRAMES };
    return store_open(&o, ret, e);
}

/* The newest write of a key among the first n. */
static const struct write *newest(const struct world *w, size_t n, str key)
{
    while (n--)
        if (str_eq(object_key(w->writes.at[n].now), key))
            return &w->writes.at[n];
    return NULL;
}

static bool same_object(const struct object *a, const struct object *b)
{
    return a->rev == b->rev && a->deleted == b->deleted && str_eq(object_json(a), object_json(b));
}

static void check_tree(struct world *w, const struct store *s, size_t n)
{
    size_t found = 0, want = 0;
    for (size_t i = 0; i < n; i++) {
        const struct object *o = w->writes.at[i].now;
        want += !o->deleted && newest(w, n, object_key(o))->now == o;
    }
    struct tree_cursor c = tree_seek(store_tree(s), S(""));
    for (struct object *o; (o = tree_next(&c)); found++) {
        const struct write *last = newest(w, n, object_key(o));
        if (!last || !same_object(last->now, o))
            complain(w, "an object is not what was acknowledged", o->rev,
                     last ? last->now->rev : 0);
    }
    if (found != want)
        complain(w, "objects are missing or too many", (long long)found, (long long)want);
}

static void check_history(struct world *w, const struct store *s, size_t n)
{
    const struct history *h = store_history(s);
    if (n == w->acked && h->compacted > w->compacted)
        complain(w, "the history lost its beginning", h->compacted, w->compacted);
    size_t i = 0;
    while (i < n && w->writes.at[i].now->rev <= h->compacted)
        i++;
    for (uint64_t at = h->first; at < h->next; at++, i++) {
        const struct event *e = history_at(h, at);
        if (i >= n || !same_object(e->now, w->writes.at[i].now)) {
            complain(w, "an event is wrong", e->now->rev, i < n ? w->writes.at[i].now->rev : -1);
            return;
        }
        if ((e->was ? e->was->rev : 0) != w->writes.at[i].prev_rev)
            complain(w, "an event replaced something else", e->now->rev, w->writes.at[i].prev_rev);
    }
    if (i != n)
        complain(w, "events are missing", (long long)i, (long long)n);
}

/* How many of the writes the store holds, or -1: its version is none that it may have. */
static long held_writes(struct world *w, const struct store *s, size_t at_least)
{
    int64_t rev = store_rev(s), least = at_least ? w->writes.at[at_least - 1].now->rev : 0;
    if (rev == least)
        return (long)at_least;
    if (w->writes.n && rev == w->writes.at[w->writes.n - 1].now->rev)
        return (long)w->writes.n;
    complain(w,
             rev < least ? "acknowledged writes are lost" : "half a transaction or a refused one",
             rev, least);
    return -1;
}

static long check_store(struct world *w, const struct store *s, size_t at_least)
{
    long n = held_writes(w, s, at_least);
    if (n < 0)
        return n;
    check_tree(w, s, (size_t)n);
    check_history(w, s, (size_t)n);
    return n;
}

static void check_integrity(struct world *w, const char *path)
{
    sqlite3 *raw;
    sqlite3_stmt *s = NULL;
    sqlite3_open_v2(path, &raw, SQLITE_OPEN_READWRITE, NULL);
    sqlite3_exec(raw, "PRAGMA locking_mode=EXCLUSIVE", NULL, NULL, NULL);
    if (sqlite3_prepare_v2(raw, "PRAGMA integrity_check(1)", -1, &s, NULL) != SQLITE_OK ||
        sqlite3_step(s) != SQLITE_ROW || strcmp((const char *)sqlite3_column_text(s, 0), "ok") != 0)
        complain(w, "SQLite's integrity check found damage", 0, 0);
    sqlite3_finalize(s);
    sqlite3_close(raw);
}

/* Opens the disk "crash" as a start after the crash does. Returns how many writes it holds, or -1. */
static long check_start(struct world *w, size_t at_least)
{
    struct store *s;
    err_t e = { 0 };
    if (open_store("/crash/state.db", &s, &e) < 0) {
        complain(w, e.text, 0, 0);
        return -1;
    }
    long n = check_store(w, s, at_least);
    store_close(s);
    check_integrity(w, "/crash/state.db");
    return n;
}

static bool seen_before(struct world *w, const struct crash_disk *d)
{
    uint64_t sum = crash_disk_sum(d) + w->acked * 0x9e3779b97f4a7c15 + w->writes.n + 1;
    for (uint64_t i = sum;; i++) {
        uint64_t *slot = &w->seen[i % SEEN_SLOTS];
        if (*slot == sum)
            return true;
        if (!*slot) {
            *slot = sum;
            return false;
        }
    }
}

/* ---- the process dies, and perhaps the power goes later */

static void tamper(struct world *w, struct crash_disk *d)
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
static void check_tampered(struct world *w)
{
    struct crash_disk *d = crash_disk_after(w->live, "crash", CRASH_KILL, &w->random);
    struct store *s;
    err_t e = { 0 };
    tamper(w, d);
    w->counts->tampered++;
    if (open_store("/crash/state.db", &s, &e) < 0) {
        w->counts->tampered_refused++;
        if (!e.text[0])
            complain(w, "a refusal without a word", 0, 0);
    } else {
        check_store(w, s, w->acked);
        store_close(s);
    }
    crash_disk_free(d);
}

/* What a start showed to readers must survive the power failure that follows. */
static void check_killed(struct world *w)
{
    struct crash_disk *killed = crash_disk_after(w->live, "killed", CRASH_KILL, &w->random);
    struct store *s;
    err_t e = { 0 };
    if (open_store("/killed/state.db", &s, &e) < 0) {
        complain(w, e.text, 0, 0);
    } else {
        long n = check_store(w, s, w->acked);
        enum crash_kind kind = 1 + random_below(&w->random, CRASH_KIND_N - 1);
        struct crash_disk *d = crash_disk_after(killed, "crash", kind, &w->random);
        if (n >= 0)
            check_start(w, (size_t)n);
        crash_disk_free(d);
        store_close(s);
    }
    crash_disk_free(killed);
}

static void check_crash(struct world *w, enum crash_kind kind)
{
    w->doing = kind_names[kind];
    if (kind == CRASH_KILL) {
        check_killed(w);
        w->doing = "tampered log";
        /* until a start after a power failure is done, the mark may be older than the last acknowledgement */
        if (w->store && random_below(&w->random, 2))
            check_tampered(w);
    } else {
        struct crash_disk *d = crash_disk_after(w->live, "crash", kind, &w->random);
        if (w->seen && seen_before(w, d)) {
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

static enum crash_kind any_kind(struct world *w)
{
    return random_below(&w->random, 3) ? CRASH_REORDERED : random_below(&w->random, CRASH_KIND_N);
}

static void at_point(void *context, bool sync)
{
    struct world *w = context;
    if (w->checking)
        return;
    w->checking = true;
    /* Large states take long: fewer of them. */
    size_t bytes = crash_disk_bytes(w->live);
    bool looks = bytes < LARGE_BYTES || random_below(&w->random, (uint32_t)bytes) < LARGE_BYTES;
    if (w->full_in && !sync && --w->full_in == 0)
        w->live->full = true;
    if (sync && looks) {
        for (enum crash_kind kind = 0; kind < CRASH_KIND_N; kind++)
            if (kind != CRASH_KILL || random_below(&w->random, 8) == 0)
                check_crash(w, kind);
        check_crash(w, CRASH_REORDERED);
    } else if (looks && random_below(&w->random, 16) < w->density) {
        check_crash(w, any_kind(w));
    }
    if (w->dies_in && --w->dies_in == 0) {
        w->next = crash_disk_after(w->live, "next", any_kind(w), &w->random);
        if (w->next->throwaway)
            crash_disk_keep(w->next);
        w->live->off = true;
    }
    w->checking = false;
}

/* ---- work */

static size_t any_size(struct world *w)
{
    uint32_t chance = random_below(&w->random, 1000);
    if (chance < 800)
        return 100 + random_below(&w->random, 3000);
    if (chance < 970)
        return 3000 + random_below(&w->random, 30000);
    return chance < 997 ? 200000 + random_below(&w->random, 100000) : 1400000;
}

static void any_key(struct world *w, char *text, size_t n)
{
    static const char *const places[] = { "/configmaps/default/c", "/namespaces//n",
                                          "/apiextensions.k8s.io/customresourcedefinitions//d",
                                          "/apps/deployments/default/w" };
    uint32_t i = random_below(&w->random, KEYS);
    snprintf(text, n, "%s%u", places[i % countof(places)], i);
}

static void stage_any(struct world *w)
{
    char key[80];
    any_key(w, key, sizeof(key));
    struct object *was = store_latest(w->store, str_c(key));
    int64_t rev = store_next_rev(w->store);
    bool deletes = was && random_below(&w->random, 3) == 0;
    auto_buf struct buf json = { 0 };
    buf_printf(&json,
               "{\"kind\":\"T\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"%s\","
               "\"resourceVersion\":\"%lld\"},\"data\":\"",
               strrchr(key, '/') + 1, (long long)rev);
    size_t size = deletes ? 100 : any_size(w), at = json.n;
    buf_reserve(&json, size + 3);
    memset(json.p + at, 'a' + (int)(rev % 26), size);
    json.n += size;
    buf_put(&json, S("\"}"));
    struct object *o;
    if (object_new(str_c(key), buf_str(&json), rev, deletes, &o) < 0)
        abort();
    struct write made = { object_ref(o), was ? was->rev : 0 };
    vec_push(&w->writes, made);
    store_stage(w->store, o);
}

struct outcome {
    struct store_waiter waiter;
    int result;
};

static void note_outcome(struct store_waiter *waiter, int result, const err_t *e UNUSED)
{
    container_of(waiter, struct outcome, waiter)->result = result;
}

/* Writes that were never acknowledged and are not there. */
static void forget_writes(struct world *w, size_t keep)
{
    while (w->writes.n > keep)
        object_unref(w->writes.at[--w->writes.n].now);
}

static void run_tidy(struct world *w, bool idle)
{
    for (struct batch *b; (b = store_tidy(w->store, idle));) {
        batch_write(b);
        store_finish(w->store, b);
        w->counts->checkpoints++;
    }
}

static void run_batch(struct world *w)
{
    uint32_t n = random_below(&w->random, 4) ? 1 : 1 + random_below(&w->random, 6);
    while (n--)
        stage_any(w);
    struct outcome outcome = { .waiter.done = note_outcome };
    store_wait(w->store, &outcome.waiter);
    if (random_below(&w->random, 12) == 0)
        w->full_in = 1 + random_below(&w->random, 20);
    w->live->copies = random_below(&w->random, 4) == 0;
    struct batch *b = store_flush(w->store);
    batch_write(b);
    store_finish(w->store, b);
    bool no_room_to_mark = w->live->full && w->live->copies;
    w->full_in = 0;
    w->live->full = false;
    if (outcome.result == 0) {
        w->acked = w->writes.n;
        w->compacted = store_history(w->store)->compacted;
        w->counts->commits++;
    } else if (outcome.result == -ENOSPC) {
        forget_writes(w, w->acked);
        w->counts->refused++;
    } else if (!w->live->off) {
        if (!no_room_to_mark)
            complain(w, "a commit failed", outcome.result, 0);
        w->live->off = true; /* nothing more can be written: kill it */
    }
}

/* Only logs that led to what there is now: after a power failure, another one may hold what was never
 * acknowledged, and it would be right to continue with that. */
static void keep_old_log(struct world *w)
{
    struct crash_file *log = crash_disk_file(w->live, "state.db-wal");
    if (!log || random_below(&w->random, 20) || w->live->off)
        return;
    free(w->old_log);
    w->old_log = mem_dup(log->now.n ? log->now.p : "", log->now.n);
    w->old_log_n = log->now.n;
}

static void adopt_next(struct world *w)
{
    w->counts->writes += w->live->writes;
    w->counts->syncs += w->live->syncs;
    crash_disk_free(w->live);
    w->live = w->next;
    w->next = NULL;
    snprintf(w->live->folder, sizeof(w->live->folder), "live");
    w->live->point = at_point;
    w->live->context = w;
    w->old_log_n = 0;
}

/* Starts on what there is; crashes may happen on the way. False: the run must end. */
static bool start(struct world *w)
{
    for (int i = 0; i < 20; i++) {
        err_t e = { 0 };
        w->store = NULL;
        int result = open_store("/live/state.db", &w->store, &e);
        if (result == 0) {
            long n = check_store(w, w->store, w->acked);
            if (n < 0)
                return false;
            forget_writes(w, (size_t)n);
            w->acked = (size_t)n;
            w->compacted = store_history(w->store)->compacted;
            return true;
        }
        if (!w->live->off) {
            complain(w, e.text, 0, 0);
            return false;
        }
        adopt_next(w);
    }
    return false;
}

/* After an orderly stop, a kill or a power failure. */
static bool restart(struct world *w)
{
    if (!w->live->off && random_below(&w->random, 2))
        w->live->off = random_below(&w->random, 2); /* a kill: closing does nothing */
    store_close(w->store);
    w->store = NULL;
    if (!w->next) {
        w->live->off = false;
    } else {
        adopt_next(w);
    }
    w->counts->lives++;
    w->dies_in = random_below(&w->random, 3) ? 0 : 1 + random_below(&w->random, 60);
    return start(w);
}

static void run_world(struct world *w)
{
    w->counts->runs++;
    random_init(&w->random, w->seed, 1);
    w->live = crash_disk_new("live");
    w->live->point = at_point;
    w->live->context = w;
    uint64_t failed = w->counts->failed;
    bool goes_on = start(w);
    for (int i = 0; i < BATCHES && goes_on && w->counts->failed == failed; i++) {
        if (!w->live->off)
            run_batch(w);
        if (!w->live->off)
            run_tidy(w, random_below(&w->random, 8) == 0);
        keep_old_log(w);
        if (w->live->off || random_below(&w->random, 15) == 0)
            goes_on = restart(w);
    }
    store_close(w->store);
    w->counts->writes += w->live->writes;
    w->counts->syncs += w->live->syncs;
    crash_disk_free(w->live);
    crash_disk_free(w->next);
    forget_writes(w, 0);
    vec_done(&w->writes);
    free(w->old_log);
}

/* ---- tests */

static struct counts counts;
static uint64_t *seen;

static void run_seed(uint64_t seed, uint32_t density)
{
    struct world w = { .seed = seed, .counts = &counts, .seen = seen, .density = density };
    run_world(&w);
}

static void nothing_is_lost_in_10000_crashes(void)
{
    crash_disk_install();
    seen = mem_zero(SEEN_SLOTS, sizeof(*seen));
    for (uint64_t seed = 1; counts.states < 10000 && !counts.failed; seed++)
        run_seed(seed, 2);
    free(seen);
    seen = NULL;
    crash_disk_uninstall();
    EQ_INT(counts.failed, 0);
    OK(counts.refused > 0 && counts.checkpoints > 0 && counts.tampered_refused > 0);
    printf("# %llu states, %llu lives, %llu commits, %llu checkpoints, %llu refused; %llu of %llu "
           "tampered logs refused\n",
           (unsigned long long)counts.states, (unsigned long long)counts.lives,
           (unsigned long long)counts.commits, (unsigned long long)counts.checkpoints,
           (unsigned long long)counts.refused, (unsigned long long)counts.tampered_refused,
           (unsigned long long)counts.tampered);
}

/* The model can fail: a disk that does not sync loses what was acknowledged, and that is found. */
static void a_disk_that_lies_is_found_out(void)
{
    struct counts lies = { 0 };
    struct world w = { .seed = 7, .counts = &lies, .quiet = true };
    crash_disk_install();
    random_init(&w.random, w.seed, 1);
    w.live = crash_disk_new("live");
    OK(start(&w));
    w.live->drops_syncs = true;
    for (int i = 0; i < 5; i++)
        run_batch(&w);
    w.checking = true;
    check_crash(&w, CRASH_LOSE_ALL);
    OK(lies.failed > 0);
    store_close(w.store);
    crash_disk_free(w.live);
    forget_writes(&w, 0);
    vec_done(&w.writes);
    crash_disk_uninstall();
}

/* A log that has been moved into the file and then loses its end puts old pages in the place of newer ones, although
 * the newest revision may be in a page that it does not hold. */
static void a_part_of_a_moved_log_is_refused(void)
{
    struct counts found = { 0 };
    struct world w = { .seed = 11, .counts = &found };
    int refused = 0;
    crash_disk_install();
    for (; w.seed < 21; w.seed++) {
        random_init(&w.random, w.seed, 1);
        w.live = crash_disk_new("live");
        OK(start(&w));
        for (int i = 0; i < 12; i++)
            run_batch(&w);
        run_tidy(&w, true);
        struct crash_file *log = crash_disk_file(w.live, "state.db-wal");
        for (size_t cut = 32; cut < log->now.n; cut += 4096 + 24) {
            struct crash_disk *d = crash_disk_after(w.live, "crash", CRASH_KILL, &w.random);
            struct store *s;
            crash_disk_file(d, "state.db-wal")->now.n = cut;
            if (open_store("/crash/state.db", &s, NULL) < 0) {
                refused++;
            } else {
                check_store(&w, s, w.acked);
                store_close(s);
            }
            crash_disk_free(d);
        }
        store_close(w.store);
        crash_disk_free(w.live);
        forget_writes(&w, 0);
        vec_done(&w.writes);
        w.acked = 0;
    }
    crash_disk_uninstall();
    EQ_INT(found.failed, 0);
    OK(refused > 0);
}

/* ---- ./dev crash */

struct job {
    struct counts counts;
    uint64_t states, seed;
    int64_t until_ns;
};

static void run_job(struct job *job)
{
    crash_disk_install();
    seen = mem_zero(SEEN_SLOTS, sizeof(*seen));
    for (; job->counts.states < job->states && clock_mono_ns() < job->until_ns; job->seed++) {
        struct world w = { .seed = job->seed, .counts = &job->counts, .seen = seen, .density = 6 };
        run_world(&w);
        fflush(stdout);
    }
}

static struct counts add_up(const struct job *jobs, size_t n)
{
    struct counts sum = { 0 };
    uint64_t *to = (uint64_t *)&sum;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < sizeof(sum) / sizeof(*to); k++)
            to[k] += ((const uint64_t *)&jobs[i].counts)[k];
    return sum;
}

static void print_table(const struct counts *c)
{
    for (int i = 0; i < CRASH_KIND_N; i++)
        printf("%-44s %12llu\n", kind_names[i], (unsigned long long)c->kinds[i]);
    const struct {
        const char *name;
        uint64_t n;
    } rows[] = { { "tampered logs", c->tampered },
                 { "  refused at the start", c->tampered_refused },
                 { "runs", c->runs },
                 { "starts after a stop, kill or power failure", c->lives },
                 { "commits", c->commits },
                 { "commits refused by a full disk", c->refused },
                 { "checkpoints and other maintenance", c->checkpoints },
                 { "writes to the disk", c->writes },
                 { "syncs", c->syncs },
                 { "states seen before (not counted)", c->repeated } };
    for (size_t i = 0; i < countof(rows); i++)
        printf("%-44s %12llu\n", rows[i].name, (unsigned long long)rows[i].n);
}

static int run_jobs(uint64_t states, int64_t seconds, uint64_t seed, size_t n)
{
    struct job *jobs =
        mmap(NULL, n * sizeof(*jobs), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (jobs == MAP_FAILED)
        return EXIT_FAILURE;
    size_t running = 0;
    for (size_t i = 0; i < n; i++) {
        jobs[i] = (struct job){ .states = states / n + 1,
                                .seed = seed + i * 1000000,
                                .until_ns = clock_mono_ns() + seconds * NS_PER_S };
        pid_t pid = fork();
        if (pid == 0) {
            run_job(&jobs[i]);
            _exit(0);
        }
        running += pid > 0;
    }
    uint64_t broken = n - running;
    for (int64_t ticks = 1; running; ticks++) {
        int status;
        for (pid_t pid; running && (pid = waitpid(-1, &status, WNOHANG)) > 0; running--)
            broken += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
        if (running)
            sleep(1);
        struct counts c = add_up(jobs, n);
        if (running && ticks % 30 == 0) {
            printf("%llu states, %llu failed\n", (unsigned long long)c.states,
                   (unsigned long long)c.failed);
            fflush(stdout);
        }
    }
    struct counts c = add_up(jobs, n);
    print_table(&c);
    printf("%llu passed, %llu failed\n", (unsigned long long)(c.states + c.tampered - c.failed),
           (unsigned long long)(c.failed + broken));
    return c.failed + broken || !c.states ? EXIT_FAILURE : EXIT_SUCCESS;
}

int main(int argc, char **argv)
{
    long states = 0, seconds = 3600, seed = 1, jobs = 1;
    for (int i = 1; i + 1 < argc; i += 2) {
        long value = strtol(argv[i + 1], NULL, 10);
        if (!strcmp(argv[i], "--states"))
            states = value;
        else if (!strcmp(argv[i], "--seconds"))
            seconds = value;
        else if (!strcmp(argv[i], "--seed"))
            seed = value;
        else if (!strcmp(argv[i], "--jobs"))
            jobs = MAX(value, 1);
    }
    if (states > 0)
        return run_jobs((uint64_t)states, seconds, (uint64_t)seed, (size_t)jobs);
    return tap_run((struct tap_case[]){ TAP(a_disk_that_lies_is_found_out),
                                        TAP(a_part_of_a_moved_log_is_refused),
                                        TAP(nothing_is_lost_in_10000_crashes),
                                        { 0 } });
}
