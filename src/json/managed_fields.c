/* managedFields, parsed, sorted and printed: see managed_fields.h.
 *
 * The format is fixed by clients, which compare and sort entries as text: Apply entries come first,
 * then by time and name. Update entries are limited to ten, because every kubectl user agent and
 * every controller adds one: the oldest of a version are merged under the name "ancient-changes",
 * as in Kubernetes. Apply entries are never merged, because their sets decide what a later apply
 * removes.
 *
 * Everything is in the arena of the request; texts borrow from the parsed object. */
#include "managed_fields.h"

static bool is_same_manager(const struct field_manager *a, const struct field_manager *b)
{
    return a->applied == b->applied && str_eq(a->name, b->name) &&
           str_eq(a->subresource, b->subresource) && (a->applied || str_eq(a->version, b->version));
}

struct field_manager *managed_fields_find(struct managed_fields *m,
                                          const struct field_manager *like)
{
    for (size_t i = 0; i < m->n; i++)
        if (is_same_manager(&m->at[i], like))
            return &m->at[i];
    return NULL;
}

struct field_manager *managed_fields_make(struct arena *a, struct managed_fields *m,
                                          const struct field_manager *like)
{
    struct field_manager *found = managed_fields_find(m, like);
    if (found)
        return found;
    if (m->n == m->cap) {
        m->cap = m->cap ? m->cap * 2 : 8;
        struct field_manager *larger = arena_array(a, m->cap, sizeof(*larger));
        if (m->n)
            memcpy(larger, m->at, m->n * sizeof(*larger));
        m->at = larger;
    }
    m->at[m->n] = *like;
    return &m->at[m->n++];
}

static void drop_entry(struct managed_fields *m, size_t at)
{
    memmove(m->at + at, m->at + at + 1, (m->n - at - 1) * sizeof(*m->at));
    m->n--;
}

void managed_fields_drop_empty(struct managed_fields *m)
{
    for (size_t i = m->n; i-- > 0;)
        if (fieldset_empty(&m->at[i].set))
            drop_entry(m, i);
}

/* ---- reading */

/* Parses one entry; the error texts are quoted: kube-apiserver. */
static int read_entry(struct arena *a, const struct json *entry, struct field_manager *ret,
                      err_t *e)
{
    str operation = json_text(json_get(entry, "operation"));
    if (!str_eq(operation, S("Apply")) && !str_eq(operation, S("Update")))
        return err_set(e, EINVAL, "operation must be `Apply` or `Update`");
    struct field_manager m = {
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

int managed_fields_parse(struct arena *a, const struct json *entries, struct managed_fields *ret,
                         err_t *e)
{
    struct managed_fields all = { 0 };
    for (size_t i = 0; i < json_len(entries); i++) {
        struct field_manager one;
        int result = read_entry(a, json_item(entries, i), &one, e);
        if (result < 0)
            return err_wrap(e, "managed fields entry %zu", i);
        *managed_fields_make(a, &all, &one) = one;
    }
    *ret = all;
    return 0;
}

/* ---- writing */

static int time_cmp(const struct field_manager *x, const struct field_manager *y)
{
    return strcmp(x->time ? x->time : "", y->time ? y->time : "");
}

int managed_fields_cmp(const void *a, const void *b)
{
    const struct field_manager *x = a, *y = b;
    int order = str_cmp(x->name, y->name);
    if (!order)
        order = (int)y->applied - (int)x->applied;
    if (!order)
        order = str_cmp(x->version, y->version);
    return order ? order : str_cmp(x->subresource, y->subresource);
}

/* Apply entries first, then by time and name. */
static int compare_time(const void *a, const void *b)
{
    const struct field_manager *x = a, *y = b;
    int order = (int)y->applied - (int)x->applied;
    if (!order)
        order = time_cmp(x, y);
    return order ? order : managed_fields_cmp(a, b);
}

struct json *managed_fields_print(struct arena *a, struct managed_fields *m)
{
    if (!m->n)
        return NULL;
    qsort(m->at, m->n, sizeof(*m->at), compare_time);
    struct json *entries = json_new_arr(a);
    for (size_t i = 0; i < m->n; i++) {
        const struct field_manager *one = &m->at[i];
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

str managed_fields_describe(struct arena *a, const struct field_manager *m)
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

static size_t count_updaters(const struct managed_fields *m)
{
    size_t n = 0;
    for (size_t i = 0; i < m->n; i++)
        n += !m->at[i].applied;
    return n;
}

/* The oldest update entry that is newer than another one and of a version, each if given. */
static struct field_manager *find_oldest(struct managed_fields *m,
                                         const struct field_manager *newer_than, str version)
{
    struct field_manager *found = NULL;
    for (size_t i = 0; i < m->n; i++) {
        struct field_manager *one = &m->at[i];
        if (one->applied || (version.n && !str_eq(one->version, version)) ||
            (newer_than && compare_time(one, newer_than) <= 0))
            continue;
        if (!found || compare_time(one, found) < 0)
            found = one;
    }
    return found;
}

static const str ancient = STR_INIT("ancient-changes");

static void drop_like(struct managed_fields *m, const struct field_manager *like)
{
    struct field_manager *found = managed_fields_find(m, like);
    if (found)
        drop_entry(m, (size_t)(found - m->at));
}

/* Merges `second` into the bucket of its version; if there is none yet, `first` becomes part of
 * it. */
static void merge_entries(struct arena *a, struct managed_fields *m, struct field_manager first,
                          struct field_manager second)
{
    struct field_manager bucket = { .name = ancient,
                                    .version = second.version,
                                    .time = second.time };
    struct field_manager *existing = managed_fields_find(m, &bucket);
    bool first_joins = !existing || is_same_manager(existing, &second);
    bucket.set = existing ? fieldset_union(a, &existing->set, &second.set) : second.set;
    if (first_joins)
        bucket.set = fieldset_union(a, &bucket.set, &first.set);
    drop_like(m, &bucket);
    drop_like(m, &second);
    if (first_joins)
        drop_like(m, &first);
    *managed_fields_make(a, m, &bucket) = bucket;
}

void managed_fields_cap(struct arena *a, struct managed_fields *m)
{
    struct field_manager last = { 0 };
    bool any = false;
    while (count_updaters(m) > MANAGED_FIELDS_UPDATERS_MAX) {
        struct field_manager *first = find_oldest(m, any ? &last : NULL, (str){ 0 });
        struct field_manager *second = first ? find_oldest(m, first, first->version) : NULL;
        if (!first)
            return; /* no version has two entries left to merge */
        last = *first;
        any = !second; /* this version has no other entry: continue with the next oldest */
        if (second)
            merge_entries(a, m, *first, *second);
    }
}
