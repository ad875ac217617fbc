/* Protobuf to records. The first byte chooses the kind and what the others are:
 *
 *   an object     made of them, in JSON and in protobuf: both give the same record
 *   a message     and a watch event: no crash, no leak, and a record that can be compared with itself
 *   a stream      list or watch, in arbitrary pieces: the same records wherever it is split */
#include "fuzz.h"
#include "kube/protobuf_types.h"
#include "protobuf_random.h"
#include "json/frame.h"

#include <stdlib.h>

static struct projector *projector;
static struct projection *projections[countof(random_kinds)];

static void make_projections(void)
{
    if (projector)
        return;
    projector = projector_new();
    for (size_t i = 0; i < countof(random_kinds); i++)
        if (projection_new(projector, &random_kinds[i].fields, 1, &projections[i], NULL) < 0 ||
            !projection_accept_protobuf(projections[i], &kube_protobuf_types, random_kinds[i].group,
                                        random_kinds[i].version, random_kinds[i].kind))
            abort();
}

/* ---- the same object in both encodings */

static struct record *find_held(void *context, str ns, str name)
{
    struct record *held = context;
    return str_eq(held->ns, ns) && str_eq(held->name, name) ? held : NULL;
}

/* With a record that is held: the message gives that record again, and with a byte changed, what it gives without one. */
static void compare_held(size_t kind, struct buf *message, struct record *fresh)
{
    struct projection *p = projections[kind];
    struct record *held, *again, *x = NULL, *y = NULL;
    projection_set_find(p, find_held, fresh); /* with this, the sum is computed */
    if (project_protobuf(p, buf_str(message), &held, NULL) < 0 || !record_same(held, fresh))
        abort();
    projection_set_find(p, find_held, held);
    if (project_protobuf(p, buf_str(message), &again, NULL) < 0 || again != held)
        abort();
    record_unref(again);
    message->p[message->n / 2] ^= 1;
    int r = project_protobuf(p, buf_str(message), &x, NULL);
    projection_set_find(p, NULL, NULL);
    if (project_protobuf(p, buf_str(message), &y, NULL) != r || (r == 0 && !record_same(x, y)))
        abort();
    record_unref(x);
    record_unref(y);
    record_unref(held);
}

static void compare(size_t kind, struct choices c)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf text = { 0 }, message = { 0 };
    const struct prototable *t = &kube_protobuf_types;
    const struct prototable_message *m =
        prototable_find(t, random_kinds[kind].group, random_kinds[kind].version,
                        random_kinds[kind].kind);
    struct json *object = choose_object(&a, t, m, &c);
    struct json *meta = json_get(object, "metadata");
    if (!json_is(meta, JSON_OBJ))
        json_set(&a, object, S("metadata"), meta = json_new_obj(&a));
    json_set_str(&a, meta, "name", S("n"));
    json_set_str(&a, meta, "namespace", S("ns"));
    json_set_str(&a, meta, "resourceVersion", S("41"));
    json_write(&text, object);
    if (c.n % 2) /* a field of a newer server, before and behind the known ones */
        wire_put_bytes(&message, 200, S("new"));
    wire_put_message(&message, types_message(random_kinds[kind].type), object);
    wire_put_integer(&message, 201, 7);
    struct record *x, *y;
    if (project(projections[kind], buf_str(&text), &x, NULL) < 0 ||
        project_protobuf(projections[kind], buf_str(&message), &y, NULL) < 0 ||
        !record_same(x, y) || !str_eq(x->rv, y->rv) || record_bytes(x) != record_bytes(y))
        abort();
    compare_held(kind, &message, y);
    record_unref(x);
    record_unref(y);
}

/* ---- arbitrary bytes */

static void read_any(size_t kind, str bytes)
{
    struct record *r = NULL;
    struct watch_line line = { 0 };
    if (project_protobuf(projections[kind], bytes, &r, NULL) == 0 && !record_same(r, r))
        abort();
    record_unref(r);
    if (project_watch_event(projections[kind], bytes, &line, NULL) == 0)
        record_unref(line.record);
}

struct run {
    struct projection *projection;
    bool list;
    uint64_t sum;
};

static int on_document(void *context, str text, err_t *e)
{
    struct run *run = context;
    struct record *r = NULL;
    struct watch_line line = { 0 };
    int result = run->list ? project_protobuf(run->projection, text, &r, e)
                           : project_watch_event(run->projection, text, &line, e);
    run->sum = run->sum * 31 + text.n * 7 + (uint64_t)-result;
    record_unref(r);
    record_unref(line.record);
    return 0; /* one that cannot be read does not end the stream here */
}

static uint64_t read_stream(size_t kind, bool list, str bytes, size_t step)
{
    struct run run = { projections[kind], list, 1 };
    struct frame f;
    str envelope;
    frame_init(&f, list ? FRAME_PROTO_LIST : FRAME_PROTO_WATCH, on_document, &run);
    int r = 0;
    for (size_t at = 0; at < bytes.n && r == 0; at += step)
        r = frame_feed(&f, str_upto(str_from(bytes, at), step), NULL);
    if (r == 0)
        r = frame_end(&f, &envelope, NULL);
    frame_done(&f);
    return run.sum * 31 + (uint64_t)-r;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    make_projections();
    if (!size)
        return 0;
    size_t kind = data[0] % countof(random_kinds);
    unsigned what = data[0] / countof(random_kinds) % 4;
    str bytes = { (const char *)data + 1, size - 1 };
    if (what == 0) {
        compare(kind, (struct choices){ data + 1, size - 1 });
    } else if (what == 1) {
        read_any(kind, bytes);
    } else {
        uint64_t whole = read_stream(kind, what == 2, bytes, SIZE_MAX / 2);
        if (read_stream(kind, what == 2, bytes, 1) != whole ||
            read_stream(kind, what == 2, bytes, 7) != whole)
            abort();
    }
    return 0;
}
