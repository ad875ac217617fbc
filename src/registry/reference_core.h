/* The name of a container image, taken apart. Pure; parts borrow from the text or live in the arena. */
#ifndef FLYBALL_REFERENCE_CORE_H
#define FLYBALL_REFERENCE_CORE_H

#include "../base/arena.h"
#include "../base/err.h"

struct registry_reference {
    str registry;   /* host[:port]; "index.docker.io" for Docker Hub */
    str repository; /* "library/aim" */
    str tag;        /* "latest" if neither is given; empty if there is a digest */
    str digest;     /* "sha256:..."; wins over a tag */
};

/* -EINVAL with a sentence that names the invalid part. */
int registry_reference_parse(struct arena *a, str image, struct registry_reference *ret, err_t *e);

/* The digest, or the tag. */
str registry_reference_identifier(const struct registry_reference *r);
/* Is this registry reached without TLS by convention: a loopback, a private address, a name in .local? */
bool registry_reference_is_local(const struct registry_reference *r);
bool registry_is_digest(str text); /* "sha256:" and 64 hexadecimal digits */

#endif
