/* flyball explain aimservice, aimmodel and aimtemplate: which model and template a service uses
 * and why, and what a model or a template still needs to be ready.
 *
 * The decisions are those of the operator (template_select, model_state, template_state), fed
 * with objects that are fetched here. Objects may be in the namespace or in the cluster, and in
 * either of AIM's two API groups, so each lookup tries several places; a kind that is not
 * installed counts as empty. */
#include "../runtimeconfig/model_core.h"
#include "../runtimeconfig/names_core.h"
#include "../runtimeconfig/service_children_core.h"
#include "../runtimeconfig/service_world.h"
#include "../runtimeconfig/status_core.h"
#include "../runtimeconfig/template_core.h"
#include "explain_aim.h"

static str meta_text(const struct json *object, const char *key)
{
    return json_text(json_at(object, "metadata", key, NULL));
}

static str status_word(const struct json *object)
{
    str word = json_text(json_at(object, "status", "status", NULL));
    return word.n ? word : S("not evaluated yet");
}

/* NULL: there is no such object, or its kind is not installed; both are part of the answer, not errors. */
static int get_optional(struct explain *x, const struct resource *resource, str ns, str name,
                        struct json **ret, err_t *e)
{
    *ret = NULL;
    int r = explain_get(x, resource, ns, name, ret, e);
    return r == -ENOENT ? 0 : r;
}

/* Looks in the namespace, then in the cluster; the cluster's kind follows `ns_kind` in the enum. */
static int find_scoped(struct explain *x, const struct aim_kinds *kinds, enum aim_kind ns_kind,
                       str name, struct json **ret, err_t *e)
{
    int r = get_optional(x, &kinds->at[ns_kind], x->ns, name, ret, e);
    return r < 0 || *ret ? r : get_optional(x, &kinds->at[ns_kind + 1], S(""), name, ret, e);
}

/* Appends all objects of a kind to the list; none if the kind is not installed. */
static int list_into(struct explain *x, const struct resource *resource, str ns, struct json *list,
                     err_t *e)
{
    struct json *answer;
    int r = get_optional(x, resource, ns, S(""), &answer, e);
    const struct json *items = json_get(answer, "items");
    for (size_t i = 0; r == 0 && i < json_len(items); i++)
        json_push(&x->arena, list, json_item(items, i));
    return r;
}

/* Collects the GPU models of all nodes from their labels. */
static int list_gpus(struct explain *x, struct json **ret, err_t *e)
{
    struct json *nodes = json_new_arr(&x->arena);
    int r = list_into(x, &resource_nodes, S(""), nodes, e);
    if (r < 0)
        return r;
    *ret = json_new_arr(&x->arena);
    for (size_t i = 0; i < nodes->n; i++)
        aim_template_gpus_of_node(&x->arena, json_at(nodes->items[i], "metadata", "labels", NULL),
                                  *ret);
    return 0;
}

/* All conditions in the order of the status, one per line. */
void explain_conditions(struct explain *x, const struct json *status)
{
    const struct json *list = json_get(status, "conditions");
    if (json_len(list))
        buf_put(&x->out, S("\nConditions:\n"));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *one = json_item(list, i);
        buf_printf(&x->out, "  %-17s %-7s %s: %s\n", json_text(json_get(one, "type")).p,
                   json_text(json_get(one, "status")).p, json_text(json_get(one, "reason")).p,
                   json_text(json_get(one, "message")).p);
    }
}

/* ---- services */

/* Finds the model by reference, or else by image. */
static int find_model(struct explain *x, const struct aim_kinds *kinds, const struct json *service,
                      struct json **ret, err_t *e)
{
    str name = aim_service_model_ref(service), image = aim_service_model_image(service);
    *ret = NULL;
    if (name.n)
        return find_scoped(x, kinds, AIM_MODEL, name, ret, e);
    struct json *models = json_new_arr(&x->arena);
    int r = list_into(x, &kinds->at[AIM_MODEL], x->ns, models, e);
    r = r < 0 ? r : list_into(x, &kinds->at[AIM_CLUSTER_MODEL], S(""), models, e);
    for (size_t i = 0; r == 0 && i < models->n && !*ret; i++)
        if (str_eq(json_text(json_at(models->items[i], "spec", "image", NULL)), image))
            *ret = models->items[i];
    return r;
}

/* The service names no template: shows which one the operator selects, and why not the others. */
static int put_selection(struct explain *x, const struct aim_kinds *kinds, str model, err_t *e)
{
    struct json *templates = json_new_arr(&x->arena), *gpus;
    int r = list_into(x, &kinds->at[AIM_TEMPLATE], x->ns, templates, e);
    r = r < 0 ? r : list_into(x, &kinds->at[AIM_CLUSTER_TEMPLATE], S(""), templates, e);
    r = r < 0 ? r : list_gpus(x, &gpus, e);
    if (r < 0)
        return r;
    struct aim_template_candidate *at = arena_array(&x->arena, templates->n + 1, sizeof(*at));
    size_t n = 0;
    for (size_t i = 0; i < templates->n; i++)
        if (str_eq(json_text(json_at(templates->items[i], "spec", "modelName", NULL)), model)) {
            at[n] = aim_template_candidate_of(&x->arena, kinds->group, templates->items[i]);
            aim_template_check_memory(&x->arena, &at[n++], templates->items[i], gpus);
        }
    struct aim_template_selection s = aim_template_select(&x->arena, model, at, n, gpus);
    if (s.chosen)
        buf_printf(&x->out, "  runs with      " STR_FMT ", the best of the model's templates\n",
                   STR_ARG(s.chosen->name));
    else
        buf_printf(&x->out, "  runs with      no template: %s: " STR_FMT "\n", s.reason,
                   STR_ARG(s.message));
    aim_template_report(&x->out, &s, at, n, gpus);
    return 0;
}

/* Shows the template that the service names, or how one is selected. */
static int put_template(struct explain *x, const struct aim_kinds *kinds,
                        const struct json *service, const struct json *model, err_t *e)
{
    str name = aim_service_template_ref(service);
    struct json *template;
    if (!name.n)
        return model ? put_selection(x, kinds, meta_text(model, "name"), e) : 0;
    int r = find_scoped(x, kinds, AIM_TEMPLATE, name, &template, e);
    if (r < 0)
        return r;
    if (template)
        buf_printf(&x->out,
                   "  runs with      " STR_FMT " " STR_FMT ", named by the service; it is " STR_FMT
                   "\n",
                   STR_ARG(json_text(json_get(template, "kind"))), STR_ARG(name),
                   STR_ARG(status_word(template)));
    else
        buf_printf(&x->out,
                   "  runs with      nothing: template " STR_FMT " of the service does not exist\n",
                   STR_ARG(name));
    return 0;
}

/* Where the model's files are kept, resolved as the operator does: service, then configuration, then
 * default. */
static void put_storage(struct explain *x, const struct json *service,
                        const struct runtimeconfig_spec *config)
{
    struct runtimeconfig_spec own = runtimeconfig_spec_read(json_get(service, "spec"), false);
    struct aim_service_basis b = { .service = service, .config = config, .own = &own };
    str class = aim_service_storage_class(&b);
    buf_printf(&x->out, "  storage        %s, class " STR_FMT ", %lld %% headroom\n",
               aim_service_wants_cache(service) ? "template cache" : "separate volume",
               STR_ARG(class.n ? class : S("default")), (long long)aim_service_headroom(&b));
}

/* A field of a condition in the status; empty if there is no such condition. */
static str condition_text(const struct json *service, const char *type, const char *key)
{
    return json_text(json_get(aim_status_find(json_get(service, "status"), type), key));
}

/* What the operator keeps although something is wrong, and why; as in service_plan_core.c, but read from the conditions. */
static void put_kept(struct explain *x, const struct json *service, const struct json *runtime)
{
    str reason = condition_text(service, "Ready", "reason");
    str said = condition_text(service, "RuntimeReady", "message");
    str serves = json_text(json_at(runtime, "spec", "predictor", "model", "runtime", NULL));
    str resolved = json_text(json_at(service, "status", "resolvedTemplate", "name", NULL));
    bool all = str_eqc(condition_text(service, "Resolved", "status"), "False") ||
               str_eqc(condition_text(service, "ConfigResolved", "status"), "False") ||
               str_starts(said, S("Cannot ")) || str_starts(said, S("Template ")) ||
               str_eqc(reason, "PVCLost") || str_eqc(reason, "ServerUnavailable");
    bool volumes = str_eqc(reason, "WaitingForCache") || str_eqc(reason, "CacheWarming") ||
                   str_eqc(reason, "CacheFailed");
    if (!runtime)
        return;
    if (serves.n && !str_eq(serves, resolved))
        buf_printf(&x->out, "                 it was made from template " STR_FMT "\n",
                   STR_ARG(serves));
    if (all || volumes)
        buf_printf(&x->out, "                 %s as it is: " STR_FMT ": " STR_FMT "\n",
                   all ? "kept" : "its storage is kept", STR_ARG(reason),
                   STR_ARG(condition_text(service, "Ready", "message")));
}

/* The InferenceService of the service, and what is kept of it. */
static int put_runtime(struct explain *x, const struct json *service, err_t *e)
{
    str name = aim_names_inference_service(&x->arena, x->name, x->ns);
    struct json *runtime;
    int r = get_optional(x, &aim_resource_inference_services, x->ns, name, &runtime, e);
    if (r < 0)
        return r;
    const struct json *list = json_at(runtime, "status", "conditions", NULL);
    bool ready = false;
    for (size_t i = 0; i < json_len(list); i++)
        ready = ready || (str_eqc(json_text(json_get(json_item(list, i), "type")), "Ready") &&
                          str_eqc(json_text(json_get(json_item(list, i), "status")), "True"));
    str failure =
        json_text(json_at(runtime, "status", "modelStatus", "lastFailureInfo", "message", NULL));
    buf_printf(&x->out, "  runtime        InferenceService " STR_FMT " %s%s" STR_FMT "\n",
               STR_ARG(name),
               !runtime ? "does not exist"
               : ready  ? "is ready"
                        : "is not ready",
               failure.n ? ": " : "", STR_ARG(failure));
    put_kept(x, service, runtime);
    return 0;
}

int explain_service_basis(struct explain *x, const struct aim_kinds *kinds,
                          const struct json *service, const struct runtimeconfig_spec *config,
                          err_t *e)
{
    struct json *model;
    int r = find_model(x, kinds, service, &model, e);
    if (r < 0)
        return r;
    if (model)
        buf_printf(&x->out, "  model          " STR_FMT " " STR_FMT " is " STR_FMT "\n",
                   STR_ARG(json_text(json_get(model, "kind"))), STR_ARG(meta_text(model, "name")),
                   STR_ARG(status_word(model)));
    else
        buf_put(&x->out, S("  model          does not exist\n"));
    r = put_template(x, kinds, service, model, e);
    put_storage(x, service, config);
    return r < 0 ? r : put_runtime(x, service, e);
}

/* ---- models and templates */

/* Tries both API groups of AIM and both scopes. */
static int find_any(struct explain *x, enum aim_kind ns_kind, const struct aim_kinds **ret_kinds,
                    struct json **ret, err_t *e)
{
    static const char *const groups[] = { AIM_GROUP, AIM_GROUP_NEWER };
    for (size_t i = 0; i < countof(groups); i++) {
        *ret_kinds = aim_kinds(groups[i]);
        int r = find_scoped(x, *ret_kinds, ns_kind, x->name, ret, e);
        if (r < 0 || *ret)
            return r;
    }
    return err_set(e, ENOENT, "neither %s " STR_FMT "/" STR_FMT " nor %s " STR_FMT " found",
                   aim_kinds(AIM_GROUP)->at[ns_kind].kind, STR_ARG(x->ns), STR_ARG(x->name),
                   aim_kinds(AIM_GROUP)->at[ns_kind + 1].kind, STR_ARG(x->name));
}

/* Fetches the configuration that the status of the object refers to; empty if there is none. */
static int get_config(struct explain *x, const struct aim_kinds *kinds, const struct json *object,
                      struct runtimeconfig_spec *ret, err_t *e)
{
    const struct json *effective = json_at(object, "status", "effectiveRuntimeConfig", NULL);
    const struct json *in_ns = json_get(effective, "namespaceRef");
    const struct json *ref = in_ns ? in_ns : json_get(effective, "clusterRef");
    struct json *config = NULL;
    int r = ref ? get_optional(x, &kinds->at[in_ns ? AIM_CONFIG : AIM_CLUSTER_CONFIG],
                               json_text(json_get(ref, "namespace")),
                               json_text(json_get(ref, "name")), &config, e)
                : 0;
    *ret = runtimeconfig_spec_read(json_get(config, "spec"), !in_ns);
    return r;
}

/* Did the operator fail to resolve the configuration? Then `ret_message` is its reason. */
static bool lacks_config(const struct json *object, str *ret_message)
{
    const struct json *list = json_at(object, "status", "conditions", NULL);
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *c = json_item(list, i);
        if (str_eqc(json_text(json_get(c, "type")), "ConfigResolved")) {
            *ret_message = json_text(json_get(c, "message"));
            return str_eqc(json_text(json_get(c, "status")), "False");
        }
    }
    return false;
}

void explain_title(struct explain *x, const struct json *object)
{
    str ns = meta_text(object, "namespace");
    buf_printf(&x->out, STR_FMT " " STR_FMT "%s" STR_FMT "\n",
               STR_ARG(json_text(json_get(object, "kind"))), STR_ARG(ns), ns.n ? "/" : "",
               STR_ARG(meta_text(object, "name")));
}

/* Shows the templates of a model, and the state that follows from them. */
static int explain_model(struct explain *x, err_t *e)
{
    const struct aim_kinds *kinds;
    struct json *model, *templates = json_new_arr(&x->arena);
    struct runtimeconfig_spec config = { 0 };
    int r = find_any(x, AIM_MODEL, &kinds, &model, e);
    if (r < 0)
        return r;
    str ns = meta_text(model, "namespace");
    r = get_config(x, kinds, model, &config, e);
    r = r < 0 ? r : list_into(x, &kinds->at[AIM_TEMPLATE], ns, templates, e);
    if (r == 0 && !ns.n)
        r = list_into(x, &kinds->at[AIM_CLUSTER_TEMPLATE], S(""), templates, e);
    if (r < 0)
        return r;
    struct aim_model_facts f = { .object = model, .config = &config };
    f.config_missing = lacks_config(model, &f.config_message);
    str made_key = aim_names_label_key(&x->arena, kinds->group, "auto-generated");
    explain_title(x, model);
    buf_printf(&x->out, "  image          " STR_FMT "\n",
               STR_ARG(json_text(json_at(model, "spec", "image", NULL))));
    for (size_t i = 0; i < templates->n; i++) {
        const struct json *t = templates->items[i];
        if (!str_eq(json_text(json_at(t, "spec", "modelName", NULL)), x->name))
            continue;
        bool made = json_get_str(json_at(t, "metadata", "labels", NULL), made_key) != NULL;
        aim_model_count_template(&x->arena, made ? &f.made : &f.other, meta_text(t, "name"),
                                 json_text(json_at(t, "status", "status", NULL)));
        buf_printf(&x->out, "  template       " STR_FMT " is " STR_FMT "%s\n",
                   STR_ARG(meta_text(t, "name")), STR_ARG(status_word(t)),
                   made ? ", created from the image's recommendations" : "");
    }
    struct aim_model_state state = aim_model_state(&x->arena, &f);
    buf_printf(&x->out, "  metadata       " STR_FMT "\n  therefore      %s, %s: " STR_FMT "\n",
               STR_ARG(state.extracted_message), state.status, state.reason,
               STR_ARG(state.message));
    explain_conditions(x, json_get(model, "status"));
    return 0;
}

/* Shows the model and the GPUs that a template needs, and the state that follows. */
static int explain_template(struct explain *x, err_t *e)
{
    const struct aim_kinds *kinds;
    struct json *template, *model, *gpus;
    int r = find_any(x, AIM_TEMPLATE, &kinds, &template, e);
    if (r < 0)
        return r;
    str name = json_text(json_at(template, "spec", "modelName", NULL));
    r = find_scoped(x, kinds, AIM_MODEL, name, &model, e);
    r = r < 0 ? r : list_gpus(x, &gpus, e);
    if (r < 0)
        return r;
    struct aim_template_facts f = { .object = template, .model = model, .gpus = gpus };
    f.config_missing = lacks_config(template, &f.config_message);
    struct aim_template_state state = aim_template_state(&x->arena, &f);
    str gpu = aim_template_gpu_model(json_get(template, "spec"));
    explain_title(x, template);
    buf_printf(&x->out, "  model          " STR_FMT "%s\n", STR_ARG(name),
               model ? "" : ", which does not exist");
    if (gpu.n)
        buf_printf(&x->out, "  GPU            " STR_FMT ": %s\n", STR_ARG(gpu),
                   aim_template_has_gpu(gpus, gpu) ? "a node has it" : "no node has it");
    buf_printf(&x->out, "  therefore      %s, %s: " STR_FMT "\n", state.status, state.reason,
               STR_ARG(state.message));
    explain_conditions(x, json_get(template, "status"));
    return 0;
}

static const char *const model_words[] = {
    "aimmodel", "aimmdl", "aimmodels", "aimclustermodel", "aimclustermodels", "aimclmdl", NULL
};
static const char *const template_words[] = { "aimtemplate",
                                              "aimservicetemplate",
                                              "aimservicetemplates",
                                              "aimclusterservicetemplate",
                                              "aimclusterservicetemplates",
                                              "aimst",
                                              "aimtpl",
                                              "aimclst",
                                              "aimcltpl",
                                              NULL };

const struct explainer explain_aimmodel = {
    .words = model_words,
    .help = "what is known about an AIMModel, and what it is waiting for",
    .run = explain_model,
};

const struct explainer explain_aimtemplate = {
    .words = template_words,
    .help = "what an AIMServiceTemplate is waiting for",
    .run = explain_template,
};
