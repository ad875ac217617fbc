/* URLs as Go's net/url parses them: url(), isURL() and the getters.
 *
 * url() accepts an absolute URI ("https://host:80/path?query") or an absolute path; anything else is an error
 * with the sentence of Go's url.ParseRequestURI. The parts are slices of the text, path and query as written;
 * getters unescape or escape when they are called, since most rules ask only for the scheme or the host.
 *
 *   scheme ":" "//" [user "@"] host [":" port] path ["?" query] ["#" fragment]
 *
 * Kubernetes ignores the fragment except for this: it must not make the URL invalid. parse_url() therefore
 * checks the text twice, with and without it. */
#include "cel_node.h"

struct url {
    str text, scheme, host, path, query; /* path and query as written */
};

/* Why a text is not a request URI; NULL: it is one. */
static const char *split_url(struct arena *a, str text, struct url *ret);

static int hex_value(char c)
{
    return c >= '0' && c <= '9'                 ? c - '0'
           : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10
                                                : -1;
}

/* Every % is followed by two hexadecimal digits. */
static bool has_valid_escapes(str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '%' &&
            (i + 2 >= text.n || hex_value(text.p[i + 1]) < 0 || hex_value(text.p[i + 2]) < 0))
            return false;
    return true;
}

static bool is_port(str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    return true;
}

static size_t find_last(str text, char c)
{
    for (size_t i = text.n; i-- > 0;)
        if (text.p[i] == c)
            return i;
    return SIZE_MAX;
}

/* What is wrong with a host and its port; NULL: nothing. IPv6 addresses are in brackets, whose content Go does
 * not check here. */
static const char *check_host(struct arena *a, str host)
{
    size_t colon = find_last(host, ':');
    str port = S("");
    if (host.n && host.p[0] == '[') {
        size_t end = find_last(host, ']');
        if (end == SIZE_MAX)
            return "missing ']' in host";
        port = str_from(host, end + 1);
        if (port.n && (port.p[0] != ':' || !is_port(str_from(port, 1))))
            return arena_printf(a, "invalid port \"" STR_FMT "\" after host", STR_ARG(port)).p;
    } else if (colon != SIZE_MAX) {
        port = str_from(host, colon);
        if (!is_port(str_from(port, 1)))
            return arena_printf(a, "invalid port \"" STR_FMT "\" after host", STR_ARG(port)).p;
    }
    for (size_t i = 0; i < host.n; i++)
        if (host.p[i] == ' ' || strchr("<>\"`{}|\\^", host.p[i]))
            return arena_printf(a, "invalid character \"%c\" in host name", host.p[i]).p;
    return NULL;
}

/* The scheme in front of the first ":"; an error if there is a ":" but no scheme before it. */
static const char *take_scheme(str *rest, str *ret)
{
    *ret = S("");
    for (size_t i = 0; i < rest->n; i++) {
        char c = rest->p[i];
        bool letter = (c | 32) >= 'a' && (c | 32) <= 'z';
        bool other = (c >= '0' && c <= '9') || c == '+' || c == '-' || c == '.';
        if (c == ':' && !i)
            return "missing protocol scheme";
        if (c == ':') {
            *ret = str_upto(*rest, i);
            *rest = str_from(*rest, i + 1);
            return NULL;
        }
        if (!letter && !(other && i))
            return NULL;
    }
    return NULL;
}

/* Cuts "//user@host:port" off the front of `rest`, which becomes the path. The user is dropped: there is no
 * getter for it. */
static const char *split_authority(struct arena *a, str *rest, struct url *ret)
{
    str authority = str_from(*rest, 2);
    size_t slash = str_find_char(authority, '/');
    *rest = slash == SIZE_MAX ? S("") : str_from(authority, slash);
    authority = slash == SIZE_MAX ? authority : str_upto(authority, slash);
    size_t at = find_last(authority, '@');
    ret->host = at == SIZE_MAX ? authority : str_from(authority, at + 1);
    return check_host(a, ret->host);
}

/* Fills the parts of a URL without a fragment. Returns why the text is not a request URI; NULL: it is one. */
static const char *split_url(struct arena *a, str text, struct url *ret)
{
    *ret = (struct url){ .text = text };
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || text.p[i] == 0x7f)
            return "net/url: invalid control character in URL";
    if (!text.n)
        return "empty url";
    str rest = text;
    const char *why = take_scheme(&rest, &ret->scheme);
    if (why)
        return why;
    size_t mark = str_find_char(rest, '?');
    if (mark != SIZE_MAX) {
        ret->query = str_from(rest, mark + 1);
        rest = str_upto(rest, mark);
    }
    if (!rest.n || rest.p[0] != '/')
        return ret->scheme.n ? NULL : "invalid URI for request";
    if (ret->scheme.n && str_starts(rest, S("//")))
        why = split_authority(a, &rest, ret);
    if (why)
        return why;
    if (!has_valid_escapes(rest))
        return arena_printf(a, "invalid URL escape \"%.*s\"", 3, rest.p + str_find_char(rest, '%'))
            .p;
    ret->path = rest;
    return NULL;
}

/* The fragment is part of the text for the check, but of no part. */
static const char *parse_url(struct cel_machine *m, str text, struct url *ret)
{
    const char *why = split_url(m->arena, text, ret);
    size_t hash = str_find_char(text, '#');
    if (!why && hash != SIZE_MAX)
        why = split_url(m->arena, str_upto(text, hash), ret);
    ret->text = text;
    return why;
}

str cel_url_text(struct cel_value v)
{
    return ((const struct url *)v.other)->text;
}

static struct cel_value to_url(struct cel_machine *m, str text)
{
    struct url *url = arena_new(m->arena, struct url);
    const char *why = parse_url(m, text, url);
    if (why)
        return cel_fail(m->arena,
                        "URL parse error during conversion from string: parse \"" STR_FMT "\": %s",
                        STR_ARG(text), why);
    return (struct cel_value){ .kind = CEL_URL, .other = url };
}

/* ---- parts */

/* The host without port and brackets. */
static str get_hostname(str host, str *ret_port)
{
    size_t colon = find_last(host, ':'), bracket = find_last(host, ']');
    *ret_port = S("");
    if (colon != SIZE_MAX && (bracket == SIZE_MAX || colon > bracket)) {
        *ret_port = str_from(host, colon + 1);
        host = str_upto(host, colon);
    }
    if (host.n > 1 && host.p[0] == '[' && host.p[host.n - 1] == ']')
        host = str_upto(str_from(host, 1), host.n - 2);
    return host;
}

/* The path as written if that is valid, otherwise with what is not allowed escaped. */
static str escape_path(struct arena *a, str path)
{
    auto_buf struct buf out = { 0 };
    for (size_t i = 0; i < path.n; i++) {
        unsigned char c = (unsigned char)path.p[i];
        bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                     (c && strchr("-_.~!$&'()*+,;=:@/[]%", c));
        if (plain)
            buf_putc(&out, (char)c);
        else
            buf_printf(&out, "%%%02X", c);
    }
    return arena_str(a, buf_str(&out));
}

/* Decodes "%XX" and "+"; false if an escape is malformed, and then the whole pair is skipped. */
static bool unescape_query(struct arena *a, str text, str *ret)
{
    auto_buf struct buf out = { 0 };
    if (!has_valid_escapes(text))
        return false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '%') {
            buf_putc(&out, (char)(hex_value(text.p[i + 1]) * 16 + hex_value(text.p[i + 2])));
            i += 2;
        } else {
            buf_putc(&out, text.p[i] == '+' ? ' ' : text.p[i]);
        }
    }
    *ret = arena_str(a, buf_str(&out));
    return true;
}

/* A map of the values of each key, in order. */
static struct cel_value get_query(struct cel_machine *m, str query)
{
    struct cel_value map = cel_new_map(m->arena, 8);
    str pair, rest = query;
    while (query.n && str_cut(&rest, '&', &pair)) {
        size_t equals = str_find_char(pair, '=');
        str key = equals == SIZE_MAX ? pair : str_upto(pair, equals);
        str value = equals == SIZE_MAX ? S("") : str_from(pair, equals + 1);
        if (!pair.n || str_find_char(pair, ';') != SIZE_MAX ||
            !unescape_query(m->arena, key, &key) || !unescape_query(m->arena, value, &value))
            continue;
        struct cel_value list;
        bool known = cel_lookup(m, map, cel_of_text(key), &list);
        if (!known)
            list = cel_new_list(m->arena, 2);
        list = cel_append(m->arena, list, cel_of_text(value));
        if (!known) {
            cel_insert(m, &map, cel_of_text(key), list);
            continue;
        }
        for (uint32_t i = 0; i < map.n; i++)
            if (str_eq(cel_text(map.map->keys[i]), key))
                map.map->values[i] = list;
    }
    return map;
}

struct cel_value cel_call_url(struct cel_machine *m, enum cel_fn fn, const struct cel_overload *o,
                              const struct cel_value *a)
{
    struct url parsed;
    const struct url *url = a[0].other;
    str port, host;
    if (fn == CEL_F_URL)
        return to_url(m, cel_text(a[0]));
    if (fn == CEL_F_IS_URL)
        return cel_of_bool(!parse_url(m, cel_text(a[0]), &parsed));
    if (fn == CEL_F_URL_QUERY)
        return get_query(m, url->query);
    host = get_hostname(url->host, &port);
    return !strcmp(o->name, "getScheme")     ? cel_of_text(url->scheme)
           : !strcmp(o->name, "getHost")     ? cel_of_text(url->host)
           : !strcmp(o->name, "getHostname") ? cel_of_text(host)
           : !strcmp(o->name, "getPort")     ? cel_of_text(port)
                                             : cel_of_text(escape_path(m->arena, url->path));
}
