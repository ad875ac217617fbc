/* A full disk, at every size of the disk and at every write: deletions and updates that do not grow their object
 * always succeed, new objects are refused, nothing acknowledged is lost, and room that returns is used.
 *
 * The store runs on the simulated disk of the crash tests (crash_disk.h), here with a quota: its files together cannot
 * become longer than the disk has room for. Writes are staged and run again as the server does (http/server.c): a batch
 * fails as a whole, and then each of its writes is tried once more. */
#include "tap.h"

#include "apiserver/store/store.h"
#include "base/buf.h"
#include "crash_disk.h"

#include <stdlib.h>

enum { OBJECTS_MAX = 3000, RESERVE_BYTES = 4 << 20 };

struct thing { /* what the store must hold */
    bool there;
    size_t bytes;
    int64_t rev;
};

struct scene {
    struct crash_disk *disk;
    struct store *store;
    struct random random;
    size_t n; /* of `things` */
    struct thing things[OBJECTS_MAX];
    uint32_t full_in; /* writes until another process takes all that is left; 0: never */
    uint32_t writes;
};

struct call {
    struct store_waiter waiter;
    struct scene *scene;
    size_t thing;
    size_t bytes; /* 0: delete it */
    bool ran_again;
    int64_t rev;
    int result;
};

static void on_write(void *context, bool sync)
{
    struct scene *s = context;
    s->writes += !sync;
    if (sync || !s->full_in || --s->full_in)
        return;
    s->disk->full = true;
    s->disk->room = 0;
}

static int open_store(struct scene *s)
{
    struct store_options o = { .path = "/full/state.db" };
    err_t e = { 0 };
    int result = store_open(&o, &s->store, &e);
    if (result < 0)
        tap_note(__FILE__, __LINE__, "%s", e.text);
    return result;
}

static struct scene *scene_new(int64_t quota)
{
    struct scene *s = mem_zero(1, sizeof(*s));
    random_init(&s->random, (uint64_t)quota, 1);
    crash_vfs_install();
    s->disk = crash_disk_new("full");
    s->disk->full = quota > 0;
    s->disk->room = quota;
    s->disk->point = on_write;
    s->disk->context = s;
    if (open_store(s) < 0)
        abort();
    return s;
}

static void scene_free(struct scene *s)
{
    store_close(s->store);
    crash_disk_free(s->disk);
    crash_vfs_uninstall();
    free(s);
}

/* ---- writing */

static void thing_key(char *text, size_t n, size_t thing)
{
    snprintf(text, n, "/configmaps/default/c%zu", thing);
}

static void call_done(struct store_waiter *waiter, int result, const err_t *e);

static void run_call(struct call *c)
{
    struct store *store = c->scene->store;
    char key[60];
    err_t e = { 0 };
    thing_key(key, sizeof(key), c->thing);
    c->rev = store_next_rev(store);
    auto_buf struct buf json = { 0 };
    buf_printf(&json,
               "{\"kind\":\"T\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"c%zu\","
               "\"resourceVersion\":\"%lld\"},\"data\":\"",
               c->thing, (long long)c->rev);
    buf_reserve(&json, c->bytes + 3);
    memset(json.p + json.n, 'a' + (int)(c->rev % 26), c->bytes);
    json.n += c->bytes;
    buf_put(&json, S("\"}"));
    struct object *o;
    if (object_new(str_c(key), buf_str(&json), c->rev, !c->bytes, &o) < 0)
        abort();
    c->result = store_check_room(store, o, &e);
    if (c->result < 0) {
        object_unref(o);
        return;
    }
    store_stage(store, o);
    c->waiter.done = call_done;
    store_wait(store, &c->waiter);
}

static void call_done(struct store_waiter *waiter, int result, const err_t *e UNUSED)
{
    struct call *c = container_of(waiter, struct call, waiter);
    c->result = result;
    if (result == -ENOSPC && !c->ran_again) {
        c->ran_again = true;
        run_call(c);
    } else if (result == 0) {
        c->scene->things[c->thing] = (struct thing){ c->bytes > 0, c->bytes, c->rev };
    }
}

static int write_thing(struct scene *s, size_t thing, size_t bytes)
{
    struct call c = { .scene = s, .thing = thing, .bytes = bytes };
    run_call(&c);
    store_commit(s->store);
    return c.result;
}

/* The same size, with other contents. */
static int renew(struct scene *s, size_t thing)
{
    return write_thing(s, thing, s->things[thing].bytes);
}

static int renew_many(struct scene *s, size_t times)
{
    int result = 0;
    for (size_t i = 0; i < times && result == 0; i++)
        result = renew(s, 0);
    return result;
}

/* New objects until one is refused. */
static int create_until_full(struct scene *s, size_t bytes)
{
    int result = 0;
    while (result == 0 && s->n < OBJECTS_MAX)
        if ((result = write_thing(s, s->n, bytes)) == 0)
            s->n++;
    return result;
}

/* Everything that exists, once. */
static int renew_all(struct scene *s)
{
    int result = 0;
    for (size_t i = 0; i < s->n && result == 0; i++)
        if (s->things[i].there)
            result = renew(s, i);
    return result;
}

static void run_tidy(struct scene *s)
{
    for (struct store_batch *b; (b = store_tidy(s->store, true));) {
        store_batch_write(b);
        store_finish(s->store, b);
    }
}

/* ---- checking */

static bool is_held(const struct scene *s, size_t thing)
{
    char key[60];
    thing_key(key, sizeof(key), thing);
    const struct object *o = store_get(s->store, str_c(key));
    const struct thing *t = &s->things[thing];
    return t->there ? o && o->rev == t->rev && o->json_n > t->bytes : !o;
}

static bool holds_all(const struct scene *s)
{
    for (size_t i = 0; i < OBJECTS_MAX; i++)
        if (!is_held(s, i))
            return tap_note(__FILE__, __LINE__, "object %zu is not what was acknowledged", i);
    return true;
}

/* Kills the process and starts it again on the same disk. */
static bool restart(struct scene *s)
{
    struct crash_disk *before = s->disk;
    snprintf(before->folder, sizeof(before->folder), "old");
    s->disk = crash_disk_after(before, "full", CRASH_KILL, &s->random);
    s->disk->full = before->full;
    s->disk->room = before->room;
    s->disk->point = on_write;
    s->disk->context = s;
    before->off = true;
    int64_t rev = store_rev(s->store);
    store_close(s->store);
    s->store = NULL;
    crash_disk_free(before);
    return OK(open_store(s) == 0) && EQ_INT(store_rev(s->store), rev) && holds_all(s);
}

/* What must hold as long as the disk is full. Object 0 is the lease, 1 is small, 2 is larger. */
static bool check_full(struct scene *s)
{
    size_t last = s->n - 1;
    return EQ_INT(renew_many(s, 30), 0) && EQ_INT(renew(s, 2), 0) &&
           EQ_INT(write_thing(s, 1, s->things[1].bytes - 1), 0) &&
           EQ_INT(write_thing(s, last, 0), 0) && EQ_INT(renew_many(s, 12), 0) &&
           EQ_INT(renew_all(s), 0) && EQ_INT(create_until_full(s, 30000), -ENOSPC) &&
           EQ_INT(renew_many(s, 5), 0) && holds_all(s);
}

static bool check_full_and_restarts(struct scene *s)
{
    if (!check_full(s))
        return false;
    run_tidy(s);
    if (!check_full(s) || !restart(s) || !check_full(s))
        return false;
    s->disk->room = 0; /* what a released reserve has left is taken by another process */
    if (!EQ_INT(renew_many(s, 30), 0) || !restart(s) || !EQ_INT(renew_many(s, 30), 0) ||
        !EQ_INT(write_thing(s, s->n - 1, 0), 0) || !EQ_INT(renew_all(s), 0))
        return false;
    s->disk->full = false; /* room returns */
    return EQ_INT(write_thing(s, s->n++, 100000), 0) && EQ_INT(renew_many(s, 3), 0) && restart(s);
}

static struct scene *begin(int64_t quota)
{
    struct scene *s = scene_new(quota);
    static const size_t sizes[] = { 300, 1000, 60000 };
    for (; s->n < countof(sizes); s->n++)
        EQ_INT(write_thing(s, s->n, sizes[s->n]), 0);
    return s;
}

static void holds_on_disks_of_every_size(void)
{
    bool good = true;
    int tried = 0;
    /* the steps are no multiple of a page or of a frame of the log: every remainder comes up */
    for (int64_t quota = RESERVE_BYTES + (700 << 10); good && quota < RESERVE_BYTES + (1500 << 10);
         quota += 30011, tried++) {
        struct scene *s = begin(quota);
        good = EQ_INT(create_until_full(s, 20000), -ENOSPC) && check_full_and_restarts(s);
        if (!good)
            printf("# with a quota of %lld bytes\n", (long long)quota);
        scene_free(s);
    }
    OK(tried >= 25);
}

/* Another process takes all room at once, at any write of a busy store. */
static void holds_when_the_disk_fills_up_at_any_write(void)
{
    bool good = true;
    uint32_t step = 53, writes = UINT32_MAX;
    for (uint32_t at = 1; good && at < writes; at += step) {
        struct scene *s = begin(0);
        s->writes = 0;
        s->full_in = at;
        for (int i = 0; i < 12 && !s->disk->full; i++)
            if (write_thing(s, s->n, i % 4 ? 9000 : 400000) == 0)
                s->n++;
        writes = s->full_in ? s->writes : UINT32_MAX; /* the last round: it was not reached */
        s->full_in = 0;
        s->disk->full = true;
        good = check_full_and_restarts(s);
        if (!good)
            printf("# full at write %u\n", at);
        scene_free(s);
    }
    OK(writes < UINT32_MAX || !good);
}

/* The version is a part of the object's text: with another digit in it, every object was taken for one that grew. */
static void another_digit_is_no_growth(void)
{
    struct scene *s = begin(RESERVE_BYTES + (900 << 10));
    EQ_INT(create_until_full(s, 20000), -ENOSPC);
    OK(store_rev(s->store) < 900);
    EQ_INT(renew_many(s, 1200), 0); /* from three digits to four */
    OK(store_rev(s->store) > 1000);
    EQ_INT(renew_all(s), 0);
    EQ_INT(write_thing(s, 1, s->things[1].bytes + 1), 0); /* a generation of 10 after 9 */
    EQ_INT(write_thing(s, 1, s->things[1].bytes + 100), -ENOSPC);
    scene_free(s);
}

/* Small growth adds up: it is limited in total, or a client could use up what the others need. */
static void small_growth_is_limited(void)
{
    struct scene *s = begin(RESERVE_BYTES + (900 << 10));
    EQ_INT(create_until_full(s, 20000), -ENOSPC);
    int result = 0, times = 0;
    for (; result == 0 && times < 20000; times++)
        result = write_thing(s, 1, s->things[1].bytes + 8);
    EQ_INT(result, -ENOSPC);
    OK(times > 100);
    EQ_INT(renew_many(s, 20), 0);
    EQ_INT(renew_all(s), 0);
    scene_free(s);
}

/* Rows that are appended leave holes which nothing else fits into: with many small objects, the file grew by more than
 * the reserve. */
static void many_small_objects_are_updated_in_any_order(void)
{
    struct scene *s = scene_new(0);
    for (; s->n < OBJECTS_MAX; s->n++)
        if (!EQ_INT(write_thing(s, s->n, 1300 + random_below(&s->random, 1200)), 0))
            break;
    s->disk->full = true;
    s->disk->room = 0;
    int result = 0;
    for (int i = 0; i < 6000 && result == 0; i++) {
        result = renew(s, random_below(&s->random, OBJECTS_MAX));
        s->disk->room = 0;
    }
    EQ_INT(result, 0);
    OK(restart(s));
    EQ_INT(renew_all(s), 0);
    OK(holds_all(s));
    scene_free(s);
}

/* Each fits into the log of a full disk, but not all of them at once; a new object among them fails alone. */
static void a_large_batch_is_divided(void)
{
    struct scene *s = begin(0);
    for (; s->n < 40; s->n++)
        EQ_INT(write_thing(s, s->n, 90000), 0);
    EQ_INT(restart(s), true);
    run_tidy(s);
    s->disk->full = true;
    s->disk->room = 0;
    EQ_INT(renew_many(s, 3), 0);
    struct call calls[41] = { 0 };
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < countof(calls); i++) {
            calls[i] = (struct call){ .scene = s, .thing = i };
            calls[i].bytes = i < s->n ? s->things[i].bytes : 1200000;
            run_call(&calls[i]);
        }
        s->disk->room = 0;
        store_commit(s->store);
        for (size_t i = 0; i < countof(calls); i++)
            EQ_INT(calls[i].result, i < s->n ? 0 : -ENOSPC);
    }
    OK(restart(s));
    scene_free(s);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(another_digit_is_no_growth),
                                        TAP(small_growth_is_limited),
                                        TAP(a_large_batch_is_divided),
                                        TAP(many_small_objects_are_updated_in_any_order),
                                        TAP(holds_on_disks_of_every_size),
                                        TAP(holds_when_the_disk_fills_up_at_any_write),
                                        { 0 } });
}
