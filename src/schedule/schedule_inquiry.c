/* Asking Prometheus for a schedule's history, and applying what was learned from it.
 *
 * An inquiry outlives the turn that began it: queries take seconds, and a key must not be held that
 * long. It looks for demand where it is least distorted first and goes on to the next signal when one
 * has no data. Whatever goes wrong, what is published and applied stays. */
#include "../base/log.h"
#include "../base/rfc3339.h"
#include "../base/vec.h"
#include "../prom/query.h"
#include "schedule_advice.h"
#include "schedule_turn.h"

enum { STEP_S = 300, CHUNK_S = 30 * 86400, RETRY_S = 300, SAMPLES_MAX = 4 << 20 };

struct schedule_inquiry {
    struct scheduler *state;
    struct schedule_inquiry *next; /* of the state's open ones */
    struct arena arena;            /* owns the texts below */
    str ns, name, uid, hpa_ns, hpa_name;
    struct schedule_advice advice;
    enum schedule_signal signal;
    int64_t from, to, chunk; /* seconds; `chunk` begins the part being asked for */
    VEC(struct schedule_sample) samples;
    struct prom_call *call;
};

static void ask(struct schedule_inquiry *q);

static void inquiry_free(struct schedule_inquiry *q)
{
    struct schedule_inquiry **at = &q->state->inquiries;
    while (*at != q)
        at = &(*at)->next;
    *at = q->next;
    vec_done(&q->samples);
    arena_done(&q->arena);
    free(q);
}

void schedule_inquiries_free(struct scheduler *s)
{
    while (s->inquiries) {
        prom_call_cancel(s->inquiries->call);
        inquiry_free(s->inquiries);
    }
}

static void tell(const struct schedule_inquiry *q, bool warning, const char *reason, str message)
{
    events_emit(manager_events(q->state->manager), &(struct event){ .resource = &schedule_resource,
                                                                    .ns = q->ns,
                                                                    .name = q->name,
                                                                    .uid = q->uid,
                                                                    .warning = warning,
                                                                    .reason = reason,
                                                                    .message = message });
}

/* ---- the end of an inquiry */

static void give_up(struct schedule_inquiry *q, const char *reason, str message)
{
    struct schedule_tracked *tracked = schedule_targets_find(&q->state->targets, q->ns, q->name);
    if (tracked) {
        tracked->inquiring = false;
        tell(q, true, reason, message);
        log_warn("no recommendation", KV("namespace", q->ns), KV("name", q->name),
                 KV_C("reason", reason), KV("why", message));
    }
    inquiry_free(q);
}

static void keep(char **place, struct arena *a, const struct json *tree)
{
    str text = json_to_str(a, tree);
    free(*place);
    *place = mem_dup(text.p, text.n);
}

static void conclude(struct schedule_inquiry *q)
{
    struct scheduler *s = q->state;
    struct schedule_history history = { q->samples.at, q->samples.n, q->signal, q->to };
    struct schedule_advised advised = schedule_advise(&q->arena, &q->advice, &history);
    struct schedule_tracked *tracked = schedule_targets_find(&s->targets, q->ns, q->name);
    if (advised.reason || !tracked) {
        give_up(q, advised.reason ? advised.reason : "Gone", advised.message);
        return;
    }
    tracked->inquiring = false;
    keep(&tracked->advice, &q->arena, advised.status);
    if (q->advice.apply && advised.good_enough)
        keep(&tracked->learned, &q->arena, advised.triggers);
    else if (q->advice.apply)
        log_info("the recommendation is published but not applied: its backtest is not good enough",
                 KV("namespace", q->ns), KV("name", q->name));
    if (advised.under >= 0)
        metric_set(METRIC(s->metrics.advice_under, q->ns, q->name), advised.under);
    controller_add(s->controller, q->ns, q->name);
    inquiry_free(q);
}

/* ---- asking */

/* The next part of the history, the next signal, or the end. */
static void go_on(struct schedule_inquiry *q)
{
    q->chunk += CHUNK_S;
    if (q->chunk >= q->to && q->samples.n == 0 && q->signal + 1 < SCHEDULE_SIGNAL_N) {
        q->signal++;
        q->chunk = q->from;
    }
    if (q->chunk < q->to)
        ask(q);
    else
        conclude(q);
}

static void answered(void *context, const struct prom_result *result, const err_t *failure)
{
    struct schedule_inquiry *q = context;
    q->call = NULL;
    if (failure) {
        give_up(q, "PrometheusUnavailable", str_c(failure->text));
        return;
    }
    for (size_t i = 0; i < result->n; i++)
        for (size_t k = 0; k < result->series[i].sample_n && q->samples.n < SAMPLES_MAX; k++)
            vec_push(&q->samples,
                     ((struct schedule_sample){ result->series[i].samples[k].time_ms / 1000,
                                                result->series[i].samples[k].value }));
    go_on(q);
}

static void ask(struct schedule_inquiry *q)
{
    str promql = schedule_signal_query(&q->arena, q->signal, &q->advice, q->hpa_ns, q->hpa_name);
    if (!promql.n) { /* only the user's own query can be missing */
        q->signal++;
        ask(q);
        return;
    }
    int64_t end = MIN(q->chunk + CHUNK_S - STEP_S, q->to);
    q->call =
        prom_client_query(q->state->prometheus, &(struct prom_query){ .promql = promql,
                                                                      .start_ms = q->chunk * 1000,
                                                                      .end_ms = end * 1000,
                                                                      .step_ms = STEP_S * 1000,
                                                                      .on_done = answered,
                                                                      .context = q });
}

static void begin(const struct schedule_turn *turn)
{
    struct scheduler *s = turn->state;
    const struct schedule_object *o = &turn->pass.object;
    struct schedule_inquiry *q = mem_zero(1, sizeof(*q));
    q->state = s;
    q->next = s->inquiries;
    s->inquiries = q;
    q->ns = arena_str(&q->arena, o->ns);
    q->name = arena_str(&q->arena, o->name);
    q->uid = arena_str(&q->arena, o->uid);
    q->hpa_ns = arena_str(&q->arena, turn->target.ns);
    q->hpa_name = arena_str(&q->arena, turn->target.name);
    q->advice = o->spec->advice;
    q->advice.query = arena_str(&q->arena, turn->query);
    q->to = turn->pass.now / STEP_S * STEP_S; /* aligned: the same history gives the same answer */
    q->from = q->to - q->advice.lookback_days * INT64_C(86400);
    q->chunk = q->from;
    turn->tracked->inquiring = true;
    ask(q);
}

/* ---- in a turn */

static void learned_applied(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = schedule_turn_of(r);
    if (!turn)
        return;
    if (reply->reason == KUBE_CONFLICT) { /* it was edited meanwhile: the next pass merges again */
        reconcile_again(r, NS_PER_S);
        return;
    }
    free(take(turn->tracked->learned));
    bool failed = reply->failure != NULL;
    str message = failed ? str_c(reply->failure)
                         : arena_printf(r->arena, "triggers named ai-... were written from the "
                                                  "history in Prometheus");
    schedule_turn_event(turn,
                        &(struct schedule_event){
                            failed, failed ? "AISchedulerFailed" : "AISchedulerUpdated", message });
}

/* Server-side apply of the whole list: it is one value to the API server, because triggers need not
 * have names. The version keeps an edit that we have not seen from being lost. */
static void apply_learned(struct reconcile *r, struct schedule_turn *turn)
{
    struct scheduler *s = turn->state;
    const struct schedule_record *record = cache_get(s->schedules, r->ns, r->name);
    struct json *learned = NULL, *spec = NULL;
    if (!record || json_parse(r->arena, str_c(turn->tracked->learned), &learned, NULL) < 0 ||
        json_parse(r->arena, record->spec, &spec, NULL) < 0)
        return;
    struct json *triggers = schedule_advice_merge(r->arena, json_get(spec, "triggers"), learned);
    if (!triggers) {
        free(take(turn->tracked->learned));
        return;
    }
    struct json *body = json_new_obj(r->arena);
    json_set_str(r->arena, body, "apiVersion", S("autoscaling.sarabala.io/v1alpha1"));
    json_set_str(r->arena, body, "kind", S("SmartHorizontalPodAutoscaler"));
    struct json *metadata = json_make(r->arena, body, "metadata", NULL);
    json_set_str(r->arena, metadata, "name", r->name);
    json_set_str(r->arena, metadata, "namespace", r->ns);
    json_set_str(r->arena, metadata, "resourceVersion", record->meta.rv);
    json_set(r->arena, json_make(r->arena, body, "spec", NULL), S("triggers"), triggers);
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_APPLY,
                                           .resource = &schedule_resource,
                                           .ns = r->ns,
                                           .name = r->name,
                                           .field_manager = S(SCHEDULE_ADVICE_MANAGER),
                                           .body = json_to_str(r->arena, body) },
                   learned_applied);
}

static int64_t computed_at(const struct schedule_turn *turn)
{
    int64_t at = 0;
    const struct json *old = json_get(turn->pass.object.status, "recommendation");
    rfc3339_parse(json_text(json_get(old, "computedAt")), &at, NULL);
    return at;
}

void schedule_turn_advise(struct reconcile *r, struct schedule_turn *turn)
{
    const struct schedule_advice *advice = &turn->pass.object.spec->advice;
    struct schedule_tracked *tracked = turn->tracked;
    int64_t now = turn->pass.now, computed = computed_at(turn);
    if (computed)
        metric_set(METRIC(turn->state->metrics.advice_age, r->ns, r->name),
                   (double)(now - computed));
    if (!advice->enabled || !turn->target.name.n || turn->pass.query_problem.n)
        return;
    if (turn->pass.refused
            .n) { /* what was learned about the target while it might be governed is dropped */
        free(take(tracked->advice));
        free(take(tracked->learned));
        return;
    }
    if (tracked->learned && advice->apply)
        apply_learned(r, turn);
    if (tracked->inquiring || tracked->advice)
        return;
    int64_t due =
        MAX(computed + advice->frequency_minutes * INT64_C(60), tracked->advised + RETRY_S);
    if (now < due) {
        reconcile_again(r, (due - now) * NS_PER_S);
        return;
    }
    tracked->advised = now;
    if (turn->state->prometheus)
        begin(turn);
    else
        schedule_turn_event(
            turn,
            &(struct schedule_event){
                true, "PrometheusUnavailable",
                S("smartRecommendation needs a history, but --smarthpa-prometheus-url is not set") });
}
