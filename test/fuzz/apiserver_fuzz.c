/* Requests of any bytes, straight into the handler. An input is a few requests, parted by a line of "%%":
 *
 *     POST /api/v1/namespaces/default/configmaps?dryRun=All
 *     application/json
 *     {"metadata":{"name":"a"}}
 *
 * Each is answered once, with a status that exists; a body declared as JSON can be parsed; a watch can be read
 * and closed; and after all of them the server still answers. */
#include "fuzz.h"

#include "apiserver/controllers/controllers.h"
#include "support/inproc.h"

enum { REQUESTS_MAX = 8 };

static str take_line(str *rest)
{
    str line = S("");
    if (rest->p)
        str_cut(rest, '\n', &line);
    return line;
}

static str take_request(str *rest)
{
    size_t at = str_find(*rest, S("\n%%\n"));
    str one = str_upto(*rest, at);
    *rest = at == SIZE_MAX ? S("") : str_from(*rest, at + 4);
    return one;
}

static void check(const struct inproc_answer *a)
{
    if (a->status < 200 || a->status > 599)
        abort();
    if (a->text.n && a->text.p[0] == '{' && !a->body)
        abort(); /* half an answer */
    if (!a->stream.pull)
        return;
    auto_arena struct arena scratch = { 0 };
    struct stream_source stream = a->stream;
    bool end = false;
    inproc_pull(&scratch, &stream, 512, &end);
    if (!end)
        stream.closed(stream.context, false);
}

static void send_one(struct server *s, struct arena *a, str text)
{
    str head = take_line(&text), type = take_line(&text), body = text.p ? text : S("");
    str method = S(""), target = head, path = S("");
    str_cut(&target, ' ', &method);
    str query = target.p ? target : S("");
    str_cut(&query, '?', &path);
    struct inproc_request q = { .method = arena_str(a, method).p,
                                .path = arena_str(a, path).p,
                                .query = arena_str(a, query.p ? query : S("")).p,
                                .content_type = type.n ? arena_str(a, type).p : NULL,
                                .body = arena_str(a, body).p,
                                .body_n = body.n };
    struct inproc_answer answer = inproc_send(s, a, &q);
    check(&answer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct server *s;
    err_t e;
    if (server_new(NULL,
                   &(struct server_options){ .history_events = 64, .controllers = controllers_all },
                   &s, &e) < 0)
        abort();
    str rest = { (const char *)data, size };
    for (int i = 0; i < REQUESTS_MAX && rest.n; i++) {
        auto_arena struct arena a = { 0 };
        send_one(s, &a, take_request(&rest));
    }
    auto_arena struct arena a = { 0 };
    struct inproc_request alive = { .method = "GET", .path = "/api/v1/namespaces/kube-system" };
    if (inproc_send(s, &a, &alive).status != 200)
        abort();
    server_free(s);
    return 0;
}
