/* The end of a manager: it waits for turns and last writes, is resumed by them, and waits for nothing else. */
#include "kube/manager.h"

#include "cluster.h"
#include "tap.h"

static struct {
    bool is_busy;  /* the feature's last write is pending */
    int flushes;   /* how often the manager asked */
    int turns;     /* of the controller */
    int64_t ended; /* when the manager had stopped, mono; 0: not yet */
} seen;

static bool flush(void *state)
{
    (void)state;
    seen.flushes++;
    return seen.is_busy;
}

static struct reconciled reconcile(struct reconcile *r)
{
    seen.turns++;
    reconcile_send(r, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                              .resource = &resource_namespaces,
                                              .name = r->name,
                                              .body =
                                                  S("{\"metadata\":{\"labels\":{\"a\":\"b\"}}}") });
    return reconciled();
}

static int start_feature(struct manager *m, void **ret_state, err_t *e)
{
    (void)e;
    *ret_state =
        manager_controller(m, &(struct controller_spec){ .name = "turns", .reconcile = reconcile });
    controller_add(*ret_state, S(""), S("default"));
    return 0;
}

static const struct feature feature = { .name = "ends", .start = start_feature, .flush = flush };

static void on_stopped(void *context)
{
    const struct cluster *c = context;
    seen.ended = loop_mono_ns(c->loop);
}

static void begin(struct cluster *c)
{
    memset(&seen, 0, sizeof(seen));
    cluster_start(c, 1780473600);
}

/* Stops the manager, and returns when it began to. */
static int64_t stop(struct cluster *c)
{
    int64_t now = loop_mono_ns(c->loop);
    manager_stop(c->manager, on_stopped, c);
    return now;
}

static void a_last_write_ends_the_wait(void)
{
    struct cluster c;
    begin(&c);
    cluster_operator(&c, &feature, NULL);
    cluster_until(&c, cluster_now(&c) + 1);
    EQ_INT(seen.turns, 1);
    seen.is_busy = true;
    stop(&c);
    cluster_until(&c, cluster_now(&c) + 3);
    EQ_INT(seen.flushes, 1); /* nothing happened: nothing is asked again */
    EQ_INT(seen.ended, 0);
    manager_flushed(c.manager); /* one of two */
    cluster_until(&c, cluster_now(&c) + 1);
    EQ_INT(seen.flushes, 2);
    EQ_INT(seen.ended, 0);
    seen.is_busy = false;
    int64_t answered = loop_mono_ns(c.loop);
    manager_flushed(c.manager);
    manager_flushed(c.manager);
    cluster_until(&c, cluster_now(&c) + 10);
    EQ_INT(seen.ended, answered);
    EQ_INT(seen.flushes, 3);
    cluster_stop(&c);
}

static void a_turn_ends_the_wait(void)
{
    struct cluster c;
    begin(&c);
    cluster_operator(&c, &feature, NULL);
    while (!seen.turns)
        loop_turn(c.loop);
    int64_t begun = stop(&c);
    OK(!seen.ended);
    while (!seen.ended)
        loop_turn(c.loop);
    EQ_INT(seen.ended, begun); /* answered in no time: there is nothing to wait for */
    EQ_INT(seen.flushes, 1);
    cluster_stop(&c);
}

static void it_waits_for_five_seconds_at_most(void)
{
    struct cluster c;
    begin(&c);
    cluster_operator(&c, &feature, NULL);
    cluster_until(&c, cluster_now(&c) + 1);
    seen.is_busy = true;
    int64_t begun = stop(&c);
    cluster_until(&c, cluster_now(&c) + 20);
    EQ_INT(seen.ended - begun, 5 * NS_PER_S);
    EQ_INT(seen.flushes, 1);
    manager_flushed(c.manager); /* too late: no effect */
    cluster_until(&c, cluster_now(&c) + 1);
    EQ_INT(seen.ended - begun, 5 * NS_PER_S);
    cluster_stop(&c);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_last_write_ends_the_wait),
                                        TAP(a_turn_ends_the_wait),
                                        TAP(it_waits_for_five_seconds_at_most),
                                        { 0 } });
}
