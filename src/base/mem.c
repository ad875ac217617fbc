/* Allocation that cannot fail. A control plane that runs out of memory can do nothing useful with
 * the error: it ends, its supervisor starts it again, and because every controller is
 * level-triggered nothing is lost. Hostile sizes never get here: readers bound them first. */
#include "base.h"

#include <stdio.h>
#include <unistd.h>

static _Noreturn void out_of_memory(size_t bytes)
{
    fprintf(stderr, "flyball: out of memory (%zu bytes wanted)\n", bytes);
    abort();
}

static size_t total(size_t count, size_t bytes)
{
    size_t all;
    if (__builtin_mul_overflow(count, bytes, &all))
        out_of_memory(SIZE_MAX);
    return all ? all : 1;
}

void *mem_alloc(size_t bytes)
{
    void *p = malloc(total(1, bytes));
    if (!p)
        out_of_memory(bytes);
    return p;
}

void *mem_zero(size_t count, size_t bytes)
{
    void *p = calloc(1, total(count, bytes));
    if (!p)
        out_of_memory(bytes);
    return p;
}

void *mem_grow(void *old, size_t count, size_t bytes)
{
    void *p = realloc(old, total(count, bytes));
    if (!p)
        out_of_memory(bytes);
    return p;
}

char *mem_dup(const char *text, size_t bytes)
{
    char *copy = mem_alloc(total(1, bytes + 1));
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

void fd_close_at(int *fd)
{
    int kept = errno;
    if (*fd >= 0)
        close(*fd);
    errno = kept;
}
