/* The work queue of a controller: deduplication, delayed adds, and backoff. See workqueue.h.
 *
 *     add --> ready list --take--> working --finish--> ready if added meanwhile, else freed
 *               ^                     |    --finish_later--> later list: taken when nothing is ready
 *               |  due                | retry
 *             waiting heap <----------+
 *
 * A key is in exactly one of these states: ready (in the list), working (taken), waiting (in the heap), or idle
 * with failures that are not forgotten yet. A working key may also be waiting, or have `again` set. Keys in no
 * state are freed, so memory is proportional to the work, not to the cluster.
 *
 * Ownership: the queue owns its keys; a taken key is valid until workqueue_finish() or workqueue_retry(). */
#include "workqueue.h"

#include "../base/clock.h"
#include "../base/map.h"

static const int64_t backoff_first_ns = 5 * NS_PER_MS, backoff_most_ns = 1000 * NS_PER_S;
static const double retries_a_second = 10, retries_at_once = 100;

void workqueue_init(struct workqueue *q)
{
    *q = (struct workqueue){ .tokens = retries_at_once };
}

void workqueue_done(struct workqueue *q)
{
    heap_done(&q->waiting);
    for (size_t at = 0; at < q->keys.cap; at++)
        free(q->keys.slots[at]);
    set_done(&q->keys);
}

static bool same_key(const struct set_node *member, const void *wanted)
{
    const struct work_key *a = (const struct work_key *)member, *b = wanted;
    return str_eq(a->ns, b->ns) && str_eq(a->name, b->name);
}

/* Finds or creates the key. */
static struct work_key *get_key(struct workqueue *q, str ns, str name)
{
    uint32_t hash = set_hash(map_hash(ns) * 31 + map_hash(name));
    struct work_key wanted = { .ns = ns, .name = name };
    struct work_key *key = (struct work_key *)set_find(&q->keys, hash, same_key, &wanted);
    if (key)
        return key;
    key = mem_zero(1, sizeof(*key) + ns.n + name.n + 2);
    char *text = (char *)(key + 1);
    memcpy(text, ns.p, ns.n);
    memcpy(text + ns.n + 1, name.p, name.n);
    key->node.hash = hash;
    key->ns = (str){ text, ns.n };
    key->name = (str){ text + ns.n + 1, name.n };
    set_add(&q->keys, &key->node);
    return key;
}

/* Frees a key that is in no state; failures keep it, because they determine its next backoff. */
static void free_if_idle(struct workqueue *q, struct work_key *key)
{
    if (key->ready.in || key->working || key->due.place || key->failures)
        return;
    set_remove(&q->keys, &key->node);
    free(key);
}

/* Appends the key to the ready list; a delayed add is cancelled, since the key runs earlier than that. */
static void make_ready(struct workqueue *q, struct work_key *key, int64_t now_ns)
{
    heap_del(&q->waiting, &key->due);
    if (key->ready.in == &q->ready)
        return;
    list_remove(&key->ready);
    key->ready_ns = now_ns;
    list_append(&q->ready, &key->ready);
}

static void add_now(struct workqueue *q, struct work_key *key, int64_t now_ns)
{
    if (key->working)
        key->again = true;
    else
        make_ready(q, key, now_ns);
}

void workqueue_add(struct workqueue *q, str ns, str name, int64_t now_ns)
{
    q->adds++;
    add_now(q, get_key(q, ns, name), now_ns);
}

void workqueue_add_at(struct workqueue *q, str ns, str name, int64_t at_ns, int64_t now_ns)
{
    if (at_ns <= now_ns) {
        workqueue_add(q, ns, name, now_ns);
        return;
    }
    q->adds++;
    struct work_key *key = get_key(q, ns, name);
    if (key->ready.in != &q->ready && (!key->due.place || at_ns < key->due.key))
        heap_put(&q->waiting, &key->due, at_ns);
}

static struct work_key *take_first(struct list *from, int64_t now_ns)
{
    struct work_key *key = list_first(from, struct work_key, ready);
    if (!key)
        return NULL;
    list_remove(&key->ready);
    key->working = true;
    key->started_ns = now_ns;
    return key;
}

struct work_key *workqueue_take(struct workqueue *q, int64_t now_ns)
{
    for (struct heap_node *node; (node = heap_min(&q->waiting)) && node->key <= now_ns;) {
        heap_del(&q->waiting, node);
        add_now(q, container_of(node, struct work_key, due), now_ns);
    }
    return take_first(&q->ready, now_ns);
}

struct work_key *workqueue_take_later(struct workqueue *q, int64_t now_ns)
{
    return take_first(&q->later, now_ns);
}

/* What was added meanwhile is looked at then as well. */
void workqueue_finish_later(struct workqueue *q, struct work_key *key, int64_t now_ns)
{
    assert(key->working);
    key->working = key->again = false;
    key->failures = 0;
    key->ready_ns = now_ns;
    q->adds++;
    list_append(&q->later, &key->ready);
}

void workqueue_finish(struct workqueue *q, struct work_key *key, int64_t now_ns)
{
    assert(key->working);
    bool again = key->again;
    key->working = key->again = false;
    key->failures = 0;
    if (again)
        make_ready(q, key, now_ns);
    else
        free_if_idle(q, key);
}

/* Takes a token and returns how long to wait for it. The bucket may go into debt; the debt is the delay. */
static int64_t limit_delay_ns(struct workqueue *q, int64_t now_ns)
{
    q->tokens += (double)(now_ns - q->tokens_ns) / NS_PER_S * retries_a_second;
    q->tokens = MIN(q->tokens, retries_at_once);
    q->tokens_ns = now_ns;
    q->tokens -= 1;
    return q->tokens >= 0 ? 0 : (int64_t)(-q->tokens / retries_a_second * NS_PER_S);
}

int64_t workqueue_retry_within(struct workqueue *q, struct work_key *key, int64_t most_ns,
                               int64_t now_ns)
{
    assert(key->working);
    int64_t own = key->failures < 30 ? MIN(backoff_first_ns << key->failures, most_ns) : most_ns;
    int64_t shared = limit_delay_ns(q, now_ns), at = now_ns + MAX(own, shared);
    key->failures++;
    key->working = key->again = false;
    q->retries++;
    q->adds++;
    if (!key->due.place || at < key->due.key)
        heap_put(&q->waiting, &key->due, at);
    return at;
}

int64_t workqueue_retry(struct workqueue *q, struct work_key *key, int64_t now_ns)
{
    return workqueue_retry_within(q, key, backoff_most_ns, now_ns);
}

void workqueue_retry_now(struct workqueue *q, int64_t now_ns)
{
    struct work_key *key;
    for (size_t at = 0; (key = (struct work_key *)set_next(&q->keys, &at));) {
        if (key->failures && key->due.place)
            add_now(q, key, now_ns);
        key->failures = 0;
    }
    q->tokens = retries_at_once;
    q->tokens_ns = now_ns;
}

int64_t workqueue_wake(const struct workqueue *q, int64_t now_ns)
{
    struct heap_node *node = heap_min(&q->waiting);
    return q->ready.n || q->later.n ? now_ns : node ? node->key : INT64_MAX;
}
