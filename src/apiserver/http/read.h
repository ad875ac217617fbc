/* Stored objects as clients see them. Most are served byte for byte as stored. Objects stored in another
 * version than the requested one, or written before their schema changed, are parsed and converted. */
#ifndef FLYBALL_READ_H
#define FLYBALL_READ_H

#include "../kinds/table.h"
#include "call.h"
#include "catalog.h"

/* The object whose bytes are what a client of k gets: the stored one, or what a webhook made of it. NULL: the object must
 * be parsed and converted. */
struct object *read_find_verbatim(const struct kind *k, const struct catalog_set *set,
                                  struct object *o);
/* The object in the version of k. NULL only if the stored text cannot be parsed (a bug). */
struct json *read_tree(struct arena *a, const struct kind *k, const struct object *o);

/* Whether the selectors of a list or watch select the object. */
bool read_is_selected(const struct kind *k, const struct list_options *o,
                      const struct object *object);

/* Appends the object as JSON (`item`: as an item of a list). */
void read_put(struct buf *out, const struct kind *k, const struct catalog_set *set,
              const struct object *o, bool item);

/* ---- answer.c: the form that the client asked for */
str answer_meta_version(const struct call *c); /* of tables and metadata: "meta.k8s.io/v1" */
struct table_options answer_table_options(const struct call *c);
/* The object itself, a Table with one row, or its PartialObjectMetadata. */
struct json *answer_shape_object(struct call *c, const struct kind *k, struct json *object,
                                 bool no_columns);

#endif
