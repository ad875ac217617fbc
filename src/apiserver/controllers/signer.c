/* Signs approved certificate requests with the authority of the server, for the signers of Kubernetes:
 *
 *     kubernetes.io/kube-apiserver-client            users; never in the group system:masters
 *     kubernetes.io/kube-apiserver-client-kubelet    kubelets: group system:nodes, name system:node:...
 *     kubernetes.io/kubelet-serving                  servers of kubelets, with the same subject
 *
 * A request that does not fit its signer gets the condition Failed. Requests for other signers stay as they are: the program that
 * runs such a signer watches them. A request of which the server signs nothing twice: one with a certificate is done. */
#include "controllers.h"

#include "../../base/base64.h"
#include "../../net/cert.h"
#include "../http/managed.h"
#include "../http/write.h"

#define GROUP "certificates.k8s.io"

enum { SECONDS_DEFAULT = 365 * 24 * 3600 };

/* Every change of a request is looked at again: the approval is one. */
static void signer_on_event(struct server *s, const struct event *e)
{
    struct store_key_parts parts = store_key_split(object_key(e->now));
    if (e->now->deleted || !str_eq(parts.group, S(GROUP)) || !s->issuer)
        return;
    char *kept = mem_dup(object_key(e->now).p, object_key(e->now).n);
    vec_push(&s->changed_requests, kept);
    server_reconcile_soon(s);
}

/* Whether there is a condition of the type. */
static bool has_condition(const struct json *conditions, const char *type)
{
    for (size_t i = 0; i < json_len(conditions); i++)
        if (str_eqc(json_text(json_get(json_item(conditions, i), "type")), type))
            return true;
    return false;
}

/* Whether the subject is in the group. */
static bool has_organization(const struct cert_subject *s, const char *name)
{
    for (size_t i = 0; i < s->n_organizations; i++)
        if (strcmp(s->organizations[i], name) == 0)
            return true;
    return false;
}

/* Why the signer refuses the request; NULL: it does not, or it is not one of ours (`ret_known`). */
static const char *check_signer(str signer, const struct cert_subject *subject,
                                const struct json *usages, bool *ret_known)
{
    bool user = str_eqc(signer, "kubernetes.io/kube-apiserver-client");
    bool kubelet = str_eqc(signer, "kubernetes.io/kube-apiserver-client-kubelet");
    bool serving = str_eqc(signer, "kubernetes.io/kubelet-serving");
    const char *wanted = serving ? "server auth" : "client auth";
    bool found = false;
    *ret_known = user || kubelet || serving;
    for (size_t i = 0; i < json_len(usages); i++) {
        str usage = json_text(json_item(usages, i));
        if (str_eqc(usage, wanted))
            found = true;
        else if (!str_eqc(usage, "digital signature") && !str_eqc(usage, "key encipherment"))
            return "usages did not match";
    }
    if (!found)
        return "usages did not match";
    if (user && has_organization(subject, "system:masters"))
        return "group system:masters is not allowed";
    if ((kubelet || serving) &&
        (subject->n_organizations != 1 || !has_organization(subject, "system:nodes") ||
         strncmp(subject->common_name, "system:node:", 12) != 0))
        return "subject is not that of a node";
    return NULL;
}

/* The request stays as it is; its owner creates another one. */
static void add_failure(struct server *s, struct arena *a, struct json *status, const char *why)
{
    struct json *list = json_get(status, "conditions"), *condition = json_new_obj(a);
    json_set_str(a, condition, "type", S("Failed"));
    json_set_str(a, condition, "status", S("True"));
    json_set_str(a, condition, "reason", S("SignerValidationFailure"));
    json_set_str(a, condition, "message", str_c(why));
    json_set_str(a, condition, "lastUpdateTime", server_time(s, a));
    json_set_str(a, condition, "lastTransitionTime", server_time(s, a));
    json_push(a, list, condition);
}

/* Sets the certificate of the status. False: the request cannot be read. */
static bool sign(struct server *s, struct arena *a, const struct json *spec, struct json *status,
                 str pem)
{
    const struct json *list = json_get(spec, "usages");
    str *usages = arena_array(a, json_len(list), sizeof(*usages));
    for (size_t i = 0; i < json_len(list); i++)
        usages[i] = json_text(json_item(list, i));
    struct cert_signing signing = { .request = pem,
                                    .usages = usages,
                                    .n_usages = json_len(list),
                                    .now_ns = server_now_ns(s),
                                    .seconds = json_int(json_get(spec, "expirationSeconds"),
                                                        SECONDS_DEFAULT),
                                    .issuer = s->issuer };
    auto_buf struct buf cert = { 0 }, text = { 0 };
    signing.seconds = MIN(signing.seconds, (int64_t)SECONDS_DEFAULT);
    if (cert_sign(&signing, &cert, NULL) < 0)
        return false;
    base64_encode(&text, buf_str(&cert));
    json_set_str(a, status, "certificate", arena_str(a, buf_str(&text)));
    return true;
}

/* Nothing to do for requests that are not approved, have failed, or have their certificate. */
static bool sign_request(struct server *s, str key)
{
    auto_arena struct arena a = { 0 };
    const struct kind *k;
    struct json *tree = store_latest(s->store, key) ? write_begin_edit(s, &a, key, &k) : NULL;
    const struct json *spec = json_get(tree, "spec");
    const struct json *conditions = json_at(tree, "status", "conditions", NULL);
    auto_buf struct buf pem = { 0 };
    struct cert_subject subject = { 0 };
    bool known = false;
    if (!tree || !has_condition(conditions, "Approved") || has_condition(conditions, "Failed") ||
        json_text(json_at(tree, "status", "certificate", NULL)).n ||
        base64_decode(&pem, json_text(json_get(spec, "request"))) < 0 ||
        cert_check_request(buf_str(&pem), &subject, NULL) < 0)
        return false;
    struct json *was = json_copy(&a, tree), *status = json_make(&a, tree, "status", NULL);
    const char *why = check_signer(json_text(json_get(spec, "signerName")), &subject,
                                   json_get(spec, "usages"), &known);
    cert_subject_done(&subject);
    if (!known)
        return false;
    if (why || !sign(s, &a, spec, status, buf_str(&pem)))
        add_failure(s, &a, status, why ? why : "request cannot be signed");
    managed_update_as(s, &a, k,
                      &(struct managed_change){ S("kube-controller-manager"), KIND_STATUS, was,
                                                tree });
    return write_end_edit(s, &a, k, key, tree);
}

/* Each queued request once. */
static bool signer_reconcile(struct server *s)
{
    bool worked = false;
    for (size_t i = 0; i < s->changed_requests.n; i++) {
        worked |= sign_request(s, str_c(s->changed_requests.at[i]));
        free(s->changed_requests.at[i]);
    }
    vec_clear(&s->changed_requests);
    return worked;
}

/* Frees the queue. */
static void signer_stop(struct server *s)
{
    for (size_t i = 0; i < s->changed_requests.n; i++)
        free(s->changed_requests.at[i]);
    vec_done(&s->changed_requests);
}

const struct server_controller signer_controller = { .stop = signer_stop,
                                                     .on_load = signer_on_event,
                                                     .on_event = signer_on_event,
                                                     .reconcile = signer_reconcile };
