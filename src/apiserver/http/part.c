/* See part.h. The text of an object under another resourceVersion is three pieces: the text before the stored
 * version, the version to show, and the text after the stored one. The position counts over all three, so nothing
 * but a number has to be kept between two calls. */
#include "part.h"

void part_done(struct part *p)
{
    object_unref(p->object);
    *p = (struct part){ 0 };
}

bool part_continue(struct part *p, struct buf *out, size_t room)
{
    const struct object *o = p->object;
    str json = object_json(o);
    char rev[STR_I64_ROOM];
    str pieces[3] = { str_from(json, p->skip), S(""), S("") };
    if (p->rev != o->rev) {
        pieces[0] = str_from(str_upto(json, o->rv.at), p->skip);
        pieces[1] = str_of_i64(p->rev, rev);
        pieces[2] = str_from(json, o->rv.at + o->rv.n);
    }
    size_t passed = 0; /* bytes of the pieces looked at so far */
    for (size_t i = 0; i < countof(pieces); i++) {
        size_t from = p->at - passed; /* within this piece; `at` is never before it */
        str rest = str_upto(str_from(pieces[i], MIN(from, pieces[i].n)), room);
        buf_put(out, rest);
        p->at += rest.n;
        room -= rest.n;
        passed += pieces[i].n;
        if (p->at < passed)
            return false; /* `room` is used up */
    }
    part_done(p);
    return true;
}

static bool part_begin(struct part *p, struct buf *out, size_t room, struct part begin)
{
    begin.object = object_ref(begin.object);
    *p = begin;
    return part_continue(p, out, begin.object->json_n <= PART_WHOLE ? SIZE_MAX : room);
}

bool part_begin_as(struct part *p, struct buf *out, size_t room, struct object *o, int64_t rev)
{
    return part_begin(p, out, room, (struct part){ .object = o, .rev = rev });
}

bool part_begin_item(struct part *p, struct buf *out, size_t room, struct object *o)
{
    buf_putc(out, '{');
    return part_begin(p, out, room,
                      (struct part){ .object = o, .rev = o->rev, .skip = o->head.at + o->head.n });
}
