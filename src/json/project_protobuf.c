/* Protobuf to records: see project.h.
 *
 * A message becomes the JSON text of its declared fields (prototrim.c), a third of a KB, and from there on it is parsed
 * and projected by project.c like any trimmed object. So there is one definition of what a field means, and a record has
 * no trace of the encoding it came from. Filling the record directly from the wire was rejected: the text costs less than
 * a microsecond, and every type of field would have two implementations that must agree in each odd case. */
#include "projector.h"

#include "json.h"
#include "prototrim.h"
#include "protowire.h"

struct bookmark {
    struct record meta;
    str end;
};

static const struct field bookmark_fields[] = {
    { "metadata.annotations[\"k8s.io/initial-events-end\"]", F_STR,
      offsetof(struct bookmark, end) },
};
static const struct fields bookmark_kept = { sizeof(struct bookmark), bookmark_fields,
                                             countof(bookmark_fields) };

bool projection_accept_protobuf(struct projection *p, const struct prototable *types,
                                const char *group, const char *version, const char *kind)
{
    const struct prototable_message *m = prototable_find(types, group, version, kind);
    if (!m || !prototrim_resolve(types, m, &p->tree->keep) ||
        fieldtree_compile(&p->arena, &bookmark_kept, true, &p->bookmark, NULL) < 0 ||
        !prototrim_resolve(types, m, &p->bookmark->keep))
        return false;
    p->types = types;
    p->message = m;
    return true;
}

bool projection_accepts_protobuf(const struct projection *p)
{
    return p->message != NULL;
}

static int begin_message(struct projection *p, str message, err_t *e)
{
    memset(p->tree->spans, 0, sizeof(p->tree->spans));
    return projector_begin(p->j, message.n, e);
}

static int fail_message(err_t *e)
{
    return err_set(e, EBADMSG, "an object in the response is not valid protobuf");
}

int project_protobuf(struct projection *p, str message, struct record **ret, err_t *e)
{
    struct yyjson_val *object;
    int r = begin_message(p, message, e);
    if (r < 0)
        return r;
    if (!prototrim(p->types, p->message, &p->tree->keep, message, &p->j->trimmed))
        return fail_message(e);
    if ((*ret = projector_find_same(p, 0, p->j->trimmed.n)))
        return 0;
    if ((r = projector_parse_trimmed(p->j, &object, e)) < 0)
        return r;
    return projector_make_record(p, object, ret, e);
}

/* The object of an event: of the watched kind, or the Status of an error. */
static bool put_object(struct projection *p, str type, str object)
{
    struct buf *out = &p->j->trimmed;
    if (str_eq(type, S("ERROR")))
        return prototrim_whole(p->types, prototable_find(p->types, "", "v1", "Status"), object,
                               out);
    const struct fieldtree *tree = str_eq(type, S("BOOKMARK")) ? p->bookmark : p->tree;
    return prototrim(p->types, p->message, &tree->keep, object, out);
}

int project_watch_event(struct projection *p, str message, struct watch_line *ret, err_t *e)
{
    struct yyjson_val *root;
    struct buf *out = &p->j->trimmed;
    str type, wrapped, body, object;
    int r = begin_message(p, message, e);
    if (r < 0)
        return r;
    if (!protowire_find(message, WIRE_EVENT_TYPE, &type) ||
        !protowire_find(message, WIRE_EVENT_OBJECT, &wrapped) ||
        !protowire_find(wrapped, WIRE_RAW_BYTES, &body) || !protowire_unwrap(body, &object))
        return fail_message(e);
    buf_put(out, S("{\"type\":"));
    json_write_text(out, type);
    buf_put(out, S(",\"object\":"));
    if (!put_object(p, type, object))
        return fail_message(e);
    buf_putc(out, '}');
    if (projector_find_event(p, ret))
        return 0;
    if ((r = projector_parse_trimmed(p->j, &root, e)) < 0)
        return r;
    return projector_read_event(p, root, ret, e);
}
