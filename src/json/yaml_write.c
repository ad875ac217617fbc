/* Writes a tree as YAML in block style, like kubectl.
 *
 * Text has one of three forms: plain if every YAML parser reads it as the same text, a literal
 * block (|) if it has several lines, and quoted as in JSON otherwise. The check for plain text is
 * conservative, because a mistake would change a value and caution costs only quotes: a scalar is
 * plain only if YAML 1.1 does not see a number, boolean, null or date in it. */
#include "yaml.h"

static void write_node(struct buf *out, const struct json *v, int indent);

/* ---- text */

/* Non-ASCII characters that YAML treats as line breaks or that must be escaped. */
static size_t escape_index(str text, size_t at)
{
    static const char *const sequences[] = { "\xc2\x85", "\xe2\x80\xa8", "\xe2\x80\xa9",
                                             "\xef\xbb\xbf" };
    for (size_t i = 0; i < countof(sequences); i++)
        if (str_starts(str_from(text, at), str_c(sequences[i])))
            return i + 1;
    bool c1 = text.p[at] == '\xc2' && at + 1 < text.n && (unsigned char)text.p[at + 1] < 0xa0;
    return c1 ? countof(sequences) + 1 : 0;
}

static bool is_printable(str text, bool lines)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if ((c < 0x20 && !(lines && c == '\n')) || c == 0x7f ||
            (c >= 0x80 && escape_index(text, i)))
            return false;
    }
    return true;
}

/* Text that other parsers could read as a number or a date. */
static bool looks_like_number(str text)
{
    if (!text.n || !strchr("0123456789+-.", text.p[0]))
        return false;
    for (size_t i = 0; i < text.n; i++)
        if (!strchr("0123456789+-._:eExXoObTtZ ", text.p[i]))
            return false;
    return true;
}

static bool can_be_plain(str text)
{
    if (!text.n || text.n > 1000 || !is_printable(text, false) || looks_like_number(text))
        return false;
    if (strchr("-?:,[]{}#&*!|>'\"%@` =<~", text.p[0]) || text.p[text.n - 1] == ' ' ||
        text.p[text.n - 1] == ':')
        return false;
    if (str_find(text, S(": ")) != SIZE_MAX || str_find(text, S(" #")) != SIZE_MAX)
        return false;
    if (str_starts(text, S("---")) || str_starts(text, S("...")))
        return false;
    auto_arena struct arena scratch = { 0 };
    return json_is(yaml_resolve(&scratch, text), JSON_STR);
}

static void write_quoted(struct buf *out, str text)
{
    static const char *const escapes[] = { "", "\\N", "\\L", "\\P", "\\ufeff" };
    auto_buf struct buf quoted = { 0 };
    json_write_text(&quoted, text);
    str q = buf_str(&quoted);
    for (size_t i = 0; i < q.n; i++) {
        size_t kind = (unsigned char)q.p[i] >= 0x80 ? escape_index(q, i) : 0;
        if (q.p[i] == 0x7f) {
            buf_put(out, S("\\x7f"));
        } else if (!kind) {
            buf_putc(out, q.p[i]);
        } else if (kind < countof(escapes)) {
            buf_put(out, str_c(escapes[kind]));
            i += kind == 1 ? 1 : 2;
        } else {
            buf_printf(out, "\\x%02x", (unsigned char)q.p[++i]);
        }
    }
}

static bool literal(str text)
{
    return text.n && text.n <= 1 << 20 && str_find_char(text, '\n') != SIZE_MAX &&
           is_printable(text, true) && !strchr(" \n", text.p[0]);
}

/* "|" keeps one final newline, "|-" none and "|+" all of them. */
static void write_literal(struct buf *out, str text, int indent)
{
    size_t body = text.n;
    while (body && text.p[body - 1] == '\n')
        body--;
    buf_put(out, text.n == body ? S("|-") : text.n == body + 1 ? S("|") : S("|+"));
    str rest = str_upto(text, body == text.n ? body : text.n - 1), line;
    while (rest.p && str_cut(&rest, '\n', &line)) {
        buf_putc(out, '\n');
        if (line.n)
            buf_printf(out, "%*s" STR_FMT, indent, "", STR_ARG(line));
    }
}

static void write_text(struct buf *out, str text, int indent)
{
    if (can_be_plain(text))
        buf_put(out, text);
    else if (literal(text))
        write_literal(out, text, indent);
    else
        write_quoted(out, text);
}

/* ---- containers: a nested one starts on the line below its key, or right after its dash */

static bool is_block(const struct json *v)
{
    return json_len(v) > 0;
}

static void line_start(struct buf *out, int indent)
{
    buf_printf(out, "\n%*s", indent, "");
}

static void write_key(struct buf *out, str key)
{
    if (can_be_plain(key))
        buf_put(out, key);
    else
        write_quoted(out, key);
    buf_putc(out, ':');
}

static void write_member(struct buf *out, const struct json_member *m, int indent)
{
    write_key(out, m->key);
    if (!is_block(m->value)) {
        buf_putc(out, ' ');
        write_node(out, m->value, indent + 2);
    } else if (m->value->type == JSON_ARR) {
        line_start(out, indent);
        write_node(out, m->value, indent);
    } else {
        line_start(out, indent + 2);
        write_node(out, m->value, indent + 2);
    }
}

static void write_node(struct buf *out, const struct json *v, int indent)
{
    if (json_is(v, JSON_STR)) {
        write_text(out, json_text(v),
                   MAX(indent, 2)); /* a block at the top level is indented too */
    } else if (!is_block(v)) {
        json_write(out, v);
    } else if (v->type == JSON_OBJ) {
        for (uint32_t i = 0; i < v->n; i++) {
            if (i)
                line_start(out, indent);
            write_member(out, &v->members[i], indent);
        }
    } else {
        for (uint32_t i = 0; i < v->n; i++) {
            if (i)
                line_start(out, indent);
            buf_put(out, S("- "));
            write_node(out, v->items[i], indent + 2);
        }
    }
}

void yaml_write(struct buf *out, const struct json *v)
{
    write_node(out, v, 0);
    buf_putc(out, '\n');
}
