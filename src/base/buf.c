/* Byte builder: see buf.h. Grows by doubling, so that n puts cost O(n). */
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

void buf_putc(struct buf *b, char c)
{
    buf_put(b, (str){ &c, 1 });
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    if (n > 0) {
        vsnprintf(buf_reserve(b, (size_t)n), (size_t)n + 1, format, again);
        b->n += (size_t)n;
    }
    va_end(again);
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
