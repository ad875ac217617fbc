/* The simulated disk: see crash_disk.h for what a crash may leave of it.
 *
 * A file holds its bytes twice, as they are now and as a sync has made them durable, and the list of writes in between
 * (`pending`). A sync applies the list to the durable bytes. A crash begins with the durable bytes and applies the part
 * of the list that its kind keeps, whole or by sectors. Names work the same way: current names, durable names, and the
 * changes in between, which are always applied in order.
 *
 * Files are reference-counted, because a name, a change of a name and an open handle may all hold one. Disks are in a
 * table by folder, which is how crash_vfs.c finds them. */
#include "crash_disk.h"

#include "base/sum.h"

#include <stdio.h>

static struct crash_disk *disks[8];

/* ---- files */

struct crash_file *crash_file_ref(struct crash_file *f)
{
    f->refs++;
    return f;
}

static void file_drop_pending(struct crash_file *f)
{
    for (size_t i = 0; i < f->pending.n; i++)
        free(f->pending.at[i].bytes);
    f->pending.n = 0;
}

/* Buffers are kept for the next file: most of the time would go into asking the system for memory. */
enum { POOL_MAX = 16, POOL_LEAST = 64 << 10 };
static struct crash_bytes pool[POOL_MAX];

static void bytes_done(struct crash_bytes *b)
{
    size_t worst = 0;
    for (size_t i = 1; i < POOL_MAX; i++)
        if (pool[i].cap < pool[worst].cap)
            worst = i;
    if (b->cap >= POOL_LEAST && b->cap > pool[worst].cap) {
        free(pool[worst].p);
        pool[worst] = *b;
    } else {
        free(b->p);
    }
    *b = (struct crash_bytes){ 0 };
}

static void bytes_take(struct crash_bytes *b, size_t want)
{
    for (size_t i = 0; i < POOL_MAX; i++)
        if (pool[i].cap >= want && want >= POOL_LEAST / 2) {
            *b = pool[i];
            b->n = 0;
            pool[i] = (struct crash_bytes){ 0 };
            return;
        }
}

void crash_bytes_resize(struct crash_bytes *b, size_t want)
{
    if (!b->p)
        bytes_take(b, want);
    if (want > b->cap) {
        b->cap = MAX(want, b->cap * 2);
        b->p = mem_grow(b->p, b->cap, 1);
    }
    if (want > b->n)
        memset(b->p + b->n, 0, want - b->n);
    b->n = want;
}

void crash_bytes_put(struct crash_bytes *b, const char *from, size_t count, int64_t at)
{
    if ((size_t)at + count > b->n)
        crash_bytes_resize(b, (size_t)at + count);
    if (count)
        memcpy(b->p + at, from, count);
}

static void bytes_copy(struct crash_bytes *to, const struct crash_bytes *from)
{
    to->n = 0;
    crash_bytes_put(to, from->p, from->n, 0);
}

static void bytes_write(struct crash_bytes *b, const struct crash_write *w)
{
    if (w->bytes)
        crash_bytes_put(b, w->bytes, w->n, w->at);
    else
        crash_bytes_resize(b, (size_t)w->at);
}

void crash_file_sync(struct crash_file *f)
{
    for (size_t i = 0; i < f->pending.n; i++)
        bytes_write(&f->durable, &f->pending.at[i]);
    file_drop_pending(f);
}

void crash_file_unref(struct crash_file *f)
{
    if (--f->refs)
        return;
    file_drop_pending(f);
    vec_done(&f->pending);
    bytes_done(&f->now);
    bytes_done(&f->durable);
    free(f);
}

static struct crash_file *file_new(void)
{
    struct crash_file *f = mem_zero(1, sizeof(*f));
    f->refs = 1;
    return f;
}

static struct crash_write write_copy(const struct crash_write *w)
{
    struct crash_write copy = *w;
    if (w->bytes)
        copy.bytes = mem_dup(w->bytes, w->n);
    return copy;
}

/* Applies those sectors of a write that `keeps` selects. */
static void bytes_write_sectors(struct crash_bytes *b, const struct crash_write *w, int64_t sector,
                                bool (*keeps)(void *context), void *context)
{
    if (!w->bytes) {
        if (keeps(context))
            bytes_write(b, w);
        return;
    }
    int64_t end = w->at + (int64_t)w->n;
    for (int64_t at = w->at; at < end;) {
        int64_t next = MIN((at / sector + 1) * sector, end);
        if (keeps(context)) {
            struct crash_write part = { w->bytes + (at - w->at), (size_t)(next - at), at };
            bytes_write(b, &part);
        }
        at = next;
    }
}

struct choice {
    struct random *random;
    uint32_t keep_of_16;
    uint32_t left; /* sectors still kept of a torn write */
};

static bool keeps_some(void *context)
{
    struct choice *c = context;
    return random_below(c->random, 16) < c->keep_of_16;
}

static bool keeps_first(void *context)
{
    struct choice *c = context;
    return c->left && c->left--;
}

/* The file after a power failure. */
static struct crash_file *file_after(const struct crash_file *f, enum crash_kind kind,
                                     struct random *random)
{
    struct crash_file *copy = file_new();
    bytes_copy(&copy->now, &f->durable);
    int64_t sector = random_below(random, 2) ? 512 : 4096;
    struct choice c = { random, 1 + random_below(random, 15), random_below(random, 12) };
    uint32_t n = (uint32_t)f->pending.n, cut = n ? random_below(random, n) : 0;
    for (uint32_t i = 0; i < n; i++) {
        const struct crash_write *w = &f->pending.at[i];
        if (kind == CRASH_KEEP_ALL || (kind == CRASH_TORN && i < cut) ||
            (kind == CRASH_LATE_ONLY && i > cut))
            bytes_write(&copy->now, w);
        else if (kind == CRASH_TORN && i == cut)
            bytes_write_sectors(&copy->now, w, sector, keeps_first, &c);
        else if (kind == CRASH_REORDERED || (kind == CRASH_LATE_ONLY && i == cut))
            bytes_write_sectors(&copy->now, w, sector, keeps_some, &c);
    }
    if (kind != CRASH_LOSE_ALL && copy->now.n < f->now.n && random_below(random, 4) == 0)
        crash_bytes_resize(&copy->now, f->now.n);
    return copy;
}

static struct crash_file *file_killed(const struct crash_file *f)
{
    struct crash_file *copy = file_new();
    bytes_copy(&copy->durable, &f->durable);
    bytes_copy(&copy->now, &f->now);
    for (size_t i = 0; i < f->pending.n; i++)
        vec_push(&copy->pending, write_copy(&f->pending.at[i]));
    return copy;
}

/* ---- names */

#define find_name(names, text) find_name_in((names).at, (names).n, text)
static size_t find_name_in(const struct crash_name *names, size_t n, const char *name)
{
    size_t i = 0;
    while (i < n && strcmp(names[i].name, name) != 0)
        i++;
    return i;
}

static void change_name(struct crash_disk *d, bool durable, const struct crash_change *c)
{
    struct crash_name **at = durable ? &d->durable_names.at : &d->names.at;
    size_t *n = durable ? &d->durable_names.n : &d->names.n;
    size_t i = find_name_in(*at, *n, c->entry.name);
    if (i < *n) {
        crash_file_unref((*at)[i].file);
        (*at)[i] = (*at)[--*n];
    }
    if (c->kind == NAME_UNLINK)
        return;
    struct crash_name added = c->entry;
    crash_file_ref(added.file);
    if (durable)
        vec_push(&d->durable_names, added);
    else
        vec_push(&d->names, added);
}

void crash_disk_change_name(struct crash_disk *d, enum crash_change_kind kind, const char *name,
                            struct crash_file *file)
{
    struct crash_change c = { .kind = kind, .entry.file = crash_file_ref(file) };
    snprintf(c.entry.name, sizeof(c.entry.name), "%s", name);
    change_name(d, false, &c);
    vec_push(&d->changes, c);
}

void crash_disk_sync_names(struct crash_disk *d)
{
    for (size_t i = 0; i < d->changes.n; i++) {
        change_name(d, true, &d->changes.at[i]);
        crash_file_unref(d->changes.at[i].entry.file);
    }
    d->changes.n = 0;
}

struct crash_disk *crash_disk_new(const char *folder)
{
    struct crash_disk *d = mem_zero(1, sizeof(*d));
    snprintf(d->folder, sizeof(d->folder), "%s", folder);
    for (size_t i = 0; i < countof(disks); i++)
        if (!disks[i]) {
            disks[i] = d;
            return d;
        }
    abort();
}

void crash_disk_free(struct crash_disk *d)
{
    if (!d)
        return;
    for (size_t i = 0; i < countof(disks); i++)
        if (disks[i] == d)
            disks[i] = NULL;
    for (size_t i = 0; i < d->names.n; i++)
        crash_file_unref(d->names.at[i].file);
    for (size_t i = 0; i < d->durable_names.n; i++)
        crash_file_unref(d->durable_names.at[i].file);
    for (size_t i = 0; i < d->changes.n; i++)
        crash_file_unref(d->changes.at[i].entry.file);
    vec_done(&d->names);
    vec_done(&d->durable_names);
    vec_done(&d->changes);
    free(d);
}

/* The copy of `f`; the same one for every name of `f`. */
struct copies {
    VEC(const struct crash_file *) from;
    VEC(struct crash_file *) to;
    enum crash_kind kind;
    struct random *random;
};

static struct crash_file *copy_file(struct copies *c, const struct crash_file *f)
{
    for (size_t i = 0; i < c->from.n; i++)
        if (c->from.at[i] == f)
            return c->to.at[i];
    struct crash_file *made =
        c->kind == CRASH_KILL ? file_killed(f) : file_after(f, c->kind, c->random);
    vec_push(&c->from, f);
    vec_push(&c->to, made);
    return made;
}

static struct crash_change copy_change(struct copies *c, const struct crash_change *change)
{
    struct crash_change copy = *change;
    copy.entry.file = copy_file(c, change->entry.file);
    return copy;
}

void crash_disk_keep(struct crash_disk *d)
{
    d->throwaway = false;
    for (size_t i = 0; i < d->names.n; i++)
        bytes_copy(&d->names.at[i].file->durable, &d->names.at[i].file->now);
}

struct crash_disk *crash_disk_after(const struct crash_disk *d, const char *folder,
                                    enum crash_kind kind, struct random *random)
{
    struct crash_disk *after = crash_disk_new(folder);
    after->throwaway = kind != CRASH_KILL;
    struct copies c = { .kind = kind, .random = random };
    size_t keep = kind == CRASH_KEEP_ALL   ? d->changes.n
                  : kind == CRASH_LOSE_ALL ? 0
                                           : random_below(random, (uint32_t)d->changes.n + 1);
    for (size_t i = 0; i < d->durable_names.n; i++) {
        struct crash_change link = { NAME_LINK, d->durable_names.at[i] };
        link = copy_change(&c, &link);
        change_name(after, true, &link);
        change_name(after, false, &link);
    }
    for (size_t i = 0; i < d->changes.n; i++) {
        struct crash_change change = copy_change(&c, &d->changes.at[i]);
        if (kind == CRASH_KILL) {
            crash_disk_change_name(after, change.kind, change.entry.name, change.entry.file);
        } else if (i < keep) {
            change_name(after, true, &change);
            change_name(after, false, &change);
        }
    }
    for (size_t i = 0; i < c.to.n; i++)
        crash_file_unref(c.to.at[i]);
    vec_done(&c.from);
    vec_done(&c.to);
    return after;
}

uint64_t crash_disk_sum(const struct crash_disk *d)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < d->names.n; i++) { /* in any order */
        const struct crash_file *f = d->names.at[i].file;
        sum += sum64((str){ f->now.n ? f->now.p : "", f->now.n },
                     sum64(str_c(d->names.at[i].name), 1 + f->pending.n));
    }
    return sum;
}

bool crash_disk_pending(const struct crash_disk *d)
{
    for (size_t i = 0; i < d->names.n; i++)
        if (d->names.at[i].file->pending.n)
            return true;
    return d->changes.n > 0;
}

struct crash_file *crash_disk_file(const struct crash_disk *d, const char *name)
{
    size_t i = find_name(d->names, name);
    return i < d->names.n ? d->names.at[i].file : NULL;
}

void crash_file_replace(struct crash_file *f, str bytes)
{
    f->now.n = 0;
    crash_bytes_put(&f->now, bytes.p, bytes.n, 0);
}

size_t crash_disk_bytes(const struct crash_disk *d)
{
    size_t bytes = 0;
    for (size_t i = 0; i < d->names.n; i++)
        bytes += d->names.at[i].file->now.n;
    return bytes;
}

/* ---- for crash_vfs.c */

struct crash_disk *crash_disk_find(const char *path, const char **ret_name)
{
    const char *slash = strchr(path + 1, '/');
    for (size_t i = 0; slash && i < countof(disks); i++)
        if (disks[i] && !strncmp(disks[i]->folder, path + 1, (size_t)(slash - path - 1)) &&
            !disks[i]->folder[slash - path - 1]) {
            *ret_name = slash + 1;
            return disks[i];
        }
    return NULL;
}

struct crash_file *crash_disk_make_file(struct crash_disk *d, const char *name)
{
    struct crash_file *f = file_new();
    crash_disk_change_name(d, NAME_LINK, name, f);
    f->refs--;
    return f;
}
