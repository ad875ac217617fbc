/* Credentials: see keychain_core.h.
 *
 * A docker configuration maps keys to credentials. A key is a host, optionally with a scheme, a port and the beginning of a
 * path; the parts of the host may contain "*". Keys are tried in descending byte order, so that a longer path comes
 * before a shorter one and a name before a pattern; the first match of the first secret that has one wins. The path
 * matches as a prefix of bytes, as kubelet and the original do: "ghcr.io/acme" applies to "ghcr.io/acmeco/x" too. */
#include "keychain_core.h"

#include "../base/base64.h"

#define HUB "index.docker.io"

struct entry {
    str key;
    const struct json *value;
};

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    return -str_cmp(a->key, b->key);
}

/* ---- matching */

struct place {
    str host, port, path;
};

/* The parts of "scheme://host:port/path"; "/v1/" and "/v2/" of old configurations are dropped. */
static struct place place_of(str key)
{
    struct place p = { .path = S("") };
    size_t at = str_find(key, S("://"));
    if (at != SIZE_MAX)
        key = str_from(key, at + 3);
    at = str_find_char(key, '/');
    if (at != SIZE_MAX) {
        p.path = str_from(key, at);
        key = str_upto(key, at);
    }
    if (str_starts(p.path, S("/v1/")) || str_starts(p.path, S("/v2/")))
        p.path = str_from(p.path, 3);
    if (str_eqc(p.path, "/v1") || str_eqc(p.path, "/v2"))
        p.path = S("");
    at = str_find_char(key, ':');
    p.port = at == SIZE_MAX ? S("") : str_from(key, at + 1);
    p.host = at == SIZE_MAX ? key : str_upto(key, at);
    return p;
}

/* Part by part: a star does not match a dot. */
static bool matches_host(str pattern, str host)
{
    str a, b;
    for (;;) {
        bool more = str_cut(&pattern, '.', &a), other = str_cut(&host, '.', &b);
        if (!more || !other)
            return more == other;
        if (!str_matches_glob(a, b, '?'))
            return false;
    }
}

/* Whether a key of the configuration is for this image. `hub_short`: "docker.io" is Docker Hub too. */
static bool key_applies(str key, const struct registry_reference *image, bool hub_short)
{
    struct place want = place_of(key);
    struct place have = place_of(image->registry);
    if (hub_short && str_eqc(image->registry, HUB) && str_eqc(want.host, "docker.io"))
        want.host = S(HUB);
    str path = str_from(want.path, str_starts(want.path, S("/")) ? 1 : 0);
    return matches_host(want.host, have.host) && str_eq(want.port, have.port) &&
           str_starts(image->repository, path);
}

/* ---- reading */

/* "user:password" in base64; the padding may be missing. */
static int read_auth(struct arena *a, str text, struct registry_credentials *ret)
{
    auto_buf struct buf padded = { 0 }, plain = { 0 };
    buf_put(&padded, text);
    while (padded.n % 4)
        buf_putc(&padded, '=');
    if (base64_decode(&plain, buf_str(&padded)))
        return -EINVAL;
    str both = arena_str(a, buf_str(&plain));
    size_t colon = str_find_char(both, ':');
    if (colon == SIZE_MAX)
        return -EINVAL;
    ret->username = str_upto(both, colon);
    ret->password = str_from(both, colon + 1);
    return 0;
}

/* "auth" wins over username and password, as in docker. */
static int read_entry(struct arena *a, const struct entry *entry, struct registry_credentials *ret,
                      err_t *e)
{
    str auth = json_text(json_get(entry->value, "auth"));
    struct registry_credentials c = {
        .found = true,
        .username = json_text(json_get(entry->value, "username")),
        .password = json_text(json_get(entry->value, "password")),
        .identity_token = json_text(json_get(entry->value, "identitytoken")),
    };
    if (auth.n && read_auth(a, auth, &c))
        return err_set(e, EINVAL,
                       "pull secret: the entry \"" STR_FMT
                       "\" has an auth that is not \"user:password\" in base64",
                       STR_ARG(entry->key));
    *ret = c;
    return 0;
}

/* The entries of a secret in the order in which they are tried; NULL: it has none. */
static struct entry *entries_of(struct arena *a, const struct registry_secret *secret,
                                size_t *ret_n, int *ret_error)
{
    bool config = str_eqc(secret->type, "kubernetes.io/dockerconfigjson");
    struct json *tree = NULL;
    *ret_n = 0;
    if (!config && !str_eqc(secret->type, "kubernetes.io/dockercfg"))
        return NULL;
    *ret_error = json_parse(a, secret->data, &tree, NULL);
    const struct json *auths = config ? json_get(tree, "auths") : tree;
    struct entry *at = arena_array(a, json_len(auths) + 1, sizeof(*at));
    json_each(m, auths)
        at[(*ret_n)++] = (struct entry){ m->key, m->value };
    qsort(at, *ret_n, sizeof(*at), compare_entries);
    return at;
}

int registry_keychain_find(struct arena *a, const struct registry_secret *secrets, size_t n,
                           const struct registry_reference *image, bool hub_short,
                           struct registry_credentials *ret, err_t *e)
{
    for (size_t i = 0; i < n; i++) {
        size_t count = 0;
        int error = 0;
        const struct entry *at = entries_of(a, &secrets[i], &count, &error);
        if (error)
            return err_set(e, EINVAL, "pull secret: its content is not JSON");
        for (size_t k = 0; k < count; k++)
            if (key_applies(at[k].key, image, hub_short))
                return read_entry(a, &at[k], ret, e);
    }
    *ret = (struct registry_credentials){ 0 };
    return 0;
}
