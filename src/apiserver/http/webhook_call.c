/* Calls to webhooks, and the calls of clients that wait for them; see webhook.h.
 *
 *     verb -> webhook_ask() -> POST ... the verb returns, the call waits
 *     answer -> on_done() -> (end of the turn) server_resume() -> the verb again, with this answer
 *
 * One HTTP client per address and certificate authority is kept, with its connections, because a handshake costs more
 * than a call. Clients that nothing uses are closed when there are more than CLIENTS_MAX.
 *
 * Memory: a call that waits keeps its request, the digests of its questions and their answers; the question itself is
 * with the HTTP client until it is answered. All of it is counted, and a call that does not fit into WAITING_BYTES is
 * refused with 429. A call with many questions asks as many as fit into CALL_BYTES and the others in its next runs. After a
 * peak, the memory is returned to the system.
 *
 * The loop never waits: a webhook that hangs costs its own requests a timeout. Answers are bounded, redirects are not
 * followed, and certificates are always verified. */
#include "webhook.h"

#include "../../base/base64.h"
#include "../../base/set.h"
#include "../../base/sha256.h"
#include "../../net/http_client.h"

#include <malloc.h>

enum {
    CLIENTS_MAX = 16,
    ANSWER_MAX = 8 << 20,     /* a patch of the largest object, in base64, fits */
    CALL_BYTES = 16 << 20,    /* of questions of one call at a time: a collection can have many */
    WAITING_BYTES = 64 << 20, /* of all calls that wait */
    WAIT_BYTES = 8 << 10,     /* of one of them, besides its request and questions, about */
    ASK_BYTES = 4 << 10,      /* of a question, besides its text, about */
    TRIM_FROM = 16 << 20,     /* smaller peaks are not worth a trim */
    CONNECTIONS_MAX = 128,    /* to one webhook that does not speak HTTP/2 */
    IDLE_S = 30,              /* then a connection is closed */
    REQUEST_TIMEOUT_S =
        60, /* as kube-apiserver: a call whose object changes all the time must end */
};

struct hook_client {
    struct list_item item;
    char *key; /* origin, server name and authorities */
    struct http_client *http;
    size_t calls; /* in progress */
};

struct ask {
    struct set_node node; /* of call_wait.asks; first */
    struct hook_answer answer;
    struct call_wait *wait;
    uint8_t digest[SHA256_BYTES]; /* of the question */
    str url;
    size_t bytes; /* counted for it */
    bool done;
    char *body;             /* of the answer; owned */
    struct http_call *http; /* NULL: not in progress */
    struct hook_client *client;
};

/* What a call keeps between its runs. Lives in its arena. */
struct call_wait {
    struct list_item item; /* in webhooks.waiting, while answers are missing */
    struct call *call;
    struct set asks;
    size_t pending;       /* questions without an answer... */
    size_t pending_bytes; /* ...and their memory */
    size_t bytes;         /* all that is counted for the call */
    bool full;            /* not all questions of this run could be asked */
    struct arena *arena;  /* of the call; the runs have their own */
    struct call_scratch scratch;
    struct random random, uids;
    int64_t now_ns, since_ns; /* wall clock of all runs; mono clock of the first */
    struct deferred resume;
    void (*resume_call)(struct call *c);
};

struct webhooks {
    struct list clients; /* the least recently used first */
    struct list waiting;
    size_t bytes, peak_bytes; /* of the calls that wait; its maximum since the last trim */
    struct timer trim;
    bool closed; /* nothing is asked any more */
};

static struct webhooks *get_webhooks(struct server *s)
{
    if (!s->webhooks)
        s->webhooks = mem_zero(1, sizeof(*s->webhooks));
    return s->webhooks;
}

/* ---- memory */

static void on_trim(struct timer *t)
{
    struct webhooks *all = container_of(t, struct webhooks, trim);
    if (all->bytes > all->peak_bytes / 4)
        return;
    malloc_trim(0);
    all->peak_bytes = all->bytes;
}

static void add_bytes(struct call_wait *w, size_t n)
{
    struct webhooks *all = get_webhooks(w->call->server);
    w->bytes += n;
    all->bytes += n;
    all->peak_bytes = MAX(all->peak_bytes, all->bytes);
}

/* The trim comes a moment later, so that many calls that end share one. */
static void subtract_bytes(struct call_wait *w, size_t n)
{
    struct loop *loop = w->call->server->loop;
    struct webhooks *all = get_webhooks(w->call->server);
    w->bytes -= n;
    all->bytes -= n;
    if (loop && all->peak_bytes >= TRIM_FROM && all->bytes <= all->peak_bytes / 4 &&
        !timer_is_set(&all->trim))
        timer_set(loop, &all->trim, loop_mono_ns(loop) + NS_PER_S, on_trim);
}

static void free_answer(struct ask *ask)
{
    subtract_bytes(ask->wait, ask->bytes);
    ask->bytes = 0;
    free(take(ask->body));
}

void webhook_forget(struct call *c, const struct hook_answer *answer)
{
    struct ask *ask = container_of(answer, struct ask, answer);
    set_remove(&c->wait->asks, &ask->node);
    free_answer(ask);
}

void webhook_release(struct call *c)
{
    struct call_wait *w = c->wait;
    struct set_node *node;
    if (!w)
        return;
    for (size_t at = 0; (node = set_next(&w->asks, &at));)
        free_answer(container_of(node, struct ask, node));
    set_done(&w->asks);
    subtract_bytes(w, w->bytes);
}

/* ---- runs */

/* The seeds come from the server's numbers, and no two calls get the same. */
static struct call_wait *new_wait(struct call *c)
{
    struct server *s = c->server;
    struct call_wait *w = arena_new(c->arena, struct call_wait);
    uint64_t seeds[4];
    for (size_t i = 0; i < countof(seeds); i++)
        seeds[i] = (uint64_t)random_u32(&s->random) << 32 | random_u32(&s->random);
    random_init(&w->random, seeds[0], seeds[1]);
    random_init(&w->uids, seeds[2], seeds[3]);
    w->call = c;
    w->arena = c->arena;
    w->resume_call = server_resume;
    w->now_ns = server_now_ns(s);
    w->since_ns = s->loop ? loop_mono_ns(s->loop) : 0;
    return w;
}

void webhook_begin_run(struct call *c, struct random *ret_others)
{
    struct server *s = c->server;
    if (!c->wait && (webhook_exist(s) || (c->kind && c->kind->conversion)))
        c->wait = new_wait(c);
    *ret_others = s->random;
    if (!c->wait)
        return;
    s->random = c->wait->random;
    s->run_now_ns = c->wait->now_ns;
    c->wait->full = false;
    call_enter_scratch(c, &c->wait->scratch);
}

void webhook_end_run(struct call *c, const struct random *others)
{
    if (!c->wait)
        return;
    call_leave_scratch(c, &c->wait->scratch);
    c->server->random = *others;
    c->server->run_now_ns = 0;
}

void webhook_prepare(struct call *c, void (*resume)(struct call *c))
{
    c->wait = new_wait(c);
    c->wait->resume_call = resume;
}

bool webhook_is_waiting(const struct call *c)
{
    return c->wait && c->wait->pending > 0;
}

bool webhook_has_room(const struct call *c)
{
    return !c->wait || !c->wait->full;
}

/* ---- clients */

static void free_client(struct hook_client *k)
{
    list_remove(&k->item);
    http_client_free(k->http);
    free(k->key);
    free(k);
}

static void close_unused_clients(struct webhooks *w)
{
    struct hook_client *k = list_first(&w->clients, struct hook_client, item);
    while (k && w->clients.n >= CLIENTS_MAX) {
        struct hook_client *next = list_owner(k->item.next, struct hook_client, item);
        if (!k->calls)
            free_client(k);
        k = next;
    }
}

/* NULL: the authorities cannot be read. */
static struct http_client *open_client(struct loop *loop, const struct hook_target *t, err_t *e)
{
    auto_buf struct buf pem = { 0 };
    struct tls *tls = NULL;
    struct http_client *http = NULL;
    if (base64_decode(&pem, t->ca) < 0) {
        err_set(e, EINVAL, "caBundle is not base64");
        return NULL;
    }
    struct tls_client_options o = { .ca_pem = buf_str(&pem), .server_name = t->server_name };
    if (tls_client_new(&o, &tls, e) < 0)
        return NULL;
    struct http_client_options h = { .url = t->origin,
                                     .tls = tls,
                                     .max_connections = CONNECTIONS_MAX,
                                     .idle_timeout_ns = IDLE_S * NS_PER_S,
                                     .user_agent = S("kube-apiserver-admission") };
    if (http_client_new(loop, &h, &http, e) < 0)
        http = NULL;
    tls_unref(tls);
    return http;
}

static struct hook_client *find_client(struct call *c, const struct hook_target *t, err_t *e)
{
    struct webhooks *w = get_webhooks(c->server);
    str key = arena_printf(c->arena, STR_FMT " " STR_FMT " " STR_FMT, STR_ARG(t->origin),
                           STR_ARG(t->server_name), STR_ARG(t->ca));
    list_each(struct hook_client, k, &w->clients, item) {
        if (str_eqc(key, k->key)) {
            list_move(&w->clients, &k->item);
            return k;
        }
    }
    struct http_client *http = open_client(c->server->loop, t, e);
    if (!http)
        return NULL;
    close_unused_clients(w);
    struct hook_client *k = mem_zero(1, sizeof(*k));
    k->key = mem_dup(key.p, key.n);
    k->http = http;
    list_append(&w->clients, &k->item);
    return k;
}

/* ---- targets */

/* The address of a service, from --service-address: "NAME.NS=ADDR[:PORT],...". "": not listed. */
str server_service_address(const struct server *s, str ns, str name)
{
    str rest = str_c(s->service_addresses ? s->service_addresses : ""), part;
    while (str_cut(&rest, ',', &part)) {
        size_t equals = str_find_char(part, '=');
        str who = equals == SIZE_MAX ? part : str_upto(part, equals);
        if (equals != SIZE_MAX && who.n == name.n + 1 + ns.n && str_starts(who, name) &&
            who.p[name.n] == '.' && str_ends(who, ns))
            return str_from(part, equals + 1);
    }
    return S("");
}

int webhook_check_services(const char *list, err_t *e)
{
    str rest = str_c(list ? list : ""), part;
    while (rest.n && str_cut(&rest, ',', &part)) {
        size_t dot = str_find_char(part, '.'), equals = str_find_char(part, '=');
        if (dot == SIZE_MAX || equals == SIZE_MAX || !dot || dot + 1 >= equals ||
            equals + 1 == part.n)
            return err_set(e, EINVAL,
                           "--service-address has \"" STR_FMT
                           "\", but each entry must be NAME.NAMESPACE=ADDRESS[:PORT]",
                           STR_ARG(part));
    }
    return 0;
}

/* Whether the address ends in a port: "[::1]" and "::1" have none. */
static bool has_port(str address)
{
    size_t colon = str_find_char(address, ':');
    if (colon == SIZE_MAX)
        return false;
    size_t bracket = str_find_char(address, ']');
    return bracket == SIZE_MAX ? str_find_char(str_from(address, colon + 1), ':') == SIZE_MAX
                               : bracket + 1 < address.n;
}

static void set_service(struct call *c, const struct json *service, struct hook_target *t)
{
    struct arena *a = c->arena;
    str name = json_text(json_get(service, "name")), ns = json_text(json_get(service, "namespace"));
    str path = json_text(json_get(service, "path")),
        at = server_service_address(c->server, ns, name);
    int64_t port = json_int(json_get(service, "port"), 443);
    t->server_name = arena_printf(a, STR_FMT "." STR_FMT ".svc", STR_ARG(name), STR_ARG(ns));
    t->origin = arena_printf(a, "https://" STR_FMT ":%lld", STR_ARG(at), (long long)port);
    if (has_port(at))
        t->origin = arena_printf(a, "https://" STR_FMT, STR_ARG(at));
    t->path = webhook_clean_path(a, path);
    t->url = arena_printf(a, "https://" STR_FMT ":%lld" STR_FMT, STR_ARG(t->server_name),
                          (long long)port, STR_ARG(t->path));
    if (!at.n)
        t->fault = arena_printf(a,
                                "no address is known for service " STR_FMT "." STR_FMT
                                "; set --service-address " STR_FMT "." STR_FMT "=ADDRESS:PORT",
                                STR_ARG(name), STR_ARG(ns), STR_ARG(name), STR_ARG(ns));
}

static void set_url(struct call *c, str url, struct hook_target *t)
{
    size_t host = str_find(url, S("://"));
    str rest = host == SIZE_MAX ? S("") : str_from(url, host + 3);
    size_t slash = MIN(str_find_char(rest, '/'), rest.n);
    t->origin = arena_printf(c->arena, "https://" STR_FMT, STR_ARG(str_upto(rest, slash)));
    t->path = webhook_clean_path(c->arena, str_from(rest, slash));
    t->url = arena_printf(c->arena, STR_FMT STR_FMT, STR_ARG(t->origin), STR_ARG(t->path));
}

void webhook_target(struct call *c, const struct json *config, int64_t timeout_s,
                    struct hook_target *t)
{
    const struct json *service = json_get(config, "service");
    *t = (struct hook_target){ .timeout_s = timeout_s,
                               .ca = json_text(json_get(config, "caBundle")) };
    if (json_is(service, JSON_OBJ))
        set_service(c, service, t);
    else
        set_url(c, json_text(json_get(config, "url")), t);
    str query = arena_printf(c->arena, "?timeout=%llds", (long long)timeout_s);
    t->url = arena_printf(c->arena, STR_FMT STR_FMT, STR_ARG(t->url), STR_ARG(query));
    t->path = arena_printf(c->arena, STR_FMT STR_FMT, STR_ARG(t->path), STR_ARG(query));
}

/* ---- asking */

static void run_again(struct deferred *d)
{
    struct call_wait *w = container_of(d, struct call_wait, resume);
    list_remove(&w->item);
    w->resume_call(w->call);
}

/* In the words of kube-apiserver: its HTTP client names the URL. */
static str describe_failure(struct arena *a, str url, const err_t *e)
{
    str why = e->code == ETIMEDOUT    ? S("context deadline exceeded")
              : e->code == ECONNRESET ? S("EOF")
                                      : str_c(e->text);
    return arena_printf(a, "Post \"" STR_FMT "\": " STR_FMT, STR_ARG(url), STR_ARG(why));
}

static void on_done(void *context, const struct http_response *response, const err_t *failure)
{
    struct ask *ask = context;
    struct call_wait *w = ask->wait;
    struct arena *a = w->arena;
    struct hook_reply *r = &ask->answer.reply;
    ask->http = NULL;
    ask->client->calls--;
    ask->done = true;
    w->pending_bytes -= ask->bytes;
    subtract_bytes(w, ask->bytes - ASK_BYTES);
    ask->bytes = ASK_BYTES;
    if (response) {
        r->status = response->status;
        r->content_type = arena_str(a, http_header_get(response->headers, S("content-type")));
        ask->body = mem_dup(response->body.p, response->body.n);
        json_hide_nul(ask->body, response->body.n);
        r->body = (str){ ask->body, response->body.n };
        add_bytes(w, response->body.n);
        ask->bytes += response->body.n;
    } else {
        r->failure = describe_failure(a, ask->url, failure);
    }
    if (--w->pending == 0)
        loop_defer(w->call->server->loop, LOOP_SOON, &w->resume, run_again);
}

/* A random UUID; not from the numbers of the run, which must not depend on what was asked. */
static str new_uid(struct call_wait *w)
{
    struct server *s = w->call->server;
    struct random others = s->random;
    s->random = w->uids;
    str uid = server_uid(s, w->arena);
    w->uids = s->random;
    s->random = others;
    return uid;
}

/* Starts the call. What cannot be called, because its address or its authorities are unknown, has failed at once. */
static void send_ask(struct ask *ask, const struct hook_target *t, const struct hook_question *q)
{
    struct call_wait *w = ask->wait;
    struct call *c = w->call;
    struct loop *loop = c->server->loop;
    err_t e = { 0 };
    str fault = t->fault;
    if (!loop || get_webhooks(c->server)->closed)
        fault = S("this server does not call webhooks now");
    ask->client = fault.n ? NULL : find_client(c, t, &e);
    if (!ask->client) {
        ask->done = true;
        ask->answer.reply.failure =
            fault.n ? arena_printf(w->arena, "Post \"" STR_FMT "\": " STR_FMT, STR_ARG(t->url),
                                   STR_ARG(fault))
                    : arena_printf(w->arena, "could not get REST client: %s", e.text);
        return;
    }
    ask->answer.uid = new_uid(w);
    str body =
        q->wanted.n
            ? webhook_conversion_text(c->arena, q->version, ask->answer.uid, q->wanted, q->request)
            : webhook_admission_text(c->arena, q->version, ask->answer.uid, q->request);
    struct http_fetch f = { .method = S("POST"),
                            .target = t->path,
                            .headers = HTTP_HEADERS({ S("content-type"), S("application/json") },
                                                    { S("accept"), S("application/json, */*") }),
                            .body = body,
                            .deadline_ns = loop_mono_ns(loop) +
                                           loop_scale_timeout(loop, t->timeout_s * NS_PER_S),
                            .max_body_bytes = ANSWER_MAX,
                            .on_done = on_done,
                            .context = ask };
    ask->client->calls++;
    ask->http = http_client_fetch(ask->client->http, &f);
    ask->bytes = body.n + ASK_BYTES;
    add_bytes(w, ask->bytes + (w->bytes ? 0 : WAIT_BYTES + (c->request ? c->request->body.n : 0)));
    w->pending_bytes += ask->bytes;
    if (!w->item.in)
        list_append(&get_webhooks(c->server)->waiting, &w->item);
    w->pending++;
}

/* Writes to an object that changes all the time are asked about again and again; at some point the client must know. */
static bool has_timed_out(const struct call_wait *w)
{
    struct loop *loop = w->call->server->loop;
    return loop && loop_mono_ns(loop) - w->since_ns >
                       loop_scale_timeout(loop, REQUEST_TIMEOUT_S * NS_PER_S);
}

/* Whether a question of n bytes can be asked now. False: in the next run, or the call is answered. Time and memory end a
 * call only while it waits for nothing, which is before the first new question of a run. */
static bool can_ask(struct call *c, size_t n)
{
    struct call_wait *w = c->wait;
    bool fits = get_webhooks(c->server)->bytes + n <= WAITING_BYTES;
    if (w->pending) {
        w->full |= !fits || w->pending_bytes + n > CALL_BYTES;
        return !w->full;
    }
    if (has_timed_out(w))
        call_status(c, &(struct status){ .code = 504,
                                         .reason = "Timeout",
                                         .message = S("Timeout: request did not complete within "
                                                      "requested timeout - context deadline "
                                                      "exceeded"),
                                         .empty_details = true });
    else if (!fits)
        call_status(c, &(struct status){ .code = 429,
                                         .reason = "TooManyRequests",
                                         .message = S("Too many requests, please try again later."),
                                         .retry_after_s = 1 });
    return !c->answer.status;
}

/* Digests are compared instead of texts, which are large. An object must not be able to take the answer of another, so
 * they are cryptographic. */
static void digest_question(const struct hook_target *t, const struct hook_question *q, str text,
                            uint8_t ret[SHA256_BYTES])
{
    struct sha256 h;
    const str parts[] = { q->id, { "", 1 }, t->url, { "", 1 }, text };
    sha256_init(&h);
    for (size_t i = 0; i < countof(parts); i++)
        sha256_feed(&h, parts[i]);
    sha256_finish(&h, ret);
}

static bool has_digest(const struct set_node *node, const void *digest)
{
    return !memcmp(container_of(node, const struct ask, node)->digest, digest, SHA256_BYTES);
}

const struct hook_answer *webhook_ask(struct call *c, const struct hook_target *t,
                                      const struct hook_question *q)
{
    struct call_wait *w = c->wait;
    str text = json_to_str(c->arena, q->request);
    uint8_t digest[SHA256_BYTES];
    uint32_t hash;
    digest_question(t, q, text, digest);
    memcpy(&hash, digest, sizeof(hash));
    struct set_node *known = set_find(&w->asks, hash, has_digest, digest);
    struct ask *ask = known ? container_of(known, struct ask, node) : NULL;
    if (!ask) {
        if (!can_ask(c, text.n + ASK_BYTES))
            return NULL;
        ask = arena_new(w->arena, struct ask);
        *ask = (struct ask){ .node.hash = hash, .wait = w, .url = arena_str(w->arena, t->url) };
        memcpy(ask->digest, digest, sizeof(digest));
        set_add(&w->asks, &ask->node);
        send_ask(ask, t, q);
    }
    return ask->done ? &ask->answer : NULL;
}

/* ---- closing */

bool webhook_cancel(struct call *c)
{
    struct call_wait *w = c->wait;
    struct set_node *node;
    if (!w || !w->item.in)
        return false;
    list_remove(&w->item);
    loop_cancel_deferred(&w->resume);
    for (size_t at = 0; (node = set_next(&w->asks, &at));) {
        struct ask *ask = container_of(node, struct ask, node);
        if (!ask->http)
            continue;
        http_call_cancel(take(ask->http));
        ask->client->calls--;
    }
    w->pending = w->pending_bytes = 0;
    webhook_release(c);
    return true;
}

void webhook_abort_all(struct server *s)
{
    struct call_wait *w;
    get_webhooks(s)->closed = true;
    while ((w = list_first(&s->webhooks->waiting, struct call_wait, item))) {
        struct call *c = w->call;
        webhook_cancel(c);
        call_discard_answer(c);
        call_status(c, &(struct status){ .code = 503,
                                         .reason = "ServiceUnavailable",
                                         .message = S("the server is shutting down"),
                                         .retry_after_s = 1 });
        server_finish(c);
    }
}

void webhook_free(struct server *s)
{
    struct hook_client *k;
    if (s->webhooks)
        timer_stop(&s->webhooks->trim);
    while (s->webhooks && (k = list_first(&s->webhooks->clients, struct hook_client, item)))
        free_client(k);
    free(s->webhooks);
    webhook_configs_free(s->hook_configs);
}
