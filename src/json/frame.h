/* Splits a byte stream into documents, one at a time, without buffering the stream.
 *
 *   FRAME_LIST   {"kind":"PodList","metadata":{...},"items":[{...},{...}]}: reports every item as soon
 *                as it is complete, and everything else (the envelope) at the end
 *   FRAME_RESULT {"status":"success","data":{"resultType":"vector","result":[{...},{...}]}}: the same
 *                for a response of Prometheus; a result that is not a list of objects stays in the
 *                envelope
 *   FRAME_LINES  one document per line, as in a watch
 *   FRAME_PROTO_LIST, FRAME_PROTO_WATCH: lists and watches in protobuf (protowire.h has their form). An item is the
 *                message of an object; the envelope is JSON of the same form as that of FRAME_LIST
 *
 *     struct frame f;
 *     frame_init(&f, FRAME_LIST, on_item, context);
 *     ... frame_feed(&f, bytes, e) for every piece that arrives ...
 *     frame_end(&f, &envelope, e);     // the list without its items: metadata.resourceVersion
 *     frame_done(&f);
 *
 * The text passed to on_item is valid only during the call. The framer finds the boundaries of
 * documents; their parser checks whether they are JSON. */
#ifndef FLYBALL_FRAME_H
#define FLYBALL_FRAME_H

#include "../base/buf.h"

enum frame_mode { FRAME_LIST, FRAME_RESULT, FRAME_LINES, FRAME_PROTO_LIST, FRAME_PROTO_WATCH };

enum {
    /* An API server accepts at most 3 MiB per request and etcd stores 1.5 MiB per object. Parsing
     * an object takes up to 9 times its size, and the operator has 128 MiB. */
    FRAME_ITEM_MAX = 4 << 20,
    FRAME_ENVELOPE_MAX = 1 << 20, /* everything except the items */
};

/* A negative result stops frame_feed(), which returns it. */
typedef int frame_fn(void *context, str document, err_t *e);

struct frame {
    enum frame_mode mode;
    frame_fn *each;
    void *context;
    struct buf carry;    /* the start of a document whose end has not arrived */
    struct buf envelope; /* lists: all bytes outside of the items */
    enum { FRAME_OUTSIDE, FRAME_BETWEEN, FRAME_INSIDE } place;
    int depth;
    bool in_text, escaped;
    uint64_t want, skip, left; /* protobuf: see protoframe.c */
};

void frame_init(struct frame *f, enum frame_mode mode, frame_fn *each, void *context);
void frame_reset(struct frame *f); /* prepares for the next stream; keeps its memory */
void frame_done(struct frame *f);
int frame_feed(struct frame *f, str bytes, err_t *e);
/* Ends the stream; -EBADMSG if it ended inside a document. The envelope is in memory of `f`. */
int frame_end(struct frame *f, str *ret_envelope, err_t *e);

/* ---- shared by frame.c and protoframe.c */

int frame_carry(struct frame *f, str part, err_t *e);
/* Reports a document that ends with `last`; its start may be in the carry. */
int frame_deliver(struct frame *f, str last, err_t *e);
int protoframe_feed(struct frame *f, str bytes, err_t *e);
int protoframe_end(struct frame *f, str *ret_envelope, err_t *e);

#endif
