/* Whole responses on top of streaming calls: see http_client_fetch() in http_client.h. */
#include "client_internal.h"

struct fetch {
    struct http_call *call; /* not owned; it outlives this struct, which it releases */
    int status;
    struct http_header_list headers;
    struct buf body;
    size_t max_body_bytes;
    /* the caller's */
    void (*on_done)(void *context, const struct http_response *response, const err_t *failure);
    void *context;
};

static void on_head(void *context, const struct http_head *head)
{
    struct fetch *f = context;
    f->status = head->status;
    for (size_t i = 0; i < head->headers.n; i++)
        http_header_list_add(&f->headers, head->headers.at[i].name, head->headers.at[i].value);
}

static void on_data(void *context, str bytes)
{
    struct fetch *f = context;
    if (bytes.n <= f->max_body_bytes && f->body.n <= f->max_body_bytes - bytes.n) {
        buf_put(&f->body, bytes);
        return;
    }
    err_t e;
    err_set(&e, EMSGSIZE, "%s: response body is larger than %zu bytes", f->call->client->name,
            f->max_body_bytes);
    http_call_finish(f->call, &e);
}

static void on_done(void *context, const err_t *failure)
{
    struct fetch *f = context;
    struct http_response response = { .status = f->status,
                                      .headers = { f->headers.headers.at, f->headers.headers.n },
                                      .body = buf_str(&f->body) };
    if (f->on_done)
        f->on_done(f->context, failure ? NULL : &response, failure);
}

static void release_fetch(void *context)
{
    struct fetch *f = context;
    http_header_list_done(&f->headers);
    buf_done(&f->body);
    free(f);
}

struct http_call *http_client_fetch(struct http_client *c, const struct http_fetch *r)
{
    struct fetch *f = mem_zero(1, sizeof(*f));
    f->max_body_bytes = r->max_body_bytes ? r->max_body_bytes : 16 * 1024 * 1024;
    f->on_done = r->on_done;
    f->context = r->context;
    f->call = http_client_send(c, &(struct http_request){ .method = r->method,
                                                          .target = r->target,
                                                          .headers = r->headers,
                                                          .body = r->body,
                                                          .deadline_ns = r->deadline_ns,
                                                          .on_head = on_head,
                                                          .on_data = on_data,
                                                          .on_done = on_done,
                                                          .context = f });
    f->call->release = release_fetch;
    return f->call;
}
