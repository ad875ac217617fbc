/* Selection and state of templates: see template_core.h.
 *
 * Selection filters first (not derived, ready, GPU present on a node) and then ranks. If the namespace has a template
 * that passes the filter, those of the cluster are not considered. The rank compares GPU, metric and precision, in this
 * order, by their positions in the lists below.
 *
 *     candidates --filter--> usable --namespace first--> rank --one best--> CHOSEN
 *          |                   |                           +---several---> AMBIGUOUS
 *          +-- none: NONE      +-- none: NOT_READY */
#include "template_core.h"

#include "discovery_core.h"
#include "names_core.h"

/* Best first; unknown values come last. */
static const char *const gpu_order[] = {
    "MI325X", "MI300X", "MI250X", "MI210", "A100", "H100", NULL
};
static const char *const metric_order[] = { "latency", "throughput", NULL };
static const char *const precision_order[] = { "fp8", "fp16", "bf16", "fp32", NULL };

static int rank_in(const char *const *order, str value)
{
    int rank = 0;
    while (order[rank] && !str_eq_nocase(value, str_c(order[rank])))
        rank++;
    return rank;
}

/* Negative: `x` is better. */
static int compare_rank(const struct aim_template_candidate *x,
                        const struct aim_template_candidate *y)
{
    int by_gpu = rank_in(gpu_order, x->gpu_model) - rank_in(gpu_order, y->gpu_model);
    int by_metric = rank_in(metric_order, x->metric) - rank_in(metric_order, y->metric);
    int by_precision =
        rank_in(precision_order, x->precision) - rank_in(precision_order, y->precision);
    return by_gpu ? by_gpu : by_metric ? by_metric : by_precision;
}

/* ---- GPUs of nodes */

/* Models of PCI device ids, for labels that have only those. */
static const struct {
    const char *id, *model;
} devices[] = {
    { "74a5", "MI325X" }, { "74b9", "MI325X" }, { "74a1", "MI300X" }, { "74a9", "MI300X" },
    { "74b5", "MI300X" }, { "74bd", "MI300X" }, { "74a0", "MI300A" }, { "74b4", "MI300A" },
    { "740c", "MI250X" }, { "7408", "MI250X" }, { "740f", "MI210" },  { "738c", "MI100" },
    { "738e", "MI100" },  { "74a2", "MI308X" }, { "74a8", "MI308X" }, { "74b6", "MI308X" },
    { "74bc", "MI308X" }, { "75a0", "MI350X" }, { "75b0", "MI350X" }, { "75a3", "MI355X" },
    { "75b3", "MI355X" },
};

static str device_model(str id)
{
    if (str_starts(id, S("0x")))
        id = str_from(id, 2);
    for (size_t i = 0; i < countof(devices); i++)
        if (str_eq_nocase(id, str_c(devices[i].id)))
            return str_c(devices[i].model);
    return S("");
}

static void put_once(struct arena *a, struct json *gpus, str gpu)
{
    for (size_t i = 0; i < json_len(gpus); i++)
        if (str_eq(json_text(json_item(gpus, i)), gpu))
            return;
    if (gpu.n)
        json_push(a, gpus, json_new_str(a, gpu));
}

/* The memory of a node's GPUs is an object in the list: {"MI300X": "192G"}. */
static void put_memory(struct arena *a, const struct json *labels, str model, struct json *gpus)
{
    str memory = json_text(json_get(labels, "amd.com/gpu.vram"));
    str product = json_text(json_get(labels, "amd.com/gpu.product-name"));
    struct json *one = json_new_obj(a);
    memory = memory.n ? memory : json_text(json_get(labels, "beta.amd.com/gpu.vram"));
    if (!memory.n)
        return;
    json_set(a, one, model.n ? model : product.n ? product : S("GPU"), json_new_str(a, memory));
    for (size_t i = 0; i < json_len(gpus); i++)
        if (json_eq(json_item(gpus, i), one))
            return;
    json_push(a, gpus, one);
}

struct json *aim_template_memory_of(struct arena *a, const struct json *gpus)
{
    struct json *all = json_new_obj(a);
    for (size_t i = 0; i < json_len(gpus); i++)
        json_each(m, json_item(gpus, i))
            json_set(a, all, m->key, json_copy(a, m->value));
    return all;
}

void aim_template_gpus_of_node(struct arena *a, const struct json *labels, struct json *gpus)
{
    static const char *const named[] = {
        "amd.com/gpu.product-name", "beta.amd.com/gpu.product-name", "amd.com/gpu.family",
        "beta.amd.com/gpu.family",  "nvidia.com/gpu.product",
    };
    static const char *const numbered[] = { "amd.com/gpu.device-id", "beta.amd.com/gpu.device-id" };
    for (size_t i = 0; i < countof(named); i++)
        put_once(a, gpus, json_text(json_get(labels, named[i])));
    str model = S("");
    for (size_t i = 0; i < countof(numbered); i++) {
        str found = device_model(json_text(json_get(labels, numbered[i])));
        put_once(a, gpus, found);
        model = found.n ? found : model;
    }
    put_memory(a, labels, model, gpus);
}

/* "AMD_Instinct_MI300X_OAM" has the word MI300X; MI300 is no word of it. */
/* Compares whole words, so that a template for MI300 does not match a node with MI300X. */
static bool has_word(str text, str word)
{
    size_t start = 0;
    for (size_t i = 0; i <= text.n; i++) {
        bool inside = i < text.n && text.p[i] != '_' && text.p[i] != '-' && text.p[i] != ' ' &&
                      text.p[i] != '.' && text.p[i] != '/';
        if (inside)
            continue;
        if (str_eq_nocase((str){ text.p + start, i - start }, word))
            return true;
        start = i + 1;
    }
    return false;
}

/* A product name such as "AMD_Instinct_MI300X_OAM" matches by word. */
bool aim_template_has_gpu(const struct json *gpus, str gpu_model)
{
    if (!gpu_model.n)
        return true;
    for (size_t i = 0; i < json_len(gpus); i++) {
        str have = json_text(json_item(gpus, i));
        if (str_eq_nocase(have, gpu_model) || has_word(have, gpu_model))
            return true;
    }
    return false;
}

/* What a template needs that no node has: a GPU with this much memory. */
static bool lacks_memory(struct arena *a, str least, const struct json *gpus, str *ret_message)
{
    struct json *spec = json_new_obj(a), *gpu = json_make(a, spec, "hardware", "gpu", NULL);
    if (!least.n)
        return false;
    json_set_str(a, gpu, "minVram", least);
    json_set_int(a, gpu, "requests", 1);
    struct aim_discovery_gpu found = aim_discovery_gpu(a, spec, aim_template_memory_of(a, gpus));
    *ret_message = found.component.message;
    return !found.available;
}

/* ---- selection */

static struct aim_template_selection make_refusal(enum aim_template_choice choice,
                                                  const char *reason, str message)
{
    return (struct aim_template_selection){ choice, NULL, reason, message };
}

/* Why a candidate cannot be chosen, in a few words; NULL: it can. */
static const char *aim_template_obstacle(const struct aim_template_candidate *c,
                                         const struct json *gpus)
{
    return c->derived                                  ? "derived from another by overrides"
           : !c->ready                                 ? "not ready"
           : !aim_template_has_gpu(gpus, c->gpu_model) ? "no node has its GPU"
           : c->lacks_memory                           ? "no node has a GPU with its memory"
                                                       : NULL;
}

struct survey {
    size_t total, ready, fitting, fitting_in_ns;
};

/* Counts what the messages of a refusal need. */
static struct survey survey_candidates(const struct aim_template_candidate *candidates, size_t n,
                                       const struct json *gpus)
{
    struct survey s = { 0 };
    for (size_t i = 0; i < n; i++) {
        const struct aim_template_candidate *c = &candidates[i];
        bool fits = !aim_template_obstacle(c, gpus);
        if (c->derived)
            continue;
        s.total++;
        s.ready += c->ready;
        s.fitting += fits;
        s.fitting_in_ns += fits && c->ns.n;
    }
    return s;
}

/* The best candidate, or a refusal with the reason for the condition. */
struct aim_template_selection aim_template_select(struct arena *a, str model,
                                                  const struct aim_template_candidate *candidates,
                                                  size_t n, const struct json *gpus)
{
    struct survey s = survey_candidates(candidates, n, gpus);
    if (!s.total)
        return make_refusal(TEMPLATE_NONE, "TemplateNotFound",
                            arena_printf(a, "No templates exist for model \"" STR_FMT "\"",
                                         STR_ARG(model)));
    if (!s.fitting)
        return make_refusal(TEMPLATE_NOT_READY, "TemplateNotAvailable",
                            s.ready
                                ? arena_printf(a,
                                               "No node has a GPU that a ready template of model "
                                               "\"" STR_FMT "\" asks for",
                                               STR_ARG(model))
                                : arena_printf(a,
                                               "Templates of model \"" STR_FMT
                                               "\" exist but none is ready yet",
                                               STR_ARG(model)));
    const struct aim_template_candidate *best = NULL;
    size_t equals = 0;
    for (size_t i = 0; i < n; i++) {
        const struct aim_template_candidate *c = &candidates[i];
        if (aim_template_obstacle(c, gpus) || (s.fitting_in_ns && !c->ns.n))
            continue;
        int order = best ? compare_rank(c, best) : -1;
        equals = order < 0 ? 1 : equals + (order == 0);
        best = order < 0 ? c : best;
    }
    if (equals > 1)
        return make_refusal(TEMPLATE_AMBIGUOUS, "TemplateSelectionAmbiguous",
                            arena_printf(a,
                                         "Multiple templates (%zu) satisfy model \"" STR_FMT
                                         "\"; name one in spec.templateRef",
                                         equals, STR_ARG(model)));
    return (struct aim_template_selection){ TEMPLATE_CHOSEN, best, "", S("") };
}

/* ---- text */

static const char *describe_candidate(const struct aim_template_selection *s,
                                      const struct aim_template_candidate *c,
                                      const struct json *gpus)
{
    const char *obstacle = aim_template_obstacle(c, gpus);
    if (obstacle)
        return obstacle;
    if (!s->chosen)
        return s->choice == TEMPLATE_AMBIGUOUS ? "could be chosen" : "";
    if (c == s->chosen)
        return "chosen";
    return s->chosen->ns.n && !c->ns.n ? "templates of the namespace take precedence"
                                       : "ranks lower";
}

void aim_template_report(struct buf *out, const struct aim_template_selection *s,
                         const struct aim_template_candidate *candidates, size_t n,
                         const struct json *gpus)
{
    for (size_t i = 0; i < n; i++) {
        const struct aim_template_candidate *c = &candidates[i];
        buf_printf(out, "    %c " STR_FMT "%s, " STR_FMT "%s" STR_FMT "%s" STR_FMT ": %s\n",
                   c == s->chosen ? '*' : ' ', STR_ARG(c->name), c->ns.n ? "" : " of the cluster",
                   STR_ARG(c->gpu_model.n ? c->gpu_model : S("any GPU")), c->metric.n ? ", " : "",
                   STR_ARG(c->metric), c->precision.n ? ", " : "", STR_ARG(c->precision),
                   describe_candidate(s, c, gpus));
    }
}

void aim_template_check_memory(struct arena *a, struct aim_template_candidate *c,
                               const struct json *template, const struct json *gpus)
{
    str message;
    c->lacks_memory =
        lacks_memory(a, aim_template_memory(json_get(template, "spec")), gpus, &message);
}

/* A field of the discovered profile, or else of the spec. */
static str find_text(const struct json *status, const struct json *spec, const char *found,
                     const char *written)
{
    str text = json_text(json_at(status, "profile", "metadata", found, NULL));
    return text.n ? text : json_text(json_get(spec, written));
}

/* The discovered profile is more precise than the spec, so it takes precedence. */
struct aim_template_candidate aim_template_candidate_of(struct arena *a, const char *group,
                                                        const struct json *template)
{
    const struct json *spec = json_get(template, "spec"), *status = json_get(template, "status");
    const struct json *meta = json_get(template, "metadata");
    str derived = json_text(
        json_get_str(json_get(meta, "labels"), aim_names_label_key(a, group, "derived-template")));
    str gpu = json_text(json_at(status, "profile", "metadata", "gpu", NULL));
    return (struct aim_template_candidate){
        .name = json_text(json_get(meta, "name")),
        .ns = json_text(json_get(meta, "namespace")),
        .gpu_model = gpu.n ? gpu : aim_template_gpu_model(spec),
        .metric = find_text(status, spec, "metric", "metric"),
        .precision = find_text(status, spec, "precision", "precision"),
        .ready = str_eqc(json_text(json_get(status, "status")), "Ready"),
        .derived = str_eqc(derived, "true"),
    };
}

/* ---- a template's own state */

str aim_template_gpu_model(const struct json *spec)
{
    str model = json_text(json_at(spec, "gpuSelector", "model", NULL));
    return model.n ? model : json_text(json_at(spec, "hardware", "gpu", "model", NULL));
}

int64_t aim_template_gpu_count(const struct json *spec)
{
    int64_t count = json_int(json_at(spec, "gpuSelector", "count", NULL), 0);
    return MAX(count ? count : json_int(json_at(spec, "hardware", "gpu", "requests", NULL), 0),
               (int64_t)0);
}

str aim_template_memory(const struct json *spec)
{
    return json_text(json_at(spec, "hardware", "gpu", "minVram", NULL));
}

str aim_template_gpu_resource(const struct json *spec)
{
    str older = json_text(json_at(spec, "gpuSelector", "resourceName", NULL));
    str newer = json_text(json_at(spec, "hardware", "gpu", "resourceName", NULL));
    return older.n ? older : newer.n ? newer : S("amd.com/gpu");
}

struct json *aim_template_normal_spec(struct arena *a, const struct json *spec)
{
    struct json *copy = json_copy(a, spec);
    str model = aim_template_gpu_model(spec);
    int64_t count = aim_template_gpu_count(spec);
    if (model.n)
        json_set_str(a, json_make(a, copy, "hardware", "gpu", NULL), "model", model);
    if (count > 0)
        json_set_int(a, json_make(a, copy, "hardware", "gpu", NULL), "requests", count);
    return copy;
}

/* Explicit fields of spec.profile win over those derived from the rest of the spec. */
struct json *aim_template_profile(struct arena *a, const struct json *spec)
{
    struct json *profile = json_is(json_get(spec, "profile"), JSON_OBJ)
                               ? json_copy(a, json_get(spec, "profile"))
                               : json_new_obj(a);
    struct json *metadata = json_make(a, profile, "metadata", NULL);
    static const struct {
        const char *found, *written;
    } texts[] = { { "metric", "metric" }, { "precision", "precision" } };
    for (size_t i = 0; i < countof(texts); i++)
        if (!json_get(metadata, texts[i].found) && json_get(spec, texts[i].written))
            json_set_str(a, metadata, texts[i].found, json_text(json_get(spec, texts[i].written)));
    if (!json_get(metadata, "gpu") && aim_template_gpu_model(spec).n)
        json_set_str(a, metadata, "gpu", aim_template_gpu_model(spec));
    if (!json_get(metadata, "gpu_count") && aim_template_gpu_count(spec))
        json_set_int(a, metadata, "gpu_count", aim_template_gpu_count(spec));
    return profile;
}

static struct aim_template_state make_state(const char *status, const char *reason, str message)
{
    return (struct aim_template_state){ .status = status, .reason = reason, .message = message };
}

static struct aim_template_state make_situation(enum aim_template_situation situation,
                                                const char *status, const char *reason, str message)
{
    struct aim_template_state s = make_state(status, reason, message);
    s.situation = situation;
    return s;
}

/* A template whose name is taken by a serving runtime of another owner cannot be used. */
static struct aim_template_state check_runtime(const struct aim_template_facts *f,
                                               struct aim_template_state s)
{
    if (!f->foreign_runtime)
        return s;
    s.situation = TEMPLATE_SITUATION_OTHER;
    s.status = "Degraded";
    s.reason = "ServingRuntimeConflict";
    s.message = S("A serving runtime with the name of this template exists and was not created for "
                  "it; delete that runtime or rename the template");
    return s;
}

/* Words and reasons of the original. */
static struct aim_template_state state_of_discovery(const struct aim_template_facts *f)
{
    static const char *const words[] = { "Pending", "Progressing", "Ready", "Degraded", "Failed" };
    static const enum aim_template_situation situations[] = {
        TEMPLATE_SITUATION_OTHER, TEMPLATE_JOB_RUNNING, TEMPLATE_JOB_DONE, TEMPLATE_PULL_ERROR,
        TEMPLATE_JOB_FAILED
    };
    struct aim_template_state s = make_situation(situations[f->discovery], words[f->discovery],
                                                 f->discovery_reason, f->discovery_message);
    if (f->discovery == TEMPLATE_UNDISCOVERED)
        return make_state("Pending", "AwaitingDiscovery",
                          f->discovery_message.n ? f->discovery_message
                                                 : S("Model sources are not known yet; set them in "
                                                     "spec.modelSources"));
    if (f->discovery == TEMPLATE_DISCOVERING && !strcmp(s.reason, "Reconciling"))
        s.situation = TEMPLATE_JOB_NEW;
    if (f->discovery != TEMPLATE_DISCOVERED)
        return s;
    s.sources = f->discovered_sources;
    s.profile = f->discovered_profile;
    return check_runtime(f, s);
}

/* Without an image nothing can be run: the model is absent, or has none. */
static str missing_image(struct arena *a, const struct aim_template_facts *f)
{
    str model = aim_names_quote(a, json_text(json_at(f->object, "spec", "modelName", NULL)));
    str ns = json_text(json_at(f->object, "metadata", "namespace", NULL));
    if (f->model)
        return S("Model does not specify an image");
    return ns.n ? arena_printf(a, "AIMModel " STR_FMT " not found in namespace " STR_FMT,
                               STR_ARG(model), STR_ARG(aim_names_quote(a, ns)))
                : arena_printf(a, "AIMClusterModel " STR_FMT " not found", STR_ARG(model));
}

/* The first obstacle decides. A template with sources is Ready whatever GPUs exist; selection checks them. */
struct aim_template_state aim_template_state(struct arena *a, const struct aim_template_facts *f)
{
    const struct json *spec = json_get(f->object, "spec");
    const struct json *sources = json_get(spec, "modelSources");
    str gpu = aim_template_gpu_model(spec);
    if (f->config_missing)
        return make_state("Degraded", "RuntimeConfigMissing", f->config_message);
    if (json_len(sources)) {
        struct aim_template_state s = make_situation(TEMPLATE_INLINE, "Ready", "InlineModelSources",
                                                     S("Model sources provided in-line in spec"));
        s.sources = sources;
        s.profile = aim_template_profile(a, spec);
        return check_runtime(f, s);
    }
    if (!aim_template_has_gpu(f->gpus, gpu))
        return make_situation(TEMPLATE_NO_GPU, "NotAvailable", "GPUUnavailable",
                              arena_printf(a,
                                           "Required GPU model " STR_FMT
                                           " is not available in the cluster",
                                           STR_ARG(aim_names_quote(a, gpu))));
    str message;
    if (lacks_memory(a, aim_template_memory(spec), f->gpus, &message))
        return make_situation(TEMPLATE_NO_GPU, "NotAvailable", "VRAMNotAvailable", message);
    if (!json_text(json_at(f->model, "spec", "image", NULL)).n)
        return make_situation(TEMPLATE_NO_IMAGE, "Degraded", "ImageNotFound", missing_image(a, f));
    return state_of_discovery(f);
}

/* ---- conditions */

/* What one condition reports; without a reason that of the state, without a text its message. */
struct wording {
    bool holds;
    const char *reason, *text;
};

/* The texts are those of the original. A failed job has its cause, and when the next one is due, in Progressing. */
static const struct {
    struct wording discovered, progressing, ready, failure;
} wordings[TEMPLATE_SITUATION_N] = {
    [TEMPLATE_INLINE] = { { true, NULL, NULL },
                          { false, "Available", "No discovery needed" },
                          { true, "Available", "Template is ready" },
                          { false, "NoFailure", "No active failures" } },
    [TEMPLATE_NO_GPU] = { { false, NULL, "Cannot run discovery without required GPU resources" },
                          { false, NULL, "Waiting for required GPU resources" },
                          { false, NULL, NULL },
                          { false, NULL, NULL } },
    [TEMPLATE_NO_IMAGE] = { { false, NULL, "Cannot proceed without image" },
                            { false, NULL, "Cannot proceed without image" },
                            { false, NULL, "Cannot proceed without image" },
                            { true, NULL, NULL } },
    [TEMPLATE_PULL_ERROR] = { { false, "JobPending", "Discovery job has not completed" },
                              { false, NULL, "Discovery cannot proceed due to image pull failure" },
                              { false, NULL, "Template is not ready due to image pull failure" },
                              { true, NULL, NULL } },
    [TEMPLATE_JOB_NEW] = { { false, "JobPending", "Discovery job has not completed" },
                           { true, NULL, NULL },
                           { false, NULL, "Template is not ready" },
                           { false, "NoFailure", "No active failures" } },
    [TEMPLATE_JOB_RUNNING] = { { false, "JobPending", "Discovery job has not completed" },
                               { true, NULL, NULL },
                               { false, "Reconciling", "Template is not ready yet" },
                               { false, "NoFailure", "No active failures" } },
    [TEMPLATE_JOB_FAILED] = { { false, "DiscoveryFailed", "Discovery failed" },
                              { false, NULL, NULL },
                              { false, "Failed", "Template is not ready" },
                              { true, NULL, "Discovery job failed" } },
    [TEMPLATE_JOB_DONE] = { { true, NULL, NULL },
                            { false, "Available", "Discovery complete" },
                            { true, "Available", "Template is ready" },
                            { false, "NoFailure", "No active failures" } },
};

static struct aim_template_condition condition_of(const struct aim_template_state *s,
                                                  const char *type, struct wording w)
{
    return (struct aim_template_condition){ type, w.holds, w.reason ? w.reason : s->reason,
                                            w.text ? str_c(w.text) : s->message };
}

void aim_template_conditions(const struct aim_template_state *s,
                             struct aim_template_condition ret[TEMPLATE_CONDITIONS])
{
    bool bad = !strcmp(s->status, "Degraded") || !strcmp(s->status, "Failed");
    bool ready = !strcmp(s->status, "Ready"), other = s->situation == TEMPLATE_SITUATION_OTHER;
    struct wording plain[] = { { s->sources != NULL, NULL, NULL },
                               { !ready && !bad, NULL, NULL },
                               { ready, NULL, NULL },
                               { bad, bad ? NULL : "NoFailure",
                                 bad ? NULL : "No active failures" } };
    struct wording failure = wordings[s->situation].failure;
    if (!strcmp(s->reason, "DiscoveryParseFailed"))
        failure.text = NULL; /* what is wrong with the output */
    ret[0] = condition_of(s, "Discovered", other ? plain[0] : wordings[s->situation].discovered);
    ret[1] = condition_of(s, "Progressing", other ? plain[1] : wordings[s->situation].progressing);
    ret[2] = condition_of(s, "Ready", other ? plain[2] : wordings[s->situation].ready);
    ret[3] = condition_of(s, "Failure", other ? plain[3] : failure);
}
