/* A timestamp is printed as text that parses to the same value, in each of the three precisions. */
#include "base/rfc3339.h"
#include "fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str text = { (const char *)data, size };
    char out[RFC3339_TEXT_MAX];
    int64_t s, us, ns, again;
    err_t e;
    /* An offset can move the first and last hours of the range out of the four-digit years. */
    if (rfc3339_parse(text, &s, &e) == 0 && s >= INT64_C(-62167219200) &&
        s < INT64_C(253402300800)) {
        if (rfc3339_parse(rfc3339_text(s, out), &again, &e) || again != s)
            abort();
        if (rfc3339_parse_ns(text, &ns, &e) == 0 && (ns - s * 1000000000) / 1000000000 != 0)
            abort();
        if (rfc3339_parse_micro(text, &us, &e) == 0 &&
            (rfc3339_parse_micro(rfc3339_micro_text(us, out), &again, &e) || again != us))
            abort();
    }
    return 0;
}
