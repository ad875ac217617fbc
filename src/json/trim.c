/* Trimming: see trim.h.
 *
 * Nested values that no field needs are skipped 64 bytes at a time, without a branch per byte:
 *
 *     text        { " a " : [ " } " , 1 ] }
 *     quotes        1   1     1   1             minus those that are escaped
 *     in_text       1 1 0     1 1 0             the running parity of the quotes
 *     brackets    1         1   1       1 1     masked by in_text: the } in the string is ignored
 *
 * Counting the bits of what opens and what closes gives the depth. Brackets are visited one by one
 * only in a block with enough closing ones to end the value. Strings and scalars are short and
 * handled directly.
 *
 * The recursion is as deep as the deepest declared path, never as the document. Skipped text is not
 * validated, so it may be invalid JSON that kube-apiserver would never send; what is kept is parsed
 * and validated as usual. */
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

/* Without the POPCNT instruction, which not every processor has, the builtin is a function call. */
static inline int count_bits(uint64_t x)
{
    x -= x >> 1 & UINT64_C(0x5555555555555555);
    x = (x & UINT64_C(0x3333333333333333)) + (x >> 2 & UINT64_C(0x3333333333333333));
    x = (x + (x >> 4)) & UINT64_C(0x0f0f0f0f0f0f0f0f);
    return (int)(x * UINT64_C(0x0101010101010101) >> 56);
}

/* Sets every bit from an odd quote to the next one: the inside of strings. */
static inline uint64_t inside_quotes(uint64_t quotes)
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

/* The bits after an odd number of backslashes in a row, which are escaped. Adding a bit at the
 * start of a row makes the carry run through the row and come out after it; the positions where it
 * started and came out give the parity of the length, for all rows at once and without a branch.
 * `*escaped`: the last row reaches the end of the block and escapes the next byte. */
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

/* The number of bytes of the block that belong to the value: all, unless its last bracket is
 * here. */
static size_t nested_bytes(struct nesting *n, const char *block)
{
    uint64_t text = inside_quotes(real_quotes(n, block)) ^ (n->in_text ? UINT64_MAX : 0);
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

/* ---- skipping */

/* Skips an object or array, in blocks of 64 bytes; the last block is padded with zeros. */
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

static bool skip_value(struct cut *c)
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

/* Consumes a byte and the blanks around it; false if another byte is next. */
static bool accept_byte(struct cut *c, char wanted)
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
    bool whole = skip_value(c);
    buf_put(c->out, (str){ start, (size_t)(c->p - start) });
    return whole;
}

static bool keep_value(struct cut *c, const struct kept *keep);

/* `"name":`, with the quotes in `ret_quoted`; false for a name with escapes, which the parser
 * handles. */
static bool take_name(struct cut *c, str *ret_quoted)
{
    const char *start = c->p;
    if (c->p == c->end || *c->p != '"' || !skip_text(c))
        return false;
    *ret_quoted = (str){ start, (size_t)(c->p - start) };
    return str_find_char(*ret_quoted, '\\') == SIZE_MAX && accept_byte(c, ':');
}

/* Copies the members that a path needs; skips the others. */
static bool keep_object(struct cut *c, const struct kept *keep)
{
    accept_byte(c, '{');
    buf_putc(c->out, '{');
    bool first = true;
    if (accept_byte(c, '}')) {
        buf_putc(c->out, '}');
        return true;
    }
    do {
        str quoted;
        if (!take_name(c, &quoted))
            return false;
        const struct kept *child = fieldtree_find_kept(keep, (str){ quoted.p + 1, quoted.n - 2 });
        if (!child) {
            if (!skip_value(c))
                return false;
            continue;
        }
        if (!first)
            buf_putc(c->out, ',');
        first = false;
        buf_put(c->out, quoted);
        buf_putc(c->out, ':');
        size_t start = c->out->n;
        if (!keep_value(c, child))
            return false;
        fieldtree_note_span(child, start, c->out->n);
    } while (accept_byte(c, ','));
    buf_putc(c->out, '}');
    return accept_byte(c, '}');
}

/* Every element is copied, each trimmed in the same way. */
static bool keep_array(struct cut *c, const struct kept *each)
{
    accept_byte(c, '[');
    buf_putc(c->out, '[');
    bool more = !accept_byte(c, ']');
    while (more) {
        if (!keep_value(c, each))
            return false;
        more = accept_byte(c, ',');
        if (!more && !accept_byte(c, ']'))
            return false;
        if (more)
            buf_putc(c->out, ',');
    }
    buf_putc(c->out, ']');
    return true;
}

/* Copies a value as a whole, or only the members and elements that continue a path. */
static bool keep_value(struct cut *c, const struct kept *keep)
{
    char first = c->p < c->end ? *c->p : '\0';
    if (first == '{' && keep->members && !keep->whole)
        return keep_object(c, keep);
    if (first == '[' && keep->each && !keep->whole)
        return keep_array(c, keep->each);
    return keep_whole(c);
}

bool trim_value(const struct kept *keep, str text, struct buf *out)
{
    struct cut c = { text.p, text.p + text.n, out };
    skip_blank(&c);
    if (!keep_value(&c, keep))
        return false;
    skip_blank(&c);
    return c.p == c.end;
}

/* Recognizes the exact start that API servers send; any other form is parsed untrimmed. */
bool trim_watch_line(const struct kept *keep, str line, struct buf *out)
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
        if (!keep_value(&c, keep) || !accept_byte(&c, '}'))
            return false;
        buf_putc(out, '}');
        return c.p == c.end;
    }
    return false;
}
