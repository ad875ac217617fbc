/* Rows of the screen of `flyball up`, from the same JSON that the page gets (src/web/board_core.h).
 *
 * A number that is unknown is "-", never 0. Replicas that are as desired are one number; "2 → 3" is a change that is
 * under way. CPU is in cores below ten and in whole cores above, as in `kubectl top` but easier to compare. */
#include "screen_core.h"

#include "../base/civil.h"
#include "../base/rfc3339.h"

#include <math.h>

/* In the order in which src/web/market.c writes them. */
enum {
    POD_NAME,
    POD_USED = 2,
    POD_LIMIT,
    POD_DESIRED = 5,
    POD_NEED,
    POD_THROTTLING = 8,
    POD_WEIGHT,
    POD_PRICE,
    POD_MODE
};

static double number(const struct json *v)
{
    return json_real(v, NAN);
}

static str put_number(struct arena *a, double value, int decimals, const char *unit)
{
    return isfinite(value) ? arena_printf(a, "%.*f%s", decimals, value, unit) : S("-");
}

/* 100% needs no digits after the point, and must not be what 99.96% is rounded to. */
static str put_percent(struct arena *a, double share)
{
    return put_number(a, share * 100, fabs(share) < .9995 ? 1 : 0, "%");
}

static str put_cores(struct arena *a, double milli)
{
    return put_number(a, milli / 1000, 2, "");
}

static str put_word(str text)
{
    return text.n ? text : S("-");
}

str screen_span(struct arena *a, int64_t s)
{
    enum { MINUTE = 60, HOUR = 3600, DAY = 86400 };
    s = MAX(s, INT64_C(0));
    if (s < MINUTE)
        return arena_printf(a, "%ds", (int)s);
    if (s < HOUR)
        return arena_printf(a, "%dm", (int)(s / MINUTE));
    if (s < DAY)
        return arena_printf(a, "%dh%02dm", (int)(s / HOUR), (int)(s % HOUR / MINUTE));
    return arena_printf(a, "%lldd%dh", (long long)(s / DAY), (int)(s % DAY / HOUR));
}

/* "3", "2 → 3", and how many of the current ones are not ready yet. */
static str put_replicas(struct arena *a, int64_t current, int64_t desired, int64_t pending)
{
    str waiting = pending > 0 ? arena_printf(a, " (+%d)", (int)pending) : S("");
    if (current < 0 && desired < 0)
        return S("-");
    if (current < 0 || desired < 0 || current == desired)
        return arena_printf(a, "%d" STR_FMT, (int)MAX(current, desired), STR_ARG(waiting));
    return arena_printf(a, "%d → %d" STR_FMT, (int)current, (int)desired, STR_ARG(waiting));
}

/* The cost is that of all current replicas. */
static void read_model(struct arena *a, const struct json *o, struct screen_row *row)
{
    int64_t current = json_int(json_get(o, "current"), -1),
            desired = json_int(json_get(o, "desired"), -1);
    double demand = number(json_get(o, "demand")), capacity = number(json_get(o, "capacity"));
    row->changing = current >= 0 && desired >= 0 && current != desired;
    row->cells[1] = put_replicas(a, current, desired, json_int(json_get(o, "pending"), 0));
    row->cells[2] = put_percent(a, number(json_get(o, "kv")));
    row->cells[3] = put_number(a, number(json_get(o, "queue")), 1, "");
    row->cells[4] = put_percent(a, number(json_get(o, "slo")));
    row->cells[5] = isnan(demand) || isnan(capacity)
                        ? put_number(a, demand, 2, "")
                        : arena_printf(a, "%.2f/%.2f", demand, capacity);
    row->cells[6] =
        put_number(a, number(json_get(o, "cost")) * (double)MAX(current, INT64_C(0)), 2, "/h");
}

/* "09:00 in 9m", or with the day if it is another one; in UTC, as in the status. */
static str put_moment(struct arena *a, str time, int64_t now_s)
{
    static const char days[] = "SunMonTueWedThuFriSat";
    int64_t at;
    if (!time.n || rfc3339_parse(time, &at, NULL) < 0)
        return S("-");
    int64_t day = civil_day_of(at), second = at - day * CIVIL_DAY_S;
    bool today = day == civil_day_of(now_s);
    str span = screen_span(a, at - now_s);
    return arena_printf(a, "%.3s%s%02d:%02dZ in " STR_FMT,
                        today ? "" : days + 3 * (size_t)civil_weekday(day), today ? "" : " ",
                        (int)(second / 3600), (int)(second % 3600 / 60), STR_ARG(span));
}

static void read_schedule(struct arena *a, const struct json *o, int64_t now_s,
                          struct screen_row *row)
{
    int64_t least = json_int(json_at(o, "currentConfig", "minReplicas", NULL), -1),
            most = json_int(json_at(o, "currentConfig", "maxReplicas", NULL), -1);
    row->cells[1] = least < 0 && most < 0
                        ? S("-")
                        : arena_printf(a, "%d to %d", (int)MAX(least, INT64_C(0)), (int)most);
    row->cells[2] = put_word(json_text(json_get(o, "activeTrigger")));
    row->cells[3] = put_moment(a, json_text(json_get(o, "nextTransitionTime")), now_s);
}

/* A node has no throttling of its own. */
static void read_node(struct arena *a, const struct json *o, struct screen_row *row)
{
    row->cells[0] = arena_printf(a, "node " STR_FMT " (%d pods)", STR_ARG(row->key),
                                 (int)json_int(json_get(o, "pods"), 0));
    row->cells[1] = put_cores(a, number(json_get(o, "used")));
    row->cells[2] = put_cores(a, number(json_get(o, "limit")));
    row->cells[3] = put_cores(a, number(json_get(o, "need")));
    row->cells[4] = put_number(a, number(json_get(o, "price")), 3, "");
}

/* The limit in force, or the desired one until a kubelet has applied it. */
static void read_pod(struct arena *a, const struct json *o, struct screen_row *row)
{
    double limit = number(json_item(o, POD_LIMIT)), desired = number(json_item(o, POD_DESIRED));
    str ns, rest = row->key;
    if (!str_cut(&rest, '/', &ns))
        ns = S("");
    row->cells[0] = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(ns),
                                 STR_ARG(json_text(json_item(o, POD_NAME))));
    row->cells[1] = put_cores(a, number(json_item(o, POD_USED)));
    row->cells[2] = put_cores(a, isnan(limit) ? desired : limit);
    row->cells[3] = put_cores(a, number(json_item(o, POD_NEED)));
    row->cells[4] = put_number(a, number(json_item(o, POD_PRICE)), 3, "");
    row->cells[5] = put_percent(a, number(json_item(o, POD_THROTTLING)));
    row->cells[6] = put_number(a, number(json_item(o, POD_WEIGHT)), 2, "");
    row->cells[7] = put_word(json_text(json_item(o, POD_MODE)));
}

static void read_service(const struct json *o, struct screen_row *row)
{
    str config = json_text(json_at(o, "resolvedRuntimeConfig", "name", NULL));
    row->cells[1] = put_word(json_text(json_get(o, "status")));
    row->cells[2] = put_word(config.n ? config : json_text(json_get(o, "configName")));
    row->cells[3] = put_word(json_text(json_at(o, "routing", "path", NULL)));
    row->changing = !str_eqc(row->cells[1], "Running");
}

struct screen_row screen_row_read(struct arena *a, enum screen_kind kind, str key,
                                  const struct json *object, int64_t now_s)
{
    struct screen_row row = { .kind = kind, .key = arena_str(a, key) };
    row.cells[0] = row.key;
    if (kind == SCREEN_MODEL)
        read_model(a, object, &row);
    else if (kind == SCREEN_SCHEDULE)
        read_schedule(a, object, now_s, &row);
    else if (kind == SCREEN_NODE)
        read_node(a, object, &row);
    else if (kind == SCREEN_POD)
        read_pod(a, object, &row);
    else if (kind == SCREEN_SERVICE)
        read_service(object, &row);
    return row;
}
