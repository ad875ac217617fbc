/* The limited solver of the optimizer: who gets accelerators when there are not enough. See
 * alloc_core.c.
 *
 * An entry is a server with its candidates. Entries wait in a queue sorted by priority, then by
 * what they lose with their next candidate, then by value. The first entry takes its candidate if
 * the capacity is there; otherwise it moves on to its next candidate and is inserted again. Entries
 * without a candidate left are served by the policy:
 *
 *     all ──► group (one priority, or everything) ──► serve_queue ──► solved
 *                                                         └─► left ──► serve_unserved (none, exhaustive, round robin)
 *
 * Every step either solves an entry or removes one of its candidates, so the solver ends. Queues
 * live in the arena. */
#include "alloc_greedy.h"

#include <float.h>

struct entry {
    size_t server;
    int priority;
    struct alloc_candidates candidates;
    size_t next; /* index of the candidate it would take now */
    float delta; /* additional cost of the candidate after it */
};

struct queue {
    struct entry *at;
    size_t n;
};

struct greedy {
    const struct alloc_system *system;
    struct alloc_answer *answer;
    int *available; /* by index into system->capacities */
};

static float delta_of(const struct entry *e)
{
    return e->next + 1 < e->candidates.n
               ? e->candidates.at[e->next + 1].value - e->candidates.at[e->next].value
               : FLT_MAX;
}

/* Negative: `a` is served first. */
static int compare_entries(const struct entry *a, const struct entry *b)
{
    if (a->priority != b->priority)
        return a->priority - b->priority;
    if (a->delta != b->delta)
        return a->delta > b->delta ? -1 : 1;
    float x = a->candidates.at[a->next].value, y = b->candidates.at[b->next].value;
    return x > y ? -1 : x < y;
}

/* Among equals a new entry goes last, and one that returns with its next candidate goes first, as
 * in WVA. */
static void insert_entry(struct queue *q, struct entry e, bool newcomer)
{
    size_t low = 0, high = q->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (compare_entries(&q->at[middle], &e) < (newcomer ? 1 : 0))
            low = middle + 1;
        else
            high = middle;
    }
    memmove(q->at + low + 1, q->at + low, (q->n - low) * sizeof(*q->at));
    q->at[low] = e;
    q->n++;
}

/* The free devices of the candidate's type, and how many a replica takes. NULL: it needs none, or
 * the type is unknown. */
static int *find_stock(struct greedy *g, const struct entry *e, const struct allocation *c,
                       int *ret_units)
{
    const struct alloc_accelerator *acc = alloc_find_accelerator(g->system, c->accelerator);
    const struct alloc_profile *p =
        acc ? alloc_find_profile(g->system, g->system->servers[e->server].model, acc->name) : NULL;
    if (!p)
        return NULL;
    *ret_units = MAX(p->accelerators, 1) * acc->multiplicity;
    for (size_t i = 0; i < g->system->capacity_n; i++)
        if (str_eq(g->system->capacities[i].type, acc->type))
            return &g->available[i];
    return NULL;
}

static void set_solution(struct greedy *g, const struct entry *e, struct allocation solution)
{
    g->answer->solution[e->server] = solution;
    g->answer->solved[e->server] = true;
}

/* Serves the queue; entries that find no capacity are appended to `left`. */
static void serve_queue(struct greedy *g, struct queue *q, struct queue *left)
{
    while (q->n) {
        struct entry e = q->at[0];
        memmove(q->at, q->at + 1, --q->n * sizeof(*q->at));
        const struct allocation *c = &e.candidates.at[e.next];
        int units = 0, *stock = find_stock(g, &e, c, &units);
        if (stock && *stock >= c->replicas * units) {
            *stock -= c->replicas * units;
            set_solution(g, &e, *c);
        } else if (++e.next < e.candidates.n) {
            e.delta = delta_of(&e);
            insert_entry(q, e, false);
        } else {
            left->at[left->n++] = e;
        }
    }
}

/* ---- best effort */

static void set_partial_solution(struct greedy *g, const struct entry *e,
                                 const struct allocation *c, int replicas)
{
    struct allocation part = *c;
    float share = (float)replicas / (float)c->replicas;
    part.replicas = replicas;
    part.cost *= share;
    part.value *= share;
    set_solution(g, e, part);
}

/* In order of priority, each entry takes as many replicas of its first candidate with capacity as
 * there is room for. */
static void serve_exhaustively(struct greedy *g, const struct queue *left)
{
    for (size_t i = 0; i < left->n; i++) {
        const struct entry *e = &left->at[i];
        for (size_t k = 0; k < e->candidates.n; k++) {
            const struct allocation *c = &e->candidates.at[k];
            int units = 0, *stock = find_stock(g, e, c, &units);
            int replicas = stock ? MIN(*stock / units, c->replicas) : 0;
            if (replicas <= 0)
                continue;
            *stock -= replicas * units;
            set_partial_solution(g, e, c, replicas);
            break;
        }
    }
}

struct ticket { /* a server that receives replicas one at a time */
    const struct allocation *candidate;
    int *stock;
    int units, replicas;
    bool over;
};

static void choose_candidate(struct greedy *g, const struct entry *e, struct ticket *t)
{
    for (size_t k = 0; k < e->candidates.n && !t->candidate; k++) {
        t->stock = find_stock(g, e, &e->candidates.at[k], &t->units);
        if (t->stock && *t->stock >= t->units)
            t->candidate = &e->candidates.at[k];
    }
}

/* Round robin: one replica each in turn for the entries [from, to), until nothing fits. */
static void serve_in_turns(struct greedy *g, const struct queue *left, size_t from, size_t to)
{
    auto_free struct ticket *tickets = mem_zero(to - from, sizeof(*tickets));
    for (size_t open = to - from; open;) {
        for (size_t i = 0; i < to - from; i++) {
            struct ticket *t = &tickets[i];
            if (t->over)
                continue;
            if (!t->candidate)
                choose_candidate(g, &left->at[from + i], t);
            if (t->candidate && *t->stock >= t->units && t->replicas < t->candidate->replicas) {
                *t->stock -= t->units;
                t->replicas++;
            } else {
                t->over = true;
                open--;
            }
        }
    }
    for (size_t i = 0; i < to - from; i++)
        if (tickets[i].candidate && tickets[i].replicas)
            set_partial_solution(g, &left->at[from + i], tickets[i].candidate, tickets[i].replicas);
}

/* Best effort for entries that could not be served in full. Empties `left`. */
static void serve_unserved(struct greedy *g, struct queue *left)
{
    switch (g->system->policy) {
    case ALLOC_NONE:
        break;
    case ALLOC_PRIORITY_EXHAUSTIVE:
        serve_exhaustively(g, left);
        break;
    case ALLOC_PRIORITY_ROUND_ROBIN:
        for (size_t from = 0, to; from < left->n; from = to) {
            for (to = from; to < left->n && left->at[to].priority == left->at[from].priority;)
                to++;
            serve_in_turns(g, left, from, to);
        }
        break;
    case ALLOC_ROUND_ROBIN:
        serve_in_turns(g, left, 0, left->n);
        break;
    }
    left->n = 0;
}

/* Moves the entries of the first priority in `all` to `group`; with `delayed`, everything. */
static void take_group(struct queue *all, struct queue *group, bool delayed)
{
    size_t n = 0;
    while (n < all->n && (delayed || all->at[n].priority == all->at[0].priority))
        n++;
    memcpy(group->at, all->at, n * sizeof(*all->at));
    group->n = n;
    memmove(all->at, all->at + n, (all->n - n) * sizeof(*all->at));
    all->n -= n;
}

void alloc_solve_limited(struct arena *a, const struct alloc_system *s, struct alloc_answer *answer)
{
    struct greedy g = { s, answer, arena_array(a, s->capacity_n, sizeof(int)) };
    for (size_t i = 0; i < s->capacity_n; i++)
        g.available[i] = s->capacities[i].count;
    struct queue all = { arena_array(a, s->server_n, sizeof(struct entry)), 0 };
    struct queue group = { arena_array(a, s->server_n, sizeof(struct entry)), 0 };
    struct queue left = { arena_array(a, s->server_n, sizeof(struct entry)), 0 };
    for (size_t i = 0; i < s->server_n; i++) {
        if (!answer->candidates[i].n)
            continue;
        struct entry e = { i, alloc_priority(s, &s->servers[i]), answer->candidates[i], 0, 0 };
        e.delta = delta_of(&e);
        insert_entry(&all, e, true);
    }
    while (all.n) {
        take_group(&all, &group, s->delayed_best_effort);
        serve_queue(&g, &group, &left);
        serve_unserved(&g, &left);
    }
}
