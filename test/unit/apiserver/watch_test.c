/* What clients cost that follow large objects and do not read: parts instead of copies, and nothing that only
 * they keep alive. The server runs without sockets; a pull with little room is a client with a full buffer. */
#include "tap.h"

#include "apiserver/controllers/controllers.h"
#include "apiserver/http/part.h"
#include "apiserver/http/server.h"
#include "support/inproc.h"

#define MAPS "/api/v1/namespaces/default/configmaps"

enum { LARGE = 900 * 1000, ROOM = 1000, HISTORY = 16 };

static struct arena arena;

static struct server *open_server(void)
{
    struct server *s = NULL;
    err_t e = { 0 };
    struct server_options o = { .history_events = HISTORY, .controllers = controllers_all };
    OK_CALL(server_new(NULL, &o, &s, &e), &e);
    return s;
}

static void close_server(struct server *s)
{
    server_free(s);
    arena_reset(&arena, (struct arena_mark){ 0 });
}

static struct inproc_answer get(struct server *s, const char *path, const char *query)
{
    return inproc_send(s, &arena, &(struct inproc_request){ "GET", path, query, NULL });
}

/* Creates or replaces a map whose data is `letter`, LARGE times. */
static void put_map(struct server *s, const char *name, char letter, const char *label)
{
    auto_buf struct buf body = { 0 };
    buf_printf(&body,
               "{\"metadata\":{\"name\":\"%s\",\"labels\":{\"l\":\"%s\"}},\"data\":{\"v\":\"", name,
               label);
    memset(buf_reserve(&body, LARGE), letter, LARGE);
    body.n += LARGE;
    buf_put(&body, S("\"}}"));
    char path[80];
    snprintf(path, sizeof(path), MAPS "/%s", name);
    bool exists = get(s, path, NULL).status == 200;
    struct inproc_request r = { exists ? "PUT" : "POST", exists ? path : MAPS, NULL, body.p };
    EQ_INT(inproc_send(s, &arena, &r).status, exists ? 200 : 201);
}

static void touch_secrets(struct server *s, int times)
{
    for (int i = 0; i < times; i++) {
        char body[60];
        snprintf(body, sizeof(body), "{\"metadata\":{\"generateName\":\"s-\"}}");
        struct inproc_request r = { "POST", "/api/v1/namespaces/default/secrets", NULL, body };
        EQ_INT(inproc_send(s, &arena, &r).status, 201);
    }
}

static struct object *stored(struct server *s, const char *name)
{
    char key[80];
    snprintf(key, sizeof(key), "/configmaps/default/%s", name);
    struct object *o = store_get(s->store, str_c(key));
    OK(o != NULL);
    return o;
}

/* Pulls with little room until nothing is left. No pull may give much more than the room. */
static enum stream_more pull_all(const struct stream_source *source, struct buf *out)
{
    for (;;) {
        size_t before = out->n;
        enum stream_more more = source->pull(source->context, out, ROOM);
        OK(out->n - before <= ROOM + PART_WHOLE + 512);
        if (more != STREAM_MORE)
            return more;
    }
}

static struct json *parse(const struct buf *text)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(json_parse(&arena, arena_str(&arena, buf_str(text)), &tree, &e), &e);
    return tree;
}

static void large_events_are_sent_in_parts(void)
{
    struct server *s = open_server();
    put_map(s, "a", 'x', "in");
    struct inproc_answer w = get(s, MAPS, "watch=true&labelSelector=l%3Din");
    auto_buf struct buf out = { 0 };
    OK(pull_all(&w.stream, &out) == STREAM_WAIT);
    struct json *event = parse(&out);
    EQ_STR(json_text(json_get(event, "type")), S("ADDED"));
    EQ_INT(json_text(json_at(event, "object", "data", "v", NULL)).n, LARGE);
    /* an object that leaves the selection: its old data under the new version, which is longer than the old */
    for (int i = 0; i < 100; i++)
        touch_secrets(s, 1);
    put_map(s, "a", 'y', "out");
    buf_clear(&out);
    OK(pull_all(&w.stream, &out) == STREAM_WAIT);
    event = parse(&out);
    EQ_STR(json_text(json_get(event, "type")), S("DELETED"));
    EQ_INT(json_text(json_at(event, "object", "data", "v", NULL)).p[LARGE - 1], 'x');
    char rev[STR_I64_ROOM];
    EQ_STR(json_text(json_at(event, "object", "metadata", "resourceVersion", NULL)),
           str_of_i64(stored(s, "a")->rev, rev));
    EQ_INT(s->holding.n, 0);
    w.stream.closed(w.stream.context, false);
    close_server(s);
}

static void large_lists_are_sent_in_parts(void)
{
    struct server *s = open_server();
    put_map(s, "a", 'x', "");
    put_map(s, "b", 'y', "");
    struct inproc_answer l = get(s, MAPS, NULL);
    OK(l.stream.pull != NULL);
    auto_buf struct buf out = { 0 };
    OK(pull_all(&l.stream, &out) == STREAM_END);
    struct json *items = json_get(parse(&out), "items");
    EQ_INT(json_len(items), 2);
    EQ_INT(json_text(json_at(json_item(items, 1), "data", "v", NULL)).n, LARGE);
    l.stream.closed(l.stream.context, true);
    EQ_INT(s->streamed_lists.n, 0);
    close_server(s);
}

/* The rest of an initial state is useless once the events that follow it are gone. */
static void lost_watches_drop_their_initial_state(void)
{
    struct server *s = open_server();
    put_map(s, "a", 'x', "");
    put_map(s, "b", 'x', "");
    struct inproc_answer w = get(s, MAPS, "watch=true");
    auto_buf struct buf out = { 0 };
    OK(w.stream.pull(w.stream.context, &out, ROOM) == STREAM_MORE);
    auto_object struct object *a = object_ref(stored(s, "a")), *b = object_ref(stored(s, "b"));
    put_map(s, "a", 'y', "");
    put_map(s, "b", 'y', "");
    touch_secrets(s, HISTORY);
    EQ_INT(a->refs, 2); /* ours, and the half-sent event */
    EQ_INT(b->refs, 1);
    EQ_INT(s->lost_bytes, (int64_t)object_bytes(a));
    OK(pull_all(&w.stream, &out) == STREAM_END);
    OK(str_find(buf_str(&out), S("\"code\":410")) != SIZE_MAX);
    EQ_INT(a->refs, 1);
    EQ_INT(s->lost_bytes, 0);
    w.stream.closed(w.stream.context, true);
    close_server(s);
}

/* Forty clients, each in the middle of another version. */
static void half_sent_objects_have_a_total(void)
{
    enum { CLIENTS = 40, TOTAL = 8 << 20 };
    struct server *s = open_server();
    struct inproc_answer w[CLIENTS];
    auto_buf struct buf out = { 0 };
    for (int i = 0; i < CLIENTS; i++) {
        put_map(s, "a", (char)('0' + i % 10), "");
        w[i] = get(s, MAPS, "watch=true");
        OK(w[i].stream.pull(w[i].stream.context, &out, ROOM) == STREAM_MORE);
        touch_secrets(s, 1);
    }
    touch_secrets(s, HISTORY);
    OK(s->lost_bytes <= TOTAL && s->lost_bytes > TOTAL / 2);
    OK(s->lost.n <= TOTAL / LARGE);
    for (int i = 0; i < CLIENTS; i++)
        w[i].stream.closed(w[i].stream.context, false);
    EQ_INT(s->lost_bytes, 0);
    EQ_INT(s->lost.n + s->holding.n, 0);
    close_server(s);
}

/* A watch that keeps up loses nothing, however far the history moves. */
static void idle_watches_hold_nothing(void)
{
    struct server *s = open_server();
    put_map(s, "a", 'x', "");
    struct inproc_answer w = get(s, MAPS, "watch=true");
    auto_buf struct buf out = { 0 };
    OK(pull_all(&w.stream, &out) == STREAM_WAIT);
    touch_secrets(s, 2 * HISTORY);
    put_map(s, "a", 'y', "");
    buf_clear(&out);
    OK(pull_all(&w.stream, &out) == STREAM_WAIT);
    EQ_STR(json_text(json_get(parse(&out), "type")), S("MODIFIED"));
    w.stream.closed(w.stream.context, false);
    close_server(s);
}

int main(void)
{
    int result = tap_run((struct tap_case[]){ TAP(large_events_are_sent_in_parts),
                                              TAP(large_lists_are_sent_in_parts),
                                              TAP(lost_watches_drop_their_initial_state),
                                              TAP(half_sent_objects_have_a_total),
                                              TAP(idle_watches_hold_nothing),
                                              { 0 } });
    arena_done(&arena);
    return result;
}
