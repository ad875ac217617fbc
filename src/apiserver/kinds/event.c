/* Events, served by two APIs: core/v1, as they are stored, and events.k8s.io/v1, which has the same fields
 * under other names.
 *
 * The newer version is a view: objects are converted by renaming seven fields when they are read and written,
 * so that an event created through one API is visible through the other under one resourceVersion. Validation
 * runs on the stored form, then adds the stricter rules of the newer version, which apply only to clients that
 * use it. */
#include "../schema/format.h"
#include "kind_hooks.h"

enum { NOTE_MAX = 1024 };

/* Names of a field in core/v1 and in events.k8s.io/v1. */
static const struct {
    const char *core, *other;
} names[] = {
    { "involvedObject", "regarding" },
    { "message", "note" },
    { "source", "deprecatedSource" },
    { "firstTimestamp", "deprecatedFirstTimestamp" },
    { "lastTimestamp", "deprecatedLastTimestamp" },
    { "count", "deprecatedCount" },
    { "reportingComponent", "reportingController" },
};

/* Keeps the value, which is the same under both names. */
static void rename_field(struct arena *a, struct json *object, const char *from, const char *to)
{
    struct json *value = json_get(object, from);
    if (!value)
        return;
    json_del(object, str_c(from));
    json_set(a, object, str_c(to), value);
}

static void rename_to_v1(struct arena *a, struct json *object)
{
    for (size_t i = 0; i < countof(names); i++)
        rename_field(a, object, names[i].core, names[i].other);
}

static void rename_to_core(struct arena *a, struct json *object)
{
    for (size_t i = 0; i < countof(names); i++)
        rename_field(a, object, names[i].other, names[i].core);
}

/* A copy in the form of core/v1, for validation. */
static struct json *copy_as_core(struct arena *a, const struct json *object)
{
    struct json *copy = json_copy(a, object);
    rename_to_core(a, copy);
    return copy;
}

/* Reports a text that is empty or too long. */
static void check_text(const struct json *object, const char *key, size_t most,
                       struct field_errors *errors)
{
    struct field_path at = { NULL, .key = str_c(key) };
    const struct json *value = json_get(object, key);
    if (!json_text(value).n)
        field_required(errors, &at, NULL);
    else if (json_text(value).n > most)
        field_invalid(errors, &at, value, "must be no more than %zu bytes", most);
}

/* An event is in the namespace of its object, or in "default" if the object has none. Events with
 * an eventTime follow newer rules. */
static void check_namespace(const struct json *object, struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("involvedObject") };
    const struct json *about = json_at(object, "involvedObject", "namespace", NULL);
    str ns = json_text(json_at(object, "metadata", "namespace", NULL));
    bool has_event_time = json_is(json_get(object, "eventTime"), JSON_STR);
    bool same = str_eq(json_text(about), ns) && !has_event_time;
    bool in_default_namespace =
        !json_text(about).n &&
        (str_eqc(ns, "default") || (has_event_time && str_eqc(ns, "kube-system")));
    if (!same && !in_default_namespace && !(has_event_time && json_text(about).n))
        field_invalid(errors, AT(&at, "namespace"), about, "does not match event.namespace");
}

/* The newer rules apply only to events with an eventTime. */
static void validate_event(const struct kind_change *c, struct kind_env *env UNUSED,
                           struct field_errors *errors)
{
    check_namespace(c->object, errors);
    if (!json_is(json_get(c->object, "eventTime"), JSON_STR))
        return;
    check_text(c->object, "reportingComponent", 253, errors);
    kind_check_qualified(json_get(c->object, "reportingComponent"), AT(NULL, "reportingComponent"),
                         errors);
    check_text(c->object, "reportingInstance", 128, errors);
    check_text(c->object, "action", 128, errors);
    check_text(c->object, "reason", 128, errors);
}

/* Events are not looked up by name, so the name only has to fit into a URL path. */
const struct kind_hooks kind_hooks_event = { .name = format_path_segment,
                                             .validate = validate_event };

/* Only the series of an event may change. "reason" is listed twice because kube-apiserver reports
 * it twice. */
static void check_immutable_fields(const struct json *object, const struct json *old,
                                   struct field_errors *errors)
{
    static const char *const fixed[] = { "involvedObject",
                                         "reason",
                                         "message",
                                         "source",
                                         "firstTimestamp",
                                         "lastTimestamp",
                                         "count",
                                         "reason",
                                         "type",
                                         "eventTime",
                                         "action",
                                         "related",
                                         "reportingComponent",
                                         "reportingInstance" };
    for (size_t i = 0; i < countof(fixed); i++)
        kind_check_immutable(json_get(object, fixed[i]), json_get(old, fixed[i]),
                             &(struct field_path){ NULL, .key = str_c(fixed[i]) }, errors);
}

/* Validates as core/v1, then applies the stricter rules of events.k8s.io/v1 to new events. */
static void validate_event_v1(const struct kind_change *c, struct kind_env *env,
                              struct field_errors *errors)
{
    struct kind_change stored = *c;
    str type = json_text(json_get(c->object, "type"));
    stored.object = copy_as_core(env->arena, c->object);
    size_t before = errors->n;
    validate_event(&stored, env, errors);
    if (c->old)
        check_immutable_fields(stored.object, copy_as_core(env->arena, c->old), errors);
    for (size_t i = before; i < errors->n_kept; i++) /* paths in the names of this version */
        if (str_eqc(errors->at[i].path, "reportingComponent"))
            errors->at[i].path = S("reportingController");
    if (c->old)
        return;
    if (!json_is(json_get(c->object, "eventTime"), JSON_STR))
        field_required(errors, AT(NULL, "eventTime"), NULL);
    static const char *const deprecated[] = { "firstTimestamp", "lastTimestamp", "count",
                                              "source" };
    for (size_t i = 0; i < countof(deprecated); i++) {
        const struct json *value = json_get(stored.object, deprecated[i]);
        if (json_text(value).n || json_int(value, 0) || json_len(value))
            field_invalid(errors, &(struct field_path){ NULL, .key = str_c(deprecated[i]) }, value,
                          "needs to be unset");
    }
    const struct json *note = json_get(c->object, "note");
    if (json_text(note).n > NOTE_MAX)
        field_invalid(errors, AT(NULL, "message"), note, "can have at most %d characters",
                      NOTE_MAX);
    if (!str_eqc(type, "Normal") && !str_eqc(type, "Warning"))
        field_invalid(errors, AT(NULL, "type"), json_get(c->object, "type"),
                      "must be Normal or Warning");
}

const struct kind_hooks kind_hooks_event_v1 = {
    .validate = validate_event_v1,
    .to_storage = rename_to_core,
    .from_storage = rename_to_v1,
};
