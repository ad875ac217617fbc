/* Observing what a service depends on: see service_view.h. Reads caches only.
 *
 *     spec.templateRef ------------------------------+
 *     spec.model -> model -> best ready template ----+--> base --overrides--> template --> its model
 *                                                                                |
 *                    InferenceService, pods (image pull errors)  <---------------+--> cache
 *
 * Every step that fails leaves a fact for service_status_core.c and ends the chain. Objects are built in the arena of
 * the turn, because cached records may be replaced while it waits. */
#include "service_view.h"

#include "cache_core.h"
#include "model_core.h"
#include "names_core.h"
#include "service_world.h"
#include "template_core.h"

static str meta_text(const struct json *object, const char *key)
{
    return json_text(json_at(object, "metadata", key, NULL));
}

static struct json *object_of(const struct aim_turn *t, enum aim_kind kind,
                              const struct aim_record *r)
{
    return r ? aim_record_object(t->r->arena, &aim_kinds_of(t->aim)->at[kind], r) : NULL;
}

struct json *aim_service_find(const struct aim_turn *t, enum aim_kind ns_kind, str name)
{
    enum aim_kind cluster_kind = (enum aim_kind)(ns_kind + 1);
    const struct aim_record *r = cache_get(aim_cache(t->aim, ns_kind), t->ns, name);
    return r ? object_of(t, ns_kind, r)
             : object_of(t, cluster_kind, cache_get(aim_cache(t->aim, cluster_kind), S(""), name));
}

/* May this service use the cache? A dedicated one belongs to the service that owns it; the two kinds never mix. */
static bool is_usable_cache(const struct aim_turn *t, const struct json *cache)
{
    const struct json *owners = json_at(cache, "metadata", "ownerReferences", NULL);
    bool dedicated = str_eqc(json_text(json_at(cache, "spec", "mode", NULL)), "Dedicated");
    bool owned = false;
    for (size_t i = 0; i < json_len(owners); i++)
        owned = owned || str_eq(json_text(json_get(json_item(owners, i), "uid")), t->uid);
    return dedicated ? owned : !aim_service_is_dedicated(t->object);
}

/* Usually named after the template; a cache that a user or another operator created may have any name. The one that is
 * available wins, then that of the template's name, then the smallest name. */
static struct json *aim_service_find_cache(const struct aim_turn *t, str template)
{
    const struct aim_record *r, *best = NULL;
    cache_each(r, aim_cache(t->aim, AIM_TEMPLATE_CACHE)) {
        const struct json *object =
            str_eq(r->meta.ns, t->ns) ? object_of(t, AIM_TEMPLATE_CACHE, r) : NULL;
        if (!object || !is_usable_cache(t, object) ||
            !str_eq(aim_service_cache_template(object), template))
            continue;
        int gain = !best ? 1 : aim_cache_is_available(r->word) - aim_cache_is_available(best->word);
        gain = gain ? gain : str_eq(r->meta.name, template) - str_eq(best->meta.name, template);
        if (gain > 0 || (!gain && str_cmp(r->meta.name, best->meta.name) < 0))
            best = r;
    }
    return object_of(t, AIM_TEMPLATE_CACHE, best);
}

/* ---- the model */

static struct aim_service_model_fact model_fact(enum aim_service_model_state state, str reason,
                                                str message)
{
    return (struct aim_service_model_fact){ state, reason, message };
}

/* A model with this image; `*ret_count` is the number of them. */
static struct json *only_of_image(struct aim_turn *t, enum aim_kind kind, str ns, str image,
                                  size_t *ret_count)
{
    const struct aim_record *r, *found = NULL;
    *ret_count = 0;
    cache_each_in(r, aim_cache(t->aim, kind), AIM_INDEX_IMAGE, image)
        if (str_eq(r->meta.ns, ns) && str_find(r->labels, S("/custom-model\"")) == SIZE_MAX) {
            found = r;
            ++*ret_count;
        }
    return object_of(t, kind, found);
}

/* The only model with this image; several are an error, and for none a model is created. */
static void find_by_image(struct aim_turn *t, struct aim_service_view *v, str image)
{
    size_t count;
    v->model = only_of_image(t, AIM_MODEL, t->ns, image, &count);
    if (!v->model)
        v->model = only_of_image(t, AIM_CLUSTER_MODEL, S(""), image, &count);
    if (count > 1) {
        v->facts.model =
            model_fact(SERVICE_MODEL_UNRESOLVED, S("MultipleModelsFound"),
                       arena_printf(t->r->arena,
                                    "%zu models have the image \"" STR_FMT "\"; name one in "
                                    "spec.model.ref",
                                    count, STR_ARG(image)));
        v->model = NULL;
    } else if (!v->model) {
        v->make_model = aim_service_model(t->r->arena, &v->basis);
        v->facts.model =
            model_fact(SERVICE_MODEL_WAITING, S("ModelPending"),
                       arena_printf(t->r->arena,
                                    "AIMModel \"" STR_FMT "\" is being created for the image",
                                    STR_ARG(meta_text(v->make_model, "name"))));
    }
}

/* The model that spec.model.custom describes: an existing one with the same image and sources, or a new one. */
static void find_custom(struct aim_turn *t, struct aim_service_view *v, const struct json *custom)
{
    str image = json_text(json_get(custom, "baseImage"));
    const struct aim_record *r, *best = NULL;
    cache_each_in(r, aim_cache(t->aim, AIM_MODEL), AIM_INDEX_IMAGE, image)
        if (str_eq(r->meta.ns, t->ns) && !r->deleting &&
            (!best || str_cmp(r->meta.name, best->meta.name) < 0) &&
            aim_service_is_custom_model(custom, object_of(t, AIM_MODEL, r)))
            best = r;
    v->model = object_of(t, AIM_MODEL, best);
    if (v->model)
        return;
    v->make_model = aim_service_custom_model(t->r->arena, &v->basis);
    v->facts.model =
        model_fact(SERVICE_MODEL_WAITING, S("ModelPending"),
                   arena_printf(t->r->arena,
                                "AIMModel \"" STR_FMT "\" is being created for spec.model.custom",
                                STR_ARG(meta_text(v->make_model, "name"))));
}

/* A model that does not exist yet is waited for: it may be created later. */
static void find_by_name(struct aim_turn *t, struct aim_service_view *v, str name)
{
    v->model = aim_service_find(t, AIM_MODEL, name);
    if (!v->model)
        v->facts.model =
            model_fact(SERVICE_MODEL_WAITING, S("ModelNotFound"),
                       arena_printf(t->r->arena,
                                    "No AIMModel or AIMClusterModel found for " STR_FMT,
                                    STR_ARG(aim_names_quote(t->r->arena, name))));
}

/* Sets the model fact from the status of the model. */
static void check_model(struct aim_turn *t, struct aim_service_view *v)
{
    str word = json_text(json_at(v->model, "status", "status", NULL));
    const char *reason = aim_model_unready_reason(word);
    if (!reason) {
        v->facts.model.state = SERVICE_MODEL_READY;
        return;
    }
    enum aim_service_model_state state = !strcmp(reason, "ModelFailed")     ? SERVICE_MODEL_FAILED
                                         : !strcmp(reason, "ModelDegraded") ? SERVICE_MODEL_DEGRADED
                                                                            : SERVICE_MODEL_WAITING;
    v->facts.model =
        model_fact(state, str_c(reason),
                   aim_model_unready_message(t->r->arena, json_text(json_get(v->model, "kind")),
                                             meta_text(v->model, "name"), word));
}

/* True if the model is ready; otherwise the fact explains why not. */
static bool resolve_model(struct aim_turn *t, struct aim_service_view *v)
{
    str ref = aim_service_model_ref(t->object), image = aim_service_model_image(t->object);
    const struct json *custom = json_at(t->object, "spec", "model", "custom", NULL);
    if (json_len(custom))
        find_custom(t, v, custom);
    else if (ref.n)
        find_by_name(t, v, ref);
    else if (image.n)
        find_by_image(t, v, image);
    else /* stored without one: the definition does not require a spec */
        v->facts.model = model_fact(SERVICE_MODEL_UNRESOLVED, S("InvalidSpec"),
                                    S("spec.model must set a model (ref) or an image"));
    if (v->model)
        check_model(t, v);
    return v->facts.model.state == SERVICE_MODEL_READY;
}

/* ---- the template */

struct candidates {
    struct aim_template_candidate *at;
    size_t n;
};

static void gather_candidates(struct aim_turn *t, enum aim_kind kind, str ns, str model,
                              struct candidates *c)
{
    const struct aim_record *r;
    cache_each_in(r, aim_cache(t->aim, kind), AIM_INDEX_MODEL, model)
        if (str_eq(r->meta.ns, ns) && !r->deleting) {
            const struct json *template = object_of(t, kind, r);
            c->at[c->n] =
                aim_template_candidate_of(t->r->arena, aim_kinds_of(t->aim)->group, template);
            aim_template_check_memory(t->r->arena, &c->at[c->n++], template,
                                      aim_world_gpus(aim_world(t->aim)));
        }
}

static size_t count_of(const struct aim_turn *t, enum aim_kind kind, str model)
{
    const struct aim_record *r;
    size_t n = 0;
    cache_each_in(r, aim_cache(t->aim, kind), AIM_INDEX_MODEL, model)
        n++;
    return n;
}

/* A template of the namespace with the same spec; reused instead of creating another one. */
static struct json *equal_template(struct aim_turn *t, const struct json *wanted)
{
    const struct aim_record *r;
    str model = json_text(json_at(wanted, "spec", "modelName", NULL));
    cache_each_in(r, aim_cache(t->aim, AIM_TEMPLATE), AIM_INDEX_MODEL, model) {
        struct json *have =
            str_eq(r->meta.ns, t->ns) && !r->deleting ? object_of(t, AIM_TEMPLATE, r) : NULL;
        if (have && json_eq(json_get(have, "spec"), json_get(wanted, "spec")))
            return have;
    }
    return NULL;
}

str aim_service_runtime_template(const struct json *inference_service)
{
    return json_text(json_at(inference_service, "spec", "predictor", "model", "runtime", NULL));
}

bool aim_service_is_rebinding(const struct aim_turn *t)
{
    str key = aim_names_label_key(t->r->arena, aim_kinds_of(t->aim)->group, "force-rebind");
    const struct json *notes = json_at(t->object, "metadata", "annotations", NULL);
    return json_text(json_get_str(notes, key)).n > 0;
}

/* Was the template of that name derived from this one? The overrides may have changed since then, so that only the part before
 * their hash counts; a template that equals the derived one may have any name. */
static bool is_derived_from(struct aim_turn *t, const struct aim_service_view *v, str name,
                            const struct aim_template_candidate *c, const struct json *base)
{
    enum { HASH = 8 };
    str derived = aim_names_derived_template(t->r->arena, c->name, S(""));
    if (derived.n == name.n &&
        str_eq(str_upto(name, name.n - HASH), str_upto(derived, derived.n - HASH)))
        return true;
    const struct json *same =
        equal_template(t, aim_service_derived_template(t->r->arena, &v->basis, base));
    return same && str_eq(meta_text(same, "name"), name);
}

/* Is this the template that the running service was made from, as it is or with overrides? The InferenceService remembers it:
 * the status forgets it while the model is in trouble. The status has the scope, if two templates have the name. */
static bool is_bound_to(struct aim_turn *t, const struct aim_service_view *v,
                        const struct aim_template_candidate *c, const struct json *base)
{
    const struct json *last = json_get(t->status.old, "resolvedTemplate");
    str name = aim_service_runtime_template(v->runtime),
        last_name = json_text(json_get(last, "name"));
    str scope = str_eq(name, last_name) ? json_text(json_get(last, "scope")) : S("");
    if (!name.n) /* one of the newer operator names no runtime */
        name = last_name;
    if (aim_service_overrides(t->object))
        return is_derived_from(t, v, name, c, base);
    return str_eq(name, c->name) && !str_eqc(scope, c->ns.n ? "Cluster" : "Namespace");
}

/* A service that runs keeps its template while that exists and has not failed: another choice would restart its pods.
 * The annotation force-rebind selects again. NULL: select. */
static const struct json *bound_template(struct aim_turn *t, const struct aim_service_view *v,
                                         const struct candidates *c)
{
    if (!v->runtime || aim_service_is_rebinding(t))
        return NULL;
    for (size_t i = 0; i < c->n; i++) {
        enum aim_kind kind = c->at[i].ns.n ? AIM_TEMPLATE : AIM_CLUSTER_TEMPLATE;
        const struct aim_record *r = cache_get(aim_cache(t->aim, kind), c->at[i].ns, c->at[i].name);
        const struct json *base = c->at[i].derived ? NULL : object_of(t, kind, r);
        if (base && is_bound_to(t, v, &c->at[i], base))
            return str_eqc(r->word, "Failed") ? NULL : base;
    }
    return NULL;
}

/* The best template of the model, or NULL and the fact. */
static const struct json *select_template(struct aim_turn *t, struct aim_service_view *v)
{
    str model = meta_text(v->model, "name");
    size_t room = count_of(t, AIM_TEMPLATE, model) + count_of(t, AIM_CLUSTER_TEMPLATE, model);
    struct candidates c = { arena_array(t->r->arena, room + 1, sizeof(*c.at)), 0 };
    gather_candidates(t, AIM_TEMPLATE, t->ns, model, &c);
    gather_candidates(t, AIM_CLUSTER_TEMPLATE, S(""), model, &c);
    const struct json *bound = bound_template(t, v, &c);
    if (bound)
        return bound;
    struct aim_template_selection s =
        aim_template_select(t->r->arena, model, c.at, c.n, aim_world_gpus(aim_world(t->aim)));
    if (s.chosen) { /* in its own scope: the other one may have a template of the same name */
        enum aim_kind kind = s.chosen->ns.n ? AIM_TEMPLATE : AIM_CLUSTER_TEMPLATE;
        return object_of(t, kind, cache_get(aim_cache(t->aim, kind), s.chosen->ns, s.chosen->name));
    }
    bool waits = s.choice == TEMPLATE_NOT_READY;
    v->facts.template = (struct aim_service_template_fact){
        .state = waits ? SERVICE_TEMPLATE_AWAITED : SERVICE_TEMPLATE_REFUSED,
        .reason = str_c(s.reason),
        .message = s.message,
    };
    return NULL;
}

/* The named template, or the best one of the model. */
static const struct json *base_template(struct aim_turn *t, struct aim_service_view *v)
{
    str name = aim_service_template_ref(t->object);
    if (!name.n)
        return resolve_model(t, v) ? select_template(t, v) : NULL;
    const struct json *template = aim_service_find(t, AIM_TEMPLATE, name);
    if (!template)
        v->facts.template =
            (struct aim_service_template_fact){ .state = SERVICE_TEMPLATE_MISSING, .name = name };
    return template;
}

/* The template with the overrides of the service; NULL while it is being created. */
static const struct json *derive_template(struct aim_turn *t, struct aim_service_view *v,
                                          const struct json *base)
{
    if (!base || !aim_service_overrides(t->object))
        return base;
    struct json *wanted = aim_service_derived_template(t->r->arena, &v->basis, base);
    const struct json *same = equal_template(t, wanted);
    if (same)
        return same;
    str name = meta_text(wanted, "name");
    v->make_template = wanted;
    v->live_template =
        object_of(t, AIM_TEMPLATE, cache_get(aim_cache(t->aim, AIM_TEMPLATE), t->ns, name));
    if (!v->live_template)
        v->facts.template = (struct aim_service_template_fact){
            .state = SERVICE_TEMPLATE_DERIVING,
            .name = name,
        };
    return v->live_template;
}

/* NotAvailable counts as degraded: no node has the GPU of the template. */
static enum aim_service_template_state template_state_of(const struct json *template)
{
    str word = json_text(json_at(template, "status", "status", NULL));
    if (str_eqc(word, "Failed"))
        return SERVICE_TEMPLATE_FAILED;
    if (str_eqc(word, "Degraded") || str_eqc(word, "NotAvailable"))
        return SERVICE_TEMPLATE_DEGRADED;
    if (!str_eqc(word, "Ready"))
        return SERVICE_TEMPLATE_PENDING;
    return json_len(aim_service_sources(template)) ? SERVICE_TEMPLATE_READY
                                                   : SERVICE_TEMPLATE_EMPTY;
}

/* Takes reason and message from the Failure condition of the template, which names the cause. */
static void check_template(struct aim_service_view *v, const struct json *template)
{
    const struct json *failure = aim_status_find(json_get(template, "status"), "Failure");
    bool failing = str_eqc(json_text(json_get(failure, "status")), "True");
    v->facts.template = (struct aim_service_template_fact){
        .state = template_state_of(template),
        .name = meta_text(template, "name"),
        .ns = meta_text(template, "namespace"),
        .uid = meta_text(template, "uid"),
        .found = true,
        .reason = failing ? json_text(json_get(failure, "reason")) : S(""),
        .message = failing ? json_text(json_get(failure, "message")) : S(""),
    };
}

/* The model of the template does not exist. */
static void set_model_missing(struct aim_turn *t, struct aim_service_view *v, str model)
{
    str name = aim_names_quote(t->r->arena, model);
    str message =
        v->facts.template.ns.n
            ? arena_printf(t->r->arena, "AIMModel " STR_FMT " not found in namespace " STR_FMT,
                           STR_ARG(name), STR_ARG(aim_names_quote(t->r->arena, t->ns)))
            : arena_printf(t->r->arena, "AIMClusterModel " STR_FMT " not found", STR_ARG(name));
    v->facts.model = model_fact(SERVICE_MODEL_MISSING, S("ImageNotFound"), message);
}

/* Template and model in use. */
static void observe_template(struct aim_turn *t, struct aim_service_view *v)
{
    const struct json *template = derive_template(t, v, base_template(t, v));
    if (!template)
        return;
    str model = json_text(json_at(template, "spec", "modelName", NULL));
    v->basis.template = template;
    check_template(v, template);
    v->model = aim_service_find(t, AIM_MODEL, model);
    v->basis.model = v->model;
    if (v->model)
        check_model(t, v);
    else
        set_model_missing(t, v, model);
}

/* ---- the runtime */

static bool is_pull_error(str reason)
{
    return str_eqc(reason, "ImagePullBackOff") || str_eqc(reason, "ErrImagePull") ||
           str_eqc(reason, "InvalidImageName");
}

/* Sets the first image pull error of these containers; false if there is none. */
static bool find_pull_error(struct aim_turn *t, struct aim_service_runtime_fact *fact,
                            const struct aim_pod_container *at, size_t n, bool init)
{
    for (size_t i = 0; i < n; i++) {
        if (!is_pull_error(at[i].waiting))
            continue;
        aim_service_set_pull_error(t->r->arena, fact,
                                   &(struct aim_service_pull_error){
                                       .kind = aim_service_pull_cause(at[i].message),
                                       .container = at[i].name,
                                       .init = init,
                                       .reason = at[i].waiting,
                                       .message = at[i].message });
        return true;
    }
    return false;
}

/* The first pull error of any pod is enough: all pods of a service have the same image. */
static void observe_pods(struct aim_turn *t, struct aim_service_view *v)
{
    const struct aim_predictor_record *pod;
    cache_each_in(pod, aim_world(t->aim)->pods, 0, v->runtime_name)
        if (str_eq(pod->meta.ns, t->ns) &&
            (find_pull_error(t, &v->facts.runtime, pod->init_containers.at, pod->init_containers.n,
                             true) ||
             find_pull_error(t, &v->facts.runtime, pod->containers.at, pod->containers.n, false)))
            return;
}

/* Is it owned by an AIMService of this name, in our API group? One of the other group is the child of another operator, which
 * may still be running. The uid is not compared: a service that was restored from a backup has another one. */
static bool is_of_service(const struct aim_turn *t, const struct aim_child_record *r)
{
    str group = arena_printf(t->r->arena, "\"%s/", aim_kinds_of(t->aim)->group);
    return str_eq(r->meta.ns, t->ns) && str_eqc(r->owner_kind, "AIMService") &&
           str_eq(r->owner_name, t->name) && str_find(r->owners, group) != SIZE_MAX;
}

/* The InferenceService under our name, or else the one that another operator created for this service. */
static void find_runtime(struct aim_turn *t, struct aim_service_view *v)
{
    const struct cache *all = aim_world(t->aim)->inference_services;
    v->runtime_name = aim_names_inference_service(t->r->arena, t->name, t->ns);
    const struct aim_child_record *live = cache_get(all, t->ns, v->runtime_name), *r;
    v->foreign = live && !is_of_service(t, live);
    if (v->foreign) {
        live = NULL; /* neither changed nor routed to */
        v->facts.runtime.blocked =
            arena_printf(t->r->arena,
                         "InferenceService " STR_FMT " exists and does not belong to this service; "
                         "delete it or rename the service",
                         STR_ARG(aim_names_quote(t->r->arena, v->runtime_name)));
    }
    cache_each_in(r, all, 0, t->name) {
        if (live || !is_of_service(t, r))
            continue;
        live = r;
        v->adopted = true;
        v->facts.runtime.blocked = S("");
        v->runtime_name = arena_str(t->r->arena, r->meta.name);
    }
    v->runtime = aim_child_object(t->r->arena, live);
}

/* The InferenceService and, while it is not ready, its pods. */
static void observe_runtime(struct aim_turn *t, struct aim_service_view *v)
{
    find_runtime(t, v);
    const struct json *status = json_get(v->runtime, "status");
    const struct json *ready = aim_status_find(status, "Ready");
    const struct json *failure = json_at(status, "modelStatus", "lastFailureInfo", NULL);
    str message = json_text(json_get(failure, "message"));
    v->facts.runtime.found = v->runtime != NULL;
    v->facts.runtime.ready = str_eqc(json_text(json_get(ready, "status")), "True");
    v->facts.runtime.failed = json_is(failure, JSON_OBJ);
    v->facts.runtime.failure = message.n ? message : json_text(json_get(failure, "reason"));
    if (v->runtime && !v->facts.runtime.ready)
        observe_pods(t, v);
}

/* Fills in the view, and the template that the route needs for its labels. */
void aim_service_observe(struct aim_turn *t, struct aim_service_view *v)
{
    struct arena *a = t->r->arena;
    v->basis = (struct aim_service_basis){ .group = aim_kinds_of(t->aim)->group,
                                           .service = t->object,
                                           .config = &t->settings,
                                           .own = &t->own };
    v->facts.old = t->status.old;
    v->facts.config =
        t->config.outcome == RESOLVE_MISSING ? SERVICE_CONFIG_MISSING : SERVICE_CONFIG_FOUND;
    v->facts.config_message =
        arena_printf(a, "AIMRuntimeConfig \"" STR_FMT "\" not found in namespace \"" STR_FMT "\"",
                     STR_ARG(json_text(json_at(t->object, "spec", "runtimeConfigName", NULL))),
                     STR_ARG(t->ns));
    observe_runtime(t, v);
    observe_template(t, v);
    if (v->facts.template.found)
        v->cache = aim_service_find_cache(t, v->facts.template.name);
    const struct json *source = json_item(aim_service_sources(v->basis.template), 0);
    t->template = (struct aim_route_template){
        .exists = v->runtime != NULL,
        .backend = v->runtime_name,
        .name = v->facts.template.name,
        .model_name = json_text(json_at(v->basis.template, "spec", "modelName", NULL)),
        .source_name = aim_service_source_id(source),
    };
}
