/* See model_protobuf.h. */
#include "model_protobuf.h"

#include "protobuf_write.h"

bool model_wants_protobuf(const struct exchange *x)
{
    return str_starts(exchange_header(x, S("accept")), S(PROTOBUF_TYPE));
}

static void model_put_thing_message(struct buf *out, const struct json *object)
{
    wire_put_message(out, types_message("apps.v1.Deployment"), object);
}

static void model_put_status(struct buf *out, const struct json *status)
{
    wire_put_bytes(out, 3, json_text(json_get(status, "message")));
    wire_put_bytes(out, 4, json_text(json_get(status, "reason")));
    wire_put_integer(out, 6, (uint64_t)json_int(json_get(status, "code"), 0));
}

static void model_put_list(struct buf *out, const struct json *list)
{
    auto_buf struct buf body = { 0 }, meta = { 0 };
    wire_put_bytes(&meta, 1, S("")); /* selfLink */
    wire_put_bytes(&meta, 2, json_text(json_at(list, "metadata", "resourceVersion", NULL)));
    wire_put_bytes(&meta, 3, json_text(json_at(list, "metadata", "continue", NULL)));
    wire_put_bytes(&body, 1, buf_str(&meta));
    const struct json *items = json_get(list, "items");
    for (size_t i = 0; i < json_len(items); i++) {
        auto_buf struct buf item = { 0 };
        model_put_thing_message(&item, json_item(items, i));
        wire_put_bytes(&body, 2, buf_str(&item));
    }
    wire_put_object(out, S("apps/v1"), S("DeploymentList"), buf_str(&body));
}

static void model_put_one(struct buf *out, const struct json *object)
{
    auto_buf struct buf message = { 0 };
    bool status = !json_get(object, "metadata");
    if (status)
        model_put_status(&message, object);
    else
        model_put_thing_message(&message, object);
    wire_put_object(out, status ? S("v1") : S("apps/v1"), status ? S("Status") : S("Deployment"),
                    buf_str(&message));
}

void model_put_answer(struct buf *out, str text)
{
    auto_arena struct arena a = { 0 };
    struct json *v;
    if (json_parse(&a, text, &v, NULL) < 0)
        buf_put(out, text);
    else if (json_get(v, "items"))
        model_put_list(out, v);
    else
        model_put_one(out, v);
}

void model_put_frames(struct buf *out, str lines)
{
    while (lines.n) {
        auto_arena struct arena a = { 0 };
        auto_buf struct buf object = { 0 };
        struct json *v;
        size_t end = str_find_char(lines, '\n');
        str line = str_upto(lines, end == SIZE_MAX ? lines.n : end);
        lines = str_from(lines, line.n + 1);
        if (end == SIZE_MAX) {
            buf_put(out, (str){ "\0\0\2", 4 });
            buf_put(out, line);
        } else if (json_parse(&a, line, &v, NULL) < 0) {
            buf_put(out, line);
        } else {
            model_put_one(&object, json_get(v, "object"));
            wire_put_event(out, json_text(json_get(v, "type")), buf_str(&object));
        }
    }
}
