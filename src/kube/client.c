/* The API client: connections, outage detection and the write gate. A single call is in call.c; when it is sent is decided in
 * send.c.
 *
 * The write gate: until `gate_ns` of the monotonic clock writes may be sent. When that time passes, writes
 * in flight are cancelled and waiting ones fail. This is what makes leader election safe (election.h).
 *
 * Outages: kube_note_status() sees every response. If the server responds after 5 s or more without a
 * response, the functions registered with kube_on_recovery() are called, so nothing waits for the end of
 * its backoff. Shorter gaps are broken connections. While a caller's write waits for the server (kube_probe()), one
 * request per second asks whether it is back, instead of the retries of every key.
 *
 * Ownership: the client owns a copy of the config, whose arena also holds texts that live as long as the
 * client, and every call that has not ended. */
#include "client_internal.h"

#include "../base/log.h"

/* Reads a steady trickle of events in batches: at 440 events per second one costs 47 us of CPU with a delay of
 * 10 ms and 19 us with this one, on the same busy machine. The first event after a quiet period is not
 * delayed. */
static const int64_t rest_ns = 50 * NS_PER_MS;

static const int64_t away_least_ns = 5 * NS_PER_S; /* shorter gaps are broken connections */
static const int64_t probe_ns = NS_PER_S, probe_timeout_ns = 2 * NS_PER_S;
static const int64_t starting_most_ns = 30 * NS_PER_S;

/* ---- connections */

static int link_new(struct kube *k, struct kube_link **ret, err_t *e);

void kube_link_release(struct kube_link *link)
{
    if (link->calls || !link->retired)
        return;
    http_client_free(link->http);
    free(link);
}

static void link_retire(struct kube_link *link)
{
    if (!link)
        return;
    link->retired = true;
    kube_link_release(link);
}

static void add_authorization(void *context, struct http_header_list *list)
{
    credentials_authorize(((struct kube *)context)->credentials, list);
}

/* A plugin's client certificate replaces the config's; files are reloaded every 5 minutes. */
static int link_tls(struct kube *k, struct tls **ret, err_t *e)
{
    const struct kube_config *c = k->config;
    struct tls_client_options o = {
        .ca_pem = c->ca_pem,
        .ca_file = c->ca_file.n ? c->ca_file.p : NULL,
        .cert_pem = c->cert_pem,
        .cert_file = c->cert_file.n ? c->cert_file.p : NULL,
        .key_pem = c->key_pem,
        .key_file = c->key_file.n ? c->key_file.p : NULL,
        .server_name = c->tls_server_name,
        .skip_verify = c->skip_verify,
        .reload_ns = 300 * NS_PER_S,
    };
    if (c->exec)
        credentials_cert(k->credentials, &o.cert_pem, &o.key_pem);
    return tls_client_new(&o, ret, e);
}

/* New connections with the current client certificate; the TLS context is shared by reference. */
static int link_new(struct kube *k, struct kube_link **ret, err_t *e)
{
    struct tls *tls = NULL;
    int r = str_starts(k->config->server, S("https:")) ? link_tls(k, &tls, e) : 0;
    if (r < 0)
        return r;
    struct http_client_options o = { .url = k->config->server,
                                     .tls = tls,
                                     .user_agent = k->user_agent,
                                     .authorize = add_authorization,
                                     .context = k,
                                     .read_delay_ns = rest_ns };
    struct http_client *http;
    r = http_client_new(k->loop, &o, &http, e);
    tls_unref(tls);
    if (r < 0)
        return r;
    *ret = mem_zero(1, sizeof(**ret));
    (*ret)->http = http;
    return 0;
}

/* A credential plugin has exited: send the waiting calls, or fail them with the reason. */
static void on_credentials_change(void *context, const char *failure, bool cert)
{
    struct kube *k = context;
    struct kube_link *link;
    err_t e;
    if (!failure && cert) {
        if (link_new(k, &link, &e) < 0) {
            failure = e.text;
        } else {
            link_retire(k->link);
            k->link = link;
        }
    }
    if (!failure) {
        kube_pump(k);
        return;
    }
    struct list failing = { 0 }; /* a callback may cancel others and send new ones */
    for (struct sendqueue_item *next; (next = sendqueue_next(&k->waiting, 0));) {
        sendqueue_remove(&k->waiting, next);
        list_append(&failing, &next->flow);
    }
    for (struct kube_call *call; (call = list_first(&failing, struct kube_call, waiting.flow));)
        kube_call_fail(call, failure);
}

/* ---- the object */

/* A deep copy, so that the caller may free its config. */
static struct kube_config *config_copy(const struct kube_config *c)
{
    struct kube_config *copy = mem_zero(1, sizeof(*copy));
    *copy = *c;
    copy->arena = (struct arena){ 0 };
    str *texts[] = { &copy->where,    &copy->server,          &copy->ns,         &copy->ca_pem,
                     &copy->ca_file,  &copy->tls_server_name, &copy->cert_pem,   &copy->cert_file,
                     &copy->key_pem,  &copy->key_file,        &copy->token,      &copy->token_file,
                     &copy->username, &copy->password,        &copy->impersonate };
    for (size_t i = 0; i < countof(texts); i++)
        if (texts[i]->n)
            *texts[i] = arena_str(&copy->arena, *texts[i]);
    if (!c->exec)
        return copy;
    struct arena *a = &copy->arena;
    struct exec_plugin *x = arena_new(a, struct exec_plugin);
    *x = *c->exec;
    str *args = arena_array(a, x->arg_count, sizeof(str));
    struct exec_env *env = arena_array(a, x->env_count, sizeof(*env));
    for (size_t i = 0; i < x->arg_count; i++)
        args[i] = arena_str(a, x->args[i]);
    for (size_t i = 0; i < x->env_count; i++)
        env[i] = (struct exec_env){ arena_str(a, x->env[i].name), arena_str(a, x->env[i].value) };
    x->command = arena_str(a, x->command);
    x->api_version = arena_str(a, x->api_version);
    x->install_hint = arena_str(a, x->install_hint);
    x->cluster_json = arena_str(a, x->cluster_json);
    x->args = args;
    x->env = env;
    copy->exec = x;
    return copy;
}

/* Metric names and labels as in client-go, so that existing dashboards work. */
static void init_metrics(struct kube *k, struct metrics *given)
{
    static const double bounds[] = { 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2, 4, 8, 15, 30, 60 };
    k->own_metrics = given ? NULL : metrics_new();
    k->metrics = given ? given : k->own_metrics;
    k->requests =
        metrics_family(k->metrics,
                       &(struct metric_spec){ .name = "rest_client_requests_total",
                                              .help = "Requests to the API server by answer.",
                                              .kind = METRIC_COUNTER,
                                              .labels = { "code", "host", "method" } });
    k->durations =
        metrics_family(k->metrics,
                       &(struct metric_spec){ .name = "rest_client_request_duration_seconds",
                                              .help = "Time until the answer, without watches.",
                                              .kind = METRIC_HISTOGRAM,
                                              .labels = { "host", "verb" },
                                              .bounds = bounds,
                                              .bound_n = countof(bounds) });
    str host = k->config->server;
    size_t scheme = str_find(host, S("://"));
    k->host = scheme == SIZE_MAX ? host : str_from(host, scheme + 3);
    k->host = str_upto(k->host, str_find_char(k->host, '/'));
}

/* Refuses to send secrets without TLS. A plugin may return a token at any time, so it counts as one. */
static int check_secret(const struct kube_options *o, err_t *e)
{
    const struct kube_config *c = o->config;
    bool secret = c->token.n || c->token_file.n || c->password.n || c->exec;
    return secret && !o->insecure_token ? uri_check_secret(c->server, e) : 0;
}

int kube_new(const struct kube_options *o, struct kube **ret, err_t *e)
{
    struct kube *k = mem_zero(1, sizeof(*k));
    k->loop = o->loop;
    k->config = config_copy(o->config);
    k->user_agent = arena_str(&k->config->arena,
                              o->user_agent.n ? o->user_agent : S("flyball/" FLYBALL_VERSION));
    k->rate = MAX(o->rate, 0.0);
    limiter_init(&k->limiter, o->rate < 0 ? SIZE_MAX : 0);
    k->timeout_ns = o->timeout_ns > 0 ? o->timeout_ns : 60 * NS_PER_S;
    k->burst = o->burst > 0 ? o->burst : MAX(k->rate, 1.0);
    k->tokens = k->burst;
    k->tokens_ns = loop_mono_ns(k->loop);
    k->gate_ns = INT64_MAX;
    random_init(&k->random, (uint64_t)loop_exact_ns(k->loop),
                9); /* virtual time gives the same seed each run */
    init_metrics(k, o->metrics);
    k->tracer = o->tracer;
    k->credentials = credentials_new(k->loop, k->config, on_credentials_change, k);
    if (check_secret(o, e) < 0 || link_new(k, &k->link, e) < 0) {
        err_wrap(e, STR_FMT, STR_ARG(k->config->where));
        kube_free(k);
        return -e->code;
    }
    *ret = k;
    return 0;
}

void kube_free(struct kube *k)
{
    if (!k)
        return;
    for (struct kube_call *call; (call = list_first(&k->calls, struct kube_call, item));)
        kube_call_free(call);
    kube_lookups_free(k);
    sendqueue_done(&k->waiting);
    loop_cancel_deferred(&k->pump);
    timer_stop(&k->pump_later);
    timer_stop(&k->gate);
    timer_stop(&k->probe);
    link_retire(k->link);
    credentials_free(k->credentials);
    metrics_free(k->own_metrics);
    map_done(&k->discovered);
    kube_config_free(k->config);
    free(k);
}

struct loop *kube_loop(const struct kube *k)
{
    return k->loop;
}

struct metrics *kube_metrics(const struct kube *k)
{
    return k->metrics;
}

struct tracer *kube_tracer(const struct kube *k)
{
    return k->tracer;
}

str kube_host(const struct kube *k)
{
    return k->host;
}

str kube_namespace(const struct kube *k)
{
    return k->config->ns;
}

/* ---- outages */

void kube_on_recovery(struct kube *k, struct kube_recovery *me)
{
    list_prepend(&k->recoveries, &me->item);
}

void kube_off_recovery(struct kube_recovery *me)
{
    list_remove(&me->item);
}

/* Tracks reachability. A 403 right after an outage does not end it: the server has not loaded its RBAC roles yet,
 * and callers that were woken now would only fail again. */
void kube_note_status(struct kube *k, int status)
{
    int64_t now = loop_mono_ns(k->loop), since = k->away_ns;
    if (!status || (status >= 502 && status <= 504)) { /* from a proxy without a backend */
        k->away_ns = since ? since : now;
        k->starting_ns = 0;
        return;
    }
    if (since && !k->starting_ns)
        k->starting_ns = now;
    if (!since || (status == 403 && kube_may_be_starting(k)))
        return;
    bool is_probed = k->probe_call || timer_is_set(&k->probe);
    k->away_ns = 0;
    timer_stop(&k->probe);
    if (now - since < (is_probed ? probe_ns : away_least_ns))
        return;
    list_each(struct kube_recovery, one, &k->recoveries, item)
        one->recovered(one);
}

int64_t kube_note_waste(struct kube *k, uint64_t bytes)
{
    return pause_add_waste_ns(&k->waste, bytes, loop_mono_ns(k->loop));
}

/* kube_note_status() has seen the answer already. */
static void on_probe_answer(void *context, const struct kube_reply *reply)
{
    struct kube *k = context;
    (void)reply;
    k->probe_call = NULL;
    kube_probe(k);
}

static void send_probe(struct timer *timer)
{
    struct kube *k = container_of(timer, struct kube, probe);
    k->probe_call = kube_send(k, &(struct kube_request){ .verb = KUBE_GET,
                                                         .path = S("/version"),
                                                         .timeout_ns = probe_timeout_ns,
                                                         .done = on_probe_answer,
                                                         .context = k });
}

bool kube_probe(struct kube *k)
{
    if (k->away_ns && !k->probe_call && !timer_is_set(&k->probe))
        timer_set(k->loop, &k->probe, loop_mono_ns(k->loop) + probe_ns, send_probe);
    return k->away_ns != 0;
}

bool kube_may_be_starting(const struct kube *k)
{
    return k->starting_ns && loop_mono_ns(k->loop) - k->starting_ns < starting_most_ns;
}

/* ---- the gate */

/* The gate's time has passed: ends writes in flight and those that wait. A renewal may have moved it, so check the time. */
static void on_gate_closed(struct timer *timer)
{
    struct kube *k = container_of(timer, struct kube, gate);
    if (loop_mono_ns(k->loop) < k->gate_ns)
        return;
    /* a callback may end other calls: restart from the first after each */
    for (struct list_item *item = k->calls.first; item;) {
        struct kube_call *call = container_of(item, struct kube_call, item);
        bool ends = call->gated;
        if (ends)
            kube_call_fail(call, call->waiting.lane
                                     ? "not sent: this process is not the leader"
                                     : "cancelled: this process is no longer the leader");
        item = ends ? k->calls.first : item->next;
    }
}

void kube_gate(struct kube *k, int64_t mono_ns)
{
    k->gate_ns = mono_ns;
    if (mono_ns == INT64_MAX)
        timer_stop(&k->gate);
    else
        timer_set(k->loop, &k->gate, mono_ns, on_gate_closed);
}

/* ---- sending */

struct kube_call *kube_send(struct kube *k, const struct kube_request *request)
{
    struct kube_call *call = kube_call_new(k, request);
    kube_call_wait(call);
    return call;
}

struct kube_call *kube_stream(struct kube *k, const struct kube_stream *stream)
{
    struct kube_call *call = kube_call_new(k, &stream->request);
    call->is_stream = true;
    call->on_data = stream->on_data;
    call->done = stream->on_end;
    call->context = stream->request.context;
    if (stream->request.verb == KUBE_WATCH)
        call->deadline_ns = 0;
    kube_call_wait(call);
    return call;
}

void kube_call_allow_delay(struct kube_call *call)
{
    call->allow_delay = true;
    if (call->http)
        http_call_allow_delay(call->http);
}

void kube_call_cancel(struct kube_call *call)
{
    if (call)
        kube_call_free(call);
}
