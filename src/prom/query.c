/* The query client: see query.h.
 *
 * A call owns its request text, at most one HTTP call at a time, and one timer. It lives from
 * prom_client_query() until on_done or prom_call_cancel(). Queries are POSTs, like those of WVA; if
 * a POST is refused (a proxy that authorizes by verb, a server that knows only GET), queries that
 * are short enough for a URL become GETs from then on.
 *
 * The problem: some queries hang, for example because they select too many series. They must not
 * delay the others, and Prometheus must not receive all queries at once. So a call needs a slot
 * before it is sent, and with it a connection; there are three fixed groups of slots:
 *
 *     waiting ---------> fresh --1 s, less if many wait--> slow
 *                          |                                 | too many: the oldest is canceled
 *                          v                                 v
 *                      response                       waiting_suspect --> suspect --> response
 *
 *   fresh     sent within the last second
 *   slow      not answered in that time; keeps its connection, but no longer a fresh slot
 *   suspect   sent again in slots of its own, because it was among the oldest of too many slow calls,
 *             or because the caller knows that the same query timed out before
 *
 * The invariant: a call that is not suspect never waits for one that is. A query that hangs delays
 * the calls behind it by a second at most, and once it is known to hang, not at all. One queue with
 * a limit on connections was rejected for that reason: enough hanging queries would fill it. */
#include "query.h"

#include "../base/file.h"
#include "../base/list.h"
#include "../base/random.h"

enum {
    TOKEN_BYTES_MAX = 64 * 1024,
    GET_BYTES_MAX = 2048, /* of the encoded parameters */
    BODY_BYTES_MAX = 64 << 20,
    MARGIN_MS = 100, /* left to the caller before its own deadline */
    FRESH_MAX = 128, /* slots of each group */
    SLOW_MAX = 512,
    SUSPECT_MAX = 384,
    WAITING_FEW = 192, /* up to this many waiting calls, a call stays fresh for the full FRESH_NS */
};

static const int64_t FRESH_NS = NS_PER_S;

static const struct prom_retry RETRY = { 5, 500 * NS_PER_MS, 2, 0.1 };

struct prom_client {
    struct loop *loop;
    struct http_client *http;
    struct buf token; /* secret; the last one that was read */
    char *token_file; /* owned; NULL: the token is fixed */
    int64_t timeout_ns;
    struct prom_retry retry;
    size_t max_body_bytes;
    struct random random;
    bool use_get;                          /* POST was refused */
    struct list calls;                     /* all of them */
    struct list fresh, slow, suspects;     /* in slots, the oldest first */
    struct list waiting, waiting_suspects; /* for a fresh slot, and for a suspect slot */
    struct timer slow_timer;               /* when the oldest fresh call becomes slow */
};

struct prom_call {
    struct prom_client *client;
    struct list_item item;  /* in client->calls */
    struct list_item slot;  /* in a group of slots or a waiting list; in none between attempts */
    struct buf path, form;  /* "/api/v1/query" and its encoded parameters */
    struct http_call *http; /* owned; NULL: not sent */
    bool suspect, posted;
    int64_t sent_ns;    /* monotonic */
    struct arena arena; /* the result of this attempt */
    struct prom_reader reader;
    int status;        /* HTTP status of the response, 0 before it */
    size_t body_bytes; /* received so far */
    bool unusable;     /* the response cannot be parsed; `problem` is why */
    err_t problem;
    struct timer timer;  /* ends the wait for a slot, or the delay before the next attempt */
    int64_t deadline_ns; /* monotonic */
    int64_t delay_ns;    /* before the next attempt, without jitter */
    int attempts_left;
    struct prom_retry retry;
    void (*on_done)(void *context, const struct prom_result *result, const err_t *failure);
    void *context;
};

static void call_attempt(struct prom_call *call);
static void send_request(struct prom_call *call);
static void call_finish(struct prom_call *call, const struct prom_result *result,
                        const err_t *failure);

/* ---- slots */

static void admit_waiting(struct prom_client *c);

static void on_wait_timeout(struct timer *timer)
{
    struct prom_call *call = container_of(timer, struct prom_call, timer);
    err_t e;
    err_set(&e, call->suspect ? ETIMEDOUT : EBUSY,
            "query not sent to Prometheus in time: too many queries are waiting for a response");
    call_finish(call, NULL, &e);
}

/* Queues the call for a slot. It may be sent before this returns. */
static void call_attempt(struct prom_call *call)
{
    struct prom_client *c = call->client;
    list_move(call->suspect ? &c->waiting_suspects : &c->waiting, &call->slot);
    timer_set(c->loop, &call->timer, call->deadline_ns, on_wait_timeout);
    admit_waiting(c);
}

/* Cancels a call that hangs and queues it for a suspect slot, which does not count as an
 * attempt. */
static void call_suspect(struct prom_call *call)
{
    http_call_cancel(take(call->http));
    call->suspect = true;
    call_attempt(call);
}

/* The oldest fresh call gives up its slot; if that makes too many slow calls, the oldest becomes
 * suspect. */
static void on_slow_timer(struct timer *timer)
{
    struct prom_client *c = container_of(timer, struct prom_client, slow_timer);
    if (c->fresh.n)
        list_move(&c->slow, c->fresh.first);
    struct prom_call *oldest = list_first(&c->slow, struct prom_call, slot);
    if (oldest && c->slow.n > SLOW_MAX)
        call_suspect(oldest);
    admit_waiting(c);
}

/* A call stays fresh as long as no other one waits for its slot. The more calls wait, the sooner
 * the oldest one has to leave. */
static void set_slow_timer(struct prom_client *c)
{
    const struct prom_call *first = list_first(&c->fresh, struct prom_call, slot);
    size_t n = c->waiting.n;
    if (first && n)
        timer_set(c->loop, &c->slow_timer,
                  first->sent_ns + FRESH_NS * WAITING_FEW / (int64_t)MAX(n, WAITING_FEW),
                  on_slow_timer);
    else
        timer_stop(&c->slow_timer);
}

static void fill_slots(struct list *slots, size_t limit, struct list *from)
{
    struct prom_call *call;
    while (slots->n < limit && (call = list_first(from, struct prom_call, slot))) {
        list_move(slots, &call->slot);
        timer_stop(&call->timer);
        call->sent_ns = loop_mono_ns(call->client->loop);
        send_request(call);
    }
}

static void admit_waiting(struct prom_client *c)
{
    fill_slots(&c->fresh, FRESH_MAX, &c->waiting);
    fill_slots(&c->suspects, SUSPECT_MAX, &c->waiting_suspects);
    set_slow_timer(c);
}

static void call_release_slot(struct prom_call *call)
{
    list_remove(&call->slot);
    admit_waiting(call->client);
}

/* ---- client */

/* Replaces the token with that of the file; on failure the old one stays. Copies are zeroed. */
static int read_token(struct prom_client *c, err_t *e)
{
    struct buf fresh = { 0 };
    int r = file_read(c->token_file, TOKEN_BYTES_MAX, &fresh, e);
    str token = str_trim(buf_str(&fresh));
    if (r == 0 && token.n == 0)
        r = err_set(e, ENODATA, "token file %s is empty", c->token_file);
    if (r == 0) {
        buf_clear(&c->token);
        buf_put(&c->token, token);
    }
    if (fresh.p)
        explicit_bzero(fresh.p, fresh.cap);
    buf_done(&fresh);
    return r;
}

static void add_token(void *context, struct http_header_list *list)
{
    struct prom_client *c = context;
    if (c->token_file)
        read_token(c, NULL);
    if (c->token.n == 0)
        return;
    auto_buf struct buf value = { 0 };
    buf_printf(&value, "Bearer " STR_FMT, STR_ARG(buf_str(&c->token)));
    http_header_list_add(list, S("authorization"), buf_str(&value));
    explicit_bzero(value.p, value.cap);
}

/* A token is sent only over TLS or to this host, unless the caller allows more. */
int prom_client_new(struct loop *loop, const struct prom_client_options *o,
                    struct prom_client **ret, err_t *e)
{
    struct prom_client *c = mem_zero(1, sizeof(*c));
    c->loop = loop;
    c->timeout_ns = o->timeout_ns ? o->timeout_ns : 10 * NS_PER_S;
    c->retry = o->retry.attempts ? o->retry : RETRY;
    c->max_body_bytes = o->max_body_bytes ? o->max_body_bytes : BODY_BYTES_MAX;
    random_init(&c->random, o->seed, 1);
    buf_put(&c->token, str_trim(o->token));
    int r = 0;
    if (c->token.n == 0 && o->token_file && o->token_file[0]) {
        c->token_file = mem_dup(o->token_file, strlen(o->token_file));
        r = read_token(c, e);
    }
    if (r == 0 && c->token.n && !o->insecure_token)
        r = uri_check_secret(o->url, e);
    struct http_client_options http = { .url = o->url,
                                        .tls = o->tls,
                                        .authorize = add_token,
                                        .context = c,
                                        .max_connections = FRESH_MAX + SLOW_MAX + SUSPECT_MAX };
    if (r == 0)
        r = http_client_new(loop, &http, &c->http, e);
    if (r) {
        prom_client_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

static void call_free(struct prom_call *call)
{
    timer_stop(&call->timer);
    if (call->http)
        http_call_cancel(call->http);
    list_remove(&call->item);
    call_release_slot(call);
    prom_reader_done(&call->reader);
    arena_done(&call->arena);
    buf_done(&call->path);
    buf_done(&call->form);
    free(call);
}

/* Frees the call before on_done, so that the callback may free the client or start another query.
 * Only the memory of the result outlives it. */
static void call_finish(struct prom_call *call, const struct prom_result *result,
                        const err_t *failure)
{
    void (*on_done)(void *, const struct prom_result *, const err_t *) = call->on_done;
    void *context = call->context;
    auto_arena struct arena kept = call->arena;
    call->arena = (struct arena){ 0 };
    call_free(call);
    on_done(context, result, failure);
}

void prom_client_free(struct prom_client *c)
{
    if (!c)
        return;
    err_t gone;
    err_set(&gone, ECANCELED, "query canceled: the Prometheus client was closed");
    for (struct prom_call *call; (call = list_first(&c->calls, struct prom_call, item));)
        call_finish(call, NULL, &gone);
    http_client_free(c->http);
    if (c->token.p)
        explicit_bzero(c->token.p, c->token.cap);
    buf_done(&c->token);
    free(c->token_file);
    free(c);
}

/* ---- call */

static void on_delay_over(struct timer *timer)
{
    call_attempt(container_of(timer, struct prom_call, timer));
}

/* Retries after a delay, or reports the failure if it is final, no attempt is left, or the delay
 * would exceed the deadline. */
static void call_retry(struct prom_call *call, const err_t *why, bool final)
{
    struct prom_client *c = call->client;
    int64_t delay = call->delay_ns;
    call_release_slot(call);
    delay += (int64_t)((double)delay * call->retry.jitter * random_unit(&c->random));
    int64_t now = loop_mono_ns(c->loop);
    if (final || --call->attempts_left <= 0 || delay >= call->deadline_ns - now) {
        call_finish(call, NULL, why);
        return;
    }
    call->delay_ns = (int64_t)((double)call->delay_ns * call->retry.factor);
    timer_set(c->loop, &call->timer, now + delay, on_delay_over);
}

static void on_head(void *context, const struct http_head *head)
{
    struct prom_call *call = context;
    call->status = head->status;
}

/* Does not wait for the rest of a response that cannot be used, unless it is an error response,
 * whose body explains why. */
static void on_data(void *context, str bytes)
{
    struct prom_call *call = context;
    size_t limit = call->client->max_body_bytes;
    call->body_bytes += bytes.n;
    if (call->unusable)
        return;
    if (call->body_bytes > limit)
        call->unusable =
            err_set(&call->problem, EMSGSIZE,
                    "the response from Prometheus is larger than %zu bytes", limit) < 0;
    else
        call->unusable = prom_reader_feed(&call->reader, bytes, &call->problem) < 0;
    if (call->unusable && call->status == 200) {
        err_t e = call->problem;
        http_call_cancel(call->http);
        call->http = NULL;
        call_retry(call, &e, false);
    }
}

/* A complete response. The error message in its body takes precedence over the HTTP status. */
static void on_response(struct prom_call *call)
{
    struct prom_result result;
    err_t e = call->problem;
    int read = call->unusable ? -e.code : prom_reader_end(&call->reader, &result, &e);
    if (call->status == 200 && read == 0) {
        call_finish(call, &result, NULL);
        return;
    }
    bool refused = call->status == 403 || call->status == 405 || call->status == 501;
    if (refused && call->posted && call->form.n <= GET_BYTES_MAX) {
        call->client->use_get = true;
        call_attempt(call);
        return;
    }
    if (call->status != 200 && read != -EREMOTEIO)
        err_set(&e, EREMOTEIO, "Prometheus answered %d %s", call->status,
                http_reason(call->status));
    call_retry(call, &e, call->status == 400 || call->status == 422);
}

static void on_done(void *context, const err_t *failure)
{
    struct prom_call *call = context;
    call->http = NULL;
    if (!failure) {
        on_response(call);
        return;
    }
    err_t e = *failure;
    err_wrap(&e, "no response from Prometheus");
    call_retry(call, &e, false);
}

static void reset_response(struct prom_call *call)
{
    prom_reader_done(&call->reader);
    arena_done(&call->arena);
    call->arena = (struct arena){ 0 };
    prom_reader_init(&call->reader, &call->arena);
    call->unusable = false;
    call->body_bytes = 0;
    call->status = 0;
}

/* Sends the call, which has just got a slot. The parameters are the body of a POST or the query
 * string of a GET. */
static void send_request(struct prom_call *call)
{
    auto_buf struct buf target = { 0 };
    buf_put(&target, buf_str(&call->path));
    bool get = call->client->use_get && call->form.n <= GET_BYTES_MAX;
    call->posted = !get;
    if (get)
        buf_printf(&target, "?" STR_FMT, STR_ARG(buf_str(&call->form)));
    struct http_request request = {
        .method = get ? S("GET") : S("POST"),
        .target = buf_str(&target),
        .headers = HTTP_HEADERS({ S("accept"), S("application/json") },
                                { S("content-type"), S("application/x-www-form-urlencoded") }),
        .body = get ? S("") : buf_str(&call->form),
        .deadline_ns = call->deadline_ns,
        .on_head = on_head,
        .on_data = on_data,
        .on_done = on_done,
        .context = call,
    };
    request.headers.n -= get;
    reset_response(call);
    call->http = http_client_send(call->client->http, &request);
}

/* Seconds with three decimal places. */
static void put_time(struct buf *out, const char *name, int64_t ms)
{
    uint64_t size = ms < 0 ? 0 - (uint64_t)ms : (uint64_t)ms;
    buf_printf(out, "&%s=%s%llu.%03llu", name, ms < 0 ? "-" : "", (unsigned long long)size / 1000,
               (unsigned long long)size % 1000);
}

static void put_request(struct prom_call *call, const struct prom_query *q)
{
    bool range = q->step_ms > 0;
    buf_put(&call->path, range ? S("/api/v1/query_range") : S("/api/v1/query"));
    buf_put(&call->form, S("query="));
    uri_encode(&call->form, q->promql);
    if (range) {
        put_time(&call->form, "start", q->start_ms);
        put_time(&call->form, "end", q->end_ms);
        put_time(&call->form, "step", q->step_ms);
    } else if (q->time_ms) {
        put_time(&call->form, "time", q->time_ms);
    }
}

/* The deadline is the earlier of the client's timeout and the caller's deadline minus a margin. */
struct prom_call *prom_client_query(struct prom_client *c, const struct prom_query *q)
{
    struct prom_call *call = mem_zero(1, sizeof(*call));
    int64_t now = loop_mono_ns(c->loop);
    call->client = c;
    call->on_done = q->on_done;
    call->context = q->context;
    call->retry = q->retry.attempts ? q->retry : c->retry;
    call->attempts_left = call->retry.attempts;
    call->delay_ns = call->retry.first_ns;
    call->deadline_ns = now + c->timeout_ns;
    if (q->deadline_ns)
        call->deadline_ns = MIN(call->deadline_ns, q->deadline_ns - MARGIN_MS * NS_PER_MS);
    call->deadline_ns = MAX(call->deadline_ns, now + NS_PER_MS);
    call->suspect = q->suspect;
    list_prepend(&c->calls, &call->item);
    put_request(call, q);
    call_attempt(call);
    return call;
}

void prom_call_cancel(struct prom_call *call)
{
    if (call)
        call_free(call);
}

void prom_query_escape(struct buf *out, str value)
{
    for (size_t i = 0; i < value.n; i++) {
        if (value.p[i] == '\\' || value.p[i] == '"')
            buf_putc(out, '\\');
        buf_putc(out, value.p[i]);
    }
}

static void put_quoted(struct buf *out, str value)
{
    str line;
    buf_putc(out, '"');
    for (bool first = true; str_cut(&value, '\n', &line); first = false) {
        buf_put(out, first ? S("") : S("\\n"));
        prom_query_escape(out, line);
    }
    buf_putc(out, '"');
}

void prom_query_matcher(struct buf *out, const char *label, str value)
{
    buf_printf(out, "%s=", label);
    put_quoted(out, value);
}

/* Prometheus anchors a regular expression at both ends and looks a set of literals up by hash. */
void prom_query_any_of(struct buf *out, const char *label, const str *values, size_t n)
{
    auto_buf struct buf pattern = { 0 };
    if (n == 1) {
        prom_query_matcher(out, label, values[0]);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        buf_put(&pattern, i ? S("|") : S(""));
        for (size_t at = 0; at < values[i].n; at++) {
            if (strchr("\\.+*?()|[]{}^$", values[i].p[at]) && values[i].p[at])
                buf_putc(&pattern, '\\');
            buf_putc(&pattern, values[i].p[at]);
        }
    }
    buf_printf(out, "%s=~", label);
    put_quoted(out, buf_str(&pattern));
}
