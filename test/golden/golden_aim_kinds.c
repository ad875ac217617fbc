/* Families aim-discovery, aim-artifact, aim-modelsource and aim-templatecache: the kinds that the newer generation of AIM
 * adds.
 *
 * Why as_original: as in golden_aim_engine.c, the cases were recorded from the original and have no member `target`. Without
 * as_original the cores differ in these rules, all marked as corrections in the specification; the controllers use them so:
 *
 *   aim-discovery      an answer needs the keys `profile` and `models`, and may be followed by other text with brackets
 *   aim-artifact       a size that cannot be read is the fault of the output (invalid), not of the infrastructure
 *   aim-modelsource    "~" and "^" are operators; an image that two filters select counts once
 *   aim-templatecache  an artifact without a condition is reported as CachesNotReady */
#include "golden_aim_engine.h"

#include "runtimeconfig/artifact_core.h"
#include "runtimeconfig/discovery_core.h"
#include "runtimeconfig/modelsource_core.h"
#include "runtimeconfig/names_core.h"
#include "runtimeconfig/quota_core.h"
#include "runtimeconfig/templatecache_core.h"

#define GROUP "aim.eai.amd.com"

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

static const struct json *object_of(const struct json *c, const char *key)
{
    const struct json *v = json_get(c, key);
    return json_is(v, JSON_OBJ) ? v : NULL;
}

/* Absent and null are the same. */
static void eq_or_null(struct golden *g, const char *what, const struct json *got,
                       const struct json *want)
{
    if (json_is(want, JSON_NULL))
        want = NULL;
    if (!want || !got)
        golden_ok(g, !want && !got, "%s should be %s", what, want ? "there" : "absent");
    else
        golden_eq_json(g, what, got, want);
}

/* ---- aim-discovery */

static void run_job(struct golden *g, const struct json *c)
{
    struct aim_discovery_question q = { .group = GROUP,
                                        .ns = text_of(c, "namespace"),
                                        .template = text_of(c, "template"),
                                        .cluster = json_bool(json_get(c, "cluster"), false),
                                        .spec = json_get(c, "spec"),
                                        .model = text_of(c, "modelName"),
                                        .image = text_of(c, "image"),
                                        .service_account = text_of(c, "serviceAccount"),
                                        .pull_secrets = json_get(c, "pullSecrets") };
    struct json *want = json_copy(g->arena, json_at(c, "expect", "job", NULL));
    json_del(json_get(want, "metadata"), S("ownerReferences"));
    golden_eq_json(g, "job", aim_discovery_job(g->arena, &q), want);
    golden_eq_str(g, "specHash", aim_discovery_hash(g->arena, &q),
                  json_at(c, "expect", "specHash", NULL));
}

static void check_discovered(struct golden *g, const struct aim_discovery_result *got,
                             const struct json *want)
{
    golden_eq_str(g, "hardwareSummary", got->summary, json_get(want, "hardwareSummary"));
    golden_eq_json(g, "profile", got->profile, json_get(want, "profile"));
    eq_or_null(g, "resolvedHardware", got->hardware, json_get(want, "resolvedHardware"));
}

static void run_parse(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expect");
    struct aim_discovery_result got;
    int r = aim_discovery_parse(g->arena, text_of(c, "log"), json_get(c, "spec"), true, &got, NULL);
    if (!golden_ok(g, (r < 0) == (json_get(want, "error") != NULL), "fails: %d", r) || r < 0)
        return;
    check_discovered(g, &got, want);
    eq_or_null(g, "modelSources", got.sources, json_get(want, "modelSources"));
}

static void run_may_create(struct golden *g, const struct json *c)
{
    const struct json *state = object_of(c, "state"), *want = json_get(c, "expect");
    struct aim_discovery_attempts at = { json_int(json_get(state, "attempts"), 0),
                                         text_of(state, "specHash"),
                                         json_real(json_get(c, "lastAgo"), 0) };
    str message;
    bool may =
        aim_discovery_may_create(g->arena, state ? &at : NULL, text_of(c, "specHash"), &message);
    golden_eq_bool(g, "create", may, json_get(want, "create"));
    golden_eq_str(g, "message", message, json_get(want, "message"));
    golden_eq_str(g, "reason", may ? S("") : S("AwaitingDiscovery"), json_get(want, "reason"));
}

static void run_failure(struct golden *g, const struct json *c)
{
    bool succeeded;
    str reason;
    const struct json *want = json_get(c, "expect");
    bool complete = aim_discovery_is_complete(json_get(c, "job"), &succeeded, &reason);
    golden_eq_bool(g, "complete", complete, json_get(want, "complete"));
    golden_eq_bool(g, "succeeded", succeeded, json_get(want, "succeeded"));
    golden_eq_str(g, "reason", reason, json_get(want, "reason"));
}

static void run_gpu(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expect");
    struct aim_discovery_gpu got =
        aim_discovery_gpu(g->arena, json_get(c, "spec"), json_get(c, "gpus"));
    golden_eq_bool(g, "available", got.available, json_get(want, "available"));
    golden_eq_str(g, "component", str_c(got.component.name), json_get(want, "component"));
    golden_eq_str(g, "state", str_c(aim_engine_state_name(got.component.state)),
                  json_get(want, "state"));
    golden_eq_str(g, "reason", got.component.reason, json_get(want, "reason"));
    golden_eq_str(g, "message", got.component.message, json_get(want, "message"));
    eq_or_null(g, "nodeAffinity", got.node_affinity, json_get(want, "nodeAffinity"));
}

static void run_discovery(struct golden *g, const struct json *c)
{
    str fn = text_of(c, "fn");
    if (str_eqc(fn, "job"))
        run_job(g, c);
    else if (str_eqc(fn, "parse"))
        run_parse(g, c);
    else if (str_eqc(fn, "backoff"))
        golden_eq_int(g, "seconds", aim_discovery_backoff_s(json_int(json_get(c, "attempts"), 0)),
                      json_at(c, "expect", "seconds", NULL));
    else if (str_eqc(fn, "shouldCreate"))
        run_may_create(g, c);
    else if (str_eqc(fn, "failureReason"))
        run_failure(g, c);
    else if (str_eqc(fn, "gpu"))
        run_gpu(g, c);
    else if (golden_ok(g, str_eqc(fn, "inline"), "unknown function " STR_FMT, STR_ARG(fn))) {
        struct aim_discovery_result got = aim_discovery_inline(g->arena, json_get(c, "spec"));
        check_discovered(g, &got, json_get(c, "expect"));
    }
}

/* ---- aim-artifact */

static struct aim_artifact_question artifact_question(const struct json *c)
{
    return (struct aim_artifact_question){ .group = GROUP,
                                           .artifact = json_get(c, "artifact"),
                                           .config = object_of(c, "runtimeConfig"),
                                           .config_default_missing =
                                               !object_of(c, "runtimeConfig") };
}

static void run_children(struct golden *g, const struct json *c)
{
    struct aim_artifact_question q = artifact_question(c);
    const struct json *want = json_get(c, "expect");
    golden_eq_json(g, "checkSizeJob", aim_artifact_size_job(g->arena, &q),
                   json_get(want, "checkSizeJob"));
    golden_eq_json(g, "pvc", aim_artifact_volume(g->arena, &q), json_get(want, "pvc"));
    golden_eq_json(g, "downloadJob", aim_artifact_download_job(g->arena, &q),
                   json_get(want, "downloadJob"));
    golden_eq_json(g, "roleBinding", aim_artifact_role_binding(g->arena, &q),
                   json_get(want, "roleBinding"));
}

/* The words of a JSON parser are its own; everything before them is compared. */
static void eq_parse_error(struct golden *g, str got, str want)
{
    static const char start[] = "failed to parse check-size output: ";
    if (str_starts(want, str_c(start)))
        golden_ok(g, str_starts(got, str_c(start)), "error " STR_FMT, STR_ARG(got));
    else
        golden_ok(g, str_eq(got, want), "error " STR_FMT, STR_ARG(got));
}

static void run_size(struct golden *g, const struct json *c)
{
    int64_t bytes;
    err_t e;
    const struct json *want = json_get(c, "expect"), *error = json_get(want, "error");
    int r = aim_artifact_parse_size(g->arena, text_of(c, "log"), &bytes, &e);
    if (!golden_ok(g, (r < 0) == (error != NULL), "fails: %d", r))
        return;
    if (r < 0)
        eq_parse_error(g, str_c(e.text), json_text(error));
    else
        golden_eq_int(g, "bytes", bytes,
                      json_get(want, "bytes") ? json_get(want, "bytes")
                                              : json_get(want, "sizeBytes"));
}

static void push_create(struct golden *g, struct json *list, bool make, const char *type,
                        const struct json *child)
{
    if (make)
        json_push(g->arena, list,
                  json_new_str(g->arena, arena_printf(g->arena, "*v1.%s " STR_FMT, type,
                                                      STR_ARG(json_text(json_at(child, "metadata",
                                                                                "name", NULL))))));
}

static void check_creates(struct golden *g, const struct aim_artifact_question *q,
                          const struct aim_artifact_state *s, const struct json *want)
{
    struct json *list = json_new_arr(g->arena);
    push_create(g, list, s->make_role_binding, "RoleBinding",
                aim_artifact_role_binding(g->arena, q));
    push_create(g, list, s->make_size_job, "Job", aim_artifact_size_job(g->arena, q));
    push_create(g, list, s->make_volume, "PersistentVolumeClaim", aim_artifact_volume(g->arena, q));
    push_create(g, list, s->make_job, "Job", aim_artifact_download_job(g->arena, q));
    eq_or_null(g, "creates", list->n ? list : NULL, want);
}

/* Conditions with the words of a JSON parser are compared up to those. */
static struct json *without_parser_words(struct golden *g, const struct json *want,
                                         const struct aim_artifact_state *s)
{
    struct json *copy = json_copy(g->arena, want), *list = json_get(copy, "conditions");
    for (size_t i = 0; i < json_len(list); i++) {
        str text = text_of(json_item(list, i), "message");
        size_t at = str_find(text, S("failed to parse check-size output: "));
        for (size_t k = 0; at != SIZE_MAX && k < s->n; k++)
            if (str_eqc(s->components[k].reason, "InvalidSizeOutput"))
                json_set_str(g->arena, json_item(list, i), "message",
                             arena_printf(g->arena, STR_FMT STR_FMT, STR_ARG(str_upto(text, at)),
                                          STR_ARG(s->components[k].message)));
    }
    return copy;
}

static void run_artifact_state(struct golden *g, const struct json *c)
{
    struct aim_artifact_facts f = { .q = artifact_question(c),
                                    .size_job = object_of(c, "checkJob"),
                                    .size_pods = object_of(c, "checkPods"),
                                    .volume = object_of(c, "pvc"),
                                    .job = object_of(c, "job"),
                                    .pods = object_of(c, "pods"),
                                    .role_binding = json_bool(json_get(c, "roleBinding"), false),
                                    .size_log = text_of(c, "log"),
                                    .as_original = true };
    struct aim_artifact_state s = aim_artifact_state(g->arena, &f);
    const struct json *want = without_parser_words(g, json_get(c, "expect"), &s);
    struct aim_engine_answer answer =
        golden_engine_check(g, s.components, s.n, &s.complete, s.complete.type.n > 0,
                            json_get(c, "old"), want);
    golden_eq_str(g, "status", str_c(aim_engine_state_name(answer.status)),
                  json_get(want, "status"));
    golden_eq_json(g, "fields", s.fields, json_get(want, "fields"));
    if (answer.apply)
        check_creates(g, &f.q, &s, json_get(want, "creates"));
}

static void run_quota(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expect");
    const struct json *all = json_get(c, "allArtifacts");
    struct aim_quota_answer got =
        aim_quota_check(g->arena, &(struct aim_quota_question){
                                      .group = GROUP,
                                      .artifact = json_get(c, "artifact"),
                                      .bytes = json_int(json_get(c, "bytes"), 0),
                                      .headroom_percent = json_int(json_get(c, "percent"), 0),
                                      .ns = json_get(c, "namespace"),
                                      .quota = object_of(c, "quota"),
                                      .in_namespace = json_get(c, "nsArtifacts"),
                                      .in_cluster = json_is(all, JSON_ARR) ? all : NULL,
                                      .in_use = json_get(c, "inUse"),
                                      .default_priority = json_get(c, "defaultPrio") });
    golden_eq_bool(g, "blocked", got.blocked, json_get(want, "blocked"));
    golden_eq_bool(g, "namespaceExceeded", got.namespace_exceeded,
                   json_get(want, "namespaceExceeded"));
    golden_eq_bool(g, "clusterExceeded", got.cluster_exceeded, json_get(want, "clusterExceeded"));
    golden_eq_int(g, "namespaceUsage", got.namespace_bytes, json_get(want, "namespaceUsage"));
    golden_eq_int(g, "clusterUsage", got.cluster_bytes, json_get(want, "clusterUsage"));
    golden_eq_str(g, "message", got.message, json_get(want, "message"));
    golden_eq_str(g, "warning", got.warning, json_get(want, "warning"));
    eq_or_null(g, "evict", got.evict, json_get(want, "evict"));
}

static void run_artifact(struct golden *g, const struct json *c)
{
    str fn = text_of(c, "fn");
    const struct json *want = json_get(c, "expect");
    if (str_eqc(fn, "children"))
        run_children(g, c);
    else if (str_eqc(fn, "size"))
        run_size(g, c);
    else if (str_eqc(fn, "display")) {
        str text = aim_artifact_display(g->arena, json_int(json_get(c, "bytes"), -1));
        golden_ok(g, str_eq(text, text_of(want, "text")), "text " STR_FMT, STR_ARG(text));
    } else if (str_eqc(fn, "headroom"))
        golden_eq_int(g, "bytes",
                      aim_names_volume_bytes(json_int(json_get(c, "bytes"), 0),
                                             json_int(json_get(c, "percent"), 0)),
                      json_get(want, "bytes"));
    else if (str_eqc(fn, "reconcile"))
        run_artifact_state(g, c);
    else if (golden_ok(g, str_eqc(fn, "quota"), "unknown function " STR_FMT, STR_ARG(fn)))
        run_quota(g, c);
}

/* ---- aim-modelsource */

static struct aim_modelsource_image image_of(const struct json *given)
{
    return (struct aim_modelsource_image){ text_of(given, "Registry"), text_of(given, "Repository"),
                                           text_of(given, "Tag") };
}

static void run_model(struct golden *g, const struct json *c)
{
    struct aim_modelsource_image image = image_of(json_get(c, "image"));
    const struct json *want = json_get(c, "expect");
    struct json *got = aim_modelsource_model(g->arena, GROUP, json_get(c, "source"), &image);
    const struct json *meta = json_get(got, "metadata"), *spec = json_get(got, "spec");
    golden_eq_str(g, "name", text_of(meta, "name"), json_get(want, "name"));
    golden_eq_str(g, "image", text_of(spec, "image"), json_get(want, "image"));
    golden_eq_json(g, "labels", json_get(meta, "labels"), json_get(want, "labels"));
    golden_eq_json(g, "annotations", json_get(meta, "annotations"), json_get(want, "annotations"));
    eq_or_null(g, "imagePullSecrets", json_get(spec, "imagePullSecrets"),
               json_get(want, "imagePullSecrets"));
}

static void run_static(struct golden *g, const struct json *c)
{
    struct aim_modelsource_image *at;
    size_t n = aim_modelsource_static(g->arena, json_get(c, "source"), &at);
    const struct json *want = json_at(c, "expect", "images", NULL);
    if (golden_ok(g, n == json_len(want), "%zu images", n))
        for (size_t i = 0; i < n; i++) {
            golden_eq_str(g, "registry", at[i].registry, json_get(json_item(want, i), "Registry"));
            golden_eq_str(g, "repository", at[i].repository,
                          json_get(json_item(want, i), "Repository"));
            golden_eq_str(g, "tag", at[i].tag, json_get(json_item(want, i), "Tag"));
        }
}

/* The images of all filters, one after the other. */
static void gather_images(struct golden *g, const struct json *results,
                          struct aim_modelsource_facts *f)
{
    size_t n = 0;
    for (size_t i = 0; i < json_len(results); i++)
        n += json_len(json_get(json_item(results, i), "images"));
    struct aim_modelsource_image *at = arena_array(g->arena, n + 1, sizeof(*at));
    f->found = at;
    f->filters = json_len(results);
    for (size_t i = 0; i < json_len(results); i++) {
        const struct json *images = json_get(json_item(results, i), "images");
        f->failed += json_get(json_item(results, i), "error") != NULL;
        for (size_t k = 0; k < json_len(images); k++)
            at[f->found_n++] = image_of(json_item(images, k));
    }
}

static void run_source_state(struct golden *g, const struct json *c)
{
    const struct json *existing = json_get(c, "existing"), *want = json_get(c, "expect");
    struct aim_modelsource_facts f = { .source = json_get(c, "source"),
                                       .existing_n = json_len(existing),
                                       .as_original = true };
    str *images = arena_array(g->arena, json_len(existing) + 1, sizeof(*images));
    struct json *creates = json_new_arr(g->arena);
    for (size_t i = 0; i < json_len(existing); i++)
        images[i] = json_text(json_item(existing, i));
    f.existing = images;
    gather_images(g, json_get(c, "results"), &f);
    struct aim_modelsource_state s = aim_modelsource_state(g->arena, &f);
    for (size_t i = 0; i < s.creates_n; i++) {
        const struct json *model =
            aim_modelsource_model(g->arena, GROUP, f.source, &f.found[s.creates[i]]);
        json_push(g->arena, creates, json_at(model, "metadata", "name", NULL));
    }
    struct aim_engine_answer answer =
        golden_engine_check(g, s.components, 2, &s.limit, true, json_get(c, "old"), want);
    golden_eq_str(g, "status", str_c(aim_engine_state_name(answer.status)),
                  json_get(want, "status"));
    golden_eq_int(g, "availableModels", s.available, json_get(want, "availableModels"));
    golden_eq_int(g, "discoveredModels", s.created, json_get(want, "discoveredModels"));
    golden_eq_bool(g, "modelsLimitReached", s.limit_reached, json_get(want, "modelsLimitReached"));
    eq_or_null(g, "creates", creates->n ? creates : NULL, json_get(want, "creates"));
}

static void run_filter(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expect");
    struct aim_modelsource_filter f =
        aim_modelsource_filter(g->arena, json_text(json_at(c, "filter", "image", NULL)));
    golden_eq_str(g, "registry", f.registry, json_get(want, "registry"));
    golden_eq_str(g, "repository", f.repository, json_get(want, "repository"));
    golden_eq_str(g, "tag", f.tag, json_get(want, "tag"));
    golden_eq_bool(g, "wildcard", f.wildcard, json_get(want, "wildcard"));
}

static void run_modelsource(struct golden *g, const struct json *c)
{
    str fn = text_of(c, "fn");
    const struct json *match = json_at(c, "expect", "match", NULL);
    struct aim_modelsource_image image = image_of(json_get(c, "image"));
    if (str_eqc(fn, "filter"))
        run_filter(g, c);
    else if (str_eqc(fn, "wildcard"))
        golden_eq_bool(g, "match", str_matches_glob(text_of(c, "pattern"), text_of(c, "text"), '*'),
                       match);
    else if (str_eqc(fn, "match"))
        golden_eq_bool(g, "match",
                       aim_modelsource_matches(g->arena, json_get(c, "filter"),
                                               json_get(c, "globalVersions"), &image, true),
                       match);
    else if (str_eqc(fn, "semver"))
        golden_eq_bool(g, "match",
                       aim_modelsource_satisfies(text_of(c, "tag"), json_get(c, "constraints"),
                                                 true),
                       match);
    else if (str_eqc(fn, "model"))
        run_model(g, c);
    else if (str_eqc(fn, "static"))
        run_static(g, c);
    else if (golden_ok(g, str_eqc(fn, "reconcile"), "unknown function " STR_FMT, STR_ARG(fn)))
        run_source_state(g, c);
}

/* ---- aim-templatecache */

static void check_artifact(struct golden *g, const struct json *got, bool owned,
                           const struct json *want)
{
    golden_eq_str(g, "name", json_text(json_at(got, "metadata", "name", NULL)),
                  json_get(want, "name"));
    golden_eq_json(g, "labels", json_at(got, "metadata", "labels", NULL), json_get(want, "labels"));
    golden_eq_json(g, "spec", json_get(got, "spec"), json_get(want, "spec"));
    golden_eq_bool(g, "owned", owned, json_get(want, "owned"));
}

static void run_templatecache(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expect"), *creates = json_get(want, "creates");
    struct aim_templatecache_facts f = { .group = GROUP,
                                         .cache = json_get(c, "cache"),
                                         .template = object_of(c, "template"),
                                         .cluster_template = object_of(c, "clusterTemplate"),
                                         .artifacts = json_get(c, "artifacts"),
                                         .config_default_missing = true,
                                         .as_original = true };
    struct aim_templatecache_state s = aim_templatecache_state(g->arena, &f);
    struct aim_engine_answer answer =
        golden_engine_check(g, s.components, s.n, NULL, 0, json_get(c, "old"), want);
    golden_eq_str(g, "status", str_c(aim_engine_state_name(answer.status)),
                  json_get(want, "status"));
    eq_or_null(g, "artifacts", s.artifacts, json_get(want, "artifacts"));
    if (golden_ok(g, json_len(s.creates) == json_len(creates), "%zu creates", json_len(s.creates)))
        for (size_t i = 0; i < json_len(creates); i++)
            check_artifact(g, json_item(s.creates, i), s.owned, json_item(creates, i));
}

const struct golden_family golden_aim_kinds[] = {
    { "aim-artifact", run_artifact },
    { "aim-discovery", run_discovery },
    { "aim-modelsource", run_modelsource },
    { "aim-templatecache", run_templatecache },
    { 0 },
};
