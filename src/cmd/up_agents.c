/* Runs a node agent for every simulated node: the same features that `flyball agent` runs, each
 * agent with its own client, on the cgroup files of the simulated node. A controller on nodes
 * starts and frees agents, so they follow nodes that are added or removed. struct up owns the
 * agents. */
#include "up.h"

#include "../base/random.h"
#include "runtime.h"

struct up_agent {            /* one node */
    struct up *up;           /* its owner */
    struct kube *kube;       /* owned */
    struct manager *manager; /* owned */
    char *node, *root;       /* owned */
};

struct up_node {
    struct record meta;
    bool deleting;
};

static const struct field node_fields[] = {
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct up_node, deleting) },
};

static const struct cache_spec node_cache = { .resource = &resource_nodes,
                                              .keep = FIELDS(struct up_node, node_fields) };

/* Settings that `flyball agent` would get as flags. */
static const char *up_agent_setting(void *context, const char *name)
{
    const struct up_agent *agent = context;
    if (!strcmp(name, "node-name"))
        return agent->node;
    if (!strcmp(name, "cgroup-root"))
        return agent->root;
    if (!strcmp(name, "market-config-namespace"))
        return "mbcas-system"; /* as in the examples */
    return NULL;
}

static void up_agent_free(struct up_agent *agent)
{
    manager_free(agent->manager);
    kube_free(agent->kube);
    free(agent->node);
    free(agent->root);
    free(agent);
}

/* Runs all features of a node, as `flyball agent` does. */
static int up_agent_run(struct up_agent *agent, err_t *e)
{
    int r = up_connect(agent->up, NULL, &agent->kube, e);
    r = r < 0 ? r
              : manager_new(&(struct manager_options){ .kube = agent->kube,
                                                       .identity = str_c(agent->node),
                                                       .seed = random_seed(),
                                                       .setting = up_agent_setting,
                                                       .context = agent },
                            &agent->manager, e);
    for (const struct feature *const *f = features; r >= 0 && *f; f++)
        if ((*f)->on_node)
            r = manager_add(agent->manager, *f, e);
    return r < 0 ? r : manager_run(agent->manager, e);
}

/* Starts an agent. Creates its cgroup folder first, which the simulated node may not have done
 * yet. */
static int up_agent_start(struct up *up, str node, err_t *e)
{
    struct up_agent *agent = mem_zero(1, sizeof(*agent));
    struct buf root = { 0 }, pods = { 0 };
    buf_printf(&root, "%s/" STR_FMT, up->cgroup_root, STR_ARG(node));
    buf_printf(&pods, "%s/kubepods", root.p);
    agent->up = up;
    agent->node = mem_dup(node.p, node.n);
    agent->root = buf_take(&root);
    int r = cpu_files_make(up->cgroup_root, node, pods.p, e);
    buf_done(&pods);
    r = r < 0 ? r : up_agent_run(agent, e);
    if (r < 0) {
        up_agent_free(agent);
        return err_wrap(e, "the agent of node " STR_FMT, STR_ARG(node));
    }
    vec_push(&up->agents, agent);
    return 0;
}

/* Starts or frees the agent of a node, so that agents and nodes correspond. */
static struct reconciled reconcile_node(struct reconcile *r)
{
    struct up *up = r->context;
    size_t at = 0;
    err_t e;
    while (at < up->agents.n && !str_eqc(r->name, up->agents.at[at]->node))
        at++;
    bool wanted = cache_get(up->nodes, S(""), r->name), exists = at < up->agents.n;
    if (wanted && !exists && up_agent_start(up, r->name, &e) < 0)
        return reconciled_failed(r, "%s", e.text);
    if (!wanted && exists) {
        up_agent_free(up->agents.at[at]);
        vec_remove(&up->agents, at);
    }
    return reconciled();
}

int up_agents_start(struct up *up, struct manager *m, err_t *e)
{
    bool any = false;
    for (const struct feature *const *f = features; *f; f++)
        any |= (*f)->on_node;
    if (!any)
        return 0;
    int r = manager_cache(m, &node_cache, &up->nodes, e);
    if (r < 0)
        return r;
    struct controller *c =
        manager_controller(m, &(struct controller_spec){ .name = "up-agents",
                                                         .reconcile = reconcile_node,
                                                         .context = up });
    controller_watch(c, up->nodes, NULL);
    return 0;
}

/* ---- shutdown, in sequence, so that each agent saves its Q-tables */

static void on_agent_stopped(void *context)
{
    up_agents_stop(context);
}

void up_agents_stop(struct up *up)
{
    if (up->agents_stopped == up->agents.n) {
        up_on_agents_stopped(up);
        return;
    }
    manager_stop(up->agents.at[up->agents_stopped++]->manager, on_agent_stopped, up);
}

void up_agents_done(struct up *up)
{
    for (size_t i = 0; i < up->agents.n; i++)
        up_agent_free(up->agents.at[i]);
    vec_done(&up->agents);
}
