#include "tap.h"
#include "test_json.h"

#include "json/pointer.h"

/* The examples of RFC 6901 and what must not be found. */
static void finds_values(void)
{
    auto_arena struct arena a = { 0 };
    struct json *v =
        test_json(&a, "{\"foo\":[\"bar\",\"baz\"],\"\":0,\"a/b\":1,\"c%d\":2,\"e^f\":3,"
                      "\"g|h\":4,\"i\\\\j\":5,\"k\\\"l\":6,\" \":7,\"m~n\":8,\"~1\":9}");
    static const struct {
        const char *pointer, *json; /* NULL: nothing */
    } t[] = {
        { "/foo", "[\"bar\",\"baz\"]" },
        { "/foo/0", "\"bar\"" },
        { "/foo/1", "\"baz\"" },
        { "/", "0" },
        { "/a~1b", "1" },
        { "/c%d", "2" },
        { "/e^f", "3" },
        { "/g|h", "4" },
        { "/i\\j", "5" },
        { "/k\"l", "6" },
        { "/ ", "7" },
        { "/m~0n", "8" },
        { "/~01", "9" },
        { "foo", NULL },
        { "/foo/2", NULL },
        { "/foo/00", NULL },
        { "/foo/-1", NULL },
        { "/foo/-", NULL },
        { "/foo/0/x", NULL },
        { "/foo/99999999999999999999", NULL },
        { "/m~n", NULL },
        { "/m~", NULL },
        { "/fo", NULL },
    };
    OK(pointer_get(v, S("")) == v);
    for (size_t i = 0; i < countof(t); i++) {
        struct json *got = pointer_get(v, str_c(t[i].pointer));
        EQ_STR(got ? json_to_str(&a, got) : S("nothing"), str_c(t[i].json ? t[i].json : "nothing"));
    }
}

static void splits_and_joins(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    str rest = S("/a~1b//c"), token, parent, last;
    OK(pointer_split(rest, &parent, &last));
    EQ_STR(parent, S("/a~1b/"));
    EQ_STR(last, S("c"));
    OK(!pointer_split(S(""), &parent, &last));
    while (pointer_next(&rest, &token))
        pointer_put(&out, pointer_unescape(&a, token));
    EQ_STR(buf_str(&out), S("/a~1b//c"));
    EQ_STR(pointer_unescape(&a, S("~01~10")), S("~1/0"));
}

static void reports_bad_pointers(void)
{
    err_t e;
    EQ_INT(pointer_check(S("a/b"), &e), -EINVAL);
    EQ_STR(str_c(e.text), S("JSON pointer \"a/b\" must be empty or start with \"/\""));
    EQ_INT(pointer_check(S("/a~2"), &e), -EINVAL);
    EQ_INT(pointer_check(S("/~0~1"), &e), 0);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(finds_values), TAP(splits_and_joins), TAP(reports_bad_pointers), { 0 } });
}
