/* flyball explain aimservice: which runtime configuration applies to an AIMService and why, how
 * its path is built, and its status.
 *
 * The configuration is resolved with the controller's own function from up to three objects:
 * that of the namespace, that of the cluster, and the default of the cluster. If the result
 * differs from the published hash, the operator is behind or not running. */
#include "../runtimeconfig/runtimeconfig_report_core.h"
#include "explain_aim.h"

/* Fetches an object that may be missing. */
static int get_optional(struct explain *x, const struct resource *resource, str ns, str name,
                        struct json **ret, err_t *e)
{
    int r = explain_get(x, resource, ns, name, ret, e);
    return r == -ENOENT ? 0 : r;
}

/* Tries both API groups of AIM: a cluster may have either. */
static int find_service(struct explain *x, const struct aim_kinds **ret_kinds, struct json **ret,
                        err_t *e)
{
    *ret_kinds = aim_kinds(AIM_GROUP);
    int r = explain_get(x, &(*ret_kinds)->at[AIM_SERVICE], x->ns, x->name, ret, e);
    if (r != -ENOENT)
        return r;
    err_t ignored;
    const struct aim_kinds *newer = aim_kinds(AIM_GROUP_NEWER);
    if (explain_get(x, &newer->at[AIM_SERVICE], x->ns, x->name, ret, &ignored) < 0)
        return r;
    *ret_kinds = newer;
    return 0;
}

/* Compares what the operator published with what follows from the present objects. */
static void put_published(struct explain *x, const struct json *status,
                          const struct runtimeconfig_answer *answer)
{
    str hash = json_text(json_at(status, "effectiveRuntimeConfig", "hash", NULL));
    str path = json_text(json_at(status, "routing", "path", NULL));
    str url = json_text(json_at(status, "routing", "url", NULL));
    if (!str_eqc(hash, answer->config.hash))
        buf_put(&x->out,
                S("  published      a different configuration: the operator has not processed "
                  "this one yet, or is not running\n"));
    if (path.n)
        buf_printf(&x->out, "  published      path " STR_FMT "%s" STR_FMT "\n", STR_ARG(path),
                   url.n ? ", reached at " : "", STR_ARG(url));
}

/* Resolves the configuration as the controller does, and compares it with the published one. */
static int explain_service(struct explain *x, err_t *e)
{
    const struct aim_kinds *kinds;
    struct json *service = NULL, *in_ns = NULL, *in_cluster = NULL, *fallback = NULL;
    int r = find_service(x, &kinds, &service, e);
    if (r < 0)
        return r;
    str name = json_text(json_at(service, "spec", "runtimeConfigName", NULL));
    name = name.n ? name : S(RUNTIMECONFIG_DEFAULT);
    const struct resource *cluster = &kinds->at[AIM_CLUSTER_CONFIG];
    r = get_optional(x, &kinds->at[AIM_CONFIG], x->ns, name, &in_ns, e);
    r = r < 0 ? r : get_optional(x, cluster, S(""), name, &in_cluster, e);
    r = r < 0 ? r : get_optional(x, cluster, S(""), S(RUNTIMECONFIG_DEFAULT), &fallback, e);
    if (r < 0)
        return r;
    struct runtimeconfig_case c = { .group = kinds->group,
                                    .service = service,
                                    .in_namespace = in_ns,
                                    .in_cluster = in_cluster,
                                    .cluster_default = fallback };
    struct runtimeconfig_answer answer = runtimeconfig_answer(&x->arena, &c);
    runtimeconfig_report(&x->out, &c, &answer, true);
    put_published(x, json_get(service, "status"), &answer);
    buf_done(&answer.trace);
    r = explain_service_basis(x, kinds, service, &answer.settings, e);
    explain_conditions(x, json_get(service, "status"));
    return r;
}

static const char *const words[] = { "aimsvc", "aimservice", "aimservices", NULL };

const struct explainer explain_runtimeconfig = {
    .words = words,
    .help = "which runtime configuration applies to an AIMService, and how its path is built",
    .run = explain_service,
};
