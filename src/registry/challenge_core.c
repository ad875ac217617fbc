/* Challenges and URLs: see challenge_core.h.
 *
 * Everything here comes from a server that is not trusted: unknown parameters are skipped, a challenge without
 * a realm leads nowhere, and a URL that could smuggle a header or credentials is refused. Values are copied into the arena. */
#include "challenge_core.h"

#include "../base/buf.h"

/* ---- the header */

static bool is_token_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '_';
}

/* Letters, digits, hyphens and underscores from the front; may be empty. */
static str take_token(str *rest)
{
    size_t n = 0;
    while (n < rest->n && is_token_char(rest->p[n]))
        n++;
    str token = str_upto(*rest, n);
    *rest = str_from(*rest, n);
    return token;
}

/* A quoted string without its backslashes, or a token up to the next comma. */
static str take_value(struct arena *a, str *rest)
{
    auto_buf struct buf out = { 0 };
    if (!rest->n || rest->p[0] != '"') {
        size_t comma = str_find_char(*rest, ',');
        str value = comma == SIZE_MAX ? *rest : str_upto(*rest, comma);
        *rest = str_from(*rest, value.n);
        return arena_str(a, str_trim(value));
    }
    size_t i = 1;
    for (; i < rest->n && rest->p[i] != '"'; i++) {
        if (rest->p[i] == '\\' && i + 1 < rest->n)
            i++;
        buf_putc(&out, rest->p[i]);
    }
    *rest = str_from(*rest, i + 1);
    return arena_str(a, buf_str(&out));
}

/* Only the first challenge of the header is read. Parameters are kept for Bearer, which alone needs them. */
struct registry_challenge registry_challenge_parse(struct arena *a, str header)
{
    struct registry_challenge c = { 0 };
    str rest = str_trim(header), scheme = take_token(&rest);
    c.scheme = str_eq_nocase(scheme, S("Bearer"))  ? REGISTRY_BEARER
               : str_eq_nocase(scheme, S("Basic")) ? REGISTRY_BASIC
               : scheme.n                          ? REGISTRY_OTHER_SCHEME
                                                   : REGISTRY_NO_CHALLENGE;
    while (c.scheme == REGISTRY_BEARER && rest.n) {
        while (rest.n && (rest.p[0] == ' ' || rest.p[0] == ',' || rest.p[0] == '\t'))
            rest = str_from(rest, 1);
        str key = take_token(&rest);
        if (!key.n || !rest.n || rest.p[0] != '=')
            break;
        rest = str_from(rest, 1);
        str value = take_value(a, &rest);
        if (str_eq_nocase(key, S("realm")))
            c.realm = value;
        else if (str_eq_nocase(key, S("service")))
            c.service = value;
        else if (str_eq_nocase(key, S("scope")))
            c.scope = value;
    }
    return c;
}

/* ---- URLs */

/* Splits a URL that a server sent. Refused: other schemes, credentials, control characters, and a query without
 * a path. */
bool registry_url_parse(str url, struct registry_url *ret)
{
    struct registry_url u = { .tls = str_starts(url, S("https://")), .path = S("/") };
    if (!u.tls && !str_starts(url, S("http://")))
        return false;
    str rest = str_from(url, u.tls ? 8 : 7);
    size_t n = 0;
    while (n < rest.n && rest.p[n] != '/' && rest.p[n] != '?' && rest.p[n] != '#')
        n++;
    u.host = str_upto(rest, n);
    rest = str_from(rest, n);
    size_t fragment = str_find_char(rest, '#');
    if (fragment != SIZE_MAX)
        rest = str_upto(rest, fragment);
    for (size_t i = 0; i < url.n; i++) /* no header injection, no credentials in the host */
        if ((unsigned char)url.p[i] <= ' ' || (unsigned char)url.p[i] == 0x7f)
            return false;
    if (rest.n && rest.p[0] == '/')
        u.path = rest;
    if (!u.host.n || str_find_char(u.host, '@') != SIZE_MAX || (rest.n && rest.p[0] == '?'))
        return false;
    *ret = u;
    return true;
}

str registry_url_text(struct arena *a, const struct registry_url *url)
{
    return arena_printf(a, "%s://" STR_FMT STR_FMT, url->tls ? "https" : "http", STR_ARG(url->host),
                        STR_ARG(url->path));
}

/* Where a Location header leads. One that is relative to the path is returned as it is, and is then refused as a
 * URL. */
str registry_url_resolve(struct arena *a, const struct registry_url *base, str location)
{
    if (str_starts(location, S("//")))
        return arena_printf(a, "%s:" STR_FMT, base->tls ? "https" : "http", STR_ARG(location));
    if (str_starts(location, S("/")))
        return arena_printf(a, "%s://" STR_FMT STR_FMT, base->tls ? "https" : "http",
                            STR_ARG(base->host), STR_ARG(location));
    return arena_str(a, location);
}

/* ---- the token */

/* Percent-encodes for a query, with "+" for a space. */
static void put_escaped(struct buf *out, str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     c == '-' || c == '_' || c == '.' || c == '~';
        if (plain)
            buf_putc(out, (char)c);
        else if (c == ' ')
            buf_putc(out, '+');
        else
            buf_printf(out, "%%%02X", c);
    }
}

str registry_token_url(struct arena *a, const struct registry_challenge *c, const str *scopes,
                       size_t n)
{
    auto_buf struct buf out = { 0 };
    buf_put(&out, c->realm);
    char separator = str_find_char(c->realm, '?') == SIZE_MAX ? '?' : '&';
    for (size_t i = 0; i < n; i++, separator = '&') {
        buf_printf(&out, "%cscope=", separator);
        put_escaped(&out, scopes[i]);
    }
    buf_printf(&out, "%cservice=", separator);
    put_escaped(&out, c->service);
    return arena_str(a, buf_str(&out));
}
