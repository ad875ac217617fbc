/* Templates and status of models: see model_core.h.
 *
 *     imageMetadata.model.recommendedDeployments --> one template each --> their states decide the model's
 *     no metadata ------------------------------------> templates of users decide, whatever an inspection found
 *     discovery disabled -----------------------------> Ready
 *
 * Several fields have two names, of the two generations of AIM; the newer one takes precedence. */
#include "model_core.h"

#include "names_core.h"

void aim_model_count_template(struct aim_model_templates *counts, str word)
{
    if (str_eqc(word, "Ready"))
        counts->ready++;
    else if (str_eqc(word, "Degraded") || str_eqc(word, "Failed"))
        counts->bad++;
    else if (str_eqc(word, "NotAvailable"))
        counts->absent++;
    else
        counts->waiting++;
}

static size_t count_all(const struct aim_model_templates *t)
{
    return t->ready + t->waiting + t->bad + t->absent;
}

/* Is discovery enabled: by the model, or else by the configuration? */
static bool has_discovery(const struct json *model, const struct runtimeconfig_spec *config)
{
    const struct json *discovery = json_at(model, "spec", "discovery", NULL);
    const struct json *enabled = json_get(discovery, "enabled");
    if (!enabled)
        enabled = json_get(discovery, "extractMetadata");
    return json_bool(enabled, !config->no_discovery);
}

static const struct json *metadata_of(const struct json *model)
{
    const struct json *given = json_at(model, "spec", "imageMetadata", NULL);
    return given ? given : json_at(model, "status", "imageMetadata", NULL);
}

/* A model with files of its own needs no recommendation of its image. */
bool aim_model_wants_inspection(const struct json *model, const struct runtimeconfig_spec *config)
{
    const struct json *spec = json_get(model, "spec");
    return json_text(json_get(spec, "image")).n && !json_get(spec, "imageMetadata") &&
           !json_len(json_get(spec, "modelSources")) && has_discovery(model, config);
}

const struct json *aim_model_deployments(const struct json *model,
                                         const struct runtimeconfig_spec *config)
{
    const struct json *discovery = json_at(model, "spec", "discovery", NULL);
    const struct json *create = json_get(discovery, "autoCreateTemplates");
    const struct json *list = json_at(metadata_of(model), "model", "recommendedDeployments", NULL);
    if (!create)
        create = json_get(discovery, "createServiceTemplates");
    return has_discovery(model, config) && json_bool(create, true) && json_len(list) ? list : NULL;
}

/* Named after model, GPU, metric and precision, so that a repeated pass finds the same template. */
struct json *aim_model_template(struct arena *a, const char *group, const struct json *model,
                                const struct json *deployment)
{
    const struct json *meta = json_get(model, "metadata"), *from = json_get(model, "spec");
    str name = json_text(json_get(meta, "name")), ns = json_text(json_get(meta, "namespace"));
    struct aim_names_deployment d = { json_text(json_get(deployment, "gpuModel")),
                                      json_text(json_get(deployment, "metric")),
                                      json_text(json_get(deployment, "precision")),
                                      json_int(json_get(deployment, "gpuCount"), 0) };
    struct json *template = json_new_obj(a), *metadata = json_make(a, template, "metadata", NULL);
    struct json *labels = json_make(a, metadata, "labels", NULL);
    struct json *spec = json_make(a, template, "spec", NULL);
    json_set_str(a, metadata, "name", aim_names_template_of_deployment(a, name, &d));
    if (ns.n)
        json_set_str(a, metadata, "namespace", ns);
    json_set_str(a, labels, "app.kubernetes.io/managed-by", S("aim-controller"));
    json_set_str(a, labels, aim_names_label_key(a, group, "auto-generated").p, S("true"));
    json_set_str(a, labels, aim_names_label_key(a, group, "aim-image").p,
                 aim_names_label_value(a, name));
    json_set_str(a, spec, "modelName", name);
    if (d.metric.n)
        json_set_str(a, spec, "metric", d.metric);
    if (d.precision.n)
        json_set_str(a, spec, "precision", d.precision);
    if (d.gpu_model.n)
        json_set_str(a, json_make(a, spec, "gpuSelector", NULL), "model", d.gpu_model);
    if (d.gpu_count > 0)
        json_set_int(a, json_make(a, spec, "gpuSelector", NULL), "count", d.gpu_count);
    static const char *const copied[] = { "runtimeConfigName", "imagePullSecrets",
                                          "serviceAccountName", "resources" };
    for (size_t i = 0; i < countof(copied); i++)
        if (json_get(from, copied[i]))
            json_set(a, spec, str_c(copied[i]), json_copy(a, json_get(from, copied[i])));
    return template;
}

/* ---- status */

static void set_state(struct aim_model_state *s, const char *status, const char *reason,
                      str message)
{
    s->status = status;
    s->reason = reason;
    s->message = message;
}

/* All bad: Failed. Some bad: Degraded. Some waiting: Progressing. */
static void set_state_by_templates(struct arena *a, struct aim_model_state *s,
                                   const struct aim_model_templates *t)
{
    size_t all = count_all(t);
    if (t->bad == all)
        set_state(s, "Failed", "AllTemplatesFailed",
                  arena_printf(a, "All %zu template(s) are degraded or failed", all));
    else if (t->bad)
        set_state(s, "Degraded", "SomeTemplatesDegraded",
                  arena_printf(a, "%zu of %zu template(s) are degraded or failed", t->bad, all));
    else if (t->waiting)
        set_state(s, "Progressing", "TemplatesProgressing",
                  arena_printf(a, "%zu of %zu template(s) are progressing", t->waiting, all));
    else
        set_state(s, "Ready", "AllTemplatesReady",
                  t->absent
                      ? arena_printf(a,
                                     "%zu template(s) available, %zu not available (GPU not in "
                                     "cluster)",
                                     t->ready, t->absent)
                      : arena_printf(a, "All %zu template(s) are available", all));
}

static void set_extracted(struct aim_model_state *s, const char *reason, str message)
{
    s->extracted_reason = reason;
    s->extracted_message = message;
}

/* MetadataExtracted: True with where the metadata come from, otherwise False with why there are none. */
static void set_metadata(struct aim_model_state *s, const struct aim_model_facts *f)
{
    s->metadata = metadata_of(f->object);
    s->extracted = s->metadata != NULL;
    if (json_at(f->object, "spec", "imageMetadata", NULL))
        set_extracted(s, "MetadataProvided", S("Image metadata is set in spec.imageMetadata"));
    else if (s->metadata)
        set_extracted(s, "MetadataExtracted", S("Image metadata successfully extracted"));
    else if (!has_discovery(f->object, f->config))
        set_extracted(s, "DiscoveryDisabled", S("Discovery is disabled"));
    else if (f->inspection == MODEL_INSPECTION_FAILED)
        set_extracted(s, f->inspection_reason, f->inspection_message);
    else if (f->inspection == MODEL_INSPECTING)
        set_extracted(s, "InspectionPending", S("The image is being inspected"));
    else
        set_extracted(s, "InspectionPending",
                      S("The image was not inspected; set its metadata in spec.imageMetadata"));
}

/* Without metadata and without templates: waiting, or the failure of the inspection. What a retry cannot mend is Failed. */
static void set_state_by_inspection(struct aim_model_state *s, const struct aim_model_facts *f)
{
    if (f->inspection == MODEL_INSPECTION_FAILED) {
        bool lasting = !strcmp(f->inspection_reason, "ImageNotFound") ||
                       !strcmp(f->inspection_reason, "InvalidImageReference") ||
                       !strcmp(f->inspection_reason, "MetadataFormatInvalid");
        set_state(s, lasting ? "Failed" : "Degraded", f->inspection_reason, f->inspection_message);
    } else if (f->inspection == MODEL_INSPECTING)
        set_state(s, "Progressing", "DiscoveryInProgress",
                  S("Discovery enabled; awaiting metadata extraction"));
    else
        set_state(s, "Pending", "AwaitingMetadata",
                  S("The image has no metadata; set spec.imageMetadata, create a template for the "
                    "model, or set spec.discovery.enabled to false"));
}

/* The first condition that applies decides. */
struct aim_model_state aim_model_state(struct arena *a, const struct aim_model_facts *f)
{
    struct aim_model_state s = { 0 };
    const struct json *deployments = aim_model_deployments(f->object, f->config);
    size_t wanted = json_len(deployments) + f->custom;
    set_metadata(&s, f);
    if (f->config_missing)
        set_state(&s, "Degraded", "RuntimeConfigMissing", f->config_message);
    else if (!wanted && !has_discovery(f->object, f->config))
        set_state(&s, "Ready", "DiscoveryDisabled",
                  S("Discovery is disabled; the model is used as specified"));
    else if (s.metadata && !wanted)
        set_state(&s, "Ready", "MetadataMissingRecommendedDeployments",
                  S("The metadata recommends no deployment; create templates for the model"));
    else if (count_all(&f->made) < wanted)
        set_state(&s, "Progressing", "CreatingTemplates", S("Templates are being created"));
    else if (wanted)
        set_state_by_templates(a, &s, &f->made);
    else if (count_all(&f->other))
        set_state_by_templates(a, &s, &f->other);
    else
        set_state_by_inspection(&s, f);
    return s;
}

/* An unknown word, such as an empty one, is not ready: only Ready is. */
const char *aim_model_unready_reason(str word)
{
    static const struct {
        const char *word, *reason;
    } t[] = { { "Ready", NULL },
              { "Pending", "ModelPending" },
              { "Progressing", "ModelProgressing" },
              { "Failed", "ModelFailed" },
              { "Degraded", "ModelDegraded" } };
    for (size_t i = 0; i < countof(t); i++)
        if (str_eqc(word, t[i].word))
            return t[i].reason;
    return "ModelNotReady";
}

str aim_model_unready_message(struct arena *a, str kind, str name, str word)
{
    static const struct {
        const char *word, *text;
    } t[] = { { "Pending", "is pending discovery" },
              { "Progressing", "is running discovery" },
              { "Failed", "failed discovery" },
              { "Degraded", "is degraded" },
              { "", "status not yet initialized" } };
    str who =
        arena_printf(a, STR_FMT " " STR_FMT, STR_ARG(kind), STR_ARG(aim_names_quote(a, name)));
    for (size_t i = 0; i < countof(t); i++)
        if (str_eqc(word, t[i].word))
            return arena_printf(a, STR_FMT " %s", STR_ARG(who), t[i].text);
    return arena_printf(a, STR_FMT " is " STR_FMT, STR_ARG(who), STR_ARG(word));
}
