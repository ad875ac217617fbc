/* Which credentials of pull secrets apply to an image. Pure. */
#ifndef FLYBALL_KEYCHAIN_CORE_H
#define FLYBALL_KEYCHAIN_CORE_H

#include "../json/json.h"
#include "reference_core.h"

struct registry_secret {
    str type; /* kubernetes.io/dockerconfigjson or kubernetes.io/dockercfg; others are ignored */
    str data; /* the decoded content of its one key */
};

struct registry_credentials {
    bool found; /* false: anonymous */
    str username, password, identity_token;
};

/* `hub_short` accepts "docker.io" as a key for Docker Hub and "/v1" for "/v1/", which the original does not. -EINVAL: a secret that applies
 * cannot be read; the sentence does not contain its content. */
int registry_keychain_find(struct arena *a, const struct registry_secret *secrets, size_t n,
                           const struct registry_reference *image, bool hub_short,
                           struct registry_credentials *ret, err_t *e);

#endif
