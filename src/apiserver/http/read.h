/* Stored objects as they are served. Most are served byte for byte as stored; those of another version than
 * the one asked for, or written before the schema changed, are parsed and read anew. */
#ifndef FLYBALL_READ_H
#define FLYBALL_READ_H

#include "../kinds/table.h"
#include "call.h"
#include "registry.h"

bool read_verbatim(const struct kind *k, const struct kind_set *set, const struct object *o);
/* The object in the version of k. NULL only if the stored text cannot be parsed (a bug). */
struct json *read_tree(struct arena *a, const struct kind *k, const struct object *o);

/* Whether o is among what a list or watch of k selects. */
bool read_selected(const struct kind *k, const struct list_options *o, const struct object *object);

/* One object of an answer (`item`: of a list) appended as JSON. */
void read_put(struct buf *out, const struct kind *k, const struct kind_set *set,
              const struct object *o, bool item);

/* ---- answer.c: the form the call asked for */
str call_meta_version(const struct call *c); /* of tables and metadata: "meta.k8s.io/v1" */
struct table_options call_table_options(const struct call *c);
/* A tree as itself, a Table of one row, or its metadata. */
struct json *call_form_object(struct call *c, const struct kind *k, struct json *object,
                              bool no_columns);

#endif
