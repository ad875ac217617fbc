/* See trim.h. Nested values are stepped over 64 bytes at a time: a bit for each quote, backslash
 * and bracket, the running parity of the quotes tells which bits lie inside of text, and the rest
 * is counting. Text and scalars are short and looked at directly.
 *
 * The recursion is as deep as the deepest declared path, whatever the document. */
#include "trim.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

struct cut {
    const char *p, *end;
    struct buf *out;
};

enum { BLOCK = 64 };

/* ---- blocks */

/* A bit for each byte of a quarter that is `wanted`, or would be with the bits of `fold` set. */
static inline uint64_t quarter_bits(const char *quarter, char wanted, char fold)
{
#ifdef __SSE2__
    __m128i bytes = _mm_loadu_si128((const __m128i *)(const void *)quarter);
    bytes = _mm_or_si128(bytes, _mm_set1_epi8(fold));
    return (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(bytes, _mm_set1_epi8(wanted)));
#else
    uint64_t bits = 0;
    for (int i = 0; i < BLOCK / 4; i++)
        bits |= (uint64_t)((quarter[i] | fold) == wanted) << i;
    return bits;
#endif
}

static inline uint64_t bits_of(const char *block, char wanted, char fold)
{
    return quarter_bits(block, wanted, fold) | quarter_bits(block + 16, wanted, fold) << 16 |
           quarter_bits(block + 32, wanted, fold) << 32 |
           quarter_bits(block + 48, wanted, fold) << 48;
}

/* The builtin is a call without the processor's own instruction, which not every one has. */
static inline int count_bits(uint64_t x)
{
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (int)(x * UINT64_C(0x0101010101010101) >> 56);
}

/* Every bit from an odd quote to the next: text. */
static inline uint64_t between(uint64_t quotes)
{
    quotes ^= quotes << 1;
    quotes ^= quotes << 2;
    quotes ^= quotes << 4;
    quotes ^= quotes << 8;
    quotes ^= quotes << 16;
    return quotes ^ quotes << 32;
}

struct nesting {
    int depth;
    bool in_text, escaped; /* at the end of the last block */
};

/* Bits after an odd number of backslashes in a row. Added to a row's first bit, the carry runs
 * through the row and comes out behind it; where it began and where it came out tell the length's
 * parity, all rows at once and without a branch. `*escaped`: the last row goes to the end and
 * escapes what follows. */
static inline uint64_t after_odd_rows(uint64_t backslashes, bool *escaped)
{
    const uint64_t even = UINT64_C(0x5555555555555555);
    uint64_t first = backslashes & ~(backslashes << 1), behind;
    uint64_t behind_even = (backslashes + (first & even)) & ~backslashes;
    *escaped = __builtin_add_overflow(backslashes, first & ~even, &behind);
    return (behind_even & ~even) | (behind & ~backslashes & even);
}

static inline uint64_t real_quotes(struct nesting *n, const char *block)
{
    uint64_t begun = n->escaped; /* the first byte is escaped by the last block */
    uint64_t quotes = bits_of(block, '"', 0), backslashes = bits_of(block, '\\', 0);
    return quotes & ~begun & ~after_odd_rows(backslashes & ~begun, &n->escaped);
}

/* How many bytes of the block belong to the value: all, unless its last bracket closes here. */
static size_t nested_bytes(struct nesting *n, const char *block)
{
    uint64_t text = between(real_quotes(n, block)) ^ (n->in_text ? UINT64_MAX : 0);
    uint64_t opens = bits_of(block, '{', 0x20) & ~text, closes = bits_of(block, '}', 0x20) & ~text;
    int closing = count_bits(closes);
    n->in_text = text >> (BLOCK - 1);
    if (closing < n->depth) {
        n->depth += count_bits(opens) - closing;
        return BLOCK;
    }
    for (uint64_t both = opens | closes; both; both &= both - 1) {
        int at = __builtin_ctzll(both);
        n->depth += opens >> at & 1 ? 1 : -1;
        if (!n->depth)
            return (size_t)at + 1;
    }
    return BLOCK;
}

/* ---- stepping over */

static bool skip_nested(struct cut *c)
{
    struct nesting n = { 0 };
    const char *p = c->p;
    while (c->end - p >= BLOCK) {
        p += nested_bytes(&n, p);
        if (!n.depth) {
            c->p = p;
            return true;
        }
    }
    char rest[BLOCK] = { 0 };
    memcpy(rest, p, (size_t)(c->end - p));
    size_t bytes = nested_bytes(&n, rest);
    c->p = p + MIN(bytes, (size_t)(c->end - p));
    return !n.depth;
}

static bool skip_text(struct cut *c)
{
    for (const char *p = c->p + 1; (p = memchr(p, '"', (size_t)(c->end - p))); p++) {
        const char *slash = p;
        while (slash[-1] == '\\')
            slash--;
        if ((p - slash) % 2 == 0) {
            c->p = p + 1;
            return true;
        }
    }
    return false;
}

static bool skip_scalar(struct cut *c)
{
    const char *start = c->p;
    while (c->p < c->end && !strchr(",}] \t\r\n", *c->p)) /* also ends at a NUL */
        c->p++;
    return c->p > start;
}

static bool skip(struct cut *c)
{
    char first = c->p < c->end ? *c->p : '\0';
    return first == '{' || first == '[' ? skip_nested(c)
           : first == '"'               ? skip_text(c)
                                        : skip_scalar(c);
}

static void skip_blank(struct cut *c)
{
    while (c->p < c->end && (*c->p == ' ' || *c->p == '\n' || *c->p == '\t' || *c->p == '\r'))
        c->p++;
}

/* The byte and the blanks around it. */
static bool took(struct cut *c, char wanted)
{
    skip_blank(c);
    if (c->p == c->end || *c->p != wanted)
        return false;
    c->p++;
    skip_blank(c);
    return true;
}

/* ---- keeping */

static bool keep_whole(struct cut *c)
{
    const char *start = c->p;
    bool whole = skip(c);
    buf_put(c->out, (str){ start, (size_t)(c->p - start) });
    return whole;
}

static bool keep(struct cut *c, const struct field_step *step);

static const struct field_step *member_of(const struct field_step *step, str name)
{
    for (step = step->children; step; step = step->next)
        if (step->kind == STEP_MEMBER && str_eq(step->key, name))
            break;
    return step;
}

/* `"name":`, with the quotes in `ret_quoted`; a name with escapes is left to the parser. */
static bool take_name(struct cut *c, str *ret_quoted)
{
    const char *start = c->p;
    if (c->p == c->end || *c->p != '"' || !skip_text(c))
        return false;
    *ret_quoted = (str){ start, (size_t)(c->p - start) };
    return str_find_char(*ret_quoted, '\\') == SIZE_MAX && took(c, ':');
}

static bool keep_object(struct cut *c, const struct field_step *step)
{
    took(c, '{');
    buf_putc(c->out, '{');
    bool first = true;
    if (took(c, '}')) {
        buf_putc(c->out, '}');
        return true;
    }
    do {
        str quoted;
        if (!take_name(c, &quoted))
            return false;
        const struct field_step *child = member_of(step, (str){ quoted.p + 1, quoted.n - 2 });
        if (!child) {
            if (!skip(c))
                return false;
            continue;
        }
        if (!first)
            buf_putc(c->out, ',');
        first = false;
        buf_put(c->out, quoted);
        buf_putc(c->out, ':');
        if (!keep(c, child))
            return false;
    } while (took(c, ','));
    buf_putc(c->out, '}');
    return took(c, '}');
}

static bool keep_array(struct cut *c, const struct field_step *each)
{
    took(c, '[');
    buf_putc(c->out, '[');
    bool more = !took(c, ']');
    while (more) {
        if (!keep(c, each))
            return false;
        more = took(c, ',');
        if (!more && !took(c, ']'))
            return false;
        if (more)
            buf_putc(c->out, ',');
    }
    buf_putc(c->out, ']');
    return true;
}

static bool keep(struct cut *c, const struct field_step *step)
{
    const struct field_step *child = step->children;
    char first = c->p < c->end ? *c->p : '\0';
    if (step->targets || !child)
        return keep_whole(c);
    if (first == '{')
        return keep_object(c, step);
    if (first == '[' && child->kind == STEP_EACH && !child->next)
        return keep_array(c, child);
    return keep_whole(c);
}

bool trim_value(const struct field_step *step, str text, struct buf *out)
{
    struct cut c = { text.p, text.p + text.n, out };
    skip_blank(&c);
    if (!keep(&c, step))
        return false;
    skip_blank(&c);
    return c.p == c.end;
}

bool trim_watch_line(const struct field_step *step, str line, struct buf *out)
{
    static const str news[] = { STR_INIT("{\"type\":\"ADDED\",\"object\":"),
                                STR_INIT("{\"type\":\"MODIFIED\",\"object\":"),
                                STR_INIT("{\"type\":\"DELETED\",\"object\":") };
    struct cut c = { line.p, line.p + line.n, out };
    for (size_t i = 0; i < countof(news); i++) {
        if (!str_starts(line, news[i]))
            continue;
        c.p += news[i].n;
        buf_put(out, news[i]);
        if (!keep(&c, step) || !took(&c, '}'))
            return false;
        buf_putc(out, '}');
        return c.p == c.end;
    }
    return false;
}
