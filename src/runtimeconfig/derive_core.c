/* Derived names of the newer generation of AIM: see derive_core.h.
 *
 * Names are cut part by part, always the longest one, so that each stays recognizable; the hash keeps them apart. What
 * is hashed is the JSON of each input, as Go writes it, joined by "|". */
#include "derive_core.h"

#include "../base/sha256.h"
#include "names_core.h"

enum { PARTS_MAX = 8, HASH_MAX = 16 };

/* Go escapes these three as well. */
static void put_go_json(struct buf *out, const struct json *v)
{
    auto_buf struct buf plain = { 0 };
    json_write(&plain, v);
    for (size_t i = 0; i < plain.n; i++) {
        char c = plain.p[i];
        if (c == '<' || c == '>' || c == '&')
            buf_printf(out, "\\u%04x", (unsigned)c);
        else
            buf_putc(out, c);
    }
}

static str aim_derive_hash(struct arena *a, const struct json *inputs, size_t digits)
{
    auto_buf struct buf text = { 0 };
    char hex[SHA256_HEX + 1];
    for (size_t i = 0; i < json_len(inputs); i++) {
        if (i)
            buf_putc(&text, '|');
        put_go_json(&text, json_item(inputs, i));
    }
    sha256_hex(buf_str(&text), hex);
    return arena_str(a, str_upto(str_c(hex), MIN(digits, (size_t)SHA256_HEX)));
}

static str trim_dashes(str text)
{
    while (text.n && text.p[text.n - 1] == '-')
        text.n--;
    return text;
}

/* Shortens the longest part by one byte; false: nothing is left to shorten. */
static bool shorten_longest(str *parts, size_t n)
{
    size_t longest = 0;
    for (size_t i = 1; i < n; i++)
        if (parts[i].n > parts[longest].n)
            longest = i;
    if (parts[longest].n <= 1)
        return false;
    parts[longest].n--;
    parts[longest] = trim_dashes(parts[longest]);
    return true;
}

str aim_derive_name(struct arena *a, const str *parts, size_t n, const struct json *inputs,
                    size_t digits)
{
    str kept[PARTS_MAX];
    size_t count = MIN(n, (size_t)PARTS_MAX), sum;
    for (size_t i = 0; i < count; i++) {
        str part = aim_names_rfc1123_strict(a, parts[i]);
        kept[i] = part.n ? part : S("part");
    }
    do {
        sum = digits;
        for (size_t i = 0; i < count; i++)
            sum += kept[i].n + 1;
    } while (sum > NAMES_LABEL_MAX && shorten_longest(kept, count));
    auto_buf struct buf out = { 0 };
    for (size_t i = 0; i < count; i++)
        buf_printf(&out, STR_FMT "-", STR_ARG(kept[i]));
    buf_put(&out, aim_derive_hash(a, inputs, digits));
    return arena_str(a, buf_str(&out));
}

struct json *aim_derive_inputs(struct arena *a, const str *texts, size_t n)
{
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < n; i++)
        json_push(a, list, json_new_str(a, texts[i]));
    return list;
}

/* The tag in a reference; empty: none. The name is the last segment of the repository. */
static void cut_image(str image, str *name, str *tag)
{
    size_t at = str_find_char(image, '@');
    str rest = at == SIZE_MAX ? image : str_upto(image, at);
    for (size_t slash; (slash = str_find_char(rest, '/')) != SIZE_MAX;)
        rest = str_from(rest, slash + 1);
    size_t colon = str_find_char(rest, ':');
    *name = colon == SIZE_MAX ? rest : str_upto(rest, colon);
    *tag = colon == SIZE_MAX ? S("") : str_from(rest, colon + 1);
}

str aim_derive_model(struct arena *a, str image)
{
    enum { DIGITS = 8 };
    str parts[2];
    cut_image(image, &parts[0], &parts[1]);
    return aim_derive_name(a, parts, parts[1].n ? 2 : 1, aim_derive_inputs(a, &image, 1), DIGITS);
}
