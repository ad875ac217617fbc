/* The optimizer: see alloc_core.h.
 *
 * A candidate is one server on one accelerator. The queueing model (queue_core.c) gives the rate
 * that a replica sustains within the latency targets; the load divided by that rate is the number
 * of replicas. Candidates are sorted by value, the cost of the transition from the current
 * allocation.
 *
 * Without limits every server takes its best candidate. With limits servers choose by priority and,
 * within one priority, in the order of what they would lose by their second choice; a server that
 * finds no capacity left may get a part of what it needs, depending on the policy (alloc_greedy.c).
 *
 * Single precision and the order of operations are WVA's: the vectors in test/golden compare the
 * results. */
#include "alloc_core.h"

#include "alloc_greedy.h"

#include <math.h>

/* ---- lookups */

const struct alloc_accelerator *alloc_find_accelerator(const struct alloc_system *s, str name)
{
    for (size_t i = 0; i < s->accelerator_n; i++)
        if (str_eq(s->accelerators[i].name, name))
            return &s->accelerators[i];
    return NULL;
}

const struct alloc_profile *alloc_find_profile(const struct alloc_system *s, str model,
                                               str accelerator)
{
    for (size_t i = 0; i < s->profile_n; i++)
        if (str_eq(s->profiles[i].model, model) && str_eq(s->profiles[i].accelerator, accelerator))
            return &s->profiles[i];
    return NULL;
}

static const struct alloc_class *find_class(const struct alloc_system *s, str name)
{
    for (size_t i = 0; i < s->class_n; i++)
        if (str_eq(s->classes[i].name, name))
            return &s->classes[i];
    return NULL;
}

static const struct alloc_target *find_target(const struct alloc_class *class, str model)
{
    for (size_t i = 0; class && i < class->target_n; i++)
        if (str_eq(class->targets[i].model, model))
            return &class->targets[i];
    return NULL;
}

int alloc_priority(const struct alloc_system *s, const struct alloc_server *server)
{
    static const int lowest = 100;
    const struct alloc_class *class = find_class(s, server->service_class);
    return class && class->priority >= 1 && class->priority <= lowest ? class->priority : lowest;
}

/* ---- candidates */

static int accelerators_of(const struct alloc_profile *p)
{
    return MAX(p->accelerators, 1);
}

static int batch_size(const struct alloc_server *server, const struct alloc_profile *p)
{
    if (server->batch_max > 0)
        return server->batch_max;
    return server->output_tokens > 0 ? MAX(p->batch_max * p->at_tokens / server->output_tokens, 1)
                                     : p->batch_max;
}

/* The minimum of replicas, with the latencies of an idle server. */
static struct allocation allocate_without_load(const struct alloc_server *server,
                                               const struct alloc_profile *p)
{
    if (server->min_replicas == 0)
        return (struct allocation){ .accelerator = S("") };
    int batch = server->batch_max > 0 ? server->batch_max : p->batch_max;
    float decode = p->alpha + p->beta, prefill = p->gamma + p->delta;
    float full = prefill + p->alpha + p->beta * (float)batch;
    return (struct allocation){
        .accelerator = p->accelerator,
        .replicas = server->min_replicas,
        .batch_max = batch,
        .itl_ms = decode,
        .ttft_ms = prefill,
        .max_rate = (float)batch / full,
    };
}

/* As many replicas as the load needs at the highest rate within the targets, and the latencies that
 * result. */
static int allocate_for_load(const struct alloc_server *server, const struct alloc_profile *p,
                             bool compat, struct queue_targets slo, struct allocation *ret,
                             err_t *e)
{
    int batch = batch_size(server, p);
    struct queue_spec spec = {
        .batch_max = batch,
        .queue_max = batch * 10,
        .alpha = p->alpha,
        .beta = p->beta,
        .gamma = p->gamma,
        .delta = p->delta,
        .input_tokens = (float)server->input_tokens,
        .output_tokens = (float)server->output_tokens,
        .compat = compat,
    };
    struct queue_model model;
    int failed = queue_init(&model, &spec, e);
    if (failed)
        return failed;
    struct queue_size size;
    failed = queue_solve_size(&model, slo, &size, e);
    if (!failed) {
        float rate = size.metrics.throughput;
        float total = slo.tokens_per_s != 0 ? slo.tokens_per_s / spec.output_tokens
                                            : server->arrival_per_min / 60;
        int replicas = MAX((int)fminf(ceilf(total / rate), 1e9f), server->min_replicas);
        struct queue_metrics each;
        failed = queue_analyze(&model, total / (float)replicas, &each, e);
        if (!failed)
            *ret = (struct allocation){
                .accelerator = p->accelerator,
                .replicas = replicas,
                .batch_max = batch,
                .itl_ms = each.token_ms,
                .ttft_ms = each.wait_ms + each.prefill_ms,
                .max_rate = rate / 1000,
            };
    }
    queue_done(&model);
    return failed;
}

/* Cost of the change from the current allocation; changing the accelerator adds a penalty. */
static float transition_value(const struct allocation *from, const struct allocation *to)
{
    static const float change_penalty = 0.1f;
    float difference = to->cost - from->cost;
    if (str_eq(from->accelerator, to->accelerator))
        return from->replicas == to->replicas ? 0 : difference;
    return change_penalty * (from->cost + to->cost) + difference;
}

/* The allocation of one server on one accelerator; fails if its targets cannot be attained there. */
static int alloc_candidate(const struct alloc_system *system, const struct alloc_server *server,
                           const struct alloc_accelerator *acc, struct allocation *ret, err_t *e)
{
    const struct alloc_profile *profile = alloc_find_profile(system, server->model, acc->name);
    const struct alloc_target *target =
        find_target(find_class(system, server->service_class), server->model);
    if (!profile || !target)
        return err_set(e, ENOENT, "server " STR_FMT ": no %s for model " STR_FMT " on " STR_FMT,
                       STR_ARG(server->name),
                       profile ? "service class target" : "performance profile",
                       STR_ARG(server->model), STR_ARG(acc->name));
    struct allocation found;
    if (server->arrival_per_min == 0 || server->output_tokens == 0) {
        found = allocate_without_load(server, profile);
    } else {
        int failed = allocate_for_load(server, profile, system->compat, target->slo, &found, e);
        if (failed)
            return failed;
    }
    found.cost = acc->cost * (float)accelerators_of(profile) * (float)found.replicas;
    found.value = transition_value(&server->current, &found);
    *ret = found;
    return 0;
}

static int by_value(const void *a, const void *b)
{
    const struct allocation *x = a, *y = b;
    if (x->value != y->value)
        return x->value < y->value ? -1 : 1;
    return str_cmp(x->accelerator, y->accelerator);
}

static struct alloc_candidates find_candidates(struct arena *a, const struct alloc_system *s,
                                               const struct alloc_server *server)
{
    struct alloc_candidates c = { arena_array(a, s->accelerator_n, sizeof(*c.at)), 0 };
    bool keep = server->keep_accelerator && server->current.accelerator.n > 0;
    for (size_t i = 0; i < s->accelerator_n; i++) {
        const struct alloc_accelerator *acc = &s->accelerators[i];
        if (keep && !str_eq(acc->name, server->current.accelerator))
            continue;
        if (alloc_candidate(s, server, acc, &c.at[c.n], NULL) == 0)
            c.n++;
    }
    qsort(c.at, c.n, sizeof(*c.at), by_value);
    return c;
}

struct alloc_answer alloc_solve(struct arena *a, const struct alloc_system *s)
{
    struct alloc_answer answer = {
        arena_array(a, s->server_n, sizeof(*answer.candidates)),
        arena_array(a, s->server_n, sizeof(*answer.solution)),
        arena_array(a, s->server_n, sizeof(*answer.solved)),
    };
    for (size_t i = 0; i < s->server_n; i++) {
        answer.candidates[i] = find_candidates(a, s, &s->servers[i]);
        if (s->unlimited && answer.candidates[i].n) {
            answer.solution[i] = answer.candidates[i].at[0];
            answer.solved[i] = true;
        }
    }
    if (!s->unlimited)
        alloc_solve_limited(a, s, &answer);
    return answer;
}
