/* The kernel's files about cgroups: whatever they contain, a quota is none or not negative, and
 * a mount is at or below the base. */
#include "fuzz.h"
#include "market/cgroup_text.h"
#include "market/demand_core.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str text = { (const char *)data, size };
    int64_t value;
    if (cgroup_text_max(text, &value) && value < -1)
        abort();
    if (cgroup_text_quota(text, S("100000"), &value) && value < -1)
        abort();
    if (cgroup_text_quota(S("100000"), text, &value) && value < 0)
        abort();
    if (cgroup_text_pressure(text, &value) && value < 0)
        abort();
    struct demand_cpu_stat stat = demand_cpu_stat_parse(text);
    struct demand_window w = demand_measure((struct demand_cpu_stat){ 0 }, stat, 1000000000);
    if (w.usage_milli < 0 || !(w.throttled >= 0 && w.throttled <= 1) ||
        !(w.demand >= 0 && w.demand <= 1))
        abort();
    auto_arena struct arena a = { 0 };
    struct cgroup_mounts m = cgroup_text_mounts(&a, text, S("/sys"));
    if ((m.cpu.n && !str_starts(m.cpu, S("/sys"))) ||
        (m.unified.n && !str_starts(m.unified, S("/sys"))))
        abort();
    return 0;
}
