/* Protobuf bodies, as typed Go clients send them. A body is "k8s\0" and a runtime.Unknown, which names
 * apiVersion and kind and contains the object's message. It is decoded to the same tree as JSON. Field
 * numbers are declared next to the names in the .types tables.
 *
 * Responses are always JSON: clients that send protobuf accept both. */
#ifndef FLYBALL_APISERVER_PROTOBUF_H
#define FLYBALL_APISERVER_PROTOBUF_H

#include "../../json/json.h"

/* -ENOTSUP: a kind without field numbers (respond 415); -EINVAL: a malformed body (respond 400). */
int protobuf_decode(struct arena *a, str body, struct json **ret, err_t *e);

#endif
