/* Scanning JSON text: see scan.h.
 *
 * One forward pass: strings are skipped by their quotes, containers by counting brackets outside of
 * strings. There is no recursion, so the depth of a document costs nothing. Every function takes an
 * offset and returns the offset after what it skipped, at most the length of the text; damaged text
 * can therefore only lead to a wrong value or none, never beyond the end. */
#include "scan.h"

static bool is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static size_t skip_blanks(str s, size_t at)
{
    while (at < s.n && is_blank(s.p[at]))
        at++;
    return at;
}

/* The offset after the closing quote of the string at `at`; the length of the text if there is
 * none. */
static size_t skip_string(str s, size_t at)
{
    for (at++; at < s.n; at++) {
        if (s.p[at] == '\\')
            at++;
        else if (s.p[at] == '"')
            return at + 1;
    }
    return s.n;
}

/* The offset after the bracket that closes the container at `at`. */
static size_t skip_container(str s, size_t at)
{
    size_t depth = 0;
    while (at < s.n) {
        char c = s.p[at];
        if (c == '"') {
            at = skip_string(s, at);
            continue;
        }
        at++;
        if (c == '{' || c == '[')
            depth++;
        else if ((c == '}' || c == ']') && --depth == 0)
            return at;
    }
    return s.n;
}

static size_t skip_value(str s, size_t at)
{
    if (at >= s.n)
        return s.n;
    if (s.p[at] == '"')
        return skip_string(s, at);
    if (s.p[at] == '{' || s.p[at] == '[')
        return skip_container(s, at);
    while (at < s.n && s.p[at] != ',' && s.p[at] != '}' && s.p[at] != ']' && !is_blank(s.p[at]))
        at++;
    return at;
}

size_t scan_key(str s, str *ret_key)
{
    size_t at = skip_blanks(s, 0);
    if (at >= s.n || (s.p[at] != '{' && s.p[at] != '[' && s.p[at] != ','))
        return 0;
    at = skip_blanks(s, at + 1);
    if (at >= s.n || s.p[at] == '}' || s.p[at] == ']')
        return 0;
    *ret_key = (str){ s.p + at, 0 };
    if (s.p[at] != '"')
        return at;
    size_t end = skip_string(s, at), colon = skip_blanks(s, end);
    if (colon >= s.n || s.p[colon] != ':' || end < at + 2)
        return at;
    *ret_key = (str){ s.p + at + 1, end - at - 2 };
    return skip_blanks(s, colon + 1);
}

bool scan_next(str *rest, str *ret_key, str *ret_value)
{
    str s = *rest, key;
    size_t at = scan_key(s, &key), end = at ? skip_value(s, at) : 0;
    if (end <= at)
        return false;
    *ret_key = key;
    *ret_value = (str){ s.p + at, end - at };
    *rest = str_from(s, skip_blanks(s, end));
    return true;
}

str scan_member(str object, str key)
{
    str rest = object, name, value;
    while (scan_next(&rest, &name, &value))
        if (str_eq(name, key))
            return value;
    return (str){ 0 };
}

str scan_path(str object, str path)
{
    str part;
    while (object.p && str_cut(&path, '.', &part))
        object = scan_member(object, part);
    return object;
}

static size_t put_utf8(char *out, unsigned code)
{
    if (code < 0x80) {
        out[0] = (char)code;
        return 1;
    }
    if (code < 0x800) {
        out[0] = (char)(0xc0 | code >> 6);
        out[1] = (char)(0x80 | (code & 0x3f));
        return 2;
    }
    out[0] = (char)(0xe0 | code >> 12);
    out[1] = (char)(0x80 | (code >> 6 & 0x3f));
    out[2] = (char)(0x80 | (code & 0x3f));
    return 3;
}

static unsigned hex4(str s)
{
    unsigned code = 0;
    for (size_t i = 0; i < 4 && i < s.n; i++) {
        char c = s.p[i];
        unsigned digit =
            c >= '0' && c <= '9' ? (unsigned)(c - '0') : (unsigned)((c | 0x20) - 'a' + 10);
        code = code << 4 | (digit & 0xf);
    }
    return code;
}

/* Our writer escapes only control characters, quotes and backslashes, so there are no surrogate
 * pairs. */
static str unescape(struct arena *a, str raw)
{
    char *out = arena_alloc(a, raw.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < raw.n; i++) {
        if (raw.p[i] != '\\' || i + 1 >= raw.n) {
            out[n++] = raw.p[i];
            continue;
        }
        char c = raw.p[++i];
        if (c == 'u') {
            n += put_utf8(out + n, hex4(str_from(raw, i + 1)));
            i += 4;
        } else {
            out[n++] = c == 'n'   ? '\n'
                       : c == 't' ? '\t'
                       : c == 'r' ? '\r'
                       : c == 'b' ? '\b'
                       : c == 'f' ? '\f'
                                  : c;
        }
    }
    return (str){ out, n };
}

str scan_text(struct arena *a, str value)
{
    if (!value.n || value.p[0] == '{' || value.p[0] == '[' || str_eq(value, S("null")))
        return S("");
    if (value.p[0] != '"')
        return value;
    str raw = value.n >= 2 ? (str){ value.p + 1, value.n - 2 } : S("");
    return str_find_char(raw, '\\') == SIZE_MAX ? raw : unescape(a, raw);
}
