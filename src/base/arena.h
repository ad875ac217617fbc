/* Region allocator: many small allocations, one free. `{0}` is an empty arena.
 *
 * Scratch memory lives for one turn of the loop: take a mark, work, reset to the mark. Blocks are
 * kept for the next turn, so a steady state allocates nothing. Data that must outlive the arena has
 * to be copied out. */
#ifndef FLYBALL_ARENA_H
#define FLYBALL_ARENA_H

#include "str.h"

enum { ARENA_ALIGN = 16 };

struct arena_block {
    struct arena_block *next;
    size_t used, cap; /* bytes */
    _Alignas(ARENA_ALIGN) char bytes[];
};

struct arena {
    struct arena_block *first, *current; /* owned chain; blocks after `current` are free */
};

struct arena_mark {
    struct arena_block *block;
    size_t used;
};

void arena_done(struct arena *a);
#define auto_arena __attribute__((cleanup(arena_done)))

/* Uninitialized memory, aligned for any type. */
void *arena_room(struct arena *a, size_t bytes);

/* Zeroed memory. Inline, because most allocations are small and of a size that is known at compile
 * time. */
static inline void *arena_alloc(struct arena *a, size_t bytes)
{
    struct arena_block *b = a->current;
    size_t need = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (!b || need < bytes || b->cap - b->used < need)
        return memset(arena_room(a, bytes), 0, bytes);
    void *p = b->bytes + b->used;
    b->used += need;
    return memset(p, 0, bytes);
}

void *arena_array(struct arena *a, size_t count, size_t bytes); /* the same, overflow-checked */
#define arena_new(a, type) ((type *)arena_alloc((a), sizeof(type)))

str arena_str(struct arena *a, str text);   /* a copy, terminated with NUL */
str arena_lower(struct arena *a, str text); /* the same, with ASCII letters in lower case */
str arena_printf(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
str arena_join(struct arena *a, const str *parts, size_t n); /* concatenates the parts */

struct arena_mark arena_mark(const struct arena *a);
void arena_reset(struct arena *a,
                 struct arena_mark mark);  /* `(struct arena_mark){0}`: everything */
size_t arena_bytes(const struct arena *a); /* allocated from the system */

#endif
