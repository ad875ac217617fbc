/* Metrics: see metrics.h.
 *
 * A series is one allocation:
 *
 *     struct metric | counts[bound_n + 1] | values[label_n] | key bytes
 *
 * The key is each label value preceded by its length, so that no value can be confused with a pair
 * of others ("a","bc" and "ab","c"). The values point into the key bytes, so each is stored once.
 *
 * A family is found by name and a series by key, both in hash maps; nothing is sorted until the
 * registry is read, which happens once per scrape while counting happens all the time. A read in
 * parts (metrics_read_next) holds no pointer between calls, only the name of the last family:
 * families are never removed, series may be. */
#include "metrics.h"

#include "buf.h"
#include "map.h"
#include "vec.h"

#include <math.h>

struct metric {
    struct metric_family *family;
    str key;           /* in this allocation */
    const str *values; /* in this allocation */
    double value;      /* histogram: the sum of all observations */
    uint64_t count;    /* histogram: all observations */
    uint64_t counts[]; /* histogram: one per bound, and one above the last */
};

struct metric_family {
    struct metric_spec spec;
    size_t label_n;
    struct map series;     /* key → struct metric, owned */
    metric_source *source; /* NULL: all series are stored here */
    void *source_context;
};

struct collector {
    void (*collect)(void *context);
    void *context;
};

struct metrics {
    struct map families; /* name → struct metric_family, owned */
    VEC(struct collector) collectors;
};

struct metrics *metrics_new(void)
{
    return mem_zero(1, sizeof(struct metrics));
}

static void family_free(struct metric_family *f)
{
    for (struct map_slot *s = NULL; (s = map_next(&f->series, s));)
        free(s->value);
    map_done(&f->series);
    free(f);
}

void metrics_free(struct metrics *m)
{
    if (!m)
        return;
    for (struct map_slot *s = NULL; (s = map_next(&m->families, s));)
        family_free(s->value);
    map_done(&m->families);
    vec_done(&m->collectors);
    free(m);
}

static size_t label_count(const struct metric_spec *spec)
{
    size_t n = 0;
    while (n < METRIC_LABELS_MAX && spec->labels[n])
        n++;
    return n;
}

struct metric_family *metrics_family(struct metrics *m, const struct metric_spec *spec)
{
    struct metric_family *f = map_get(&m->families, str_c(spec->name));
    if (f) {
        assert(f->spec.kind == spec->kind && f->label_n == label_count(spec));
        return f;
    }
    f = mem_zero(1, sizeof(*f));
    f->spec = *spec;
    f->label_n = label_count(spec);
    map_put(&m->families, str_c(spec->name), f);
    return f;
}

/* The lookup key of label values: each value after its length. */
static void put_key(struct buf *out, const struct metric_family *f, const str *values)
{
    for (size_t i = 0; i < f->label_n; i++) {
        buf_put(out, (str){ (const char *)&values[i].n, sizeof(values[i].n) });
        buf_put(out, values[i]);
    }
}

/* A series at 0. The label values are copied as part of the key. */
static struct metric *metric_new(struct metric_family *f, str key)
{
    size_t count_n = f->spec.kind == METRIC_HISTOGRAM ? f->spec.bound_n + 1 : 0;
    size_t values_at = sizeof(struct metric) + count_n * sizeof(uint64_t);
    size_t key_at = values_at + f->label_n * sizeof(str);
    struct metric *s = mem_zero(1, key_at + key.n);
    str *values = (str *)(void *)((char *)s + values_at);
    char *copy = (char *)s + key_at;
    if (key.n)
        memcpy(copy, key.p, key.n);
    s->family = f;
    s->key = (str){ copy, key.n };
    s->values = values;
    for (size_t i = 0; i < f->label_n; i++) {
        memcpy(&values[i].n, copy, sizeof(size_t));
        values[i].p = copy + sizeof(size_t);
        copy += sizeof(size_t) + values[i].n;
    }
    return s;
}

struct metric *metric_at(struct metric_family *f, const str *values)
{
    auto_buf struct buf key = { 0 };
    put_key(&key, f, values);
    struct metric *s = map_get(&f->series, buf_str(&key));
    if (!s) {
        s = metric_new(f, buf_str(&key));
        map_put(&f->series, s->key, s);
    }
    return s;
}

void metric_add(struct metric *s, double more)
{
    assert(s->family->spec.kind != METRIC_HISTOGRAM);
    assert(s->family->spec.kind == METRIC_GAUGE || more >= 0);
    s->value += more;
}

void metric_set(struct metric *s, double value)
{
    assert(s->family->spec.kind == METRIC_GAUGE);
    s->value = value;
}

void metric_observe(struct metric *s, double value)
{
    const struct metric_spec *spec = &s->family->spec;
    assert(spec->kind == METRIC_HISTOGRAM);
    size_t i = 0;
    while (i < spec->bound_n && !(value <= spec->bounds[i])) /* NaN: the last bucket */
        i++;
    s->counts[i]++;
    s->count++;
    s->value += value;
}

bool metric_drop(struct metric_family *f, const str *values)
{
    auto_buf struct buf key = { 0 };
    put_key(&key, f, values);
    struct metric *s = map_del(&f->series, buf_str(&key));
    free(s);
    return s != NULL;
}

static struct metric *find_first(const struct metric_family *f, const str *values, size_t n)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&f->series, slot));) {
        struct metric *s = slot->value;
        size_t i = 0;
        while (i < n && str_eq(s->values[i], values[i]))
            i++;
        if (i == n)
            return s;
    }
    return NULL;
}

size_t metric_drop_all(struct metric_family *f, const str *values, size_t n)
{
    size_t dropped = 0;
    for (struct metric *s; (s = find_first(f, values, n)); dropped++) {
        map_del(&f->series, s->key);
        free(s);
    }
    return dropped;
}

void metrics_on_read(struct metrics *m, void (*collect)(void *context), void *context)
{
    vec_push(&m->collectors, ((struct collector){ collect, context }));
}

void metrics_off_read(struct metrics *m, const void *context)
{
    for (size_t i = m->collectors.n; i--;)
        if (m->collectors.at[i].context == context)
            vec_remove(&m->collectors, i);
}

/* ---- reading */

static int compare_values(const void *a, const void *b)
{
    const struct metric *const *x = a, *const *y = b;
    int order = 0;
    for (size_t i = 0; i < (*x)->family->label_n && order == 0; i++)
        order = str_cmp((*x)->values[i], (*y)->values[i]);
    return order;
}

/* The values of a map in an array that the caller frees. */
static void **map_values(const struct map *m)
{
    void **all = mem_zero(m->n + 1, sizeof(*all));
    size_t n = 0;
    for (struct map_slot *s = NULL; (s = map_next(m, s));)
        all[n++] = s->value;
    return all;
}

/* Reports a family and its stored series in the order of their label values. */
static void read_family(struct metric_family *f, const struct metrics_reader *reader)
{
    auto_free void **series = map_values(&f->series);
    qsort(series, f->series.n, sizeof(*series), compare_values);
    if (reader->family)
        reader->family(reader->context, &f->spec);
    for (size_t i = 0; i < f->series.n; i++) {
        const struct metric *s = series[i];
        reader->series(reader->context, &(struct metric_view){ .spec = &f->spec,
                                                               .values = s->values,
                                                               .value = s->value,
                                                               .counts = s->counts,
                                                               .count = s->count });
    }
}

void metric_set_source(struct metric_family *f, metric_source *source, void *context)
{
    f->source = source;
    f->source_context = context;
}

/* The family with the next larger name. A linear search: there are some dozens of families. */
static struct metric_family *family_after(const struct metrics *m, const char *name)
{
    struct metric_family *next = NULL;
    for (struct map_slot *s = NULL; (s = map_next(&m->families, s));) {
        struct metric_family *f = s->value;
        if ((!name || strcmp(f->spec.name, name) > 0) &&
            (!next || strcmp(f->spec.name, next->spec.name) < 0))
            next = f;
    }
    return next;
}

/* The callbacks of metrics_on_read() run once, before the first part. */
bool metrics_read_next(struct metrics *m, struct metrics_place *at,
                       const struct metrics_reader *reader)
{
    for (size_t i = 0; !at->family && i < m->collectors.n; i++)
        m->collectors.at[i].collect(m->collectors.at[i].context);
    struct metric_family *f =
        at->source_next ? map_get(&m->families, str_c(at->family)) : family_after(m, at->family);
    if (!f)
        return false;
    if (!at->source_next)
        read_family(f, reader);
    at->family = f->spec.name;
    at->source_next =
        f->source ? f->source(f->source_context, &f->spec, at->source_next, reader) : 0;
    return true;
}

void metrics_read(struct metrics *m, const struct metrics_reader *reader)
{
    for (struct metrics_place at = { 0 }; metrics_read_next(m, &at, reader);)
        ;
}
