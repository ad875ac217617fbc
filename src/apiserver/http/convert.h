/* Versions of custom resources that a webhook converts (spec.conversion of a definition).
 *
 * Objects are stored in one version. What a webhook makes of one in another version is attached to the stored object
 * (object.converted), so that lists and watches convert each object once, and lives as long as that. A verb asks for the
 * conversions that it needs before it reads; the functions of read.h then find them. A GET of one object and a write
 * always ask, as kube-apiserver does, so that a webhook that changed is noticed. */
#ifndef FLYBALL_CONVERT_H
#define FLYBALL_CONVERT_H

#include "server.h"

/* The object in the version of k: itself, or what a webhook made of it. NULL: it must be converted first. */
const struct object *convert_find(const struct kind *k, const struct object *o);

/* Converts the objects that are not in the version of k (`again`: also if they were converted before). False: the call
 * waits, or the webhook failed and the call is answered. */
bool convert_objects(struct call *c, const struct kind *k, struct object *const *objects, size_t n,
                     bool again);
/* The object that a write or a read of one object is about, in the version of the call and, for a write, in the stored
 * version. False: as above. */
bool convert_one(struct call *c, const struct object *o);

/* All objects that a watch may begin with. False: as above. */
bool convert_all(struct call *c);

/* A copy of the tree in another version. NULL: as above. */
struct json *convert_tree(struct call *c, const struct kind *from, const struct kind *to,
                          const struct json *tree);
/* The tree of the call's object as it is stored: the tree itself, unless a webhook converts it. NULL: as above. */
struct json *convert_for_store(struct call *c, struct json *tree);
/* The kind in whose version trees are handed to write_stage() and remove_object(). */
static inline const struct kind *convert_stored_kind(const struct kind *k)
{
    return k->conversion ? k->storage : k;
}

/* Converts an object for watches, which are notified through watch_on_converted(). */
void convert_in_background(struct server *s, struct catalog_set *set, const struct kind *k,
                           struct object *o);

#endif
