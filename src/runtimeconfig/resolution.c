/* Which configuration a consumer gets, and how its status reports that. The rule itself is in resolve_core.c.
 *
 * Resolution happens twice: aim_resolution_link() when an event arrives, to keep the reverse index complete, and
 * aim_resolution_turn() at the start of a turn, which copies the configuration into the arena of the turn. */
#include "aim.h"

static const int64_t missing_first_ns = NS_PER_S, missing_most_ns = 60 * NS_PER_S;

struct aim_config *aim_resolution_config(const struct aim *aim, str ns, str config_name)
{
    struct aim_resolve_question q = { config_name, ns, str_c(aim->operator_ns) };
    str name = aim_resolve_name(&q);
    struct aim_config *config = aim_configs_find(&aim->configs, aim_resolve_namespace(&q), name);
    return config ? config : aim_configs_find(&aim->configs, S(""), name);
}

struct aim_resolved aim_resolve(const struct aim *aim, struct arena *a, str ns, str config_name)
{
    struct aim_resolve_question q = { config_name, ns, str_c(aim->operator_ns) };
    const struct aim_config *config = aim_resolution_config(aim, ns, config_name);
    if (!config)
        return aim_resolve_hashed(&q, NULL, NULL);
    struct aim_resolve_config kept = config->kept;
    kept.object = json_copy(a, kept.object); /* the configuration may change while the turn waits */
    return config->cluster ? aim_resolve_hashed(&q, NULL, &kept)
                           : aim_resolve_hashed(&q, &kept, NULL);
}

static str named_config(const struct aim_turn *t)
{
    struct aim_resolve_question q = {
        json_text(json_at(t->object, "spec", "runtimeConfigName", NULL)), t->ns, S("")
    };
    return aim_resolve_name(&q);
}

/* A missing configuration is looked up again with exponential backoff; its watch usually comes first. */
void aim_resolution_turn(struct aim_turn *t)
{
    if (t->of->kind == AIM_MODEL_SOURCE)
        return;
    t->config = aim_resolve(t->aim, t->r->arena, t->ns, named_config(t));
    t->settings = runtimeconfig_spec_read(t->config.spec, t->config.outcome == RESOLVE_CLUSTER);
    t->own = runtimeconfig_spec_read(json_get(t->object, "spec"), false);
    runtimeconfig_metrics_resolved(&t->aim->metrics, t->of->kind, t->config.outcome);
    if (t->config.outcome != RESOLVE_MISSING) {
        t->tracked->missing = 0;
        return;
    }
    int64_t wait = missing_first_ns << MIN(t->tracked->missing, 6u);
    t->tracked->missing++;
    reconcile_again(t->r, MIN(wait, missing_most_ns));
}

/* requiredPrefix belongs to the cluster administrator: it is read from the cluster configuration of that name, or else
 * from the cluster's default. */
str aim_resolution_guard(const struct aim *aim, str config_name)
{
    const struct aim_config *config =
        aim_configs_find(&aim->configs, S(""),
                         config_name.n ? config_name : S(RUNTIMECONFIG_DEFAULT));
    if (!config || !config->spec.routing.required_prefix.n)
        config = aim_configs_find(&aim->configs, S(""), S(RUNTIMECONFIG_DEFAULT));
    return config ? config->spec.routing.required_prefix : S("");
}

/* Enqueues the status of both configurations, the old and the new one, if their counts changed. */
void aim_resolution_link(struct aim *aim, struct aim_tracked *tracked, const struct aim_record *r)
{
    if (tracked->of->kind == AIM_MODEL_SOURCE)
        return;
    struct aim_config *before = tracked->link.config;
    struct aim_config *config = aim_resolution_config(aim, r->meta.ns, r->config_name);
    bool failing = tracked->of->kind == AIM_SERVICE && aim_route_claim(aim, tracked, r, config);
    if (!aim_config_link_to(&tracked->link, config, failing && config))
        return;
    if (before)
        aim_config_enqueue(aim, before);
    if (config && config != before)
        aim_config_enqueue(aim, config);
}

/* ---- status */

/* The message of ConfigResolved. */
static str describe_config(const struct aim_turn *t)
{
    struct arena *a = t->r->arena;
    str name = named_config(t);
    str where = t->ns.n ? t->ns : str_c(t->aim->operator_ns);
    switch (t->config.outcome) {
    case RESOLVE_NAMESPACE:
        return arena_printf(a, "Using AIMRuntimeConfig " STR_FMT "/" STR_FMT, STR_ARG(where),
                            STR_ARG(name));
    case RESOLVE_CLUSTER:
        return arena_printf(a, "Using AIMClusterRuntimeConfig " STR_FMT, STR_ARG(name));
    case RESOLVE_NONE:
        return arena_printf(
            a,
            "There is neither an AIMRuntimeConfig " STR_FMT
            "/default nor an AIMClusterRuntimeConfig default; continuing without one",
            STR_ARG(where));
    default:
        return arena_printf(a,
                            "spec.runtimeConfigName is \"" STR_FMT
                            "\", but there is neither an AIMRuntimeConfig " STR_FMT "/" STR_FMT
                            " nor an AIMClusterRuntimeConfig " STR_FMT,
                            STR_ARG(name), STR_ARG(where), STR_ARG(name), STR_ARG(name));
    }
}

/* The reference for status.resolvedRuntimeConfig, which older clients read. */
static const struct json *find_reference(const struct json *effective)
{
    const struct json *ref = json_get(effective, "namespaceRef");
    return ref ? ref : json_get(effective, "clusterRef");
}

/* Both references are removed if no configuration applies, so that none of them is stale. */
static void put_refs(struct aim_turn *t, struct json *effective)
{
    struct aim_status *s = &t->status;
    str hash = json_text(json_at(s->old, "effectiveRuntimeConfig", "hash", NULL));
    if (t->config.outcome != RESOLVE_MISSING)
        json_del(s->next, S("lastConfigHash"));
    else if (hash.n && t->of->kind == AIM_SERVICE) /* children are still made from it */
        json_set_str(s->a, s->next, "lastConfigHash", hash);
    if (!effective) {
        json_del(s->next, S("effectiveRuntimeConfig"));
        json_del(s->next, S("resolvedRuntimeConfig"));
        return;
    }
    json_set(s->a, s->next, S("effectiveRuntimeConfig"), effective);
    json_set(s->a, s->next, S("resolvedRuntimeConfig"), json_copy(s->a, find_reference(effective)));
}

/* The status word of a kind without hooks: depends only on whether the configuration exists. */
static void put_status_word(struct aim_turn *t)
{
    const struct json *before = aim_status_find(t->status.old, "ConfigResolved");
    bool was = str_eqc(json_text(json_get(before, "status")), "False");
    bool is = t->config.outcome == RESOLVE_MISSING;
    bool cache = t->of->kind == AIM_TEMPLATE_CACHE; /* has no status Degraded */
    if (!t->of->hooks && (is || was))
        aim_status_text(&t->status, "status",
                        !is     ? S("Pending")
                        : cache ? S("Failed")
                                : S("Degraded"));
}

/* Emits an event when the condition or the configuration in effect changes. */
void aim_resolution_status(struct aim_turn *t)
{
    struct aim_status *s = &t->status;
    if (t->of->kind == AIM_MODEL_SOURCE)
        return;
    struct json *effective = aim_resolve_effective(s->a, &t->config);
    bool same = json_eq(effective, json_get(s->old, "effectiveRuntimeConfig"));
    str message = describe_config(t);
    const char *reason;
    bool holds = aim_resolve_condition(&t->config, &reason);
    bool moved = aim_status_condition(s, &(struct aim_condition){ "ConfigResolved",
                                                                  holds ? AIM_TRUE : AIM_FALSE,
                                                                  reason, message });
    put_refs(t, effective);
    put_status_word(t);
    if (!moved && (!effective || same))
        return;
    aim_status_event(s, !effective, reason, message);
    if (t->settings.refused_credentials) /* its pods have none of them */
        aim_status_event(s, true, RUNTIMECONFIG_CREDENTIALS,
                         arena_printf(s->a,
                                      "AIMClusterRuntimeConfig " STR_FMT
                                      ": " RUNTIMECONFIG_CREDENTIALS_TEXT "; they are ignored",
                                      STR_ARG(named_config(t))));
}
