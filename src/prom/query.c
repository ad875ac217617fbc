/* The query client: see query.h. A call owns its request text, one HTTP call at a time and the timer
 * of the pause before the next one; it lives from prom_client_query until on_done or cancel. Queries
 * are POSTs, as the original's; where these are refused (a proxy that authorises by verb, a server
 * that knows only GET) those that are not too long for a target are GETs from then on.
 *
 * Calls that hang must not keep others waiting, and Prometheus must not be asked everything at once. So each that is
 * asked has one of a fixed number of places, and with it a connection:
 *   young     not answered yet; for a second while few wait, for less the more there are;
 *   old       was not answered in that time. Where there are too many, the oldest is doubted;
 *   doubtful  is asked anew, in places of its own, and so is what its owner doubts from the beginning.
 * What hangs costs those behind it a second at most, and once it is known to hang, nothing: who is not doubted never
 * waits for who is. */
#include "query.h"

#include "../base/file.h"
#include "../base/list.h"
#include "../base/random.h"

enum {
    TOKEN_BYTES_MAX = 64 * 1024,
    GET_BYTES_MAX = 2048, /* of the encoded parameters */
    BODY_BYTES_MAX = 64 << 20,
    MARGIN_MS = 100, /* left to the caller before its own deadline */
    YOUNG_MAX = 128,
    OLD_MAX = 512,
    DOUBTFUL_MAX = 384,
    FEW = 192, /* that wait */
};

static const int64_t YOUNG_NS = NS_PER_S;

static const struct prom_retry RETRY = { 5, 500 * NS_PER_MS, 2, 0.1 };

struct prom_client {
    struct loop *loop;
    struct http_client *http;
    struct buf token; /* secret; the last that could be read */
    char *token_file; /* owned; NULL: the token is fixed */
    int64_t timeout_ns;
    struct prom_retry retry;
    size_t max_body_bytes;
    struct random random;
    bool gets;                          /* POST is refused */
    struct list calls;                  /* under way */
    struct list young, old, doubtful;   /* that are asked, from the first on */
    struct list waiting, doubt_waiting; /* to be young, and to be doubtful */
    struct timer ageing;                /* of the first of the young */
};

struct prom_call {
    struct prom_client *client;
    struct list_item item;  /* of all calls */
    struct list_item place; /* where it is asked, or waits for that; none during a pause */
    struct buf path, form;  /* "/api/v1/query" and its encoded parameters */
    struct http_call *http; /* NULL: it is not being asked */
    bool doubted, posted;
    int64_t asked_ns;   /* mono */
    struct arena arena; /* of this attempt's result */
    struct prom_reader reader;
    int status;
    size_t body_bytes;
    bool broken; /* the answer cannot be read, as `problem` says */
    err_t problem;
    struct timer pause;  /* or the end of waiting */
    int64_t deadline_ns; /* mono */
    int64_t pause_ns;    /* the next one, before jitter */
    int attempts_left;
    struct prom_retry retry;
    void (*on_done)(void *context, const struct prom_result *result, const err_t *failure);
    void *context;
};

static void attempt(struct prom_call *call);
static void send_request(struct prom_call *call);
static void finish(struct prom_call *call, const struct prom_result *result, const err_t *failure);

/* ---- places */

static void admit(struct prom_client *c);

static void on_waited_too_long(struct timer *timer)
{
    struct prom_call *call = container_of(timer, struct prom_call, pause);
    err_t e;
    err_set(&e, call->doubted ? ETIMEDOUT : EBUSY,
            "Prometheus was not asked in time: too many queries wait for an answer");
    finish(call, NULL, &e);
}

static void attempt(struct prom_call *call)
{
    struct prom_client *c = call->client;
    list_move(call->doubted ? &c->doubt_waiting : &c->waiting, &call->place);
    timer_set(c->loop, &call->pause, call->deadline_ns, on_waited_too_long);
    admit(c);
}

static void doubt(struct prom_call *call)
{
    http_call_cancel(take(call->http));
    call->doubted = true;
    attempt(call);
}

static void on_ageing(struct timer *timer)
{
    struct prom_client *c = container_of(timer, struct prom_client, ageing);
    if (c->young.n)
        list_move(&c->old, c->young.first);
    struct prom_call *oldest = list_first(&c->old, struct prom_call, place);
    if (oldest && c->old.n > OLD_MAX)
        doubt(oldest);
    admit(c);
}

/* Nobody's youth ends while nobody waits for the place. */
static void watch_youth(struct prom_client *c)
{
    const struct prom_call *first = list_first(&c->young, struct prom_call, place);
    size_t n = c->waiting.n;
    if (first && n)
        timer_set(c->loop, &c->ageing, first->asked_ns + YOUNG_NS * FEW / (int64_t)MAX(n, FEW),
                  on_ageing);
    else
        timer_stop(&c->ageing);
}

static void fill(struct list *places, size_t most, struct list *from)
{
    struct prom_call *call;
    while (places->n < most && (call = list_first(from, struct prom_call, place))) {
        list_move(places, &call->place);
        timer_stop(&call->pause);
        call->asked_ns = loop_mono_ns(call->client->loop);
        send_request(call);
    }
}

static void admit(struct prom_client *c)
{
    fill(&c->young, YOUNG_MAX, &c->waiting);
    fill(&c->doubtful, DOUBTFUL_MAX, &c->doubt_waiting);
    watch_youth(c);
}

static void leave(struct prom_call *call)
{
    list_remove(&call->place);
    admit(call->client);
}

/* ---- client */

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

static void authorize(void *context, struct http_header_list *list)
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
                                        .authorize = authorize,
                                        .context = c,
                                        .max_connections = YOUNG_MAX + OLD_MAX + DOUBTFUL_MAX };
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
    timer_stop(&call->pause);
    if (call->http)
        http_call_cancel(call->http);
    list_remove(&call->item);
    leave(call);
    prom_reader_done(&call->reader);
    arena_done(&call->arena);
    buf_done(&call->path);
    buf_done(&call->form);
    free(call);
}

/* The call is gone before its owner hears of it, except for the memory of the result. */
static void finish(struct prom_call *call, const struct prom_result *result, const err_t *failure)
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
    err_set(&gone, ECANCELED, "the Prometheus client was closed");
    for (struct prom_call *call; (call = list_first(&c->calls, struct prom_call, item));)
        finish(call, NULL, &gone);
    http_client_free(c->http);
    if (c->token.p)
        explicit_bzero(c->token.p, c->token.cap);
    buf_done(&c->token);
    free(c->token_file);
    free(c);
}

/* ---- call */

static void on_pause_over(struct timer *timer)
{
    attempt(container_of(timer, struct prom_call, pause));
}

/* Pauses and tries again, or gives up when nothing is left to try with. */
static void failed(struct prom_call *call, const err_t *why, bool final)
{
    struct prom_client *c = call->client;
    int64_t pause = call->pause_ns;
    leave(call);
    pause += (int64_t)((double)pause * call->retry.jitter * random_unit(&c->random));
    int64_t now = loop_mono_ns(c->loop);
    if (final || --call->attempts_left <= 0 || pause >= call->deadline_ns - now) {
        finish(call, NULL, why);
        return;
    }
    call->pause_ns = (int64_t)((double)call->pause_ns * call->retry.factor);
    timer_set(c->loop, &call->pause, now + pause, on_pause_over);
}

static void on_head(void *context, const struct http_head *head)
{
    struct prom_call *call = context;
    call->status = head->status;
}

/* The rest of an answer that cannot be used is not waited for; that of a refusal is, to know why. */
static void on_data(void *context, str bytes)
{
    struct prom_call *call = context;
    size_t most = call->client->max_body_bytes;
    call->body_bytes += bytes.n;
    if (call->broken)
        return;
    if (call->body_bytes > most)
        call->broken = err_set(&call->problem, EMSGSIZE,
                               "the answer of Prometheus is larger than %zu bytes", most) < 0;
    else
        call->broken = prom_reader_feed(&call->reader, bytes, &call->problem) < 0;
    if (call->broken && call->status == 200) {
        err_t e = call->problem;
        http_call_cancel(call->http);
        call->http = NULL;
        failed(call, &e, false);
    }
}

/* An answer that came whole. What Prometheus says about its refusal counts more than the status. */
static void on_answer(struct prom_call *call)
{
    struct prom_result result;
    err_t e = call->problem;
    int read = call->broken ? -e.code : prom_reader_end(&call->reader, &result, &e);
    if (call->status == 200 && read == 0) {
        finish(call, &result, NULL);
        return;
    }
    bool refused = call->status == 403 || call->status == 405 || call->status == 501;
    if (refused && call->posted && call->form.n <= GET_BYTES_MAX) {
        call->client->gets = true;
        attempt(call);
        return;
    }
    if (call->status != 200 && read != -EREMOTEIO)
        err_set(&e, EREMOTEIO, "Prometheus answered %d %s", call->status,
                http_reason(call->status));
    failed(call, &e, call->status == 400 || call->status == 422);
}

static void on_done(void *context, const err_t *failure)
{
    struct prom_call *call = context;
    call->http = NULL;
    if (!failure) {
        on_answer(call);
        return;
    }
    err_t e = *failure;
    err_wrap(&e, "Prometheus did not answer");
    failed(call, &e, false);
}

static void reset_answer(struct prom_call *call)
{
    prom_reader_done(&call->reader);
    arena_done(&call->arena);
    call->arena = (struct arena){ 0 };
    prom_reader_init(&call->reader, &call->arena);
    call->broken = false;
    call->body_bytes = 0;
    call->status = 0;
}

static void send_request(struct prom_call *call)
{
    auto_buf struct buf target = { 0 };
    buf_put(&target, buf_str(&call->path));
    bool get = call->client->gets && call->form.n <= GET_BYTES_MAX;
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
    reset_answer(call);
    call->http = http_client_send(call->client->http, &request);
}

/* Seconds with milliseconds, as Prometheus reads them. */
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

struct prom_call *prom_client_query(struct prom_client *c, const struct prom_query *q)
{
    struct prom_call *call = mem_zero(1, sizeof(*call));
    int64_t now = loop_mono_ns(c->loop);
    call->client = c;
    call->on_done = q->on_done;
    call->context = q->context;
    call->retry = q->retry.attempts ? q->retry : c->retry;
    call->attempts_left = call->retry.attempts;
    call->pause_ns = call->retry.first_ns;
    call->deadline_ns = now + c->timeout_ns;
    if (q->deadline_ns)
        call->deadline_ns = MIN(call->deadline_ns, q->deadline_ns - MARGIN_MS * NS_PER_MS);
    call->deadline_ns = MAX(call->deadline_ns, now + NS_PER_MS);
    call->doubted = q->doubted;
    list_prepend(&c->calls, &call->item);
    put_request(call, q);
    attempt(call);
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

void prom_query_matcher(struct buf *out, const char *label, str value)
{
    str line;
    buf_printf(out, "%s=\"", label);
    for (bool first = true; str_cut(&value, '\n', &line); first = false) {
        buf_put(out, first ? S("") : S("\\n"));
        prom_query_escape(out, line);
    }
    buf_putc(out, '"');
}
