/* Credentials: see keychain_core.h.
 *
 * A docker configuration maps keys to credentials. A key is a host, optionally with a scheme, a port and the beginning of a
 * path; the parts of the host may contain "*". The keys of all secrets are tried in descending byte order, without their
 * scheme, so that a longer path comes before a shorter one and a name before a pattern; of equal keys that of the first
 * secret wins. The path matches as a prefix of bytes, as kubelet and the original do: "ghcr.io/acme" applies to
 * "ghcr.io/acmeco/x" too. */
#include "keychain_core.h"

#include "../base/base64.h"

#define HUB "index.docker.io"

struct place {
    str host, port, path;
};

struct entry {
    str key; /* as it was written */
    struct place place;
    size_t secret;
    const struct json *value;
};

struct entries {
    struct entry *at;
    size_t n;
};

static int compare_entries(const void *x, const void *y)
{
    const struct entry *a = x, *b = y;
    int order = str_cmp(b->place.host, a->place.host);
    order = order ? order : str_cmp(b->place.port, a->place.port);
    order = order ? order : str_cmp(b->place.path, a->place.path);
    return order ? order : (a->secret > b->secret) - (a->secret < b->secret);
}

/* ---- matching */

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
    if (str_eqc(p.path, "/"))
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

/* Whether a key of the configuration is for this image. `hub_short`: "docker.io" is Docker Hub too, and "/v1" no path. */
static bool key_applies(struct place want, const struct registry_reference *image, bool hub_short)
{
    struct place have = place_of(image->registry);
    if (hub_short && str_eqc(image->registry, HUB) && str_eqc(want.host, "docker.io"))
        want.host = S(HUB);
    if (hub_short && (str_eqc(want.path, "/v1") || str_eqc(want.path, "/v2")))
        want.path = S("");
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

static const struct json *auths_of(struct arena *a, const struct registry_secret *secret,
                                   int *ret_error)
{
    bool config = str_eqc(secret->type, "kubernetes.io/dockerconfigjson");
    struct json *tree = NULL;
    if (!secret->data.n || (!config && !str_eqc(secret->type, "kubernetes.io/dockercfg")))
        return NULL;
    *ret_error = json_parse(a, secret->data, &tree, NULL);
    return config ? json_get(tree, "auths") : tree;
}

/* The entries of all secrets in the order in which they are tried. */
static struct entries entries_of(struct arena *a, const struct registry_secret *secrets, size_t n,
                                 int *ret_error)
{
    const struct json **auths = arena_array(a, n + 1, sizeof(*auths));
    size_t room = 1;
    for (size_t i = 0; i < n && !*ret_error; i++) {
        auths[i] = auths_of(a, &secrets[i], ret_error);
        room += json_len(auths[i]);
    }
    struct entries all = { arena_array(a, room, sizeof(*all.at)), 0 };
    for (size_t i = 0; i < n && !*ret_error; i++)
        json_each(m, auths[i])
            all.at[all.n++] = (struct entry){ m->key, place_of(m->key), i, m->value };
    qsort(all.at, all.n, sizeof(*all.at), compare_entries);
    return all;
}

int registry_keychain_find(struct arena *a, const struct registry_secret *secrets, size_t n,
                           const struct registry_reference *image, bool hub_short,
                           struct registry_credentials *ret, err_t *e)
{
    int error = 0;
    struct entries all = entries_of(a, secrets, n, &error);
    if (error)
        return err_set(e, EINVAL, "pull secret: its content is not JSON");
    for (size_t i = 0; i < all.n; i++)
        if (key_applies(all.at[i].place, image, hub_short))
            return read_entry(a, &all.at[i], ret, e);
    *ret = (struct registry_credentials){ 0 };
    return 0;
}
