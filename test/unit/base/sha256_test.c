#include "tap.h"

#include "base/buf.h"
#include "base/sha256.h"

/* The examples of FIPS 180-4 and the NIST long message. */
static void standard_vectors(void)
{
    static const struct {
        const char *text, *hex;
    } t[] = {
        { "", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855" },
        { "abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad" },
        { "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
          "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1" },
        { "abcdefghbcdefghicdefghijdefghijkefghijklfghijklmghijklmnhijklmnoijklmnopjklmnopqklmnopqrl"
          "mnopqrsmnopqrstnopqrstu",
          "cf5b16a778af8380036ce59e7b0492370b249b11e8f07a51afac45037afee9d1" },
        { "{}", "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a" },
    };
    char hex[SHA256_HEX + 1];
    for (size_t i = 0; i < countof(t); i++) {
        sha256_hex(str_c(t[i].text), hex);
        EQ_STR(str_c(hex), str_c(t[i].hex));
    }
    auto_buf struct buf million = { 0 };
    for (int i = 0; i < 1000000; i++)
        buf_putc(&million, 'a');
    sha256_hex(buf_str(&million), hex);
    EQ_STR(str_c(hex), S("cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
}

static void pieces_make_the_same(void)
{
    char text[200];
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (char)i;
    for (size_t cut = 0; cut <= sizeof(text); cut++) {
        struct sha256 h;
        uint8_t whole[SHA256_BYTES], parts[SHA256_BYTES];
        sha256_init(&h);
        sha256_feed(&h, (str){ text, sizeof(text) });
        sha256_finish(&h, whole);
        sha256_init(&h);
        sha256_feed(&h, (str){ text, cut });
        sha256_feed(&h, (str){ text + cut, sizeof(text) - cut });
        sha256_finish(&h, parts);
        OK(memcmp(whole, parts, sizeof(whole)) == 0);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(standard_vectors), TAP(pieces_make_the_same), { 0 } });
}
