/* Documents out of a byte stream, one at a time, without ever holding the stream.
 *
 *   FRAME_LIST   {"kind":"PodList","metadata":{...},"items":[{...},{...}]}: every item as it completes;
 *                what surrounds the items is kept and handed out at the end
 *   FRAME_RESULT {"status":"success","data":{"resultType":"vector","result":[{...},{...}]}}: the same
 *                for what Prometheus answers; a result that is no list of objects stays outside
 *   FRAME_LINES  one document a line, as a watch sends them
 *
 *     struct frame f;
 *     frame_init(&f, FRAME_LIST, on_item, context);
 *     ... frame_feed(&f, bytes, e) for every piece that arrives ...
 *     frame_end(&f, &envelope, e);     // the list without its items: metadata.resourceVersion
 *     frame_done(&f);
 *
 * The text given to on_item is valid during the call only. The framer finds where documents begin
 * and end; whether they are JSON is for the parser of each to say. */
#ifndef FLYBALL_FRAME_H
#define FLYBALL_FRAME_H

#include "../base/buf.h"

enum frame_mode { FRAME_LIST, FRAME_RESULT, FRAME_LINES };

enum {
    /* A server takes at most 3 MiB a request and stores 1.5 MiB an object. Reading one costs up to 9 times as much, and
     * the operator has 128 MiB. */
    FRAME_ITEM_MAX = 4 << 20,
    FRAME_ENVELOPE_MAX = 1 << 20, /* of a list */
};

/* Negative stops the feed, which returns it. */
typedef int frame_fn(void *context, str document, err_t *e);

struct frame {
    enum frame_mode mode;
    frame_fn *each;
    void *context;
    struct buf carry;    /* the beginning of a document whose end has not come */
    struct buf envelope; /* of lists: all bytes outside the items */
    enum { FRAME_OUTSIDE, FRAME_BETWEEN, FRAME_INSIDE } place;
    int depth;
    bool in_text, escaped;
};

void frame_init(struct frame *f, enum frame_mode mode, frame_fn *each, void *context);
void frame_reset(struct frame *f); /* ready for the next stream; memory is kept */
void frame_done(struct frame *f);
int frame_feed(struct frame *f, str bytes, err_t *e);
/* The stream is over. -EBADMSG when it ended inside a document. The envelope lives in `f`. */
int frame_end(struct frame *f, str *ret_envelope, err_t *e);

#endif
