/* Discovery documents, built from the catalog. NULL: no such group or version. */
#ifndef FLYBALL_DISCOVERY_H
#define FLYBALL_DISCOVERY_H

#include "../../json/json.h"

struct server;

struct json *discovery_groups(struct server *s, struct arena *a);           /* /apis */
struct json *discovery_group(struct server *s, struct arena *a, str group); /* /apis/G */
struct json *discovery_resources(struct server *s, struct arena *a, str group, str version);
/* /api (core) or /apis in one document; version "v2" or "v2beta1". */
struct json *discovery_aggregated(struct server *s, struct arena *a, bool core,
                                  const char *version);

#endif
