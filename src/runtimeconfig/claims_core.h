/* Who wants which path of which gateway: services by their plans, other HTTPRoutes by their rules.
 * Gateways accept two routes with one path and serve the older one only, without a word; so we look
 * first.
 *
 * Of two that want a path the older one has it: two services are compared by their own age, a service
 * and a foreign route by the routes' (a service that has none yet is the younger). Of equals, the
 * smaller name.
 *
 * Pure but for its memory. Holders are part of who owns them; places are owned here. */
#ifndef FLYBALL_CLAIMS_H
#define FLYBALL_CLAIMS_H

#include "../base/map.h"

struct aim_claim;

struct aim_claim_holder {
    str ns, name;            /* the owner's */
    bool foreign;            /* an HTTPRoute that is not ours */
    int64_t created_ns;      /* of the object */
    int64_t routed_ns;       /* of a service: when its route was made; 0: it has none */
    struct aim_claim *first; /* its places */
};

struct aim_claim_place {
    str gateway_ns, gateway, section, path; /* section empty: all listeners */
};

struct aim_claims {
    struct map by_place; /* "ns/gateway path" to the first claim there */
};

/* Called for every other holder at a place that was left or taken: it may win or lose now. */
typedef void aim_claim_disturb_fn(void *context, struct aim_claim_holder *holder);

/* Replaces what a holder wants; nothing happens when it is the same. */
void aim_claims_set(struct aim_claims *c, struct aim_claim_holder *h,
                    const struct aim_claim_place *places, size_t n, aim_claim_disturb_fn *disturb,
                    void *context);
/* The holder's age changed: those beside it may win or lose. */
void aim_claims_notify(const struct aim_claims *c, const struct aim_claim_holder *h,
                       aim_claim_disturb_fn *disturb, void *context);
bool aim_claims_has_gateway(const struct aim_claim_holder *h, str gateway_ns,
                            str gateway);   /* anything of it? */
void aim_claims_done(struct aim_claims *c); /* all holders must have nothing */

/* Who else has this place, and is older; the oldest of them. NULL: it is free. */
const struct aim_claim_holder *aim_claims_find_older(const struct aim_claims *c,
                                                     const struct aim_claim_holder *h,
                                                     const struct aim_claim_place *place);
/* Who has the longest path above this one ("/a" for "/a/b"), and which. NULL: nobody. */
const struct aim_claim_holder *aim_claims_find_above(const struct aim_claims *c,
                                                     const struct aim_claim_holder *h,
                                                     const struct aim_claim_place *place,
                                                     str *ret_path);

#endif
