/* The store as its users see it: two views, group commit, history, restart. The file underneath fails on
 * demand through a SQLite VFS that refuses to write, as a full or failing disk does. */
#include "tap.h"

#include "apiserver/store/db_files.h"
#include "apiserver/store/store.h"
#include "base/buf.h"

#include <sqlite3.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[64];

static const char *fresh_path(void)
{
    static char path[128];
    snprintf(dir, sizeof(dir), "/tmp/flyball-store-XXXXXX");
    if (!mkdtemp(dir))
        abort();
    snprintf(path, sizeof(path), "%s/state.db", dir);
    return path;
}

static void remove_dir(void)
{
    const char *names[] = { "state.db", "state.db-wal", "state.db-mark", "state.db-reserve" };
    char path[160];
    for (size_t i = 0; i < countof(names); i++) {
        snprintf(path, sizeof(path), "%s/%s", dir, names[i]);
        (void)unlink(path);
    }
    (void)rmdir(dir);
}

static struct object *make(const char *key, const char *data, int64_t rev, bool deleted)
{
    auto_buf struct buf json = { 0 };
    buf_printf(&json,
               "{\"kind\":\"T\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"x\","
               "\"resourceVersion\":\"%lld\",\"labels\":{\"l\":\"x\"}},\"data\":\"%s\"}",
               (long long)rev, data);
    struct object *o;
    if (object_new(str_c(key), buf_str(&json), rev, deleted, &o) < 0)
        abort();
    return o;
}

static int64_t put(struct store *s, const char *key, const char *data)
{
    int64_t rev = store_next_rev(s);
    store_stage(s, make(key, data, rev, false));
    return rev;
}

/* Of 100 KB, which is 25 pages. */
static int64_t put_big(struct store *s, const char *key)
{
    auto_free char *data = mem_zero(1, 100001);
    memset(data, 'x', 100000);
    return put(s, key, data);
}

static int64_t del(struct store *s, const char *key)
{
    int64_t rev = store_next_rev(s);
    store_stage(s, make(key, "last", rev, true));
    return rev;
}

static struct store *open_at(const char *path, size_t events)
{
    struct store *s = NULL;
    err_t e = { 0 };
    OK_CALL(store_open(&(struct store_options){ .path = path, .history_events = events }, &s, &e),
            &e);
    return s;
}

struct outcome {
    struct store_waiter waiter;
    int calls, result;
    char text[500];
};

static void note(struct store_waiter *w, int result, const err_t *e)
{
    struct outcome *o = container_of(w, struct outcome, waiter);
    o->calls++;
    o->result = result;
    snprintf(o->text, sizeof(o->text), "%s", e ? e->text : "");
}

static void readers_see_only_commits(void)
{
    struct store *s = open_at(NULL, 0);
    put(s, "/t//a", "1");
    OK(!store_get(s, S("/t//a")));
    OK(store_latest(s, S("/t//a")) != NULL);
    struct outcome w = { .waiter.done = note };
    store_wait(s, &w.waiter);
    EQ_INT(w.calls, 0);
    struct store_batch *b = store_flush(s);
    int64_t second = put(s, "/t//a", "2"); /* gathers while the first is written */
    OK(!store_flush(s));
    store_batch_write(b);
    store_finish(s, b);
    EQ_INT(w.calls, 1);
    EQ_INT(w.result, 0);
    OK(store_get(s, S("/t//a"))->rev < second);
    EQ_INT(store_latest(s, S("/t//a"))->rev, second);
    store_commit(s);
    EQ_INT(store_get(s, S("/t//a"))->rev, second);
    store_wait(s, &w.waiter);
    EQ_INT(w.calls, 2); /* nothing under way: at once */
    store_close(s);
}

static void deletes_leave_tombstones_in_history(void)
{
    struct store *s = open_at(NULL, 0);
    int64_t created = put(s, "/t//a", "1");
    store_commit(s);
    int64_t gone = del(s, "/t//a");
    OK(!store_latest(s, S("/t//a")));
    store_commit(s);
    OK(!store_get(s, S("/t//a")));
    uint64_t sequence;
    OK(history_after(store_history(s), created, &sequence));
    const struct event *e = history_at(store_history(s), sequence);
    EQ_INT(e->now->rev, gone);
    OK(e->now->deleted);
    EQ_INT(e->was->rev, created);
    struct object **old = NULL;
    size_t n = 0;
    OK(history_state(store_history(s), store_tree(s), created, S("/t/"), S("/t/"), &old, &n));
    EQ_INT(n, 1);
    object_unref(old[0]);
    free(old);
    store_close(s);
}

static void a_restart_keeps_state_versions_and_window(void)
{
    const char *path = fresh_path();
    struct store *s = open_at(path, 8);
    int64_t last = 0;
    for (int i = 0; i < 40; i++) {
        last = put(s, i % 2 ? "/t//a" : "/t//b", "x");
        if (i == 30)
            last = del(s, "/t//b");
        store_commit(s);
    }
    int64_t compacted = store_history(s)->compacted;
    size_t window = (size_t)(store_history(s)->next - store_history(s)->first);
    EQ_INT(window, 8);
    store_close(s);

    s = open_at(path, 8);
    EQ_INT(store_rev(s), last);
    EQ_INT(store_next_rev(s), last + 1);
    EQ_INT(store_tree(s)->n, 2);
    EQ_INT(store_history(s)->next - store_history(s)->first, 8);
    EQ_INT(store_history(s)->compacted, compacted);
    OK(history_at(store_history(s), store_history(s)->first + 3)->was != NULL);
    uint64_t sequence;
    OK(!history_after(store_history(s), compacted - 1, &sequence));
    OK(history_after(store_history(s), compacted, &sequence));
    store_close(s);

    sqlite3 *raw;
    sqlite3_stmt *count;
    sqlite3_open(path, &raw);
    sqlite3_prepare_v2(raw, "SELECT count(*) FROM log", -1, &count, NULL);
    sqlite3_step(count);
    OK(sqlite3_column_int(count, 0) < 14); /* window, what it replaced, and one slice of lag */
    sqlite3_finalize(count);
    sqlite3_close(raw);
    remove_dir();
}

static void what_is_not_committed_is_not_there_later(void)
{
    const char *path = fresh_path();
    struct store *s = open_at(path, 0);
    put(s, "/t//a", "1");
    store_commit(s);
    put(s, "/t//b", "1");
    store_close(s);
    s = open_at(path, 0);
    OK(store_get(s, S("/t//a")) && !store_get(s, S("/t//b")));
    store_close(s);
    remove_dir();
}

/* ---- a disk that fails */

static int fail_write, fail_sync;
static sqlite3_int64 room = INT64_MAX; /* the log cannot grow beyond it */
static int syncs;
static sqlite3_vfs failing;
static int (*real_open)(sqlite3_vfs *, const char *, sqlite3_file *, int, int *);
static sqlite3_io_methods methods;     /* the log's, with two hooks */
static const sqlite3_io_methods *real; /* the log's own */

static int write_hook(sqlite3_file *f, const void *p, int n, sqlite3_int64 at)
{
    if (fail_write || at + n > room)
        return fail_write ? fail_write : SQLITE_FULL;
    return real->xWrite(f, p, n, at);
}

static int sync_hook(sqlite3_file *f, int flags)
{
    syncs++;
    return fail_sync ? fail_sync : real->xSync(f, flags);
}

static int open_hook(sqlite3_vfs *vfs, const char *name, sqlite3_file *f, int flags, int *out)
{
    int code = real_open(vfs, name, f, flags, out);
    if (code == SQLITE_OK && (flags & SQLITE_OPEN_WAL)) {
        real = f->pMethods;
        methods = *real;
        methods.xWrite = write_hook;
        methods.xSync = sync_hook;
        f->pMethods = &methods;
    }
    return code;
}

static void install_failing_disk(void)
{
    if (failing.zName)
        return;
    failing = *sqlite3_vfs_find(NULL);
    real_open = failing.xOpen;
    failing.xOpen = open_hook;
    failing.zName = "failing";
    sqlite3_vfs_register(&failing, 1);
}

static void a_full_disk_refuses_writes_and_goes_on(void)
{
    install_failing_disk();
    const char *path = fresh_path();
    struct store *s = open_at(path, 0);
    int64_t kept = put(s, "/t//a", "1");
    store_commit(s);
    fail_write = SQLITE_FULL;
    put(s, "/t//a", "2");
    struct outcome first = { .waiter.done = note }, second = { .waiter.done = note };
    store_wait(s, &first.waiter);
    struct store_batch *b = store_flush(s);
    put(s, "/t//b", "1"); /* staged on top of what fails */
    store_wait(s, &second.waiter);
    store_batch_write(b);
    store_finish(s, b);
    EQ_INT(first.result, -ENOSPC);
    EQ_INT(second.result, -ENOSPC);
    OK(strstr(first.text, "is full") != NULL);
    OK(!store_failure(s));
    EQ_INT(store_get(s, S("/t//a"))->rev, kept);
    EQ_INT(store_latest(s, S("/t//a"))->rev, kept);
    OK(!store_latest(s, S("/t//b")));
    fail_write = 0;
    int64_t later = put(s, "/t//b", "2");
    store_commit(s);
    EQ_INT(store_get(s, S("/t//b"))->rev, later);
    store_close(s);
    s = open_at(path, 0);
    EQ_INT(store_get(s, S("/t//a"))->rev, kept);
    EQ_INT(store_get(s, S("/t//b"))->rev, later);
    store_close(s);
    remove_dir();
}

static off_t log_bytes(void)
{
    char path[160];
    struct stat st = { 0 };
    snprintf(path, sizeof(path), "%s/state.db-wal", dir);
    return stat(path, &st) == 0 ? st.st_size : -1;
}

/* The log is reused from its beginning once it has been moved into the file: it stops growing. */
static void the_log_is_kept_and_reused(void)
{
    install_failing_disk();
    char path[160];
    snprintf(path, sizeof(path), "%s", fresh_path());
    struct store *s =
        open_at(path, 8); /* a short history: a log that makes the file longer is moved earlier */
    int64_t last = 0;
    for (int i = 0; i < 100; i++) { /* the store is never idle */
        last = put_big(s, i % 2 ? "/t//a" : "/t//b");
        store_commit(s);
    }
    off_t bytes = log_bytes();
    OK(bytes > 0);
    syncs = 0;
    for (int i = 0; i < 20; i++) {
        last = put(s, "/t//a", "2");
        store_commit(s);
    }
    EQ_INT(syncs, 20);
    EQ_INT(log_bytes(), bytes);
    for (int i = 0; i < 200; i++) {
        last = put_big(s, "/t//a");
        store_commit(s);
    }
    OK(log_bytes() <= bytes + bytes / 10);
    store_close(s);
    EQ_INT(log_bytes(), -1);
    s = open_at(path, 0);
    EQ_INT(store_get(s, S("/t//a"))->rev, last);
    store_close(s);
    remove_dir();
}

static int tidy_all(struct store *s)
{
    int parts = 0;
    for (struct store_batch *b; (b = store_tidy(s, true)); parts++) {
        OK(!store_flush(s)); /* the file is in use */
        store_batch_write(b);
        store_finish(s, b);
    }
    return parts;
}

static void idle_moments_move_a_long_log(void)
{
    struct store *s = open_at(fresh_path(), 0);
    (void)tidy_all(s);
    EQ_INT(tidy_all(s), 0);
    for (int i = 0; i < 50; i++) {
        put_big(s, i % 2 ? "/t//a" : "/t//b");
        store_commit(s);
    }
    OK(!store_tidy(s, false)); /* it is long, but not too long */
    OK(tidy_all(s) > 0);
    EQ_INT(tidy_all(s), 0);
    store_close(s);
    remove_dir();
}

static int commit_result(struct store *s)
{
    struct outcome w = { .waiter.done = note };
    store_wait(s, &w.waiter);
    store_commit(s);
    return w.result;
}

/* The reserve is what the simulated disk still has room for: none is left when `room` is used up, until the
 * reserve is given up. */
static sqlite3_int64 reserve_bytes;

static int reserve_hook(const char *path, int64_t bytes)
{
    if (room != INT64_MAX)
        return -ENOSPC;
    reserve_bytes = bytes;
    return db_files_real.reserve(path, bytes);
}

static int remove_hook(const char *path)
{
    if (strstr(path, "-reserve") && reserve_bytes) {
        room += room == INT64_MAX ? 0 : reserve_bytes;
        reserve_bytes = 0;
    }
    return db_files_real.remove(path);
}

static void a_full_disk_still_deletes(void)
{
    install_failing_disk();
    struct db_files files = db_files_real;
    files.reserve = reserve_hook;
    files.remove = remove_hook;
    db_files = &files;
    const char *path = fresh_path();
    struct store *s = open_at(path, 0);
    put(s, "/t//a", "1");
    put(s, "/t//b", "1");
    put_big(s, "/t//d");
    store_commit(s);
    room = log_bytes() + 4096;
    int result = 0;
    for (int i = 0; i < 50 && result == 0; i++) {
        put(s, "/t//a", "again");
        put(s, "/t//e", "and more");
        result = commit_result(s);
    }
    EQ_INT(result, 0); /* the log restarts as often as needed */
    room = 4096;
    put(s, "/t//a", "again, and longer");
    EQ_INT(commit_result(s), -ENOSPC);
    int64_t gone = del(s, "/t//b");
    EQ_INT(commit_result(s), 0);
    put(s, "/t//c", "1");
    EQ_INT(commit_result(s), -ENOSPC); /* although there is room: it is for deletions */
    store_close(s);
    room = INT64_MAX;
    s = open_at(path, 0);
    EQ_INT(store_rev(s), gone);
    OK(store_get(s, S("/t//a")) && !store_get(s, S("/t//b")) && !store_get(s, S("/t//c")));
    put(s, "/t//c", "1");
    EQ_INT(commit_result(s), 0);
    store_close(s);
    db_files = &db_files_real;
    remove_dir();
}

static void a_failed_sync_ends_writing_but_not_reading(void)
{
    install_failing_disk();
    const char *path = fresh_path();
    struct store *s = open_at(path, 0);
    int64_t kept = put(s, "/t//a", "1");
    store_commit(s);
    fail_sync = SQLITE_IOERR_FSYNC;
    put(s, "/t//a", "2");
    struct outcome w = { .waiter.done = note };
    store_wait(s, &w.waiter);
    store_commit(s);
    fail_sync = 0;
    EQ_INT(w.result, -EIO);
    OK(store_failure(s) != NULL);
    EQ_INT(store_get(s, S("/t//a"))->rev, kept);
    store_close(s);
    remove_dir();
}

/* ---- damage */

static void expect_refusal(const char *path, const char *words)
{
    struct store *s = NULL;
    err_t e = { 0 };
    int result = store_open(&(struct store_options){ .path = path }, &s, &e);
    OK(result < 0);
    if (result == 0)
        store_close(s);
    else if (!strstr(e.text, words))
        tap_note(__FILE__, __LINE__, "\"%s\" does not contain \"%s\"", e.text, words);
}

static void sql(const char *path, const char *text)
{
    sqlite3 *raw;
    sqlite3_open(path, &raw);
    if (sqlite3_exec(raw, text, NULL, NULL, NULL) != SQLITE_OK)
        tap_note(__FILE__, __LINE__, "%s: %s", text, sqlite3_errmsg(raw));
    sqlite3_close(raw);
}

static const char *with_two_rows(void)
{
    const char *path = fresh_path();
    struct store *s = open_at(path, 0);
    put(s, "/t//a", "1");
    put(s, "/t//a", "2");
    store_commit(s);
    store_close(s);
    return path;
}

static void damage_is_reported(void)
{
    const char *path = with_two_rows();
    sql(path, "UPDATE log SET value = replace(value, '2', '3') WHERE rev = 2");
    expect_refusal(path, "row 2 has a wrong checksum");
    expect_refusal(path, "move state.db* away");
    remove_dir();

    path = with_two_rows();
    sql(path, "DELETE FROM log WHERE rev = 1");
    expect_refusal(path, "replaces a version that is not there");
    remove_dir();

    path = with_two_rows();
    sql(path, "PRAGMA user_version = 7");
    expect_refusal(path, "data version 7");
    remove_dir();

    path = with_two_rows();
    OK(truncate(path, 0) == 0);
    expect_refusal(path, "is empty");
    remove_dir();

    path = with_two_rows();
    OK(truncate(path, 5000) == 0);
    expect_refusal(path, "damaged");
    remove_dir();

    path = with_two_rows();
    OK(unlink(path) == 0);
    expect_refusal(path, "is missing although");
    remove_dir();

    path = fresh_path();
    FILE *f = fopen(path, "w");
    fputs("this is a shopping list, not a database, and quite long enough to have a header\n", f);
    fclose(f);
    expect_refusal(path, "not a database");
    remove_dir();

    path = fresh_path();
    sql(path, "CREATE TABLE t(a)");
    expect_refusal(path, "not written by flyball");
    remove_dir();
}

static void one_process_at_a_time(void)
{
    const char *path = fresh_path();
    struct store *s = open_at(path, 0);
    expect_refusal(path, "in use by another process");
    store_close(s);
    remove_dir();
}

static void forgetting_ends_the_window(void)
{
    struct store *s = open_at(NULL, 0);
    put(s, "/t//a", "1");
    store_commit(s);
    store_forget(s);
    uint64_t sequence;
    OK(!history_after(store_history(s), 0, &sequence));
    OK(history_after(store_history(s), 1, &sequence));
    store_close(s);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(readers_see_only_commits),
                                        TAP(deletes_leave_tombstones_in_history),
                                        TAP(a_restart_keeps_state_versions_and_window),
                                        TAP(what_is_not_committed_is_not_there_later),
                                        TAP(forgetting_ends_the_window),
                                        TAP(damage_is_reported),
                                        TAP(one_process_at_a_time),
                                        TAP(a_full_disk_refuses_writes_and_goes_on),
                                        TAP(the_log_is_kept_and_reused),
                                        TAP(idle_moments_move_a_long_log),
                                        TAP(a_full_disk_still_deletes),
                                        TAP(a_failed_sync_ends_writing_but_not_reading),
                                        { 0 } });
}
