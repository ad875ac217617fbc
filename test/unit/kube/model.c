/* See model.h. Answers are made as JSON; for a client that accepts protobuf, model_protobuf.c converts them. */
#include "model.h"

#include "model_protobuf.h"

static const char gone_status[] = "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
                                  "\"message\":\"too old\"}";

int64_t model_size(const struct model *m, int thing, size_t upto)
{
    for (size_t i = upto; i--;)
        if (m->changes.at[i].thing == thing)
            return m->changes.at[i].size;
    return -1;
}

static void model_put_thing(struct buf *out, int thing, int64_t size, size_t rv)
{
    buf_printf(out,
               "{\"metadata\":{\"name\":\"t%d\",\"namespace\":\"ns\",\"uid\":\"u%d\","
               "\"resourceVersion\":\"%zu\"},\"spec\":{\"size\":%lld,\"replicas\":%lld}}",
               thing, thing, rv, (long long)size, (long long)size);
}

static size_t model_rv_of(const struct model *m, int thing)
{
    for (size_t i = m->changes.n; i--;)
        if (m->changes.at[i].thing == thing)
            return i + 1;
    return 0;
}

void model_change(struct model *m, int thing, int64_t size)
{
    vec_push(&m->changes, ((struct change){ thing, size }));
    for (struct model_watch *w = m->watches; w; w = w->next)
        exchange_wake_stream(w->x);
}

/* ---- watches */

static void model_line(struct model_watch *w, struct buf *out)
{
    const struct change *c = &w->m->changes.at[w->cursor];
    int64_t before = model_size(w->m, c->thing, w->cursor);
    w->cursor++;
    if (c->size < 0 && before < 0)
        return;
    buf_printf(out, "{\"type\":\"%s\",\"object\":",
               c->size < 0  ? "DELETED"
               : before < 0 ? "ADDED"
                            : "MODIFIED");
    model_put_thing(out, c->thing, c->size < 0 ? before : c->size, w->cursor);
    buf_put(out, S("}\n"));
    w->sent++;
}

static void model_initial(struct model_watch *w, struct buf *out)
{
    w->initial = false;
    w->cursor = w->m->changes.n;
    for (int i = 0; i < THINGS; i++) {
        int64_t size = model_size(w->m, i, w->cursor);
        if (size < 0)
            continue;
        buf_put(out, S("{\"type\":\"ADDED\",\"object\":"));
        model_put_thing(out, i, size, model_rv_of(w->m, i));
        buf_put(out, S("}\n"));
    }
    if (!w->quiet)
        buf_printf(out,
                   "{\"type\":\"BOOKMARK\",\"object\":{\"metadata\":{\"resourceVersion\":\"%zu\","
                   "\"annotations\":{\"k8s.io/initial-events-end\":\"true\"}}}}\n",
                   w->cursor);
}

static enum stream_more model_lines(struct model_watch *w, struct buf *out)
{
    if (w->fault == FAULT_SILENT)
        return STREAM_WAIT;
    if (w->initial)
        model_initial(w, out);
    while (w->cursor < w->m->changes.n)
        model_line(w, out);
    switch (w->sent >= 2 || w->fault == FAULT_END ? w->fault : FAULT_NONE) {
    case FAULT_GONE:
        w->m->expirings++;
        buf_printf(out, "{\"type\":\"ERROR\",\"object\":%s}\n", gone_status);
        return STREAM_END;
    case FAULT_ERROR:
        buf_put(out, S("{\"type\":\"ERROR\",\"object\":{\"code\":500,\"message\":\"oh\"}}\n"));
        return STREAM_END;
    case FAULT_GARBAGE:
        buf_put(out, S("{\"type\":\"ADDED\",\"obj\x01\xff\n"));
        return STREAM_WAIT;
    case FAULT_NO_EVENT:
        buf_put(out, S("{\"type\":\"SURPRISE\",\"object\":{}}\n"));
        return STREAM_WAIT;
    case FAULT_CUT:
        buf_put(out, S("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"na"));
        return STREAM_CUT;
    case FAULT_ABORT:
        return STREAM_CUT;
    case FAULT_END:
        return STREAM_END;
    default:
        return STREAM_WAIT;
    }
}

static enum stream_more model_pull(void *context, struct buf *out, size_t room)
{
    struct model_watch *w = context;
    auto_buf struct buf lines = { 0 };
    (void)room;
    enum stream_more more = model_lines(w, &lines);
    if (w->protobuf)
        model_put_frames(out, buf_str(&lines));
    else
        buf_put(out, buf_str(&lines));
    return more;
}

/* Like fake_answer(), in the encoding that the client accepts. */
static void model_answer(struct model *m, struct exchange *x, int status, const char *body)
{
    auto_buf struct buf out = { 0 };
    if (!model_wants_protobuf(x) || m->offer == OFFER_JSON) {
        fake_answer(x, status, body);
        return;
    }
    if (m->offer == OFFER_LIE)
        buf_put(&out, str_c(body));
    else
        model_put_answer(&out, str_c(body));
    exchange_answer(x, status, HTTP_HEADERS({ S("content-type"), S(PROTOBUF_TYPE) }),
                    buf_str(&out));
}

static void model_closed(void *context, bool complete)
{
    struct model_watch *w = context;
    (void)complete;
    struct model_watch **at = &w->m->watches;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    free(w);
}

static void model_watch(struct model *m, struct exchange *x, str rv, bool initial)
{
    enum fault fault = m->next_watch;
    m->next_watch = FAULT_NONE;
    if (m->random_faults && random_below(&m->random, 2))
        fault = (enum fault)random_below(&m->random, FAULT_N);
    int64_t from = 0;
    str_to_i64(rv, &from);
    if (initial && !m->streams && !m->ignores) {
        model_answer(m, x, 400, "{\"reason\":\"BadRequest\"}");
    } else if (fault == FAULT_ERROR && random_below(&m->random, 2)) {
        model_answer(m, x, 500, "{\"reason\":\"InternalError\"}");
    } else if (!initial && ((size_t)from < m->compacted ||
                            (fault == FAULT_GONE && random_below(&m->random, 2)))) {
        m->expirings++;
        model_answer(m, x, 410, gone_status);
    } else {
        bool named = model_wants_protobuf(x) && m->offer != OFFER_JSON;
        struct model_watch *w = mem_zero(1, sizeof(*w));
        *w = (struct model_watch){ .m = m,
                                   .x = x,
                                   .cursor = (size_t)from,
                                   .initial = initial,
                                   .protobuf = named && m->offer == OFFER_PROTOBUF,
                                   .quiet = m->ignores,
                                   .fault = fault,
                                   .next = m->watches };
        m->watches = w;
        exchange_stream(x, 200,
                        HTTP_HEADERS({ S("content-type"), named ? S(PROTOBUF_TYPE ";stream=watch")
                                                                : S("application/json") }),
                        &(struct stream_source){ .pull = model_pull,
                                                 .closed = model_closed,
                                                 .context = w,
                                                 .length = -1 });
    }
}

/* ---- lists: a page is 7 things; the continue token is "version:next thing" */

static void model_page(struct model *m, struct exchange *x, size_t rv, int first, bool all)
{
    auto_buf struct buf out = { 0 };
    buf_put(&out, S("{\"kind\":\"ThingList\",\"metadata\":{\"resourceVersion\":"));
    int end = all ? THINGS : MIN(first + 7, THINGS);
    buf_printf(&out, "\"%zu\"", rv);
    if (end < THINGS)
        buf_printf(&out, ",\"continue\":\"%zu:%d\"", rv, end);
    buf_put(&out, S("},\"items\":["));
    bool comma = false;
    for (int i = first; i < end; i++) {
        int64_t size = model_size(m, i, rv);
        if (size < 0)
            continue;
        if (comma)
            buf_putc(&out, ',');
        comma = true;
        size_t own = 0;
        for (size_t k = 0; k < rv; k++)
            if (m->changes.at[k].thing == i)
                own = k + 1;
        model_put_thing(&out, i, size, own);
    }
    buf_put(&out, S("]}"));
    m->lists += end == THINGS;
    model_answer(m, x, 200, out.p);
}

static void model_list(struct model *m, struct exchange *x, str token, bool limited)
{
    enum fault fault = m->next_list;
    m->next_list = FAULT_NONE;
    if (m->random_faults && random_below(&m->random, 3) == 0)
        fault = (enum fault)random_below(&m->random, FAULT_N);
    size_t rv = m->changes.n;
    int64_t number, first = 0;
    str part;
    if (token.n && str_cut(&token, ':', &part) && str_to_i64(part, &number) == 0) {
        rv = (size_t)number;
        str_to_i64(token, &first);
    }
    if (fault == FAULT_GONE || rv < m->compacted) {
        m->expirings++;
        model_answer(m, x, 410, gone_status);
    } else if (fault == FAULT_ERROR) {
        model_answer(m, x, 500, "{}");
    } else if (fault == FAULT_ABORT || fault == FAULT_SILENT) {
        exchange_abort(x);
    } else if (fault == FAULT_GARBAGE) {
        model_answer(m, x, 200,
                     "{\"items\":[{\"metadata\":{\"name\":\"t1\",\"namespace\":\"ns\"}},{\"meta");
    } else if (fault == FAULT_CUT || fault == FAULT_NO_EVENT) {
        model_answer(m, x, 200,
                     "{\"items\":[{\"metadata\":{}}],\"metadata\":{\"resourceVersion\":\"1\"}}");
    } else if (fault == FAULT_END) {
        model_answer(m, x, 200, "{\"kind\":\"Status\",\"metadata\":{}}");
    } else {
        model_page(m, x, rv, (int)first, !limited);
    }
}

static void model_serve(struct fake *f, struct exchange *x)
{
    struct model *m = (struct model *)f;
    struct arena *a = exchange_arena(x);
    str query = exchange_query(x), value, rv = S(""), token = S("");
    uri_query_get(a, query, S("resourceVersion"), &rv);
    if (m->away) {
        exchange_abort(x);
        return;
    }
    *(model_wants_protobuf(x) ? &m->in_protobuf : &m->in_json) += 1;
    if (model_wants_protobuf(x) && m->offer == OFFER_REFUSE) {
        fake_answer(x, 406, "{\"reason\":\"NotAcceptable\"}");
        return;
    }
    if (m->refuses_versions && rv.n &&
        uri_query_get(a, query, S("resourceVersionMatch"), &value) == 1) {
        m->expirings++;
        model_answer(m, x, 410, gone_status);
        return;
    }
    if (uri_query_get(a, query, S("watch"), &value) == 1) {
        model_watch(m, x, rv, uri_query_get(a, query, S("sendInitialEvents"), &value) == 1);
        return;
    }
    uri_query_get(a, query, S("continue"), &token);
    model_list(m, x, token, uri_query_get(a, query, S("limit"), &value) == 1);
}

void model_start(struct model *m)
{
    *m = (struct model){ 0 };
    fake_start(&m->f, model_serve);
    random_init(&m->random, 11, 4);
}

void model_stop(struct model *m)
{
    fake_stop(&m->f);
    vec_done(&m->changes);
}
