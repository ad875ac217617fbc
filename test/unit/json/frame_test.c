/* The framer finds the same documents wherever the stream is cut. */
#include "tap.h"
#include "json/frame.h"

struct seen {
    struct buf all; /* documents, each followed by '|' */
    int stop_at;    /* fail at this document; 0: never */
    int n;
};

static int on_item(void *context, str document, err_t *e)
{
    struct seen *seen = context;
    if (++seen->n == seen->stop_at)
        return err_set(e, EIO, "enough");
    buf_put(&seen->all, document);
    buf_putc(&seen->all, '|');
    return 0;
}

static int run(enum frame_mode mode, str text, size_t step, struct seen *seen, struct buf *envelope,
               err_t *e)
{
    struct frame f;
    frame_init(&f, mode, on_item, seen);
    int r = 0;
    for (size_t at = 0; at < text.n && r >= 0; at += step)
        r = frame_feed(&f, str_upto(str_from(text, at), step), e);
    str rest;
    if (r >= 0)
        r = frame_end(&f, &rest, e);
    if (r >= 0)
        buf_put(envelope, rest);
    frame_done(&f);
    return r;
}

static const struct {
    enum frame_mode mode;
    const char *text, *documents, *envelope; /* documents NULL: refused */
} cases[] = {
    { FRAME_LIST, "{\"kind\":\"L\",\"items\":[]}", "", "{\"kind\":\"L\",\"items\":[]}" },
    { FRAME_LIST, "{\"kind\":\"L\",\"items\":null}", "", "{\"kind\":\"L\",\"items\":null}" },
    { FRAME_LIST, " {\"items\" : [ {\"a\":[1]} , {} ] , \"metadata\":{\"x\":[{}]}}\n",
      "{\"a\":[1]}|{}|", "{\"items\" : [] , \"metadata\":{\"x\":[{}]}}" },
    { FRAME_LIST, "{\"metadata\":{\"items\":[{\"no\":1}]},\"items\":[{\"yes\":1}]}", "{\"yes\":1}|",
      "{\"metadata\":{\"items\":[{\"no\":1}]},\"items\":[]}" },
    { FRAME_LIST, "{\"items\":[{\"a\":\"}]\\\"{[\\\\\"},{\"b\":\"\\u007b\"}]}",
      "{\"a\":\"}]\\\"{[\\\\\"}|{\"b\":\"\\u007b\"}|", "{\"items\":[]}" },
    { FRAME_LIST, "{\"a\\\"items\":[1],\"b\":\"items\",\"items\":[{}]}", "{}|",
      "{\"a\\\"items\":[1],\"b\":\"items\",\"items\":[]}" },
    { FRAME_RESULT, "{\"data\":{\"result\":[{\"a\":1},{}],\"t\":\"v\"},\"result\":[{}]}",
      "{\"a\":1}|{}|", "{\"data\":{\"result\":[],\"t\":\"v\"},\"result\":[{}]}" },
    { FRAME_RESULT, "{\"data\":{\"result\":[ 1.5,\"[2\"]}}", "",
      "{\"data\":{\"result\":[1.5,\"[2\"]}}" },
    { FRAME_RESULT, "{\"data\":{\"result\":[]}}", "", "{\"data\":{\"result\":[]}}" },
    { FRAME_RESULT, "{\"data\":{\"result\":[{}]}", NULL, NULL },
    { FRAME_LIST, "{\"items\":[{}]", NULL, NULL },
    { FRAME_LIST, "{\"items\":[{\"a\":", NULL, NULL },
    { FRAME_LIST, "{\"items\":[1]}", NULL, NULL },
    { FRAME_LIST, "{\"items\":[]}}", NULL, NULL },
    { FRAME_LIST, "{\"items\":[]}{}", NULL, NULL },
    { FRAME_LIST, "[]", NULL, NULL },
    { FRAME_LIST, "garbage", NULL, NULL },
    { FRAME_LIST, "", NULL, NULL },
    { FRAME_LINES, "{\"a\":1}\n\n{\"b\":2}\r\n", "{\"a\":1}|{\"b\":2}\r|", "" },
    { FRAME_LINES, " \n \t\r\n{\"a\":1}\n  \n", "{\"a\":1}|", "" },
    { FRAME_LINES, "", "", "" },
    { FRAME_LINES, "{\"a\":1}\n{\"b\"", NULL, NULL },
};

static void any_cut_gives_the_same(void)
{
    for (size_t i = 0; i < countof(cases); i++)
        for (size_t step = 1; step < 80; step++) {
            struct seen seen = { 0 };
            auto_buf struct buf envelope = { 0 };
            err_t e = { 0 };
            int r = run(cases[i].mode, str_c(cases[i].text), step, &seen, &envelope, &e);
            if (cases[i].documents) {
                OK_CALL(r, &e);
                EQ_STR(buf_str(&seen.all), str_c(cases[i].documents));
                EQ_STR(buf_str(&envelope), str_c(cases[i].envelope));
            } else if (!OK(r < 0 && e.text[0])) {
                printf("# taken: %s\n", cases[i].text);
            }
            buf_done(&seen.all);
        }
}

static void the_reader_can_stop_it(void)
{
    struct seen seen = { .stop_at = 2 };
    auto_buf struct buf envelope = { 0 };
    err_t e = { 0 };
    EQ_INT(run(FRAME_LIST, S("{\"items\":[{},{},{}]}"), 3, &seen, &envelope, &e), -EIO);
    EQ_STR(str_c(e.text), S("enough"));
    EQ_INT(seen.n, 2);
    buf_done(&seen.all);
}

static void sizes_are_bounded(void)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("{\"items\":[{\"a\":\""));
    memset(buf_reserve(&text, FRAME_ITEM_MAX), 'x', FRAME_ITEM_MAX);
    text.n += FRAME_ITEM_MAX;
    struct seen seen = { 0 };
    auto_buf struct buf envelope = { 0 };
    err_t e = { 0 };
    EQ_INT(run(FRAME_LIST, buf_str(&text), 65536, &seen, &envelope, &e), -EMSGSIZE);
    EQ_INT(run(FRAME_LINES, buf_str(&text), 65536, &seen, &envelope, &e), -EMSGSIZE);
    text.p[2] = 'j'; /* "jtems" is not what a list has */
    EQ_INT(run(FRAME_LIST, buf_str(&text), 65536, &seen, &envelope, &e), -EMSGSIZE);
}

static void a_framer_can_be_used_again(void)
{
    struct seen seen = { 0 };
    struct frame f;
    err_t e = { 0 };
    str envelope;
    frame_init(&f, FRAME_LIST, on_item, &seen);
    OK_CALL(frame_feed(&f, S("{\"items\":[{\"a\":\"cut"), &e), &e);
    OK(frame_end(&f, &envelope, &e) < 0);
    frame_reset(&f);
    OK_CALL(frame_feed(&f, S("{\"items\":[{\"b\":1}]}"), &e), &e);
    OK_CALL(frame_end(&f, &envelope, &e), &e);
    EQ_STR(buf_str(&seen.all), S("{\"b\":1}|"));
    frame_done(&f);
    buf_done(&seen.all);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(any_cut_gives_the_same),
                                        TAP(the_reader_can_stop_it),
                                        TAP(sizes_are_bounded),
                                        TAP(a_framer_can_be_used_again),
                                        { 0 } });
}
