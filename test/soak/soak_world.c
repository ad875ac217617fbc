/* What runs in a soak, on one virtual loop: client and server communicate through the API, as processes would. */
#include "soak.h"

#include "apiserver/apiserver.h"
#include "cmd/manifests.h"
#include "market/market_agent.h"
#include "market/market_controller.h"
#include "net/http_server.h"
#include "net/loop_internal.h"
#include "prom/exposition.h"
#include "runtimeconfig/runtimeconfig_controller.h"
#include "saturation/saturation_controller.h"
#include "schedule/schedule_controller.h"
#include "testbed/cpu.h"
#include "testbed/testbed.h"

#include <stdio.h>
#include <unistd.h>

static const int64_t START_S = 1800000000; /* 2027-01-15T08:00:00Z */

static const struct feature *const operator_features[] = {
    &market_feature,
    &runtimeconfig_feature,
    &saturation_feature,
    &schedule_feature,
};

/* ---- time */

static void on_reached(struct timer *timer)
{
    (void)timer; /* only there for time to reach it */
}

void world_run_for(struct soak_world *w, int64_t ns)
{
    struct timer timer = { 0 };
    timer_set(w->loop, &timer, loop_mono_ns(w->loop) + ns, on_reached);
    while (timer_is_set(&timer))
        loop_turn(w->loop);
}

size_t world_timers(const struct soak_world *w)
{
    return w->loop->timers.n;
}

/* ---- requests */

static void on_answer(void *context, const struct kube_reply *reply)
{
    struct soak_world *w = context;
    w->pending--;
    w->answered++;
    if (!reply->failure)
        return;
    if (reply->code == 404 || reply->code == 409) {
        w->raced++;
        return;
    }
    if (!w->refused++)
        snprintf(w->first_refusal, sizeof(w->first_refusal), "%s", reply->failure);
}

void world_send(struct soak_world *w, const struct kube_request *request)
{
    struct kube_request r = *request;
    r.done = on_answer;
    r.context = w;
    w->pending++;
    kube_send(w->kube, &r);
}

void world_drain(struct soak_world *w)
{
    while (w->pending)
        loop_turn(w->loop);
}

struct count {
    int64_t value;
    bool done;
};

static void on_counted(void *context, const struct kube_reply *reply)
{
    struct count *c = context;
    const struct json *more = json_at(reply->object, "metadata", "remainingItemCount", NULL);
    c->done = true;
    c->value = reply->failure
                   ? -1
                   : (int64_t)json_len(json_get(reply->object, "items")) + json_int(more, 0);
}

int64_t world_count(struct soak_world *w, const struct resource *resource)
{
    struct count c = { 0 };
    kube_send(w->kube, &(struct kube_request){ .verb = KUBE_LIST,
                                               .resource = resource,
                                               .query = S("limit=1"),
                                               .done = on_counted,
                                               .context = &c });
    while (!c.done)
        loop_turn(w->loop);
    return c.value;
}

/* ---- the server and its clients */

static int client_new(struct soak_world *w, const char *agent, struct kube **ret, err_t *e)
{
    struct kube_config config = { .where = S("the soak"),
                                  .server = str_c(apiserver_url(w->server)),
                                  .token = str_c(apiserver_admin_token(w->server)),
                                  .ns = S("default") };
    return kube_new(&(struct kube_options){ .loop = w->loop,
                                            .config = &config,
                                            .user_agent = str_c(agent),
                                            .metrics = w->metrics,
                                            .rate = -1 },
                    ret, e);
}

static void on_request(void *context, struct exchange *x)
{
    struct soak_world *w = context;
    auto_buf struct buf text = { 0 };
    exposition_write(&text, w->metrics);
    exchange_answer_buf(x, 200, HTTP_HEADERS({ S("content-type"), S(EXPOSITION_CONTENT_TYPE) }),
                        &text);
}

static void define_kinds(struct soak_world *w, const struct manifest *m)
{
    for (; m->name; m++) {
        auto_arena struct arena a = { 0 };
        struct json *documents = NULL;
        if (manifest_read(m, &a, &documents, NULL) < 0)
            continue;
        for (size_t i = 0; i < json_len(documents); i++)
            world_send(w,
                       &(struct kube_request){ .verb = KUBE_CREATE,
                                               .resource = &resource_crds,
                                               .body = json_to_str(&a, json_item(documents, i)) });
        world_drain(w);
    }
}

int world_start(struct soak_world *w, err_t *e)
{
    snprintf(w->cgroup_root, sizeof(w->cgroup_root), "%s/nodes", w->dir);
    for (size_t i = 0; i < SOAK_NODES; i++)
        snprintf(w->agents[i].node, sizeof(w->agents[i].node), "market-%zu", i);
    w->metrics = metrics_new();
    int r = loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL,
                                             .start_wall_ns = START_S * NS_PER_S },
                     &w->loop, e);
    r = r < 0 ? r
              : apiserver_new(w->loop,
                              &(struct apiserver_options){ .data = w->dir, .insecure_http = true },
                              &w->server, e);
    r = r < 0 ? r
              : http_server_new(w->loop,
                                &(struct http_server_options){ .on_request = on_request,
                                                               .context = w },
                                &w->http, e);
    if (r < 0)
        return r;
    snprintf(w->metrics_url, sizeof(w->metrics_url), "http://127.0.0.1:%u",
             http_server_port(w->http));
    r = client_new(w, "soak", &w->kube, e);
    if (r < 0)
        return r;
    define_kinds(w, manifests_crds);
    define_kinds(w, manifests_shapes);
    world_run_for(w, 2 * NS_PER_S); /* until the kinds are served */
    return 0;
}

/* ---- managers */

static const char *world_setting(void *context, const char *name)
{
    const struct soak_world *w = context;
    if (!strcmp(name, "testbed-metrics-url"))
        return w->metrics_url;
    if (!strcmp(name, "testbed-cgroup-root"))
        return w->cgroup_root;
    return strcmp(name, "testbed-tick") == 0 ? "5s" : NULL;
}

static const char *agent_setting(void *context, const char *name)
{
    const struct soak_agent *agent = context;
    if (!strcmp(name, "node-name"))
        return agent->node;
    return strcmp(name, "cgroup-root") == 0 ? agent->root : NULL;
}

static int run_manager(struct kube *kube, const char *identity, void *context,
                       const char *(*setting)(void *, const char *),
                       const struct feature *const *features, size_t n, struct manager **ret,
                       err_t *e)
{
    int r = manager_new(&(struct manager_options){ .kube = kube,
                                                   .identity = str_c(identity),
                                                   .seed = 1,
                                                   .setting = setting,
                                                   .context = context },
                        ret, e);
    for (size_t i = 0; r >= 0 && i < n; i++)
        r = manager_add(*ret, features[i], e);
    return r < 0 ? r : manager_run(*ret, e);
}

static int start_operator(struct soak_world *w, err_t *e)
{
    int r = client_new(w, "operator", &w->operator_kube, e);
    return r < 0 ? r
                 : run_manager(w->operator_kube, "operator", w, world_setting, operator_features,
                               countof(operator_features), &w->operator, e);
}

static int start_testbed(struct soak_world *w, err_t *e)
{
    static const struct feature *const features[] = { &testbed_feature };
    int r = client_new(w, "testbed", &w->testbed_kube, e);
    return r < 0 ? r
                 : run_manager(w->testbed_kube, "testbed", w, world_setting, features, 1,
                               &w->testbed, e);
}

static int start_agent(struct soak_world *w, struct soak_agent *agent, err_t *e)
{
    static const struct feature *const features[] = { &market_agent_feature };
    char pods[300];
    agent->world = w;
    snprintf(agent->root, sizeof(agent->root), "%s/%s", w->cgroup_root, agent->node);
    snprintf(pods, sizeof(pods), "%s/kubepods", agent->root);
    int r = cpu_files_make(w->cgroup_root, str_c(agent->node), pods, e);
    r = r < 0 ? r : client_new(w, "agent", &agent->kube, e);
    return r < 0 ? r
                 : run_manager(agent->kube, agent->node, agent, agent_setting, features, 1,
                               &agent->manager, e);
}

int world_start_controllers(struct soak_world *w, err_t *e)
{
    int r = start_testbed(w, e);
    r = r < 0 ? r : start_operator(w, e);
    for (size_t i = 0; r >= 0 && i < SOAK_NODES; i++)
        r = start_agent(w, &w->agents[i], e);
    return r;
}

static void on_stopped(void *context)
{
    *(bool *)context = true;
}

static void stop_manager(struct soak_world *w, struct manager **manager, struct kube **kube)
{
    bool stopped = !*manager;
    if (*manager)
        manager_stop(*manager, on_stopped, &stopped);
    while (!stopped)
        loop_turn(w->loop);
    manager_free(*manager);
    kube_free(*kube);
    *manager = NULL;
    *kube = NULL;
}

int world_restart_operator(struct soak_world *w, err_t *e)
{
    stop_manager(w, &w->operator, & w->operator_kube);
    return start_operator(w, e);
}

int world_restart_testbed(struct soak_world *w, err_t *e)
{
    stop_manager(w, &w->testbed, &w->testbed_kube);
    return start_testbed(w, e);
}

int world_restart_agent(struct soak_world *w, size_t agent, err_t *e)
{
    stop_manager(w, &w->agents[agent].manager, &w->agents[agent].kube);
    return start_agent(w, &w->agents[agent], e);
}

static void on_drained(void *context)
{
    *(bool *)context = true;
}

void world_stop(struct soak_world *w)
{
    stop_manager(w, &w->operator, & w->operator_kube);
    for (size_t i = 0; i < SOAK_NODES; i++)
        stop_manager(w, &w->agents[i].manager, &w->agents[i].kube);
    stop_manager(w, &w->testbed, &w->testbed_kube);
    kube_free(w->kube);
    http_server_free(w->http);
    if (w->server) {
        bool drained = false;
        apiserver_drain(w->server, 10 * NS_PER_S, on_drained, &drained);
        while (!drained)
            loop_turn(w->loop);
        apiserver_free(w->server);
    }
}
