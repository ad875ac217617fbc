/* The API server without sockets, for tests: requests go directly to server_handle(), and commits and
 * controllers run until nothing is left to do before the answer is returned. */
#ifndef FLYBALL_TEST_INPROC_H
#define FLYBALL_TEST_INPROC_H

#include "apiserver/http/server.h"

struct inproc_answer {
    int status;
    struct json *body; /* in the arena; NULL if it is not JSON */
    str text;
    struct stream_source stream; /* .pull is NULL unless the answer is a stream: see inproc_pull */
    str warnings;                /* joined by newlines */
};

static UNUSED bool inproc_is_finished; /* the last call has been answered */

static UNUSED void inproc_on_finished(struct call *c)
{
    (void)c;
    inproc_is_finished = true;
}

struct inproc_request {
    const char *method, *path, *query, *body, *content_type, *accept, *bearer;
    size_t body_n; /* 0: body is text */
};

static UNUSED struct inproc_answer inproc_send(struct server *s, struct arena *a,
                                               const struct inproc_request *q)
{
    struct http_header headers[4];
    size_t n = 0;
    headers[n++] = (struct http_header){ S("user-agent"), S("test/1") };
    if (q->content_type)
        headers[n++] = (struct http_header){ S("content-type"), str_c(q->content_type) };
    if (q->accept)
        headers[n++] = (struct http_header){ S("accept"), str_c(q->accept) };
    if (q->bearer)
        headers[n++] = (struct http_header){ S("authorization"), str_c(q->bearer) };
    struct request r = { .method = str_c(q->method),
                         .path = str_c(q->path),
                         .query = str_c(q->query ? q->query : ""),
                         .body = q->body_n ? (str){ q->body, q->body_n }
                                           : str_c(q->body ? q->body : "") };
    r.headers = (struct http_headers){ headers, n };
    struct call *c = arena_new(a, struct call);
    *c = (struct call){ .arena = a, .request = &r, .finished = inproc_on_finished };
    inproc_is_finished = false;
    server_handle(s, c);
    server_run_until_idle(s);
    assert(inproc_is_finished);
    struct inproc_answer answer = { .status = c->answer.status };
    auto_buf struct buf warnings = { 0 };
    for (size_t i = 0; i < c->answer.headers.n; i++) {
        if (str_eq(c->answer.headers.at[i].name, S("Warning"))) {
            buf_put(&warnings, c->answer.headers.at[i].value);
            buf_putc(&warnings, '\n');
        }
    }
    answer.warnings = arena_str(a, buf_str(&warnings));
    vec_done(&c->answer.headers);
    if (c->answer.stream)
        answer.stream = *c->answer.stream;
    answer.text = arena_str(a, buf_str(&c->answer.body));
    buf_done(&c->answer.body);
    err_t e;
    if (json_parse(a, answer.text, &answer.body, &e) < 0)
        answer.body = NULL;
    return answer;
}

/* Reads what a stream has to send now. *ret_end: the stream has ended and is closed. */
static UNUSED str inproc_pull(struct arena *a, struct stream_source *stream, size_t room,
                              bool *ret_end)
{
    auto_buf struct buf out = { 0 };
    enum stream_more more;
    do
        more = stream->pull(stream->context, &out, room);
    while (more == STREAM_MORE);
    *ret_end = more != STREAM_WAIT;
    if (*ret_end)
        stream->closed(stream->context, true);
    return arena_str(a, buf_str(&out));
}

#endif
