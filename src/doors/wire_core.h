/* The messages of KEDA's external scaler on the wire: gRPC frames, and the few protobuf messages of
 * `externalscaler.ExternalScaler`. Encoded and decoded here by hand, because five small messages do
 * not need a library.
 *
 * Decoding accepts what protobuf accepts: fields in any order, unknown ones are skipped, the last
 * value of a field wins. Everything comes from the network, so every length is checked; slices refer
 * to the message. */
#ifndef FLYBALL_WIRE_CORE_H
#define FLYBALL_WIRE_CORE_H

#include "../base/arena.h"
#include "../base/buf.h"

enum { WIRE_FRAME_HEADER = 5, WIRE_MESSAGE_MAX = 64 << 10, WIRE_PAIRS_MAX = 1024 };

/* ---- gRPC frames */

void wire_put_frame(struct buf *out, str message);
/* Reads the only frame of a unary request. -EMSGSIZE: longer than WIRE_MESSAGE_MAX; -ENOTSUP:
 * compressed; -EBADMSG: not one complete frame. */
int wire_get_frame(str body, str *ret_message, err_t *e);

/* ---- requests */

struct wire_pair {
    str key, value;
};

struct wire_ref { /* ScaledObjectRef */
    str name, ns;
    const struct wire_pair *metadata; /* each key once */
    size_t metadata_n;
};

struct wire_metrics_request { /* GetMetricsRequest */
    struct wire_ref ref;
    str metric;
};

/* -EBADMSG: not such a message. */
int wire_get_ref(struct arena *a, str message, struct wire_ref *ret, err_t *e);
int wire_get_metrics_request(struct arena *a, str message, struct wire_metrics_request *ret,
                             err_t *e);
str wire_metadata(const struct wire_ref *ref, const char *key); /* "": not there */

/* ---- responses */

struct wire_metric {
    str name;
    int64_t value;
    double real;
};

void wire_put_active(struct buf *out, bool active); /* IsActiveResponse */
void wire_put_metrics(struct buf *out, const struct wire_metric *m, size_t n); /* both lists */
void wire_put_health(struct buf *out, bool serving); /* HealthCheckResponse */

#endif
