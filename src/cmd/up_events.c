/* What flyball decided, as anybody can see it: the Events that its controllers record, watched through the
 * API like kubectl does, and sorted by the feature that speaks. */
#include "up.h"

#include <stdio.h>

struct told { /* an Event */
    struct record meta;
    str api_version, kind, ns, name; /* of the object it is about */
    str type, reason, message, component, time;
    int64_t count;
};

static const struct field told_fields[] = {
    { "involvedObject.apiVersion", F_WORD, offsetof(struct told, api_version) },
    { "involvedObject.kind", F_WORD, offsetof(struct told, kind) },
    { "involvedObject.namespace", F_WORD, offsetof(struct told, ns) },
    { "involvedObject.name", F_STR, offsetof(struct told, name) },
    { "type", F_WORD, offsetof(struct told, type) },
    { "reason", F_WORD, offsetof(struct told, reason) },
    { "message", F_STR, offsetof(struct told, message) },
    { "source.component", F_WORD, offsetof(struct told, component) },
    { "lastTimestamp", F_STR, offsetof(struct told, time) },
    { "count", F_INT, offsetof(struct told, count), .otherwise = 1 },
};

static const struct cache_spec told_cache = { .resource = &resource_events,
                                              .keep = FIELDS(struct told, told_fields) };

/* Whose kinds a feature speaks about. */
static const struct {
    const char *feature, *group;
} speakers[UP_FEATURE_N] = {
    { "saturation", "llmd.ai/" },
    { "schedule", "autoscaling.sarabala.io/" },
    { "market", "allocation.mbcas.io/" },
    { "runtimeconfig", "aim." },
};

const char *up_feature_name(size_t feature)
{
    return speakers[feature].feature;
}

static size_t feature_of(const struct told *told)
{
    size_t i = 0;
    while (i < UP_FEATURE_N && !str_starts(told->api_version, str_c(speakers[i].group)))
        i++;
    return i;
}

/* Messages quote what users wrote: nothing of it may steer a terminal. */
static void put_plain(struct buf *out, str text)
{
    for (size_t i = 0; i < text.n; i++) {
        unsigned char c = (unsigned char)text.p[i];
        buf_putc(out, c < ' ' || c == 127 ? ' ' : (char)c);
    }
}

/* A message often names the object again, and its kind: `KIND NS/NAME: what happened`. */
static str what_happened(const struct told *told, str message)
{
    char object[512];
    snprintf(object, sizeof(object), STR_FMT "/" STR_FMT ": ", STR_ARG(told->ns),
             STR_ARG(told->name));
    size_t at = str_find(message, str_c(object));
    return at == SIZE_MAX ? message : str_from(message, at + strlen(object));
}

static void on_event(void *context, const struct record *old, const struct record *now)
{
    struct up *up = context;
    const struct told *told = (const struct told *)(const void *)now,
                      *was = (const struct told *)(const void *)old;
    if (!told || !str_starts(told->component, S("flyball")))
        return;
    size_t feature = feature_of(told);
    bool news = !was || was->count < told->count;
    if (feature == UP_FEATURE_N || !news || str_eqc(told->reason, "Reconciled"))
        return; /* that all is well is no decision */
    struct up_decisions *d = &up->decisions[feature];
    bool warning = str_eqc(told->type, "Warning");
    if (warning)
        d->warnings++;
    else
        d->count += was ? told->count - was->count : told->count;
    auto_buf struct buf message = { 0 };
    put_plain(&message, told->message);
    str what = what_happened(told, buf_str(&message));
    if (!warning || !d->last.n) {
        buf_clear(&d->last);
        buf_printf(&d->last, STR_FMT " (" STR_FMT "/" STR_FMT ")", STR_ARG(what), STR_ARG(told->ns),
                   STR_ARG(told->name));
    }
    up_print_decision(up, feature,
                      &(struct up_news){ told->ns, told->name, told->reason, what, told->time,
                                         warning });
}

int up_events_start(struct up *up, struct manager *m, err_t *e)
{
    struct cache *cache;
    int r = manager_cache(m, &told_cache, &cache, e);
    if (r == 0)
        cache_handle(cache, on_event, up);
    return r;
}
