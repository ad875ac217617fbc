/* Field ownership in terms of shapes, paths and trees: the only file here that includes json/apply.h.
 * (json/fieldset.h and field.h use the same words for different things, so no file includes both.) */
#ifndef FLYBALL_OWNERSHIP_H
#define FLYBALL_OWNERSHIP_H

#include "../../json/shape.h"

struct ownership {
    const struct shape *shape;
    /* other versions: see apply.h */
    const struct shape *(*shape_of)(void *context, str version);
    const struct json *(*view)(void *context, str version, const struct json *object);
    void *context;
    const char *const *ignored; /* dotted paths, NULL-ended; NULL: none */
    str version, subresource, manager, now;
    bool force;
    const struct json *live, *object;
    const struct json *blank; /* see apply.h */
};

/* The object with its managedFields brought up to date. */
struct json *ownership_update(struct arena *a, const struct ownership *o);

/* The object after the configuration was applied. Errors as apply_patch(): after -EEXIST the causes of a
 * Status and its message. */
int ownership_apply(struct arena *a, const struct ownership *o, struct json **ret_object,
                    struct json **ret_causes, str *ret_message, err_t *e);

/* Merges a configuration into the object, as apply does, without regard to owners: what an admission policy returns. It
 * must fit the shape and must not set atomic lists or maps; the error is worded as that of kube-apiserver. */
int ownership_merge(struct arena *a, const struct shape *shape, const struct json *object,
                    const struct json *configuration, struct json **ret, err_t *e);

#endif
