/* Memory that dies together: many small allocations, one free. `{0}` is an empty arena.
 *
 * Scratch lives one turn: take a mark, work, reset to the mark. Blocks are kept for the next turn,
 * so a steady state allocates nothing. What must outlive the arena is copied out. */
#ifndef FLYBALL_ARENA_H
#define FLYBALL_ARENA_H

#include "str.h"

enum { ARENA_ALIGN = 16 };

struct arena_block {
    struct arena_block *next;
    size_t used, cap;
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

void *arena_room(struct arena *a,
                 size_t bytes); /* aligned for anything; holds what was there before */

/* The same, zeroed. In place, because most are small and of a size that the compiler knows. */
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

str arena_str(struct arena *a, str text); /* copies; the copy ends in NUL */
str arena_printf(struct arena *a, const char *format, ...) PRINTF_LIKE(2, 3);
str arena_join(struct arena *a, const str *parts, size_t n); /* one after the other */

struct arena_mark arena_mark(const struct arena *a);
void arena_reset(struct arena *a, struct arena_mark mark); /* `(struct arena_mark){0}`: all of it */
size_t arena_bytes(const struct arena *a);                 /* held from the system */

#endif
