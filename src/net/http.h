/* The words HTTP client and server share: headers, status texts, percent-encoding, queries. */
#ifndef FLYBALL_HTTP_H
#define FLYBALL_HTTP_H

#include "../base/arena.h"
#include "../base/buf.h"

/* Names compare without regard to case. What net hands out is in lower case (as on the wire of
 * HTTP/2); what it is given may be in any. */
struct http_header {
    str name, value;
};

struct http_headers {
    const struct http_header *at;
    size_t n;
};

/* The headers of a call in one line: HTTP_HEADERS({ S("accept"), S("application/json") }, ...) */
#define HTTP_HEADERS(...)                                                                          \
    ((struct http_headers){ (const struct http_header[]){ __VA_ARGS__ },                           \
                            sizeof((const struct http_header[]){ __VA_ARGS__ }) /                  \
                                sizeof(struct http_header) })

/* The value of the first header of that name; `.p` is NULL when there is none. */
str http_header_get(struct http_headers headers, str name);
/* Whether a comma-separated value ("gzip, deflate;q=0.5") names `token` with a weight above 0. */
bool http_value_has_token(str value, str token);
/* May stand in a message: a token for the name, no control characters but tab in the value. What
 * net is given to send and is not so is refused (client) or left out (server). */
bool http_header_is_valid(struct http_header header);

const char *http_reason(int status); /* "Not Found"; "Unknown" for what has no name */

/* Percent-decoding of one path segment or query part into the arena (the copy ends in NUL). -EINVAL
 * for a bad escape; a NUL byte is refused as well. `plus` also turns '+' into a blank, as in
 * queries. */
int uri_decode(struct arena *a, str text, bool plus, str *ret);
/* Appends `text` with everything but unreserved characters escaped: for segments and query parts.
 * */
void uri_encode(struct buf *out, str text);

/* Takes the next NAME=VALUE off a raw query; both stay encoded. "a&b=": ("a", ""), ("b", ""). */
bool uri_query_next(str *rest, str *ret_name, str *ret_value);
/* The decoded value of the first part of that (plain ASCII) name: 1 found, 0 absent, -EINVAL bad.
 * */
int uri_query_get(struct arena *a, str query, str name, str *ret_value);

/* "https://host:6443/prefix" in parts. The port is 80 or 443 when absent, the prefix has no final
 * slash, the host of an IPv6 literal no brackets. User info, query and fragment are refused. */
struct uri {
    bool tls;
    str host;
    uint16_t port;
    str prefix;
};

int uri_parse(str text, struct uri *ret, err_t *e); /* parts borrow `text` */
/* May a token or password go there? By TLS anywhere, without it only to this machine: 127.0.0.0/8, ::1 and
 * localhost. -EPERM with a sentence that names --allow-insecure-token. */
int uri_check_secret(str url, err_t *e);
/* Is it an address of this machine alone: 127.0.0.0/8, ::1 or localhost? */
bool uri_host_is_loopback(str host);

#endif
