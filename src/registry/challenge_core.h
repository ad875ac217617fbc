/* The header WWW-Authenticate of a registry, and the URL at which a token is requested. Pure. */
#ifndef FLYBALL_CHALLENGE_CORE_H
#define FLYBALL_CHALLENGE_CORE_H

#include "../base/arena.h"

enum registry_scheme {
    REGISTRY_NO_CHALLENGE,
    REGISTRY_BASIC,
    REGISTRY_BEARER,
    REGISTRY_OTHER_SCHEME, /* not supported */
};

struct registry_challenge {
    enum registry_scheme scheme;
    str realm, service, scope; /* of a bearer challenge; in the arena */
};

struct registry_challenge registry_challenge_parse(struct arena *a, str header);

/* The realm with the parameters scope (each once) and service. */
str registry_token_url(struct arena *a, const struct registry_challenge *c, const str *scopes,
                       size_t n);

/* A URL in parts; false: it is neither http nor https, or has no host. */
struct registry_url {
    bool tls;
    str host; /* with the port, if any */
    str path; /* begins with "/"; with the query */
};
bool registry_url_parse(str url, struct registry_url *ret);
/* `location` relative to the URL of the request. */
str registry_url_resolve(struct arena *a, const struct registry_url *base, str location);
str registry_url_text(struct arena *a, const struct registry_url *url);

#endif
