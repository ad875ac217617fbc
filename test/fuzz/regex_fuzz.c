/* A pattern, a newline, a text: it compiles or fails, and matches in time; otherwise the test runner
 * reports a timeout. */
#include "fuzz.h"

#include "base/regex.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    str all = { (const char *)data, size };
    size_t line = str_find_char(all, '\n');
    str pattern = str_upto(all, line), text = line == SIZE_MAX ? S("") : str_from(all, line + 1);
    const struct regex *r;
    if (regex_compile(&a, pattern, &r, NULL) == 0)
        regex_matches(r, text);
    return 0;
}
