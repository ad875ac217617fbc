/* A parsed duration is printed as text that parses to the same value. */
#include "base/duration.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    int64_t ns, again;
    err_t e;
    if (duration_parse((str){ (const char *)data, size }, &ns, &e) < 0)
        return 0;
    char text[DURATION_TEXT_MAX];
    if (duration_parse(duration_text(ns, text), &again, &e) < 0 || again != ns)
        abort();
    str prom = duration_prom_text(ns, text);
    if (prom.n < 2 || prom.p[0] < '1' || prom.p[0] > '9')
        abort();
    return 0;
}
