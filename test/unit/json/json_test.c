#include "tap.h"
#include "test_json.h"

#include "json/json.h"

static void round_trips(void)
{
    static const char *const texts[] = {
        "null",
        "true",
        "-12",
        "0.5",
        "\"a\\\"b\\\\c\\n\\u0001ü\"",
        "[]",
        "{}",
        "[1,[2,{\"a\":null}]]",
        "{\"b\":1,\"a\":{\"c\":[true,false]}}",
        "9223372036854775807",
        "1.5",
        "100000000000000000000",
        "18446744073709552000",
        "-12345678901234567000",
        "1e+21",
        "1e-07",
        "0.1",
        "123456.789",
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(texts); i++)
        EQ_STR(json_to_str(&a, test_json(&a, texts[i])), str_c(texts[i]));
}

static void bad_text_is_placed(void)
{
    auto_arena struct arena a = { 0 };
    struct json *v;
    err_t e;
    EQ_INT(json_parse(&a, S("{\n  \"a\": x}"), &v, &e), -EINVAL);
    OK(str_starts(str_c(e.text), S("invalid JSON at line 2, column 8")));
    EQ_INT(json_parse(&a, S(""), &v, &e), -EINVAL);
    EQ_INT(json_parse(&a, S("{} {}"), &v, &e), -EINVAL);
}

static void limits_hold(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf deep = { 0 };
    for (int i = 0; i < 100000; i++)
        buf_putc(&deep, '[');
    for (int i = 0; i < 100000; i++)
        buf_putc(&deep, ']');
    struct json *v;
    err_t e;
    EQ_INT(json_parse(&a, buf_str(&deep), &v, &e), -E2BIG);
    EQ_INT(json_parse_limited(&a, S("[[1]]"), &(struct json_limits){ .depth = 2 }, &v, &e), 0);
    EQ_INT(json_parse_limited(&a, S("[[[1]]]"), &(struct json_limits){ .depth = 2 }, &v, &e),
           -E2BIG);
    EQ_INT(json_parse_limited(&a, S("[1,2,3]"), &(struct json_limits){ .members = 2 }, &v, &e),
           -E2BIG);
}

static void note(void *context, str path)
{
    buf_printf(context, STR_FMT ";", STR_ARG(path));
}

static void duplicates_are_reported_and_the_last_wins(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf paths = { 0 };
    struct json *v = NULL;
    err_t e;
    struct json_limits limits = { .duplicate = note, .context = &paths };
    OK_CALL(json_parse_limited(&a, S("{\"a\":1,\"b\":[{\"x\":1,\"x\":2}],\"a\":3}"), &limits, &v,
                               &e),
            &e);
    EQ_STR(buf_str(&paths), S("b[0].x;a;"));
    EQ_STR(json_to_str(&a, v), S("{\"a\":3,\"b\":[{\"x\":2}]}"));
}

static void reads_what_is_not_there(void)
{
    auto_arena struct arena a = { 0 };
    struct json *v = test_json(&a, "{\"spec\":{\"n\":3,\"name\":\"x\",\"list\":[1,2]}}");
    EQ_INT(json_int(json_at(v, "spec", "n", NULL), -1), 3);
    EQ_INT(json_int(json_at(v, "spec", "none", "deeper", NULL), -1), -1);
    EQ_STR(json_text(json_at(v, "spec", "name", NULL)), S("x"));
    EQ_STR(json_text(json_at(v, "spec", "n", NULL)), S(""));
    EQ_INT(json_int(json_item(json_at(v, "spec", "list", NULL), 1), 0), 2);
    OK(json_item(json_at(v, "spec", "list", NULL), 2) == NULL && json_get(NULL, "x") == NULL);
}

static void builds_and_changes(void)
{
    auto_arena struct arena a = { 0 };
    struct json *o = json_new_obj(&a), *list = json_new_arr(&a);
    json_set_str(&a, json_make(&a, o, "metadata", "labels", NULL), "app", S("web"));
    json_set(&a, o, S("list"), list);
    for (int i = 0; i < 10; i++)
        json_push(&a, list, json_new_int(&a, i));
    json_remove(list, 0);
    json_insert(&a, list, 1, json_new_bool(&a, true));
    EQ_STR(json_to_str(&a, o),
           S("{\"metadata\":{\"labels\":{\"app\":\"web\"}},\"list\":[1,true,2,3,4,5,6,7,8,9]}"));
    OK(json_del(o, S("list")) && !json_del(o, S("list")));
}

static void equality_ignores_order(void)
{
    auto_arena struct arena a = { 0 };
    struct json *v = test_json(&a, "{\"a\":1,\"b\":[1,2],\"c\":null}");
    OK(json_eq(v, test_json(&a, "{\"c\":null,\"b\":[1.0,2],\"a\":1}")));
    OK(!json_eq(v, test_json(&a, "{\"c\":null,\"b\":[2,1],\"a\":1}")));
    OK(!json_eq(v, test_json(&a, "{\"a\":1,\"b\":[1,2]}")));
    OK(json_eq(v, json_copy(&a, v)) && !json_eq(v, NULL));
}

static void canonical_is_sorted(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    json_write_canonical(&out,
                         test_json(&a, "{\"b\":{\"z\":1,\"y\":2},\"a\":[{\"d\":1,\"c\":2}]}"));
    EQ_STR(buf_str(&out), S("{\"a\":[{\"c\":2,\"d\":1}],\"b\":{\"y\":2,\"z\":1}}"));
}

/* Every byte at every position of texts of every length: the writer checks several bytes at a time. */
static void odd_bytes_are_found_anywhere(void)
{
    auto_arena struct arena a = { 0 };
    size_t wrong = 0;
    for (size_t length = 1; length <= 20; length++) {
        for (size_t at = 0; at < length; at++) {
            for (int byte = 0; byte < 0x80; byte++) {
                char text[20];
                memset(text, 'x', sizeof(text));
                text[at] = (char)byte;
                str want = { text, length };
                auto_buf struct buf out = { 0 };
                json_write_text(&out, want);
                struct json *read = NULL;
                bool plain = byte >= 0x20 && byte != '"' && byte != '\\';
                wrong += json_parse(&a, buf_str(&out), &read, NULL) < 0 ||
                         !str_eq(json_text(read), want) || (out.n == length + 2) != plain;
            }
            arena_reset(&a, (struct arena_mark){ 0 });
        }
    }
    EQ_INT(wrong, 0);
}

static void no_nul_in_names(void)
{
    static const char *const t[][2] = {
        { "{\"a\\u0000b\":\"\\u0000\"}", "{\"a\\ufffdb\":\"\\ufffd\"}" },
        { "\"\\\\u0000\"", "\"\\\\u0000\"" }, /* a backslash, then text */
        { "\"\\\\\\u0000\\u0000\"",
          "\"\\\\\\ufffd\\ufffd\"" }, /* a backslash, then a NUL, and another */
        { "", "" },
        { "\\u000", "\\u000" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        char *text = mem_dup(t[i][0], strlen(t[i][0]));
        json_hide_nul(text, strlen(text));
        EQ_STR(str_c(text), str_c(t[i][1]));
        free(text);
    }
    json_hide_nul(NULL, 0);
}

static void too_many_values_are_refused(void)
{
    auto_arena struct arena a = { 0 };
    struct json *v;
    err_t e;
    struct json_limits limits = { .values = 4 };
    OK_CALL(json_parse_limited(&a, S("[1,2,3]"), &limits, &v, &e), &e);
    OK(json_parse_limited(&a, S("[1,2,3,4]"), &limits, &v, &e) == -E2BIG);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(round_trips),
                                        TAP(bad_text_is_placed),
                                        TAP(limits_hold),
                                        TAP(duplicates_are_reported_and_the_last_wins),
                                        TAP(reads_what_is_not_there),
                                        TAP(builds_and_changes),
                                        TAP(equality_ignores_order),
                                        TAP(canonical_is_sorted),
                                        TAP(odd_bytes_are_found_anywhere),
                                        TAP(no_nul_in_names),
                                        TAP(too_many_values_are_refused),
                                        { 0 } });
}
