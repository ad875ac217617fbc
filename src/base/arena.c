/* Bump allocator over a chain of blocks: see arena.h. Blocks double from 4 KiB to 256 KiB; a larger
 * request gets its own block.
 *
 *     first -> [used...] -> [used..  ] -> [kept     ] -> [kept     ] -> NULL
 *                           ^ current
 *
 * Blocks up to `current` hold live allocations. Blocks after it were allocated before a reset and
 * are reused before a new one is requested; their `used` is stale until they become current. */
#include "arena.h"

#include <stdarg.h>
#include <stdio.h>

enum { BLOCK_MIN = 4096, BLOCK_MAX = 256 * 1024 };

void arena_done(struct arena *a)
{
    for (struct arena_block *b = a->first, *next; b; b = next) {
        next = b->next;
        free(b);
    }
    *a = (struct arena){ 0 };
}

/* Makes `current` a block with room: the next kept one if it is large enough, otherwise a new one
 * inserted before it, so that a large request does not discard the kept blocks. */
static void advance_block(struct arena *a, size_t need)
{
    struct arena_block *kept = a->current ? a->current->next : a->first;
    if (!kept || kept->cap < need) {
        size_t cap = a->current ? MIN(a->current->cap * 2, (size_t)BLOCK_MAX) : BLOCK_MIN;
        cap = MAX(cap, need);
        struct arena_block *b = mem_alloc(sizeof(*b) + cap);
        b->cap = cap;
        b->next = kept;
        if (a->current)
            a->current->next = b;
        else
            a->first = b;
        kept = b;
    }
    kept->used = 0;
    a->current = kept;
}

void *arena_room(struct arena *a, size_t bytes)
{
    assert(bytes < SIZE_MAX / 2); /* callers bound the size of untrusted input */
    size_t need = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (!a->current || a->current->cap - a->current->used < need)
        advance_block(a, need);
    char *p = a->current->bytes + a->current->used;
    a->current->used += need;
    return p;
}

void *arena_array(struct arena *a, size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all))
        all = SIZE_MAX;
    return arena_alloc(a, all);
}

str arena_str(struct arena *a, str text)
{
    char *copy = arena_room(a, text.n + 1);
    if (text.n)
        memcpy(copy, text.p, text.n);
    copy[text.n] = '\0';
    return (str){ copy, text.n };
}

str arena_lower(struct arena *a, str text)
{
    char *copy = arena_alloc(a, text.n + 1);
    for (size_t i = 0; i < text.n; i++)
        copy[i] = text.p[i] >= 'A' && text.p[i] <= 'Z' ? (char)(text.p[i] | 32) : text.p[i];
    copy[text.n] = '\0';
    return (str){ copy, text.n };
}

str arena_printf(struct arena *a, const char *format, ...)
{
    char small[256]; /* most texts fit: they are then formatted once instead of measured first */
    va_list args, again;
    va_start(args, format);
    va_copy(again, args);
    int made = vsnprintf(small, sizeof(small), format, args);
    va_end(args);
    size_t n = (size_t)MAX(made, 0);
    char *text = arena_alloc(a, n + 1);
    if (n < sizeof(small))
        memcpy(text, small, n);
    else
        vsnprintf(text, n + 1, format, again);
    va_end(again);
    return (str){ text, n };
}

str arena_join(struct arena *a, const str *parts, size_t n)
{
    size_t bytes = 0, used = 0;
    for (size_t i = 0; i < n; i++)
        bytes += parts[i].n;
    char *text = arena_room(a, bytes + 1);
    text[bytes] = '\0';
    for (size_t i = 0; i < n; used += parts[i++].n)
        if (parts[i].n)
            memcpy(text + used, parts[i].p, parts[i].n);
    return (str){ text, bytes };
}

struct arena_mark arena_mark(const struct arena *a)
{
    return (struct arena_mark){ a->current, a->current ? a->current->used : 0 };
}

void arena_reset(struct arena *a, struct arena_mark mark)
{
    a->current = mark.block;
    if (mark.block)
        mark.block->used = mark.used;
}

size_t arena_bytes(const struct arena *a)
{
    size_t sum = 0;
    for (const struct arena_block *b = a->first; b; b = b->next)
        sum += sizeof(*b) + b->cap;
    return sum;
}
