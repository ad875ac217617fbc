/* Reads the pull secrets of one object, one request at a time: see pull_secrets.h.
 *
 *     service account, if any --> secrets that the object names, then those of the account --> done()
 *
 * A secret that the object names must exist; one of the service account may be gone, as for the kubelet. Nothing is
 * cached or watched: the operator may read secrets only where a namespace granted it, and by name. Secrets are in the
 * caller's arena, and `done` is called exactly once, unless the read is canceled. */
#include "pull_secrets.h"

#include "../base/base64.h"
#include "names_core.h"

static void read_next(struct aim_pull_secrets *s);

/* The one key of a pull secret, decoded; secrets of other types are ignored, as the kubelet does. */
static void take_secret(struct aim_pull_secrets *s, const struct json *secret)
{
    auto_buf struct buf plain = { 0 };
    str type = json_text(json_get(secret, "type"));
    const char *key = str_eqc(type, "kubernetes.io/dockerconfigjson") ? ".dockerconfigjson"
                      : str_eqc(type, "kubernetes.io/dockercfg")      ? ".dockercfg"
                                                                      : NULL;
    if (!key || base64_decode(&plain, json_text(json_at(secret, "data", key, NULL))) < 0)
        return;
    s->found[s->found_n++] =
        (struct registry_secret){ arena_str(s->arena, type), arena_str(s->arena, buf_str(&plain)) };
}

/* The message names the secret and its namespace, never its content. */
static void fail_on(struct aim_pull_secrets *s, const char *reason, const char *what, str name,
                    const char *advice)
{
    s->done(s->context, reason,
            arena_printf(s->arena, "imagePullSecret " STR_FMT " %s in namespace " STR_FMT "%s",
                         STR_ARG(aim_names_quote(s->arena, name)), what,
                         STR_ARG(aim_names_quote(s->arena, s->ns)), advice));
}

/* Only failures that a user can correct have a reason of their own; the others are retried. */
static void on_secret(void *context, const struct kube_reply *reply)
{
    struct aim_pull_secrets *s = context;
    bool own = s->name_at <= s->own_n;
    str name = s->names[s->name_at - 1];
    s->call = NULL;
    if (reply->reason == KUBE_NOT_FOUND && own) {
        fail_on(s, "SecretNotFound", "not found", name, "");
        return;
    }
    if (reply->reason == KUBE_FORBIDDEN) {
        fail_on(s, "SecretForbidden", "cannot be read", name,
                "; bind the ClusterRole flyball-pull-secrets to the operator there, or set "
                "spec.imageMetadata");
        return;
    }
    if (reply->failure && reply->reason != KUBE_NOT_FOUND) {
        s->done(s->context, "ServerUnavailable", str_c(reply->failure));
        return;
    }
    if (!reply->failure)
        take_secret(s, reply->object);
    read_next(s);
}

static void read_next(struct aim_pull_secrets *s)
{
    if (s->name_at == s->name_n) {
        s->done(s->context, NULL, S(""));
        return;
    }
    s->call = kube_send(s->kube, &(struct kube_request){ .verb = KUBE_GET,
                                                         .resource = &resource_secrets,
                                                         .ns = s->ns,
                                                         .name = s->names[s->name_at++],
                                                         .done = on_secret,
                                                         .context = s });
}

/* Each name once, in order; more than AIM_PULL_SECRETS_MAX are ignored. */
static void add_names(struct aim_pull_secrets *s, const struct json *list)
{
    for (size_t k = 0; k < json_len(list) && s->name_n < AIM_PULL_SECRETS_MAX; k++) {
        str name = json_text(json_get(json_item(list, k), "name"));
        bool known = !name.n;
        for (size_t n = 0; n < s->name_n; n++)
            known = known || str_eq(s->names[n], name);
        if (!known)
            s->names[s->name_n++] = arena_str(s->arena, name);
    }
}

/* An account that does not exist, or may not be read, adds no secrets. */
static void on_account(void *context, const struct kube_reply *reply)
{
    struct aim_pull_secrets *s = context;
    s->call = NULL;
    if (kube_is_server_failure(reply)) {
        s->done(s->context, "ServerUnavailable", str_c(reply->failure));
        return;
    }
    if (!reply->failure)
        add_names(s, json_get(reply->object, "imagePullSecrets"));
    read_next(s);
}

/* The account comes first: its secrets are asked after those that the object names. */
void aim_pull_secrets_read(struct aim_pull_secrets *s, const struct json *const *lists, size_t n)
{
    s->ns = arena_str(s->arena, s->ns);
    for (size_t i = 0; i < n; i++)
        add_names(s, lists[i]);
    s->own_n = s->name_n;
    if (!s->account.n) {
        read_next(s);
        return;
    }
    s->call = kube_send(s->kube, &(struct kube_request){ .verb = KUBE_GET,
                                                         .resource = &resource_service_accounts,
                                                         .ns = s->ns,
                                                         .name = arena_str(s->arena, s->account),
                                                         .done = on_account,
                                                         .context = s });
}

void aim_pull_secrets_cancel(struct aim_pull_secrets *s)
{
    kube_call_cancel(s->call);
    s->call = NULL;
}
