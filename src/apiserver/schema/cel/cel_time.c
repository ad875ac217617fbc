/* Timestamps and durations: parsing, printing, and their parts.
 *
 * A timestamp is seconds since 1970, nanoseconds, and the offset it was written with: its parts and its text
 * are in that offset, as in Go, unless a zone is named. Comparing ignores the offset. A duration is
 * nanoseconds.
 *
 * There are two ways from text to a time. timestamp() and duration() accept RFC 3339 and Go's "1h30m". Fields
 * with the formats date, date-time and duration become times when they are read, and their formats are the
 * wider ones of the OpenAPI library: "2024-01-31", "3 days".
 *
 * Named zones are loaded from the system's database on first use (base/tz.c) and cached for the process. */
#include "../../../base/civil.h"
#include "../../../base/duration.h"
#include "../../../base/rfc3339.h"
#include "../../../base/tz.h"
#include "cel_node.h"

#include <stdio.h>

#define YEAR_1 INT64_C(-62135596800)
#define YEAR_10000 INT64_C(253402300800)

/* The years 1 to 9999, which is what a protobuf timestamp can hold. */
bool cel_in_time_range(int64_t seconds)
{
    return seconds >= YEAR_1 && seconds < YEAR_10000;
}

/* ---- parsing */

static bool read_digits(str *rest, size_t n, int *ret)
{
    if (rest->n < n)
        return false;
    *ret = 0;
    for (size_t i = 0; i < n; i++) {
        if (rest->p[i] < '0' || rest->p[i] > '9')
            return false;
        *ret = *ret * 10 + (rest->p[i] - '0');
    }
    *rest = str_from(*rest, n);
    return true;
}

/* Consumes one character if it is one of `any_of`. */
static bool skip(str *rest, const char *any_of)
{
    if (!rest->n || !strchr(any_of, rest->p[0]))
        return false;
    *rest = str_from(*rest, 1);
    return true;
}

/* A fraction of any length; digits beyond the nanosecond are dropped. */
static uint32_t read_fraction(str *rest)
{
    uint32_t nanos = 0;
    size_t digits = 0;
    if (rest->n < 2 || (rest->p[0] != '.' && rest->p[0] != ',') || rest->p[1] < '0' ||
        rest->p[1] > '9')
        return 0;
    for (*rest = str_from(*rest, 1); rest->n && rest->p[0] >= '0' && rest->p[0] <= '9';
         *rest = str_from(*rest, 1), digits++)
        if (digits < 9)
            nanos = nanos * 10 + (uint32_t)(rest->p[0] - '0');
    for (; digits < 9; digits++)
        nanos *= 10;
    return nanos;
}

/* "Z", or an offset with or without a colon; in minutes. */
static bool read_zone(str *rest, int *ret)
{
    int hours, minutes;
    *ret = 0;
    if (skip(rest, "Zz"))
        return true;
    bool west = rest->n && rest->p[0] == '-';
    if (!skip(rest, "+-") || !read_digits(rest, 2, &hours))
        return false;
    skip(rest, ":");
    if (!read_digits(rest, 2, &minutes) || hours > 23 || minutes > 59)
        return false;
    *ret = (hours * 60 + minutes) * (west ? -1 : 1);
    return true;
}

/* RFC 3339. A leap second is refused, as by Go. */
bool cel_parse_timestamp(str text, struct cel_value *ret)
{
    int64_t days;
    int hour, minute, second, zone;
    str rest = text;
    if (!rfc3339_take_date(&rest, &days) || !skip(&rest, "Tt") || !read_digits(&rest, 2, &hour) ||
        !skip(&rest, ":") || !read_digits(&rest, 2, &minute) || !skip(&rest, ":") ||
        !read_digits(&rest, 2, &second) || hour > 23 || minute > 59 || second > 59)
        return false;
    uint32_t nanos = read_fraction(&rest);
    if (!read_zone(&rest, &zone) || rest.n)
        return false;
    int64_t at = days * CIVIL_DAY_S + hour * 3600 + minute * 60 + second - zone * 60;
    if (!cel_in_time_range(at))
        return false;
    *ret = (struct cel_value){
        .kind = CEL_TIMESTAMP, .integer = at, .n = nanos, .zone = (int16_t)zone
    };
    return true;
}

bool cel_parse_schema_time(str text, bool date, struct cel_value *ret)
{
    int64_t days;
    str rest = text;
    if (!date)
        return cel_parse_timestamp(text, ret);
    if (!rfc3339_take_date(&rest, &days) || rest.n)
        return false;
    *ret = (struct cel_value){ .kind = CEL_TIMESTAMP, .integer = days * CIVIL_DAY_S };
    return true;
}

/* Schemas also accept "3 days" and the like. */
bool cel_parse_schema_duration(str text, int64_t *ret_ns)
{
    static const struct {
        const char *names;
        int64_t seconds;
    } units[] = { { " s sec secs second seconds ", 1 },
                  { " m min mins minute minutes ", 60 },
                  { " h hr hour hours ", 3600 },
                  { " d day days ", 86400 },
                  { " w wk week weeks ", 604800 } };
    if (duration_parse(text, ret_ns, NULL) == 0)
        return true;
    size_t i = 0;
    while (i < text.n && ((text.p[i] >= '0' && text.p[i] <= '9') || text.p[i] == '.'))
        i++;
    double count;
    if (str_to_f64(str_upto(text, i), &count) < 0)
        return false;
    auto_buf struct buf unit = { 0 };
    buf_printf(&unit, " " STR_FMT " ", STR_ARG(str_trim(str_from(text, i))));
    for (size_t u = 0; unit.n > 2 && u < countof(units); u++) {
        double ns = count * (double)units[u].seconds * 1e9;
        if (str_find(str_c(units[u].names), buf_str(&unit)) == SIZE_MAX || ns > 9.2e18)
            continue;
        *ret_ns = (int64_t)ns;
        return true;
    }
    return false;
}

/* ---- printing */

/* The fraction of a second without trailing zeros; nothing if it is zero. */
static void put_fraction(struct buf *out, uint32_t nanos)
{
    char digits[12];
    int n = snprintf(digits, sizeof(digits), ".%09u", nanos);
    while (n > 1 && digits[n - 1] == '0')
        n--;
    if (n > 1)
        buf_put(out, (str){ digits, (size_t)n });
}

void cel_put_timestamp(struct buf *out, struct cel_value v)
{
    int64_t local = v.integer + v.zone * 60, day = civil_day_of(local);
    struct civil_date date = civil_from_days(day);
    int second = (int)(local - day * CIVIL_DAY_S);
    buf_printf(out, "%04d-%02d-%02dT%02d:%02d:%02d", (int)date.year, date.month, date.day,
               second / 3600, second / 60 % 60, second % 60);
    put_fraction(out, v.n);
    if (v.zone)
        buf_printf(out, "%c%02d:%02d", v.zone < 0 ? '-' : '+', abs(v.zone) / 60, abs(v.zone) % 60);
    else
        buf_putc(out, 'Z');
}

/* Seconds with a fraction ("90.5s"), the form of protobuf, not Go's "1m30.5s". */
void cel_put_duration(struct buf *out, int64_t ns)
{
    uint64_t size = ns < 0 ? 0 - (uint64_t)ns : (uint64_t)ns;
    buf_printf(out, "%s%llu", ns < 0 ? "-" : "", (unsigned long long)(size / 1000000000));
    put_fraction(out, (uint32_t)(size % 1000000000));
    buf_putc(out, 's');
}

/* ---- parts */

/* Minutes east of UTC for a zone name or an offset "+02:00"; false: there is no such zone. */
static bool find_zone(str name, int64_t at, int64_t *ret_seconds)
{
    str rest = name;
    int hours, minutes;
    bool west = rest.n && rest.p[0] == '-';
    skip(&rest, "+-");
    if (read_digits(&rest, 2, &hours) && skip(&rest, ":") && read_digits(&rest, 2, &minutes) &&
        !rest.n) {
        *ret_seconds = (hours * 60 + minutes) * (west ? -60 : 60);
        return true;
    }
    const struct tz *zone;
    if (tz_get(name.n ? name : S("UTC"), &zone, NULL) < 0)
        return false;
    *ret_seconds = tz_offset_at(zone, at);
    return true;
}

/* A duration in whole units, rounded toward zero: getMinutes() of 90s is 1. */
static int64_t duration_part(const char *name, int64_t ns)
{
    return !strcmp(name, "getHours")     ? ns / INT64_C(3600000000000)
           : !strcmp(name, "getMinutes") ? ns / INT64_C(60000000000)
           : !strcmp(name, "getSeconds") ? ns / 1000000000
                                         : ns / 1000000;
}

/* Months, days of the month and days of the year count from 0, as in JavaScript; getDate() counts from 1. */
struct cel_value cel_call_time(struct cel_machine *m, const char *name, const struct cel_value *a,
                               uint32_t n)
{
    if (a[0].kind == CEL_DURATION)
        return cel_of_int(duration_part(name, a[0].integer));
    int64_t offset = a[0].zone * 60;
    if (n > 1 && !find_zone(cel_text(a[1]), a[0].integer, &offset))
        return cel_fail(m->arena, "unknown time zone " STR_FMT, STR_ARG(cel_text(a[1])));
    int64_t local = a[0].integer + offset, day = civil_day_of(local);
    struct civil_date date = civil_from_days(day);
    int64_t second = local - day * CIVIL_DAY_S;
    int64_t first = civil_to_days((struct civil_date){ date.year, 1, 1 });
    const struct {
        const char *name;
        int64_t value;
    } parts[] = {
        { "getFullYear", date.year },    { "getMonth", date.month - 1 },
        { "getDayOfYear", day - first }, { "getDayOfMonth", date.day - 1 },
        { "getDate", date.day },         { "getDayOfWeek", civil_weekday(day) },
        { "getHours", second / 3600 },   { "getMinutes", second / 60 % 60 },
        { "getSeconds", second % 60 },   { "getMilliseconds", a[0].n / 1000000 },
    };
    for (size_t i = 0; i < countof(parts); i++)
        if (!strcmp(name, parts[i].name))
            return cel_of_int(parts[i].value);
    return cel_no_overload();
}
