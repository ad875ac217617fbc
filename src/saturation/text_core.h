/* The texts that metrics and manifests are matched by: accelerator names, keys and ages of cached
 * metrics, the words of a container's command line. */
#ifndef FLYBALL_TEXT_CORE_H
#define FLYBALL_TEXT_CORE_H

#include "../base/arena.h"
#include "../base/buf.h"

/* The short name out of a node's product label, a part of `product`: NVIDIA-A100-PCIE-80GB is A100,
 * Intel-Gaudi-2-96GB is Gaudi-2, and what has no hyphen is short already. */
str sat_accelerator_name(str product);

struct text_pair {
    str name, value;
};

/* What a query's result is cached by: "query:a=1,b=2", names in order; the query alone without pairs. */
void sat_cache_key(struct buf *out, str query, const struct text_pair *pairs, size_t n);

/* Of metrics, by age: below a minute, below five, older. */
enum sat_freshness { FRESHNESS_FRESH, FRESHNESS_STALE, FRESHNESS_UNAVAILABLE };
enum sat_freshness sat_freshness_of(int64_t age_ns);
const char *sat_freshness_name(enum sat_freshness f);

/* The words of a command given to `sh -c`: separated by blanks, with single and double quotes, without
 * escapes and variables. */
struct sat_words {
    str *at;
    size_t n;
};
struct sat_words sat_split_command(struct arena *a, str text);

#endif
