/* Q-tables in ConfigMaps of the embedded server: no more than fit into one, and all are read
 * back. */
#include "cluster.h"
#include "market/qtable_store.h"
#include "tap.h"

static const char ns[] = "default";
enum { BYTES_MAX = 1048576 }; /* the API server takes no larger ConfigMap */

struct scene {
    struct cluster c;
    struct qtable_store *store;
    int workloads; /* that have a pod here */
    double q;      /* the value that all of them learned */
    bool loaded;
};

static str workload(struct scene *s, int number)
{
    return arena_printf(&s->c.arena, "default.Deployment.a-service-with-a-name-%04d", number);
}

static void loaded(void *context)
{
    ((struct scene *)context)->loaded = true;
}

static void make_agent(struct agent *agent, double q)
{
    agent_init(agent, 0.2, 1);
    for (int state = 0; state < AGENT_STATE_N; state++) {
        struct agent_row *row = agent_add_row(agent, state);
        row->known = 7;
        for (int action = 0; action < AGENT_ACTION_N; action++)
            row->q[action] = q + state + action;
    }
}

static void collect(void *context)
{
    struct scene *s = context;
    struct agent agent;
    struct arena_mark mark = arena_mark(&s->c.arena);
    make_agent(&agent, s->q);
    for (int i = 0; i < s->workloads; i++)
        qtable_store_put(s->store, workload(s, i), &agent);
    agent_done(&agent);
    arena_reset(&s->c.arena, mark);
}

static void store_up(struct scene *s)
{
    s->loaded = false;
    s->store = qtable_store_new(&(struct qtable_store_options){ .kube = s->c.kube,
                                                                .ns = str_c(ns),
                                                                .node = S("n1"),
                                                                .on_loaded = loaded,
                                                                .collect = collect,
                                                                .context = s });
    while (!s->loaded)
        loop_turn(s->c.loop);
}

static void store_down(struct scene *s)
{
    while (qtable_store_flush(s->store))
        loop_turn(s->c.loop);
    qtable_store_free(take(s->store));
}

static void begin(struct scene *s, int workloads)
{
    *s = (struct scene){ .workloads = workloads, .q = 1 };
    cluster_start(&s->c, 1780488000);
    store_up(s);
}

static void end(struct scene *s)
{
    store_down(s);
    cluster_stop(&s->c);
}

/* How many tables the ConfigMap has; -1: there is none. */
static int tables_in(struct scene *s, const char *name)
{
    const struct json *map = cluster_get(&s->c, &resource_configmaps, ns, name);
    size_t bytes = 0;
    json_each(m, json_get(map, "data"))
        bytes += m->key.n + json_text(m->value).n;
    OK(bytes <= BYTES_MAX);
    return map ? (int)json_len(json_get(map, "data")) : -1;
}

static bool knows(struct scene *s, int number, double q)
{
    struct agent agent;
    agent_init(&agent, 0.5, 1);
    bool found = qtable_store_get(s->store, workload(s, number), S("no-such-uid"), &agent) &&
                 fabs(agent_row(&agent, 0)->q[0] - q) < 1e-3;
    agent_done(&agent);
    return found;
}

static void what_does_not_fit_into_one_goes_into_the_next(void)
{
    struct scene s;
    begin(&s, 2500);
    store_down(&s);
    int first = tables_in(&s, "mbcas-qtable-n1"), second = tables_in(&s, "mbcas-qtable-n1-1");
    OK(first > 0 && second > 0);
    EQ_INT(first + second, 2500);
    EQ_INT(tables_in(&s, "mbcas-qtable-n1-2"), -1);
    s.workloads = 0;
    store_up(&s);
    OK(knows(&s, 0, 1) && knows(&s, 2499, 1) && !knows(&s, 2500, 1));
    end(&s);
}

/* The second is emptied: what is old must not be read again. */
static void what_fits_again_is_in_one(void)
{
    struct scene s;
    begin(&s, 2500);
    store_down(&s);
    s.workloads = 100;
    s.q = 7;
    store_up(&s);
    store_down(&s);
    EQ_INT(tables_in(&s, "mbcas-qtable-n1-1"), 0);
    OK(tables_in(&s, "mbcas-qtable-n1") > 100); /* of others as many as there is room for */
    s.workloads = 0;
    store_up(&s);
    OK(knows(&s, 0, 7) && knows(&s, 99, 7) && knows(&s, 100, 1));
    end(&s);
}

/* Tables of an MBCAS that ran here before are found where it wrote them, and stay there. */
static void tables_of_mbcas_are_imported(void)
{
    struct scene s = { .workloads = 0 };
    struct agent agent;
    cluster_start(&s.c, 1780000000);
    cluster_do(&s.c, KUBE_CREATE, &resource_namespaces, NULL, "mbcas-system",
               S("{\"metadata\":{\"name\":\"mbcas-system\"}}"));
    cluster_do(&s.c, KUBE_CREATE, &resource_configmaps, "mbcas-system", "mbcas-qtable-n1",
               S("{\"metadata\":{\"name\":\"mbcas-qtable-n1\"},\"data\":{\"uid-1\":"
                 "\"{\\\"low:none:excess\\\":{\\\"normal\\\":4.5}}\"}}"));
    store_up(&s);
    agent_init(&agent, 0.2, 1);
    OK(qtable_store_get(s.store, S("default.Deployment.web"), S("uid-1"), &agent));
    OK(!qtable_store_get(s.store, S("default.Deployment.web"), S("uid-2"), &agent));
    agent_done(&agent);
    end(&s);
}

static void it_is_written_when_it_changed(void)
{
    struct scene s;
    begin(&s, 3);
    cluster_until(&s.c, cluster_now(&s.c) + 35);
    EQ_INT(tables_in(&s, "mbcas-qtable-n1"), 3);
    OK(!qtable_store_flush(s.store));
    s.q += 0.0002; /* too little */
    OK(!qtable_store_flush(s.store));
    s.q += 0.01;
    OK(qtable_store_flush(s.store));
    end(&s);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(what_does_not_fit_into_one_goes_into_the_next),
                                        TAP(what_fits_again_is_in_one),
                                        TAP(tables_of_mbcas_are_imported),
                                        TAP(it_is_written_when_it_changed),
                                        { 0 } });
}
