/* Simulated vLLM servers: see serving.h for what makes a pod a server.
 *
 *     serving_put     an HTTP server on the pod's address, around one replica model
 *     serving_pick    the router: the least loaded server of a model takes the next request
 *     serving_drain   the pod is being deleted: waiting requests go to another server, running ones finish
 *     serving_remove  whatever is left moves to another server too
 *
 * A server has no timer. Its model is advanced when something looks at it: a scrape of /metrics, or
 * traffic.c before it places a request. So a page is exact at the moment it is read, and an idle server
 * costs nothing.
 *
 * struct serving owns the servers. Requests that lose their server are handed to `orphaned`, so that none is
 * lost by scaling down; a request keeps its arrival time, which is what its latency is measured from. */
#include "serving.h"

#include "replica_metrics.h"

#include "../base/clock.h"
#include "../net/http_server.h"
#include "../prom/exposition.h"

#include <math.h>

static const struct {
    const char *name;
    struct replica_profile profile;
} accelerators[] = {
    /* a model of some 30 billion parameters, by order of magnitude */
    { "L40S", { 45, 0.1, 0.15, 0.0008, 0.03, 1600, 16, 32, 2048 } },
    { "A100", { 28, 0.08, 0.08, 0.00042, 0.03, 4000, 16, 64, 2048 } },
    { "H100", { 18, 0.06, 0.05, 0.00024, 0.03, 6000, 16, 96, 2048 } },
};

/* The speed and cache size of an accelerator by its name, in any case. */
static int find_profile(str name, struct replica_profile *ret, err_t *e)
{
    for (size_t i = 0; i < countof(accelerators); i++)
        if (str_eq_nocase(name, str_c(accelerators[i].name))) {
            *ret = accelerators[i].profile;
            return 0;
        }
    return err_set(e, EINVAL, "accelerator is \"" STR_FMT "\", but must be L40S, A100 or H100",
                   STR_ARG(name));
}

/* A port named "metrics", else the annotation's, else vLLM's own. */
static int find_port(const struct serving_pod *pod, uint16_t *ret, err_t *e)
{
    int64_t port = 8000;
    if (pod->port.n && (str_to_i64(pod->port, &port) < 0 || port < 1 || port > 65535))
        return err_set(e, EINVAL,
                       "prometheus.io/port is \"" STR_FMT "\", but must be a port number",
                       STR_ARG(pod->port));
    for (size_t i = 0; i < json_len(pod->containers); i++) {
        const struct json *ports = json_get(json_item(pod->containers, i), "ports");
        for (size_t k = 0; k < json_len(ports); k++)
            if (str_eqc(json_text(json_get(json_item(ports, k), "name")), "metrics"))
                port = json_int(json_get(json_item(ports, k), "containerPort"), port);
    }
    *ret = (uint16_t)port;
    return 0;
}

/* Serves /metrics at the current time, and /health. */
static void answer_request(void *context, struct exchange *x)
{
    struct vllm_server *server = context;
    str path = exchange_path(x);
    auto_buf struct buf text = { 0 };
    if (str_eq(path, S("/metrics"))) {
        replica_advance(&server->replica, loop_wall_ns(server->of->loop));
        replica_print_metrics(&server->replica, str_c(server->model), &text);
        exchange_answer_buf(x, 200, HTTP_HEADERS({ S("content-type"), S(EXPOSITION_CONTENT_TYPE) }),
                            &text);
    } else if (str_eq(path, S("/health"))) {
        exchange_answer(x, 200, HTTP_HEADERS({ S("content-type"), S("text/plain") }), S(""));
    } else {
        exchange_answer(x, 404, HTTP_HEADERS({ S("content-type"), S("text/plain") }),
                        S("not found; a simulated server has /metrics and /health\n"));
    }
}

static struct vllm_server *find_server(const struct serving *s, str ns, str name, size_t *ret_at)
{
    for (size_t i = 0; i < s->servers.n; i++)
        if (str_eqc(name, s->servers.at[i]->name) && str_eqc(ns, s->servers.at[i]->ns)) {
            *ret_at = i;
            return s->servers.at[i];
        }
    return NULL;
}

static void server_free(struct vllm_server *server)
{
    http_server_free(server->http);
    replica_done(&server->replica);
    free(server->ns);
    free(server->name);
    free(server->model);
    free(server);
}

/* The seed of a server is its number, so the same scenario gives the same noise in every run. */
int serving_put(struct serving *s, const struct serving_pod *pod, err_t *e)
{
    struct replica_profile profile;
    uint16_t port;
    size_t at;
    if (find_server(s, pod->ns, pod->name, &at))
        return 0;
    int r = find_profile(pod->accelerator.n ? pod->accelerator : S("A100"), &profile, e);
    r = r < 0 ? r : find_port(pod, &port, e);
    if (r < 0)
        return r;
    struct vllm_server *server = mem_zero(1, sizeof(*server));
    server->of = s;
    char *ip = mem_dup(pod->ip.p, pod->ip.n);
    r = http_server_new(s->loop,
                        &(struct http_server_options){ .address = ip,
                                                       .port = port,
                                                       .on_request = answer_request,
                                                       .context = server,
                                                       .max_connections = 64,
                                                       .max_body_bytes = 4096 },
                        &server->http, e);
    free(ip);
    if (r < 0) {
        free(server);
        return r;
    }
    replica_init(&server->replica, &profile, pod->now_ns, ++s->made);
    server->ns = mem_dup(pod->ns.p, pod->ns.n);
    server->name = mem_dup(pod->name.p, pod->name.n);
    server->model = mem_dup(pod->model.p, pod->model.n);
    vec_push(&s->servers, server);
    return 0;
}

struct eviction { /* of requests from a server that goes away; both borrowed */
    struct serving *serving;
    const struct vllm_server *from;
};

static void reroute_request(void *context, struct replica_request request)
{
    struct eviction *eviction = context;
    if (eviction->serving->orphaned)
        eviction->serving->orphaned(eviction->serving->context, eviction->from, request);
}

bool serving_drain(struct serving *s, str ns, str name, int64_t now_ns)
{
    static const int64_t grace_ns = 30 * NS_PER_S;
    size_t at;
    struct vllm_server *server = find_server(s, ns, name, &at);
    if (!server)
        return false;
    if (!server->drained_ns) {
        server->drained_ns = now_ns + grace_ns;
        replica_give_back(&server->replica, reroute_request, &(struct eviction){ s, server });
    }
    replica_advance(&server->replica, now_ns);
    return !replica_is_idle(&server->replica) && now_ns < server->drained_ns;
}

void serving_remove(struct serving *s, str ns, str name)
{
    size_t at;
    struct vllm_server *server = find_server(s, ns, name, &at);
    if (!server)
        return;
    vec_remove(&s->servers, at);
    replica_evict(&server->replica, reroute_request, &(struct eviction){ s, server });
    server_free(server);
}

void serving_done(struct serving *s)
{
    for (size_t i = 0; i < s->servers.n; i++)
        server_free(s->servers.at[i]);
    vec_done(&s->servers);
}

/* The same rule as the router of `flyball simulate` (fleet.h): least load, servers that drain excepted. */
struct vllm_server *serving_pick(const struct serving *s, str ns, str model)
{
    struct vllm_server *best = NULL;
    double least = INFINITY;
    for (size_t i = 0; i < s->servers.n; i++) {
        struct vllm_server *server = s->servers.at[i];
        double load = replica_load(&server->replica);
        if (load < least && !server->drained_ns && str_eqc(ns, server->ns) &&
            str_eqc(model, server->model)) {
            best = server;
            least = load;
        }
    }
    return best;
}
