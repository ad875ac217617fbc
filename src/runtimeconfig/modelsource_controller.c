/* AIMClusterModelSource: see modelsource_controller.h; filters, versions and the state are in modelsource_core.h.
 *
 *     turn: new spec, or syncInterval over? -- yes --> sync: pull secrets, then one filter after the other
 *                                                        tag or exact versions   no request
 *                                                        no wildcard             the tags of the repository
 *                                                        wildcard                the repositories, then the tags of each
 *     sync over --> next turn: models for what was found, status
 *
 * A registry is asked through the inspector, with its limits on addresses, sizes and time. What a failed filter would have found is
 * unknown, not gone: a source never deletes a model. The result of a sync is kept in memory; after a restart the next sync is
 * due when it would have been. */
#include "modelsource_controller.h"

#include "../base/duration.h"
#include "../base/rfc3339.h"
#include "../registry/registry.h"
#include "aim.h"
#include "engine_status.h"
#include "modelsource_check.h"
#include "pull_secrets.h"

#define INTERVAL_LEAST_NS (60 * NS_PER_S)
#define INTERVAL_FAILED_NS (300 * NS_PER_S) /* at most, after a filter failed */
#define HUB "docker.io"

enum { FOUND_MAX = 10000 };
enum sync_state { SYNC_NONE, SYNC_RUNNING, SYNC_DONE };

struct aim_sync {
    struct aim_tracked *of;
    char *key; /* owned: the spec that was asked for */
    enum sync_state state;
    int64_t next_ns; /* when the next one is due: monotonic clock */
    int64_t ended_s; /* wall clock */
    bool applied;    /* the models of this sync exist */

    struct arena arena; /* of everything below */
    const struct json *source;
    struct aim_pull_secrets secrets;
    const char *secret_reason;       /* why credentials are missing; NULL: they are not */
    size_t filter;                   /* the current one */
    const struct json *repositories; /* of a wildcard: those that are left */
    size_t repository;
    struct registry_inspection *asked;
    struct aim_modelsource_image *found;
    size_t found_n;
    size_t failed;
    str failure; /* the first one */
};

static void next_filter(struct aim_sync *s);
static void next_repository(struct aim_sync *s);

static void end_requests(struct aim_sync *s)
{
    aim_pull_secrets_cancel(&s->secrets);
    registry_inspection_cancel(s->asked);
    s->asked = NULL;
}

void aim_sync_free(struct aim_sync *s)
{
    if (!s)
        return;
    end_requests(s);
    arena_done(&s->arena);
    free(s->key);
    free(s);
}

static int64_t mono_ns(const struct aim_sync *s)
{
    return loop_mono_ns(manager_loop(s->of->of->aim->manager));
}

/* ---- one filter */

static const struct json *current_filter(const struct aim_sync *s)
{
    return json_item(json_at(s->source, "spec", "filters", NULL), s->filter);
}

static str host_of(struct aim_sync *s, const struct aim_modelsource_filter *f)
{
    str registry = json_text(json_at(s->source, "spec", "registry", NULL));
    return f->registry.n ? f->registry : registry.n ? registry : S(HUB);
}

/* Adds an image if the current filter selects it; what a registry lists is not trusted. */
static void add_found(struct aim_sync *s, str host, str repository, str tag)
{
    struct aim_modelsource_image image = { host, repository, tag };
    if (s->found_n < FOUND_MAX && aim_modelsource_check(&s->arena, &image, NULL) == 0 &&
        aim_modelsource_matches(&s->arena, current_filter(s),
                                json_at(s->source, "spec", "versions", NULL), &image, false))
        s->found[s->found_n++] = image;
}

static void fail_filter(struct aim_sync *s, str message)
{
    str image = json_text(json_get(current_filter(s), "image"));
    if (aim_modelsource_check_pattern(image, NULL) < 0) /* events do not show credentials */
        image = str_from(image, str_find_char(image, '@'));
    s->failed++;
    if (!s->failure.n)
        s->failure = arena_printf(&s->arena, "filter \"" STR_FMT "\": " STR_FMT, STR_ARG(image),
                                  STR_ARG(message));
    s->filter++;
    next_filter(s);
}

/* Asks for a list; false: the filter failed and the next one has begun. */
static bool request_list(struct aim_sync *s, enum registry_list list, str host, str repository,
                         void (*done)(void *context, const struct registry_result *result))
{
    struct registry_inspector *inspector = s->of->of->aim->inspector;
    struct registry_inspect q = { .list = list, .done = done, .context = s };
    str image = arena_printf(&s->arena, STR_FMT "/" STR_FMT, STR_ARG(host), STR_ARG(repository));
    err_t e = { 0 };
    if (!inspector)
        err_set(&e, ENOTSUP, "image inspection is disabled; see --inspect-images");
    else if (s->secret_reason)
        err_set(&e, EACCES, "%s", s->secret_reason);
    else if (registry_reference_parse(&s->arena, image, &q.image, &e) == 0)
        registry_keychain_find(&s->arena, s->secrets.found, s->secrets.found_n, &q.image, true,
                               &q.credentials, &e);
    if (e.code) {
        fail_filter(s, arena_str(&s->arena, str_c(e.text)));
        return false;
    }
    if (list == REGISTRY_HUB) {
        q.image.registry = S("hub.docker.com");
        q.image.repository = repository;
        q.credentials = (struct registry_credentials){ 0 }; /* not of this host */
    }
    s->asked = registry_inspect(inspector, &q);
    return true;
}

/* The tags of one repository: of a filter without a wildcard, or the next one of a wildcard. */
static void on_tags(void *context, const struct registry_result *result)
{
    struct aim_sync *s = context;
    struct aim_modelsource_filter f =
        aim_modelsource_filter(&s->arena, json_text(json_get(current_filter(s), "image")));
    str host = host_of(s, &f);
    str repository =
        s->repositories ? json_text(json_item(s->repositories, s->repository)) : f.repository;
    s->asked = NULL;
    if (result->cause != REGISTRY_OK) {
        fail_filter(s, arena_str(&s->arena, result->message));
        return;
    }
    for (size_t i = 0; i < json_len(result->names); i++)
        add_found(s, host, repository,
                  arena_str(&s->arena, json_text(json_item(result->names, i))));
    s->repository++;
    next_repository(s);
}

static void next_repository(struct aim_sync *s)
{
    struct aim_modelsource_filter f =
        aim_modelsource_filter(&s->arena, json_text(json_get(current_filter(s), "image")));
    if (s->repository >= json_len(s->repositories) || s->found_n == FOUND_MAX) {
        s->filter++;
        next_filter(s);
        return;
    }
    request_list(s, REGISTRY_TAGS, host_of(s, &f),
                 json_text(json_item(s->repositories, s->repository)), on_tags);
}

/* The repositories that a wildcard selects. Docker Hub lists them by namespace, without it. */
static void on_repositories(void *context, const struct registry_result *result)
{
    struct aim_sync *s = context;
    struct aim_modelsource_filter f =
        aim_modelsource_filter(&s->arena, json_text(json_get(current_filter(s), "image")));
    struct json *list = json_new_arr(&s->arena);
    s->asked = NULL;
    if (result->cause != REGISTRY_OK) {
        fail_filter(s, arena_str(&s->arena, result->message));
        return;
    }
    bool hub = str_eqc(host_of(s, &f), HUB);
    str ns = str_upto(f.repository, MIN(str_find_char(f.repository, '/'), f.repository.n));
    for (size_t i = 0; i < json_len(result->names); i++) {
        str name = json_text(json_item(result->names, i));
        name = hub ? arena_printf(&s->arena, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name))
                   : arena_str(&s->arena, name);
        if (str_matches_glob(f.repository, name, '*'))
            json_push(&s->arena, list, json_new_str(&s->arena, name));
    }
    s->repositories = list;
    s->repository = 0;
    next_repository(s);
}

/* Registries differ in how they list what they have; GitHub's needs an API of its own and a token. */
static void ask_repositories(struct aim_sync *s, const struct aim_modelsource_filter *f)
{
    str host = host_of(s, f);
    size_t slash = str_find_char(f->repository, '/');
    str ns = slash == SIZE_MAX ? S("") : str_upto(f->repository, slash);
    if (str_eqc(host, "ghcr.io"))
        fail_filter(s, S("ghcr.io lists no repositories; name each one without a wildcard"));
    else if (!str_eqc(host, HUB))
        request_list(s, REGISTRY_CATALOG, host, S("catalog"), on_repositories);
    else if (!ns.n || str_find_char(ns, '*') != SIZE_MAX)
        fail_filter(s, S("Docker Hub lists repositories by namespace only; name it, as in "
                         "\"acme/*\""));
    else
        request_list(s, REGISTRY_HUB, host, ns, on_repositories);
}

/* ---- a sync */

/* A sync with a failure is repeated sooner: registries come back. */
static void end_sync(struct aim_sync *s)
{
    const struct aim_consumers *of = s->of->of;
    int64_t interval = 3600 * NS_PER_S;
    str text = json_text(json_at(s->source, "spec", "syncInterval", NULL));
    if (text.n)
        (void)duration_parse(text, &interval, NULL);
    interval = MAX(interval, INTERVAL_LEAST_NS);
    s->state = SYNC_DONE;
    s->applied = false;
    s->ended_s = loop_wall_ns(manager_loop(of->aim->manager)) / NS_PER_S;
    s->next_ns = mono_ns(s) + (s->failed ? MIN(interval, INTERVAL_FAILED_NS) : interval);
    controller_add(of->controller, s->of->ns, s->of->name);
}

/* Is every constraint of the filter an exact version, so that no registry must be asked? */
static bool is_static(const struct aim_modelsource_filter *f, const struct json *filter,
                      const struct json *source)
{
    const struct json *own = json_get(filter, "versions");
    const struct json *versions = json_len(own) ? own : json_at(source, "spec", "versions", NULL);
    bool all = json_len(versions) > 0;
    for (size_t i = 0; i < json_len(versions); i++)
        all = all && aim_modelsource_is_version(json_text(json_item(versions, i)));
    return !f->wildcard && (f->tag.n || all);
}

/* Images that the filter names exactly are found without a request, and even if every registry is away. */
static int add_exact(struct aim_sync *s, const struct aim_modelsource_filter *f, err_t *e)
{
    struct aim_modelsource_image *exact, any = { host_of(s, f), S("any"), S("1") };
    int r = aim_modelsource_check_pattern(json_text(json_get(current_filter(s), "image")), e);
    r = r ? r : aim_modelsource_check(&s->arena, &any, e);
    size_t n = aim_modelsource_static_of(&s->arena, s->source, current_filter(s), &exact);
    for (size_t i = 0; r == 0 && i < n && s->found_n < FOUND_MAX; i++) {
        r = aim_modelsource_check(&s->arena, &exact[i], e);
        if (r == 0)
            s->found[s->found_n++] = exact[i];
    }
    return r;
}

/* The next filter that needs a registry; the last one ends the sync. */
static void next_filter(struct aim_sync *s)
{
    const struct json *filters = json_at(s->source, "spec", "filters", NULL);
    err_t e;
    for (;; s->filter++) {
        if (s->filter >= json_len(filters)) {
            end_sync(s);
            return;
        }
        const struct json *filter = json_item(filters, s->filter);
        struct aim_modelsource_filter f =
            aim_modelsource_filter(&s->arena, json_text(json_get(filter, "image")));
        s->repositories = NULL;
        s->repository = 0;
        if (add_exact(s, &f, &e) < 0) {
            fail_filter(s, arena_str(&s->arena, str_c(e.text)));
            return;
        }
        if (is_static(&f, filter, s->source))
            continue;
        if (f.wildcard)
            ask_repositories(s, &f);
        else
            request_list(s, REGISTRY_TAGS, host_of(s, &f), f.repository, on_tags);
        return;
    }
}

/* Without its credentials a registry is not asked at all: an anonymous list could be a part of the real one. */
static void on_secrets(void *context, const char *reason, str message)
{
    struct aim_sync *s = context;
    s->secret_reason = reason ? arena_str(&s->arena, message).p : NULL;
    next_filter(s);
}

static void begin_sync(struct aim_turn *t, struct aim_sync *s)
{
    end_requests(s);
    arena_done(&s->arena);
    s->arena = (struct arena){ 0 };
    s->state = SYNC_RUNNING;
    s->source = json_copy(&s->arena, t->object);
    s->found = arena_array(&s->arena, FOUND_MAX, sizeof(*s->found));
    s->filter = s->failed = s->found_n = 0;
    s->failure = S("");
    const struct json *secrets = json_at(s->source, "spec", "imagePullSecrets", NULL);
    s->secrets = (struct aim_pull_secrets){ .kube = manager_kube(t->aim->manager),
                                            .arena = &s->arena,
                                            .ns = aim_operator_namespace(t->aim),
                                            .done = on_secrets,
                                            .context = s };
    aim_pull_secrets_read(&s->secrets, &secrets, 1);
}

/* ---- turns */

/* After a restart: the time until the next sync, from the status. 0: now. */
static int64_t left_of_interval(struct aim_turn *t)
{
    int64_t last = 0, interval = 3600 * NS_PER_S;
    str text = json_text(json_at(t->object, "spec", "syncInterval", NULL));
    bool same = json_int(json_get(t->status.old, "observedGeneration"), -1) == t->status.generation;
    if (!same || rfc3339_parse(json_text(json_get(t->status.old, "lastSyncTime")), &last, NULL) < 0)
        return 0;
    if (text.n)
        (void)duration_parse(text, &interval, NULL);
    int64_t left = (last - t->status.now) * NS_PER_S + MAX(interval, INTERVAL_LEAST_NS);
    return MAX(left, 0);
}

/* Starts a sync if it is due: a new spec at once, also while another one runs. */
static void modelsource_observe_turn(struct aim_turn *t)
{
    struct aim_sync *s = t->tracked->sync;
    str key = json_to_str(t->r->arena, json_get(t->object, "spec"));
    if (t->deleting)
        return;
    if (!s) {
        s = t->tracked->sync = mem_zero(1, sizeof(*s));
        s->of = t->tracked;
        s->next_ns = mono_ns(s) + left_of_interval(t);
        s->key = mem_dup(key.p, key.n);
    } else if (!str_eqc(key, s->key)) {
        free(s->key);
        s->key = mem_dup(key.p, key.n);
        s->next_ns = 0;
    }
    if (s->state == SYNC_DONE && s->applied) { /* the models have it: the list can be long */
        arena_done(&s->arena);
        s->arena = (struct arena){ 0 };
    }
    if (mono_ns(s) >= s->next_ns && (s->state != SYNC_RUNNING || !s->next_ns)) {
        s->next_ns = INT64_MAX;
        begin_sync(t, s);
    }
    if (s->next_ns != INT64_MAX)
        reconcile_again(t->r, MAX(s->next_ns - mono_ns(s), NS_PER_S));
}

/* The images of the models that this source created. */
static size_t list_existing(struct aim_turn *t, str **ret)
{
    struct cache *models = aim_cache(t->aim, AIM_CLUSTER_MODEL);
    str *at = arena_array(t->r->arena, cache_count(models) + 1, sizeof(*at));
    str label = arena_printf(t->r->arena, "\"%s/model-source\":\"" STR_FMT "\"",
                             aim_kinds_of(t->aim)->group, STR_ARG(t->name));
    const struct aim_record *r;
    size_t n = 0;
    cache_each(r, models)
        if (str_find(r->labels, label) != SIZE_MAX)
            at[n++] = arena_str(t->r->arena, r->image);
    *ret = at;
    return n;
}

/* What exists is read again: models of an earlier sync, or of an operator before this one, count. */
static struct aim_modelsource_state state_of(struct aim_turn *t, const struct aim_sync *s)
{
    str *existing;
    size_t n = list_existing(t, &existing);
    return aim_modelsource_state(t->r->arena, &(struct aim_modelsource_facts){
                                                  .source = s->source,
                                                  .existing = existing,
                                                  .existing_n = n,
                                                  .found = s->found,
                                                  .found_n = s->found_n,
                                                  .filters = json_len(
                                                      json_at(s->source, "spec", "filters", NULL)),
                                                  .failed = s->failed });
}

/* Once per sync: a model that a user deletes is created again with the next one. */
static void modelsource_reconcile(struct aim_turn *t)
{
    const struct aim_sync *s = t->tracked->sync;
    if (t->deleting || !s || s->state != SYNC_DONE || s->applied)
        return;
    struct aim_modelsource_state *state = arena_new(t->r->arena, struct aim_modelsource_state);
    *state = state_of(t, s);
    t->view = state;
    for (size_t i = 0; i < state->creates_n; i++) {
        struct json *model = aim_modelsource_model(t->r->arena, aim_kinds_of(t->aim)->group,
                                                   s->source, &s->found[state->creates[i]]);
        aim_apply_owned(t, &aim_kinds_of(t->aim)->at[AIM_CLUSTER_MODEL], NULL, model);
    }
}

/* A constraint that cannot be read is ignored, which selects more than was meant: it is reported. */
static void check_constraints(struct aim_turn *t, struct aim_engine_component *filters)
{
    str bad = aim_modelsource_find_unreadable(t->object);
    if (bad.n && aim_engine_component_state(filters) == ENGINE_READY)
        *filters = aim_engine_make("Filters", ENGINE_DEGRADED, "InvalidConstraint",
                                   arena_printf(t->r->arena,
                                                "the constraint \"" STR_FMT
                                                "\" is not a range of versions",
                                                STR_ARG(bad)));
}

/* Only the turn after a sync writes a status, so that models which appear meanwhile cause no further ones. */
static void modelsource_set_status(struct aim_turn *t)
{
    struct aim_sync *s = t->tracked->sync;
    struct aim_modelsource_state *state = t->view;
    struct aim_status *status = &t->status;
    char text[RFC3339_TEXT_MAX];
    if (!state || t->deleting)
        return;
    s->applied = !t->write_failure;
    check_constraints(t, &state->components[1]);
    aim_engine_put_write_failure(t, &state->components[0]);
    struct aim_engine_answer answer =
        aim_engine_turn(t, state->components, countof(state->components), &state->limit, 1);
    aim_engine_set_status(t, &answer);
    json_set_int(status->a, status->next, "discoveredModels", state->created);
    json_set_int(status->a, status->next, "availableModels", state->available);
    json_set_bool(status->a, status->next, "modelsLimitReached", state->limit_reached);
    json_set_str(status->a, status->next, "lastSyncTime", rfc3339_text(s->ended_s, text));
    if (s->failure.n)
        aim_status_event(status, true, "FilterFailed", s->failure);
}

const struct aim_hooks aim_modelsource_hooks = {
    .observe = modelsource_observe_turn,
    .reconcile = modelsource_reconcile,
    .set_status = modelsource_set_status,
};
