/* base: the foundation of every other folder. It knows nothing about JSON, networks or Kubernetes.
 *
 *   str, buf, utf8, base64, regex      text
 *   arena, vec, map, set, heap, list   memory and containers
 *   err, log                           failure as a value, and the one place that prints
 *   clock, duration, rfc3339, tz       time
 *   civil, natural, quantity, random   numbers
 *   metrics, sha256, sum               our own metrics, fingerprints and checksums
 *
 * Memory: text is a slice (`str`) that borrows; `buf`, `arena`, `vec` and `map` own what they hold
 * and have a `_done`. Running out of memory aborts the program with one message (see mem.c), so
 * everything whose size a client chooses (bodies, headers, files) is bounded before it is
 * allocated.
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

/* A long-lived object starts with a magic number; CHECK asserts that a pointer still refers to
 * one. */
#define CHECK(object, expected) assert((object) && (object)->magic == (expected))

/* Local variables that own memory or a descriptor: released at the end of their scope unless take()
 * transfers ownership. */
#define auto_free __attribute__((cleanup(mem_free_at)))
#define auto_close __attribute__((cleanup(file_close_at)))
#define take(pointer)                                                                              \
    __extension__({                                                                                \
        __typeof__(pointer) *taken_from_ = &(pointer);                                             \
        __typeof__(pointer) taken_ = *taken_from_;                                                 \
        *taken_from_ = NULL;                                                                       \
        taken_;                                                                                    \
    })

/* Allocation that never returns NULL. Sizes are checked for overflow. */
void *mem_alloc(size_t bytes);                         /* uninitialized */
void *mem_zero(size_t count, size_t bytes);            /* zeroed */
void *mem_grow(void *old, size_t count, size_t bytes); /* realloc */
char *mem_dup(const char *text, size_t bytes);         /* a copy, terminated with NUL */
void mem_free_at(void *pointer_to_pointer);
void file_close_at(int *fd); /* preserves errno; ignores a negative descriptor */

#endif
