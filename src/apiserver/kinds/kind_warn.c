/* Warnings about objects that are accepted but probably a mistake.
 *
 * They are sent as Warning headers once an object is valid, and only for built-in kinds. A warning never
 * changes the outcome of a write. Pods are checked on create, templates when they change, so an old object does
 * not warn again on every update. All texts are quoted: kube-apiserver. */
#include "kind_hooks.h"

#include "../../base/quantity.h"

struct warner {
    struct kind_env *env;
    const char *at; /* path of the pod spec, for the texts */
};

#define WARN(env, ...) (env)->warn((env)->context, arena_printf((env)->arena, __VA_ARGS__))

/* "100m" of memory is a tenth of a byte; the author probably meant "100M". */
static void warn_fractional_bytes(const struct warner *w, const struct json *resources,
                                  const char *list, uint32_t i)
{
    static const char *const names[] = { "memory", "ephemeral-storage" };
    static const char *const sides[] = { "limits", "requests" };
    for (size_t n = 0; n < countof(names); n++) {
        for (size_t s = 0; s < countof(sides); s++) {
            str text = json_text(json_at(resources, sides[s], names[n], NULL));
            struct quantity q;
            int64_t milli = 0;
            if (text.n && quantity_parse(text, &q, NULL) == 0 &&
                quantity_scaled(&q, -3, &milli) == 0 && milli % 1000)
                WARN(w->env,
                     "%s.%s[%u].resources.%s[%s]: fractional byte value \"" STR_FMT
                     "\" is invalid, must be an integer",
                     w->at, list, i, sides[s], names[n], STR_ARG(text));
        }
    }
}

/* A variable that is defined twice, unless the second definition extends the first. */
static void warn_hidden_variables(const struct warner *w, const struct json *env, const char *list,
                                  uint32_t i)
{
    struct seen names = seen_new(w->env->arena, 1);
    for (uint32_t j = 0; j < json_len(env); j++) {
        const struct json *name = json_get(env->items[j], "name");
        str value = json_text(json_get(env->items[j], "value"));
        str own = arena_printf(w->env->arena, "$(" STR_FMT ")", STR_ARG(json_text(name)));
        bool extends = !str_eq(value, own) && str_find(value, own) != SIZE_MAX;
        bool twice = seen_value(&names, name, j);
        if (twice && !extends)
            WARN(w->env,
                 "%s.%s[%u].env[%u]: hides previous definition of \"" STR_FMT
                 "\", which may be dropped when using apply",
                 w->at, list, i, j, STR_ARG(json_text(name)));
    }
}

/* Pull secrets without a name, or named twice. */
static void warn_pull_secrets(const struct warner *w, const struct json *list)
{
    struct seen names = seen_new(w->env->arena, 1);
    for (uint32_t i = 0; i < json_len(list); i++) {
        str name = json_text(json_get(list->items[i], "name"));
        bool twice = seen_value(&names, json_get(list->items[i], "name"), i);
        if (!name.n || twice)
            WARN(w->env, "%s.imagePullSecrets[%u].name: %s name \"" STR_FMT "\"", w->at, i,
                 name.n ? "duplicate" : "invalid empty", STR_ARG(name));
    }
}

/* Ports of one list of containers that repeat an earlier one; the text names the first. */
static void warn_duplicate_ports(const struct warner *w, const struct json *containers,
                                 const char *list)
{
    struct place {
        uint32_t container, port;
    } *places;
    size_t n = 0;
    for (uint32_t i = 0; i < json_len(containers); i++)
        n += json_len(json_get(containers->items[i], "ports"));
    places = arena_array(w->env->arena, n, sizeof(*places));
    struct seen seen = seen_new(w->env->arena, 4);
    uint32_t at = 0;
    for (uint32_t i = 0; i < json_len(containers); i++) {
        const struct json *ports = json_get(containers->items[i], "ports");
        for (uint32_t j = 0; j < json_len(ports); j++, at++) {
            const struct json *port = ports->items[j];
            places[at] = (struct place){ i, j };
            const struct seen_key *first =
                seen_put(&seen,
                         (const struct json *const[]){
                             json_get(port, "containerPort"), json_get(port, "protocol"),
                             json_get(port, "hostPort"), json_get(port, "hostIP") },
                         at);
            if (first)
                WARN(w->env,
                     "%s.%s[%u].ports[%u]: duplicate port definition with %s.%s[%u].ports[%u]",
                     w->at, list, i, j, w->at, list, places[first->place].container,
                     places[first->place].port);
        }
    }
}

/* All warnings about a pod spec, of a pod or a template. */
static void warn_pod_spec(const struct warner *w, const struct json *spec)
{
    static const char *const lists[] = { "initContainers", "containers" };
    const struct json *spread = json_get(spec, "topologySpreadConstraints");
    for (uint32_t i = 0; i < json_len(spread); i++)
        if (!json_get(spread->items[i], "labelSelector"))
            WARN(w->env,
                 "%s.topologySpreadConstraints[%u].labelSelector: a null labelSelector results in "
                 "matching no pod",
                 w->at, i);
    if (json_int(json_get(spec, "terminationGracePeriodSeconds"), 0) < 0)
        WARN(w->env,
             "%s.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and "
             "will be treated as 1",
             w->at);
    warn_pull_secrets(w, json_get(spec, "imagePullSecrets"));
    for (size_t l = 0; l < countof(lists); l++) {
        const struct json *containers = json_get(spec, lists[l]);
        for (uint32_t i = 0; i < json_len(containers); i++) {
            warn_fractional_bytes(w, json_get(containers->items[i], "resources"), lists[l], i);
            warn_hidden_variables(w, json_get(containers->items[i], "env"), lists[l], i);
        }
        warn_duplicate_ports(w, containers, lists[l]);
    }
}

/* Fields that this type of service ignores. */
static void warn_service(struct kind_env *env, const struct json *spec)
{
    bool headless = str_eqc(json_text(json_get(spec, "clusterIP")), "None");
    bool named = str_eqc(json_text(json_get(spec, "type")), "ExternalName");
    if (headless && json_text(json_get(spec, "loadBalancerIP")).n)
        WARN(env, "spec.loadBalancerIP is ignored for headless services");
    if (json_len(json_get(spec, "externalIPs")))
        WARN(env, headless ? "spec.externalIPs is ignored for headless services"
                           : "spec.externalIPs is deprecated and may no longer be implemented in "
                             "some clusters");
    if (headless && str_eqc(json_text(json_get(spec, "sessionAffinity")), "ClientIP"))
        WARN(env, "spec.SessionAffinity is ignored for headless services");
    if (str_eqc(json_text(json_get(spec, "trafficDistribution")), "PreferClose"))
        WARN(env, "spec.trafficDistribution: \"PreferClose\" is deprecated; use "
                  "\"PreferSameZone\"");
    if (!named && json_text(json_get(spec, "externalName")).n)
        WARN(env, "spec.externalName is ignored when spec.type is not \"ExternalName\"");
}

/* The name of a pod becomes a host name, which should be a DNS label. */
static void warn_name(const struct kind_change *c, struct kind_env *env)
{
    str name = json_text(json_at(c->object, "metadata", "name", NULL));
    bool pod = c->kind->hooks == &kind_hooks_pod, dotted = str_find_char(name, '.') < name.n;
    if ((dotted || name.n > 63) &&
        (pod || c->kind->hooks == &kind_hooks_deployment ||
         c->kind->hooks == &kind_hooks_replicaset || c->kind->hooks == &kind_hooks_job))
        WARN(env,
             "metadata.name: this is used in %s, which can result in surprising behavior; a DNS "
             "label is recommended: [%s%s%s]",
             pod ? "the Pod's hostname" : "Pod names and hostnames",
             dotted ? "must not contain dots" : "", dotted && name.n > 63 ? " " : "",
             name.n > 63 ? "must be no more than 63 characters" : "");
}

/* Pods are checked on create only, templates whenever the generation changes. */
void kind_warn(const struct kind_change *c, struct kind_env *env)
{
    const struct json *spec = json_get(c->object, "spec");
    const struct json *template = json_at(spec, "template", "spec", NULL);
    bool changed = !json_eq(json_at(c->object, "metadata", "generation", NULL),
                            json_at(c->old, "metadata", "generation", NULL));
    if (!env->warn || c->kind->custom || c->sub != KIND_MAIN)
        return;
    if (!c->old)
        warn_name(c, env);
    if (c->kind->hooks == &kind_hooks_pod && !c->old)
        warn_pod_spec(&(struct warner){ env, "spec" }, spec);
    else if (c->kind->hooks == &kind_hooks_service)
        warn_service(env, spec);
    else if (template && (!c->old || changed))
        warn_pod_spec(&(struct warner){ env, "spec.template.spec" }, template);
    if (c->kind->hooks == &kind_hooks_statefulset &&
        json_int(json_get(spec, "revisionHistoryLimit"), 0) < 0)
        WARN(env, "spec.revisionHistoryLimit: a negative value retains all historical revisions; a "
                  "value >= 0 is recommended");
}
