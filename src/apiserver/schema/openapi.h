/* OpenAPI v3, generated from the kinds that are served: enough for kubectl apply, diff, explain and
 * server-side validation. One document per group and version; the index names them with a hash of their
 * text, so that clients can cache them forever. OpenAPI v2 is derived from these, see openapi_v2.h. */
#ifndef FLYBALL_APISERVER_OPENAPI_H
#define FLYBALL_APISERVER_OPENAPI_H

#include "kind.h"

/* The document of one group and version; `kinds` may contain others. */
struct json *openapi_document(struct arena *a, const struct kind *const *kinds, size_t n, str group,
                              str version);

/* {"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=..."}, ...}} for every group
 * version among `kinds`. The hash is openapi_hash of the written document. */
struct json *openapi_index(struct arena *a, const struct kind *const *kinds, size_t n);

str openapi_hash(struct arena *a, str document); /* 32 hex digits */

#endif
