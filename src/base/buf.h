/* A growing byte buffer, used to build text that leaves the program. `{0}` is an empty buffer.
 * The buffer owns its bytes; they are always followed by a NUL that is not part of `n`. */
#ifndef FLYBALL_BUF_H
#define FLYBALL_BUF_H

#include "str.h"

struct buf {
    char *p; /* owned; NULL until the first write */
    size_t n;
    size_t cap;
};

void buf_done(struct buf *b); /* frees; the buffer is empty and usable again */
#define auto_buf __attribute__((cleanup(buf_done)))

char *buf_reserve(struct buf *b, size_t more); /* room at the end; does not change n */
void buf_put(struct buf *b, str text);
void buf_printf(struct buf *b, const char *format, ...) PRINTF_LIKE(2, 3);
/* Escapes text for XML, in elements and in attributes; control characters, which XML forbids, are left out. */
void buf_put_xml(struct buf *b, str text);
void buf_consume(struct buf *b, size_t n); /* removes n bytes from the front */
char *buf_take(struct buf *b);             /* transfers the NUL-terminated bytes; free() them */

static inline void buf_putc(struct buf *b, char c)
{
    char *end = b->cap - b->n > 1 ? b->p + b->n : buf_reserve(b, 1);
    end[0] = c;
    end[1] = '\0';
    b->n++;
}

static inline str buf_str(const struct buf *b)
{
    return (str){ b->p ? b->p : "", b->n };
}

static inline void buf_clear(struct buf *b)
{
    b->n = 0;
    if (b->p)
        b->p[0] = '\0';
}

#endif
