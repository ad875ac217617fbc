/* How much one list or watch may send: no real cluster is near these limits; they end responses that never would. Pure.
 *
 *     struct intake_limits l = { .items_max = 0 };       // at the start of each list or watch
 *     if (intake_limit_bytes(&l, piece.n, e) < 0) ...    // for every piece, every object, every page
 *
 * Each function counts, and fails when the count is above its limit. */
#ifndef FLYBALL_KUBE_INTAKE_LIMITS_CORE_H
#define FLYBALL_KUBE_INTAKE_LIMITS_CORE_H

#include "../base/err.h"
#include "../base/str.h"

struct intake_limits {
    bool is_watch;       /* past its initial events: it may go on for ever */
    uint64_t items_max;  /* of a list; 0: 1,048,576 */
    uint64_t items;      /* of the list, all pages */
    uint64_t bytes;      /* likewise; of a watch too */
    int unrequested;     /* objects that the selector excludes */
    int pages, no_items; /* of this list; in a row without an object */
    int bookmarks;       /* in a row */
};

int intake_limit_bytes(struct intake_limits *l, size_t bytes, err_t *e);
int intake_limit_item(struct intake_limits *l, bool is_requested, err_t *e);
int intake_limit_bookmark(struct intake_limits *l, err_t *e);
int intake_limit_version(str rv, err_t *e);
/* The end of a page. `token` is that of the next one, `before` the one that requested this page. */
int intake_limit_page(struct intake_limits *l, bool has_items, str token, str before, err_t *e);
/* The bytes that were read without effect, if it fails now: those of a list, or of a server that ignores the selector. */
uint64_t intake_wasted(const struct intake_limits *l);

#endif
