/* Who asks, and what may they do.
 *
 * Users come from bearer tokens and client certificates; a request with neither is system:anonymous, and a
 * wrong token is 401 (never anonymous). Rights are two roles given by groups:
 *
 *   system:masters      everything
 *   flyball:readers     get, list and watch of everything but secrets
 *
 * Everybody else who is known (service accounts among them) sees what is served, and may ask what it may;
 * who is not known sees health and version only. */
#ifndef FLYBALL_AUTH_H
#define FLYBALL_AUTH_H

#include "../base/str.h"

struct auth;

#define AUTH_ADMINS "system:masters"
#define AUTH_READERS "flyball:readers"

struct auth *auth_new(void);
void auth_free(struct auth *a);
/* Everything is copied. */
void auth_add_token(struct auth *a, str token, str user, const str *groups, size_t n_groups);
/* With what tokens of service accounts are signed. */
void auth_set_key(struct auth *a, str key);
str auth_key(const struct auth *a); /* a NULL: "", as nothing is checked then */
/* Lines of token,user[,uid[,"group,group"]], as kube-apiserver reads them; # starts a comment. */
int auth_add_file(struct auth *a, const char *path, err_t *e);

#endif
