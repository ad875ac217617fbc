/* Path templates: whatever the template, no crash, and what comes out is a path that gateways take. */
#include "fuzz.h"

#include "gateway_path.h"

static const char object_text[] =
    "{\"metadata\":{\"name\":\"n\",\"namespace\":\"ns\",\"uid\":\"u\",\"labels\":{\"team\":\"A/b\",\"x.y/z\":\"\"},"
    "\"annotations\":{\"u\":\"\\u0130\\u00dc %?#\",\"dots\":\"../..\"}},\"spec\":{\"n\":1.5e9,\"b\":true,\"z\":null,"
    "\"list\":[{\"a\":\"b\"},{\"a\":\"c\"}]}}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf path = { 0 };
    struct json *object;
    struct aim_path_template t;
    struct aim_path_problem problem;
    if (json_parse(&a, str_c(object_text), &object, NULL))
        abort();
    if (aim_path_compile(&a, (str){ (const char *)data, size }, &t, &problem) < 0)
        return 0;
    for (t.encoding = PATH_RFC3986; t.encoding <= PATH_RFC1123; t.encoding++) {
        buf_clear(&path);
        if (aim_path_render(&t, object, &a, &path, &problem) == 0 &&
            !is_gateway_path(buf_str(&path)))
            abort();
    }
    return 0;
}
