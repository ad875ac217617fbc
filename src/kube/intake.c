/* See intake.h. Nothing here depends on what was requested: the first piece of a body comes with its content type, and
 * that decides how the rest is read. A server may answer one page in protobuf and the next in JSON. */
#include "intake.h"

#include "../json/json.h"

/* An event that reports the end of the watch. */
static int fail_by_status(const struct watch_line *line, err_t *e)
{
    bool gone = line->code == 410 || str_eq(line->reason, S("Expired")) ||
                str_eq(line->reason, S("Gone")) ||
                str_find(line->message, S("Too large resource version")) != SIZE_MAX;
    return err_set(e, gone ? ESTALE : EPROTO, "watch: server returned %d " STR_FMT, line->code,
                   STR_ARG(str_upto(line->message, 300)));
}

static int on_document(void *context, str text, err_t *e)
{
    struct intake *in = context;
    struct watch_line line;
    struct record *record;
    int r;
    if (in->is_list) {
        r = in->is_protobuf ? project_protobuf(in->projection, text, &record, e)
                            : project(in->projection, text, &record, e);
        return r < 0 ? r : in->on_item(in->context, record, e);
    }
    r = in->is_protobuf ? project_watch_event(in->projection, text, &line, e)
                        : project_watch_line(in->projection, text, &line, e);
    if (r < 0)
        return r;
    return line.type == WATCH_ERROR ? fail_by_status(&line, e)
                                    : in->on_event(in->context, &line, e);
}

void intake_init(struct intake *in, struct projection *projection,
                 int (*on_item)(void *context, struct record *record, err_t *e),
                 int (*on_event)(void *context, const struct watch_line *line, err_t *e),
                 void *context)
{
    *in = (struct intake){
        .projection = projection, .on_item = on_item, .on_event = on_event, .context = context
    };
    frame_init(&in->frame, FRAME_LIST, on_document, in);
}

void intake_start(struct intake *in, bool list)
{
    frame_reset(&in->frame);
    in->is_list = list;
    in->is_known = false;
}

void intake_done(struct intake *in)
{
    frame_done(&in->frame);
}

static void set_encoding(struct intake *in, bool protobuf)
{
    in->is_known = true;
    in->is_protobuf = protobuf;
    in->frame.mode = in->is_list ? (protobuf ? FRAME_PROTO_LIST : FRAME_LIST)
                                 : (protobuf ? FRAME_PROTO_WATCH : FRAME_LINES);
}

int intake_feed(struct intake *in, bool protobuf, str bytes, err_t *e)
{
    if (!in->is_known && protobuf && !projection_accepts_protobuf(in->projection))
        return err_set(e, EBADMSG, "server sent protobuf, but JSON was requested");
    if (!in->is_known)
        set_encoding(in, protobuf);
    return frame_feed(&in->frame, bytes, e);
}

int intake_end(struct intake *in, struct arena *a, str *ret_version, str *ret_token, err_t *e)
{
    str text;
    struct json *list;
    if (!in->is_known)
        set_encoding(in, false);
    int r = frame_end(&in->frame, &text, e);
    if (r < 0 || !in->is_list || (r = json_parse(a, text, &list, e)) < 0)
        return r;
    *ret_version = json_text(json_at(list, "metadata", "resourceVersion", NULL));
    *ret_token = json_text(json_at(list, "metadata", "continue", NULL));
    if (!ret_version->n)
        return err_set(e, EBADMSG, "response is not a list: it has no metadata.resourceVersion");
    return 0;
}
