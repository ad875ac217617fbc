/* Which service or route claims which path, or which model name in a header, of which gateway: services by their plans, other HTTPRoutes by
 * their rules. A gateway accepts two routes with the same path and silently serves only the older one, so
 * conflicts are detected here first.
 *
 * The older claim wins. Two services are compared by their own age, a service and a foreign route by the age
 * of the routes (a service without a route is the younger one). If the ages are equal, the smaller name wins.
 *
 * Pure except for its memory. Holders are part of their owners; claims are owned here. */
#ifndef FLYBALL_CLAIMS_H
#define FLYBALL_CLAIMS_H

#include "../base/map.h"

struct aim_claim;

struct aim_claim_holder {
    str ns, name;            /* borrowed from the owner */
    bool foreign;            /* an HTTPRoute that we did not create */
    int64_t created_ns;      /* creation of the object */
    int64_t routed_ns;       /* of a service: creation of its route; 0: it has none */
    struct aim_claim *first; /* list of its claims */
};

struct aim_claim_place {
    str gateway_ns, gateway, section, path; /* section "": all listeners */
    str host;                               /* "": all host names */
    str header;                             /* "name: value", the name in lower case; "": a path */
};

struct aim_claims {
    struct map by_place; /* "ns/gateway path" to the first claim there */
};

/* Called for every other holder of a place whose claims changed: it may have won or lost it. */
typedef void aim_claim_disturb_fn(void *context, struct aim_claim_holder *holder);

/* Replaces the claims of a holder; does nothing if they are the same. */
void aim_claims_set(struct aim_claims *c, struct aim_claim_holder *h,
                    const struct aim_claim_place *places, size_t n, aim_claim_disturb_fn *disturb,
                    void *context);
/* The age of a holder changed: notifies the others at its places. */
void aim_claims_notify(const struct aim_claims *c, const struct aim_claim_holder *h,
                       aim_claim_disturb_fn *disturb, void *context);
bool aim_claims_has_gateway(const struct aim_claim_holder *h, str gateway_ns,
                            str gateway);   /* does it claim a path of this gateway? */
void aim_claims_done(struct aim_claims *c); /* all holders must have released their claims */

/* The oldest other holder of this place that is older than `h`; NULL: none. */
const struct aim_claim_holder *aim_claims_find_older(const struct aim_claims *c,
                                                     const struct aim_claim_holder *h,
                                                     const struct aim_claim_place *place);
/* The holder of the longest path above this one ("/a" for "/a/b"), and that path; NULL: none. */
const struct aim_claim_holder *aim_claims_find_above(const struct aim_claims *c,
                                                     const struct aim_claim_holder *h,
                                                     const struct aim_claim_place *place,
                                                     str *ret_path);

#endif
