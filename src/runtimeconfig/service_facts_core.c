/* Facts that the status of a service is computed from: why a pod cannot pull its image, and which template is in use.
 *
 * The kubelet reports a pull error as free text. The remedies differ (credentials, the image's name, the network), so the
 * text is classified by the words that registries and container runtimes use; the lists are those of the original. */
#include "service_status_core.h"

#include "names_core.h"

const char *aim_service_condition_name(enum aim_service_condition_type type)
{
    static const char *const names[SERVICE_CONDITION_N] = { "Resolved",     "CacheReady",
                                                            "RuntimeReady", "RoutingReady",
                                                            "Ready",        "Progressing",
                                                            "Failure",      "Serving" };
    return names[type];
}

/* ---- image pull errors */

enum aim_service_pull_kind aim_service_pull_kind(str word)
{
    return str_eqc(word, "auth")                                     ? SERVICE_PULL_AUTH
           : str_eqc(word, "not-found") || str_eqc(word, "notfound") ? SERVICE_PULL_MISSING
                                                                     : SERVICE_PULL_OTHER;
}

/* Does the text contain one of these phrases, in any case? */
static bool has_any(str text, const char *const *needles)
{
    for (; *needles; needles++)
        for (size_t i = 0, n = strlen(*needles); i + n <= text.n; i++)
            if (str_eq_nocase((str){ text.p + i, n }, str_c(*needles)))
                return true;
    return false;
}

enum aim_service_pull_kind aim_service_pull_cause(str message)
{
    static const char *const auth[] = { "unauthorized", "authentication", "401",         "403",
                                        "forbidden",    "denied",         "credentials", NULL };
    static const char *const missing[] = { "not found",    "404",     "manifest unknown",
                                           "name unknown", "no such", NULL };
    return has_any(message, auth)      ? SERVICE_PULL_AUTH
           : has_any(message, missing) ? SERVICE_PULL_MISSING
                                       : SERVICE_PULL_OTHER;
}

void aim_service_set_pull_error(struct arena *a, struct aim_service_runtime_fact *r,
                                const struct aim_service_pull_error *error)
{
    r->pull_reason = error->kind == SERVICE_PULL_AUTH      ? S("ImagePullAuthFailure")
                     : error->kind == SERVICE_PULL_MISSING ? S("ImageNotFound")
                                                           : S("ImagePullBackOff");
    r->pull_message =
        arena_printf(a, "InferenceService pod %s " STR_FMT " is stuck in " STR_FMT ": " STR_FMT,
                     error->init ? "Init container" : "Container",
                     STR_ARG(aim_names_quote(a, error->container)), STR_ARG(error->reason),
                     STR_ARG(error->message));
}

/* The scope is Unknown while the named template does not exist, as in the original. */
struct json *aim_service_resolved_template(struct arena *a,
                                           const struct aim_service_template_fact *t)
{
    if (!t->name.n)
        return NULL;
    struct json *ref = json_new_obj(a);
    bool cluster = t->found && !t->ns.n;
    json_set_str(a, ref, "name", t->name);
    if (t->found && t->ns.n)
        json_set_str(a, ref, "namespace", t->ns);
    json_set_str(a, ref, "scope",
                 !t->found ? S("Unknown")
                 : cluster ? S("Cluster")
                           : S("Namespace"));
    json_set_str(a, ref, "kind",
                 cluster ? S("AIMClusterServiceTemplate") : S("AIMServiceTemplate"));
    if (t->uid.n)
        json_set_str(a, ref, "uid", t->uid);
    return ref;
}
