/* Events, under two names: core/v1, as they are stored, and events.k8s.io/v1, which calls the same
 * fields differently. */
#include "../schema/formats.h"
#include "kind_hooks.h"

enum { NOTE_MAX = 1024 };

/* What core calls a field, and what events.k8s.io calls it. */
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

static void rename_field(struct arena *a, struct json *object, const char *from, const char *to)
{
    struct json *value = json_get(object, from);
    if (!value)
        return;
    json_del(object, str_c(from));
    json_set(a, object, str_c(to), value);
}

static void from_storage(struct arena *a, struct json *object)
{
    for (size_t i = 0; i < countof(names); i++)
        rename_field(a, object, names[i].core, names[i].other);
}

static void to_storage(struct arena *a, struct json *object)
{
    for (size_t i = 0; i < countof(names); i++)
        rename_field(a, object, names[i].other, names[i].core);
}

static struct json *as_stored(struct arena *a, const struct json *object)
{
    struct json *copy = json_copy(a, object);
    to_storage(a, copy);
    return copy;
}

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

/* An event lives where its object lives; one without a namespace in `default`. */
static void check_namespace(const struct json *object, struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("involvedObject") };
    const struct json *about = json_at(object, "involvedObject", "namespace", NULL);
    str ns = json_text(json_at(object, "metadata", "namespace", NULL));
    bool fresh = json_is(json_get(object, "eventTime"), JSON_STR);
    bool same = str_eq(json_text(about), ns) && !fresh;
    bool home =
        !json_text(about).n && (str_eqc(ns, "default") || (fresh && str_eqc(ns, "kube-system")));
    if (!same && !home && !(fresh && json_text(about).n))
        field_invalid(errors, AT(&at, "namespace"), about, "must be the namespace of the event");
}

static void validate(const struct kind_change *c, struct kind_env *env UNUSED,
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

/* Nobody looks an event up by its name, so it may be anything that fits into a path. */
const struct kind_hooks hooks_event = { .name = format_path_segment, .validate = validate };

/* What happened stays so; only the series goes on. */
static void check_unchanged(const struct json *object, const struct json *old,
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

static void check_series(const struct json *series, struct field_errors *errors)
{
    struct field_path at = { NULL, .key = S("series") };
    if (!series)
        return;
    if (json_int(json_get(series, "count"), 0) < 2)
        field_invalid(errors, AT(&at, "count"), json_get(series, "count"), "must be at least 2");
    if (!json_is(json_get(series, "lastObservedTime"), JSON_STR))
        field_required(errors, AT(&at, "lastObservedTime"), NULL);
}

static void validate_v1(const struct kind_change *c, struct kind_env *env,
                        struct field_errors *errors)
{
    struct kind_change stored = *c;
    str type = json_text(json_get(c->object, "type"));
    stored.object = as_stored(env->arena, c->object);
    size_t before = errors->n;
    validate(&stored, env, errors);
    if (c->old)
        check_unchanged(stored.object, as_stored(env->arena, c->old), errors);
    for (size_t i = before; i < errors->n_kept; i++) /* paths as this version writes them */
        if (str_eqc(errors->at[i].path, "reportingComponent"))
            errors->at[i].path = S("reportingController");
    check_series(json_get(c->object, "series"), errors);
    if (c->old)
        return;
    if (!json_is(json_get(c->object, "eventTime"), JSON_STR))
        field_required(errors, AT(NULL, "eventTime"), NULL);
    static const char *const past[] = { "firstTimestamp", "lastTimestamp", "count", "source" };
    for (size_t i = 0; i < countof(past); i++) {
        const struct json *value = json_get(stored.object, past[i]);
        if (json_text(value).n || json_int(value, 0) || json_len(value))
            field_invalid(errors, &(struct field_path){ NULL, .key = str_c(past[i]) }, value,
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

const struct kind_hooks hooks_event_v1 = {
    .validate = validate_v1,
    .to_storage = to_storage,
    .from_storage = from_storage,
};
