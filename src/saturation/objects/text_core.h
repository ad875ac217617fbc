/* Texts that metrics and manifests are matched by: accelerator names, keys and ages of cached
 * metrics, words of a container's command line. */
#ifndef FLYBALL_TEXT_CORE_H
#define FLYBALL_TEXT_CORE_H

#include "../../base/arena.h"
#include "../../base/buf.h"
#include "../../json/intern.h"

/* The short name in a node's product label, a slice of `product`: A100 for NVIDIA-A100-PCIE-80GB,
 * Gaudi-2 for Intel-Gaudi-2-96GB. A name without a hyphen is returned unchanged. */
str sat_accelerator_name(str product);

struct text_pair {
    str name, value;
};

/* Labels as pairs of slices; none for NULL. */
struct text_pair *sat_label_pairs(struct arena *a, const struct labels *labels, size_t *ret_n);

/* The cache key of a query: "query:a=1,b=2" with sorted names; only the query without pairs. */
void sat_cache_key(struct buf *out, str query, const struct text_pair *pairs, size_t n);

/* Age of metrics: less than one minute, less than five, older. */
enum sat_freshness { FRESHNESS_FRESH, FRESHNESS_STALE, FRESHNESS_UNAVAILABLE };
enum sat_freshness sat_freshness_of(int64_t age_ns);
const char *sat_freshness_name(enum sat_freshness f);

/* The words of a command for `sh -c`, separated by blanks. Supports single and double quotes, but
 * no escapes and variables. */
struct sat_words {
    str *at;
    size_t n;
};
struct sat_words sat_split_command(struct arena *a, str text);

#endif
