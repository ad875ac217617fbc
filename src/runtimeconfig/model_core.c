/* Templates and status of models: see model_core.h.
 *
 *     imageMetadata.model.recommendedDeployments --> one template each --> their states decide the model's
 *     no metadata ------------------------------------> templates of users decide, whatever an inspection found
 *     discovery disabled -----------------------------> Ready
 *
 * Several fields have two names, of the two generations of AIM; the newer one takes precedence. */
#include "model_core.h"

#include "names_core.h"

enum { FAULTS_MAX = 32 }; /* that a message lists */

static void add_fault(struct arena *a, struct aim_model_templates *counts, str name, str word)
{
    str text = arena_printf(a, "template " STR_FMT " %s", STR_ARG(aim_names_quote(a, name)),
                            str_eqc(word, "Failed") ? "has failed" : "is degraded");
    if (!counts->faults)
        counts->faults = json_new_arr(a);
    counts->bad++;
    json_push(a, counts->faults, json_new_str(a, text));
}

void aim_model_count_template(struct arena *a, struct aim_model_templates *counts, str name,
                              str word)
{
    if (str_eqc(word, "Ready"))
        counts->ready++;
    else if (str_eqc(word, "Degraded") || str_eqc(word, "Failed"))
        add_fault(a, counts, name, word);
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

static int compare_faults(const void *x, const void *y)
{
    return str_cmp(json_text(*(struct json *const *)x), json_text(*(struct json *const *)y));
}

/* ": template "a" has failed; template "b" is degraded", sorted, so that the message stays as it is. */
static str list_faults(struct arena *a, const struct aim_model_templates *t)
{
    auto_buf struct buf out = { 0 };
    if (json_len(t->faults))
        qsort(t->faults->items, json_len(t->faults), sizeof(*t->faults->items), compare_faults);
    for (size_t i = 0; i < MIN(json_len(t->faults), (size_t)FAULTS_MAX); i++)
        buf_printf(&out, "%s" STR_FMT, i ? "; " : ": ",
                   STR_ARG(json_text(json_item(t->faults, i))));
    return arena_str(a, buf_str(&out));
}

/* All bad: Failed. Some bad: Degraded. Some waiting: Progressing. */
static void set_state_by_templates(struct arena *a, struct aim_model_state *s,
                                   const struct aim_model_templates *t)
{
    size_t all = count_all(t);
    str faults = list_faults(a, t);
    s->progressing_message = S("All templates have completed discovery");
    s->degraded_message = S("No templates are degraded");
    if (t->bad == all)
        set_state(s, "Failed", "AllTemplatesFailed",
                  arena_printf(a, "All %zu template(s) are degraded or failed" STR_FMT, all,
                               STR_ARG(faults)));
    else if (t->bad)
        set_state(s, "Degraded", "SomeTemplatesDegraded",
                  arena_printf(a, "%zu of %zu template(s) are degraded or failed" STR_FMT, t->bad,
                               all, STR_ARG(faults)));
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

/* Did the image have the label, or the spec the field, although it recommends nothing? */
static bool has_recommendations(const struct json *metadata)
{
    static const char *const labels[] = { "com.amd.aim.model.recommendedDeployments",
                                          "org.amd.silogen.model.recommendedDeployments" };
    const struct json *original = json_get(metadata, "originalLabels");
    bool found = json_at(metadata, "model", "recommendedDeployments", NULL) != NULL;
    for (size_t i = 0; i < countof(labels); i++)
        found = found || json_text(json_get(original, labels[i])).n;
    return found;
}

/* The metadata recommend nothing. */
static void set_state_without_templates(struct aim_model_state *s)
{
    if (has_recommendations(s->metadata))
        set_state(s, "Ready", "NoRecommendedTemplates",
                  S("Discovery completed with no recommended templates"));
    else
        set_state(s, "Ready", "MetadataMissingRecommendedDeployments",
                  S("The metadata recommends no deployment; create templates for the model"));
}

static void set_generated(struct aim_model_state *s, bool generated, const char *reason,
                          str message)
{
    s->generated = generated;
    s->generated_reason = reason;
    s->generated_message = message;
}

/* TemplatesAutoGenerated: about those of the image and of the spec, not about those of users. */
static void set_generation(struct arena *a, struct aim_model_state *s,
                           const struct aim_model_facts *f, size_t wanted)
{
    size_t made = count_all(&f->made);
    if (f->config_missing)
        set_generated(s, false, s->reason, s->message);
    else if (wanted && made >= wanted)
        set_generated(s, true, "AutoTemplatesPresent",
                      S("Auto-generated templates present for this image"));
    else if (wanted)
        set_generated(s, false, "AutoTemplateCreationPending",
                      arena_printf(a, "%zu template(s) pending creation", wanted - made));
    else if (!has_discovery(f->object, f->config))
        set_generated(s, false, "DiscoveryDisabled",
                      S("Discovery disabled; auto-generated templates not created"));
    else if (s->metadata && !count_all(&f->other))
        set_generated(s, false, s->reason, s->message);
    else if (f->inspection == MODEL_INSPECTION_FAILED)
        set_generated(s, false, s->extracted_reason, s->extracted_message);
    else
        set_generated(s, false, "AutoTemplateCreationPending",
                      S("Auto template creation awaiting metadata extraction"));
}

/* The first condition that applies decides. */
struct aim_model_state aim_model_state(struct arena *a, const struct aim_model_facts *f)
{
    struct aim_model_state s = { 0 };
    const struct json *deployments = aim_model_deployments(f->object, f->config);
    size_t wanted = json_len(deployments) + f->custom, made = count_all(&f->made);
    set_metadata(&s, f);
    if (f->config_missing)
        set_state(&s, "Degraded", "RuntimeConfigMissing", f->config_message);
    else if (!wanted && !has_discovery(f->object, f->config))
        set_state(&s, "Ready", "DiscoveryDisabled",
                  S("Discovery disabled; no templates to manage"));
    else if (s.metadata && !wanted)
        set_state_without_templates(&s);
    else if (made < wanted)
        set_state(&s, "Progressing", "TemplateCreationPending",
                  arena_printf(a, "%zu template(s) pending creation", wanted - made));
    else if (wanted)
        set_state_by_templates(a, &s, &f->made);
    else if (count_all(&f->other))
        set_state_by_templates(a, &s, &f->other);
    else
        set_state_by_inspection(&s, f);
    bool bad = !strcmp(s.status, "Degraded") || !strcmp(s.status, "Failed");
    bool ready = !strcmp(s.status, "Ready");
    if (!s.progressing_message.n || (!ready && !bad))
        s.progressing_message = s.message;
    if (!s.degraded_message.n || bad)
        s.degraded_message = s.message;
    set_generation(a, &s, f, wanted);
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
