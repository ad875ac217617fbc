/* What the engine knows about each variant now: see saturation_live.h.
 *
 * A process that leads has decided, and reads its own state. One that does not lead has only the objects: it shows
 * the replicas of their status, and everything that only the leader measures is unknown. */
#include "saturation_live.h"

#include "saturation_slo.h"
#include "saturation_state.h"

#include <math.h>

static int read_replicas(const struct json *status, const char *allocation)
{
    return (int)json_int(json_at(status, allocation, "numReplicas", NULL), -1);
}

/* The numbers that a leader wrote into the status. */
static void read_status(struct arena *a, struct saturation_live *v)
{
    struct json *status = NULL;
    if (v->status.n && json_parse(a, v->status, &status, NULL) < 0)
        return;
    v->current = read_replicas(status, "currentAlloc");
    v->desired = read_replicas(status, "desiredOptimizedAlloc");
}

static void read_slo(const struct sat_model *m, struct saturation_live *v)
{
    const struct sat_slo *slo = m ? m->slo : NULL;
    bool known = slo && slo->stepped_ns && saturation_slo_decides(m);
    v->demand = known ? slo->out.demand : NAN;
    v->need = known ? slo->out.need : NAN;
    v->have = known ? slo->out.have : NAN;
    v->attainment = known ? slo->ok : NAN;
}

static struct saturation_live describe_variant(const struct saturation *s, struct arena *a,
                                               const struct variant *v)
{
    const struct variant_record *r =
        v->scaler ? NULL : cache_get(s->variant_records, v->ns, v->name);
    const struct sat_view *view = &v->shown.view;
    struct saturation_live live = {
        .ns = v->ns,
        .name = v->name,
        .model = v->spec.model,
        .accelerator = v->accelerator,
        .kind = v->scaler ? str_c(v->scaler->kind) : S("VariantAutoscaling"),
        .target = v->spec.target_name,
        .decided = v->decided,
        .current = v->decided && view->has_current ? view->current : -1,
        .desired = v->decided && view->has_desired ? view->desired : -1,
        .pending = v->seen_current > v->seen_ready ? v->seen_current - v->seen_ready : 0,
        .cost = v->spec.cost,
        .kv = v->seen_reporting ? v->seen_kv : NAN,
        .waiting = v->seen_reporting ? v->seen_waiting : NAN,
        .asleep = v->model && v->model->sleep.asleep,
        .reason = v->shown.reason,
        .status = r ? r->status : S(""),
    };
    if (!v->decided)
        live.pending = -1;
    if (!v->decided)
        read_status(a, &live);
    read_slo(v->model, &live);
    return live;
}

void saturation_live_each(const void *state,
                          void (*fn)(void *context, const struct saturation_live *v), void *context)
{
    const struct saturation *s = state;
    auto_arena struct arena a = { 0 };
    for (struct map_slot *slot = NULL; (slot = map_next(&s->by_key, slot));) {
        struct arena_mark mark = arena_mark(&a);
        struct saturation_live live = describe_variant(s, &a, slot->value);
        fn(context, &live);
        arena_reset(&a, mark);
    }
}

bool saturation_live_find(const void *state, struct arena *a, str ns, str name,
                          struct saturation_live *ret)
{
    const struct variant *v = saturation_find(state, ns, name);
    if (v)
        *ret = describe_variant(state, a, v);
    return v;
}

struct saturation_feeds saturation_live_feeds(const void *state)
{
    const struct saturation *s = state;
    struct saturation_feeds feeds = { .prometheus = s->collector.prometheus != NULL };
    for (struct map_slot *slot = NULL; (slot = map_next(&s->models, slot));) {
        const struct sat_model *m = slot->value;
        feeds.models++;
        if (!m->feed.failure)
            continue;
        feeds.failing++;
        feeds.failure = str_c(m->feed.failure);
    }
    if (s->no_metrics) {
        feeds.failing = feeds.models;
        feeds.failure = str_c(s->no_metrics);
    }
    return feeds;
}
