/* managedFields, read, ordered and written: see managed.h. */
#include "managed.h"

static bool same(const struct manager *a, const struct manager *b)
{
    return a->applied == b->applied && str_eq(a->name, b->name) &&
           str_eq(a->subresource, b->subresource) && (a->applied || str_eq(a->version, b->version));
}

struct manager *managed_find(struct managed *m, const struct manager *like)
{
    for (size_t i = 0; i < m->n; i++)
        if (same(&m->at[i], like))
            return &m->at[i];
    return NULL;
}

struct manager *managed_make(struct arena *a, struct managed *m, const struct manager *like)
{
    struct manager *found = managed_find(m, like);
    if (found)
        return found;
    if (m->n == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 8;
        struct manager *larger = arena_array(a, m->cap, sizeof(*larger));
        if (m->n)
            memcpy(larger, m->at, m->n * sizeof(*larger));
        m->at = larger;
    }
    m->at[m->n] = *like;
    return &m->at[m->n++];
}

static void drop(struct managed *m, size_t at)
{
    memmove(m->at + at, m->at + at + 1, (m->n - at - 1) * sizeof(*m->at));
    m->n--;
}

void managed_drop_empty(struct managed *m)
{
    for (size_t i = m->n; i-- > 0;)
        if (fieldset_empty(&m->at[i].set))
            drop(m, i);
}

/* ---- reading */

static int read_entry(struct arena *a, const struct json *entry, struct manager *ret, err_t *e)
{
    str operation = json_text(json_get(entry, "operation"));
    if (!str_eq(operation, S("Apply")) && !str_eq(operation, S("Update")))
        return err_set(e, EINVAL, "operation must be `Apply` or `Update`");
    struct manager m = {
        .name = json_text(json_get(entry, "manager")),
        .version = json_text(json_get(entry, "apiVersion")),
        .subresource = json_text(json_get(entry, "subresource")),
        .applied = str_eq(operation, S("Apply")),
    };
    if (!m.version.n)
        return err_set(e, EINVAL, "apiVersion must not be empty");
    if (!str_eq(json_text(json_get(entry, "fieldsType")), S("FieldsV1")))
        return err_set(e, EINVAL, "fieldsType must be FieldsV1");
    const struct json *time = json_get(entry, "time");
    m.time = json_is(time, JSON_STR) ? time->text : NULL;
    int result = fieldset_parse(a, json_get(entry, "fieldsV1"), &m.set, e);
    if (result == 0)
        *ret = m;
    return result;
}

int managed_parse(struct arena *a, const struct json *entries, struct managed *ret, err_t *e)
{
    struct managed all = { 0 };
    for (size_t i = 0; i < json_len(entries); i++) {
        struct manager one;
        int result = read_entry(a, json_item(entries, i), &one, e);
        if (result < 0)
            return err_wrap(e, "managed fields entry %zu", i);
        *managed_make(a, &all, &one) = one;
    }
    *ret = all;
    return 0;
}

/* ---- writing */

static int time_cmp(const struct manager *x, const struct manager *y)
{
    return strcmp(x->time ? x->time : "", y->time ? y->time : "");
}

int managed_cmp(const void *a, const void *b)
{
    const struct manager *x = a, *y = b;
    int order = str_cmp(x->name, y->name);
    if (!order)
        order = (int)y->applied - (int)x->applied;
    if (!order)
        order = str_cmp(x->version, y->version);
    return order ? order : str_cmp(x->subresource, y->subresource);
}

/* Applies first, then by time and name. */
static int by_time(const void *a, const void *b)
{
    const struct manager *x = a, *y = b;
    int order = (int)y->applied - (int)x->applied;
    if (!order)
        order = time_cmp(x, y);
    return order ? order : managed_cmp(a, b);
}

struct json *managed_print(struct arena *a, struct managed *m)
{
    if (!m->n)
        return NULL;
    qsort(m->at, m->n, sizeof(*m->at), by_time);
    struct json *entries = json_new_arr(a);
    for (size_t i = 0; i < m->n; i++) {
        const struct manager *one = &m->at[i];
        struct json *entry = json_new_obj(a);
        if (one->name.n)
            json_set_str(a, entry, "manager", one->name);
        json_set_str(a, entry, "operation", one->applied ? S("Apply") : S("Update"));
        json_set_str(a, entry, "apiVersion", one->version);
        if (one->time)
            json_set_str(a, entry, "time", str_c(one->time));
        json_set_str(a, entry, "fieldsType", S("FieldsV1"));
        json_set(a, entry, S("fieldsV1"), fieldset_print(a, &one->set));
        if (one->subresource.n)
            json_set_str(a, entry, "subresource", one->subresource);
        json_push(a, entries, entry);
    }
    return entries;
}

str managed_describe(struct arena *a, const struct manager *m)
{
    auto_buf struct buf out = { 0 };
    json_write_text(&out, m->name);
    if (m->subresource.n) {
        buf_put(&out, S(" with subresource "));
        json_write_text(&out, m->subresource);
    }
    if (!m->applied)
        buf_printf(&out, " using " STR_FMT, STR_ARG(m->version));
    return arena_str(a, buf_str(&out));
}

/* ---- cap */

static size_t updaters(const struct managed *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += !m->at[i].applied;
    return n;
}

static struct manager *oldest(struct managed *m, const struct manager *newer_than, str version)
{
    struct manager *found = NULL;
    for (size_t i = 0; i < m->n; i++) {
        struct manager *one = &m->at[i];
        if (one->applied || (version.n && !str_eq(one->version, version)) ||
            (newer_than && by_time(one, newer_than) <= 0))
            continue;
        if (!found || by_time(one, found) < 0)
            found = one;
    }
    return found;
}

static const str ancient = STR_INIT("ancient-changes");

static void drop_like(struct managed *m, const struct manager *like)
{
    struct manager *found = managed_find(m, like);
    if (found)
        drop(m, (size_t)(found - m->at));
}

/* Joins `second` into the bucket of its version, which `first` becomes where there is none yet. */
static void join(struct arena *a, struct managed *m, struct manager first, struct manager second)
{
    struct manager bucket = { .name = ancient, .version = second.version, .time = second.time };
    struct manager *existing = managed_find(m, &bucket);
    bool first_joins = !existing || same(existing, &second);
    bucket.set = existing ? fieldset_union(a, &existing->set, &second.set) : second.set;
    if (first_joins)
        bucket.set = fieldset_union(a, &bucket.set, &first.set);
    drop_like(m, &bucket);
    drop_like(m, &second);
    if (first_joins)
        drop_like(m, &first);
    *managed_make(a, m, &bucket) = bucket;
}

void managed_cap(struct arena *a, struct managed *m)
{
    struct manager last = { 0 };
    bool any = false;
    while (updaters(m) > MANAGED_UPDATERS_MAX) {
        struct manager *first = oldest(m, any ? &last : NULL, (str){ 0 });
        struct manager *second = first ? oldest(m, first, first->version) : NULL;
        if (!first)
            return; /* no two of any version */
        last = *first;
        any = !second; /* this version is exhausted: go on with the next oldest */
        if (second)
            join(a, m, *first, *second);
    }
}
