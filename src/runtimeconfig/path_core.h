/* The HTTP path of a service: a template such as "/{.metadata.namespace}/{.metadata.labels['team']}", rendered from
 * the service's own object and converted to a path that the Gateway API accepts.
 *
 * Pure and fast: a template is compiled once and rendered for every service that uses it. */
#ifndef FLYBALL_PATH_CORE_H
#define FLYBALL_PATH_CORE_H

#include "../json/json.h"
#include "../json/jsonpath.h"

enum { PATH_BYTES_MAX = 200 };

enum aim_path_fault {
    PATH_FINE,
    PATH_MISSING,     /* a label, annotation or field does not exist */
    PATH_INVALID,     /* the template cannot be parsed or evaluated */
    PATH_MULTIPLE,    /* a placeholder has several values */
    PATH_NOT_SCALAR,  /* its value is null, an object or a list */
    PATH_EMPTY,       /* the path is empty */
    PATH_DOT_SEGMENT, /* "." or "..": gateways refuse it */
    PATH_TOO_LONG,
    PATH_FAULT_N
};

struct aim_path_problem {
    enum aim_path_fault fault;
    char text[400]; /* one sentence, with the column if known */
};

struct aim_path_part {
    str literal;    /* text between placeholders */
    str expression; /* text between the braces; empty: the part is literal */
    str map_key;    /* key in labels['...'] or annotations['...'], used verbatim */
    bool of_labels;
    unsigned number;      /* of the placeholder, from 1 */
    size_t column;        /* of its first byte */
    struct jsonpath path; /* any other expression */
};

/* How characters that are not allowed in a path are encoded. The second is what later versions of AIM do: it
 * loses information, so two services may get the same path. Use it to keep the paths that clients know. */
enum aim_path_encoding {
    PATH_RFC3986, /* percent-encoded */
    PATH_RFC1123, /* reduced to [a-z0-9.-], values and segments at most 63 bytes */
};

struct aim_path_template {
    struct aim_path_part *parts;
    size_t n;
    enum aim_path_encoding encoding; /* set by the caller after compiling */
};

/* The text must outlive the template. An empty text is the default template: /NAMESPACE/UID. */
int aim_path_compile(struct arena *a, str text, struct aim_path_template *ret,
                     struct aim_path_problem *problem);

/* Called with every placeholder and its value, for `--explain`. */
typedef void aim_path_trace_fn(void *context, str expression, str value);

/* Appends the path of `object`. `scratch` is reset to its mark before returning. */
int aim_path_render(const struct aim_path_template *t, const struct json *object,
                    struct arena *scratch, struct buf *out, struct aim_path_problem *problem);
int aim_path_render_traced(const struct aim_path_template *t, const struct json *object,
                           struct arena *scratch, aim_path_trace_fn *trace, void *context,
                           struct buf *out, struct aim_path_problem *problem);

/* "rfc3986" or "rfc1123"; -EINVAL with a sentence. */
int aim_path_encoding_parse(str text, enum aim_path_encoding *ret, err_t *e);

/* Trims, lower-cases, encodes and joins the segments of a rendered text. */
int aim_path_normalize(str text, struct buf *out, struct aim_path_problem *problem);

const char *aim_path_fault_name(enum aim_path_fault fault); /* "missing", "invalid", ... */

#endif
