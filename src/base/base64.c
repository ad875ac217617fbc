/* Base64: see base64.h. A group is three bytes or four letters, most significant first; the URL
 * variant translates to and from the standard alphabet, because tokens are short and one decoder is
 * enough. */
#include "base64.h"

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";

void base64_encode(struct buf *out, str bytes)
{
    for (size_t i = 0; i < bytes.n; i += 3) {
        size_t n = MIN(bytes.n - i, (size_t)3);
        uint32_t group = 0;
        for (size_t k = 0; k < 3; k++)
            group = group << 8 | (k < n ? (unsigned char)bytes.p[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            buf_putc(out, k <= n ? alphabet[group >> (18 - 6 * k) & 63] : '=');
    }
}

static int letter_value(char c)
{
    const char *at = c ? strchr(alphabet, c) : NULL;
    return at ? (int)(at - alphabet) : -1;
}

static void put_group(struct buf *out, uint32_t group, int letters)
{
    for (int k = 0; k + 1 < letters; k++)
        buf_putc(out, (char)(group >> (16 - 8 * k)));
}

/* `letters` counts the letters of the current group and `padding` its '='; 4 means that the text is
 * complete. Go accepts line breaks anywhere, also inside a group. */
int base64_decode(struct buf *out, str text)
{
    size_t before = out->n;
    uint32_t group = 0;
    int letters = 0, padding = 0;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (c == '\n' || c == '\r')
            continue;
        int value = c == '=' ? 0 : letter_value(c);
        padding += c == '=';
        /* padding is allowed only at the end, as the third or fourth letter of its group */
        if (value < 0 || (padding && c != '=') || (c == '=' && letters + padding < 3))
            goto bad;
        group = group << 6 | (uint32_t)value;
        letters += c != '=';
        if (letters + padding == 4) {
            put_group(out, group, letters);
            group = 0;
            letters = 0;
            if (padding)
                padding = 4; /* complete: only line breaks may follow */
        } else if (padding > 2) {
            goto bad;
        }
    }
    if (letters == 0 && (padding == 0 || padding == 4))
        return 0;
bad:
    out->n = before;
    return -EINVAL;
}

void base64url_encode(struct buf *out, str bytes)
{
    size_t from = out->n;
    base64_encode(out, bytes);
    while (out->n > from && out->p[out->n - 1] == '=')
        out->p[--out->n] = '\0';
    for (size_t i = from; i < out->n; i++)
        out->p[i] = out->p[i] == '+' ? '-' : out->p[i] == '/' ? '_' : out->p[i];
}

int base64url_decode(struct buf *out, str text)
{
    if (str_find_char(text, '=') != SIZE_MAX)
        return -EINVAL;
    auto_buf struct buf plain = { 0 };
    buf_put(&plain, text);
    for (size_t i = 0; i < plain.n; i++)
        plain.p[i] = plain.p[i] == '-' ? '+' : plain.p[i] == '_' ? '/' : plain.p[i];
    while (plain.n % 4)
        buf_put(&plain, S("="));
    return base64_decode(out, buf_str(&plain));
}
