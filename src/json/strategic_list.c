/* Strategic merge patch, lists: see strategic_list.h.
 *
 * An element is identified by a text: the value of its merge key, or the element itself if it is a
 * scalar. Lists are untrusted and therefore merged by hashed texts, in linear instead of quadratic
 * time.
 *
 *     live    [A, B, C]      patch   [C', D, {$patch: delete, B}]
 *
 *     split   plain [C', D], gone {B}
 *     without [A, C]         the live list without deleted elements
 *     merge   [A, C+C', D]   matching elements merge, new ones are appended
 *     arrange [A, C+C', D]   the patch's elements in its order, the server's at their position
 *
 * Ordering is the subtle part. Both the patch and the server define a partial order, and Kubernetes
 * resolves them with one interleaving pass, which this code reproduces exactly, because the order
 * of containers or environment variables is visible to users. */
#include "strategic_list.h"

#include "../base/map.h"

/* Values other than text are marked with a byte that no text contains: 1 is not "1". */
static str scalar_text(struct strategic *w, const struct json *v)
{
    if (v->type == JSON_STR)
        return json_text(v);
    return arena_printf(w->arena, "\xff%s", json_to_str(w->arena, v).p);
}

static bool is_scalar(const struct json *v)
{
    return v && v->type != JSON_ARR && v->type != JSON_OBJ;
}

/* False, with the error, if the element has no merge key. */
static bool element_text(struct strategic *w, str key, const struct json *v, str *ret)
{
    const struct json *value = key.n ? json_get_str(v, key) : v;
    if (is_scalar(value)) {
        *ret = scalar_text(w, value);
        return true;
    }
    err_set(w->e, EBADMSG, "map: %s does not contain declared merge key: " STR_FMT,
            json_to_str(w->arena, v).p, STR_ARG(key));
    return false;
}

/* The first index of each text, as 1 + index. */
struct places {
    struct map at;
    bool broken; /* an element has no merge key; the error is set */
};

static void places_done(struct places *p)
{
    map_done(&p->at);
}
#define auto_places __attribute__((cleanup(places_done)))

static struct places places_of(struct strategic *w, str key, const struct json *list)
{
    struct places p = { 0 };
    for (size_t i = 0; i < json_len(list); i++) {
        str text;
        p.broken = p.broken || !element_text(w, key, list->items[i], &text);
        if (!p.broken && !map_get(&p.at, text))
            map_put(&p.at, text, (void *)(uintptr_t)(i + 1));
    }
    return p;
}

static size_t find_place(const struct places *p, str text)
{
    return (size_t)(uintptr_t)map_get(&p->at, text);
}

/* ---- order */

struct ranked {
    size_t rank, was;
    size_t server; /* 1 + index in the live list; 0: not in it */
    struct json *item;
};

static int compare_ranks(const void *a, const void *b)
{
    const struct ranked *x = a, *y = b;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    return x->was < y->was ? -1 : x->was > y->was;
}

/* Both runs keep their order. An element of the server precedes an element of the patch only if
 * both are in the live list in that order. */
static struct json *interleave(struct strategic *w, const struct ranked *server, size_t n_server,
                               const struct ranked *patch, size_t n_patch)
{
    struct json *out = json_new_arr(w->arena);
    for (size_t i = 0, j = 0; i < n_server || j < n_patch;) {
        bool from_server = j >= n_patch || (i < n_server && server[i].server && patch[j].server &&
                                            server[i].server < patch[j].server);
        json_push(w->arena, out, from_server ? server[i++].item : patch[j++].item);
    }
    return out;
}

/* Separates the list into the elements in `order` and the rest, sorts both, and interleaves
 * them. */
struct json *strategic_arrange(struct strategic *w, const struct strategic_field *field,
                               const struct json *list, const struct json *order,
                               const struct json *server)
{
    auto_places struct places ordered = places_of(w, field->key, order);
    auto_places struct places live = places_of(w, field->key, server);
    if (ordered.broken || live.broken)
        return NULL;
    struct ranked *patch_items = arena_array(w->arena, list->n, sizeof(*patch_items));
    struct ranked *server_items = arena_array(w->arena, list->n, sizeof(*server_items));
    size_t n_patch = 0, n_server = 0;
    for (size_t i = 0; i < list->n; i++) {
        str text;
        if (!element_text(w, field->key, list->items[i], &text))
            return NULL;
        size_t rank = find_place(&ordered, text), at = find_place(&live, text);
        struct ranked item = { rank ? rank : at, i, at, list->items[i] };
        if (rank)
            patch_items[n_patch++] = item;
        else
            server_items[n_server++] = item;
    }
    qsort(patch_items, n_patch, sizeof(*patch_items), compare_ranks);
    qsort(server_items, n_server, sizeof(*server_items), compare_ranks);
    return interleave(w, server_items, n_server, patch_items, n_patch);
}

static const char *directive_of(const struct json *element)
{
    const struct json *d = json_get(element, "$patch");
    return !d ? NULL : d->type == JSON_STR ? d->text : "";
}

int strategic_check_order(struct strategic *w, const struct strategic_field *field,
                          const struct json *patch, const struct json *order)
{
    size_t at = 0;
    for (size_t i = 0; i < patch->n && order->n; i++) {
        const char *directive = directive_of(patch->items[i]);
        str wanted = { 0 }, text;
        if (directive && (strcmp(directive, "delete") == 0 || at < order->n))
            continue;
        if (!directive && !element_text(w, field->key, patch->items[i], &wanted))
            return -w->e->code;
        bool found = false;
        for (; at < order->n && !found; at++) {
            if (!element_text(w, field->key, order->items[at], &text))
                return -w->e->code;
            found = str_eq(text, wanted);
        }
        if (!found)
            return err_set(w->e, EBADMSG,
                           "the order in the patch list " STR_FMT
                           " does not match its $setElementOrder list",
                           STR_ARG(field->name));
    }
    return 0;
}

/* ---- lists of scalars */

struct json *strategic_delete(struct strategic *w, struct json *live, const struct json *gone)
{
    struct strategic_field scalars = { 0 };
    auto_places struct places going = places_of(w, scalars.key, gone);
    struct json *kept = json_new_arr(w->arena);
    for (size_t i = 0; i < live->n; i++)
        if (!is_scalar(live->items[i]) || !find_place(&going, scalar_text(w, live->items[i])))
            json_push(w->arena, kept, live->items[i]);
    return kept;
}

static struct json *merge_scalars(struct strategic *w, const struct strategic_field *field,
                                  struct json *live, const struct json *patch)
{
    struct json *both = json_new_arr(w->arena);
    auto_map struct map seen = { 0 };
    for (size_t i = 0; i < live->n + patch->n; i++) {
        struct json *item = i < live->n ? live->items[i] : patch->items[i - live->n];
        if (!map_put(&seen, scalar_text(w, item), both))
            json_push(w->arena, both, json_copy(w->arena, item));
    }
    struct strategic_field scalars = *field;
    scalars.key = (str){ 0 };
    return strategic_arrange(w, &scalars, both, patch, live);
}

/* ---- lists of maps */

/* A patch, split into plain elements, keys to delete, and whether the list is replaced. */
struct split {
    struct json *plain;
    struct map gone; /* text to anything */
    bool replace;
};

/* Sorts one element of the patch into the split; false: an error. */
static bool split_one(struct strategic *w, str key, struct json *item, struct split *s)
{
    const char *directive = directive_of(item);
    str text;
    if (!directive) {
        json_push(w->arena, s->plain, item);
    } else if (strcmp(directive, "delete") == 0) {
        if (!element_text(w, key, item, &text))
            return false;
        map_put(&s->gone, text, s);
    } else if (strcmp(directive, "replace") == 0) {
        s->replace = true;
    } else if (strcmp(directive, "merge") == 0) {
        err_set(w->e, EBADMSG, "merging lists cannot yet be specified in the patch");
        return false;
    } else {
        err_set(w->e, EBADMSG, "unknown patch type: %s in map: %s, expected replace or delete",
                directive, json_to_str(w->arena, item).p);
        return false;
    }
    return true;
}

static struct json *remove_keys(struct strategic *w, str key, const struct json *list,
                                const struct map *gone)
{
    struct json *kept = json_new_arr(w->arena);
    for (size_t i = 0; i < list->n; i++) {
        const struct json *value = json_get_str(list->items[i], key);
        if (!is_scalar(value) || !map_get(gone, scalar_text(w, value)))
            json_push(w->arena, kept, list->items[i]);
    }
    return kept;
}

/* Merges the plain elements of the patch into the list and appends new ones. */
static struct json *merge_elements(struct strategic *w, const struct strategic_field *field,
                                   const struct json *live, const struct json *plain)
{
    struct json *merged = json_new_arr(w->arena);
    for (size_t i = 0; i < live->n; i++)
        json_push(w->arena, merged, live->items[i]);
    auto_places struct places at = places_of(w, field->key, live);
    if (at.broken)
        return NULL;
    for (size_t i = 0; i < plain->n; i++) {
        str text;
        if (!element_text(w, field->key, plain->items[i], &text))
            return NULL;
        size_t found = find_place(&at, text);
        if (!found) {
            json_push(w->arena, merged, strategic_as_is(w->arena, plain->items[i]));
            map_put(&at.at, text, (void *)(uintptr_t)merged->n);
        } else if (!(merged->items[found - 1] =
                         strategic_merge_map(w, field->element, merged->items[found - 1],
                                             plain->items[i]))) {
            return NULL;
        }
    }
    return merged;
}

static bool split_patch(struct strategic *w, str key, const struct json *patch, struct split *ret)
{
    *ret = (struct split){ .plain = json_new_arr(w->arena) };
    bool fine = true;
    for (size_t i = 0; i < json_len(patch) && fine; i++)
        fine = split_one(w, key, patch->items[i], ret);
    return fine;
}

/* A list of maps: split, delete, merge, arrange. */
static struct json *merge_maps(struct strategic *w, const struct strategic_field *field,
                               struct json *live, const struct json *patch)
{
    if (!field->key.n) {
        err_set(w->e, EBADMSG, "cannot merge lists without merge key for " STR_FMT,
                STR_ARG(field->name));
        return NULL;
    }
    struct split s;
    bool fine = split_patch(w, field->key, patch, &s);
    struct json *server = fine ? remove_keys(w, field->key, live, &s.gone) : NULL;
    map_done(&s.gone);
    if (!fine)
        return NULL;
    if (s.replace)
        return strategic_as_is(w->arena, s.plain);
    struct json *merged = merge_elements(w, field, server, s.plain);
    return merged ? strategic_arrange(w, field, merged, s.plain, server) : NULL;
}

/* Kubernetes' own list is reused while it merges: where elements were deleted, new ones take their
 * slots, and so count as standing at the end of the live list. */
struct json *strategic_server_order(struct strategic *w, const struct strategic_field *field,
                                    const struct json *live, const struct json *patch)
{
    struct json *order = live ? json_copy(w->arena, live) : json_new_arr(w->arena);
    if (!live || !field->merges || !field->key.n)
        return order;
    struct split s;
    bool fine = split_patch(w, field->key, patch, &s);
    if (fine)
        order = remove_keys(w, field->key, order, &s.gone);
    map_done(&s.gone);
    if (!fine)
        return NULL;
    auto_places struct places at = places_of(w, field->key, order);
    size_t slots = s.replace ? 0 : live->n - order->n;
    for (size_t i = 0; i < s.plain->n && slots > 0; i++) {
        str text;
        if (!element_text(w, field->key, s.plain->items[i], &text))
            return NULL;
        if (find_place(&at, text))
            continue;
        json_push(w->arena, order, s.plain->items[i]);
        map_put(&at.at, text, (void *)(uintptr_t)order->n);
        slots--;
    }
    return order;
}

/* All elements of both lists are maps, or all are scalars. */
static int list_of_maps(struct strategic *w, const struct strategic_field *field,
                        const struct json *live, const struct json *patch)
{
    size_t maps = 0;
    for (size_t i = 0; i < live->n + patch->n; i++) {
        const struct json *item = i < live->n ? live->items[i] : patch->items[i - live->n];
        if (item->type == JSON_ARR)
            return err_set(w->e, ENOTSUP, "lists of lists are not supported");
        maps += item->type == JSON_OBJ;
    }
    if (maps && maps != live->n + patch->n)
        return err_set(w->e, EBADMSG, "list element types are not identical in " STR_FMT,
                       STR_ARG(field->name));
    return maps > 0;
}

struct json *strategic_merge_list(struct strategic *w, const struct strategic_field *field,
                                  struct json *live, const struct json *patch)
{
    if (live->n + patch->n == 0)
        return live;
    int maps = list_of_maps(w, field, live, patch);
    if (maps < 0)
        return NULL;
    return maps ? merge_maps(w, field, live, patch) : merge_scalars(w, field, live, patch);
}
