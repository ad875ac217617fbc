/* Controllers: which keys are worked on, when, and what a turn waits for. */
#include "base/log.h"
#include "fake.h"
#include "kube/controller.h"

struct widget {
    struct record meta;
    str owner;
    int64_t size, ready;
};

static const struct field widget_fields[] = {
    { OWNER_NAME, F_STR, offsetof(struct widget, owner) },
    { "spec.size", F_INT, offsetof(struct widget, size) },
    { "status.ready", F_INT, offsetof(struct widget, ready) },
};
static const struct resource widgets = { "example.org", "v1", "widgets", "Widget", true };
static const struct cache_spec spec = { .resource = &widgets,
                                        .keep = FIELDS(struct widget, widget_fields) };

struct run {
    struct fake f;
    struct projector *projector;
    struct cache *cache;
    struct controller *c;
    struct buf turns; /* "name name ..." */
    int under_way, most_under_way;
    int64_t at_ns;
    struct exchange *held;
    int status; /* what serve_status() answers with */
};

static void put(struct run *run, const char *name, const char *owner, int rv, int size)
{
    char json[400];
    snprintf(json, sizeof(json),
             "{\"metadata\":{\"name\":\"%s\",\"namespace\":\"ns\",\"resourceVersion\":\"%d\","
             "\"ownerReferences\":[{\"controller\":true,\"name\":\"%s\"}]},\"spec\":{\"size\":%d}}",
             name, rv, owner, size);
    struct record *r;
    err_t e;
    if (OK_CALL(project(cache_projection(run->cache), str_c(json), &r, &e), &e))
        cache_put(run->cache, r);
}

static void run_start(struct run *run, struct controller_spec controller,
                      void (*serve)(struct fake *f, struct exchange *x))
{
    err_t e;
    *run = (struct run){ 0 };
    fake_start(&run->f, serve);
    run->projector = projector_new();
    OK_CALL(cache_new(run->projector, &spec, &run->cache, &e), &e);
    controller.name = "widget";
    controller.context = run;
    run->c = controller_new(run->f.kube, &controller);
}

static void run_stop(struct run *run)
{
    controller_free(run->c);
    cache_free(run->cache);
    projector_free(run->projector);
    fake_stop(&run->f);
    buf_done(&run->turns);
}

static void expect(struct run *run, const char *want)
{
    EQ_STR(buf_str(&run->turns), str_c(want));
    buf_clear(&run->turns);
}

static void note(struct reconcile *r)
{
    struct run *run = r->context;
    run->at_ns = loop_mono_ns(run->f.loop);
    buf_printf(&run->turns, STR_FMT " ", STR_ARG(r->name));
}

static void serve_ok(struct fake *f, struct exchange *x)
{
    (void)f;
    fake_answer(x, 200, "{}");
}

/* ---- */

static struct reconciled reconcile_note(struct reconcile *r)
{
    note(r);
    return reconciled();
}

static void changes_lead_to_keys(void)
{
    struct run run;
    run_start(&run, (struct controller_spec){ .reconcile = reconcile_note }, serve_ok);
    put(&run, "early", "", 1, 1);
    controller_watch(run.c, run.cache, NULL);
    put(&run, "a", "", 2, 1);
    put(&run, "a", "", 3, 2);
    fake_for(&run.f, NS_PER_S);
    expect(&run, ""); /* not started */
    controller_start(run.c);
    fake_for(&run.f, NS_PER_S);
    EQ_INT(run.turns.n, 8); /* in any order */
    buf_clear(&run.turns);
    put(&run, "a", "", 4, 2); /* nothing declared changed */
    put(&run, "b", "", 5, 1);
    cache_delete(run.cache, S("ns"), S("early"));
    fake_for(&run.f, NS_PER_S);
    expect(&run, "b early ");
    controller_stop(run.c);
    put(&run, "c", "", 6, 1);
    fake_for(&run.f, NS_PER_S);
    expect(&run, "");
    run_stop(&run);
}

static void children_lead_to_owners(void)
{
    struct run run;
    run_start(&run, (struct controller_spec){ .reconcile = reconcile_note }, serve_ok);
    controller_watch_by(run.c, run.cache, offsetof(struct widget, owner));
    controller_start(run.c);
    put(&run, "child", "one", 1, 1);
    put(&run, "orphan", "", 2, 1);
    fake_for(&run.f, NS_PER_S);
    expect(&run, "one ");
    put(&run, "child", "two", 3, 1); /* both the old and the new owner care */
    fake_for(&run.f, NS_PER_S);
    expect(&run, "one two ");
    run_stop(&run);
}

/* ---- */

static struct reconciled reconcile_again_later(struct reconcile *r)
{
    note(r);
    return reconciled_after(30 * NS_PER_S);
}

static void a_turn_can_ask_for_another(void)
{
    struct run run;
    run_start(&run, (struct controller_spec){ .reconcile = reconcile_again_later }, serve_ok);
    controller_start(run.c);
    controller_add(run.c, S("ns"), S("a"));
    fake_for(&run.f, 29 * NS_PER_S);
    expect(&run, "a ");
    fake_for(&run.f, 2 * NS_PER_S);
    expect(&run, "a ");
    run_stop(&run);
}

static struct reconciled reconcile_resync(struct reconcile *r)
{
    note(r);
    return reconciled();
}

static void everything_is_looked_at_again(void)
{
    struct run run;
    run_start(&run,
              (struct controller_spec){ .reconcile = reconcile_resync, .resync_ns = 60 * NS_PER_S },
              serve_ok);
    put(&run, "a", "", 1, 1);
    controller_watch(run.c, run.cache, NULL);
    controller_start(run.c);
    fake_for(&run.f, 150 * NS_PER_S);
    expect(&run, "a a a ");
    run_stop(&run);
}

/* ---- */

static struct reconciled reconcile_fail_thrice(struct reconcile *r)
{
    struct run *run = r->context;
    note(r);
    return ++run->under_way <= 3 ? reconciled_failed(r, "try %d", run->under_way) : reconciled();
}

static int lines;
static void count_line(void *context, str line)
{
    (void)context;
    lines += str_find(line, S("error=\"try ")) != SIZE_MAX;
}

static void failures_are_retried(void)
{
    struct run run;
    lines = 0;
    log_redirect(count_line, NULL);
    run_start(&run, (struct controller_spec){ .reconcile = reconcile_fail_thrice }, serve_ok);
    controller_start(run.c);
    int64_t start = loop_mono_ns(run.f.loop);
    controller_add(run.c, S("ns"), S("a"));
    fake_for(&run.f, NS_PER_S);
    expect(&run, "a a a a ");
    EQ_INT((run.at_ns - start) / NS_PER_MS, 5 + 10 + 20);
    EQ_INT(lines, 3);
    log_redirect(NULL, NULL);
    run_stop(&run);
}

/* ---- */

static struct reconciled reconcile_write(struct reconcile *r)
{
    struct run *run = r->context;
    note(r);
    run->under_way++;
    run->most_under_way = MAX(run->most_under_way, run->under_way);
    struct json *status = json_new_obj(r->arena);
    json_set_int(r->arena, status, "ready", 1);
    reconcile_status(r, &widgets, status);
    return reconciled();
}

static void serve_held(struct fake *f, struct exchange *x)
{
    struct run *run = container_of(f, struct run, f);
    OK(!run->held);
    run->held = x;
}

static void a_turn_lasts_until_its_writes_are_answered(void)
{
    struct run run;
    run_start(&run, (struct controller_spec){ .reconcile = reconcile_write }, serve_held);
    controller_start(run.c);
    controller_add(run.c, S("ns"), S("a"));
    fake_for(&run.f, NS_PER_S);
    expect(&run, "a ");
    EQ_INT(controller_turns(run.c), 1);
    EQ_STR(buf_str(&run.f.log), S("PATCH /apis/example.org/v1/namespaces/ns/widgets/a/status"
                                  "?fieldManager=flyball {\"status\":{\"ready\":1}}\n"));
    controller_add(run.c, S("ns"), S("a")); /* waits for the first turn */
    fake_for(&run.f, NS_PER_S);
    expect(&run, "");
    fake_answer(run.held, 200, "{}");
    run.held = NULL;
    fake_for(&run.f, NS_PER_S);
    expect(&run, "a ");
    log_redirect(count_line, NULL);
    fake_answer(run.held, 409, "{\"reason\":\"Conflict\"}"); /* the turn failed: again */
    run.held = NULL;
    fake_for(&run.f, NS_PER_S);
    log_redirect(NULL, NULL);
    expect(&run, "a ");
    fake_answer(run.held, 200, "{}");
    fake_for(&run.f, NS_PER_S);
    EQ_INT(controller_turns(run.c), 0);
    run_stop(&run);
}

static void serve_status(struct fake *f, struct exchange *x)
{
    fake_answer(x, container_of(f, struct run, f)->status, "{}");
}

static int turns_within(struct run *run, int64_t seconds)
{
    buf_clear(&run->turns);
    fake_for(&run->f, seconds * NS_PER_S);
    return (int)run->turns.n / 2; /* names of one letter */
}

/* A key that fails with this status so often that the next try is far away. */
static void run_start_failing(struct run *run, int status)
{
    run_start(run, (struct controller_spec){ .reconcile = reconcile_write }, serve_status);
    controller_watch(run->c, run->cache, NULL);
    controller_start(run->c);
    run->status = status;
    put(run, "a", "", 1, 1);
    OK(turns_within(run, 700) > 10);
    EQ_INT(turns_within(run, 100), 0);
}

static void ask(struct run *run, int status)
{
    run->status = status;
    kube_send(run->f.kube, &(struct kube_request){ .verb = KUBE_GET, .path = S("/version") });
}

/* The first answer, to any request, shows that the server is back behind its proxy. */
static void a_server_that_is_back_keeps_nobody_waiting(void)
{
    struct run run;
    run_start_failing(&run, 503);
    ask(&run, 200);
    EQ_INT(turns_within(&run, 1), 1);
    EQ_INT(turns_within(&run, 3000), 0); /* it went well */
    run_stop(&run);
}

/* Without other requests: while a key waits, the client sends one every second. */
static void a_server_that_is_back_is_noticed_within_two_seconds(void)
{
    struct run run;
    run_start_failing(&run, 503);
    run.status = 200;
    EQ_INT(turns_within(&run, 2), 1);
    EQ_INT(turns_within(&run, 3000), 0);
    run_stop(&run);
}

static void an_overloaded_server_is_tried_again_soon(void)
{
    struct run run;
    run_start(&run, (struct controller_spec){ .reconcile = reconcile_write }, serve_status);
    controller_watch(run.c, run.cache, NULL);
    controller_start(run.c);
    run.status = 500; /* it answers, so it is not away */
    put(&run, "a", "", 1, 1);
    OK(turns_within(&run, 700) > 40);
    run.status = 200;
    EQ_INT(turns_within(&run, 16), 1);
    EQ_INT(turns_within(&run, 3000), 0);
    run_stop(&run);
}

static void a_server_that_still_forbids_is_not_back(void)
{
    struct run run;
    run_start_failing(&run, 503);
    ask(&run, 403);
    EQ_INT(turns_within(&run, 1), 0);
    ask(&run, 200);
    EQ_INT(turns_within(&run, 1), 1);
    run_stop(&run);
}

static void other_failures_keep_their_time(void)
{
    struct run run;
    run_start_failing(&run, 422);
    ask(&run, 503);
    EQ_INT(turns_within(&run, 1), 0);
    ask(&run, 200); /* one answer that was lost is no outage */
    EQ_INT(turns_within(&run, 100), 0);
    run_stop(&run);
}

static void turns_can_be_cut_off(void)
{
    struct run run;
    run_start(&run, (struct controller_spec){ .reconcile = reconcile_write }, serve_held);
    controller_start(run.c);
    controller_add(run.c, S("ns"), S("a"));
    fake_for(&run.f, NS_PER_S);
    EQ_INT(controller_turns(run.c), 1);
    exchange_abort(run.held);
    run_stop(&run); /* with the answer still open */
}

/* ---- */

static void then_second(struct reconcile *r, const struct kube_reply *reply)
{
    struct run *run = r->context;
    EQ_INT(reply->reason, KUBE_NOT_FOUND);
    buf_put(&run->turns, S("second "));
    reconcile_again(r, 5 * NS_PER_S);
}

static void then_first(struct reconcile *r, const struct kube_reply *reply)
{
    struct run *run = r->context;
    EQ_INT(reply->code, 200);
    buf_put(&run->turns, S("first "));
    reconcile_call(r, &(struct kube_request){ .verb = KUBE_GET, .path = S("/missing") },
                   then_second);
}

static struct reconciled reconcile_steps(struct reconcile *r)
{
    struct run *run = r->context;
    note(r);
    if (!run->most_under_way++)
        reconcile_call(r, &(struct kube_request){ .verb = KUBE_GET, .path = S("/there") },
                       then_first);
    return reconciled();
}

static void serve_there(struct fake *f, struct exchange *x)
{
    (void)f;
    bool there = str_eq(exchange_path(x), S("/there"));
    fake_answer(x, there ? 200 : 404, "{}");
}

static void a_turn_can_have_steps(void)
{
    struct run run;
    run_start(&run, (struct controller_spec){ .reconcile = reconcile_steps }, serve_there);
    controller_start(run.c);
    controller_add(run.c, S("ns"), S("a"));
    fake_for(&run.f, NS_PER_S);
    expect(&run, "a first second ");
    fake_for(&run.f, 5 * NS_PER_S);
    expect(&run, "a "); /* a 404 that was looked at fails nothing */
    run_stop(&run);
}

/* What its callbacks would use is gone; another key is not affected. */
static void an_abandoned_turn_calls_nothing_back(void)
{
    struct run run;
    run_start(&run, (struct controller_spec){ .reconcile = reconcile_steps }, serve_held);
    controller_start(run.c);
    controller_add(run.c, S("ns"), S("a"));
    fake_for(&run.f, NS_PER_S);
    controller_abandon(run.c, S("other"), S("a"));
    fake_answer(take(run.held), 200, "{}");
    fake_for(&run.f, NS_PER_S);
    expect(&run, "a first ");
    controller_abandon(run.c, S("ns"), S("a"));
    fake_answer(take(run.held), 404, "{}");
    fake_for(&run.f, 10 * NS_PER_S);
    expect(&run, "");
    EQ_INT(controller_turns(run.c), 0);
    controller_add(run.c, S("ns"), S("a")); /* the next object of that name */
    fake_for(&run.f, NS_PER_S);
    expect(&run, "a ");
    run_stop(&run);
}

static struct reconciled reconcile_child(struct reconcile *r)
{
    struct json *service = json_new_obj(r->arena);
    json_set_str(r->arena, json_make(r->arena, service, "metadata", NULL), "name", S("web"));
    reconcile_apply(r, &resource_services, service);
    return reconciled();
}

static void children_are_applied(void)
{
    struct run run;
    run_start(&run, (struct controller_spec){ .reconcile = reconcile_child }, serve_ok);
    controller_start(run.c);
    controller_add(run.c, S("ns"), S("a"));
    fake_for(&run.f, NS_PER_S);
    EQ_STR(buf_str(&run.f.log),
           S("PATCH /api/v1/namespaces/ns/services/web?force=true&fieldManager=flyball "
             "{\"metadata\":{\"name\":\"web\",\"namespace\":\"ns\"},\"apiVersion\":\"v1\","
             "\"kind\":\"Service\"}\n"));
    run_stop(&run);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(changes_lead_to_keys),
                                        TAP(children_lead_to_owners),
                                        TAP(a_turn_can_ask_for_another),
                                        TAP(everything_is_looked_at_again),
                                        TAP(failures_are_retried),
                                        TAP(a_turn_lasts_until_its_writes_are_answered),
                                        TAP(a_server_that_is_back_keeps_nobody_waiting),
                                        TAP(a_server_that_is_back_is_noticed_within_two_seconds),
                                        TAP(an_overloaded_server_is_tried_again_soon),
                                        TAP(a_server_that_still_forbids_is_not_back),
                                        TAP(other_failures_keep_their_time),
                                        TAP(turns_can_be_cut_off),
                                        TAP(a_turn_can_have_steps),
                                        TAP(an_abandoned_turn_calls_nothing_back),
                                        TAP(children_are_applied),
                                        { 0 } });
}
