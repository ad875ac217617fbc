/* Authentication: bearer tokens and client certificates. A request with neither is system:anonymous; a wrong
 * token is answered with 401 and is never treated as anonymous. A user with the verb `impersonate` can act as
 * another one (impersonate.c). Authorization is in access.h:
 *
 *   system:masters      everything
 *   flyball:readers     get, list and watch everything except secrets
 *   all users           the rules of the roles bound to them */
#ifndef FLYBALL_AUTH_H
#define FLYBALL_AUTH_H

#include "../../base/str.h"

struct auth;
struct server;
struct arena;
struct user;
struct token_check;

#define AUTH_ADMINS "system:masters"
#define AUTH_READERS "flyball:readers"
#define AUTH_ANONYMOUS "system:anonymous"
#define AUTH_ACCOUNT "system:serviceaccount:"

struct auth *auth_new(void);
void auth_free(struct auth *a);
/* Copies its arguments. */
void auth_add_token(struct auth *a, str token, str user, str uid, const str *groups,
                    size_t n_groups);
/* The key that signs the tokens of service accounts. */
void auth_set_key(struct auth *a, str key);
str auth_key(const struct auth *a); /* a NULL: "" */
/* Reads lines of token,user[,uid[,"group,group"]], kube-apiserver's format; # starts a comment. */
int auth_add_file(struct auth *a, const char *path, err_t *e);
/* An authenticated user; borrows its arguments. */
struct user auth_user(str name, const str *groups, size_t n_groups);
/* Finds the user of a token, from the token file or of a service account. False: the token is not valid. */
bool auth_check_token(struct server *s, struct arena *a, struct token_check *t);

#endif
