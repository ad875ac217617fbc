/* Who asks: users come from bearer tokens and client certificates; a request with neither is
 * system:anonymous, and a wrong token is 401 (never anonymous). Who may `impersonate` may ask in the name
 * of another. What they may do is told by access.h:
 *
 *   system:masters      everything
 *   flyball:readers     get, list and watch of everything but secrets
 *   everybody           what the roles bound to them say */
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
/* Everything is copied. */
void auth_add_token(struct auth *a, str token, str user, const str *groups, size_t n_groups);
/* With what tokens of service accounts are signed. */
void auth_set_key(struct auth *a, str key);
str auth_key(const struct auth *a); /* a NULL: "", as nothing is checked then */
/* Lines of token,user[,uid[,"group,group"]], as kube-apiserver reads them; # starts a comment. */
int auth_add_file(struct auth *a, const char *path, err_t *e);
/* Who is meant by a name and groups; nothing is copied. */
struct user auth_user(str name, const str *groups, size_t n_groups);
/* Whose token it is, of the file or of a service account; false: not a good one. */
bool auth_check(struct server *s, struct arena *a, struct token_check *t);

#endif
