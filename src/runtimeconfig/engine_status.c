/* The bridge from a turn to the state engine (engine_core.c): see engine_status.h.
 *
 *     previous status --> conditions --+
 *     components of the controller ----+--> aim_engine_evaluate() --> conditions, word, event --> status of the turn
 *
 * The engine is pure; this file reads what it needs from the turn and writes what it answers into the status. Conditions
 * that the engine no longer reports are dropped. ConfigResolved is left alone: resolution.c writes it for every kind. */
#include "engine_status.h"

#include "../base/rfc3339.h"

static bool is_of_resolution(str type)
{
    return str_eqc(type, "ConfigResolved");
}

static enum aim_engine_truth read_truth(str text)
{
    return str_eqc(text, "True")    ? ENGINE_TRUE
           : str_eqc(text, "False") ? ENGINE_FALSE
                                    : ENGINE_UNKNOWN;
}

/* The conditions of the previous status. */
static size_t read_conditions(struct aim_turn *t, struct aim_engine_condition **ret)
{
    const struct json *list = json_get(t->status.old, "conditions");
    struct aim_engine_condition *at = arena_array(t->r->arena, json_len(list) + 1, sizeof(*at));
    size_t n = 0;
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *c = json_item(list, i);
        int64_t since = t->status.now;
        if (is_of_resolution(json_text(json_get(c, "type"))))
            continue;
        rfc3339_parse(json_text(json_get(c, "lastTransitionTime")), &since, NULL);
        at[n++] =
            (struct aim_engine_condition){ .type = json_text(json_get(c, "type")),
                                           .truth = read_truth(json_text(json_get(c, "status"))),
                                           .reason = json_text(json_get(c, "reason")),
                                           .message = json_text(json_get(c, "message")),
                                           .since_s = since };
    }
    *ret = at;
    return n;
}

/* Called twice in a turn: before the writes, to know whether children may be created, and after them, for the status. */
struct aim_engine_answer aim_engine_turn(struct aim_turn *t,
                                         const struct aim_engine_component *components, size_t n,
                                         const struct aim_engine_condition *extra, size_t extra_n)
{
    struct aim_engine_question q = {
        .components = components, .n = n, .extra = extra, .extra_n = extra_n, .now_s = t->status.now
    };
    struct aim_engine_condition *old;
    q.old_n = read_conditions(t, &old);
    q.old = old;
    return aim_engine_evaluate(t->r->arena, &q);
}

static bool has_condition(const struct aim_engine_answer *answer, str type)
{
    for (size_t i = 0; i < answer->n; i++)
        if (str_eq(answer->conditions[i].type, type))
            return true;
    return false;
}

/* An event is emitted when Ready changes: the other conditions explain it. */
void aim_engine_set_status(struct aim_turn *t, const struct aim_engine_answer *answer)
{
    static const enum aim_truth truths[] = {
        [ENGINE_FALSE] = AIM_FALSE, [ENGINE_TRUE] = AIM_TRUE, [ENGINE_UNKNOWN] = AIM_UNKNOWN
    };
    const struct json *old = json_get(t->status.old, "conditions");
    struct arena *a = t->r->arena;
    for (size_t i = 0; i < json_len(old); i++) {
        str type = json_text(json_get(json_item(old, i), "type"));
        if (!is_of_resolution(type) && !has_condition(answer, type))
            aim_status_drop_condition(&t->status, arena_str(a, type).p);
    }
    for (size_t i = 0; i < answer->n; i++) {
        const struct aim_engine_condition *c = &answer->conditions[i];
        bool moved =
            aim_status_condition(&t->status,
                                 &(struct aim_condition){ arena_str(a, c->type).p, truths[c->truth],
                                                          arena_str(a, c->reason).p, c->message });
        if (moved && str_eqc(c->type, "Ready"))
            aim_status_event(&t->status, answer->status <= ENGINE_DEGRADED,
                             arena_str(a, c->reason).p, c->message);
    }
    aim_status_text(&t->status, "status", str_c(aim_engine_state_name(answer->status)));
}

/* What the server refuses is for a user to correct; everything else passes by itself. A conflict is retried at once and not
 * reported. */
void aim_engine_put_write_failure(const struct aim_turn *t, struct aim_engine_component *c)
{
    bool refused = t->write_reason == KUBE_INVALID || t->write_reason == KUBE_BAD_REQUEST ||
                   t->write_reason == KUBE_FORBIDDEN;
    if (!t->write_failure || t->write_reason == KUBE_CONFLICT)
        return;
    *c = (struct aim_engine_component){
        .name = c->name,
        .errors = { { refused ? ENGINE_INVALID : ENGINE_INFRASTRUCTURE, S("ApplyFailed"),
                      str_c(t->write_failure) } },
    };
}

/* Only a configuration that is named must exist; without a default one the object is processed without settings. */
struct aim_engine_component aim_engine_config(const struct aim_turn *t)
{
    str name = json_text(json_at(t->object, "spec", "runtimeConfigName", NULL));
    bool none = t->config.outcome == RESOLVE_NONE;
    struct aim_engine_component c =
        aim_engine_make("RuntimeConfig", ENGINE_READY,
                        none ? "DefaultConfigNotFound" : "ConfigFound",
                        none ? S("Default config was not found") : S(""));
    c.upstream = true;
    if (t->config.outcome != RESOLVE_MISSING)
        return c;
    return (struct aim_engine_component){
        .name = "RuntimeConfig",
        .upstream = true,
        .errors = { { ENGINE_MISSING_UPSTREAM, S("ConfigNotFound"),
                      arena_printf(t->r->arena, "RuntimeConfig " STR_FMT " not found",
                                   STR_ARG(name)) } },
    };
}
