/* See intake_limits_core.h. */
#include "intake_limits_core.h"

enum {
    ITEMS_MAX = 1 << 20,     /* the largest clusters have 200,000 pods */
    UNREQUESTED_MAX = 10000, /* a server that ignores the selector of a small cluster is served */
    PAGES_MAX = 8192,
    EMPTY_PAGES_MAX = 64,  /* a selector may leave some pages without an object */
    BOOKMARKS_MAX = 10000, /* normally one per minute */
    VERSION_MAX = 1 << 10, /* bytes; it is a number in practice, and part of our next request */
    TOKEN_MAX = 16 << 10,  /* bytes of a continue token, likewise */
};
static const uint64_t bytes_max = UINT64_C(4) << 30; /* 200,000 pods are about 1 GiB */

int intake_limit_bytes(struct intake_limits *l, size_t bytes, err_t *e)
{
    l->bytes += bytes;
    return l->is_watch || l->bytes <= bytes_max
               ? 0
               : err_set(e, E2BIG, "list is larger than 4 GiB; not cached");
}

int intake_limit_item(struct intake_limits *l, bool is_requested, err_t *e)
{
    uint64_t most = l->items_max ? l->items_max : ITEMS_MAX;
    if (!l->is_watch && ++l->items > most)
        return err_set(e, E2BIG, "list has more than %llu objects; not cached",
                       (unsigned long long)most);
    if (!is_requested && ++l->unrequested > UNREQUESTED_MAX)
        return err_set(e, EPROTO, "server sends objects that were not requested, without end");
    return 0;
}

int intake_limit_bookmark(struct intake_limits *l, err_t *e)
{
    return ++l->bookmarks > BOOKMARKS_MAX ? err_set(e, EPROTO, "watch sends bookmarks without end")
                                          : 0;
}

int intake_limit_version(str rv, err_t *e)
{
    return rv.n > VERSION_MAX
               ? err_set(e, EMSGSIZE, "resourceVersion of %zu bytes exceeds the limit", rv.n)
               : 0;
}

int intake_limit_page(struct intake_limits *l, bool has_items, str token, str before, err_t *e)
{
    l->no_items = has_items ? 0 : l->no_items + 1;
    if (token.n > TOKEN_MAX)
        return err_set(e, EMSGSIZE, "continue token of %zu bytes exceeds the limit", token.n);
    if (token.n && str_eq(token, before))
        return err_set(e, EPROTO, "the list never ends: the server repeats its continue token");
    if (token.n && (++l->pages > PAGES_MAX || l->no_items > EMPTY_PAGES_MAX))
        return err_set(e, E2BIG, "the list never ends: %d pages, %d of the last without an object",
                       l->pages, l->no_items);
    return 0;
}

uint64_t intake_wasted(const struct intake_limits *l)
{
    return !l->is_watch || l->unrequested > UNREQUESTED_MAX ? l->bytes : 0;
}
