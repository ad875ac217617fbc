/* What the model sends, in protobuf instead of JSON: things are Deployments, whose replicas are their size. */
#ifndef FLYBALL_TEST_MODEL_PROTOBUF_H
#define FLYBALL_TEST_MODEL_PROTOBUF_H

#include "net/http_server.h"

#define PROTOBUF_TYPE "application/vnd.kubernetes.protobuf"

bool model_wants_protobuf(const struct exchange *x);
/* The body of an answer. What is no JSON stays what it is. */
void model_put_answer(struct buf *out, str text);
/* The lines of a watch as frames. A line without an end is a frame that is cut. */
void model_put_frames(struct buf *out, str lines);

#endif
