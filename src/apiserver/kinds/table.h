/* Tables: how `kubectl get` receives objects. Columns and cells of built-in kinds are code (they count ready
 * containers and the like); those of custom resources are JSONPaths in their definition.
 *
 * In a watch, only the first event of a stream has column definitions. */
#ifndef FLYBALL_APISERVER_TABLE_H
#define FLYBALL_APISERVER_TABLE_H

#include "kinds.h"

enum table_include { TABLE_METADATA, TABLE_NONE, TABLE_OBJECT }; /* ?includeObject= */

struct table_options {
    enum table_include include;
    bool no_columns; /* columnDefinitions: null */
    int64_t now_ns;  /* for ages */
    str api_version; /* "meta.k8s.io/v1" or "meta.k8s.io/v1beta1" */
};

/* A Table of the items. `list_metadata` (resourceVersion, continue, ...) may be NULL. */
struct json *table_make(struct arena *a, const struct kind *k, const struct json *const *items,
                        size_t n, const struct json *list_metadata, struct table_options options);

/* PartialObjectMetadata of an object. */
struct json *table_partial(struct arena *a, const struct json *object, str api_version);

/* A duration as kubectl prints it: "5m", "3h20m", "2d". */
str table_age(struct arena *a, int64_t seconds);

#endif
