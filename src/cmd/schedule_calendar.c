/* Calendars for the commands: see schedule_calendar.h.
 *
 * As in the operator, a name is looked for in the schedule's own namespace, then in the operator's; the calendars there with
 * the label value "default" are excluded from all triggers. A calendar of another namespace is reported, not used. A
 * manifest without a namespace may end up in any: it counts as one of the schedule's, and of the operator's. */
#include "schedule_calendar.h"

#include "explain.h"

struct command_calendar {
    struct command_calendar *next;
    struct schedule_calendar *calendar; /* NULL: it cannot be read */
    char *ns, *name, *why;              /* owned; `why`: the reason, else NULL */
    bool is_default;
    char *foreign; /* owned; why it is not used if it is in neither namespace */
};

#define OPERATOR_NAMESPACE "flyball-system"

static const char *operator_ns(const struct command_calendars *c)
{
    return c->operator_ns ? c->operator_ns : OPERATOR_NAMESPACE;
}

static char *copy_text(str text)
{
    return mem_dup(text.p, text.n);
}

/* Keeps a calendar that cannot be read, with the reason, so that a schedule that uses it can report it. */
static void add_config_map(struct command_calendars *c, const struct json *object)
{
    const struct json *metadata = json_get(object, "metadata"),
                      *label = json_at(metadata, "labels", SCHEDULE_CALENDAR_LABEL, NULL);
    str kind = json_text(json_get(object, "kind"));
    if (!label || (kind.n && !str_eqc(kind, "ConfigMap"))) /* items of a list have no kind */
        return;
    struct command_calendar *one = mem_zero(1, sizeof(*one));
    str text = schedule_calendar_text(json_get(object, "data"));
    err_t e = { .text = "it has neither a key calendar.ics nor a single key" };
    one->ns = copy_text(json_text(json_get(metadata, "namespace")));
    one->name = copy_text(json_text(json_get(metadata, "name")));
    one->is_default =
        str_eqc(json_text(label), "default") && (!*one->ns || !strcmp(one->ns, operator_ns(c)));
    auto_buf struct buf foreign = { 0 };
    buf_printf(&foreign,
               "it is in namespace %s, but must be in that of the schedule or of the operator, %s",
               one->ns, operator_ns(c));
    one->foreign = copy_text(buf_str(&foreign));
    if (!text.n || schedule_calendar_parse(text, tz_get, &one->calendar, &e) < 0)
        one->why = copy_text(str_c(e.text));
    one->next = c->first;
    c->first = one;
}

/* The calendars that every trigger excludes. */
static void collect_defaults(struct command_calendars *c)
{
    size_t n = 0;
    for (const struct command_calendar *one = c->first; one; one = one->next)
        n += one->is_default && one->calendar;
    free(c->defaults);
    c->defaults = mem_zero(n + 1, sizeof(*c->defaults));
    c->defaults_n = 0;
    for (const struct command_calendar *one = c->first; one; one = one->next)
        if (one->is_default && one->calendar)
            c->defaults[c->defaults_n++] = one->calendar;
}

void command_calendars_add(struct command_calendars *c, const struct json *objects)
{
    for (size_t i = 0; i < json_len(objects); i++) {
        const struct json *object = json_item(objects, i), *items = json_get(object, "items");
        for (size_t k = 0; k < json_len(items); k++)
            add_config_map(c, json_item(items, k));
        add_config_map(c, object);
    }
    collect_defaults(c);
}

void command_calendars_fetch(struct command_calendars *c, struct explain *x)
{
    struct json *list;
    err_t e;
    if (explain_list(x, &resource_configmaps, S(SCHEDULE_CALENDAR_LABEL), &list, &e) < 0)
        return;
    command_calendars_add(c, json_get(list, "items"));
    c->is_complete = true;
}

/* 2: of the schedule's own namespace; 1: shared; 0: the operator would not use it. */
static int rank_calendar(const struct command_calendars *c, const struct command_calendar *one)
{
    if (str_eqc(c->ns, one->ns) || !*one->ns)
        return 2;
    return !strcmp(one->ns, operator_ns(c));
}

static struct schedule_calendar_found find_calendar(void *context, str name)
{
    const struct command_calendars *c = context;
    const struct command_calendar *found = NULL;
    for (const struct command_calendar *one = c->first; one; one = one->next)
        if (str_eqc(name, one->name) && (!found || rank_calendar(c, one) > rank_calendar(c, found)))
            found = one;
    if (!found)
        return (struct schedule_calendar_found){ 0 };
    if (!rank_calendar(c, found))
        return (struct schedule_calendar_found){ NULL, found->foreign };
    return (struct schedule_calendar_found){ found->calendar, found->why };
}

struct schedule_defaults command_calendars_use(struct command_calendars *c, str ns)
{
    c->ns = ns;
    return (struct schedule_defaults){ .find_zone = tz_get,
                                       .find_calendar = find_calendar,
                                       .calendars = c,
                                       .calendars_incomplete = !c->is_complete,
                                       .default_calendars = c->defaults,
                                       .default_calendars_n = c->defaults_n };
}

void command_calendars_done(struct command_calendars *c)
{
    for (struct command_calendar *one = c->first, *next; one; one = next) {
        next = one->next;
        schedule_calendar_free(one->calendar);
        free(one->ns);
        free(one->name);
        free(one->why);
        free(one->foreign);
        free(one);
    }
    free(c->defaults);
    *c = (struct command_calendars){ 0 };
}
