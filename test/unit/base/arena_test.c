#include "tap.h"

#include "base/arena.h"

static void allocations_are_zeroed_and_aligned(void)
{
    auto_arena struct arena a = { 0 };
    for (size_t size = 1; size < 5000; size += 97) {
        char *p = arena_alloc(&a, size);
        OK((uintptr_t)p % 16 == 0);
        for (size_t i = 0; i < size; i++)
            if (!OK(p[i] == 0))
                return;
        memset(p, 0xff, size);
    }
}

static void reset_reuses_blocks(void)
{
    auto_arena struct arena a = { 0 };
    arena_alloc(&a, 100);
    struct arena_mark mark = arena_mark(&a);
    for (int i = 0; i < 100; i++)
        arena_alloc(&a, 1000);
    size_t held = arena_bytes(&a);
    for (int round = 0; round < 10; round++) {
        arena_reset(&a, mark);
        for (int i = 0; i < 100; i++)
            arena_alloc(&a, 1000);
    }
    EQ_INT(arena_bytes(&a), held);
    arena_reset(&a, (struct arena_mark){ 0 });
    char *p = arena_alloc(&a, 8);
    EQ_INT(*p, 0);
}

static void large_allocations_fit(void)
{
    auto_arena struct arena a = { 0 };
    char *p = arena_alloc(&a, 1 << 20);
    p[(1 << 20) - 1] = 1;
    char *q = arena_alloc(&a, 3 << 20);
    q[(3 << 20) - 1] = 1;
    OK(p != q);
}

static void text_is_copied_with_nul(void)
{
    auto_arena struct arena a = { 0 };
    str s = arena_str(&a, (str){ "abcdef", 3 });
    EQ_STR(s, S("abc"));
    EQ_INT(s.p[3], 0);
    EQ_STR(arena_printf(&a, "%d-%s", 7, "x"), S("7-x"));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(allocations_are_zeroed_and_aligned),
                                        TAP(reset_reuses_blocks),
                                        TAP(large_allocations_fit),
                                        TAP(text_is_copied_with_nul),
                                        { 0 } });
}
