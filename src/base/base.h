/* base: what every other folder stands on. It knows nothing of JSON, networks or Kubernetes.
 *
 *   str, buf, arena, vec, map, heap    text and containers
 *   err, log                           failure as a value, and the one place that prints
 *   clock, duration, rfc3339, tz       time
 *   civil, natural, quantity, random   numbers
 *   metrics, sha256, sum               what is counted, and fingerprints
 *
 * Memory: text is a slice (`str`) that borrows; `buf`, `arena`, `vec` and `map` own what they hold and
 * have a `_done`. Memory that cannot be had ends the program with one sentence (see mem.c): what is
 * as large as a stranger wants it (bodies, headers, files) is bounded before it is allocated.
 *
 * Read first: str.h, err.h, arena.h. */
#ifndef FLYBALL_BASE_H
#define FLYBALL_BASE_H

#include <assert.h>
#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define countof(array) (sizeof(array) / sizeof((array)[0]))
#define container_of(pointer, type, member)                                                        \
    ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

#define MIN(a, b) ((a) < (b) ? (a) : (b))
#define MAX(a, b) ((a) > (b) ? (a) : (b))

#define PRINTF_LIKE(format_at, args_at) __attribute__((format(printf, format_at, args_at)))
#define UNUSED __attribute__((unused))

/* A long-lived object opens with a magic number; CHECK states that a pointer is still one of ours. */
#define CHECK(object, expected) assert((object) && (object)->magic == (expected))

/* Owner locals: freed at the end of their scope unless take() hands them over. */
#define auto_free __attribute__((cleanup(mem_free_at)))
#define auto_close __attribute__((cleanup(fd_close_at)))
#define take(pointer)                                                                              \
    __extension__({                                                                                \
        __typeof__(pointer) *taken_from_ = &(pointer);                                             \
        __typeof__(pointer) taken_ = *taken_from_;                                                 \
        *taken_from_ = NULL;                                                                       \
        taken_;                                                                                    \
    })

/* Allocation that does not return NULL. Sizes are checked for overflow. */
void *mem_alloc(size_t bytes);                         /* uninitialised */
void *mem_zero(size_t count, size_t bytes);            /* zeroed */
void *mem_grow(void *old, size_t count, size_t bytes); /* realloc */
char *mem_dup(const char *text, size_t bytes);         /* copy with a final NUL */
void mem_free_at(void *pointer_to_pointer);
void fd_close_at(int *fd); /* keeps errno; ignores negative */

#endif
