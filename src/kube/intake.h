/* The body of a list or watch on its way to records: cut into objects as it arrives (json/frame.h), each projected to its
 * declared fields (json/project.h). The server chooses between JSON and protobuf with each response; what comes out is the same.
 *
 *     struct intake in;
 *     intake_init(&in, projection, on_item, on_event, context);
 *     intake_start(&in, true);                           // a list
 *     ... intake_feed(&in, protobuf, bytes, e) for every piece ...
 *     intake_end(&in, arena, &version, &token, e);       // and intake_start() for the next body
 *     intake_done(&in); */
#ifndef FLYBALL_KUBE_INTAKE_H
#define FLYBALL_KUBE_INTAKE_H

#include "../base/arena.h"
#include "../json/frame.h"
#include "../json/project.h"

struct intake {
    struct frame frame;
    struct projection *projection;
    bool is_list, is_protobuf;
    bool is_known; /* the encoding was set by the first piece */
    int (*on_item)(void *context, struct record *record, err_t *e); /* takes over the reference */
    int (*on_event)(void *context, const struct watch_line *line, err_t *e);
    void *context;
};

/* A negative result of a callback stops intake_feed(), which returns it. */
void intake_init(struct intake *in, struct projection *projection,
                 int (*on_item)(void *context, struct record *record, err_t *e),
                 int (*on_event)(void *context, const struct watch_line *line, err_t *e),
                 void *context);
void intake_start(struct intake *in, bool list); /* keeps its memory, unless it is much */
void intake_done(struct intake *in);
/* -EBADMSG: the bytes do not have the encoding of their content type. -ESTALE: a watch ended because its version expired. Events
 * that report an error are failures; on_event gets the others. */
int intake_feed(struct intake *in, bool protobuf, str bytes, err_t *e);
/* The end of a body; -EBADMSG if it ended inside an object. A list has a version and, if there are more pages, a token; both
 * are in the arena. */
int intake_end(struct intake *in, struct arena *a, str *ret_version, str *ret_token, err_t *e);

#endif
