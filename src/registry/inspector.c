/* Dialogues with registries on the loop: see inspector.h.
 *
 *     registry_inspect -> same question in progress? -- yes --> wait with it
 *                             | no
 *                         known? -- yes --> answered at the end of the turn
 *                             | no
 *                         queue --start_jobs()--> job: dialogue_core asks, http_client answers
 *                                                   |  (a retry waits for a timer)
 *                         all waiters <-------------+  result, or 30 s have passed
 *
 * A job has one HTTP client per origin that it talks to, created when first needed and freed with the job: a token server or
 * a redirect may lead anywhere, and each has its own rule for addresses. The rule is asked with the address that is
 * then connected to, so that a name cannot resolve to something else in between.
 *
 * Memory: a hostile registry can answer with as many bytes as the dialogue allows. Configurations above LARGE_BYTES are
 * read one at a time; everything of a job is freed at its end. */
#include "inspector.h"

#include "../net/http_client.h"
#include "address_core.h"
#include "label_cache.h"

enum { CLIENTS_MAX = 8, LARGE_BYTES = 1 << 20 };
#define REQUEST_NS (10 * NS_PER_S)
#define DIALOGUE_NS (30 * NS_PER_S)
#define TAG_NS (600 * NS_PER_S)

struct job;

struct origin { /* one endpoint of a job */
    struct job *job;
    struct http_client *client;
    str name; /* "https://host:port", in the job's arena */
};

struct registry_inspection {
    struct list_item item; /* of its job's waiters */
    struct job *job;
    void (*done)(void *context, const struct registry_result *result);
    void *context;
};

struct job {
    struct registry_inspector *inspector;
    struct list_item item;     /* of the queue, or of those that run */
    struct list_item for_room; /* of those that wait to read a large configuration */
    struct list waiters;
    struct arena arena; /* holds everything below */
    char key[SHA256_HEX + 1];
    str tenant;
    struct registry_question question;
    bool allow_private, large;
    bool begun; /* or its answer is known: it ends by itself */
    struct registry_dialogue dialogue;
    struct registry_request request;
    struct origin origins[CLIENTS_MAX];
    size_t origin_n;
    struct http_call *call;
    struct timer wait, deadline;
    struct deferred answer; /* for a question whose answer is known */
};

struct registry_inspector {
    struct loop *loop;
    struct arena arena; /* of the options */
    str plain_http, allow_private, mirrors, api_server;
    const char *ca_file;
    struct tls *tls; /* created when first needed: the system's CAs take a megabyte */
    struct map jobs; /* by key */
    struct list queue, running, for_room;
    size_t large; /* jobs that read a large configuration: 0 or 1 */
    struct label_cache labels;
};

static void start_jobs(struct registry_inspector *r);
static void continue_job(struct job *j);
static void run_answer(struct deferred *d);

/* ---- life */

struct registry_inspector *registry_inspector_new(const struct registry_inspector_options *o)
{
    struct registry_inspector *r = mem_zero(1, sizeof(*r));
    r->loop = o->loop;
    r->plain_http = arena_str(&r->arena, o->plain_http);
    r->allow_private = arena_str(&r->arena, o->allow_private);
    r->mirrors = arena_str(&r->arena, o->mirrors);
    r->api_server = arena_str(&r->arena, o->api_server);
    r->ca_file = o->ca_file && *o->ca_file ? arena_str(&r->arena, str_c(o->ca_file)).p : NULL;
    return r;
}

/* Lets the next job read a large configuration; finish_job() and take_answer() continue it. */
static void release_large(struct job *j)
{
    if (!j->large)
        return;
    j->large = false;
    j->inspector->large--;
}

/* Ends everything that the job has under way; its waiters are gone. */
static void free_job(struct job *j)
{
    if (map_get(&j->inspector->jobs, str_c(j->key)) == j) /* a waiter may have asked again */
        map_del(&j->inspector->jobs, str_c(j->key));
    list_remove(&j->item);
    list_remove(&j->for_room);
    release_large(j);
    http_call_cancel(j->call);
    for (size_t i = 0; i < j->origin_n; i++)
        http_client_free(j->origins[i].client);
    timer_stop(&j->wait);
    timer_stop(&j->deadline);
    loop_cancel_deferred(&j->answer);
    arena_done(&j->arena);
    free(j);
}

/* Its callback is not called. */
static void drop_waiter(struct registry_inspection *i)
{
    list_remove(&i->item);
    free(i);
}

void registry_inspector_free(struct registry_inspector *r)
{
    if (!r)
        return;
    for (struct map_slot *s; (s = map_next(&r->jobs, NULL));) {
        struct job *j = s->value;
        for (struct registry_inspection *i;
             (i = list_first(&j->waiters, struct registry_inspection, item));)
            drop_waiter(i);
        free_job(j);
    }
    map_done(&r->jobs);
    label_cache_done(&r->labels);
    tls_unref(r->tls);
    arena_done(&r->arena);
    free(r);
}

/* ---- what is known */

/* Fingerprint of a question; with a digest, of the image of that digest. */
static void make_key(const struct registry_question *q, str identifier, char ret[SHA256_HEX + 1])
{
    auto_buf struct buf b = { 0 };
    static const char *const lists[] = { "", "tags", "catalog", "hub" };
    const str parts[] = { q->image.registry,
                          q->image.repository,
                          identifier,
                          str_c(lists[q->list]),
                          str_c(q->architecture ? q->architecture : ""),
                          q->credentials.username,
                          q->credentials.password,
                          q->credentials.identity_token };
    for (size_t i = 0; i < countof(parts); i++)
        buf_printf(&b, "%zu:" STR_FMT, parts[i].n, STR_ARG(parts[i]));
    sha256_hex(buf_str(&b), ret);
}

static int64_t now_ns(const struct registry_inspector *r)
{
    return loop_mono_ns(r->loop);
}

/* The labels that are kept for this digest; true: the result of the job is set. */
static bool recall_labels(struct job *j, str digest)
{
    char key[SHA256_HEX + 1];
    struct json *labels = NULL;
    make_key(&j->question, digest, key);
    str text = label_cache_get(&j->inspector->labels, str_c(key), now_ns(j->inspector));
    if (!text.p || json_parse(&j->arena, arena_str(&j->arena, text), &labels, NULL) < 0)
        return false;
    j->dialogue.result =
        (struct registry_result){ .done = true,
                                  .labels = json_is(labels, JSON_OBJ) ? labels : NULL,
                                  .digest = arena_str(&j->arena, digest) };
    return true;
}

/* Labels are kept by digest, for good: a digest never changes its content. A tag is kept as the digest that it
 * named, for TAG_NS. */
static void keep_labels(struct job *j)
{
    const struct registry_result *result = &j->dialogue.result;
    struct registry_inspector *r = j->inspector;
    char key[SHA256_HEX + 1];
    if (result->cause != REGISTRY_OK || !result->digest.n)
        return;
    make_key(&j->question, result->digest, key);
    label_cache_put(&r->labels, str_c(key),
                    result->labels ? json_to_str(&j->arena, result->labels) : S("null"), 0);
    if (!str_eq(registry_reference_identifier(&j->question.image), result->digest))
        label_cache_put(&r->labels, str_c(j->key), result->digest,
                        j->question.image.digest.n ? 0 : now_ns(r) + TAG_NS);
}

/* ---- the end of a job */

/* Waiters may ask new questions or cancel others; the job is out of all lists by then. */
static void finish_job(struct job *j)
{
    struct registry_inspector *r = j->inspector;
    map_del(&r->jobs, str_c(j->key));
    list_remove(&j->item);
    list_remove(&j->for_room);
    release_large(j);
    keep_labels(j);
    for (struct registry_inspection *i;
         (i = list_first(&j->waiters, struct registry_inspection, item));) {
        list_remove(&i->item);
        i->done(i->context, &j->dialogue.result);
        free(i);
    }
    free_job(j);
    struct job *next = list_first(&r->for_room, struct job, for_room);
    if (next && !r->large) {
        list_remove(&next->for_room);
        continue_job(next);
    }
    start_jobs(r);
}

static void fail_job(struct job *j, enum registry_cause cause, str message)
{
    j->dialogue.result = (struct registry_result){ .done = true,
                                                   .cause = cause,
                                                   .message = arena_str(&j->arena, message) };
    finish_job(j);
}

static void on_deadline(struct timer *timer)
{
    struct job *j = container_of(timer, struct job, deadline);
    fail_job(j, REGISTRY_UNREACHABLE,
             arena_printf(&j->arena, STR_FMT ": the registry did not answer within 30 s",
                          STR_ARG(j->question.image.registry)));
}

/* ---- requests */

static bool lists_host(str list, str host)
{
    str item;
    while (str_cut(&list, ',', &item))
        if (str_trim(item).n && str_matches_glob(str_trim(item), host, '?'))
            return true;
    return false;
}

/* Asked by the client for each address that it is about to connect to. */
static bool allow_address(void *context, const uint8_t *bytes, size_t n)
{
    const struct origin *o = context;
    return registry_address_is_allowed(bytes, n, o->job->allow_private);
}

static int open_tls(struct registry_inspector *r, err_t *e)
{
    if (r->tls)
        return 0;
    return tls_client_new(&(struct tls_client_options){ .ca_file = r->ca_file }, &r->tls, e);
}

/* The client for the origin of the request; NULL and `e`. */
static struct http_client *find_client(struct job *j, const struct registry_url *url, err_t *e)
{
    struct registry_inspector *r = j->inspector;
    str name =
        arena_printf(&j->arena, "%s://" STR_FMT, url->tls ? "https" : "http", STR_ARG(url->host));
    for (size_t i = 0; i < j->origin_n; i++)
        if (str_eq(j->origins[i].name, name))
            return j->origins[i].client;
    if (j->origin_n == CLIENTS_MAX) {
        err_set(e, ELOOP, STR_FMT ": too many different servers", STR_ARG(name));
        return NULL;
    }
    struct origin *o = &j->origins[j->origin_n];
    *o = (struct origin){ .job = j, .name = name };
    struct http_client_options options = { .url = name,
                                           .allow_address = allow_address,
                                           .context = o,
                                           .no_gzip = true, /* digests are of the bytes sent */
                                           .dial_timeout_ns = REQUEST_NS };
    if (url->tls && open_tls(r, e) < 0)
        return NULL;
    options.tls = url->tls ? r->tls : NULL;
    if (http_client_new(r->loop, &options, &o->client, e) < 0)
        return NULL;
    j->origin_n++;
    return o->client;
}

static void take_answer(struct job *j, const struct registry_answer *answer)
{
    registry_dialogue_answer(&j->dialogue, answer);
    release_large(j);
    continue_job(j);
}

/* A failure without an answer: refused by the address rule, too large, or unreachable. */
static void take_failure(struct job *j, const err_t *failure)
{
    struct registry_answer answer = { .failure = str_c(failure->text) };
    if (failure->code == EACCES) {
        answer.refused = true;
        answer.failure = arena_printf(&j->arena,
                                      "%s; if it is a registry, the operator needs "
                                      "--registry-allow-private " STR_FMT,
                                      failure->text, STR_ARG(j->question.image.registry));
    }
    if (failure->code == EMSGSIZE) {
        answer.status = 200;
        answer.too_large = true;
    }
    take_answer(j, &answer);
}

static void on_answer(void *context, const struct http_response *response, const err_t *failure)
{
    struct job *j = context;
    j->call = NULL;
    if (failure) {
        take_failure(j, failure);
        return;
    }
    take_answer(j, &(struct registry_answer){
                       .status = response->status,
                       .body = response->body,
                       .content_type = http_header_get(response->headers, S("content-type")),
                       .location = http_header_get(response->headers, S("location")),
                       .authenticate = http_header_get(response->headers, S("www-authenticate")),
                       .retry_after = http_header_get(response->headers, S("retry-after")),
                       .link = http_header_get(response->headers, S("link")) });
}

/* May the registry send us there at all? */
static bool is_api_server(const struct job *j, const struct registry_url *url)
{
    return j->request.target != REGISTRY_HOST && j->inspector->api_server.n &&
           str_eq_nocase(url->host, j->inspector->api_server);
}

/* Sends the current request of the dialogue. A registry must not redirect the operator to its own API server. */
static void send_request(struct job *j)
{
    struct registry_inspector *r = j->inspector;
    struct registry_url url;
    err_t e;
    bool valid = registry_url_parse(j->request.url, &url);
    if (!valid)
        err_set(&e, EINVAL, STR_FMT ": not a URL", STR_ARG(j->request.url));
    else if (is_api_server(j, &url)) {
        valid = false;
        err_set(&e, EACCES, STR_FMT ": connecting to its address is not allowed",
                STR_ARG(url.host));
    }
    struct http_client *client = valid ? find_client(j, &url, &e) : NULL;
    if (!client) {
        take_failure(j, &e);
        return;
    }
    struct http_header headers[2];
    size_t n = 0;
    if (j->request.accept.n)
        headers[n++] = (struct http_header){ S("accept"), j->request.accept };
    if (j->request.authorization.n)
        headers[n++] = (struct http_header){ S("authorization"), j->request.authorization };
    j->call = http_client_fetch(client, &(struct http_fetch){
                                            .method = S("GET"),
                                            .target = url.path,
                                            .headers = { headers, n },
                                            .deadline_ns =
                                                now_ns(r) + loop_scale_timeout(r->loop, REQUEST_NS),
                                            .max_body_bytes = j->request.bytes_max,
                                            .on_done = on_answer,
                                            .context = j });
}

static void on_waited(struct timer *timer)
{
    send_request(container_of(timer, struct job, wait));
}

/* A large configuration waits until no other one is being read. */
static bool must_wait_for_room(struct job *j)
{
    if (j->dialogue.step != REGISTRY_CONFIG || j->request.bytes_max <= LARGE_BYTES)
        return false;
    if (j->inspector->large) {
        list_append(&j->inspector->for_room, &j->for_room);
        return true;
    }
    j->large = true;
    j->inspector->large++;
    return false;
}

/* The next request of the dialogue, or its end. */
static void continue_job(struct job *j)
{
    if (!registry_dialogue_next(&j->dialogue, &j->request) ||
        (j->dialogue.step == REGISTRY_CONFIG && recall_labels(j, j->dialogue.result.digest))) {
        finish_job(j);
        return;
    }
    if (must_wait_for_room(j))
        return;
    if (j->request.wait_ms)
        timer_set(j->inspector->loop, &j->wait,
                  now_ns(j->inspector) + j->request.wait_ms * NS_PER_MS, on_waited);
    else
        send_request(j);
}

/* ---- the queue */

/* One dialogue per registry, and half of all for one tenant: a slow registry delays its own users. */
static bool may_start(const struct registry_inspector *r, const struct job *j)
{
    size_t same = 0;
    if (r->running.n >= REGISTRY_AT_ONCE)
        return false;
    list_each(struct job, other, &r->running, item) {
        if (str_eq(other->question.image.registry, j->question.image.registry))
            return false;
        same += str_eq(other->tenant, j->tenant);
    }
    return same < REGISTRY_AT_ONCE / 2;
}

static void start_jobs(struct registry_inspector *r)
{
    for (struct list_item *at = r->queue.first, *next; at; at = next) {
        struct job *j = container_of(at, struct job, item);
        next = at->next;
        if (!may_start(r, j))
            continue;
        list_move(&r->running, &j->item);
        j->begun = true;
        timer_set(r->loop, &j->deadline, now_ns(r) + loop_scale_timeout(r->loop, DIALOGUE_NS),
                  on_deadline);
        registry_dialogue_start(&j->dialogue, &j->arena, &j->question);
        loop_defer(r->loop, LOOP_SOON, &j->answer, run_answer);
    }
}

/* The first step of a job that was started, or the end of one whose answer is known. */
static void run_answer(struct deferred *d)
{
    struct job *j = container_of(d, struct job, answer);
    if (j->dialogue.result.done)
        finish_job(j);
    else
        continue_job(j);
}

/* ---- questions */

/* The operator chose the mirror, so that it may be private and without TLS; credentials are for the registry and are not sent to
 * another host. */
static void use_mirror(struct job *j)
{
    str list = j->inspector->mirrors, item, host;
    struct registry_url url;
    while (str_cut(&list, ',', &item)) {
        item = str_trim(item);
        size_t at = str_find_char(item, '=');
        host = at == SIZE_MAX ? S("") : str_upto(item, at);
        if (!host.n || !str_eq(host, j->question.image.registry) ||
            !registry_url_parse(str_from(item, at + 1), &url))
            continue;
        j->question.image.registry = url.host;
        j->question.plain_http = !url.tls;
        j->question.credentials = (struct registry_credentials){ 0 };
        j->allow_private = true;
        return;
    }
}

static void copy_question(struct job *j, const struct registry_inspect *q)
{
    struct arena *a = &j->arena;
    const struct registry_inspector *r = j->inspector;
    j->question = (struct registry_question){
        .image = { .registry = arena_str(a, q->image.registry),
                   .repository = arena_str(a, q->image.repository),
                   .tag = arena_str(a, q->image.tag),
                   .digest = arena_str(a, q->image.digest) },
        .list = q->list,
        .credentials = { .found = q->credentials.found,
                         .username = arena_str(a, q->credentials.username),
                         .password = arena_str(a, q->credentials.password),
                         .identity_token = arena_str(a, q->credentials.identity_token) },
        .plain_http = lists_host(r->plain_http, q->image.registry),
        .architecture = q->architecture,
    };
    j->tenant = arena_str(a, q->tenant);
    j->allow_private = lists_host(r->allow_private, q->image.registry);
    use_mirror(j);
    make_key(&j->question, registry_reference_identifier(&j->question.image), j->key);
}

/* Questions are the same if their fingerprint is, which includes the credentials: one tenant's labels are never
 * returned to another that could not read them. */
struct registry_inspection *registry_inspect(struct registry_inspector *r,
                                             const struct registry_inspect *q)
{
    struct registry_inspection *i = mem_zero(1, sizeof(*i));
    struct job *j = mem_zero(1, sizeof(*j));
    i->done = q->done;
    i->context = q->context;
    j->inspector = r;
    copy_question(j, q);
    struct job *same = map_get(&r->jobs, str_c(j->key));
    if (same) {
        list_append(&same->waiters, &i->item);
        i->job = same;
        arena_done(&j->arena);
        free(j);
        return i;
    }
    map_put(&r->jobs, str_c(j->key), j);
    list_append(&j->waiters, &i->item);
    i->job = j;
    str digest = label_cache_get(&r->labels, str_c(j->key), now_ns(r));
    str id = registry_reference_identifier(&j->question.image);
    j->begun = (digest.p && recall_labels(j, digest)) ||
               (j->question.image.digest.n && recall_labels(j, id));
    if (j->begun)
        loop_defer(r->loop, LOOP_SOON, &j->answer, run_answer);
    else {
        list_append(&r->queue, &j->item);
        start_jobs(r);
    }
    return i;
}

/* A job without a waiter ends at once if it has not begun, otherwise by itself: its labels may be asked for again. */
void registry_inspection_cancel(struct registry_inspection *i)
{
    if (!i)
        return;
    struct job *j = i->job;
    drop_waiter(i);
    if (!j->waiters.n && !j->begun)
        free_job(j);
}
