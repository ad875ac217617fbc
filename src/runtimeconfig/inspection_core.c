/* Labels and templates of a model: see inspection_core.h.
 *
 * Labels come from the author of the image. They are copied, never interpreted beyond the few keys below, and one that
 * cannot be read fails the inspection as a whole: half of a recommendation would be deployed as if it were all of it. */
#include "inspection_core.h"

#include "derive_core.h"
#include "service_children_core.h"
#include "service_status_core.h"

/* ---- labels */

/* The label under the new prefix; if it is absent or empty, under the old one. */
static str label_of(struct arena *a, const struct json *labels, const char *name)
{
    str value = json_text(json_get_str(labels, arena_printf(a, "com.amd.aim.%s", name)));
    return value.n ? value
                   : json_text(json_get_str(labels, arena_printf(a, "org.amd.silogen.%s", name)));
}

/* Labels that are one text. */
static void put_texts(struct arena *a, const struct json *labels, struct json *model)
{
    static const struct {
        const char *label, *field;
    } t[] = { { "model.canonicalName", "canonicalName" },
              { "model.source", "source" },
              { "title", "title" },
              { "description.full", "descriptionFull" },
              { "release.notes", "releaseNotes" } };
    for (size_t i = 0; i < countof(t); i++) {
        str value = label_of(a, labels, t[i].label);
        if (value.n)
            json_set_str(a, model, t[i].field, value);
    }
}

/* Comma-separated lists: trimmed, empty items dropped. */
static void put_lists(struct arena *a, const struct json *labels, struct json *model)
{
    static const char *const names[] = { "tags", "versions", "variants" };
    for (size_t i = 0; i < countof(names); i++) {
        str rest = label_of(a, labels, arena_printf(a, "model.%s", names[i]).p), item;
        struct json *list = json_new_arr(a);
        while (str_cut(&rest, ',', &item))
            if (str_trim(item).n)
                json_push(a, list, json_new_str(a, str_trim(item)));
        if (list->n)
            json_set(a, model, str_c(names[i]), list);
    }
}

static bool is_true(str text)
{
    static const char *const words[] = { "1", "t", "T", "TRUE", "true", "True" };
    for (size_t i = 0; i < countof(words); i++)
        if (str_eqc(text, words[i]))
            return true;
    return false;
}

/* One field of a recommendation; null is as good as absent, another type is an error. */
static int copy_field(struct arena *a, const struct json_member *m, struct json *to, err_t *e)
{
    static const char *const texts[] = { "gpuModel", "precision", "metric", "description",
                                         "profileId" };
    if (json_is(m->value, JSON_NULL))
        return 0;
    if (str_eq_nocase(m->key, S("gpuCount"))) {
        if (!json_is(m->value, JSON_INT))
            return err_set(e, EINVAL, "recommendedDeployments: gpuCount must be an integer");
        if (m->value->integer)
            json_set_int(a, to, "gpuCount", m->value->integer);
        return 0;
    }
    for (size_t i = 0; i < countof(texts); i++) {
        if (!str_eq_nocase(m->key, str_c(texts[i])))
            continue;
        if (!json_is(m->value, JSON_STR))
            return err_set(e, EINVAL, "recommendedDeployments: %s must be a string", texts[i]);
        if (json_text(m->value).n)
            json_set_str(a, to, texts[i], json_text(m->value));
    }
    return 0;
}

/* A JSON array, or objects separated by commas; quotes may be those of Python. */
static int read_deployments(struct arena *a, str text, struct json **ret, err_t *e)
{
    auto_buf struct buf fixed = { 0 };
    struct json *list, *out = json_new_arr(a);
    text = str_trim(text);
    bool array = str_starts(text, S("["));
    if (!array)
        buf_putc(&fixed, '[');
    for (size_t i = 0; i < text.n; i++)
        buf_putc(&fixed, text.p[i] == '\'' ? '"' : text.p[i]);
    if (!array)
        buf_putc(&fixed, ']');
    int r = json_parse(a, arena_str(a, buf_str(&fixed)), &list, e);
    if (r)
        return err_wrap(e, "recommendedDeployments");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *item = json_item(list, i);
        struct json *one = json_new_obj(a);
        if (!json_is(item, JSON_OBJ) && !json_is(item, JSON_NULL))
            return err_set(e, EINVAL, "recommendedDeployments: item %zu must be an object", i);
        json_each(m, item)
            if ((r = copy_field(a, m, one, e)))
                return r;
        json_push(a, out, one);
    }
    *ret = out;
    return 0;
}

static void put_oci(struct arena *a, const struct json *labels, struct json *oci)
{
    static const char *const names[] = { "title",    "description", "licenses",      "vendor",
                                         "authors",  "source",      "documentation", "created",
                                         "revision", "version" };
    for (size_t i = 0; i < countof(names); i++) {
        str value = json_text(
            json_get_str(labels, arena_printf(a, "org.opencontainers.image.%s", names[i])));
        if (value.n)
            json_set_str(a, oci, names[i], value);
    }
}

/* The metadata of a model from the labels of its image. Only recommendations can be malformed. */
int aim_inspection_metadata(struct arena *a, const struct json *labels, struct json **ret, err_t *e)
{
    struct json *metadata = json_new_obj(a), *deployments;
    struct json *model = json_make(a, metadata, "model", NULL);
    str text = label_of(a, labels, "model.recommendedDeployments");
    put_texts(a, labels, model);
    put_lists(a, labels, model);
    if (is_true(label_of(a, labels, "hfToken.required")))
        json_set_bool(a, model, "hfTokenRequired", true);
    if (text.n) {
        int r = read_deployments(a, text, &deployments, e);
        if (r)
            return r;
        if (deployments->n)
            json_set(a, model, S("recommendedDeployments"), deployments);
    }
    put_oci(a, labels, json_make(a, metadata, "oci", NULL));
    *ret = metadata;
    return 0;
}

/* The labels within INSPECTION_LABEL_BYTES, so that a large image cannot fill the status of a model. */
struct json *aim_inspection_labels(struct arena *a, const struct json *labels)
{
    struct json *kept = json_new_obj(a);
    size_t room = INSPECTION_LABEL_BYTES;
    json_each(m, labels) {
        str value = json_text(m->value);
        if (m->key.n > room)
            break;
        room -= m->key.n;
        value = str_upto(value, room);
        room -= value.n;
        json_set(a, kept, m->key, json_new_str(a, value));
    }
    return kept;
}

/* ---- errors */

/* How the status names a failed pull: by the HTTP status, or by the words of the message if there is none. */
const char *aim_inspection_error_class(int status, str message)
{
    enum aim_service_pull_kind kind = status == 401 || status == 403 ? SERVICE_PULL_AUTH
                                      : status == 404                ? SERVICE_PULL_MISSING
                                      : status                       ? SERVICE_PULL_OTHER
                                               : aim_service_pull_cause(message);
    return kind == SERVICE_PULL_AUTH      ? "auth"
           : kind == SERVICE_PULL_MISSING ? "not-found"
                                          : "generic";
}

/* ---- templates */

static const struct json *metadata_of(const struct json *model)
{
    const struct json *given = json_at(model, "spec", "imageMetadata", NULL);
    return json_is(given, JSON_OBJ) ? given : json_at(model, "status", "imageMetadata", NULL);
}

static const struct json *deployments_of(const struct json *model)
{
    return json_at(metadata_of(model), "model", "recommendedDeployments", NULL);
}

static const struct json *sources_of(const struct json *model)
{
    return json_at(model, "spec", "modelSources", NULL);
}

/* Whether templates will follow. Without metadata that is unknown, and unknown must not be taken for none. */
enum aim_inspection_expects aim_inspection_expects(const struct json *model)
{
    if (json_len(sources_of(model)))
        return INSPECTION_EXPECTS_SOME;
    if (!json_is(metadata_of(model), JSON_OBJ))
        return INSPECTION_UNKNOWN;
    return json_len(deployments_of(model)) ||
                   json_len(json_at(model, "spec", "customTemplates", NULL))
               ? INSPECTION_EXPECTS_SOME
               : INSPECTION_EXPECTS_NONE;
}

struct maker {
    struct arena *a;
    const char *group;
    const struct json *model;
    str model_name;
};

static void set_label(struct maker *m, struct json *object, const char *key, str value)
{
    json_set(m->a, json_make(m->a, object, "metadata", "labels", NULL),
             arena_printf(m->a, "%s/%s", m->group, key), json_new_str(m->a, value));
}

/* What all templates of a model have. */
static struct json *new_template(struct maker *m, str name)
{
    static const char *const copied[] = { "imagePullSecrets", "serviceAccountName",
                                          "runtimeConfigName" };
    struct json *object = json_new_obj(m->a), *spec = json_make(m->a, object, "spec", NULL);
    str ns = json_text(json_at(m->model, "metadata", "namespace", NULL));
    json_set_str(m->a, json_make(m->a, object, "metadata", NULL), "name", name);
    if (ns.n)
        json_set_str(m->a, json_get(object, "metadata"), "namespace", ns);
    set_label(m, object, "model", m->model_name);
    set_label(m, object, "origin", S("auto-generated"));
    json_set_str(m->a, spec, "modelName", m->model_name);
    for (size_t i = 0; i < countof(copied); i++) {
        const struct json *v = json_at(m->model, "spec", copied[i], NULL);
        if (v)
            json_set(m->a, spec, str_c(copied[i]), json_copy(m->a, v));
    }
    return object;
}

static void put_dashed(struct buf *b, str part)
{
    if (part.n)
        buf_printf(b, "%s" STR_FMT, b->n ? "-" : "", STR_ARG(part));
}

/* "<image>-<count>x-<gpu>-<metric>-<precision>-<hash>". */
static str deployment_name(struct maker *m, const struct json *d)
{
    enum { DIGITS = 4 };
    auto_buf struct buf suffix = { 0 }, hashed = { 0 };
    str image = json_text(json_at(m->model, "spec", "image", NULL));
    str gpu = json_text(json_get(d, "gpuModel")), metric = json_text(json_get(d, "metric"));
    long long count = (long long)json_int(json_get(d, "gpuCount"), 0);
    str n = count ? arena_printf(m->a, "x%lld", count) : S("");
    if (gpu.n && count)
        buf_printf(&suffix, "%lldx-" STR_FMT, count, STR_ARG(gpu));
    else
        put_dashed(&suffix, gpu.n ? gpu : n);
    put_dashed(&suffix, str_eqc(metric, "latency")      ? S("lat")
                        : str_eqc(metric, "throughput") ? S("thr")
                                                        : metric);
    put_dashed(&suffix, json_text(json_get(d, "precision")));
    put_dashed(&hashed, m->model_name);
    put_dashed(&hashed, image);
    put_dashed(&hashed, gpu);
    put_dashed(&hashed, n);
    put_dashed(&hashed, metric);
    put_dashed(&hashed, json_text(json_get(d, "precision")));
    str parts[] = { image, buf_str(&suffix) }, of = buf_str(&hashed);
    return aim_derive_name(m->a, parts, countof(parts), aim_derive_inputs(m->a, &of, 1), DIGITS);
}

/* A template from one recommendation of the image. */
static struct json *deployment_template(struct maker *m, const struct json *d)
{
    static const char *const copied[] = { "metric", "precision", "profileId" };
    struct json *object = new_template(m, deployment_name(m, d)), *spec = json_get(object, "spec");
    str gpu = json_text(json_get(d, "gpuModel"));
    int64_t count = json_int(json_get(d, "gpuCount"), 0);
    for (size_t i = 0; i < countof(copied); i++)
        if (json_text(json_get(d, copied[i])).n)
            json_set_str(m->a, spec, copied[i], json_text(json_get(d, copied[i])));
    if (gpu.n && count > 0) {
        struct json *hardware = json_make(m->a, spec, "hardware", "gpu", NULL);
        json_set_str(m->a, hardware, "model", gpu);
        json_set_int(m->a, hardware, "requests", count);
    }
    return object;
}

/* ---- custom templates */

/* Field by field, the template wins; NULL: neither has hardware. */
static struct json *merge_hardware(struct arena *a, const struct json *under,
                                   const struct json *over)
{
    static const char *const parts[] = { "gpu", "cpu" };
    struct json *out = json_new_obj(a);
    for (size_t i = 0; i < countof(parts); i++) {
        const struct json *both[] = { json_get(under, parts[i]), json_get(over, parts[i]) };
        for (size_t k = 0; k < countof(both); k++)
            json_each(m, both[k])
                json_set(a, json_make(a, out, parts[i], NULL), m->key, json_copy(a, m->value));
    }
    return out->n ? out : NULL;
}

/* `index` counts the custom templates of the model; -1: the one of a model without any. */
static str custom_name(struct maker *m, const struct json *t, const struct json *hardware,
                       int64_t index)
{
    enum { DIGITS = 8 };
    str name = json_text(json_get(t, "name")),
        gpu = json_text(json_at(hardware, "gpu", "model", NULL));
    str precision = json_text(json_at(t, "profile", "precision", NULL));
    str parts[5] = { m->model_name, S("custom") };
    size_t n = 2;
    struct json *inputs = aim_derive_inputs(m->a, &m->model_name, 1);
    json_push(m->a, inputs, json_new_int(m->a, MAX(index, 0)));
    if (index >= 0) {
        json_push(m->a, inputs, json_new_str(m->a, name));
        if (json_is(json_get(t, "profile"), JSON_OBJ)) {
            json_push(m->a, inputs, json_new_str(m->a, precision));
            json_push(m->a, inputs,
                      json_new_str(m->a, json_text(json_at(t, "profile", "metric", NULL))));
        }
        if (json_is(json_get(hardware, "gpu"), JSON_OBJ)) {
            json_push(m->a, inputs,
                      json_new_int(m->a, json_int(json_at(hardware, "gpu", "requests", NULL), 0)));
            json_push(m->a, inputs, json_new_str(m->a, gpu));
        }
        const str shown[] = { name, precision, gpu };
        for (size_t i = 0; i < countof(shown); i++)
            if (shown[i].n)
                parts[n++] = shown[i];
    }
    return aim_derive_name(m->a, parts, n, inputs, DIGITS);
}

/* The model's environment and type are defaults for its custom templates. */
static void put_custom_spec(struct maker *m, struct json *spec, const struct json *t,
                            const struct json *hardware)
{
    const struct json *from = json_get(m->model, "spec");
    str type = json_text(json_get(t, "type")),
        own = json_text(json_at(from, "custom", "type", NULL));
    struct json *env = aim_service_merge_named(m->a, json_get(from, "env"), json_get(t, "env"));
    static const char *const profile[] = { "metric", "precision" };
    if (json_len(sources_of(m->model)))
        json_set(m->a, spec, S("modelSources"), json_copy(m->a, sources_of(m->model)));
    if (hardware)
        json_set(m->a, spec, S("hardware"), json_copy(m->a, hardware));
    if (env->n)
        json_set(m->a, spec, S("env"), env);
    for (size_t i = 0; i < countof(profile); i++) {
        str value = json_text(json_at(t, "profile", profile[i], NULL));
        if (value.n)
            json_set_str(m->a, spec, profile[i], value);
    }
    json_set_str(m->a, spec, "type", type.n ? type : own.n ? own : S("unoptimized"));
}

static struct json *custom_template(struct maker *m, const struct json *t, int64_t index)
{
    const struct json *own = json_at(m->model, "spec", "custom", "hardware", NULL);
    struct json *hardware = merge_hardware(m->a, own, json_get(t, "hardware"));
    struct json *object = new_template(m, custom_name(m, t, hardware, index));
    str alias = json_text(json_get(t, "name"));
    if (alias.n)
        set_label(m, object, "template.alias", alias);
    put_custom_spec(m, json_get(object, "spec"), t, hardware);
    return object;
}

struct json *aim_inspection_custom_templates(struct arena *a, const char *group,
                                             const struct json *model)
{
    struct maker m = { a, group, model, json_text(json_at(model, "metadata", "name", NULL)) };
    const struct json *custom = json_at(model, "spec", "customTemplates", NULL);
    struct json *list = json_new_arr(a);
    if (aim_inspection_expects(model) == INSPECTION_UNKNOWN)
        return NULL;
    for (size_t i = 0; i < json_len(custom); i++)
        json_push(a, list, custom_template(&m, json_item(custom, i), (int64_t)i));
    if (json_len(sources_of(model)) && !json_len(custom))
        json_push(a, list, custom_template(&m, NULL, -1));
    return list->n ? list : NULL;
}

/* Those that the image recommends come first. */
struct json *aim_inspection_templates(struct arena *a, const char *group, const struct json *model)
{
    struct maker m = { a, group, model, json_text(json_at(model, "metadata", "name", NULL)) };
    const struct json *deployments = json_len(sources_of(model)) ? NULL : deployments_of(model);
    const struct json *custom = aim_inspection_custom_templates(a, group, model);
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < json_len(deployments); i++)
        json_push(a, list, deployment_template(&m, json_item(deployments, i)));
    for (size_t i = 0; i < json_len(custom); i++)
        json_push(a, list, json_item(custom, i));
    return list->n ? list : NULL;
}

/* ---- the states together */

static struct aim_engine_component new_component(enum aim_engine_state state, const char *reason,
                                                 const char *message)
{
    return (struct aim_engine_component){
        .state = state, .reason = str_c(reason), .message = str_c(message), .has_reason = true
    };
}

/* The state of a model from those of its templates. One template that works is enough to be ready only once no
 * other is still in progress. */
struct aim_engine_component aim_inspection_aggregate(const str *words, size_t n,
                                                     enum aim_inspection_expects expects)
{
    size_t ready = 0, bad = 0, absent = 0, working = 0;
    for (size_t i = 0; i < n; i++) {
        ready += str_eqc(words[i], "Ready");
        bad += str_eqc(words[i], "Degraded") || str_eqc(words[i], "Failed");
        absent += str_eqc(words[i], "NotAvailable");
        working += str_eqc(words[i], "Pending") || str_eqc(words[i], "Progressing");
    }
    if (n == 0)
        return expects == INSPECTION_UNKNOWN
                   ? new_component(ENGINE_PROGRESSING, "AwaitingMetadata",
                                   "Waiting for the model to fetch metadata")
               : expects == INSPECTION_EXPECTS_SOME
                   ? new_component(ENGINE_PROGRESSING, "CreatingTemplates",
                                   "Creating templates for the model")
                   : new_component(ENGINE_READY, "NoTemplatesExpected",
                                   "The model does not have any recommended templates");
    if (ready == n)
        return new_component(ENGINE_READY, "AllTemplatesReady", "All templates are ready");
    if (bad == n)
        return new_component(ENGINE_FAILED, "AllTemplatesFailed",
                             "All templates are degraded or failed");
    if (absent == n)
        return new_component(
            ENGINE_NOT_AVAILABLE, "NoTemplatesAvailable",
            "None of the model's templates are available (no matching GPUs in the cluster)");
    if (bad)
        return new_component(ENGINE_DEGRADED, "SomeTemplatesDegraded",
                             "Some templates are degraded or failed");
    if (working)
        return new_component(ENGINE_PROGRESSING, "TemplatesProgressing",
                             "Templates are progressing");
    if (ready && ready + absent == n)
        return new_component(ENGINE_READY, "SomeTemplatesReady",
                             "All templates have finished processing (some are not available)");
    return new_component(ENGINE_PROGRESSING, "TemplatesProgressing", "Unknown status");
}
