#include "tap.h"

#include "json/hash.h"

static void known_fingerprints(void)
{
    static const struct {
        const char *json, *hex;
    } t[] = {
        { "{}", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" },
        /* printf '{"a":[1,null],"b":"<\303\274\\n"}' | sha256sum */
        { "{ \"b\": \"<\xc3\xbc\\n\", \"a\": [1, null] }",
          "9ca346d68a5151d566537763db1302210df29239d99cdea992c9f8ac96c42367" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        struct json *v = NULL;
        err_t e;
        char hex[SHA256_HEX + 1];
        OK_CALL(json_parse(&a, str_c(t[i].json), &v, &e), &e);
        hash_json(v, hex);
        EQ_STR(str_c(hex), str_c(t[i].hex));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(known_fingerprints), { 0 } });
}
