/* CertificateSigningRequests: who asks is set by the server, the request never changes, and conditions only grow.
 *
 * /approval decides (Approved, Denied), /status issues the certificate; each write changes its own part only.
 * controllers/signer.c signs what is approved. Messages are quoted: kube-apiserver. */
#include "../../base/base64.h"
#include "../../base/rfc3339.h"
#include "../../net/cert.h"
#include "../schema/format.h"
#include "kind_hooks.h"

/* Copies a member of the old object, or removes it. */
static void restore_member(struct arena *a, struct json *to, const struct json *from,
                           const char *key)
{
    const struct json *was = json_get(from, key);
    json_del(to, str_c(key));
    if (was)
        json_set(a, to, str_c(key), json_copy(a, was));
}

/* Approved and Denied belong to /approval, other conditions to /status. */
static bool is_decision(const struct json *condition)
{
    str type = json_text(json_get(condition, "type"));
    return str_eqc(type, "Approved") || str_eqc(type, "Denied");
}

/* /approval keeps the certificate and other conditions, /status keeps the decision. */
static void restore_status(const struct kind_change *c, struct arena *a)
{
    struct json *status = json_make(a, c->object, "status", NULL), *merged = json_new_arr(a);
    const struct json *old = json_get(c->old, "status"), *now = json_get(status, "conditions");
    const struct json *was = json_get(old, "conditions");
    bool deciding = c->sub == KIND_APPROVAL;
    if (deciding)
        restore_member(a, status, old, "certificate");
    for (uint32_t i = 0; i < json_len(was); i++)
        if (is_decision(was->items[i]) != deciding)
            json_push(a, merged, json_copy(a, was->items[i]));
    for (uint32_t i = 0; i < json_len(now); i++)
        if (is_decision(now->items[i]) == deciding)
            json_push(a, merged, now->items[i]);
    json_del(status, S("conditions"));
    if (json_len(merged))
        json_set(a, status, S("conditions"), merged);
}

/* Times of conditions that the client left out. */
static void stamp_conditions(const struct kind_change *c, struct kind_env *env)
{
    const struct json *list = json_at(c->object, "status", "conditions", NULL);
    static const char *const keys[] = { "lastUpdateTime", "lastTransitionTime" };
    char time[RFC3339_TEXT_MAX];
    str now = rfc3339_text(env->now_ns / 1000000000, time);
    for (uint32_t i = 0; i < json_len(list); i++)
        for (size_t n = 0; n < countof(keys); n++)
            if (!json_text(json_get(list->items[i], keys[n])).n)
                json_set_str(env->arena, list->items[i], keys[n], arena_str(env->arena, now));
}

/* No user becomes an administrator by a certificate that others may approve. */
static void refuse_masters(const struct kind_change *c, struct kind_env *env,
                           struct kind_fault *fault)
{
    const struct json *spec = json_get(c->object, "spec");
    auto_buf struct buf pem = { 0 };
    struct cert_subject subject = { 0 };
    bool masters = false;
    if (!str_eqc(json_text(json_get(spec, "signerName")), "kubernetes.io/kube-apiserver-client") ||
        base64_decode(&pem, json_text(json_get(spec, "request"))) < 0 ||
        cert_check_request(buf_str(&pem), &subject, NULL) < 0)
        return;
    for (size_t i = 0; i < subject.n_organizations; i++)
        masters |= str_eqc(str_c(subject.organizations[i]), "system:masters");
    cert_subject_done(&subject);
    if (masters)
        kind_fault_set(fault, 403, "Forbidden",
                       arena_printf(env->arena,
                                    "certificatesigningrequests.certificates.k8s.io \"" STR_FMT
                                    "\" is forbidden: use of kubernetes.io/kube-apiserver-client "
                                    "signer with system:masters group is not allowed",
                                    STR_ARG(
                                        json_text(json_at(c->object, "metadata", "name", NULL)))));
}

/* The spec is set once; what a client may write depends on the path. */
static void prepare_csr(const struct kind_change *c, struct kind_env *env, struct kind_fault *fault)
{
    static const char *const whose[] = { "username", "uid", "groups", "extra" };
    struct arena *a = env->arena;
    struct json *spec = json_make(a, c->object, "spec", NULL);
    if (!c->old) {
        for (size_t i = 0; i < countof(whose); i++)
            restore_member(a, spec, env->user, whose[i]);
        refuse_masters(c, env, fault);
        return;
    }
    restore_member(a, c->object, c->old, "spec");
    if (c->sub == KIND_APPROVAL || c->sub == KIND_STATUS) {
        restore_status(c, a);
        stamp_conditions(c, env);
    }
}

/* PEM, a valid structure and a valid signature. */
static void check_request(const struct json *spec, const struct field_path *at,
                          struct field_errors *errors)
{
    const struct json *request = json_get(spec, "request");
    auto_buf struct buf pem = { 0 };
    err_t e = { 0 };
    if (base64_decode(&pem, json_text(request)) < 0 ||
        cert_check_request(buf_str(&pem), NULL, &e) < 0)
        field_invalid(errors, AT(at, "request"), request, "%s",
                      e.text[0] ? e.text : "PEM block type must be CERTIFICATE REQUEST");
}

/* Known usages, each once. */
static void check_usages(const struct json *usages, const struct field_path *up,
                         struct field_errors *errors)
{
    static const char *const known[] = { "any",
                                         "cert sign",
                                         "client auth",
                                         "code signing",
                                         "content commitment",
                                         "crl sign",
                                         "data encipherment",
                                         "decipher only",
                                         "digital signature",
                                         "email protection",
                                         "encipher only",
                                         "ipsec end system",
                                         "ipsec tunnel",
                                         "ipsec user",
                                         "key agreement",
                                         "key encipherment",
                                         "microsoft sgc",
                                         "netscape sgc",
                                         "ocsp signing",
                                         "s/mime",
                                         "server auth",
                                         "signing",
                                         "timestamping",
                                         NULL };
    struct seen seen = seen_new(errors->arena, 1);
    if (!json_len(usages))
        field_required(errors, up, "");
    for (uint32_t i = 0; i < json_len(usages); i++) {
        if (!format_is_one_of(json_text(usages->items[i]), known))
            field_not_supported(errors, AT_INDEX(up, i), usages->items[i], known);
        if (seen_value(&seen, usages->items[i], i))
            field_duplicate(errors, AT_INDEX(up, i), usages->items[i]);
    }
}

/* "example.com/signer-name" */
static void check_signer(const struct json *signer, const struct field_path *at,
                         struct field_errors *errors)
{
    str name = json_text(signer);
    size_t slash = str_find_char(name, '/');
    if (!name.n)
        field_required(errors, at, "");
    else if (slash == SIZE_MAX || slash == 0 || slash + 1 == name.n ||
             str_find_char(str_upto(name, slash), '.') == SIZE_MAX)
        field_invalid(errors, at, signer,
                      "must be a fully qualified domain and path of the form "
                      "'example.com/signer-name'");
    else if (format_dns_subdomain(str_upto(name, slash)))
        field_invalid(errors, at, signer, "%s", format_dns_subdomain(str_upto(name, slash)));
    else if (str_eqc(name, "kubernetes.io/legacy-unknown"))
        field_invalid(errors, at, signer,
                      "the legacy signerName is not allowed via this API version");
}

/* Whether there is a condition of the type, whatever its status. */
static bool has_condition(const struct json *list, str type)
{
    for (uint32_t i = 0; i < json_len(list); i++)
        if (str_eq(json_text(json_get(list->items[i], "type")), type))
            return true;
    return false;
}

/* Conditions are never removed, and a request is not both approved and denied. */
static void check_conditions(const struct kind_change *c, struct field_errors *errors)
{
    struct field_path at = { AT(NULL, "status"), .key = S("conditions") };
    const struct json *now = json_at(c->object, "status", "conditions", NULL);
    const struct json *was = json_at(c->old, "status", "conditions", NULL);
    struct seen types = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(now); i++) {
        const struct json *type = json_get(now->items[i], "type");
        if (!json_text(type).n)
            field_required(errors, AT(AT_INDEX(&at, i), "type"), "");
        else if (seen_value(&types, type, i))
            field_duplicate(errors, AT(AT_INDEX(&at, i), "type"), type);
        bool denied = str_eqc(json_text(type), "Denied");
        if (denied && has_condition(now, S("Approved")))
            field_invalid(errors, &at, type,
                          "Approved and Denied conditions are mutually exclusive");
        const struct json *status = json_get(now->items[i], "status");
        if (is_decision(now->items[i]) && !str_eqc(json_text(status), "True"))
            field_not_supported(errors, AT(AT_INDEX(&at, i), "status"), status,
                                (const char *const[]){ "True", NULL });
    }
    for (uint32_t i = 0; i < json_len(was); i++) {
        str type = json_text(json_get(was->items[i], "type"));
        if (!has_condition(now, type))
            field_forbidden(errors, &at,
                            "updates may not remove a condition of type \"" STR_FMT "\"",
                            STR_ARG(type));
    }
}

/* The spec of a new request, and the conditions of every write. */
static void validate_csr(const struct kind_change *c, struct kind_env *env UNUSED,
                         struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("spec") };
    const struct json *spec = json_get(c->object, "spec");
    const struct json *life = json_get(spec, "expirationSeconds");
    if (!c->old) {
        check_request(spec, &at, errors);
        check_usages(json_get(spec, "usages"), AT(&at, "usages"), errors);
        check_signer(json_get(spec, "signerName"), AT(&at, "signerName"), errors);
        if (life && life->integer < 600)
            field_invalid(errors, AT(&at, "expirationSeconds"), life,
                          "may not specify a duration less than 600 seconds (10 minutes)");
    }
    check_conditions(c, errors);
}

const struct kind_hooks kind_hooks_csr = { .prepare = prepare_csr, .validate = validate_csr };
