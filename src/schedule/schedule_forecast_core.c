/* Publishing and reading a forecast: see schedule_forecast_core.h.
 *
 *     schedule_forecast_floor(t): the largest slot floor in [t, t + 1 h) -> steps, equal neighbors joined -> status
 *
 * The floor looks an hour ahead because that is what a floor is for: pods that start now must be ready when the load
 * arrives. The steps change at the half hours of the local day, so daylight saving moves them with the wall clock. */
#include "schedule_forecast_core.h"

#include "../base/civil.h"
#include "../base/rfc3339.h"

/* No analysis publishes more than the longest time to the next one, a week. */
enum {
    SLOT_S = SCHEDULE_SLOT_MINUTES * 60,
    FLOOR_MAX = 1000000,
    VALID_MAX_S = 7 * 86400 + SCHEDULE_FORECAST_SPARE_S,
};

/* The next half hour of the local day. */
static int64_t next_slot(const struct tz *zone, int64_t at)
{
    int64_t local = at + tz_offset_at(zone, at), day = civil_day_of(local);
    return at + SLOT_S - (local - day * CIVIL_DAY_S) % SLOT_S;
}

static struct json *step_json(struct arena *a, int64_t from, int32_t floor)
{
    struct json *one = json_new_obj(a);
    char text[RFC3339_TEXT_MAX];
    json_set_str(a, one, "from", rfc3339_text(from, text));
    json_set_int(a, one, "minReplicas", floor);
    return one;
}

/* Joins equal neighbors: a status has some ten steps instead of 50. */
struct json *schedule_forecast_json(struct arena *a, const struct schedule_recommendation *r,
                                    const struct tz *zone, int64_t from, int64_t until)
{
    struct json *out = json_new_obj(a), *floors = json_new_arr(a);
    char text[RFC3339_TEXT_MAX];
    int32_t last = -1;
    for (int64_t at = from; at < until; at = next_slot(zone, at)) {
        int32_t floor = schedule_forecast_floor(r, zone, at);
        if (floor != last)
            json_push(a, floors, step_json(a, at, floor));
        last = floor;
    }
    json_set_str(a, out, "validUntil", rfc3339_text(until, text));
    json_set(a, out, S("floors"), floors);
    return out;
}

/* The step that began last is in effect. A status can be edited by hand, so nothing depends on the order. */
struct schedule_forecast_now schedule_forecast_read(const struct json *forecast, int64_t now)
{
    struct schedule_forecast_now out = { 0 };
    const struct json *floors = json_get(forecast, "floors");
    int64_t until = 0, began = INT64_MIN;
    if (rfc3339_parse(json_text(json_get(forecast, "validUntil")), &until, NULL) < 0)
        return out;
    bool is_valid = now < until && until - now <= VALID_MAX_S;
    out.next = is_valid ? until : 0;
    out.is_stale = true;
    for (size_t i = 0; is_valid && i < json_len(floors); i++) {
        const struct json *one = json_item(floors, i);
        int64_t from, floor = json_int(json_get(one, "minReplicas"), 0);
        if (rfc3339_parse(json_text(json_get(one, "from")), &from, NULL) < 0 || floor < 0)
            continue;
        if (from > now) {
            out.next = MIN(out.next, from);
        } else if (from >= began) {
            began = from;
            out.floor = (int32_t)MIN(floor, FLOOR_MAX);
            out.is_stale = false;
        }
    }
    return out;
}

/* A note whose numbers cannot be ours counts as none: users of the HPA can edit the annotation. */
struct schedule_forecast_note schedule_forecast_note_read(const struct json *baseline)
{
    int64_t own = json_int(json_get(baseline, "own"), -1),
            floor = json_int(json_get(baseline, "floor"), -1);
    if (own < 0 || floor <= own || floor > INT32_MAX)
        return (struct schedule_forecast_note){ 0 };
    return (struct schedule_forecast_note){ true, (int32_t)own, (int32_t)floor };
}
