#include "tap.h"

#include "base/buf.h"

static void grows_and_ends_in_nul(void)
{
    auto_buf struct buf b = { 0 };
    EQ_STR(buf_str(&b), S(""));
    for (int i = 0; i < 1000; i++)
        buf_printf(&b, "%d,", i % 10);
    EQ_INT(b.n, 2000);
    EQ_INT(strlen(b.p), 2000);
}

static void consume_drops_the_front(void)
{
    auto_buf struct buf b = { 0 };
    buf_put(&b, S("hello world"));
    buf_consume(&b, 6);
    EQ_STR(buf_str(&b), S("world"));
    buf_consume(&b, 5);
    EQ_STR(buf_str(&b), S(""));
}

static void xml_is_escaped(void)
{
    auto_buf struct buf b = { 0 };
    buf_put_xml(&b, S("<a href=\"x\">\x01\n&\xc3\xa4</a>"));
    EQ_STR(buf_str(&b), S("&lt;a href=&quot;x&quot;>&amp;\xc3\xa4&lt;/a>"));
}

static void take_hands_over(void)
{
    struct buf b = { 0 };
    auto_free char *empty = buf_take(&b);
    EQ_INT(empty[0], 0);
    buf_putc(&b, 'x');
    auto_free char *text = buf_take(&b);
    EQ_STR(str_c(text), S("x"));
    OK(b.p == NULL && b.n == 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(grows_and_ends_in_nul),
                                        TAP(consume_drops_the_front),
                                        TAP(take_hands_over),
                                        TAP(xml_is_escaped),
                                        { 0 } });
}
