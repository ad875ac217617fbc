/* YAML to and from the JSON tree. The dialect is that of kubectl and kube-apiserver
 * (sigs.k8s.io/yaml: YAML 1.1), so that a manifest has the same meaning:
 *
 *   y yes on true / n no off false      booleans, in lower, Title and UPPER case, as keys too
 *   ~ null and nothing                  null
 *   0x1f 0b101 0o17 017 1_000           integers; 3.0 and 1e3 as well, as JSON makes them so
 *   dates, 12:30:45, quoted text        strings
 *   <<: *anchor                         a merge key; later keys of the mapping take precedence
 *
 * Keys become text (`8080: x` is "8080"). Aliases are copied, up to YAML_ALIAS_BYTES, so that a
 * small text cannot become a large tree. Text that is JSON is parsed as JSON.
 *
 * Errors are EINVAL with line and column, or E2BIG for the limits of depth and members. */
#ifndef FLYBALL_YAML_H
#define FLYBALL_YAML_H

#include "json.h"

enum { YAML_ALIAS_BYTES = 8 << 20 };

/* Parses exactly one document; an empty text is null. */
int yaml_parse(struct arena *a, str text, struct json **ret, err_t *e);
int yaml_parse_limited(struct arena *a, str text, const struct json_limits *limits,
                       struct json **ret, err_t *e);

/* Parses all documents into an array, without empty ones ("---" at the end of a file). */
int yaml_parse_all(struct arena *a, str text, const struct json_limits *limits, struct json **ret,
                   err_t *e);

/* Block style like kubectl, members in the order of the tree, with a final newline. */
void yaml_write(struct buf *out, const struct json *v);

/* The value of a plain (unquoted) scalar; NULL: JSON cannot represent it (.inf, .nan). */
struct json *yaml_resolve(struct arena *a, str text);

#endif
