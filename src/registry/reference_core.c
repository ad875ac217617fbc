/* Image references: see reference_core.h.
 *
 *     [host[:port]/]repository[:tag][@sha256:<64 hex>]
 *
 * The first segment is a host if it has a dot or a colon; everything else is a repository on Docker Hub, where names of
 * one segment are official images. This is the convention of every container tool, also where it surprises:
 * "localhost/aim" is a repository on Docker Hub. */
#include "reference_core.h"

#define HUB "index.docker.io"

enum { REPOSITORY_MIN = 2, REPOSITORY_MAX = 255, TAG_MAX = 128, HOST_MAX = 255 };

/* Whether the text has only lowercase letters, digits and those in `more`; `upper` adds uppercase letters. */
static bool has_only(str text, const char *more, bool upper)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool known = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                     (upper && c >= 'A' && c <= 'Z') || (c && strchr(more, c));
        if (!known)
            return false;
    }
    return true;
}

bool registry_is_digest(str text)
{
    str hex = str_from(text, strlen("sha256:"));
    if (!str_starts(text, S("sha256:")) || hex.n != 64)
        return false;
    for (size_t i = 0; i < hex.n; i++)
        if (!memchr("0123456789abcdef", hex.p[i], 16))
            return false;
    return true;
}

static size_t find_last(str text, char c)
{
    for (size_t i = text.n; i > 0; i--)
        if (text.p[i - 1] == c)
            return i - 1;
    return SIZE_MAX;
}

/* Splits off what follows the last colon, unless that is the port of a host. True: there is a colon. */
static bool cut_tag(str *name, str *tag)
{
    size_t colon = find_last(*name, ':');
    if (colon == SIZE_MAX || str_find_char(str_from(*name, colon), '/') != SIZE_MAX)
        return false;
    *tag = str_from(*name, colon + 1);
    *name = str_upto(*name, colon);
    return true;
}

/* Separates host and repository, and validates both. */
static int set_repository(struct arena *a, str image, str name, struct registry_reference *r,
                          err_t *e)
{
    size_t slash = str_find_char(name, '/');
    str first = slash == SIZE_MAX ? S("") : str_upto(name, slash);
    bool is_host = str_find_char(first, '.') != SIZE_MAX || str_find_char(first, ':') != SIZE_MAX;
    r->registry = is_host && !str_eqc(first, "docker.io") ? first : S(HUB);
    r->repository = is_host ? str_from(name, slash + 1) : name;
    if (r->repository.n < REPOSITORY_MIN || r->repository.n > REPOSITORY_MAX ||
        !has_only(r->repository, "_-./", false))
        return err_set(e, EINVAL,
                       "image \"" STR_FMT "\": invalid repository \"" STR_FMT
                       "\"; use 2 to 255 of a-z 0-9 _ - . /",
                       STR_ARG(image), STR_ARG(r->repository));
    if (r->registry.n > HOST_MAX || !has_only(r->registry, "-._:[]", true))
        return err_set(e, EINVAL, "image \"" STR_FMT "\": invalid registry host \"" STR_FMT "\"",
                       STR_ARG(image), STR_ARG(r->registry));
    if (str_eqc(r->registry, HUB) && str_find_char(r->repository, '/') == SIZE_MAX)
        r->repository = arena_printf(a, "library/" STR_FMT, STR_ARG(r->repository));
    return 0;
}

/* A digest wins over a tag, and neither means "latest". */
int registry_reference_parse(struct arena *a, str image, struct registry_reference *ret, err_t *e)
{
    struct registry_reference r = { 0 };
    str copy = arena_str(a, image), name = copy;
    size_t at = str_find_char(name, '@');
    if (at != SIZE_MAX) {
        r.digest = str_from(name, at + 1);
        name = str_upto(name, at);
        if (!registry_is_digest(r.digest))
            return err_set(e, EINVAL,
                           "image \"" STR_FMT "\": invalid digest; use sha256: and 64 hexadecimal "
                           "digits",
                           STR_ARG(image));
    }
    bool empty = cut_tag(&name, &r.tag) && !r.tag.n;
    if (empty || r.tag.n > TAG_MAX || !has_only(r.tag, "_-.", true))
        return err_set(e, EINVAL,
                       "image \"" STR_FMT "\": invalid tag \"" STR_FMT
                       "\"; use 1 to 128 of A-Z a-z 0-9 _ - .",
                       STR_ARG(image), STR_ARG(r.tag));
    if (r.digest.n)
        r.tag = S("");
    else if (!r.tag.n)
        r.tag = S("latest");
    int result = set_repository(a, image, name, &r, e);
    if (result == 0)
        *ret = r;
    return result;
}

str registry_reference_identifier(const struct registry_reference *r)
{
    return r->digest.n ? r->digest : r->tag;
}

/* The first two numbers of an IPv4 address; false: it is none. */
static bool read_ipv4(str host, int64_t part[4])
{
    str rest = host, text;
    for (int i = 0; i < 4; i++)
        if (!str_cut(&rest, '.', &text) || str_to_i64(text, &part[i]) || part[i] < 0 ||
            part[i] > 255)
            return false;
    return !rest.p;
}

bool registry_reference_is_local(const struct registry_reference *r)
{
    size_t colon = find_last(r->registry, ':');
    str host = colon == SIZE_MAX ? r->registry : str_upto(r->registry, colon);
    int64_t ip[4];
    if (read_ipv4(host, ip))
        return (ip[0] == 127 && ip[1] == 0 && ip[2] == 0 && ip[3] == 1) || ip[0] == 10 ||
               (ip[0] == 172 && ip[1] >= 16 && ip[1] < 32) || (ip[0] == 192 && ip[1] == 168);
    return (str_eqc(host, "localhost") && colon != SIZE_MAX) || str_ends(host, S(".local")) ||
           str_ends(host, S(".localhost")) || str_find(r->registry, S("::1")) != SIZE_MAX;
}
