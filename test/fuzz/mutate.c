/* See mutate.h. */
#include "mutate.h"

struct place {
    struct json *parent;
    uint32_t at; /* of the parent's items or members */
};

static struct json **slot(struct place p)
{
    return p.parent->type == JSON_ARR ? &p.parent->items[p.at] : &p.parent->members[p.at].value;
}

/* Descends as the bytes choose; the parent is NULL where there is nothing below the root. */
static struct place choose(struct fuzz_bytes *b, const struct json *root)
{
    struct place p = { NULL, 0 };
    for (struct json *v = (struct json *)(uintptr_t)root; json_len(v);) {
        p = (struct place){ v, (uint32_t)(fuzz_byte(b) % json_len(v)) };
        v = *slot(p);
        if (fuzz_byte(b) % 4 == 0)
            break;
    }
    return p;
}

static struct json *nested(struct arena *a, int levels, bool arrays)
{
    struct json *v = json_new_int(a, 1);
    for (int i = 0; i < levels; i++) {
        struct json *around = arrays ? json_new_arr(a) : json_new_obj(a);
        if (arrays)
            json_push(a, around, v);
        else
            json_append(a, around, S("a"), v);
        v = around;
    }
    return v;
}

static struct json *long_text(struct arena *a, size_t n, char c)
{
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < n; i++)
        buf_putc(&text, c);
    return json_new_str(a, buf_str(&text));
}

static struct json *literal(struct arena *a, uint8_t which)
{
    static const char *const texts[] = {
        "null",
        "true",
        "false",
        "0",
        "1",
        "-1",
        "2147483647",
        "2147483648",
        "1e308",
        "-1e308",
        "0.5",
        "9223372036854775807",
        "-9223372036854775808",
        "[]",
        "{}",
        "[null]",
        "[[]]",
        "[{}]",
        "{\"\":{}}",
        "\"\"",
        "\"a\"",
        "\"-1\"",
        "\"\\u0000\"",
        "\"1e999\"",
        "\"NaN\"",
        "\"100m\"",
        "\"9Ei\"",
        "\"True\"",
        "\"default\"",
        "\"2026-02-30T25:61:61Z\"",
        "\"2026-06-03T12:00:00Z\"",
        "\"0001-01-01T00:00:00Z\"",
        "\"../..\"",
        "\"a: [\"",
        "\"{\\\"a\\\":1}\"",
        "[1,\"a\",null,{}]",
        "\"\xc3\xa9\xf0\x9f\x98\x80\"",
        "{\"name\":null,\"namespace\":[],\"uid\":{}}",
    };
    struct json *v = NULL;
    if (which % 64 >= countof(texts))
        return which % 64 == 63   ? nested(a, 250, which & 64)
               : which % 64 == 62 ? long_text(a, which == 62 ? 70000 : 4000, 'x')
               : which % 64 == 61 ? long_text(a, 300, '%')
                                  : json_new_int(a, which);
    return json_parse(a, str_c(texts[which % 64]), &v, NULL) == 0 ? v : json_new_null(a);
}

static struct json *number(struct arena *a, struct fuzz_bytes *b)
{
    uint64_t bits = 0;
    for (int i = 0, n = fuzz_byte(b) % 9; i < n; i++)
        bits = bits << 8 | fuzz_byte(b);
    return json_new_int(a, (int64_t)bits);
}

static struct json *text(const struct mutation *m)
{
    size_t n = 0;
    while (m->words && m->words[n])
        n++;
    uint8_t which = fuzz_byte(m->bytes);
    if (n && which < 200)
        return json_new_str(m->arena, str_c(m->words[which % n]));
    auto_buf struct buf out = { 0 };
    for (int i = 0; i < which % 16; i++)
        buf_putc(&out, (char)(fuzz_byte(m->bytes) & 0x7f));
    return json_new_str(m->arena, buf_str(&out));
}

static struct json *part_of(struct arena *a, struct fuzz_bytes *b, const struct json *tree)
{
    struct place p = choose(b, tree);
    return p.parent ? json_copy(a, *slot(p)) : json_new_null(a);
}

static struct json *around(struct arena *a, struct json *v, bool array)
{
    struct json *wrap = array ? json_new_arr(a) : json_new_obj(a);
    if (array)
        json_push(a, wrap, v);
    else
        json_append(a, wrap, S("x"), v);
    return wrap;
}

static void remove_at(struct place p)
{
    if (p.parent->type == JSON_ARR)
        json_remove(p.parent, p.at);
    else
        json_del(p.parent, p.parent->members[p.at].key);
}

static void repeat(const struct mutation *m, struct place p)
{
    struct json *copy = json_copy(m->arena, *slot(p));
    int times = 1 + fuzz_byte(m->bytes) % 8;
    for (int i = 0; i < times; i++)
        if (p.parent->type == JSON_ARR)
            json_push(m->arena, p.parent, copy);
        else
            json_set(m->arena, p.parent, json_text(text(m)), copy);
}

void mutate(const struct mutation *m, struct json *root)
{
    struct place p = choose(m->bytes, root);
    if (!p.parent)
        return;
    switch (fuzz_byte(m->bytes) % 12) {
    case 0:
        remove_at(p);
        break;
    case 1:
        repeat(m, p);
        break;
    case 2:
        *slot(p) = around(m->arena, *slot(p), true);
        break;
    case 3:
        *slot(p) = around(m->arena, *slot(p), false);
        break;
    case 4:
        *slot(p) = part_of(m->arena, m->bytes, root);
        break;
    case 5:
        *slot(p) = part_of(m->arena, m->bytes, m->other);
        break;
    case 6:
        *slot(p) = number(m->arena, m->bytes);
        break;
    case 7:
    case 8:
        *slot(p) = text(m);
        break;
    default:
        *slot(p) = literal(m->arena, fuzz_byte(m->bytes));
        break;
    }
    if (json_deeper(root, JSON_DEPTH_MAX - 2)) /* what the client would not read anyway */
        *slot(p) = json_new_null(m->arena);
}
