/* A typed growing array: `VEC(int) v = {0}; vec_push(&v, 3); v.at[0]; vec_done(&v);` */
#ifndef FLYBALL_VEC_H
#define FLYBALL_VEC_H

#include "base.h"

#define VEC(type)                                                                                  \
    struct {                                                                                       \
        type *at; /* owned */                                                                      \
        size_t n, cap;                                                                             \
    }

#define vec_push(v, value) (vec_reserve((v), 1), (void)((v)->at[(v)->n++] = (value)))

#define vec_reserve(v, more)                                                                       \
    ((v)->n + (more) <= (v)->cap                                                                   \
         ? (void)0                                                                                 \
         : (void)((v)->cap = MAX((v)->cap * 2, (v)->n + (more) + 4),                               \
                  (v)->at = mem_grow((v)->at, (v)->cap, sizeof(*(v)->at))))

/* Removes an element; the order of the rest is kept. */
#define vec_remove(v, index)                                                                       \
    (memmove((v)->at + (index), (v)->at + (index) + 1, ((v)->n - (index) - 1) * sizeof(*(v)->at)), \
     (void)(v)->n--)

#define vec_clear(v) ((void)((v)->n = 0))
#define vec_done(v) (free((v)->at), (void)((v)->at = NULL, (v)->n = (v)->cap = 0))

#endif
