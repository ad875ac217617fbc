/* Base64 against the examples of RFC 4648 and against text that is none. */
#include "base/base64.h"
#include "tap.h"

static void examples(void)
{
    static const char *const t[][2] = {
        { "", "" },
        { "f", "Zg==" },
        { "fo", "Zm8=" },
        { "foo", "Zm9v" },
        { "foob", "Zm9vYg==" },
        { "fooba", "Zm9vYmE=" },
        { "foobar", "Zm9vYmFy" },
        { "\xff\xfe\x01", "//4B" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_buf struct buf text = { 0 }, bytes = { 0 };
        base64_encode(&text, str_c(t[i][0]));
        EQ_STR(buf_str(&text), str_c(t[i][1]));
        EQ_INT(base64_decode(&bytes, str_c(t[i][1])), 0);
        EQ_STR(buf_str(&bytes), str_c(t[i][0]));
    }
    auto_buf struct buf bytes = { 0 };
    EQ_INT(base64_decode(&bytes, S("Zm9v\nYg\r\n==\n")), 0);
    EQ_STR(buf_str(&bytes), S("foob"));
}

static void refuses(void)
{
    static const char *const bad[] = { "Z",     "Zg",   "Zg=",      "Zm9",   "=",
                                       "====",  "Z===", "Zg==Zg==", "Zg==x", "Zm9v=",
                                       "Zm 9v", "Zm-_", "Zg===" };
    for (size_t i = 0; i < countof(bad); i++) {
        auto_buf struct buf bytes = { 0 };
        buf_put(&bytes, S("kept"));
        if (!EQ_INT(base64_decode(&bytes, str_c(bad[i])), -EINVAL))
            printf("# taken: %s\n", bad[i]);
        EQ_STR(buf_str(&bytes), S("kept"));
    }
}

static void texts_for_urls(void)
{
    auto_buf struct buf text = { 0 }, back = { 0 };
    base64url_encode(&text, S("\xfb\xff?x"));
    EQ_STR(buf_str(&text), S("-_8_eA"));
    EQ_INT(base64url_decode(&back, buf_str(&text)), 0);
    EQ_STR(buf_str(&back), S("\xfb\xff?x"));
    EQ_INT(base64url_decode(&back, S("eA==")), -EINVAL); /* no padding */
    EQ_INT(base64url_decode(&back, S("!!")), -EINVAL);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(examples), TAP(refuses), TAP(texts_for_urls), { 0 } });
}
