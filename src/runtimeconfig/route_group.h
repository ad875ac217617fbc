/* What a route leads to, beyond the predictor of its own service: the services of a group, each with a weight, and
 * InferencePools. */
#ifndef FLYBALL_ROUTE_GROUP_H
#define FLYBALL_ROUTE_GROUP_H

#include "aim.h"

struct aim_route_group {
    bool follows; /* another service of the group has the route */
    str leader;   /* its name */
    struct aim_route_backend *backends;
    size_t n;
    const char *reason; /* why the route must stay as it is; NULL: it need not */
    str message;
};

/* The group of the turn's service, for its route (NULL: it has none). */
struct aim_route_group aim_route_group(struct aim_turn *t, const struct json *route);
/* The verdict of a service that shares the route of another one; enqueues the leader if the route lacks something. */
void aim_route_group_follow(struct aim_turn *t, const struct aim_route_group *g);
/* Does this service have the route of its group? True without a group. */
bool aim_route_group_leads(const struct aim *aim, const struct aim_record *r);
void aim_route_group_enqueue(struct aim *aim, str ns, str group);

/* The InferencePool of the turn's service; creates it if its name is not given. Empty: none is wanted, or `*ret_why` has the reason why
 * there can be none. */
str aim_route_pool(struct aim_turn *t, str *ret_why);

#endif
