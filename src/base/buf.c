/* Byte buffer: see buf.h. Capacity doubles, so appending n bytes costs O(n) in total. Every write
 * keeps the invariant n < cap and p[n] == NUL, so the bytes can be passed to C functions at any
 * time. */
#include "buf.h"

#include <stdarg.h>
#include <stdio.h>

void buf_done(struct buf *b)
{
    free(b->p);
    *b = (struct buf){ 0 };
}

char *buf_reserve(struct buf *b, size_t more)
{
    size_t need;
    if (__builtin_add_overflow(b->n, more, &need) || __builtin_add_overflow(need, 1, &need))
        need = SIZE_MAX;
    if (need > b->cap) {
        size_t cap = MAX(b->cap > SIZE_MAX / 2 ? SIZE_MAX : b->cap * 2, (size_t)64);
        b->cap = MAX(cap, need);
        b->p = mem_grow(b->p, b->cap, 1);
    }
    return b->p + b->n;
}

void buf_put(struct buf *b, str text)
{
    char *end = buf_reserve(b, text.n);
    if (text.n)
        memcpy(end, text.p, text.n);
    end[text.n] = '\0';
    b->n += text.n;
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    char *end = buf_reserve(b, 0);
    size_t room = b->cap - b->n;
    int made = vsnprintf(end, room, format, args);
    va_end(args);
    size_t n = (size_t)MAX(made, 0);
    if (n >= room)
        vsnprintf(buf_reserve(b, n), n + 1, format, again);
    va_end(again);
    b->n += n;
    b->p[b->n] = '\0';
}

void buf_put_xml(struct buf *b, str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        if (c == '<')
            buf_put(b, S("&lt;"));
        else if (c == '&')
            buf_put(b, S("&amp;"));
        else if (c == '"')
            buf_put(b, S("&quot;"));
        else if (c >= ' ')
            buf_putc(b, (char)c);
    }
}

void buf_consume(struct buf *b, size_t n)
{
    assert(n <= b->n);
    b->n -= n;
    if (b->p)
        memmove(b->p, b->p + n, b->n + 1);
}

char *buf_take(struct buf *b)
{
    if (!b->p)
        buf_put(b, S(""));
    char *bytes = b->p;
    *b = (struct buf){ 0 };
    return bytes;
}
