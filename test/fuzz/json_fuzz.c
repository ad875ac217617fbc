/* Whatever parses can be written in each form, and reads back equal. */
#include "fuzz.h"
#include "json/json.h"

static void check_form(const struct json *v, void (*write)(struct buf *, const struct json *))
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct json *again;
    write(&out, v);
    if (json_parse(&a, (str){ out.p, out.n }, &again, NULL) < 0 || !json_eq(v, again))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json *v;
    err_t e;
    if (json_parse(&a, (str){ (const char *)data, size }, &v, &e) == 0) {
        check_form(v, json_write);
        check_form(v, json_write_pretty);
        check_form(v, json_write_canonical);
    }
    return 0;
}
