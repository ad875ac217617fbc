/* Beside glibc's localtime, which reads the same files with other code, and beside known facts. */
#include "tap.h"

#include "base/buf.h"
#include "base/civil.h"
#include "base/random.h"
#include "base/rfc3339.h"
#include "base/tz.h"

#include <pthread.h>
#include <time.h>

static const char *const zones[] = {
    "Africa/Cairo",       "Africa/Casablanca", "America/Nuuk",     "America/New_York",
    "America/Santiago",   "America/Sao_Paulo", "America/Phoenix",  "America/St_Johns",
    "Antarctica/Troll",   "Asia/Amman",        "Asia/Beirut",      "Asia/Gaza",
    "Asia/Jerusalem",     "Asia/Kathmandu",    "Asia/Kolkata",     "Asia/Pyongyang",
    "Asia/Tehran",        "Asia/Tokyo",        "Atlantic/Azores",  "Australia/Lord_Howe",
    "Australia/Sydney",   "Europe/Berlin",     "Europe/Dublin",    "Europe/London",
    "Europe/Moscow",      "Pacific/Apia",      "Pacific/Auckland", "Pacific/Chatham",
    "Pacific/Kiritimati", "Pacific/Kwajalein", "Pacific/Easter",   "America/Havana",
    "America/Asuncion",   "Africa/El_Aaiun",   "Etc/GMT+12",       "Etc/GMT-14",
};

static const struct tz *zone(const char *name)
{
    const struct tz *z = tz_utc();
    err_t e;
    OK_CALL(tz_get(str_c(name), &z, &e), &e);
    return z;
}

static int64_t at(const char *text)
{
    int64_t s = 0;
    err_t e;
    OK_CALL(rfc3339_parse(str_c(text), &s, &e), &e);
    return s;
}

static bool same_as_libc(const struct tz *z, int64_t utc)
{
    time_t t = (time_t)utc;
    struct tm tm;
    localtime_r(&t, &tm);
    if (tz_offset_at(z, utc) == tm.tm_gmtoff)
        return true;
    char text[RFC3339_TEXT_MAX];
    rfc3339_text(utc, text);
    return tap_note(__FILE__, __LINE__, "%s at %s is %d, libc has %ld", tz_name(z).p, text,
                    tz_offset_at(z, utc), tm.tm_gmtoff);
}

/* Random instants, and both sides of every transition, from 1950 through 2200. */
static void agrees_with_libc(void)
{
    struct random r;
    random_init(&r, 1, 1);
    int64_t first = at("1950-01-01T00:00:00Z"), last = at("2200-01-01T00:00:00Z");
    size_t transitions = 0;
    for (size_t i = 0; i < countof(zones); i++) {
        const struct tz *z = zone(zones[i]);
        setenv("TZ", zones[i], 1);
        tzset();
        bool same = true;
        for (int k = 0; k < 300 && same; k++)
            same = same_as_libc(z, first + (int64_t)(random_unit(&r) * (double)(last - first)));
        for (int64_t t = first; same && tz_next_transition(z, t, &t) && t < last; transitions++)
            same = same_as_libc(z, t - 1) && same_as_libc(z, t) &&
                   tz_offset_at(z, t - 1) != tz_offset_at(z, t);
    }
    setenv("TZ", "UTC", 1);
    tzset();
    OK(transitions > 5000);
}

static void resolves_local_time(void)
{
    static const struct {
        const char *zone, *local;
        enum tz_kind kind;
        const char *first, *last, *transition;
    } t[] = {
        { "Europe/Berlin", "2026-06-03T09:00:00Z", TZ_UNIQUE, "2026-06-03T07:00:00Z",
          "2026-06-03T07:00:00Z", "2026-06-03T07:00:00Z" },
        { "Europe/Berlin", "2026-03-29T02:30:00Z", TZ_GAP, "2026-03-29T01:00:00Z",
          "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z" },
        { "Europe/Berlin", "2026-03-29T03:00:00Z", TZ_UNIQUE, "2026-03-29T01:00:00Z",
          "2026-03-29T01:00:00Z", "2026-03-29T01:00:00Z" },
        { "Europe/Berlin", "2026-10-25T02:00:00Z", TZ_OVERLAP, "2026-10-25T00:00:00Z",
          "2026-10-25T01:00:00Z", "2026-10-25T01:00:00Z" },
        { "Europe/Berlin", "2026-10-25T02:59:59Z", TZ_OVERLAP, "2026-10-25T00:59:59Z",
          "2026-10-25T01:59:59Z", "2026-10-25T01:00:00Z" },
        { "Europe/Berlin", "2099-10-25T02:30:00Z", TZ_OVERLAP, "2099-10-25T00:30:00Z",
          "2099-10-25T01:30:00Z", "2099-10-25T01:00:00Z" },
        { "America/New_York", "2026-11-01T03:00:00Z", TZ_UNIQUE, "2026-11-01T08:00:00Z",
          "2026-11-01T08:00:00Z", "2026-11-01T08:00:00Z" },
        { "Australia/Lord_Howe", "2026-10-04T02:15:00Z", TZ_GAP, "2026-10-03T15:30:00Z",
          "2026-10-03T15:30:00Z", "2026-10-03T15:30:00Z" },
        { "Pacific/Apia", "2011-12-30T12:00:00Z", TZ_GAP, "2011-12-30T10:00:00Z",
          "2011-12-30T10:00:00Z", "2011-12-30T10:00:00Z" },
        { "Pacific/Kwajalein", "1993-08-21T12:00:00Z", TZ_GAP, "1993-08-21T12:00:00Z",
          "1993-08-21T12:00:00Z", "1993-08-21T12:00:00Z" },
        { "Antarctica/Troll", "2027-03-28T02:30:00Z", TZ_GAP, "2027-03-28T01:00:00Z",
          "2027-03-28T01:00:00Z", "2027-03-28T01:00:00Z" },
        { "UTC", "2026-03-29T02:30:00Z", TZ_UNIQUE, "2026-03-29T02:30:00Z", "2026-03-29T02:30:00Z",
          "2026-03-29T02:30:00Z" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct tz_local got = tz_resolve(zone(t[i].zone), at(t[i].local));
        bool ok = EQ_INT(got.kind, t[i].kind) && EQ_INT(got.first, at(t[i].first)) &&
                  EQ_INT(got.last, at(t[i].last)) && EQ_INT(got.transition, at(t[i].transition));
        if (!ok)
            printf("# %s %s\n", t[i].zone, t[i].local);
    }
}

/* The local time of every instant resolves to that instant. */
static void resolving_undoes_reading(void)
{
    struct random r;
    random_init(&r, 2, 1);
    int wrong = 0;
    for (int k = 0; k < 20000; k++) {
        const struct tz *z = zone(zones[random_below(&r, countof(zones))]);
        int64_t utc = (int64_t)random_below(&r, UINT32_MAX) * 2;
        struct tz_local got = tz_resolve(z, utc + tz_offset_at(z, utc));
        wrong += got.kind == TZ_GAP || (got.first != utc && got.last != utc) ||
                 (got.kind == TZ_OVERLAP) != (got.first != got.last);
    }
    EQ_INT(wrong, 0);
}

static void spans_meet(void)
{
    for (size_t i = 0; i < countof(zones); i++) {
        const struct tz *z = zone(zones[i]);
        struct tz_span span = tz_span_at(z, INT64_MIN);
        EQ_INT(span.from, INT64_MIN);
        for (int n = 0; span.until < at("2150-01-01T00:00:00Z") && n < 2000; n++) {
            struct tz_span next = tz_span_at(z, span.until);
            if (!(OK(next.from == span.until) && OK(next.offset != span.offset)))
                break;
            span = next;
        }
        tz_span_at(z, INT64_MAX);
        tz_resolve(z, INT64_MAX);
        tz_resolve(z, INT64_MIN);
    }
}

static void refuses_names_that_are_not_zones(void)
{
    static const char *const bad[] = {
        "",
        "/etc/passwd",
        "../UTC",
        "Europe/../UTC",
        "Europe//Berlin",
        "Europe/Berlin/",
        "./UTC",
        "PST",
        "asia/kolkata ",
        "America/New_York ",
        "Invalid/Zone",
        "tzdata.zi",
        "Europe",
        "zone.tab",
        "UTC+2",
        "+05:30",
        "a\nb",
        "right/Europe/Berlin",
    };
    for (size_t i = 0; i < countof(bad); i++) {
        const struct tz *z = NULL;
        err_t e = { 0 };
        OK(tz_get(str_c(bad[i]), &z, &e) < 0 && !z);
        if (!OK(strstr(e.text, "time zone \"")))
            printf("# %s: %s\n", bad[i], e.text);
    }
    const struct tz *z;
    err_t e;
    OK(tz_get((str){ "UTC\0/x", 6 }, &z, &e) < 0);
    char longer[300];
    memset(longer, 'a', sizeof(longer));
    OK(tz_get((str){ longer, sizeof(longer) }, &z, &e) == -EINVAL);
}

/* ---- files made by hand */

static void put_u32(struct buf *b, uint32_t v)
{
    char bytes[] = { (char)(v >> 24), (char)(v >> 16), (char)(v >> 8), (char)v };
    buf_put(b, (str){ bytes, 4 });
}

static void put_header(struct buf *b, char version, uint32_t times, uint32_t types)
{
    buf_put(b, S("TZif"));
    buf_putc(b, version);
    buf_put(b, (str){ (char[15]){ 0 }, 15 });
    put_u32(b, 0), put_u32(b, 0), put_u32(b, 0);
    put_u32(b, times), put_u32(b, types), put_u32(b, 4);
}

static void put_type(struct buf *b, int32_t offset)
{
    put_u32(b, (uint32_t)offset);
    buf_put(b, (str){ "\0\0", 2 });
}

/* A slim file: no transition, one type, and a rule. */
static struct tz *slim(const char *rule, int32_t offset)
{
    auto_buf struct buf b = { 0 };
    put_header(&b, '3', 0, 1), put_type(&b, 0), buf_put(&b, S("XXX\0"));
    put_header(&b, '3', 0, 1), put_type(&b, offset), buf_put(&b, S("XXX\0"));
    buf_printf(&b, "\n%s\n", rule);
    struct tz *z = NULL;
    err_t e = { 0 };
    if (tz_parse(S("Test/Slim"), buf_str(&b), &z, &e))
        OK(strstr(e.text, "Test/Slim"));
    return z;
}

static void reads_every_form_of_rule(void)
{
    static const struct {
        const char *rule, *at;
        int32_t want;
    } t[] = {
        { "<+0330>-3:30", "2050-06-01T00:00:00Z", 12600 },
        { "EST5EDT", "2050-07-01T00:00:00Z", -14400 },
        { "EST5EDT,M3.2.0,M11.1.0", "2050-03-13T06:59:59Z", -18000 },
        { "EST5EDT,M3.2.0,M11.1.0", "2050-03-13T07:00:00Z", -14400 },
        { "AAA0BBB,J60/0,J61/0", "2048-03-01T00:00:00Z", 3600 }, /* leap year: J60 is March 1 */
        { "AAA0BBB,J60/0,J61/0", "2048-02-29T12:00:00Z", 0 },
        { "AAA0BBB,59/0,60/0", "2048-02-29T12:00:00Z", 3600 }, /* n counts February 29 */
        { "AAA0BBB,59/0,60/0", "2049-03-01T12:00:00Z", 3600 },
        { "IST-1GMT0,M10.5.0,M3.5.0/1", "2050-01-01T00:00:00Z", 0 }, /* negative daylight saving */
        { "IST-1GMT0,M10.5.0,M3.5.0/1", "2050-07-01T00:00:00Z", 3600 },
        { "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1", "2050-03-27T01:00:00Z", -7200 }, /* hours below 0 */
        { "<-03>3<-02>,M3.5.0/-2,M10.5.0/-1", "2050-03-27T00:59:59Z", -10800 },
        { "EET-2EEST,M4.5.5/0,M10.5.4/24", "2050-10-27T20:59:59Z", 10800 }, /* hour 24 */
        { "EET-2EEST,M4.5.5/0,M10.5.4/24", "2050-10-27T21:00:00Z", 7200 },
        { "XXX3EDT4,0/0,J365/23", "2050-01-01T03:00:00Z", -14400 }, /* daylight time all year */
        { "XXX3EDT4,0/0,J365/23", "2050-07-01T00:00:00Z", -14400 },
        { "CHAST-12:45CHADT-13:45,M9.5.0/2:45,M4.1.0/3:45", "2050-12-31T23:00:00Z", 49500 },
        { "AAA0BBB,M12.5.0/167,M6.1.0", "2050-01-01T22:59:59Z", 0 },
        { "AAA0BBB,M12.5.0/167,M6.1.0", "2050-01-01T23:00:00Z", 3600 },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct tz *z = slim(t[i].rule, 0);
        if (!OK(z) || !EQ_INT(tz_offset_at(z, at(t[i].at)), t[i].want))
            printf("# %s at %s\n", t[i].rule, t[i].at);
        tz_free(z);
    }
    struct tz *z = slim("XXX3EDT4,0/0,J365/23", 0);
    int64_t next;
    OK(z && !tz_next_transition(z, 0, &next));
    tz_free(z);
}

static void refuses_bad_rules(void)
{
    static const char *const bad[] = {
        "E5",
        "EST",
        "EST25",
        "EST5EDT,",
        "EST5EDT,M3.2.0",
        "EST5EDT,M13.1.0,M1.1.0",
        "EST5EDT,M3.6.0,M11.1.0",
        "EST5EDT,M3.0.0,M11.1.0",
        "EST5EDT,M3.2.7,M11.1.0",
        "EST5EDT,J0,J1",
        "EST5EDT,J366,J1",
        "EST5EDT,366,1",
        "EST5EDT,M3.2.0/168,M11.1.0",
        "EST5EDT,M3.2.0,M11.1.0x",
        "<E>5",
        "<EST5",
        "EST5:60",
        "EST:5",
        "EST5EDT,M3.2.0,",
        "EST99999999999",
    };
    for (size_t i = 0; i < countof(bad); i++) {
        struct tz *z = slim(bad[i], 0);
        if (!OK(!z))
            printf("# %s\n", bad[i]);
        tz_free(z);
    }
}

static void refuses_broken_files(void)
{
    auto_buf struct buf b = { 0 };
    put_header(&b, '2', 0, 1), put_type(&b, 0), buf_put(&b, S("XXX\0"));
    put_header(&b, '2', 0, 1), put_type(&b, 3600), buf_put(&b, S("XXX\0"));
    buf_put(&b, S("\nAAA-1\n"));
    struct tz *z = NULL;
    err_t e;
    OK_CALL(tz_parse(S("x"), buf_str(&b), &z, &e), &e);
    EQ_INT(tz_offset_at(z, 0), 3600);
    tz_free(z);
    for (size_t n = 0; n < b.n; n++) {
        str part = { mem_dup(b.p, n), n };
        z = NULL;
        OK(tz_parse(S("x"), part, &z, &e) == -EINVAL && !z);
        free((char *)part.p);
    }
    OK(!slim("AAA0", 26 * 3600) && !slim("AAA0", INT32_MIN));
}

/* The 32-bit block of a version 1 file, with a transition and no rule. */
static void reads_version_1(void)
{
    auto_buf struct buf b = { 0 };
    put_header(&b, '\0', 2, 2);
    put_u32(&b, (uint32_t)-1000), put_u32(&b, 1000);
    buf_put(&b, (str){ "\1\0", 2 });
    put_type(&b, 60), put_type(&b, -60);
    buf_put(&b, S("XXX\0"));
    struct tz *z = NULL;
    err_t e;
    OK_CALL(tz_parse(S("x"), buf_str(&b), &z, &e), &e);
    EQ_INT(tz_offset_at(z, -1001), 60);
    EQ_INT(tz_offset_at(z, -1000), -60);
    EQ_INT(tz_offset_at(z, 1000), 60);
    EQ_INT(tz_span_at(z, 5000).until, INT64_MAX);
    tz_free(z);
    size_t last_time = 44 + 4;
    memcpy(b.p + last_time, "\x80\0\0\0", 4);
    OK(tz_parse(S("x"), buf_str(&b), &z, &e) == -EINVAL && strstr(e.text, "out of order"));
}

static void *get_all(void *unused)
{
    (void)unused;
    uintptr_t sum = 0;
    for (int round = 0; round < 20; round++)
        for (size_t i = 0; i < countof(zones); i++) {
            const struct tz *z = NULL;
            if (tz_get(str_c(zones[i]), &z, NULL))
                return NULL;
            sum += (uintptr_t)z;
        }
    return (void *)sum;
}

static void threads_share_zones(void)
{
    pthread_t threads[4];
    void *sums[4];
    for (size_t i = 0; i < countof(threads); i++)
        OK(pthread_create(&threads[i], NULL, get_all, NULL) == 0);
    for (size_t i = 0; i < countof(threads); i++)
        pthread_join(threads[i], &sums[i]);
    OK(sums[0] && sums[0] == sums[1] && sums[1] == sums[2] && sums[2] == sums[3]);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(agrees_with_libc),
                                        TAP(resolves_local_time),
                                        TAP(resolving_undoes_reading),
                                        TAP(spans_meet),
                                        TAP(refuses_names_that_are_not_zones),
                                        TAP(reads_every_form_of_rule),
                                        TAP(refuses_bad_rules),
                                        TAP(refuses_broken_files),
                                        TAP(reads_version_1),
                                        TAP(threads_share_zones),
                                        { 0 } });
}
