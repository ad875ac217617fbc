/* See frame.h. A list is followed by depth alone: strings are skipped, braces and brackets counted.
 * That costs about a nanosecond a byte and leaves the parser one item at a time, whose memory stays
 * in the processor's cache; a whole-list document costs 2.5 times the list and twice the time.
 *
 * Depth 1 is the list object, 2 its items array, 3 and more an item; with FRAME_RESULT all of them
 * are one deeper. The key ("items", "result") is recognised by the end of the envelope when a
 * bracket opens at the depth of the list, so the keys may come in any order. */
#include "frame.h"

enum { KEEP_BYTES = 256 << 10 }; /* a larger carry is given back after the stream */

void frame_init(struct frame *f, enum frame_mode mode, frame_fn *each, void *context)
{
    *f = (struct frame){ .mode = mode, .each = each, .context = context };
}

static void trim(struct buf *b)
{
    if (b->cap > KEEP_BYTES)
        buf_done(b);
    else
        buf_clear(b);
}

void frame_reset(struct frame *f)
{
    trim(&f->carry);
    trim(&f->envelope);
    f->place = FRAME_OUTSIDE;
    f->depth = 0;
    f->in_text = f->escaped = false;
}

void frame_done(struct frame *f)
{
    buf_done(&f->carry);
    buf_done(&f->envelope);
}

static int keep(struct frame *f, str part, err_t *e)
{
    if (f->carry.n + part.n > FRAME_ITEM_MAX)
        return err_set(e, EMSGSIZE,
                       "one object of the answer is larger than %d MiB, which no API server stores",
                       FRAME_ITEM_MAX >> 20);
    buf_put(&f->carry, part);
    return 0;
}

/* A document ends with `last`; what came before may be in the carry. */
static int deliver(struct frame *f, str last, err_t *e)
{
    if (!f->carry.n && last.n <= FRAME_ITEM_MAX)
        return f->each(f->context, last, e);
    int r = keep(f, last, e);
    if (r < 0)
        return r;
    r = f->each(f->context, buf_str(&f->carry), e);
    buf_clear(&f->carry);
    return r;
}

static int feed_lines(struct frame *f, str bytes, err_t *e)
{
    while (bytes.n) {
        const char *end = memchr(bytes.p, '\n', bytes.n);
        if (!end)
            return keep(f, bytes, e);
        str line = { bytes.p, (size_t)(end - bytes.p) };
        bool blank = !str_trim(line).n && !str_trim(buf_str(&f->carry)).n;
        int r = blank ? 0 : deliver(f, line, e);
        if (r < 0)
            return r;
        if (blank)
            buf_clear(&f->carry);
        bytes = str_from(bytes, line.n + 1);
    }
    return 0;
}

/* Steps over text up to the byte after its closing quote; n when that has not come. */
static size_t skip_text(struct frame *f, const char *p, size_t at, size_t n)
{
    while (at < n) {
        if (f->escaped) {
            f->escaped = false;
            at++;
        }
        while (at < n && p[at] != '"' && p[at] != '\\')
            at++;
        if (at == n)
            break;
        if (p[at++] == '"') {
            f->in_text = false;
            return at;
        }
        f->escaped = true;
    }
    return n;
}

/* Bytes that matter outside of text: quotes and everything that opens or closes. */
static const int8_t step_of[256] = {
    ['"'] = 2, ['{'] = 1, ['['] = 1, ['}'] = -1, [']'] = -1,
};

/* Goes on from `at` until the depth is `until` (the byte after) or the bytes end. */
static size_t skip_to_depth(struct frame *f, str bytes, size_t at, int until)
{
    const char *p = bytes.p;
    size_t n = bytes.n;
    if (f->in_text)
        at = skip_text(f, p, at, n);
    while (at < n) {
        int8_t step = step_of[(unsigned char)p[at++]];
        if (!step)
            continue;
        if (step == 2) {
            f->in_text = true;
            at = skip_text(f, p, at, n);
            continue;
        }
        f->depth += step;
        if (f->depth == until)
            break;
    }
    return at;
}

static bool is_blank(char c)
{
    return c == ' ' || c == '\n' || c == '\r' || c == '\t';
}

/* Of the object that has the items. */
static int list_depth(const struct frame *f)
{
    return f->mode == FRAME_RESULT ? 2 : 1;
}

/* Does the envelope end in the key of the items and a colon? */
static bool at_items(const struct frame *f)
{
    str key = f->mode == FRAME_RESULT ? S("\"result\"") : S("\"items\"");
    str s = str_trim(buf_str(&f->envelope));
    if (!str_ends(s, S(":")))
        return false;
    s = str_trim(str_upto(s, s.n - 1));
    if (!str_ends(s, key))
        return false;
    s = str_trim(str_upto(s, s.n - key.n));
    return str_ends(s, S("{")) || str_ends(s, S(","));
}

/* Outside the items there are few bytes, so they are looked at one by one. */
static int feed_envelope(struct frame *f, char c, err_t *e)
{
    if (!f->depth && is_blank(c))
        return 0;
    if (!f->depth && (c != '{' || f->envelope.n))
        return err_set(e, EBADMSG, "the answer is no list: one JSON object was expected");
    if (f->in_text) {
        skip_text(f, &c, 0, 1);
    } else if (c == '"') {
        f->in_text = true;
    } else if (step_of[(unsigned char)c]) {
        if (c == '[' && f->depth == list_depth(f) && at_items(f))
            f->place = FRAME_BETWEEN;
        f->depth += step_of[(unsigned char)c];
    }
    if (f->envelope.n == FRAME_ENVELOPE_MAX)
        return err_set(e, EMSGSIZE, "the answer is no list: %d KiB came without an item",
                       FRAME_ENVELOPE_MAX >> 10);
    buf_putc(&f->envelope, c);
    return 0;
}

/* Between items: up to the brace that opens the next one, or the bracket that ends them. */
static int feed_between(struct frame *f, str bytes, size_t *at, err_t *e)
{
    for (; *at < bytes.n; ++*at) {
        char c = bytes.p[*at];
        if (c == '{') {
            f->place = FRAME_INSIDE;
            return 0;
        }
        if (c == ']') {
            f->place = FRAME_OUTSIDE;
            f->depth = list_depth(f);
            ++*at;
            buf_putc(&f->envelope, c);
            return 0;
        }
        if (c != ',' && !is_blank(c) && f->mode == FRAME_RESULT) {
            f->place = FRAME_OUTSIDE;
            return 0;
        }
        if (c != ',' && !is_blank(c))
            return err_set(e, EBADMSG, "the list has an item that is no object");
    }
    return 0;
}

static int feed_item(struct frame *f, str bytes, size_t *at, err_t *e)
{
    size_t start = *at;
    *at = skip_to_depth(f, bytes, start, list_depth(f) + 1);
    str part = { bytes.p + start, *at - start };
    if (f->depth > list_depth(f) + 1)
        return keep(f, part, e);
    f->place = FRAME_BETWEEN;
    return deliver(f, part, e);
}

int frame_feed(struct frame *f, str bytes, err_t *e)
{
    if (f->mode == FRAME_LINES)
        return feed_lines(f, bytes, e);
    for (size_t at = 0; at < bytes.n;) {
        int r = f->place == FRAME_OUTSIDE   ? feed_envelope(f, bytes.p[at++], e)
                : f->place == FRAME_BETWEEN ? feed_between(f, bytes, &at, e)
                                            : feed_item(f, bytes, &at, e);
        if (r < 0)
            return r;
    }
    return 0;
}

int frame_end(struct frame *f, str *ret_envelope, err_t *e)
{
    bool whole =
        f->mode == FRAME_LINES ? !str_trim(buf_str(&f->carry)).n : !f->depth && f->envelope.n;
    if (!whole)
        return err_set(e, EBADMSG, "the answer ended in the middle of %s",
                       f->carry.n ? "an object" : "a list");
    *ret_envelope = buf_str(&f->envelope);
    return 0;
}
