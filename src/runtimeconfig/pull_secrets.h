/* Reads the pull secrets of an object and of its service account, for a dialogue with a registry. Secrets are read with a get, when
 * they are needed, and not kept: the operator needs neither list nor watch on them. */
#ifndef FLYBALL_PULL_SECRETS_H
#define FLYBALL_PULL_SECRETS_H

#include "../kube/client.h"
#include "../registry/keychain_core.h"

enum { AIM_PULL_SECRETS_MAX = 16 };

struct aim_pull_secrets {
    /* set by the caller */
    struct kube *kube;
    struct arena *arena; /* of the names and contents */
    str ns;
    str account; /* service account; empty: none is read */
    /* Once, never from inside aim_pull_secrets_read() unless there is nothing to read. `reason` NULL: `found` is complete. */
    void (*done)(void *context, const char *reason, str message);
    void *context;
    /* the result */
    struct registry_secret found[AIM_PULL_SECRETS_MAX];
    size_t found_n;
    /* while it is going on */
    str names[AIM_PULL_SECRETS_MAX];
    size_t name_n, own_n, name_at; /* all, those of the object, the next one */
    struct kube_call *call;
};

/* `lists` are imagePullSecrets of the object and its configuration; NULL: none. */
void aim_pull_secrets_read(struct aim_pull_secrets *s, const struct json *const *lists, size_t n);
void aim_pull_secrets_cancel(struct aim_pull_secrets *s); /* `{0}` is fine */

#endif
