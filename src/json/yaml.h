/* YAML in and out of the one tree. What is read is what Kubernetes reads: YAML 1.1 as kubectl and
 * the API server take it (sigs.k8s.io/yaml), so that a manifest means the same here and there:
 *
 *   y yes on true / n no off false      booleans, in lower, Title and UPPER case, as keys too
 *   ~ null and nothing                  null
 *   0x1f 0b101 0o17 017 1_000           integers; 3.0 and 1e3 as well, as JSON makes them so
 *   dates, 12:30:45, quoted text        strings
 *   <<: *anchor                         a merge key; what comes later in the mapping wins
 *
 * Keys become text (`8080: x` is "8080"). Aliases are copied, at most YAML_ALIAS_BYTES of them, so
 * that a small text cannot become a large tree. A text that is JSON is read as JSON.
 *
 * Errors are EINVAL with line and column, or E2BIG for the limits of depth and members. */
#ifndef FLYBALL_YAML_H
#define FLYBALL_YAML_H

#include "json.h"

enum { YAML_ALIAS_BYTES = 8 << 20 };

/* Exactly one document; an empty text is null. */
int yaml_parse(struct arena *a, str text, struct json **ret, err_t *e);
int yaml_parse_limited(struct arena *a, str text, const struct json_limits *limits,
                       struct json **ret, err_t *e);

/* All documents as an array, without those that hold nothing ("---" at the end of a file). */
int yaml_parse_all(struct arena *a, str text, const struct json_limits *limits, struct json **ret,
                   err_t *e);

/* Block style as kubectl prints it, members in the order of the tree, with a final newline. */
void yaml_write(struct buf *out, const struct json *v);

/* What a plain (unquoted) scalar means; NULL: JSON cannot say it (.inf, .nan). */
struct json *yaml_resolve(struct arena *a, str text);

#endif
