/* The scrapes of a simulated fleet (testbed/series.h) as a page for Prometheus: vLLM's names, a label for the pod, and
 * the time of each scrape, so that it is stored as of the fleet's clock. */
#ifndef FLYBALL_FLEET_PAGE_H
#define FLYBALL_FLEET_PAGE_H

#include "base/buf.h"
#include "testbed/series.h"

#define FLEET_PAGE_LABELS "namespace=\"llm\",model_name=\"llama\""

/* One scrape of one pod; `base_ms` is the time of second 0. */
void fleet_page_put(struct buf *out, const char *pod, const struct replica_profile *profile,
                    const struct series_scrape *x, int64_t base_ms);

#endif
