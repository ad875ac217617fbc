/* A zone file: spans are adjacent, differ, and contain the instant that was asked for; the local time of
 * an instant resolves to a set that includes it. */
#include "base/tz.h"
#include "fuzz.h"

static void check_at(const struct tz *z, int64_t utc)
{
    struct tz_span span = tz_span_at(z, utc);
    if (utc < span.from || utc >= span.until)
        abort();
    if (span.until != INT64_MAX) {
        struct tz_span next = tz_span_at(z, span.until);
        if (next.from != span.until || next.offset == span.offset)
            abort();
    }
    struct tz_local local = tz_resolve(z, utc + span.offset);
    if (local.kind == TZ_GAP || local.first > utc || local.last < utc)
        abort();
    local = tz_resolve(z, utc);
    if (local.first > local.last || (local.kind != TZ_OVERLAP && local.first != local.last))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct tz *z;
    err_t e;
    if (tz_parse(S("Fuzz/Zone"), (str){ (const char *)data, size }, &z, &e) < 0)
        return 0;
    static const int64_t year_s = 31556952;
    for (int64_t year = -150; year < 200; year += 7)
        check_at(z, year * year_s + year * 12345);
    int64_t at = -100 * year_s;
    for (int n = 0; n < 50 && tz_next_transition(z, at, &at) && at < 1000 * year_s; n++) {
        check_at(z, at);
        check_at(z, at - 1);
    }
    check_at(z, -(INT64_C(1) << 57));
    check_at(z, INT64_C(1) << 57);
    tz_free(z);
    return 0;
}
