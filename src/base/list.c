/* Intrusive list: see list.h. */
#include "list.h"

void list_insert(struct list *l, struct list_item *item, struct list_item *before)
{
    assert(!item->in);
    *item = (struct list_item){ before, before ? before->previous : l->last, l };
    *(item->previous ? &item->previous->next : &l->first) = item;
    *(before ? &before->previous : &l->last) = item;
    l->n++;
}

void list_append(struct list *l, struct list_item *item)
{
    list_insert(l, item, NULL);
}

void list_prepend(struct list *l, struct list_item *item)
{
    list_insert(l, item, l->first);
}

void list_remove(struct list_item *item)
{
    struct list *l = item->in;
    if (!l)
        return;
    *(item->next ? &item->next->previous : &l->last) = item->previous;
    *(item->previous ? &item->previous->next : &l->first) = item->next;
    *item = (struct list_item){ 0 };
    l->n--;
}

void list_move(struct list *to, struct list_item *item)
{
    list_remove(item);
    list_append(to, item);
}
