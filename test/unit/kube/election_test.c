/* Leader election: two candidates, one Lease, and a server that can be made to fail. The law: at no
 * instant may both write. */
#include "fake.h"
#include "kube/election.h"

struct world {
    struct fake f;       /* its client is the first candidate's */
    struct kube *second; /* the other's */
    struct arena arena;  /* of the lease */
    struct json *lease;  /* NULL: none */
    int64_t version;
    bool down; /* answers 503 */
    struct exchange *frozen[50];
    size_t frozen_n;
    bool freeze; /* answers nothing */
};

static struct world *world_of(struct fake *f)
{
    return container_of(f, struct world, f);
}

static void store(struct world *w, str body)
{
    struct json *lease;
    char rv[32];
    if (!OK(json_parse(&w->arena, body, &lease, NULL) == 0))
        return;
    snprintf(rv, sizeof(rv), "%lld", (long long)++w->version);
    json_set_str(&w->arena, json_make(&w->arena, lease, "metadata", NULL), "resourceVersion",
                 str_c(rv));
    w->lease = lease;
}

static void serve_lease(struct fake *f, struct exchange *x)
{
    struct world *w = world_of(f);
    auto_arena struct arena a = { 0 };
    str method = exchange_method(x);
    struct json *body = NULL;
    if (w->freeze) {
        w->frozen[w->frozen_n++] = x;
        return;
    }
    if (w->down) {
        fake_answer(x, 503, "{}");
        return;
    }
    if (str_eq(method, S("PATCH"))) { /* what a leader does */
        fake_answer(x, 200, "{}");
        return;
    }
    if (!w->lease && !str_eq(method, S("POST"))) {
        fake_answer(x, 404, "{\"reason\":\"NotFound\"}");
        return;
    }
    if (w->lease && str_eq(method, S("POST"))) {
        fake_answer(x, 409, "{\"reason\":\"AlreadyExists\"}");
        return;
    }
    if (str_eq(method, S("PUT"))) {
        OK(json_parse(&a, exchange_body(x), &body, NULL) == 0);
        if (!str_eq(json_text(json_at(body, "metadata", "resourceVersion", NULL)),
                    json_text(json_at(w->lease, "metadata", "resourceVersion", NULL)))) {
            fake_answer(x, 409, "{\"reason\":\"Conflict\"}");
            return;
        }
    }
    if (!str_eq(method, S("GET")))
        store(w, exchange_body(x));
    fake_answer(x, 200, json_to_str(&a, w->lease).p);
}

struct candidate {
    struct world *w;
    struct kube *kube;
    struct election *election;
    int led, lost, troubles;
    bool stopped;
};

static void on_lead(void *context)
{
    ((struct candidate *)context)->led++;
}

static void on_lost(void *context)
{
    ((struct candidate *)context)->lost++;
}

static void on_trouble(void *context, const char *sentence)
{
    OK(*sentence);
    ((struct candidate *)context)->troubles++;
}

static void on_stopped(void *context)
{
    ((struct candidate *)context)->stopped = true;
}

static void world_start(struct world *w)
{
    *w = (struct world){ 0 };
    fake_start(&w->f, serve_lease);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", http_server_port(w->f.server));
    struct kube_config config = { .where = S("a test"), .server = str_c(url), .ns = S("default") };
    err_t e;
    OK_CALL(kube_new(&(struct kube_options){ .loop = w->f.loop, .config = &config }, &w->second,
                     &e),
            &e);
}

static void world_stop(struct world *w)
{
    for (size_t i = 0; i < w->frozen_n; i++)
        exchange_abort(w->frozen[i]);
    kube_free(w->second);
    fake_stop(&w->f);
    arena_done(&w->arena);
}

static void run_for_office(struct candidate *c, struct world *w, bool second)
{
    err_t e;
    *c = (struct candidate){ .w = w, .kube = second ? w->second : w->f.kube };
    OK_CALL(election_start(&(struct election_options){ .kube = c->kube,
                                                       .ns = S("default"),
                                                       .name = S("lease"),
                                                       .identity = second ? S("two") : S("one"),
                                                       .seed = second,
                                                       .on_lead = on_lead,
                                                       .on_lost = on_lost,
                                                       .on_trouble = on_trouble,
                                                       .context = c },
                           &c->election, &e),
            &e);
}

struct written {
    bool done, ok;
};

static void on_written(void *context, const struct kube_reply *reply)
{
    struct written *written = context;
    written->done = true;
    written->ok = !reply->failure;
}

/* Can it write now? */
static bool writes(struct candidate *c)
{
    struct written written = { 0 };
    kube_send(c->kube, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                               .resource = &resource_pods,
                                               .ns = S("a"),
                                               .name = S("b"),
                                               .body = S("{}"),
                                               .done = on_written,
                                               .context = &written });
    fake_until(&c->w->f, &written.done);
    return written.ok;
}

static str holder(struct world *w)
{
    return json_text(json_at(w->lease, "spec", "holderIdentity", NULL));
}

/* ---- */

static void the_first_leads_and_renews(void)
{
    struct world w;
    struct candidate one, two;
    world_start(&w);
    run_for_office(&one, &w, false);
    OK(!writes(&one));
    fake_for(&w.f, NS_PER_S);
    EQ_INT(one.led, 1);
    EQ_STR(holder(&w), S("one"));
    EQ_INT(json_int(json_at(w.lease, "spec", "leaseDurationSeconds", NULL), 0), 15);
    EQ_INT(json_int(json_at(w.lease, "spec", "leaseTransitions", NULL), -1), 0);
    EQ_STR(json_text(json_at(w.lease, "spec", "acquireTime", NULL)),
           S("2025-10-09T08:53:20.000000Z"));
    run_for_office(&two, &w, true);
    fake_for(&w.f, 120 * NS_PER_S);
    EQ_INT(two.led, 0);
    OK(election_leads(one.election) && !election_leads(two.election));
    EQ_STR(election_holder(two.election), S("one"));
    OK(writes(&one) && !writes(&two));
    OK(w.version > 55 && w.version < 65); /* every 2 s */
    EQ_INT(one.troubles + two.troubles, 0);
    election_free(one.election);
    election_free(two.election);
    world_stop(&w);
}

static void a_silent_leader_is_followed(void)
{
    struct world w;
    struct candidate one, two;
    world_start(&w);
    run_for_office(&one, &w, false);
    fake_for(&w.f, 10 * NS_PER_S);
    run_for_office(&two, &w, true);
    fake_for(&w.f, 10 * NS_PER_S);
    int64_t start = loop_mono_ns(w.f.loop);
    election_free(one.election); /* as kill -9 does */
    while (!two.led && loop_mono_ns(w.f.loop) < start + 60 * NS_PER_S)
        fake_for(&w.f, NS_PER_S / 2);
    double took = (double)(loop_mono_ns(w.f.loop) - start) / NS_PER_S;
    OK(took >= 13 && took <= 22);
    EQ_STR(holder(&w), S("two"));
    EQ_INT(json_int(json_at(w.lease, "spec", "leaseTransitions", NULL), 0), 1);
    election_free(two.election);
    world_stop(&w);
}

static void a_released_lease_is_taken_soon(void)
{
    struct world w;
    struct candidate one, two;
    world_start(&w);
    run_for_office(&one, &w, false);
    run_for_office(&two, &w, true);
    fake_for(&w.f, 10 * NS_PER_S);
    struct candidate *leader = one.led ? &one : &two, *other = one.led ? &two : &one;
    OK(leader->led == 1 && !other->led);
    election_stop(leader->election, on_stopped, leader);
    fake_until(&w.f, &leader->stopped);
    EQ_STR(holder(&w), S(""));
    EQ_INT(json_int(json_at(w.lease, "spec", "leaseDurationSeconds", NULL), 0), 1);
    OK(!writes(leader));
    fake_for(&w.f, 5 * NS_PER_S);
    EQ_INT(other->led, 1);
    election_free(other->election);
    world_stop(&w);
}

/* A Lease that an earlier process of the same pod held is taken at once, that of any other holder is not. */
static void a_restarted_container_does_not_wait(void)
{
    const struct {
        str holder, pod;
        int led;
    } t[] = { { S("web-0_0123"), S("web-0"), 1 },
              { S("web-0_0123"), S(""), 0 },
              { S("web-01_0123"), S("web-0"), 0 },
              { S("web-0"), S("web-0"), 0 },
              { S("other_0123"), S("web-0"), 0 } };
    for (size_t i = 0; i < countof(t); i++) {
        struct world w;
        struct candidate one = { 0 };
        err_t e;
        world_start(&w);
        store(&w,
              arena_printf(
                  &w.arena,
                  "{\"spec\":{\"holderIdentity\":\"" STR_FMT
                  "\",\"leaseDurationSeconds\":15,\"renewTime\":\"2025-10-09T08:53:20.000000Z\"}}",
                  STR_ARG(t[i].holder)));
        one.w = &w;
        one.kube = w.f.kube;
        OK_CALL(election_start(&(struct election_options){ .kube = one.kube,
                                                           .ns = S("default"),
                                                           .name = S("lease"),
                                                           .identity = S("web-0_4567"),
                                                           .pod = t[i].pod,
                                                           .on_lead = on_lead,
                                                           .on_lost = on_lost,
                                                           .on_trouble = on_trouble,
                                                           .context = &one },
                               &one.election, &e),
                &e);
        fake_for(&w.f, NS_PER_S);
        EQ_INT(one.led, t[i].led);
        fake_for(&w.f, 30 * NS_PER_S);
        EQ_INT(one.led, 1);
        election_free(one.election);
        world_stop(&w);
    }
}

static void who_cannot_renew_stops_in_time(void)
{
    for (int freeze = 0; freeze < 2; freeze++) {
        struct world w;
        struct candidate one, two;
        world_start(&w);
        run_for_office(&one, &w, false);
        fake_for(&w.f, 10 * NS_PER_S);
        run_for_office(&two, &w, true);
        fake_for(&w.f, 10 * NS_PER_S);
        OK(writes(&one));
        *(freeze ? &w.freeze : &w.down) = true;
        fake_for(&w.f, 12 * NS_PER_S + NS_PER_S / 10);
        EQ_INT(one.lost, 1);
        OK(!election_leads(one.election));
        w.freeze = w.down = false;
        OK(!writes(&one)); /* the law: it stopped, and no other replica has started */
        EQ_INT(two.led, 0);
        fake_for(&w.f, 30 * NS_PER_S);
        EQ_INT(two.led, 1);
        OK(!writes(&one) && writes(&two));
        election_free(one.election);
        election_free(two.election);
        world_stop(&w);
    }
}

static void a_stolen_lease_is_noticed(void)
{
    struct world w;
    struct candidate one;
    world_start(&w);
    run_for_office(&one, &w, false);
    fake_for(&w.f, 10 * NS_PER_S);
    json_set_str(&w.arena, json_get(w.lease, "spec"), "holderIdentity", S("thief"));
    json_set_str(&w.arena, json_get(w.lease, "metadata"), "resourceVersion", S("stolen"));
    fake_for(&w.f, 3 * NS_PER_S);
    EQ_INT(one.lost, 1);
    OK(!writes(&one));
    election_free(one.election);
    world_stop(&w);
}

static void our_own_earlier_write_is_no_theft(void)
{
    struct world w;
    struct candidate one;
    world_start(&w);
    run_for_office(&one, &w, false);
    fake_for(&w.f, 9 * NS_PER_S);
    /* an answer got lost: the server has a newer version of our own lease, with a label of another client */
    json_set_str(&w.arena, json_get(w.lease, "metadata"), "resourceVersion", S("lost"));
    json_set_str(&w.arena, json_make(&w.arena, w.lease, "metadata", "labels", NULL), "team",
                 S("a"));
    fake_for(&w.f, 20 * NS_PER_S);
    EQ_INT(one.lost, 0);
    OK(writes(&one));
    EQ_STR(json_text(json_at(w.lease, "metadata", "labels", "team", NULL)), S("a"));
    EQ_INT(json_int(json_at(w.lease, "spec", "leaseTransitions", NULL), -1), 0);
    election_free(one.election);
    world_stop(&w);
}

static void bad_timings_are_refused(void)
{
    struct election *el = NULL;
    err_t e = { 0 };
    struct election_options o = { .renew_deadline_ns = 20 * NS_PER_S };
    EQ_INT(election_start(&o, &el, &e), -EINVAL);
    OK(strstr(e.text, "renew deadline < lease duration"));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(the_first_leads_and_renews),
                                        TAP(a_silent_leader_is_followed),
                                        TAP(a_released_lease_is_taken_soon),
                                        TAP(a_restarted_container_does_not_wait),
                                        TAP(who_cannot_renew_stops_in_time),
                                        TAP(a_stolen_lease_is_noticed),
                                        TAP(our_own_earlier_write_is_no_theft),
                                        TAP(bad_timings_are_refused),
                                        { 0 } });
}
