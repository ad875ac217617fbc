/* Calendars from ConfigMaps: see schedule_calendars.h.
 *
 *     ConfigMap changed -> on_map_change -> parse --+-> good: replaces the old version, is stored by the leader
 *                                                   +-> broken: the old version stays; an event names the line
 *     a turn asks -> find_calendar -> entry -> good version, or the stored one if this process never read a good one
 *
 * A replaced calendar is freed RETIRE_NS later, when no turn that found it can be running any more. */
#include "schedule_calendars.h"

#include "../base/log.h"
#include "../kube/object_key.h"

#define STATE_NAME "flyball-schedule-state"

enum { STATE_SHARDS = 4 };
static const int64_t retire_ns = 900 * NS_PER_S;

struct map_record {
    struct record meta;
    str data; /* JSON; not kept: 1,000 calendars have 50 MB of text, and a fifth of it in parsed form */
    str use; /* value of the label */
};

static const struct field map_fields[] = {
    { "data", F_ONCE, offsetof(struct map_record, data) },
    { "metadata.labels[\"" SCHEDULE_CALENDAR_LABEL "\"]", F_STR, offsetof(struct map_record, use) },
};
static const struct fields map_kept = { sizeof(struct map_record), map_fields,
                                        countof(map_fields) };

struct schedule_calendar_entry {
    char *key; /* owned "namespace/name" */
    str ns, name;
    struct schedule_calendar *good; /* NULL: none was read yet */
    char *broken;                   /* owned; why the ConfigMap cannot be read; NULL: it can */
    char *unkept; /* owned; the text of `good`, until it is stored; NULL: it is... */
    size_t unkept_n;
    bool is_unstorable; /* ...or there is no room for it: what is stored is older, and removed */
    bool is_default, asked_keep;
};

struct retired {
    struct list_item item;
    struct schedule_calendar *calendar;
    int64_t free_ns;
};

/* ---- versions */

static void free_retired(struct schedule_calendars *c, int64_t now_ns)
{
    for (struct retired *r;
         (r = list_first(&c->retired, struct retired, item)) && r->free_ns <= now_ns;) {
        list_remove(&r->item);
        schedule_calendar_free(r->calendar);
        free(r);
    }
}

static void retire_calendar(struct schedule_calendars *c, struct schedule_calendar *calendar)
{
    int64_t now_ns = loop_mono_ns(manager_loop(c->m));
    free_retired(c, now_ns);
    if (!calendar)
        return;
    struct retired *r = mem_zero(1, sizeof(*r));
    r->calendar = calendar;
    r->free_ns = now_ns + retire_ns;
    list_append(&c->retired, &r->item);
}

/* The list of calendars that all triggers exclude. */
static void collect_defaults(struct schedule_calendars *c)
{
    free(c->defaults);
    c->defaults = mem_zero(c->by_key.n + 1, sizeof(*c->defaults));
    c->defaults_n = 0;
    for (struct map_slot *slot = NULL; (slot = map_next(&c->by_key, slot));) {
        const struct schedule_calendar_entry *one = slot->value;
        if (one->is_default && one->good)
            c->defaults[c->defaults_n++] = one->good;
    }
}

static str kept_key(struct arena *a, const struct schedule_calendar_entry *one)
{
    return keep_key(a, "calendar", (str[]){ one->ns, one->name }, 2);
}

/* This process has read no good version: takes the one that an earlier process stored. */
static void read_stored(struct schedule_calendars *c, struct schedule_calendar_entry *one)
{
    auto_arena struct arena a = { 0 };
    err_t e;
    if (one->good || one->asked_keep || !keep_is_loaded(c->keep))
        return;
    one->asked_keep = true;
    str text = keep_get(c->keep, kept_key(&a, one));
    if (!text.n || schedule_calendar_parse(text, tz_get, &one->good, &e) < 0)
        return;
    log_warn("calendar cannot be read; its last good version stays in use",
             KV("namespace", one->ns), KV("name", one->name));
    collect_defaults(c);
}

/* ---- ConfigMaps */

static str calendar_text(struct arena *a, const struct map_record *r)
{
    struct json *data = NULL;
    if (!r->data.n || json_parse(a, r->data, &data, NULL) < 0 || !json_is(data, JSON_OBJ))
        return S("");
    return schedule_calendar_text(data);
}

static void report_broken(struct schedule_calendars *c, const struct map_record *r,
                          struct schedule_calendar_entry *one, const char *why)
{
    auto_arena struct arena a = { 0 };
    one->broken = mem_dup(why, strlen(why));
    str message =
        arena_printf(&a, "calendar cannot be read: %s; %s", why,
                     one->good ? "its last good version stays in use" : "it selects no date");
    log_warn("calendar cannot be read", KV("namespace", r->meta.ns), KV("name", r->meta.name),
             KV_C("error", why));
    events_emit(manager_events(c->m), &(struct kube_event){ .resource = &resource_configmaps,
                                                            .ns = r->meta.ns,
                                                            .name = r->meta.name,
                                                            .uid = r->meta.uid,
                                                            .warning = true,
                                                            .reason = "InvalidCalendar",
                                                            .message = message });
}

/* Texts wait until this process leads and has read what is stored, a standby for as long as it lives. No more than can be
 * stored does: 1,000 calendars would otherwise be in memory as text, too. */
static void set_unkept(struct schedule_calendars *c, struct schedule_calendar_entry *one, str text)
{
    c->unkept_n -= one->unkept_n;
    free(take(one->unkept));
    bool fits = c->unkept_n + text.n <= (size_t)KEEP_SHARD_BYTES * STATE_SHARDS;
    one->unkept_n = fits ? text.n : 0;
    one->unkept = text.n && fits ? mem_dup(text.p, text.n) : NULL;
    one->is_unstorable = !fits;
    c->unkept_n += one->unkept_n;
    c->has_unkept |= text.n > 0;
    if (!fits && !c->is_full)
        log_warn("no room to store all calendars: after a restart, some have no last good version",
                 KV("namespace", one->ns), KV("name", one->name));
    c->is_full |= !fits;
}

static void free_entry(struct schedule_calendars *c, struct schedule_calendar_entry *one)
{
    set_unkept(c, one, S(""));
    free(one->key);
    free(one->broken);
    free(one);
}

static void drop_entry(struct schedule_calendars *c, struct schedule_calendar_entry *one)
{
    auto_arena struct arena a = { 0 };
    map_del(&c->by_key, str_c(one->key));
    retire_calendar(c, one->good);
    if (manager_leads(c->m) && keep_is_loaded(c->keep))
        keep_del(c->keep, kept_key(&a, one));
    free_entry(c, one);
}

static struct schedule_calendar_entry *find_entry(const struct schedule_calendars *c, str ns,
                                                  str name)
{
    auto_arena struct arena a = { 0 };
    return map_get(&c->by_key, arena_printf(&a, STR_FMT "/" STR_FMT, STR_ARG(ns), STR_ARG(name)));
}

/* A calendar that cannot be read keeps its last good version and is reported. Its text is kept for a restart once it
 * has been read. */
static void on_map_change(void *context, const struct record *old, const struct record *now)
{
    struct schedule_calendars *c = context;
    auto_arena struct arena a = { 0 };
    const struct record *any = now ? now : old;
    struct schedule_calendar_entry *one = find_entry(c, any->ns, any->name);
    if (!now) {
        if (one)
            drop_entry(c, one);
        collect_defaults(c);
        return;
    }
    const struct map_record *r = record_as(struct map_record, now);
    if (one && old && now->sum && old->sum == now->sum) /* its text was read already */
        return;
    if (!one) {
        one = mem_zero(1, sizeof(*one));
        one->key = object_key_new(now->ns, now->name, &one->ns, &one->name);
        map_put(&c->by_key, str_c(one->key), one);
    }
    one->is_default =
        str_eqc(r->use, "default") && str_eq(now->ns, kube_namespace(manager_kube(c->m)));
    struct schedule_calendar *read;
    str text = calendar_text(&a, r);
    err_t e;
    free(take(one->broken));
    if (!text.n)
        report_broken(c, r, one, "it has neither a key calendar.ics nor a single key");
    else if (schedule_calendar_parse(text, tz_get, &read, &e) < 0)
        report_broken(c, r, one, e.text);
    else {
        retire_calendar(c, one->good);
        one->good = read;
        set_unkept(c, one, text);
    }
    collect_defaults(c);
}

/* ---- use */

static struct schedule_calendar_found find_calendar(void *context, str name)
{
    const struct schedule_calendar_scope *scope = context;
    struct schedule_calendars *c = scope->calendars;
    str places[] = { scope->ns, kube_namespace(manager_kube(c->m)) };
    for (size_t i = 0; i < countof(places); i++) {
        struct schedule_calendar_entry *one = find_entry(c, places[i], name);
        if (!one)
            continue;
        read_stored(c, one);
        return (struct schedule_calendar_found){ one->good, one->broken };
    }
    return (struct schedule_calendar_found){ 0 };
}

void schedule_calendars_set(struct schedule_calendar_scope *scope,
                            struct schedule_defaults *defaults)
{
    struct schedule_calendars *c = scope->calendars;
    for (struct map_slot *slot = NULL; (slot = map_next(&c->by_key, slot));) {
        struct schedule_calendar_entry *one = slot->value;
        if (one->is_default)
            read_stored(c, one);
    }
    defaults->find_calendar = find_calendar;
    defaults->calendars_off = !c->enabled;
    defaults->calendars = scope;
    defaults->default_calendars = c->defaults;
    defaults->default_calendars_n = c->defaults_n;
}

void schedule_calendars_store(struct schedule_calendars *c)
{
    if (!c->has_unkept || !keep_is_loaded(c->keep)) /* never set while calendars are off */
        return;
    c->has_unkept = false;
    for (struct map_slot *slot = NULL; (slot = map_next(&c->by_key, slot));) {
        struct schedule_calendar_entry *one = slot->value;
        auto_arena struct arena a = { 0 };
        if (one->is_unstorable)
            keep_del(c->keep, kept_key(&a, one));
        else if (one->unkept)
            keep_put(c->keep, kept_key(&a, one), (str){ one->unkept, one->unkept_n });
        set_unkept(c, one, S(""));
    }
}

int schedule_calendars_start(struct schedule_calendars *c, struct manager *m, err_t *e)
{
    static const struct cache_spec maps = {
        .resource = &resource_configmaps,
        .need = CACHE_IF_ALLOWED,
        .keep = &map_kept,
        .label_selector = { SCHEDULE_CALENDAR_LABEL, sizeof(SCHEDULE_CALENDAR_LABEL) - 1 }
    };
    c->m = m;
    if (!c->enabled)
        return 0;
    if (manager_cache(m, &maps, &c->maps, e) < 0)
        return -e->code;
    cache_handle(c->maps, on_map_change, c);
    return keep_new(m,
                    &(struct keep_options){ .ns = kube_namespace(manager_kube(m)),
                                            .name = S(STATE_NAME),
                                            .shards = STATE_SHARDS },
                    &c->keep, e);
}

bool schedule_calendars_flush(struct schedule_calendars *c)
{
    return c->keep && keep_flush(c->keep);
}

void schedule_calendars_done(struct schedule_calendars *c)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&c->by_key, slot));) {
        struct schedule_calendar_entry *one = slot->value;
        schedule_calendar_free(one->good);
        free_entry(c, one);
    }
    map_done(&c->by_key);
    free_retired(c, INT64_MAX);
    free(c->defaults);
    keep_free(c->keep);
}
