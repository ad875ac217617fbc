/* Querying Prometheus for a schedule's history, and applying what was learned from it.
 *
 * A query outlives the turn that started it: it takes seconds, and a key must not be blocked that long. It tries the
 * signals in order, the least distorted first, and continues with the next one when a signal has no data. A query of the
 * user is the only signal:
 *
 *     start_query -> send_query -> on_answer -> query_next_chunk --+-> publish_result
 *                        ^_______ next 30 days or next signal _____|
 *
 * The result is stored with the schedule, which is enqueued again: the next pass publishes it in the status
 * and, with mode Apply, writes the triggers. If anything fails, what is published and applied stays.
 *
 * A query owns its arena; scheduler.queries lists all, so that stopping the feature can cancel them. */
#include "../base/log.h"
#include "../base/rfc3339.h"
#include "../base/vec.h"
#include "../prom/query.h"
#include "schedule_signal.h"
#include "schedule_turn.h"

enum { STEP_S = 300, CHUNK_S = 30 * 86400, RETRY_S = 300, SAMPLES_MAX = 4 << 20 };

struct schedule_query {
    struct scheduler *state;
    struct list_item item; /* of scheduler.queries */
    struct arena arena;    /* holds the texts below */
    str ns, name, uid, hpa_ns, hpa_name;
    struct schedule_advice advice;
    enum schedule_signal signal;
    int64_t from, to, chunk; /* seconds; `chunk` is the start of the part being queried */
    VEC(struct schedule_sample) samples;
    struct prom_call *call;
};

static void send_query(struct schedule_query *q);

static void query_free(struct schedule_query *q)
{
    list_remove(&q->item);
    vec_done(&q->samples);
    arena_done(&q->arena);
    free(q);
}

void schedule_queries_free(struct scheduler *s)
{
    for (struct schedule_query *q; (q = list_first(&s->queries, struct schedule_query, item));) {
        prom_call_cancel(q->call);
        query_free(q);
    }
}

static void emit_event(const struct schedule_query *q, bool warning, const char *reason,
                       str message)
{
    events_emit(manager_events(q->state->manager),
                &(struct kube_event){ .resource = &schedule_resource,
                                      .ns = q->ns,
                                      .name = q->name,
                                      .uid = q->uid,
                                      .warning = warning,
                                      .reason = reason,
                                      .message = message });
}

/* ---- results */

static void abort_query(struct schedule_query *q, const char *reason, str message)
{
    struct schedule_tracked *tracked = schedule_targets_find(&q->state->targets, q->ns, q->name);
    if (tracked) {
        tracked->query_in_flight = false;
        tracked->advice_reason = reason;
        free(tracked->advice_problem);
        tracked->advice_problem = mem_dup(message.p, message.n);
        controller_add(q->state->controller, q->ns, q->name); /* the condition Forecast */
        emit_event(q, true, reason, message);
        log_warn("recommendation failed", KV("namespace", q->ns), KV("name", q->name),
                 KV_C("reason", reason), KV("why", message));
    }
    query_free(q);
}

static void replace_json(char **place, struct arena *a, const struct json *tree)
{
    str text = json_to_str(a, tree);
    free(*place);
    *place = mem_dup(text.p, text.n);
}

/* Learns from the samples and stores the result for the next pass. Ends the query. */
static void publish_result(struct schedule_query *q)
{
    struct scheduler *s = q->state;
    struct schedule_history history = { q->samples.at, q->samples.n, q->signal, q->to, q->from };
    struct schedule_advice_result advised = schedule_advise(&q->arena, &q->advice, &history);
    struct schedule_tracked *tracked = schedule_targets_find(&s->targets, q->ns, q->name);
    if (advised.reason || !tracked) {
        abort_query(q, advised.reason ? advised.reason : "Gone", advised.message);
        return;
    }
    tracked->query_in_flight = false;
    tracked->advice_reason = NULL;
    free(take(tracked->advice_problem));
    replace_json(&tracked->advice, &q->arena, advised.status);
    if (q->advice.apply && advised.good_enough) {
        json_set_bool(&q->arena, advised.status, "applied", true);
        replace_json(&tracked->advice, &q->arena, advised.status);
        replace_json(&tracked->learned, &q->arena, advised.triggers);
    }
    if (q->advice.apply && !advised.good_enough)
        log_info("recommendation published but not applied: the backtest is below the threshold",
                 KV("namespace", q->ns), KV("name", q->name));
    if (advised.under >= 0)
        metric_set(METRIC(s->metrics.advice_under, q->ns, q->name), advised.under);
    controller_add(s->controller, q->ns, q->name);
    query_free(q);
}

/* ---- queries */

/* Continues with the next part of the history or the next signal, or ends the query. */
static void query_next_chunk(struct schedule_query *q)
{
    q->chunk += CHUNK_S;
    if (q->chunk >= q->to && q->samples.n == 0 && schedule_signal_has_next(q->signal)) {
        q->signal++;
        q->chunk = q->from;
    }
    if (q->chunk < q->to)
        send_query(q);
    else
        publish_result(q);
}

static void on_answer(void *context, const struct prom_result *result, const err_t *failure)
{
    struct schedule_query *q = context;
    q->call = NULL;
    if (failure) {
        abort_query(q, "PrometheusUnavailable", str_c(failure->text));
        return;
    }
    for (size_t i = 0; i < result->n; i++)
        for (size_t k = 0; k < result->series[i].sample_n && q->samples.n < SAMPLES_MAX; k++)
            vec_push(&q->samples,
                     ((struct schedule_sample){ result->series[i].samples[k].time_ms / 1000,
                                                result->series[i].samples[k].value }));
    query_next_chunk(q);
}

static void send_query(struct schedule_query *q)
{
    str promql = schedule_signal_query(&q->arena, q->signal, &q->advice, q->hpa_ns, q->hpa_name);
    if (!promql.n) { /* there is no user query */
        q->signal++;
        send_query(q);
        return;
    }
    int64_t end = MIN(q->chunk + CHUNK_S - STEP_S, q->to);
    q->call =
        prom_client_query(q->state->prometheus, &(struct prom_query){ .promql = promql,
                                                                      .start_ms = q->chunk * 1000,
                                                                      .end_ms = end * 1000,
                                                                      .step_ms = STEP_S * 1000,
                                                                      .on_done = on_answer,
                                                                      .context = q });
}

/* Copies everything that the query needs out of the turn, which ends before the answer arrives. */
static void start_query(const struct schedule_turn *turn)
{
    struct scheduler *s = turn->state;
    const struct schedule_object *o = &turn->pass.object;
    struct schedule_query *q = mem_zero(1, sizeof(*q));
    q->state = s;
    list_append(&s->queries, &q->item);
    q->ns = arena_str(&q->arena, o->ns);
    q->name = arena_str(&q->arena, o->name);
    q->uid = arena_str(&q->arena, o->uid);
    q->hpa_ns = arena_str(&q->arena, turn->target.ns);
    q->hpa_name = arena_str(&q->arena, turn->target.name);
    q->advice = o->spec->advice;
    q->advice.query = arena_str(&q->arena, turn->query);
    q->to = turn->pass.now / STEP_S *
            STEP_S; /* aligned, so that the same history gives the same result */
    q->from = q->to - q->advice.lookback_days * INT64_C(86400);
    q->chunk = q->from;
    turn->tracked->query_in_flight = true;
    send_query(q);
}

/* ---- part of a turn */

/* Reports success or failure once; the learned triggers are dropped in both cases until the next analysis. */
static void on_triggers_applied(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = r->turn;
    if (reply->reason == KUBE_CONFLICT) { /* edited in the meantime: the next pass merges again */
        reconcile_again(r, NS_PER_S);
        return;
    }
    free(take(turn->tracked->learned));
    bool failed = reply->failure != NULL;
    const struct schedule_advice *advice = &turn->pass.object.spec->advice;
    str message = failed ? str_c(reply->failure)
                  : advice->enabled && advice->apply
                      ? S("wrote the triggers named ai-... from the history "
                          "in Prometheus")
                      : S("removed the triggers named ai-..., because "
                          "smartRecommendation no longer applies them");
    schedule_turn_event(turn,
                        &(struct schedule_event){
                            failed, failed ? "AISchedulerFailed" : "AISchedulerUpdated", message });
}

/* maxReplicas of the HPA before the schedule's first write. */
static int64_t max_before(struct arena *a, const struct schedule_turn *turn)
{
    struct json *baseline = NULL;
    const struct schedule_hpa *hpa = &turn->pass.hpa;
    if (hpa->baseline.n)
        json_parse(a, hpa->baseline, &baseline, NULL);
    return hpa->found ? json_int(json_get(baseline, "max"), hpa->bounds.max) : 0;
}

/* Server-side apply of the whole list: it is atomic to the API server, because triggers need no name. The
 * resourceVersion prevents overwriting an edit that the cache does not have yet. */
static void apply_triggers(struct reconcile *r, struct schedule_turn *turn)
{
    struct scheduler *s = turn->state;
    const struct schedule_record *record = cache_get(s->schedules, r->ns, r->name);
    struct json *learned = NULL, *spec = NULL;
    if (!record || json_parse(r->arena, str_c(turn->tracked->learned), &learned, NULL) < 0 ||
        json_parse(r->arena, record->spec, &spec, NULL) < 0)
        return;
    if (!turn->pass.object.spec->advice.allow_lower_max)
        schedule_advice_keep_max(r->arena, learned, max_before(r->arena, turn));
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
                   on_triggers_applied);
}

/* When the published recommendation was computed; 0: there is none. */
static int64_t last_computed(const struct schedule_turn *turn)
{
    int64_t at = 0;
    const struct json *old = json_get(turn->pass.object.status, "recommendation");
    rfc3339_parse(json_text(json_get(old, "computedAt")), &at, NULL);
    return at <= turn->pass.now ? at : 0; /* a time to come is not ours */
}

str schedule_prometheus_problem(const struct scheduler *s, struct arena *a)
{
    if (!s->prometheus_failure)
        return S("smartRecommendation needs history; set --smarthpa-prometheus-url");
    return arena_printf(
        a,
        "smartRecommendation needs history, but --smarthpa-prometheus-url cannot be "
        "used: %s",
        s->prometheus_failure);
}

/* Applies learned triggers, and starts a query if one is due. Runs at the end of every completed pass. */
void schedule_turn_recommend(struct reconcile *r, struct schedule_turn *turn)
{
    const struct schedule_advice *advice = &turn->pass.object.spec->advice;
    struct schedule_tracked *tracked = turn->tracked;
    int64_t now = turn->pass.now, computed = last_computed(turn);
    if (computed)
        metric_set(METRIC(turn->state->metrics.advice_age, r->ns, r->name),
                   (double)(now - computed));
    bool applies = advice->enabled && advice->apply;
    if (!applies &&
        json_bool(json_at(turn->pass.object.status, "recommendation", "applied", NULL), false)) {
        free(tracked->learned);
        tracked->learned = mem_dup("[]", 2);
        apply_triggers(r, turn); /* turned off: what was applied is removed */
    }
    if (!advice->enabled || !turn->target.name.n || turn->pass.query_problem.n)
        return;
    if (turn->pass.refused.n) { /* consent was withdrawn: drop what was learned about the target */
        free(take(tracked->advice));
        free(take(tracked->learned));
        return;
    }
    if (tracked->learned && advice->apply)
        apply_triggers(r, turn);
    if (tracked->query_in_flight || tracked->advice)
        return;
    int64_t due =
        MAX(computed + advice->frequency_minutes * INT64_C(60), tracked->advised + RETRY_S);
    if (now < due) {
        reconcile_again(r, (due - now) * NS_PER_S);
        return;
    }
    tracked->advised = now;
    if (turn->state->prometheus)
        start_query(turn);
    else
        schedule_turn_event(turn, &(struct schedule_event){
                                      true, "PrometheusUnavailable",
                                      schedule_prometheus_problem(turn->state, r->arena) });
}
