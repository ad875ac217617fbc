/* doors: serves the decisions about variants to other autoscalers, without Prometheus in between.
 *
 *   scaler      KEDA's external scaler: gRPC on HTTP/2 (triggers `external` and `external-push`)
 *   emetrics    the API group external.metrics.k8s.io/v1beta1, for the HPA controller
 *
 *   wire_core       gRPC frames and the messages of the scaler
 *   grpc            calls, errors and streams of gRPC on the HTTP/2 server
 *   emetrics_core   paths, discovery documents and values of the API group
 *   door_access     who may read the API group: front proxy, TokenReview, SubjectAccessReview
 *
 * A number is served only while it is a decision: if the leader has not decided for a while, or this
 * process is not the leader, both doors answer with an error. An autoscaler then keeps what it has;
 * an old number would make it act.
 *
 * Memory: the doors own their servers and streams. The source is called synchronously, and what it
 * returns is used before the call returns to the loop.
 *
 * Read first: scaler.c (its head has the calls of KEDA), then emetrics.c. */
#ifndef FLYBALL_DOORS_H
#define FLYBALL_DOORS_H

#include "../kube/manager.h"

enum door_state {
    DOOR_STALE, /* there is no recent decision */
    DOOR_FRESH,
};

struct door_value { /* the decision about one variant */
    str ns, variant;
    str target, model, accelerator; /* labels of the metrics */
    enum door_state state;
    int64_t desired, current; /* replicas */
    int64_t decided_ns;       /* wall clock */
    bool waiting;             /* requests wait although it has no replica */
};

typedef void door_value_fn(void *context, const struct door_value *value);

struct door_source {
    /* Whether this process decides: the leader. */
    bool (*leads)(void *context);
    /* The variant of that name; false: there is none. */
    bool (*find)(void *context, str ns, str variant, struct door_value *ret);
    /* The variant that a ScaledObject of that name scales; false: unknown. */
    bool (*find_scaled)(void *context, str ns, str scaled_object, struct door_value *ret);
    /* Every variant in a namespace. */
    void (*each)(void *context, str ns, door_value_fn *fn, void *fn_context);
    void *context;
};

struct doors_options {
    struct manager *manager;
    struct door_source source;
    const char *scaler_listen;     /* ADDRESS:PORT; NULL: closed */
    const char *emetrics_listen;   /* ADDRESS:PORT; NULL: closed */
    const char *cert_dir;          /* tls.crt and tls.key, reloaded; NULL: see below */
    const char *scaler_client_ca;  /* clients of the scaler need a certificate signed by it */
    const char *scaler_token_file; /* or this bearer token */
};

struct doors;

/* Without a certificate the scaler speaks plain HTTP/2, and the API group uses a self-signed one. */
int doors_new(const struct doors_options *options, struct doors **ret, err_t *e);
/* Decisions changed: streams report it. Cheap if nothing listens. */
void doors_notify(struct doors *d);
/* Ends all streams and stops listening; `doors_free` later. */
void doors_drain(struct doors *d);
void doors_free(struct doors *d);                    /* NULL is fine */
uint16_t doors_scaler_port(const struct doors *d);   /* 0: closed */
uint16_t doors_emetrics_port(const struct doors *d); /* 0: closed */

#endif
