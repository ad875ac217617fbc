/* Notices kinds that are installed later: watches the names of all CustomResourceDefinitions, so that a cache whose kind is
 * absent need not ask for it again and again. Without permission for this watch, absent kinds are polled. */
#ifndef FLYBALL_KUBE_KINDS_H
#define FLYBALL_KUBE_KINDS_H

#include "listwatch.h"

struct kinds;

struct kinds_options {
    struct kube *kube;
    struct projector *projector;
    uint64_t seed;
    size_t total_max; /* as in listwatch_options */
    /* A definition was found, added or changed; its name is "plural.group". */
    void (*on_change)(void *context, str name);
    void *context;
};

struct kinds *kube_kinds_new(const struct kinds_options *options);
void kube_kinds_free(struct kinds *k);

/* Will on_change be called for a kind that is installed from now on? */
bool kube_kinds_is_watched(const struct kinds *k);
/* Is this the name of the resource's definition? */
bool kube_kinds_defines(str name, const struct resource *r);

#endif
