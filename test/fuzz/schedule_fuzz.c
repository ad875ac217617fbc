/* Any text as the spec of a schedule: it can be read, asked at any instant and drawn; what holds
 * does so until the next transition; and the governing trigger is one that can be used. */
#include "base/civil.h"
#include "fuzz.h"
#include "schedule/schedule_draw.h"
#include "json/yaml.h"

static void check(const struct schedule_spec *spec, int64_t created, int64_t now)
{
    auto_arena struct arena a = { 0 };
    struct schedule_trigger_now *states = arena_array(&a, spec->triggers_n, sizeof(*states));
    struct schedule_effective e = schedule_effective(spec, created, now, states);
    if (e.trigger >= (int)spec->triggers_n || (e.next && e.next <= now))
        abort();
    if (e.trigger >= 0 && spec->triggers[e.trigger].use != SCHEDULE_USED)
        abort();
    int64_t last = e.next ? e.next - 1 : now + CIVIL_DAY_S;
    struct schedule_effective later = schedule_effective(spec, created, last, states);
    if (later.source != e.source || later.trigger != e.trigger || later.next != e.next)
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct json_limits limits = { .depth = 20, .members = 50 };
    struct json *tree;
    if (size < 2 ||
        yaml_parse_limited(&a, (str){ (const char *)data + 2, size - 2 }, &limits, &tree, NULL) < 0)
        return 0;
    struct schedule_spec *spec = schedule_spec_read(
        &a, tree, (struct schedule_defaults){ (enum schedule_overnight)(data[0] & 1), tz_get });
    int64_t now = INT64_C(1774573200) + (int64_t)(data[0] << 8 | data[1]) * 600; /* 2026-03-27 */
    check(spec, now - CIVIL_DAY_S, now);
    check(spec, now, now);
    schedule_explain(&out, spec, 0, now);
    schedule_draw_problems(&out, spec);
    struct schedule_timeline line = schedule_timeline(&a, spec, 0, now, now + 2 * CIVIL_DAY_S);
    schedule_draw_text(&out, &line, tz_utc());
    schedule_draw_svg(&out, &line, tz_utc(), S("t"));
    return 0;
}
