/* Which images may become models; see modelsource_check.h.
 *
 * The names come from a source, or from a registry, which is not trusted. An image is published in a model that every
 * namespace can read, so that credentials in it would be published too. */
#include "modelsource_check.h"

#include "../registry/reference_core.h"

static bool is_alphanumeric(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Segments between slashes begin and end with a letter or digit: neither "", nor ".", nor "..". */
static bool has_proper_segments(str path)
{
    str segment;
    for (bool more = true; more;) {
        size_t slash = str_find_char(path, '/');
        more = slash != SIZE_MAX;
        segment = more ? str_upto(path, slash) : path;
        path = more ? str_from(path, slash + 1) : path;
        if (!segment.n || !is_alphanumeric(segment.p[0]) ||
            !is_alphanumeric(segment.p[segment.n - 1]))
            return false;
    }
    return true;
}

/* The reference has the rules for characters and lengths, but allows any dots and slashes, as the original does. */
int aim_modelsource_check(struct arena *a, const struct aim_modelsource_image *image, err_t *e)
{
    struct registry_reference reference;
    str host = image->registry;
    if (str_find_char(host, '@') != SIZE_MAX)
        return err_set(e, EINVAL,
                       "the registry contains credentials, which every user of the model could "
                       "read; use imagePullSecrets");
    bool literal = str_starts(host, S("[")) && str_find_char(host, ']') != SIZE_MAX; /* IPv6 */
    if (!host.n || (!literal && !has_proper_segments(host)) || str_find_char(host, '/') != SIZE_MAX)
        return err_set(e, EINVAL, "invalid registry \"" STR_FMT "\"; use a host name and port",
                       STR_ARG(host));
    if (!has_proper_segments(image->repository))
        return err_set(e, EINVAL,
                       "invalid repository \"" STR_FMT
                       "\"; each part must begin and end with a letter or digit",
                       STR_ARG(image->repository));
    return registry_reference_parse(a, aim_modelsource_image_text(a, image), &reference, e);
}

int aim_modelsource_check_pattern(str image, err_t *e)
{
    size_t at = str_find_char(image, '@');
    if (at == SIZE_MAX || registry_is_digest(str_from(image, at + 1)))
        return 0;
    return err_set(e, EINVAL,
                   "the image contains credentials or an invalid digest; use imagePullSecrets, or "
                   "sha256: and 64 hexadecimal digits");
}
