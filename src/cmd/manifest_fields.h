/* Unknown fields of a manifest: those that the API server would refuse with strict validation. The commands that read
 * manifests from files are used as checks before a deployment, so a misspelled field must not pass. */
#ifndef FLYBALL_MANIFEST_FIELDS_H
#define FLYBALL_MANIFEST_FIELDS_H

#include "../base/buf.h"
#include "../json/json.h"

/* The schema of an object (openAPIV3Schema) in the embedded CRDs, by apiVersion and kind; NULL: not one of ours. */
const struct json *manifest_schema(struct arena *a, str api_version, str kind);

/* Appends one line per unknown field, with the nearest valid name, and returns their number. A NULL schema knows no
 * field and refuses none. */
size_t manifest_unknown_fields(struct buf *out, const struct json *schema,
                               const struct json *object);

/* The candidate that differs least from `word`; "": all differ in more than a third of their letters. */
str manifest_nearest(str word, const str *candidates, size_t n);

#endif
