/* OpenAPI v3, built from the kinds that are served: enough for kubectl apply, diff, explain and
 * server-side validation. One document a group version; the index names them with a hash of their
 * text, so that clients may keep them for ever. Version 2 is made of these, see openapi_v2.h. */
#ifndef FLYBALL_APISERVER_OPENAPI_H
#define FLYBALL_APISERVER_OPENAPI_H

#include "kind.h"

/* The document of one group version: all of `kinds` that belong to it are described. */
struct json *openapi_document(struct arena *a, const struct kind *const *kinds, size_t n, str group,
                              str version);

/* {"paths": {"api/v1": {"serverRelativeURL": "/openapi/v3/api/v1?hash=..."}, ...}} for every group
 * version among `kinds`. The hash is openapi_hash of the written document. */
struct json *openapi_index(struct arena *a, const struct kind *const *kinds, size_t n);

str openapi_hash(struct arena *a, str document); /* 32 hex digits */

#endif
