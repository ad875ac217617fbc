/* Who governs which HPA, and what the caches keep. */
#include "schedule/schedule_targets.h"
#include "tap.h"

struct kept {
    struct projector *projector;
    struct projection *projection;
    struct schedule_targets targets;
};

static void kept_start(struct kept *k)
{
    err_t e;
    *k = (struct kept){ .projector = projector_new() };
    OK_CALL(projection_new(k->projector, schedule_cache.keep, 0, &k->projection, &e), &e);
}

static void kept_stop(struct kept *k)
{
    schedule_targets_done(&k->targets);
    projection_free(k->projection);
    projector_free(k->projector);
}

static struct record *parse_in(struct kept *k, const char *ns, const char *name,
                               const char *created, const char *spec)
{
    auto_buf struct buf text = { 0 };
    struct record *r = NULL;
    err_t e;
    buf_printf(&text,
               "{\"metadata\":{\"namespace\":\"%s\",\"name\":\"%s\",\"uid\":\"u-%s\","
               "\"creationTimestamp\":\"%s\",\"generation\":3,\"finalizers\":[\"x\",\"%s\"],"
               "\"annotations\":{\"%s\":\"true\"}},\"spec\":%s,\"status\":{\"source\":\"none\"}}",
               ns, name, name, created, SCHEDULE_FINALIZER, SCHEDULE_PAUSED, spec);
    OK_CALL(project(k->projection, buf_str(&text), &r, &e), &e);
    return r;
}

static struct record *parse(struct kept *k, const char *name, const char *created, const char *spec)
{
    return parse_in(k, "shop", name, created, spec);
}

static struct schedule_tracked *put_in(struct kept *k, const char *ns, const char *name,
                                       const char *created, const char *spec)
{
    struct record *r = parse_in(k, ns, name, created, spec);
    struct schedule_tracked *one =
        schedule_targets_put(&k->targets, record_as(struct schedule_record, r));
    record_unref(r);
    return one;
}

static struct schedule_tracked *put(struct kept *k, const char *name, const char *created,
                                    const char *spec)
{
    return put_in(k, "shop", name, created, spec);
}

static size_t count(const struct kept *k, const char *ns, const char *name)
{
    return schedule_targets_of(&k->targets, str_c(ns), str_c(name))->n;
}

/* Schedules of "a" have consent, those of "b" have none. */
static bool has_consent(void *context, str from_ns)
{
    size_t *asked = context;
    ++*asked;
    return !str_eqc(from_ns, "b");
}

static const struct schedule_tracked *rival(const struct schedule_tracked *one)
{
    size_t asked = 0;
    return schedule_targets_find_older(one, has_consent, &asked);
}

#define WEB "{\"HPAObjectRef\":{\"name\":\"web\"}}"

static void targets_are_found_by_every_spelling(void)
{
    struct kept k;
    kept_start(&k);
    put(&k, "a", "2026-01-01T00:00:00Z", WEB);
    put(&k, "b", "2026-01-01T00:00:00Z",
        "{\"hpaObjectRef\":{\"name\":\"web\",\"namespace\":\"x\"}}");
    put(&k, "c", "2026-01-01T00:00:00Z", "{\"HPASpecTemplate\":{}}");
    put(&k, "d", "2026-01-01T00:00:00Z", "{}");
    EQ_INT(count(&k, "shop", "web"), 1);
    EQ_INT(count(&k, "x", "web"), 1);
    EQ_INT(count(&k, "shop", "c-generated"), 1);
    OK(!schedule_targets_find(&k.targets, S("shop"), S("d"))->target);
    kept_stop(&k);
}

static void the_oldest_claim_counts(void)
{
    struct kept k;
    kept_start(&k);
    struct schedule_tracked *late = put(&k, "late", "2026-01-02T00:00:00Z", WEB);
    struct schedule_tracked *early = put(&k, "early", "2026-01-01T00:00:00Z", WEB);
    struct schedule_tracked *equal = put(&k, "equal", "2026-01-02T00:00:00Z", WEB);
    OK(!rival(early));
    OK(rival(late) == early);
    OK(rival(equal) == early);
    early->deleting = true;
    OK(rival(late) == equal); /* of one age, by name */
    schedule_targets_drop(&k.targets, S("shop"), S("early"));
    EQ_INT(count(&k, "shop", "web"), 2);
    put(&k, "equal", "2026-01-02T00:00:00Z", "{\"HPAObjectRef\":{\"name\":\"other\"}}");
    OK(!rival(late));
    EQ_INT(count(&k, "shop", "web"), 1);
    EQ_INT(count(&k, "shop", "other"), 1);
    schedule_targets_drop(&k.targets, S("shop"), S("late"));
    EQ_INT(count(&k, "shop", "web"), 0);
    kept_stop(&k);
}

/* While the older one still has to restore the bounds, a younger one would write over them, or learn the wrong ones. */
static void a_deleted_schedule_governs_until_it_is_released(void)
{
    struct kept k;
    kept_start(&k);
    struct schedule_tracked *late = put(&k, "late", "2026-01-02T00:00:00Z", WEB);
    struct record *r = parse(&k, "early", "2026-01-01T00:00:00Z", WEB);
    struct schedule_record early = *record_as(struct schedule_record, r);
    early.deleting = true;
    const struct schedule_tracked *one = schedule_targets_put(&k.targets, &early);
    OK(rival(late) == one);
    early.finalizers = S("[\"x\"]"); /* of another client */
    schedule_targets_put(&k.targets, &early);
    OK(!rival(late));
    record_unref(r);
    kept_stop(&k);
}

/* Schedules without consent, however old and many, do not block the target, and consent is evaluated once. */
static void schedules_without_consent_have_no_precedence(void)
{
    struct kept k;
    kept_start(&k);
    const char *abroad = "{\"HPAObjectRef\":{\"name\":\"web\",\"namespace\":\"shop\"}}";
    struct schedule_tracked *own = put(&k, "own", "2026-01-05T00:00:00Z", WEB);
    char name[20];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "b%d", i);
        put_in(&k, "b", name, "2026-01-01T00:00:00Z", abroad);
    }
    EQ_INT(k.targets.cross_namespace, 100);
    EQ_INT(count(&k, "shop", "web"), 101);
    size_t asked = 0;
    OK(!schedule_targets_find_older(own, has_consent, &asked));
    EQ_INT(asked, 1);
    const struct schedule_tracked *a = put_in(&k, "a", "late", "2026-01-04T00:00:00Z", abroad);
    OK(rival(own) == a);
    put_in(&k, "a", "late", "2026-01-04T00:00:00Z", "{\"HPAObjectRef\":{\"name\":\"web\"}}");
    OK(!rival(own));
    EQ_INT(k.targets.cross_namespace, 100);
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof(name), "b%d", i);
        schedule_targets_drop(&k.targets, S("b"), str_c(name));
    }
    EQ_INT(k.targets.cross_namespace, 0);
    kept_stop(&k);
}

static void records_become_objects(void)
{
    struct kept k;
    kept_start(&k);
    auto_arena struct arena a = { 0 };
    struct record *r = parse(&k, "a", "2026-01-01T00:00:00Z", WEB);
    struct record *again = parse(&k, "a", "2026-01-01T00:00:00Z", "{}");
    const struct schedule_record *kept = record_as(struct schedule_record, r);
    struct schedule_object o =
        schedule_record_object(&a, kept, (struct schedule_defaults){ .find_zone = tz_get });
    OK(o.has_finalizer && o.paused && !o.deleting && o.generation == 3);
    EQ_INT(o.created, 1767225600);
    EQ_STR(o.spec->hpa_name, S("web"));
    EQ_STR(json_text(json_get(o.status, "source")), S("none"));
    OK(!schedule_record_has_changed(kept, kept));
    OK(schedule_record_has_changed(kept, record_as(struct schedule_record, again)));
    OK(schedule_record_has_changed(NULL, kept) && schedule_record_has_changed(kept, NULL));
    record_unref(r);
    record_unref(again);
    kept_stop(&k);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(targets_are_found_by_every_spelling),
        TAP(the_oldest_claim_counts),
        TAP(a_deleted_schedule_governs_until_it_is_released),
        TAP(schedules_without_consent_have_no_precedence),
        TAP(records_become_objects),
        { 0 },
    });
}
