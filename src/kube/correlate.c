/* See correlate.h. One table holds three kinds of fact, distinguished by the first letter of the key:
 *
 *   o   object: its token bucket against spam
 *   a   all but the message: the messages seen lately, to combine similar events
 *   e   one event: its count, first time and name
 *
 * Facts are also in a list by last use, and the oldest is deleted when the table is full. */
#include "correlate.h"

#include "../base/buf.h"
#include "../base/clock.h"

enum { FACTS_MAX = 3 * 1024, BURST = 25, ALIKE_MAX = 10 };

static const int64_t refill_ns = 300 * NS_PER_S, alike_ns = 600 * NS_PER_S;

struct correlate_fact {
    struct correlate_fact *newer, *older;
    str key;         /* stored behind the struct */
    double tokens;   /* object: events it may still emit */
    int64_t seen_ns; /* object: when the tokens were counted; alike, event: last seen */
    uint64_t messages[ALIKE_MAX]; /* alike: hashes of those seen since first_ns */
    size_t n_messages;
    int64_t first_ns, count;
    char name[CORRELATE_NAME_MAX];
};

static void unlink_fact(struct correlate *c, struct correlate_fact *f)
{
    *(f->newer ? &f->newer->older : &c->newest) = f->older;
    *(f->older ? &f->older->newer : &c->oldest) = f->newer;
}

static void push_fact(struct correlate *c, struct correlate_fact *f)
{
    f->newer = NULL;
    f->older = c->newest;
    *(c->newest ? &c->newest->newer : &c->oldest) = f;
    c->newest = f;
}

static void delete_fact(struct correlate *c, struct correlate_fact *f)
{
    unlink_fact(c, f);
    map_del(&c->facts, f->key);
    free(f);
}

void correlate_done(struct correlate *c)
{
    while (c->newest)
        delete_fact(c, c->newest);
    map_done(&c->facts);
}

/* Finds or creates the fact and makes it the newest. */
static struct correlate_fact *get_fact(struct correlate *c, char kind, str a, str b)
{
    auto_buf struct buf key = { 0 };
    buf_putc(&key, kind);
    buf_put(&key, a);
    buf_putc(&key, '\0');
    buf_put(&key, b);
    struct correlate_fact *f = map_get(&c->facts, buf_str(&key));
    if (f) {
        unlink_fact(c, f);
        push_fact(c, f);
        return f;
    }
    if (c->facts.n >= FACTS_MAX)
        delete_fact(c, c->oldest);
    f = mem_zero(1, sizeof(*f) + key.n);
    memcpy(f + 1, key.p, key.n);
    f->key = (str){ (char *)(f + 1), key.n };
    map_put(&c->facts, f->key, f);
    push_fact(c, f);
    return f;
}

/* Takes a token of the object's bucket. True: there was none, drop the event. */
static bool is_spam(struct correlate_fact *object, int64_t now_ns)
{
    if (!object->seen_ns)
        object->tokens = BURST;
    else
        object->tokens += (double)(now_ns - object->seen_ns) / (double)refill_ns;
    object->tokens = MIN(object->tokens, (double)BURST);
    object->seen_ns = now_ns;
    if (object->tokens < 1)
        return true;
    object->tokens -= 1;
    return false;
}

/* Has this kind of event had more than ALIKE_MAX different messages lately? */
static bool is_combined(struct correlate_fact *alike, str message, int64_t now_ns)
{
    uint64_t hash = map_hash(message);
    if (now_ns - alike->seen_ns > alike_ns)
        alike->n_messages = 0;
    alike->seen_ns = now_ns;
    for (size_t i = 0; i < alike->n_messages; i++)
        if (alike->messages[i] == hash)
            return false;
    if (alike->n_messages == ALIKE_MAX)
        return true;
    alike->messages[alike->n_messages++] = hash;
    return false;
}

struct correlated correlate(struct correlate *c, const struct correlate_in *in, int64_t now_ns)
{
    struct correlated out = { 0 };
    out.combined = is_combined(get_fact(c, 'a', in->alike, S("")), in->message, now_ns);
    out.drop = is_spam(get_fact(c, 'o', in->object, S("")), now_ns);
    if (out.drop)
        return out;
    struct correlate_fact *event = get_fact(c, 'e', in->alike, out.combined ? S("") : in->message);
    if (!event->count)
        event->first_ns = now_ns;
    out.count = ++event->count;
    out.first_ns = event->first_ns;
    out.name = event->name;
    return out;
}
