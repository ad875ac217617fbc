/* Intrusive list: an item lives inside its owner and knows its list, so that leaving takes nothing else and
 * leaving twice is harmless. `{0}` is an empty list, and an item in none.
 *
 *     list_append(&client->queue, &call->queued);
 *     list_each(struct call, c, &client->queue, queued)
 *         ...
 *     list_remove(&call->queued);
 */
#ifndef FLYBALL_LIST_H
#define FLYBALL_LIST_H

#include "base.h"

struct list_item {
    struct list_item *next, *previous;
    struct list *in; /* NULL: in none */
};

struct list {
    struct list_item *first, *last; /* NULL: it is empty */
    size_t n;
};

void list_append(struct list *l, struct list_item *item); /* which is in none */
void list_prepend(struct list *l, struct list_item *item);
void list_remove(struct list_item *item);                /* out of whichever it is in */
void list_move(struct list *to, struct list_item *item); /* out of that, and to the end there */

/* The owner of an item, or of none: NULL. */
#define list_owner(item, type, member) ((item) ? container_of(item, type, member) : NULL)
#define list_first(list, type, member) list_owner((list)->first, type, member)

/* The body may not take the owner out. */
#define list_each(type, owner, list, member)                                                       \
    for (type *owner = list_first(list, type, member); (owner);                                    \
         (owner) = list_owner((owner)->member.next, type, member))

#endif
