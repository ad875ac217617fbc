#include "tap.h"

#include "base/buf.h"
#include "base/list.h"

struct word {
    char letter;
    struct list_item item;
};

/* Forwards and back again: "abc|cba". */
static void check(const struct list *l, const char *want)
{
    auto_buf struct buf seen = { 0 };
    size_t n = 0;
    list_each(struct word, w, l, item) {
        buf_putc(&seen, w->letter);
        OK(w->item.in == l);
        n++;
    }
    buf_putc(&seen, '|');
    for (const struct list_item *i = l->last; i; i = i->previous)
        buf_putc(&seen, container_of(i, struct word, item)->letter);
    EQ_STR(buf_str(&seen), str_c(want));
    EQ_INT((int64_t)l->n, (int64_t)n);
}

static void items_come_at_both_ends_and_leave_anywhere(void)
{
    struct list l = { 0 };
    struct word a = { .letter = 'a' }, b = { .letter = 'b' }, c = { .letter = 'c' };
    check(&l, "|");
    OK(!list_first(&l, struct word, item));
    list_append(&l, &b.item);
    check(&l, "b|b");
    list_append(&l, &c.item);
    list_prepend(&l, &a.item);
    check(&l, "abc|cba");
    OK(list_first(&l, struct word, item) == &a);
    list_remove(&b.item);
    check(&l, "ac|ca");
    list_insert(&l, &b.item, &c.item);
    check(&l, "abc|cba");
    list_remove(&b.item);
    list_insert(&l, &b.item, NULL);
    check(&l, "acb|bca");
    list_remove(&b.item);
    check(&l, "ac|ca");
    list_remove(&b.item); /* which is in none */
    check(&l, "ac|ca");
    list_remove(&a.item);
    check(&l, "c|c");
    list_append(&l, &a.item);
    list_remove(&a.item);
    check(&l, "c|c");
    list_remove(&c.item);
    check(&l, "|");
    OK(!a.item.in && !b.item.in && !c.item.in);
}

static void an_item_knows_which_list_it_is_in(void)
{
    struct list from = { 0 }, to = { 0 };
    struct word a = { .letter = 'a' }, b = { .letter = 'b' };
    list_append(&from, &a.item);
    list_append(&from, &b.item);
    list_move(&to, &a.item);
    check(&from, "b|b");
    check(&to, "a|a");
    list_remove(&a.item);
    check(&from, "b|b");
    check(&to, "|");
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(items_come_at_both_ends_and_leave_anywhere),
                                        TAP(an_item_knows_which_list_it_is_in),
                                        { 0 } });
}
