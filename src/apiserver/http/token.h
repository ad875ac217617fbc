/* Service account tokens: JSON Web Tokens, signed with the server's own key, so that the server stores none. A
 * token is valid from its nbf to its exp while its service account and the object it is bound to exist. */
#ifndef FLYBALL_TOKEN_H
#define FLYBALL_TOKEN_H

#include "server.h"

#define TOKEN_ISSUER S("https://kubernetes.default.svc")

struct token_claims {
    str ns, account, uid;
    const struct json *audiences; /* array of strings */
    const struct json *bound;     /* boundObjectRef; NULL or JSON null: not bound */
    str bound_uid;
    str node, node_uid; /* of the pod that the token is bound to; "": not scheduled, or no pod */
    int64_t until_s;    /* expiry, seconds since 1970 */
};

str token_make(struct server *s, struct arena *a, const struct token_claims *claims);

struct token_check {
    str token;
    const struct json
        *wanted; /* the token must be for one of these audiences; NULL: TOKEN_ISSUER */
    /* results */
    struct user user;
    const struct json *fits;      /* those of `wanted` that the token names */
    const struct json *audiences; /* of a valid token that is for none of `wanted`; else NULL */
};
/* Verifies the token and finds its user. False: not signed by this server, or not valid any more. */
bool token_check(struct server *s, struct arena *a, struct token_check *t);

#endif
