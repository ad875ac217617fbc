/* Intrusive list: an item is embedded in its owner and knows its list, so removing it needs only
 * the item, and removing it twice has no effect. `{0}` is an empty list, and an item that is in no
 * list.
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
    struct list *in; /* NULL: in no list */
};

struct list {
    struct list_item *first, *last; /* NULL: empty */
    size_t n;
};

void list_append(struct list *l, struct list_item *item); /* must not be in a list */
void list_prepend(struct list *l, struct list_item *item);
/* Before another item of the list; NULL: at the end. */
void list_insert(struct list *l, struct list_item *item, struct list_item *before);
void list_remove(struct list_item *item);                /* from its list, if any */
void list_move(struct list *to, struct list_item *item); /* to the end of another list */

/* The owner of an item; NULL for a NULL item. */
#define list_owner(item, type, member) ((item) ? container_of(item, type, member) : NULL)
#define list_first(list, type, member) list_owner((list)->first, type, member)

/* The body must not remove the current owner. */
#define list_each(type, owner, list, member)                                                       \
    for (type *owner = list_first(list, type, member); (owner);                                    \
         (owner) = list_owner((owner)->member.next, type, member))

#endif
