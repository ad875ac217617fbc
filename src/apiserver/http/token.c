/* Service account tokens; see token.h. A token is "header.claims.signature", each part in base64url. The
 * signature is HMAC-SHA256: only this server signs and checks tokens, so a public key has no use.
 *
 * The claims are those of kube-apiserver. Checking a token needs no stored state except the objects that it
 * names: the service account and, if bound, the pod, secret or node must exist with the same uid. Deleting one of
 * them revokes the token. */
#include "token.h"

#include "../../base/base64.h"
#include "../../net/tls.h"
#include "auth.h"
#include "remove.h"

enum { SKEW_S = 60 }; /* tolerated if the clock was set back, as in kube-apiserver */

static void sign_text(struct server *s, str text, struct buf *out)
{
    unsigned char mac[TLS_MAC_BYTES];
    tls_mac(auth_key(s->auth), text, mac);
    base64url_encode(out, (str){ (const char *)mac, sizeof(mac) });
}

static struct json *make_reference(struct arena *a, str name, str uid)
{
    struct json *r = json_new_obj(a);
    json_set_str(a, r, "name", name);
    json_set_str(a, r, "uid", uid);
    return r;
}

static struct json *own_claims(struct arena *a, const struct token_claims *c)
{
    static const char *const kinds[][2] = { { "Pod", "pod" },
                                            { "Secret", "secret" },
                                            { "Node", "node" } };
    struct json *own = json_new_obj(a);
    json_set_str(a, own, "namespace", c->ns);
    json_set(a, own, S("serviceaccount"), make_reference(a, c->account, c->uid));
    for (size_t i = 0; json_is(c->bound, JSON_OBJ) && i < countof(kinds); i++)
        if (str_eqc(json_text(json_get(c->bound, "kind")), kinds[i][0]))
            json_set(a, own, str_c(kinds[i][1]),
                     make_reference(a, json_text(json_get(c->bound, "name")), c->bound_uid));
    if (c->node.n)
        json_set(a, own, S("node"), make_reference(a, c->node, c->node_uid));
    return own;
}

/* Claims and signature; the validity begins now. */
str token_make(struct server *s, struct arena *a, const struct token_claims *c)
{
    struct json *claims = json_new_obj(a);
    int64_t now = server_now_ns(s) / NS_PER_S;
    json_set(a, claims, S("aud"), json_copy(a, c->audiences));
    json_set_int(a, claims, "exp", c->until_s);
    json_set_int(a, claims, "iat", now);
    json_set_str(a, claims, "iss", TOKEN_ISSUER);
    json_set_str(a, claims, "jti", server_uid(s, a));
    json_set(a, claims, S("kubernetes.io"), own_claims(a, c));
    json_set_int(a, claims, "nbf", now);
    json_set_str(a, claims, "sub",
                 arena_printf(a, "system:serviceaccount:" STR_FMT ":" STR_FMT, STR_ARG(c->ns),
                              STR_ARG(c->account)));
    auto_buf struct buf out = { 0 };
    base64url_encode(&out, S("{\"alg\":\"HS256\",\"typ\":\"JWT\"}"));
    buf_put(&out, S("."));
    base64url_encode(&out, json_to_str(a, claims));
    auto_buf struct buf signature = { 0 };
    sign_text(s, buf_str(&out), &signature);
    buf_put(&out, S("."));
    buf_put(&out, buf_str(&signature));
    return arena_str(a, buf_str(&out));
}

/* The claims of a token that this server signed; NULL: the signature is wrong. The header is not read, so a
 * token cannot choose its algorithm. */
static struct json *verify_token(struct server *s, struct arena *a, str token)
{
    size_t last = token.n;
    while (last && token.p[last - 1] != '.')
        last--;
    str text = str_upto(token, last ? last - 1 : 0), header, claims = text;
    auto_buf struct buf signature = { 0 }, json = { 0 };
    if (!last || !str_cut(&claims, '.', &header) || !claims.p)
        return NULL;
    sign_text(s, text, &signature);
    struct json *tree = NULL;
    if (!tls_secrets_equal(buf_str(&signature), str_from(token, last)) ||
        base64url_decode(&json, claims) < 0 || json_parse(a, buf_str(&json), &tree, NULL) < 0)
        return NULL;
    return tree;
}

/* Whether the object that the claims name under `key` exists with the same uid. */
static bool is_object_present(struct server *s, struct arena *a, const char *plural, str ns,
                              const struct json *own, const char *key)
{
    const struct kind *k = kinds_find(S(""), S("v1"), str_c(plural));
    str name = json_text(json_at(own, key, "name", NULL)),
        uid = json_text(json_at(own, key, "uid", NULL));
    const struct object *o =
        store_latest(s->store, catalog_key(a, k, k->namespaced ? ns : S(""), name));
    return o && (!uid.n || str_eq(uid, object_span(o, o->uid)));
}

/* Checks the times and the objects that the token depends on. */
static bool are_claims_valid(struct server *s, struct arena *a, const struct json *claims)
{
    static const char *const bound[][2] = { { "pod", "pods" },
                                            { "secret", "secrets" },
                                            { "node", "nodes" } };
    const struct json *own = json_get(claims, "kubernetes.io");
    str ns = json_text(json_get(own, "namespace"));
    int64_t now = server_now_ns(s) / NS_PER_S;
    if (!str_eq(json_text(json_get(claims, "iss")), TOKEN_ISSUER) ||
        json_int(json_get(claims, "exp"), 0) <= now ||
        json_int(json_get(claims, "nbf"), 0) > now + SKEW_S ||
        !is_object_present(s, a, "serviceaccounts", ns, own, "serviceaccount"))
        return false;
    /* in a pod's token the node is only information; a token that is bound to a node has no pod */
    size_t n = json_get(own, "pod") ? countof(bound) - 1 : countof(bound);
    for (size_t i = 0; i < n; i++)
        if (json_get(own, bound[i][0]) &&
            !is_object_present(s, a, bound[i][1], ns, own, bound[i][0]))
            return false;
    return true;
}

/* Those of the wanted audiences that the token names; NULL: none. */
static struct json *match_audiences(struct arena *a, const struct json *wanted,
                                    const struct json *named)
{
    struct json *own = json_new_arr(a), *fits = json_new_arr(a);
    json_push(a, own, json_new_str(a, TOKEN_ISSUER));
    if (!json_len(wanted))
        wanted = own;
    for (size_t i = 0; i < json_len(wanted); i++)
        if (remove_list_contains(named, json_text(json_item(wanted, i))))
            json_push(a, fits, json_item(wanted, i));
    return json_len(fits) ? fits : NULL;
}

/* The extras of the user: the id of the token, and the pod and node that it is bound to. */
static struct json *make_extra(struct arena *a, const struct json *claims)
{
    static const char *const keys[][4] = { { "pod", "pod-name", "name" },
                                           { "pod", "pod-uid", "uid" },
                                           { "node", "node-name", "name" },
                                           { "node", "node-uid", "uid" } };
    struct json *extra = json_new_obj(a), *list = json_new_arr(a);
    str id = json_text(json_get(claims, "jti"));
    json_push(a, list, json_new_str(a, arena_printf(a, "JTI=" STR_FMT, STR_ARG(id))));
    json_set(a, extra, S("authentication.kubernetes.io/credential-id"), list);
    for (size_t i = 0; i < countof(keys); i++) {
        struct json *value = json_at(claims, "kubernetes.io", keys[i][0], keys[i][2], NULL);
        if (!value)
            continue;
        json_push(a, list = json_new_arr(a), value);
        json_set(a, extra, arena_printf(a, "authentication.kubernetes.io/%s", keys[i][1]), list);
    }
    return extra;
}

bool token_check(struct server *s, struct arena *a, struct token_check *t)
{
    struct json *claims = verify_token(s, a, t->token);
    if (!claims || !are_claims_valid(s, a, claims))
        return false;
    t->fits = match_audiences(a, t->wanted, json_get(claims, "aud"));
    if (!t->fits) {
        t->audiences = json_get(claims, "aud");
        return false;
    }
    const struct json *own = json_get(claims, "kubernetes.io");
    str *groups = arena_array(a, 2, sizeof(*groups));
    groups[0] = S("system:serviceaccounts");
    groups[1] = arena_printf(a, "system:serviceaccounts:" STR_FMT,
                             STR_ARG(json_text(json_get(own, "namespace"))));
    t->user = (struct user){ .name = json_text(json_get(claims, "sub")),
                             .uid = json_text(json_at(own, "serviceaccount", "uid", NULL)),
                             .groups = groups,
                             .n_groups = 2,
                             .extra = make_extra(a, claims),
                             .authenticated = true };
    return true;
}
