/* Percent-encoding, queries and URLs: see http.h.
 *
 * Parts of a URL or query borrow the text they were parsed from; only decoding copies, into the caller's arena.
 * Errors quote the whole URL, because the user has to find it in a flag or a file. A decoded NUL is refused:
 * paths and names are used as C strings later. */
#include "http.h"

#include <arpa/inet.h>

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

/* `plus`: "+" is a space, as in queries but not in paths. */
int uri_decode(struct arena *a, str text, bool plus, str *ret)
{
    char *out = arena_alloc(a, text.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '%') {
            int high = text.n - i > 2 ? hex_digit(text.p[i + 1]) : -1;
            int low = text.n - i > 2 ? hex_digit(text.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return -EINVAL;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '+' && plus) {
            c = ' ';
        }
        if (c == '\0')
            return -EINVAL;
        out[n++] = c;
    }
    *ret = (str){ out, n };
    return 0;
}

void uri_encode(struct buf *out, str text)
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                     (c && strchr("-._~", c));
        if (plain)
            buf_putc(out, (char)c);
        else
            buf_put(out, (str){ (char[]){ '%', digits[c >> 4], digits[c & 15] }, 3 });
    }
}

bool uri_query_next(str *rest, str *ret_name, str *ret_value)
{
    str part;
    do {
        if (!rest->p || !str_cut(rest, '&', &part))
            return false;
    } while (part.n == 0);
    size_t equals = str_find_char(part, '=');
    *ret_name = str_upto(part, equals);
    *ret_value = equals == SIZE_MAX ? (str){ part.p + part.n, 0 } : str_from(part, equals + 1);
    return true;
}

/* 1: found; 0: not in the query. Of repeated names the first counts. */
int uri_query_get(struct arena *a, str query, str name, str *ret_value)
{
    str part_name, value;
    while (uri_query_next(&query, &part_name, &value)) {
        str decoded = part_name;
        if (str_find_char(part_name, '%') != SIZE_MAX && uri_decode(a, part_name, true, &decoded))
            return -EINVAL;
        if (!str_eq(decoded, name))
            continue;
        int r = uri_decode(a, value, true, ret_value);
        return r < 0 ? r : 1;
    }
    return 0;
}

/* The port after "host:" or "[v6]:". An empty one keeps the default. */
static int parse_port(str text, str whole, uint16_t *port, err_t *e)
{
    int64_t number;
    if (text.n == 0)
        return 0;
    if (str_to_i64(text, &number) < 0 || number < 1 || number > UINT16_MAX)
        return err_set(e, EINVAL, "URL " STR_FMT ": port " STR_FMT " must be between 1 and 65535",
                       STR_ARG(whole), STR_ARG(text));
    *port = (uint16_t)number;
    return 0;
}

/* "host", "host:port", "[v6]" or "[v6]:port". */
static int parse_authority(str text, str whole, struct uri *u, err_t *e)
{
    str port = { 0 };
    if (text.n && text.p[0] == '[') {
        size_t end = str_find_char(text, ']');
        if (end == SIZE_MAX || (end + 1 < text.n && text.p[end + 1] != ':'))
            return err_set(e, EINVAL,
                           "URL " STR_FMT ": an IPv6 address must be enclosed in [ and ]",
                           STR_ARG(whole));
        u->host = (str){ text.p + 1, end - 1 };
        port = str_from(text, end + 2);
    } else {
        size_t colon = str_find_char(text, ':');
        u->host = str_upto(text, colon);
        if (colon != SIZE_MAX)
            port = str_from(text, colon + 1);
    }
    if (u->host.n == 0 || u->host.n > 255)
        return err_set(e, EINVAL, "URL " STR_FMT " must have a host name of at most 255 bytes",
                       STR_ARG(whole));
    return parse_port(port, whole, &u->port, e);
}

int uri_parse(str text, struct uri *ret, err_t *e)
{
    struct uri u = { 0 };
    str rest;
    if (str_starts(text, S("https://"))) {
        u = (struct uri){ .tls = true, .port = 443 };
        rest = str_from(text, 8);
    } else if (str_starts(text, S("http://"))) {
        u.port = 80;
        rest = str_from(text, 7);
    } else {
        return err_set(e, EINVAL, "URL " STR_FMT " must begin with https:// or http://",
                       STR_ARG(text));
    }
    for (size_t i = 0; i < text.n; i++)
        if (strchr("?#@ \"<>\\^`{|}", text.p[i]) || (unsigned char)text.p[i] <= ' ' ||
            (unsigned char)text.p[i] > '~')
            return err_set(e, EINVAL, "URL " STR_FMT ": invalid character at byte %zu",
                           STR_ARG(text), i + 1);
    size_t slash = str_find_char(rest, '/');
    u.prefix = slash == SIZE_MAX ? (str){ 0 } : str_from(rest, slash);
    while (u.prefix.n && u.prefix.p[u.prefix.n - 1] == '/')
        u.prefix.n--;
    int r = parse_authority(str_upto(rest, slash), text, &u, e);
    if (r < 0)
        return r;
    *ret = u;
    return 0;
}

bool uri_host_is_loopback(str host)
{
    char text[64];
    struct in_addr v4;
    struct in6_addr v6;
    if (host.n >= sizeof(text))
        return false;
    memcpy(text, host.p, host.n);
    text[host.n] = '\0';
    if (inet_pton(AF_INET, text, &v4) == 1)
        return ntohl(v4.s_addr) >> 24 == 127;
    if (inet_pton(AF_INET6, text, &v6) == 1)
        return IN6_IS_ADDR_LOOPBACK(&v6);
    return str_eq_nocase(host, S("localhost"));
}

int uri_check_secret(str url, err_t *e)
{
    struct uri u;
    int r = uri_parse(url, &u, e);
    if (r < 0 || u.tls || uri_host_is_loopback(u.host))
        return r;
    return err_set(e, EPERM,
                   "URL " STR_FMT ": a token is not sent without TLS to another host; use https:// "
                   "or set --allow-insecure-token",
                   STR_ARG(url));
}
