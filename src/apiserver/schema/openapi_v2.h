/* OpenAPI v2: one document with the definitions of all kinds, as JSON or in the protobuf form that kubectl
 * requires when it validates a file of kind List. No paths: clients read those from v3. */
#ifndef FLYBALL_APISERVER_OPENAPI_V2_H
#define FLYBALL_APISERVER_OPENAPI_V2_H

#include "kind.h"

struct json *openapi_v2_document(struct arena *a, const struct kind *const *kinds, size_t n,
                                 str version);

/* The same as the message openapi.v2.Document. */
void openapi_v2_protobuf(struct buf *out, const struct json *document);

#endif
