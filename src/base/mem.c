/* Allocation that cannot fail. A control plane that runs out of memory can do nothing useful with
 * the error: it aborts, its supervisor restarts it, and because every controller is level-triggered
 * nothing is lost. Sizes that a client chooses never get here unchecked: parsers bound them
 * first. */
#include "base.h"

#include <stdio.h>
#include <unistd.h>

static _Noreturn void abort_out_of_memory(size_t bytes)
{
    fprintf(stderr, "flyball: out of memory: cannot allocate %zu bytes\n", bytes);
    abort();
}

static size_t checked_size(size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all))
        abort_out_of_memory(SIZE_MAX);
    return all ? all : 1;
}

void *mem_alloc(size_t bytes)
{
    void *p = malloc(checked_size(1, bytes));
    if (!p)
        abort_out_of_memory(bytes);
    return p;
}

void *mem_zero(size_t count, size_t bytes)
{
    void *p = calloc(1, checked_size(count, bytes));
    if (!p)
        abort_out_of_memory(bytes);
    return p;
}

void *mem_grow(void *old, size_t count, size_t bytes)
{
    void *p = realloc(old, checked_size(count, bytes));
    if (!p)
        abort_out_of_memory(bytes);
    return p;
}

char *mem_dup(const char *text, size_t bytes)
{
    char *copy = mem_alloc(checked_size(1, bytes + 1));
    if (bytes)
        memcpy(copy, text, bytes);
    copy[bytes] = '\0';
    return copy;
}

void mem_free_at(void *pointer_to_pointer)
{
    void *p;
    memcpy(&p, pointer_to_pointer, sizeof(p));
    free(p);
}

void file_close_at(int *fd)
{
    int kept = errno;
    if (*fd >= 0)
        close(*fd);
    errno = kept;
}
