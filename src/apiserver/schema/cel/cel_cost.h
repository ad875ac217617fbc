/* What the two halves of the cost estimate share: ranges and sizes. Private to cel/. */
#ifndef FLYBALL_APISERVER_CEL_COST_H
#define FLYBALL_APISERVER_CEL_COST_H

#include "cel_node.h"

#include <math.h>

#define NO_LIMIT UINT64_MAX
#define TEXT_FACTOR 0.1   /* per character of text */
#define REGEX_FACTOR 0.25 /* per character of a pattern */

static inline uint64_t cel_cost_add(uint64_t a, uint64_t b)
{
    uint64_t sum;
    return __builtin_add_overflow(a, b, &sum) ? NO_LIMIT : sum;
}

static inline uint64_t cel_cost_multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? NO_LIMIT : product;
}

static inline uint64_t cel_cost_scale(uint64_t x, double factor)
{
    double product = ceil((double)x * factor);
    return product >= 18446744073709551616.0 ? NO_LIMIT : (uint64_t)product;
}

static inline struct cel_range cel_range_exactly(uint64_t n)
{
    return (struct cel_range){ n, n };
}

static inline struct cel_range cel_range_add(struct cel_range a, struct cel_range b)
{
    return (struct cel_range){ cel_cost_add(a.min, b.min), cel_cost_add(a.max, b.max) };
}

static inline struct cel_range cel_range_multiply(struct cel_range a, struct cel_range b)
{
    return (struct cel_range){ cel_cost_multiply(a.min, b.min), cel_cost_multiply(a.max, b.max) };
}

static inline struct cel_range cel_range_scale(struct cel_range a, double factor)
{
    return (struct cel_range){ cel_cost_scale(a.min, factor), cel_cost_scale(a.max, factor) };
}

static inline struct cel_range cel_range_join(struct cel_range a, struct cel_range b)
{
    return (struct cel_range){ MIN(a.min, b.min), MAX(a.max, b.max) };
}

struct coster {
    struct arena *arena;
    const struct cel_env *env;
    struct local {
        uint32_t slot;
        bool has_path;
        const struct cel_type *place;
        struct cel_size size;
        struct local *next;
    } *locals;
};

/* What is known of a size; otherwise 0 to NO_LIMIT. */
struct cel_range cel_size_or_unknown(struct coster *c, struct cel_node *node);
/* The size of one item of a list, by the schema. */
struct cel_range cel_item_size(struct coster *c, struct cel_node *list);
/* Sizes of the items of a list or map, if they are known. */
const struct cel_size *cel_find_entries(const struct coster *c, const struct cel_node *node);
void cel_set_entries(struct coster *c, struct cel_node *node, bool map, struct cel_range key,
                     struct cel_range value);

struct cost_call {
    struct cel_node *node;
    struct cel_node *target;
    struct cel_node **args;
    uint32_t n;
    struct cel_range cost, size; /* results */
    bool has_size;
};

/* What one overload costs, without its arguments. */
void cel_cost_overload(struct coster *c, struct cost_call *call, const struct cel_overload *o);

#endif
