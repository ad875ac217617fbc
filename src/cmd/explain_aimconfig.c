/* flyball explain aimconfig and aimcache: which services a runtime configuration applies to and
 * which of them fail because of it, and what a cache is waiting for.
 *
 * Unlike the other explainers, these only show what the operator wrote into the status:
 * consumers of a configuration can be in namespaces that the user may not read. */
#include "explain_aim.h"

/* Looks in the namespace, then in the cluster, for both API groups of AIM. */
static int find_object(struct explain *x, enum aim_kind in_namespace, enum aim_kind elsewhere,
                       struct json **ret, err_t *e)
{
    static const char *const groups[] = { AIM_GROUP, AIM_GROUP_NEWER };
    for (size_t i = 0; i < countof(groups); i++) {
        const struct aim_kinds *kinds = aim_kinds(groups[i]);
        const struct resource *first = &kinds->at[in_namespace], *second = &kinds->at[elsewhere];
        int r = explain_get(x, first, x->ns, x->name, ret, e);
        if (r == -ENOENT)
            r = explain_get(x, second, second->namespaced ? x->ns : S(""), x->name, ret, e);
        if (r != -ENOENT)
            return r;
    }
    const struct aim_kinds *kinds = aim_kinds(AIM_GROUP);
    return err_set(e, ENOENT, "neither %s " STR_FMT "/" STR_FMT " nor %s " STR_FMT " found",
                   kinds->at[in_namespace].kind, STR_ARG(x->ns), STR_ARG(x->name),
                   kinds->at[elsewhere].kind, STR_ARG(x->name));
}

/* Shows how many objects use the configuration, by kind, and which of them fail. */
static void put_consumers(struct explain *x, const struct json *consumers)
{
    buf_printf(&x->out, "  governs        %lld consumers",
               (long long)json_int(json_get(consumers, "total"), 0));
    bool first = true;
    json_each(m, json_get(consumers, "byKind")) {
        buf_printf(&x->out, "%s" STR_FMT " %lld", first ? ": " : ", ", STR_ARG(m->key),
                   (long long)json_int(m->value, 0));
        first = false;
    }
    buf_putc(&x->out, '\n');
    const struct json *failing = json_get(consumers, "failingNames");
    for (size_t i = 0; i < json_len(failing); i++)
        buf_printf(&x->out, "  %-14s " STR_FMT " has no valid path\n", i ? "" : "fails",
                   STR_ARG(json_text(json_item(failing, i))));
}

/* Shows routing, hash and consumers of a runtime configuration. */
static int explain_config(struct explain *x, err_t *e)
{
    struct json *config;
    int r = find_object(x, AIM_CONFIG, AIM_CLUSTER_CONFIG, &config, e);
    if (r < 0)
        return r;
    const struct json *status = json_get(config, "status"),
                      *routing = json_at(config, "spec", "routing", NULL);
    str template = json_text(json_get(routing, "pathTemplate"));
    str gateway = json_text(json_at(routing, "gatewayRef", "name", NULL));
    explain_title(x, config);
    buf_printf(&x->out, "  hash           " STR_FMT "\n",
               STR_ARG(json_text(json_get(status, "hash"))));
    buf_printf(&x->out, "  routing        %s\n",
               json_bool(json_get(routing, "enabled"), false) ? "on"
                                                              : "off, unless a service enables it");
    if (template.n)
        buf_printf(&x->out, "  template       " STR_FMT "\n", STR_ARG(template));
    if (gateway.n)
        buf_printf(&x->out, "  gateway        " STR_FMT "\n", STR_ARG(gateway));
    put_consumers(x, json_get(status, "consumers"));
    explain_conditions(x, status);
    return 0;
}

/* Shows what a cache downloads, where to, and its status. */
static int explain_cache(struct explain *x, err_t *e)
{
    struct json *cache;
    int r = find_object(x, AIM_TEMPLATE_CACHE, AIM_MODEL_CACHE, &cache, e);
    if (r < 0)
        return r;
    const struct json *spec = json_get(cache, "spec"), *status = json_get(cache, "status");
    static const struct {
        const char *title, *field;
    } lines[] = { { "template", "templateRef" },
                  { "template", "templateName" },
                  { "source", "sourceUri" },
                  { "size", "size" },
                  { "storage class", "storageClassName" } };
    explain_title(x, cache);
    for (size_t i = 0; i < countof(lines); i++) {
        str value = json_text(json_get(spec, lines[i].field));
        if (value.n)
            buf_printf(&x->out, "  %-14s " STR_FMT "\n", lines[i].title, STR_ARG(value));
    }
    buf_printf(&x->out, "  therefore      " STR_FMT "\n",
               STR_ARG(json_text(json_get(status, "status"))));
    explain_conditions(x, status);
    return 0;
}

static const char *const config_words[] = { "aimconfig",
                                            "aimruntimeconfig",
                                            "aimruntimeconfigs",
                                            "aimrc",
                                            "aimclusterruntimeconfig",
                                            "aimclusterruntimeconfigs",
                                            "aimclrc",
                                            NULL };
static const char *const cache_words[] = { "aimcache",      "aimtemplatecache", "aimtemplatecaches",
                                           "aimmodelcache", "aimmodelcaches",   NULL };

const struct explainer explain_aimconfig = {
    .words = config_words,
    .help = "the services that an AIMRuntimeConfig applies to, and which fail because of it",
    .run = explain_config,
};
const struct explainer explain_aimcache = {
    .words = cache_words,
    .help = "what an AIMTemplateCache or AIMModelCache is waiting for",
    .run = explain_cache,
};
