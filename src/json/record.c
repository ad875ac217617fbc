/* Operations on finished records: reference counts, comparison, size. See project.h; project.c
 * makes records.
 *
 *     struct record | fields of the feature | links of the indexes | texts and lists
 *     <------------- fixed_bytes ---------------------------------->
 *
 * A record is one allocation, so releasing it is one free(), unless its table has interned fields
 * (fieldtree.shares): then the words and maps it refers to are released first. Comparison goes
 * through the table of fields instead of memcmp(), because texts are pointers and padding is
 * undefined. */
#include "projector.h"

#include "../base/map.h"

#include <malloc.h>

int projection_new(struct projector *j, const struct fields *fields, size_t links,
                   struct projection **ret, err_t *e)
{
    struct projection *p = mem_zero(1, sizeof(*p));
    int r = fieldtree_compile(&p->arena, fields, true, &p->tree, e);
    if (r < 0) {
        projection_free(p);
        return r;
    }
    size_t align = _Alignof(struct record_link);
    p->j = j;
    p->links = links;
    p->links_at = (fields->bytes + align - 1) / align * align;
    p->fixed_bytes = p->links_at + links * sizeof(struct record_link);
    *ret = p;
    return 0;
}

void projection_free(struct projection *p)
{
    if (!p)
        return;
    assert(!p->records);
    arena_done(&p->arena);
    free(p);
}

void projection_set_find(struct projection *p, project_find_fn *find, void *context)
{
    p->find = find;
    p->find_context = context;
}

struct projector *projection_projector(const struct projection *p)
{
    return p->j;
}

uint32_t record_hash(str ns, str name)
{
    return set_hash(map_hash(ns) * 31 + map_hash(name));
}

struct record_link *record_links(const struct record *r)
{
    return (struct record_link *)((uintptr_t)r + r->of->links_at);
}

struct record *record_ref(const struct record *shared)
{
    struct record *r = (struct record *)(uintptr_t)shared; /* immutable except for the count */
    r->refs++;
    return r;
}

/* Texts of this type are never "" when they are owned: JSON has at least one character. */
static void free_once(str *text)
{
    if (text->n)
        free((char *)(uintptr_t)text->p);
    *text = S("");
}

void record_forget_once(struct record *r)
{
    const struct fields *fields = &r->of->tree->fields;
    for (size_t i = 0; r->of->tree->has_once && i < fields->n; i++)
        if (fields->at[i].type == F_ONCE)
            free_once((str *)(void *)((char *)r + fields->at[i].offset));
}

static const void *slot_of(const void *base, const struct field *f)
{
    return (const char *)base + f->offset;
}

static void release_fields(struct intern *in, const struct fields *fields, const void *base);

static void release_list(struct intern *in, const struct field *f, const void *slot)
{
    const bytes_list *list = slot;
    for (size_t i = 0; i < list->n; i++)
        release_fields(in, f->of, list->at + i * f->of->bytes);
}

/* Releases the words and maps that the struct at `base` refers to. */
static void release_fields(struct intern *in, const struct fields *fields, const void *base)
{
    for (size_t i = 0; i < fields->n; i++) {
        const struct field *f = &fields->at[i];
        const void *slot = slot_of(base, f);
        if (f->type == F_WORD && ((const str *)slot)->n)
            intern_word_unref(in,
                              container_of((uintptr_t)((const str *)slot)->p, struct word, text));
        else if (f->type == F_MAP)
            intern_labels_unref(in, *(const struct labels *const *)slot);
        else if (f->type == F_ONCE)
            free_once((str *)(uintptr_t)slot);
        else if (f->type == F_LIST)
            release_list(in, f, slot);
    }
}

void record_unref(const struct record *shared)
{
    struct record *r = (struct record *)(uintptr_t)shared;
    if (!r || --r->refs)
        return;
    struct projection *p = (struct projection *)(uintptr_t)r->of;
    release_fields(&p->j->intern, &record_own_fields, r);
    if (p->tree->shares)
        release_fields(&p->j->intern, &p->tree->fields, r);
    p->records--;
    p->j->record_bytes -= malloc_usable_size(r);
    free(r);
}

static bool fields_same(const struct fields *fields, const void *a, const void *b);

static bool list_same(const struct field *f, const void *a, const void *b)
{
    const bytes_list *left = a, *right = b;
    for (size_t i = 0; i < left->n && left->n == right->n; i++)
        if (!fields_same(f->of, left->at + i * f->of->bytes, right->at + i * f->of->bytes))
            return false;
    return left->n == right->n;
}

/* Interned maps are equal if their pointers are. */
static bool field_same(const struct field *f, const void *a, const void *b)
{
    switch (f->type) {
    case F_STR:
    case F_WORD:
    case F_RAW:
        return str_eq(*(const str *)a, *(const str *)b);
    case F_ONCE:
        return false;
    case F_MAP:
        return *(const void *const *)a == *(const void *const *)b;
    case F_BOOL:
    case F_HAS:
    case F_IS:
        return *(const bool *)a == *(const bool *)b;
    case F_REAL:
        return *(const double *)a == *(const double *)b;
    case F_LIST:
        return list_same(f, a, b);
    default:
        return *(const int64_t *)a == *(const int64_t *)b;
    }
}

static bool fields_same(const struct fields *fields, const void *a, const void *b)
{
    for (size_t i = 0; i < fields->n; i++)
        if (!field_same(&fields->at[i], slot_of(a, &fields->at[i]), slot_of(b, &fields->at[i])))
            return false;
    return true;
}

bool record_same(const struct record *a, const struct record *b)
{
    assert(a->of == b->of);
    return str_eq(a->ns, b->ns) && str_eq(a->name, b->name) && str_eq(a->uid, b->uid) &&
           fields_same(&a->of->tree->fields, a, b);
}

static size_t text_bytes(const struct fields *fields, const void *base)
{
    size_t bytes = 0;
    for (size_t i = 0; i < fields->n; i++) {
        const struct field *f = &fields->at[i];
        const void *slot = slot_of(base, f);
        if (f->type == F_STR || f->type == F_RAW)
            bytes += ((const str *)slot)->n + 1;
        if (f->type != F_LIST)
            continue;
        const bytes_list *list = slot;
        for (size_t k = 0; k < list->n; k++)
            bytes += f->of->bytes + text_bytes(f->of, list->at + k * f->of->bytes);
    }
    return bytes;
}

size_t record_bytes(const struct record *r)
{
    return r->of->fixed_bytes + text_bytes(&record_own_fields, r) +
           text_bytes(&r->of->tree->fields, r);
}
