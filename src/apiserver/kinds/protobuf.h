/* Protobuf bodies: what typed Go clients send. A body is "k8s\0" and a runtime.Unknown that names
 * apiVersion and kind and holds the object's message; it becomes the same tree that JSON gives,
 * so that nothing behind it knows the difference. Field numbers stand beside the names in types/.
 *
 * Answers stay JSON: clients that send protobuf accept both. */
#ifndef FLYBALL_APISERVER_PROTOBUF_H
#define FLYBALL_APISERVER_PROTOBUF_H

#include "../../json/json.h"

bool protobuf_is(str body); /* starts with the magic */

/* -ENOTSUP: a kind we have no field numbers for (answer 415); -EINVAL: damaged (answer 400). */
int protobuf_decode(struct arena *a, str body, struct json **ret, err_t *e);

#endif
