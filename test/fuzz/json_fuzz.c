/* Everything that parses can be written in each form and parsed again. The first round trip may turn a
 * large real into an integer with the same digits, as in Go; a second one changes nothing. */
#include "fuzz.h"
#include "json/json.h"

typedef void writer(struct buf *, const struct json *);

static struct json *trip(struct arena *a, const struct json *v, writer *write)
{
    auto_buf struct buf out = { 0 };
    struct json *again;
    write(&out, v);
    if (json_parse(a, (str){ out.p, out.n }, &again, NULL) < 0)
        abort();
    return again;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static writer *const forms[] = { json_write, json_write_pretty, json_write_canonical };
    auto_arena struct arena a = { 0 };
    struct json *v;
    err_t e;
    if (json_parse(&a, (str){ (const char *)data, size }, &v, &e) < 0)
        return 0;
    for (size_t i = 0; i < countof(forms); i++) {
        struct json *once = trip(&a, v, forms[i]);
        if (once->type != v->type && !json_is(v, JSON_REAL))
            abort();
        if (!json_eq(once, trip(&a, once, forms[i])))
            abort();
    }
    return 0;
}
