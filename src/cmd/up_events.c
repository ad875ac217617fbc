/* Reports decisions: watches the Events that the controllers record, as kubectl would, and
 * assigns each to the feature whose kind it is about. Nothing is reported that a user could not
 * see in the API.
 *
 * An Event that is repeated has the same object with a higher count, so a decision is new if the
 * object is new or its count has grown. */
#include "up.h"

#include <stdio.h>

struct up_event {
    struct record meta;
    str api_version, kind, ns, name; /* of the object it is about */
    str type, reason, message, component, time;
    int64_t count;
};

static const struct field event_fields[] = {
    { "involvedObject.apiVersion", F_WORD, offsetof(struct up_event, api_version) },
    { "involvedObject.kind", F_WORD, offsetof(struct up_event, kind) },
    { "involvedObject.namespace", F_WORD, offsetof(struct up_event, ns) },
    { "involvedObject.name", F_STR, offsetof(struct up_event, name) },
    { "type", F_WORD, offsetof(struct up_event, type) },
    { "reason", F_WORD, offsetof(struct up_event, reason) },
    { "message", F_STR, offsetof(struct up_event, message) },
    { "source.component", F_WORD, offsetof(struct up_event, component) },
    { "lastTimestamp", F_STR, offsetof(struct up_event, time) },
    { "count", F_INT, offsetof(struct up_event, count), .otherwise = 1 },
};

static const struct cache_spec event_cache = { .resource = &resource_events,
                                               .keep = FIELDS(struct up_event, event_fields) };

/* The API group that identifies a feature. */
static const struct {
    const char *feature, *group;
} features_by_group[UP_FEATURE_N] = {
    { "saturation", "llmd.ai/" },
    { "schedule", "autoscaling.sarabala.io/" },
    { "market", "allocation.mbcas.io/" },
    { "runtimeconfig", "aim." },
};

const char *up_events_feature_name(size_t feature)
{
    return features_by_group[feature].feature;
}

static size_t find_feature(const struct up_event *event)
{
    size_t i = 0;
    while (i < UP_FEATURE_N && !str_starts(event->api_version, str_c(features_by_group[i].group)))
        i++;
    return i;
}

/* Messages quote user input: replace control characters, which could affect the terminal. */
static void put_printable(struct buf *out, str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        buf_putc(out, c < ' ' || c == 127 ? ' ' : (char)c);
    }
}

/* Removes the object from messages of the form `KIND NS/NAME: text`. */
static str strip_object(const struct up_event *event, str message)
{
    char object[512];
    snprintf(object, sizeof(object), STR_FMT "/" STR_FMT ": ", STR_ARG(event->ns),
             STR_ARG(event->name));
    size_t at = str_find(message, str_c(object));
    return at == SIZE_MAX ? message : str_from(message, at + strlen(object));
}

/* Counts an event of a feature, and passes it to the summary if it is new. */
static void on_event(void *context, const struct record *old, const struct record *now)
{
    struct up *up = context;
    const struct up_event *event = record_as(struct up_event, now),
                          *was = record_as(struct up_event, old);
    if (!event || !str_starts(event->component, S("flyball")))
        return;
    size_t feature = find_feature(event);
    bool news = !was || was->count < event->count;
    if (feature == UP_FEATURE_N || !news || str_eqc(event->reason, "Reconciled"))
        return; /* "Reconciled" is not a decision */
    struct up_decisions *d = &up->decisions[feature];
    bool warning = str_eqc(event->type, "Warning");
    if (warning)
        d->warnings++;
    else
        d->count += was ? event->count - was->count : event->count;
    auto_buf struct buf message = { 0 };
    put_printable(&message, event->message);
    str what = strip_object(event, buf_str(&message));
    if (!warning || !d->last.n) {
        buf_clear(&d->last);
        buf_printf(&d->last, STR_FMT " (" STR_FMT "/" STR_FMT ")", STR_ARG(what),
                   STR_ARG(event->ns), STR_ARG(event->name));
    }
    up_summary_add_decision(up, feature,
                            &(struct up_decision){ event->kind, event->ns, event->name,
                                                   event->reason, what, event->time, warning });
}

int up_events_start(struct up *up, struct manager *m, err_t *e)
{
    struct cache *cache;
    int r = manager_cache(m, &event_cache, &cache, e);
    if (r == 0)
        cache_handle(cache, on_event, up);
    return r;
}
