/* Building a status: see schedule_status_core.h. The new status starts as a copy of the old one, so that fields
 * of other writers survive, and is written as the difference between the two; an empty difference is not
 * written. */
#include "schedule_status_core.h"

#include "../base/rfc3339.h"
#include "../json/merge.h"

struct schedule_status schedule_status(struct arena *a, const struct json *old, int64_t now,
                                       int64_t generation)
{
    bool usable = json_is(old, JSON_OBJ);
    struct json *next = usable ? json_copy(a, old) : json_new_obj(a);
    json_set_int(a, next, "observedGeneration", generation);
    return (struct schedule_status){ a, usable ? old : NULL, next, now, generation };
}

const struct json *schedule_condition_find(const struct json *status, const char *type)
{
    const struct json *list = json_get(status, "conditions");
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), type))
            return json_item(list, i);
    return NULL;
}

bool schedule_condition_is_true(const struct json *status, const char *type)
{
    return str_eqc(json_text(json_get(schedule_condition_find(status, type), "status")), "True");
}

int64_t schedule_condition_since(const struct json *status, const char *type)
{
    const struct json *condition = schedule_condition_find(status, type);
    int64_t at = 0;
    return rfc3339_parse(json_text(json_get(condition, "lastTransitionTime")), &at, NULL) == 0 ? at
                                                                                               : 0;
}

/* Keeps the transition time of `before` if the status is the same. */
static struct json *make_condition(const struct schedule_status *s,
                                   const struct schedule_condition *c, const struct json *before)
{
    struct json *out = json_new_obj(s->a);
    str word = c->holds ? S("True") : S("False");
    char text[RFC3339_TEXT_MAX];
    str since = rfc3339_text(s->now, text);
    str old_since = json_text(json_get(before, "lastTransitionTime"));
    if (str_eq(json_text(json_get(before, "status")), word) && old_since.n)
        since = old_since;
    json_set_str(s->a, out, "type", str_c(c->type));
    json_set_str(s->a, out, "status", word);
    json_set_int(s->a, out, "observedGeneration", s->generation);
    json_set_str(s->a, out, "lastTransitionTime", since);
    json_set_str(s->a, out, "reason", str_c(c->reason));
    json_set_str(s->a, out, "message", c->message);
    return out;
}

void schedule_status_condition(struct schedule_status *s, const struct schedule_condition *c)
{
    struct json *list = json_get(s->next, "conditions");
    if (!json_is(list, JSON_ARR)) {
        list = json_new_arr(s->a);
        json_set(s->a, s->next, S("conditions"), list);
    }
    for (uint32_t i = 0; i < list->n; i++) {
        struct json *one = list->items[i];
        if (str_eqc(json_text(json_get(one, "type")), c->type)) {
            list->items[i] = make_condition(s, c, one);
            return;
        }
    }
    json_push(s->a, list, make_condition(s, c, NULL));
}

void schedule_status_clear(struct schedule_status *s, const struct schedule_condition *c)
{
    if (schedule_condition_find(s->next, c->type))
        schedule_status_condition(s, c);
}

void schedule_status_text(struct schedule_status *s, const char *field, str value)
{
    if (value.n)
        json_set_str(s->a, s->next, field, value);
    else
        json_del(s->next, str_c(field));
}

void schedule_status_time(struct schedule_status *s, const char *field, int64_t at)
{
    char text[RFC3339_TEXT_MAX];
    schedule_status_text(s, field, at ? rfc3339_text(at, text) : S(""));
}

struct json *schedule_status_patch(const struct schedule_status *s)
{
    return merge_diff(s->a, s->old ? s->old : json_new_obj(s->a), s->next);
}
