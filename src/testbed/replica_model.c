/* See replica_model.h for the laws.
 *
 *     waiting (ring) --enter--> prefilling --first token--> decoding --last token--> ended
 *          ^                         |                         |
 *          +------- preempted -------+-------------------------+
 *
 * Seats form one list in order of entering (oldest .. youngest). Within it the prefilling ones come last, because
 * prefill is in order of entering: `first_prefilling` is where they begin.
 *
 * Invariant, which the unit test checks against a sum over all seats: used_blocks is the number of blocks
 * that hold the contexts of all seats, `attended` their sum over decoding seats, phase[] their histogram. */
#include "replica_model.h"

#include <math.h>

static const double ttft_bounds[] = { 0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1,
                                      0.25,  0.5,   0.75, 1,    2.5,  5,    7.5,  10,
                                      20,    40,    80,   160,  640,  2560 };
static const double tpot_bounds[] = { 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5,
                                      0.75, 1,     2.5,  5,     7.5, 10,   20,  40,  80 };
static const double token_bounds[] = { 1,    2,    5,    10,    20,    50,    100,    200,   500,
                                       1000, 2000, 5000, 10000, 20000, 50000, 100000, 200000 };
static const double e2e_bounds[] = { 0.3, 0.5, 0.8, 1,  1.5, 2,   2.5, 5,   10,   15,  20,
                                     30,  40,  50,  60, 120, 240, 480, 960, 1920, 7680 };
const struct replica_bounds replica_ttft_bounds = { ttft_bounds, countof(ttft_bounds) };
const struct replica_bounds replica_tpot_bounds = { tpot_bounds, countof(tpot_bounds) };
const struct replica_bounds replica_token_bounds = { token_bounds, countof(token_bounds) };
const struct replica_bounds replica_e2e_bounds = { e2e_bounds, countof(e2e_bounds) };

enum { NOBODY = -1 };

static void observe_value(struct replica_histogram *h, const struct replica_bounds *bounds,
                          double value, uint32_t times)
{
    size_t i = 0;
    while (i < bounds->n && value > bounds->at[i])
        i++;
    if (i < bounds->n)
        h->bucket[i] += times;
    h->sum += value * times;
    h->count += times;
}

/* ---- life */

int replica_profile_check(const struct replica_profile *p, err_t *e)
{
    const double times[] = { p->base_ms, p->per_seq_ms, p->per_prompt_token_ms,
                             p->per_cached_token_ms };
    for (size_t i = 0; i < countof(times); i++)
        if (!(times[i] >= 0 && times[i] <= 1e6))
            return err_set(e, EINVAL, "a time of the profile is %g ms, but must be 0 to 1e6",
                           times[i]);
    if (!(p->base_ms >=
          0.1)) /* a server that iterates more often than that would take ages to simulate */
        return err_set(e, EINVAL, "baseMs is %g, but must be 0.1 or more", p->base_ms);
    if (!(p->noise >= 0 && p->noise < 1))
        return err_set(e, EINVAL, "noise is %g, but must be 0 to 1", p->noise);
    if (p->block_tokens < 1 || p->block_tokens > REPLICA_PHASES_MAX)
        return err_set(e, EINVAL, "blockTokens is %d, but must be 1 to %d", p->block_tokens,
                       REPLICA_PHASES_MAX);
    if (p->kv_blocks < 2 || p->kv_blocks > INT32_MAX / p->block_tokens)
        return err_set(e, EINVAL, "kvBlocks is %d, but must be 2 to %d", p->kv_blocks,
                       INT32_MAX / p->block_tokens);
    if (p->max_seqs < 1 || p->max_seqs > 65536)
        return err_set(e, EINVAL, "maxSeqs is %d, but must be 1 to 65536", p->max_seqs);
    if (p->max_batched_tokens < 2 || p->max_batched_tokens > 1 << 24)
        return err_set(e, EINVAL, "maxBatchedTokens is %d, but must be 2 to %d",
                       p->max_batched_tokens, 1 << 24);
    return 0;
}

/* Every decoding sequence needs a token of the budget, and one is left for a prompt. */
static int32_t seats_of(const struct replica_profile *p)
{
    return MIN(p->max_seqs, p->max_batched_tokens - 1);
}

void replica_init(struct replica *r, const struct replica_profile *profile, int64_t now_ns,
                  uint64_t seed)
{
    *r = (struct replica){ .profile = *profile,
                           .now_ns = now_ns,
                           .oldest = NOBODY,
                           .youngest = NOBODY,
                           .first_prefilling = NOBODY };
    int32_t seats = seats_of(profile);
    random_init(&r->random, seed, 7);
    r->seats = mem_zero((size_t)seats, sizeof(*r->seats));
    r->free_seats = mem_zero((size_t)seats, sizeof(*r->free_seats));
    r->ends = mem_zero((size_t)seats, sizeof(*r->ends));
    while (r->free_n < seats) {
        r->free_seats[r->free_n] = seats - 1 - r->free_n;
        r->free_n++;
    }
}

void replica_done(struct replica *r)
{
    free(take(r->seats));
    free(take(r->free_seats));
    free(take(r->ends));
    free(take(r->waiting));
}

/* ---- who waits */

static void waiting_reserve(struct replica *r)
{
    if (r->waiting_n < r->waiting_cap)
        return;
    size_t cap = MAX(r->waiting_cap * 2, (size_t)16);
    struct replica_seq *more = mem_zero(cap, sizeof(*more));
    for (size_t i = 0; i < r->waiting_n; i++)
        more[i] = r->waiting[(r->waiting_first + i) & (r->waiting_cap - 1)];
    free(r->waiting);
    r->waiting = more;
    r->waiting_cap = cap;
    r->waiting_first = 0;
}

static struct replica_seq *waiting_at(struct replica *r, size_t i)
{
    return &r->waiting[(r->waiting_first + i) & (r->waiting_cap - 1)];
}

/* Tokens to compute before the next one: the prompt, and what a preemption threw away. */
static int32_t context_to_compute(const struct replica_seq *s)
{
    return s->request.prompt_tokens + s->generated;
}

static void wait_last(struct replica *r, const struct replica_seq *s)
{
    waiting_reserve(r);
    *waiting_at(r, r->waiting_n++) = *s;
    r->waiting_tokens += context_to_compute(s);
}

static void wait_first(struct replica *r, const struct replica_seq *s)
{
    waiting_reserve(r);
    r->waiting_first = (r->waiting_first - 1) & (r->waiting_cap - 1);
    r->waiting_n++;
    *waiting_at(r, 0) = *s;
    r->waiting_tokens += context_to_compute(s);
}

void replica_submit(struct replica *r, struct replica_request request)
{
    int32_t most = r->profile.kv_blocks * r->profile.block_tokens;
    request.prompt_tokens = MAX(1, MIN(request.prompt_tokens, most / 2));
    request.output_tokens = MAX(1, MIN(request.output_tokens, most - request.prompt_tokens));
    wait_last(r, &(struct replica_seq){ .request = request, .heap_at = NOBODY });
}

/* ---- the heap of decoding sequences by the iteration that ends them */

static void heap_place(struct replica *r, int32_t at, int32_t seat)
{
    r->ends[at] = seat;
    r->seats[seat].heap_at = at;
}

static bool ends_before(const struct replica *r, int32_t a, int32_t b)
{
    return r->seats[a].ends_at < r->seats[b].ends_at;
}

static void heap_up(struct replica *r, int32_t at)
{
    int32_t seat = r->ends[at];
    for (; at > 0 && ends_before(r, seat, r->ends[(at - 1) / 2]); at = (at - 1) / 2)
        heap_place(r, at, r->ends[(at - 1) / 2]);
    heap_place(r, at, seat);
}

/* Restores the order of the heap below `at`. */
static void heap_down(struct replica *r, int32_t at)
{
    int32_t seat = r->ends[at];
    for (;;) {
        int32_t child = 2 * at + 1;
        if (child >= r->decoding)
            break;
        if (child + 1 < r->decoding && ends_before(r, r->ends[child + 1], r->ends[child]))
            child++;
        if (!ends_before(r, r->ends[child], seat))
            break;
        heap_place(r, at, r->ends[child]);
        at = child;
    }
    heap_place(r, at, seat);
}

static void heap_remove(struct replica *r, int32_t seat)
{
    int32_t at = r->seats[seat].heap_at, last = r->ends[--r->decoding];
    r->seats[seat].heap_at = NOBODY;
    if (last == seat)
        return;
    heap_place(r, at, last);
    heap_up(r, at);
    heap_down(r, r->seats[last].heap_at);
}

/* ---- seats */

static int32_t blocks_for(const struct replica *r, int32_t tokens)
{
    return (tokens + r->profile.block_tokens - 1) / r->profile.block_tokens;
}

static int32_t context_of(const struct replica *r, const struct replica_seq *s) /* decoding */
{
    return s->joined_tokens + (int32_t)(r->iteration - s->joined_at);
}

/* Takes a seat out of the list of seats and gives it back. */
static void unlink_seat(struct replica *r, int32_t seat)
{
    const struct replica_seq *s = &r->seats[seat];
    if (s->older == NOBODY)
        r->oldest = s->younger;
    else
        r->seats[s->older].younger = s->younger;
    if (s->younger == NOBODY)
        r->youngest = s->older;
    else
        r->seats[s->younger].older = s->older;
    if (r->first_prefilling == seat)
        r->first_prefilling = s->younger;
    r->free_seats[r->free_n++] = seat;
}

/* Takes a decoding sequence out of all books but the list of seats. */
static void stop_decoding(struct replica *r, int32_t seat)
{
    struct replica_seq *s = &r->seats[seat];
    int32_t context = context_of(r, s);
    heap_remove(r, seat);
    r->phase[s->phase]--;
    r->attended -= (uint64_t)context;
    r->used_blocks -= blocks_for(r, context);
    s->generated += (int32_t)(r->iteration - s->joined_at);
}

static void preempt_youngest(struct replica *r)
{
    int32_t seat = r->youngest;
    struct replica_seq *s = &r->seats[seat];
    if (s->heap_at != NOBODY) {
        stop_decoding(r, seat);
    } else {
        r->prefilling--;
        r->used_blocks -= blocks_for(r, context_to_compute(s));
    }
    unlink_seat(r, seat);
    r->counters.preempted++;
    wait_first(r, s);
}

/* True when the head of the queue got a seat and blocks. */
static bool enter_next(struct replica *r)
{
    if (!r->waiting_n || !r->free_n)
        return false;
    struct replica_seq *next = waiting_at(r, 0);
    int32_t tokens = context_to_compute(next), blocks = blocks_for(r, tokens);
    if (r->used_blocks + blocks > r->profile.kv_blocks)
        return false;
    int32_t seat = r->free_seats[--r->free_n];
    struct replica_seq *s = &r->seats[seat];
    *s = *next;
    s->heap_at = NOBODY;
    s->unprefilled = tokens;
    s->older = r->youngest;
    s->younger = NOBODY;
    if (r->youngest == NOBODY)
        r->oldest = seat;
    else
        r->seats[r->youngest].younger = seat;
    r->youngest = seat;
    if (r->first_prefilling == NOBODY)
        r->first_prefilling = seat;
    r->prefilling++;
    r->used_blocks += blocks;
    r->waiting_tokens -= tokens;
    r->waiting_first = (r->waiting_first + 1) & (r->waiting_cap - 1);
    r->waiting_n--;
    return true;
}

/* ---- one iteration */

/* The decoding sequences whose next token begins a block. */
static int32_t *phase_at_boundary(struct replica *r)
{
    int32_t size = r->profile.block_tokens;
    return &r->phase[(size - (int32_t)(r->iteration % (uint64_t)size)) % size];
}

/* Gives every decoding sequence at a boundary its block; true when a sequence was preempted for it. */
static bool grow_caches(struct replica *r)
{
    const int32_t *more = phase_at_boundary(r);
    bool preempted = false;
    while (r->used_blocks + *more > r->profile.kv_blocks && r->oldest != r->youngest) {
        preempt_youngest(r);
        preempted = true;
    }
    r->used_blocks += *more;
    return preempted;
}

/* Spends the rest of the token budget on prompts; returns the tokens computed. */
static int32_t fill_batch(struct replica *r, bool may_enter)
{
    int32_t budget = r->profile.max_batched_tokens - r->decoding, computed = 0;
    int32_t seat = r->first_prefilling;
    r->completing = 0;
    while (computed < budget) {
        if (seat == NOBODY && may_enter && enter_next(r))
            seat = r->youngest;
        if (seat == NOBODY)
            break;
        struct replica_seq *s = &r->seats[seat];
        int32_t chunk = MIN(s->unprefilled, budget - computed);
        s->unprefilled -= chunk;
        computed += chunk;
        if (s->unprefilled)
            break; /* the budget is spent */
        r->completing++;
        seat = s->younger;
    }
    return computed;
}

/* Decides the batch of an iteration and, from law 1, how long it takes. */
static void begin_iteration(struct replica *r)
{
    const struct replica_profile *p = &r->profile;
    int32_t decoding = r->decoding;
    bool preempted = decoding && grow_caches(r);
    decoding = r->decoding;
    int32_t computed = fill_batch(r, !preempted);
    double ms = p->base_ms + p->per_seq_ms * decoding + p->per_prompt_token_ms * computed +
                p->per_cached_token_ms * (double)r->attended;
    if (p->noise > 0)
        ms *= 1 + p->noise * ((double)random_u32(&r->random) * 0x1p-31 - 1);
    r->took_ns = MAX((int64_t)(ms * 1e6), (int64_t)1);
    r->end_ns = r->now_ns + r->took_ns;
}

/* Observes the latencies of a finished request, reports it, and frees its seat. */
static void end_request(struct replica *r, int32_t seat)
{
    struct replica_counters *c = &r->counters;
    const struct replica_seq *s = &r->seats[seat];
    const struct replica_request *q = &s->request;
    c->succeeded++;
    observe_value(&c->e2e, &replica_e2e_bounds, (double)(r->now_ns - q->arrived_ns) / 1e9, 1);
    observe_value(&c->prompt, &replica_token_bounds, q->prompt_tokens, 1);
    observe_value(&c->generation, &replica_token_bounds, q->output_tokens, 1);
    if (q->output_tokens > 1)
        observe_value(&c->tpot, &replica_tpot_bounds,
                      (double)(r->now_ns - s->first_ns) / 1e9 / (q->output_tokens - 1), 1);
    if (r->ended)
        r->ended(r->context, &(struct replica_result){ *q, s->first_ns, r->now_ns });
    unlink_seat(r, seat);
}

/* A prefill has ended: a token, and the sequence decodes from now on. */
static void join_decoding(struct replica *r, int32_t seat)
{
    struct replica_seq *s = &r->seats[seat];
    int32_t context = context_to_compute(s), size = r->profile.block_tokens;
    r->first_prefilling = s->younger;
    r->prefilling--;
    s->generated++;
    r->counters.generation_tokens++;
    if (!s->first_ns) {
        s->first_ns = r->now_ns;
        r->counters.prompt_tokens += (uint64_t)s->request.prompt_tokens;
        observe_value(&r->counters.ttft, &replica_ttft_bounds,
                      (double)(r->now_ns - s->request.arrived_ns) / 1e9, 1);
    }
    if (s->generated >= s->request.output_tokens) {
        r->used_blocks -= blocks_for(r, context);
        end_request(r, seat);
        return;
    }
    s->joined_tokens = context;
    s->joined_at = r->iteration;
    s->ends_at = r->iteration + (uint64_t)(s->request.output_tokens - s->generated);
    s->phase = (context % size - (int32_t)(r->iteration % (uint64_t)size) + size) % size;
    r->phase[s->phase]++;
    r->attended += (uint64_t)context;
    r->ends[r->decoding] = seat;
    heap_up(r, r->decoding++);
}

/* Publishes the results of an iteration: tokens of the decoding, ends, and prefills that become decoding. */
static void end_iteration(struct replica *r)
{
    int32_t decoding = r->decoding;
    r->now_ns = r->end_ns;
    r->end_ns = 0;
    r->iteration++;
    r->attended += (uint64_t)decoding;
    r->counters.generation_tokens += (uint64_t)decoding;
    if (decoding)
        observe_value(&r->counters.itl, &replica_tpot_bounds, (double)r->took_ns / 1e9,
                      (uint32_t)decoding);
    while (r->decoding && r->seats[r->ends[0]].ends_at == r->iteration) {
        int32_t seat = r->ends[0];
        stop_decoding(r, seat);
        end_request(r, seat);
    }
    for (; r->completing; r->completing--)
        join_decoding(r, r->first_prefilling);
}

void replica_advance(struct replica *r, int64_t until_ns)
{
    for (;;) {
        if (r->end_ns) {
            if (r->end_ns > until_ns)
                return;
            end_iteration(r);
        } else if (r->now_ns >= until_ns) {
            return;
        }
        if (replica_is_idle(r))
            r->now_ns = MAX(r->now_ns, until_ns);
        else
            begin_iteration(r);
    }
}

/* ---- leaving */

void replica_give_back(struct replica *r,
                       void (*receive)(void *context, struct replica_request request),
                       void *context)
{
    size_t n = r->waiting_n, kept = 0;
    for (size_t i = 0; i < n; i++) {
        struct replica_seq s = *waiting_at(r, i);
        if (s.first_ns) {
            *waiting_at(r, kept++) = s;
            continue;
        }
        r->waiting_tokens -= context_to_compute(&s);
        receive(context, s.request);
    }
    r->waiting_n = kept;
}

void replica_evict(struct replica *r,
                   void (*receive)(void *context, struct replica_request request), void *context)
{
    for (int32_t seat = r->oldest; seat != NOBODY; seat = r->seats[seat].younger)
        receive(context, r->seats[seat].request);
    for (size_t i = 0; i < r->waiting_n; i++)
        receive(context, waiting_at(r, i)->request);
    struct replica old = *r;
    replica_init(r, &old.profile, old.now_ns, 0);
    r->random = old.random;
    r->counters = old.counters;
    r->ended = old.ended;
    r->context = old.context;
    replica_done(&old);
}
