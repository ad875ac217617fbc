/* A registry of model images that do not exist: every repository has one image, whose labels recommend one way to run it, on
 * any node. `flyball up` serves it, so that a model goes from the name of an image to a running service without a network.
 *
 * Everything follows from the name of the repository: the configuration is text, its digest is in the manifest, and a request
 * for that digest is answered with the same text. */
#include "registry.h"

#include "../base/sha256.h"

/* Quoted in JSON as it is: the server's paths have no quotes or control characters, and others are refused. */
static bool is_repository(str text)
{
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        bool fine = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '/' || c == '.' ||
                    c == '_' || c == '-';
        if (!fine)
            return false;
    }
    return text.n > 0 && text.n <= 255;
}

static str make_config(struct arena *a, str repository)
{
    return arena_printf(a,
                        "{\"architecture\":\"amd64\",\"os\":\"linux\",\"config\":{\"Labels\":{"
                        "\"com.amd.aim.model.canonicalName\":\"" STR_FMT "\","
                        "\"com.amd.aim.model.recommendedDeployments\":"
                        "\"[{'metric':'latency','precision':'fp16'}]\"}}}",
                        STR_ARG(repository));
}

static void answer_not_found(struct exchange *x)
{
    exchange_answer(x, 404, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                    S("{\"errors\":[{\"code\":\"MANIFEST_UNKNOWN\"}]}"));
}

bool testbed_registry_answer(struct exchange *x)
{
    struct arena *a = exchange_arena(x);
    str path = exchange_path(x);
    const struct http_headers json = HTTP_HEADERS({ S("content-type"), S("application/json") });
    if (!str_starts(path, S("/v2/")))
        return false;
    path = str_from(path, strlen("/v2/"));
    if (!path.n) {
        exchange_answer(x, 200, json, S("{}"));
        return true;
    }
    size_t manifest = str_find(path, S("/manifests/")), blob = str_find(path, S("/blobs/sha256:"));
    str repository = str_upto(path, MIN(manifest, blob));
    if (!is_repository(repository)) {
        answer_not_found(x);
        return true;
    }
    str config = make_config(a, repository);
    char hex[SHA256_HEX + 1];
    sha256_hex(config, hex);
    if (manifest != SIZE_MAX)
        exchange_answer(
            x, 200,
            HTTP_HEADERS({ S("content-type"), S("application/vnd.oci.image.manifest.v1+json") }),
            arena_printf(a,
                         "{\"schemaVersion\":2,\"config\":{\"digest\":\"sha256:%s\",\"size\":%zu}}",
                         hex, config.n));
    else if (blob != SIZE_MAX && str_eqc(str_from(path, blob + strlen("/blobs/sha256:")), hex))
        exchange_answer(x, 200, json, config);
    else
        answer_not_found(x);
    return true;
}
