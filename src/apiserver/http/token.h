/* Tokens of service accounts: JSON Web Tokens, signed with a key of this server, so that none has to be
 * remembered. One is good from its nbf until its time is up or its account is gone. */
#ifndef FLYBALL_TOKEN_H
#define FLYBALL_TOKEN_H

#include "server.h"

#define TOKEN_ISSUER S("https://kubernetes.default.svc")

struct token_claims {
    str ns, account, uid;
    const struct json *audiences; /* names whom the token is for */
    const struct json *bound;     /* reference to what it dies with; NULL or null: nothing else */
    str bound_uid;
    str node, node_uid; /* of the pod it is bound to; "": it has none yet */
    int64_t until_s;
};

str token_make(struct server *s, struct arena *a, const struct token_claims *claims);

struct token_check {
    str token;
    const struct json
        *wanted; /* audiences, one of which the token must be for; NULL: this server */
    /* answers */
    struct user user;
    const struct json *fits;      /* those of `wanted`, NULL: this server */
    const struct json *audiences; /* of a token that is ours, but for none of those; else NULL */
};
/* Who shows this token; false: it is none of ours, or no longer good. */
bool token_check(struct server *s, struct arena *a, struct token_check *t);

#endif
