/* What HTTP client and server share: headers, status texts, percent-encoding, queries, URLs. */
#ifndef FLYBALL_HTTP_H
#define FLYBALL_HTTP_H

#include "../base/arena.h"
#include "../base/buf.h"

/* Names are case-insensitive. net delivers them in lower case (as HTTP/2 sends them) and accepts
 * any. */
struct http_header {
    str name, value;
};

struct http_headers {
    const struct http_header *at;
    size_t n;
};

/* Headers as one expression: HTTP_HEADERS({ S("accept"), S("application/json") }, ...) */
#define HTTP_HEADERS(...)                                                                          \
    ((struct http_headers){ (const struct http_header[]){ __VA_ARGS__ },                           \
                            sizeof((const struct http_header[]){ __VA_ARGS__ }) /                  \
                                sizeof(struct http_header) })

/* The value of the first header of that name; `.p` is NULL when there is none. */
str http_header_get(struct http_headers headers, str name);
/* Whether a comma-separated value ("gzip, deflate;q=0.5") names `token` with a weight above 0. */
bool http_value_has_token(str value, str token);
/* The name is a token and the value has no control character except tab. The client rejects a
 * request with an invalid header; the server omits it from the response. */
bool http_header_is_valid(struct http_header header);

/* A header that describes the framing of a message or belongs to the connection: set by net itself.
 */
bool http_header_is_framing(str name);

const char *http_reason(int status); /* "Not Found"; "Unknown" for an unregistered status */

/* Percent-decoding of one path segment or query part into the arena (the copy ends in NUL). -EINVAL
 * for a bad escape; an encoded NUL is rejected as well. `plus` also decodes '+' as a space, as
 * in queries. */
int uri_decode(struct arena *a, str text, bool plus, str *ret);
/* Appends `text` with all but unreserved characters escaped: for path segments and query parts. */
void uri_encode(struct buf *out, str text);

/* Takes the next NAME=VALUE off a raw query; both stay encoded. "a&b=": ("a", ""), ("b", ""). */
bool uri_query_next(str *rest, str *ret_name, str *ret_value);
/* The decoded value of the first parameter with that (plain ASCII) name. 1: found; 0: absent;
 * -EINVAL: bad escape. */
int uri_query_get(struct arena *a, str query, str name, str *ret_value);

/* "https://host:6443/prefix" in parts. The port is 80 or 443 when absent, the prefix has no final
 * slash, the host of an IPv6 literal no brackets. User info, query and fragment are rejected. */
struct uri {
    bool tls;
    str host;
    uint16_t port;
    str prefix;
};

int uri_parse(str text, struct uri *ret, err_t *e); /* parts borrow `text` */
/* Whether a token or password may be sent to this URL: over TLS to any host, otherwise only to a
 * loopback host. -EPERM with an error that names --allow-insecure-token. */
int uri_check_secret(str url, err_t *e);
/* 127.0.0.0/8, ::1 or localhost. */
bool uri_host_is_loopback(str host);

#endif
