/* A collection of things behind HTTP, small enough to be obviously right: a list of all that ever
 * happened. It lists in pages, watches, streams initial events, and misbehaves on request. */
#ifndef FLYBALL_TEST_MODEL_H
#define FLYBALL_TEST_MODEL_H

#include "base/random.h"
#include "base/vec.h"
#include "fake.h"

enum { THINGS = 40 };

enum fault {
    FAULT_NONE,
    FAULT_GONE,     /* 410: as status, or as an event of a watch */
    FAULT_ERROR,    /* 500 */
    FAULT_ABORT,    /* no answer */
    FAULT_GARBAGE,  /* an answer that is no JSON */
    FAULT_CUT,      /* an answer that ends in the middle of an object */
    FAULT_END,      /* a watch that ends at once; a list that is no list */
    FAULT_SILENT,   /* a watch that sends nothing, not even the end */
    FAULT_NO_EVENT, /* a watch event of unknown type */
    FAULT_N
};

struct change {
    int thing;
    int64_t size; /* -1: deleted */
};

struct model_watch {
    struct model *m;
    struct exchange *x;
    size_t cursor; /* changes already sent */
    bool initial;  /* sends the state first */
    bool quiet;    /* ignores what it does not know: no end of the initial events */
    enum fault fault;
    int sent; /* lines since the start */
    struct model_watch *next;
};

struct model {
    struct fake f;
    VEC(struct change) changes; /* rv is the index plus one */
    size_t compacted;           /* changes that a watch cannot begin before */
    struct model_watch *watches;
    struct random random;
    bool streams;         /* knows sendInitialEvents, else refuses it with 400 */
    bool ignores;         /* does not know it and does not say so */
    int lists, expirings; /* complete pages; 410s sent */
    enum fault next_list, next_watch;
    bool random_faults;
    bool refuses_versions; /* 410 for every list or initial events from a version */
    bool away;             /* hangs up on everybody */
};

static UNUSED int64_t model_size(const struct model *m, int thing, size_t upto)
{
    for (size_t i = upto; i--;)
        if (m->changes.at[i].thing == thing)
            return m->changes.at[i].size;
    return -1;
}

static UNUSED void model_put_thing(struct buf *out, int thing, int64_t size, size_t rv)
{
    buf_printf(out,
               "{\"metadata\":{\"name\":\"t%d\",\"namespace\":\"ns\",\"uid\":\"u%d\","
               "\"resourceVersion\":\"%zu\"},\"spec\":{\"size\":%lld}}",
               thing, thing, rv, (long long)size);
}

static UNUSED size_t model_rv_of(const struct model *m, int thing)
{
    for (size_t i = m->changes.n; i--;)
        if (m->changes.at[i].thing == thing)
            return i + 1;
    return 0;
}

static UNUSED void model_change(struct model *m, int thing, int64_t size)
{
    vec_push(&m->changes, ((struct change){ thing, size }));
    for (struct model_watch *w = m->watches; w; w = w->next)
        exchange_wake_stream(w->x);
}

static const char gone_status[] = "{\"kind\":\"Status\",\"code\":410,\"reason\":\"Expired\","
                                  "\"message\":\"too old\"}";

/* ---- watches */

static UNUSED void model_line(struct model_watch *w, struct buf *out)
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

static UNUSED void model_initial(struct model_watch *w, struct buf *out)
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

static UNUSED enum stream_more model_pull(void *context, struct buf *out, size_t room)
{
    struct model_watch *w = context;
    (void)room;
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

static UNUSED void model_closed(void *context, bool complete)
{
    struct model_watch *w = context;
    (void)complete;
    struct model_watch **at = &w->m->watches;
    while (*at != w)
        at = &(*at)->next;
    *at = w->next;
    free(w);
}

static UNUSED void model_watch(struct model *m, struct exchange *x, str rv, bool initial)
{
    enum fault fault = m->next_watch;
    m->next_watch = FAULT_NONE;
    if (m->random_faults && random_below(&m->random, 2))
        fault = (enum fault)random_below(&m->random, FAULT_N);
    int64_t from = 0;
    str_to_i64(rv, &from);
    if (initial && !m->streams && !m->ignores) {
        fake_answer(x, 400, "{\"reason\":\"BadRequest\"}");
    } else if (fault == FAULT_ERROR && random_below(&m->random, 2)) {
        fake_answer(x, 500, "{\"reason\":\"InternalError\"}");
    } else if (!initial && ((size_t)from < m->compacted ||
                            (fault == FAULT_GONE && random_below(&m->random, 2)))) {
        m->expirings++;
        fake_answer(x, 410, gone_status);
    } else {
        struct model_watch *w = mem_zero(1, sizeof(*w));
        *w = (struct model_watch){ .m = m,
                                   .x = x,
                                   .cursor = (size_t)from,
                                   .initial = initial,
                                   .quiet = m->ignores,
                                   .fault = fault,
                                   .next = m->watches };
        m->watches = w;
        exchange_stream(x, 200, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                        &(struct stream_source){ .pull = model_pull,
                                                 .closed = model_closed,
                                                 .context = w,
                                                 .length = -1 });
    }
}

/* ---- lists: a page is 7 things; the continue token is "version:next thing" */

static UNUSED void model_page(struct model *m, struct exchange *x, size_t rv, int first, bool all)
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
    fake_answer(x, 200, out.p);
}

static UNUSED void model_list(struct model *m, struct exchange *x, str token, bool limited)
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
        fake_answer(x, 410, gone_status);
    } else if (fault == FAULT_ERROR) {
        fake_answer(x, 500, "{}");
    } else if (fault == FAULT_ABORT || fault == FAULT_SILENT) {
        exchange_abort(x);
    } else if (fault == FAULT_GARBAGE) {
        fake_answer(x, 200,
                    "{\"items\":[{\"metadata\":{\"name\":\"t1\",\"namespace\":\"ns\"}},{\"meta");
    } else if (fault == FAULT_CUT || fault == FAULT_NO_EVENT) {
        fake_answer(x, 200,
                    "{\"items\":[{\"metadata\":{}}],\"metadata\":{\"resourceVersion\":\"1\"}}");
    } else if (fault == FAULT_END) {
        fake_answer(x, 200, "{\"kind\":\"Status\",\"metadata\":{}}");
    } else {
        model_page(m, x, rv, (int)first, !limited);
    }
}

static UNUSED void model_serve(struct fake *f, struct exchange *x)
{
    struct model *m = (struct model *)f;
    struct arena *a = exchange_arena(x);
    str query = exchange_query(x), value, rv = S(""), token = S("");
    uri_query_get(a, query, S("resourceVersion"), &rv);
    if (m->away) {
        exchange_abort(x);
        return;
    }
    if (m->refuses_versions && rv.n &&
        uri_query_get(a, query, S("resourceVersionMatch"), &value) == 1) {
        m->expirings++;
        fake_answer(x, 410, gone_status);
        return;
    }
    if (uri_query_get(a, query, S("watch"), &value) == 1) {
        model_watch(m, x, rv, uri_query_get(a, query, S("sendInitialEvents"), &value) == 1);
        return;
    }
    uri_query_get(a, query, S("continue"), &token);
    model_list(m, x, token, uri_query_get(a, query, S("limit"), &value) == 1);
}

static UNUSED void model_start(struct model *m)
{
    *m = (struct model){ 0 };
    fake_start(&m->f, model_serve);
    random_init(&m->random, 11, 4);
}

static UNUSED void model_stop(struct model *m)
{
    fake_stop(&m->f);
    vec_done(&m->changes);
}

#endif
