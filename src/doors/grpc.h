/* gRPC on the HTTP/2 server, as much as an external scaler needs: unary calls, and calls with one
 * request and a stream of answers. */
#ifndef FLYBALL_GRPC_H
#define FLYBALL_GRPC_H

#include "../net/http_server.h"

enum grpc_status {
    GRPC_OK = 0,
    GRPC_INVALID_ARGUMENT = 3,
    GRPC_DEADLINE_EXCEEDED = 4,
    GRPC_NOT_FOUND = 5,
    GRPC_RESOURCE_EXHAUSTED = 8,
    GRPC_UNIMPLEMENTED = 12,
    GRPC_UNAVAILABLE = 14,
    GRPC_UNAUTHENTICATED = 16,
};

/* Whether the request is a gRPC call; otherwise it was answered with 405 or 415. */
bool grpc_accept(struct exchange *x);
/* The message of the request. An error was answered; then false. */
bool grpc_message(struct exchange *x, str *ret);

void grpc_answer(struct exchange *x, str message);
void grpc_fail(struct exchange *x, enum grpc_status status, const char *format, ...)
    PRINTF_LIKE(3, 4);

/* ---- a stream of answers */

struct grpc_stream;

/* `closed` is called once, at the latest when the client is gone; the stream is freed after it. The
 * deadline of the client (grpc-timeout) ends the stream. */
struct grpc_stream *grpc_stream_start(struct loop *loop, struct exchange *x,
                                      void (*closed)(void *context), void *context);
void grpc_stream_send(struct grpc_stream *s, str message);
/* Ends it after what was sent; `closed` follows. */
void grpc_stream_end(struct grpc_stream *s, enum grpc_status status, const char *why);

#endif
