/* Whether requests wait for a model: the queue of the gateway. See saturation_wake.h.
 *
 * The gateway's endpoint picker (EPP) holds requests for a model without endpoints and exports how
 * many. There are two ways to that number, and both are used if both exist:
 *
 *     Prometheus            one query for all models, every 5 s
 *     InferencePool ─► Service of its picker ─► ready pods ─► GET /metrics, every second
 *
 * Both are polled only while a model sleeps, is being started, or is about to sleep. The number is a
 * gauge, so a watch does not exist. Pools, Services and pods are watched; a poll asks the API
 * server for nothing. A picker that does not answer is asked less often, at most every ten seconds.
 *
 * The invariant: what cannot be read is unknown, which neither starts a model nor lets one sleep. A
 * picker that answers without the metric has no queue (its feature flowControl is off).
 *
 * A series of Prometheus may lack the namespace (pickers do not export it; scrape configurations
 * add it). Then it counts only for a model ID that one namespace has: a tenant cannot wake the models of
 * others by sending requests to a gateway of their own. */
#include "../base/file.h"
#include "../base/log.h"
#include "../base/vec.h"
#include "../prom/scrape.h"
#include "saturation_wake.h"

static const int64_t query_period_ns = 5 * NS_PER_S, backoff_most_ns = 10 * NS_PER_S;
static const int64_t scrape_timeout_ns = 5 * NS_PER_S, discovery_ns = 300 * NS_PER_S;
static const char token_path[] = "/var/run/secrets/epp-metrics/token";
enum { PAGE_BYTES_MAX = 8 << 20, TOKEN_BYTES_MAX = 16 << 10, POOL_KINDS = 2 };

/* ---- records */

struct pool_record { /* an InferencePool */
    struct record meta;
    const struct labels *selector;
    str picker; /* the Service of its endpoint picker */
};

struct service_record {
    struct record meta;
    const struct labels *selector;
    str ports; /* JSON */
};

#define AT(type, member) offsetof(struct type, member)

static const struct field new_pool_fields[] = {
    { "spec.selector.matchLabels", F_MAP, AT(pool_record, selector) },
    { "spec.endpointPickerRef.name", F_STR, AT(pool_record, picker) },
};
static const struct field old_pool_fields[] = {
    { "spec.selector", F_MAP, AT(pool_record, selector) },
    { "spec.extensionRef.name", F_STR, AT(pool_record, picker) },
};
static const struct field service_fields[] = {
    { "spec.selector", F_MAP, AT(service_record, selector) },
    { "spec.ports", F_RAW, AT(service_record, ports) },
};
static const struct fields pool_kept[POOL_KINDS] = {
    { sizeof(struct pool_record), new_pool_fields, countof(new_pool_fields) },
    { sizeof(struct pool_record), old_pool_fields, countof(old_pool_fields) },
};
static const struct fields service_kept = { sizeof(struct service_record), service_fields,
                                            countof(service_fields) };
static const char *const pool_versions[POOL_KINDS] = { "inference.networking.k8s.io/v1",
                                                       "inference.networking.x-k8s.io/v1alpha2" };

struct gateway { /* the picker of a pool that is being polled */
    struct list_item item;
    struct list reads; /* struct picker_read: in progress */
    bool needed;
    int64_t next_ns, delay_ns;
    str ns, name; /* of the pool; parts of `key` */
    char key[];
};

struct picker_read { /* one GET of one pod of a picker */
    struct list_item item;
    struct waker *waker;
    struct gateway *gateway;
    struct http_client *client;
    struct http_call *call;
};

struct waker {
    struct saturation *s;
    struct timer timer, discovery;
    struct prom_call *query; /* NULL: none is running */
    int64_t queried_ns;
    struct cache *pools[POOL_KINDS], *services; /* NULL: not known to the cluster, or not needed */
    int looked_up;                              /* answers of the discovery still to come */
    struct list gateways;                       /* struct gateway, owned */
};

static int64_t now_ns(const struct waker *w)
{
    return loop_mono_ns(manager_loop(w->s->manager));
}

/* Whether `all` has every pair of `some`, which is not empty. */
static bool labels_include(const struct labels *all, const struct labels *some)
{
    for (size_t i = 0; some && i < some->n; i++) {
        bool found = false;
        for (size_t k = 0; all && k < all->n; k++)
            found |= str_eq(word_str(all->at[k].key), word_str(some->at[i].key)) &&
                     str_eq(word_str(all->at[k].value), word_str(some->at[i].value));
        if (!found)
            return false;
    }
    return some && some->n;
}

/* ---- which pool serves a model */

struct pools {
    struct wake_pool *at;
    const struct pool_record **records;
    size_t n;
};

/* The pools of all namespaces that have a picker; an empty selector selects nothing. */
static struct pools read_pools(const struct waker *w, struct arena *a)
{
    struct pools all = { 0 };
    size_t cap = 0;
    for (size_t k = 0; k < POOL_KINDS; k++)
        cap += w->pools[k] ? cache_count(w->pools[k]) : 0;
    all.at = arena_array(a, cap, sizeof(*all.at));
    all.records = arena_array(a, cap, sizeof(*all.records));
    for (size_t k = 0; k < POOL_KINDS; k++) {
        const struct pool_record *r;
        if (!w->pools[k])
            continue;
        cache_each(r, w->pools[k]) {
            struct wake_pool *p = &all.at[all.n];
            *p = (struct wake_pool){ .ns = r->meta.ns, .name = r->meta.name };
            p->selector = sat_label_pairs(a, r->selector, &p->selector_n);
            all.records[all.n] = r;
            all.n += p->selector_n && r->picker.n;
        }
    }
    return all;
}

static const struct pool_record *find_pool(const struct waker *w, struct arena *a,
                                           const struct pools *pools, const struct variant *v)
{
    const struct workload_record *workload = saturation_get_workload(w->s, v);
    size_t n;
    if (!workload || !pools->n)
        return NULL;
    const struct text_pair *labels =
        sat_label_pairs(a, workload->has_leader ? workload->leader_labels : workload->pod_labels,
                        &n);
    const struct wake_pool *found = wake_find_pool(pools->at, pools->n, v->ns, labels, n);
    return found ? pools->records[found - pools->at] : NULL;
}

static bool has_pool(const struct waker *w, struct arena *a, const struct pools *pools,
                     const struct sat_model *m, str pool)
{
    list_each(const struct variant, v, &m->variants, of_model) {
        const struct pool_record *r = find_pool(w, a, pools, v);
        if (r && (!pool.n || str_eq(r->meta.name, pool)))
            return true;
    }
    return false;
}

bool saturation_wake_has_signal(const struct saturation *s, const struct sat_model *m)
{
    auto_arena struct arena a = { 0 };
    if (s->collector.prometheus)
        return true;
    struct pools pools = read_pools(s->waker, &a);
    return has_pool(s->waker, &a, &pools, m, S(""));
}

/* ---- Prometheus */

static bool is_only_namespace(const struct saturation *s, const struct sat_model *m)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&s->models, slot));) {
        const struct sat_model *other = slot->value;
        if (other != m && str_eq(other->id, m->id))
            return false;
    }
    return true;
}

/* The demand for one model in an answer about all of them. */
static enum wake_demand read_answer(const struct saturation *s, struct arena *a,
                                    const struct sat_model *m, const struct prom_result *result)
{
    struct wake_sample *samples = arena_array(a, result->n, sizeof(*samples));
    size_t n = 0;
    for (size_t i = 0; i < result->n; i++) {
        const struct prom_series *x = &result->series[i];
        str ns = prom_series_label(x, S("namespace"));
        if (ns.n ? !str_eq(ns, m->ns) : !is_only_namespace(s, m))
            continue;
        samples[n++] =
            (struct wake_sample){ .metric = S("llm_d_epp_flow_control_queue_size"),
                                  .model = prom_series_label(x, S("model_name")),
                                  .target_model = prom_series_label(x, S("target_model_name")),
                                  .value = x->samples[x->sample_n - 1].value };
    }
    return wake_read_demand(samples, n, m->id, WAKE_OURS);
}

static void on_answer(void *context, const struct prom_result *result, const err_t *failure)
{
    struct waker *w = context;
    w->query = NULL;
    if (!result) {
        log_debug("cannot read the queue of the gateway", KV_C("error", failure->text));
        return;
    }
    for (struct map_slot *slot = NULL; (slot = map_next(&w->s->models, slot));) {
        auto_arena struct arena a = { 0 };
        struct sat_model *m = slot->value;
        if (m->sleep.watched)
            saturation_wake_take(w->s, m, read_answer(w->s, &a, m, result), "prometheus");
    }
}

/* The highest value of the last 15 s: a queue that emptied between two queries still counts. `or`
 * keeps the older name of a series only if the newer one is absent. */
#define QUEUED(metric)                                                                             \
    "sum by (namespace, model_name, target_model_name) (max_over_time(" metric "[15s]))"

static void send_query(struct waker *w)
{
    int64_t now = now_ns(w);
    if (!w->s->collector.prometheus || w->query ||
        (w->queried_ns && now - w->queried_ns < query_period_ns))
        return;
    w->queried_ns = now;
    w->query =
        prom_client_query(w->s->collector.prometheus,
                          &(struct prom_query){
                              .promql = S(QUEUED("llm_d_epp_flow_control_queue_size") " or " QUEUED(
                                  "inference_extension_flow_control_queue_size")),
                              .deadline_ns = now + 2 * query_period_ns,
                              .retry = { .attempts = 1 },
                              .on_done = on_answer,
                              .context = w });
}

/* ---- pickers */

static void read_free(struct picker_read *r)
{
    list_remove(&r->item);
    if (r->call)
        http_call_cancel(r->call);
    http_client_free(r->client);
    free(r);
}

static void gateway_free(struct gateway *g)
{
    for (struct picker_read *r; (r = list_first(&g->reads, struct picker_read, item));)
        read_free(r);
    list_remove(&g->item);
    free(g);
}

struct page {
    struct arena arena;
    VEC(struct wake_sample) samples;
};

static int take_sample(void *context, const struct scrape_sample *s, err_t *e)
{
    struct page *page = context;
    (void)e;
    if (!wake_is_queue_metric(s->name))
        return 0;
    struct wake_sample sample = {
        .metric = arena_str(&page->arena, s->name),
        .model = arena_str(&page->arena, scrape_label(s, S("model_name"))),
        .target_model = arena_str(&page->arena, scrape_label(s, S("target_model_name"))),
        .value = s->value,
    };
    vec_push(&page->samples, sample);
    return 0;
}

/* One page of a picker is about all models of its pool. */
static bool take_page(const struct picker_read *r, str text)
{
    struct saturation *s = r->waker->s;
    struct page page = { 0 };
    bool valid = scrape_read(text, take_sample, &page, NULL) == 0;
    struct pools pools = read_pools(r->waker, &page.arena);
    for (struct map_slot *slot = NULL; valid && (slot = map_next(&s->models, slot));) {
        struct sat_model *m = slot->value;
        if (m->sleep.watched && str_eq(m->ns, r->gateway->ns) &&
            has_pool(r->waker, &page.arena, &pools, m, r->gateway->name))
            saturation_wake_take(s, m,
                                 wake_read_demand(page.samples.at, page.samples.n, m->id,
                                                  WAKE_OURS),
                                 "gateway");
    }
    vec_done(&page.samples);
    arena_done(&page.arena);
    return valid;
}

static void on_page(void *context, const struct http_response *response, const err_t *failure)
{
    struct picker_read *r = context;
    struct gateway *g = r->gateway;
    r->call = NULL;
    bool read = !failure && response->status == 200 && take_page(r, response->body);
    if (!read)
        log_debug("cannot read the queue of the gateway", KV("namespace", g->ns),
                  KV("pool", g->name), KV_C("error", failure ? failure->text : "no metrics"));
    g->delay_ns = read ? 0 : MIN(MAX(2 * g->delay_ns, NS_PER_S), backoff_most_ns);
    g->next_ns = now_ns(r->waker) + g->delay_ns;
    read_free(r);
}

/* Pickers may require a token that may read metrics; the file is read again for every page. */
static void add_token(void *context, struct http_header_list *list)
{
    (void)context;
    const char *given = getenv("EPP_METRIC_READER_BEARER_TOKEN");
    auto_buf struct buf token = { 0 }, value = { 0 };
    if (given && *given)
        buf_put(&token, str_c(given));
    else if (file_read(token_path, TOKEN_BYTES_MAX, &token, NULL) < 0)
        return;
    buf_printf(&value, "Bearer " STR_FMT, STR_ARG(str_trim(buf_str(&token))));
    http_header_list_add(list, S("authorization"), buf_str(&value));
}

static void read_picker(struct waker *w, struct gateway *g, str ip, int64_t port)
{
    struct loop *loop = manager_loop(w->s->manager);
    bool v6 = str_find_char(ip, ':') != SIZE_MAX;
    auto_buf struct buf url = { 0 };
    struct http_client *client;
    err_t e;
    buf_printf(&url, "http://%s" STR_FMT "%s:%lld", v6 ? "[" : "", STR_ARG(ip), v6 ? "]" : "",
               (long long)port);
    if (http_client_new(loop,
                        &(struct http_client_options){ .url = buf_str(&url),
                                                       .authorize = add_token },
                        &client, &e) < 0)
        return;
    struct picker_read *r = mem_zero(1, sizeof(*r));
    *r = (struct picker_read){ .waker = w, .gateway = g, .client = client };
    list_append(&g->reads, &r->item);
    r->call =
        http_client_fetch(client, &(struct http_fetch){
                                      .method = S("GET"),
                                      .target = S("/metrics"),
                                      .headers = HTTP_HEADERS({ S("accept"), S(SCRAPE_ACCEPT) }),
                                      .deadline_ns = loop_mono_ns(loop) +
                                                     loop_scale_timeout(loop, scrape_timeout_ns),
                                      .max_body_bytes = PAGE_BYTES_MAX,
                                      .on_done = on_page,
                                      .context = r });
}

/* The port of a pod behind the first port of the Service whose name contains "metric"; 0: none. */
static int64_t find_port(struct arena *a, const struct service_record *service,
                         const struct replica_record *pod)
{
    struct json *list = NULL;
    if (!service->ports.n || json_parse(a, service->ports, &list, NULL) < 0)
        return 0;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *port = json_item(list, i), *target = json_get(port, "targetPort");
        if (str_find(json_text(json_get(port, "name")), S("metric")) == SIZE_MAX)
            continue;
        if (json_is(target, JSON_STR)) /* a name: only the usual one is known */
            return str_eqc(json_text(target), "metrics") ? pod->port : 0;
        return json_int(target, json_int(json_get(port, "port"), 0));
    }
    return 0;
}

/* Reads every ready pod that the Service selects. */
static void read_pods(struct waker *w, struct gateway *g, struct arena *a,
                      const struct service_record *service)
{
    const struct replica_record *pod;
    cache_each(pod, w->s->pods) {
        if (!str_eq(pod->meta.ns, service->meta.ns) || pod->deleting || !pod->ip.n ||
            !str_eqc(pod->ready, "True") || !labels_include(pod->labels, service->selector))
            continue;
        int64_t port = find_port(a, service, pod);
        if (port > 0)
            read_picker(w, g, pod->ip, port);
    }
}

static struct gateway *find_gateway(struct waker *w, const struct pool_record *pool)
{
    list_each(struct gateway, g, &w->gateways, item)
        if (str_eq(g->ns, pool->meta.ns) && str_eq(g->name, pool->meta.name))
            return g;
    struct gateway *g = mem_zero(1, sizeof(*g) + pool->meta.ns.n + pool->meta.name.n + 1);
    memcpy(g->key, pool->meta.ns.p, pool->meta.ns.n);
    memcpy(g->key + pool->meta.ns.n, pool->meta.name.p, pool->meta.name.n);
    g->ns = (str){ g->key, pool->meta.ns.n };
    g->name = (str){ g->key + g->ns.n, pool->meta.name.n };
    list_append(&w->gateways, &g->item);
    return g;
}

static void read_gateway(struct waker *w, struct arena *a, const struct pool_record *pool)
{
    struct gateway *g = find_gateway(w, pool);
    const struct service_record *service = cache_get(w->services, pool->meta.ns, pool->picker);
    if (g->needed || g->reads.n || now_ns(w) < g->next_ns) {
        g->needed = true;
        return;
    }
    g->needed = true;
    if (service)
        read_pods(w, g, a, service);
}

static void read_gateways(struct waker *w)
{
    auto_arena struct arena a = { 0 };
    struct pools pools = read_pools(w, &a);
    list_each(struct gateway, g, &w->gateways, item)
        g->needed = false;
    for (struct map_slot *slot = NULL; w->services && (slot = map_next(&w->s->models, slot));) {
        const struct sat_model *m = slot->value;
        if (!m->sleep.watched)
            continue;
        list_each(const struct variant, v, &m->variants, of_model) {
            const struct pool_record *pool = find_pool(w, &a, &pools, v);
            if (pool)
                read_gateway(w, &a, pool);
        }
    }
    for (struct gateway *g = list_first(&w->gateways, struct gateway, item), *next; g; g = next) {
        next = list_owner(g->item.next, struct gateway, item);
        if (!g->needed && !g->reads.n)
            gateway_free(g);
    }
}

/* ---- polling */

static void on_poll(struct timer *timer)
{
    struct waker *w = container_of(timer, struct waker, timer);
    bool any = false;
    for (struct map_slot *slot = NULL; (slot = map_next(&w->s->models, slot));)
        any |= ((const struct sat_model *)slot->value)->sleep.watched;
    if (!any || !manager_leads(w->s->manager))
        return;
    send_query(w);
    read_gateways(w);
    saturation_wake_poll(w->s);
}

void saturation_wake_poll(struct saturation *s)
{
    struct waker *w = s->waker;
    bool has_source = s->collector.prometheus || w->pools[0] || w->pools[1];
    if (has_source && s->o.wake_ns && !timer_is_set(&w->timer))
        timer_set(manager_loop(s->manager), &w->timer, now_ns(w) + s->o.wake_ns, on_poll);
}

/* ---- pools may be installed later */

static void discover_pools(struct timer *timer);

static void on_pools_discovered(void *context, const struct resource *resource, const char *failure)
{
    struct waker *w = context;
    struct loop *loop = manager_loop(w->s->manager);
    (void)failure;
    w->looked_up--;
    if (resource) {
        size_t k = strcmp(resource->group, "inference.networking.k8s.io") != 0;
        struct cache_spec spec = { .resource = resource,
                                   .need = CACHE_IF_ALLOWED,
                                   .keep = &pool_kept[k] };
        struct cache_spec services = { .resource = &resource_services,
                                       .need = CACHE_IF_ALLOWED,
                                       .keep = &service_kept };
        err_t e;
        if (manager_cache(w->s->manager, &spec, &w->pools[k], &e) < 0 ||
            (!w->services && manager_cache(w->s->manager, &services, &w->services, &e) < 0))
            log_error("cannot open a cache", KV_C("error", e.text));
    }
    if (!w->looked_up && !(w->pools[0] && w->pools[1]))
        timer_set(loop, &w->discovery, loop_mono_ns(loop) + discovery_ns, discover_pools);
}

static void discover_pools(struct timer *timer)
{
    struct waker *w = container_of(timer, struct waker, discovery);
    for (size_t k = 0; k < POOL_KINDS; k++)
        w->looked_up += !w->pools[k];
    for (size_t k = 0; k < POOL_KINDS; k++)
        if (!w->pools[k])
            kube_discover(manager_kube(w->s->manager), str_c(pool_versions[k]), S("InferencePool"),
                          on_pools_discovered, w);
}

void saturation_wake_start(struct saturation *s)
{
    struct loop *loop = manager_loop(s->manager);
    s->waker = mem_zero(1, sizeof(*s->waker));
    s->waker->s = s;
    if (s->o.wake_ns)
        timer_set(loop, &s->waker->discovery, loop_mono_ns(loop), discover_pools);
}

void saturation_wake_stop(struct saturation *s)
{
    struct waker *w = take(s->waker);
    if (!w)
        return;
    timer_stop(&w->timer);
    timer_stop(&w->discovery);
    kube_discover_forget(manager_kube(s->manager), w);
    if (w->query)
        prom_call_cancel(w->query);
    for (struct gateway *g; (g = list_first(&w->gateways, struct gateway, item));)
        gateway_free(g);
    free(w);
}
