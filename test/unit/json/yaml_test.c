#include "tap.h"

#include "json/yaml.h"

static void means(const char *yaml, const char *json)
{
    auto_arena struct arena a = { 0 };
    struct json *v = NULL;
    err_t e;
    if (OK_CALL(yaml_parse(&a, str_c(yaml), &v, &e), &e))
        tap_eq_str(__FILE__, __LINE__, yaml, json_to_str(&a, v), str_c(json));
}

static void fails(const char *yaml, int code, const char *sentence)
{
    auto_arena struct arena a = { 0 };
    struct json *v = NULL;
    err_t e = { 0 };
    EQ_INT(yaml_parse(&a, str_c(yaml), &v, &e), -code);
    tap_eq_str(__FILE__, __LINE__, yaml, str_c(e.text), str_c(sentence));
}

static void scalars_mean_what_kubernetes_takes_them_for(void)
{
    static const struct {
        const char *yaml, *json;
    } t[] = {
        { "", "null" },
        { "~", "null" },
        { "null", "null" },
        { "Null", "null" },
        { "nULL", "\"nULL\"" },
        { "y", "true" },
        { "Y", "true" },
        { "yes", "true" },
        { "On", "true" },
        { "TRUE", "true" },
        { "tRUE", "\"tRUE\"" },
        { "n", "false" },
        { "No", "false" },
        { "OFF", "false" },
        { "0", "0" },
        { "-0", "0" },
        { "+12", "12" },
        { "-12", "-12" },
        { "1_000", "1000" },
        { "0x1F", "31" },
        { "-0x10", "-16" },
        { "0o17", "15" },
        { "017", "15" },
        { "08", "8" }, /* not octal: read as a real, and whole */
        { "0b101", "5" },
        { "-0b11", "-3" },
        { "0x", "\"0x\"" },
        { "0xg", "\"0xg\"" },
        { "9223372036854775807", "9223372036854775807" },
        { "-9223372036854775808", "-9223372036854775808" },
        { "9223372036854775808", "9223372036854776000" },
        { "0xffffffffffffffff", "18446744073709552000" },
        { "0xffffffffffffffffff", "\"0xffffffffffffffffff\"" },
        { "99999999999999999999", "100000000000000000000" },
        { ".5_0", "0.5" },
        { "3.0", "3" },
        { "1e3", "1000" },
        { "1.5", "1.5" },
        { ".5", "0.5" },
        { "5.", "5" },
        { "-.5", "-0.5" },
        { "1e-7", "1e-07" },
        { "1e400", "\"1e400\"" },
        { "1e", "\"1e\"" },
        { ".", "\".\"" },
        { "-", "[null]" },
        { "1.2.3", "\"1.2.3\"" },
        { "12:30:45", "\"12:30:45\"" },
        { "2001-01-01", "\"2001-01-01\"" },
        { "2001-01-01T10:00:00Z", "\"2001-01-01T10:00:00Z\"" },
        { "100m", "\"100m\"" },
        { "1Gi", "\"1Gi\"" },
        { "'yes'", "\"yes\"" },
        { "\"12\"", "\"12\"" },
        { "\"a\\u00e9\\n\\x41\"", "\"a\xc3\xa9\\nA\"" },
        { "!!str 12", "\"12\"" },
        { "!!int '12'", "12" },
        { "!!float 3", "3" },
        { "!mine x", "\"x\"" },
        { "a b  c", "\"a b  c\"" },
    };
    for (size_t i = 0; i < countof(t); i++)
        means(t[i].yaml, t[i].json);
}

static void structure_becomes_a_tree(void)
{
    means("a: 1\nb:\n- x\n- u: 2\n  z:\n", "{\"a\":1,\"b\":[\"x\",{\"u\":2,\"z\":null}]}");
    means("{a: [1, 'two'], \"b\": {}}", "{\"a\":[1,\"two\"],\"b\":{}}");
    means("on: 1\n8080: x\n1.5: u\nno: z\n",
          "{\"true\":1,\"8080\":\"x\",\"1.5\":\"u\",\"false\":\"z\"}");
    means("text: |\n  one\n   two\n\n  three\nnext: 1\n",
          "{\"text\":\"one\\n two\\n\\nthree\\n\",\"next\":1}");
    means("text: >-\n  one\n  two\n", "{\"text\":\"one two\"}");
    means("text: |+\n  one\n\n", "{\"text\":\"one\\n\\n\"}");
    means("# nothing\n---\na: 1 # one\n...\n", "{\"a\":1}");
    means("\xef\xbb\xbf"
          "a: 1",
          "{\"a\":1}");
}

static void json_is_yaml(void)
{
    means("{\"a\":\"\\ud83d\\ude00\\/\",\"b\":[1,2.5,null]}",
          "{\"a\":\"\xf0\x9f\x98\x80/\",\"b\":[1,2.5,null]}");
    means("  {\n\t\"a\" : 1\n}\n", "{\"a\":1}");
    means("[1,2]", "[1,2]");
}

static void anchors_are_copied_and_merged(void)
{
    means("a: &x {k: 1}\nb: *x\nc: [*x, *x]\n",
          "{\"a\":{\"k\":1},\"b\":{\"k\":1},\"c\":[{\"k\":1},{\"k\":1}]}");
    means("&k key: 1\nv: *k\n", "{\"key\":1,\"v\":\"key\"}");
    means("base: &b {x: 1, u: 2}\none:\n  <<: *b\n  u: 3\n",
          "{\"base\":{\"x\":1,\"u\":2},\"one\":{\"x\":1,\"u\":3}}");
    means("- &a {x: 1, u: 1}\n- &b {x: 2, z: 2}\n- <<: [*a, *b]\n",
          "[{\"x\":1,\"u\":1},{\"x\":2,\"z\":2},{\"x\":1,\"z\":2,\"u\":1}]");
    means("{a: &b {k: 1}, c: {k: 5, <<: *b}}", "{\"a\":{\"k\":1},\"c\":{\"k\":1}}");
    means("'<<': 1", "{\"<<\":1}");
    means("a: &x 1\nb: &x 2\nc: *x\n", "{\"a\":1,\"b\":2,\"c\":2}");
}

static void copies_do_not_share(void)
{
    auto_arena struct arena a = { 0 };
    struct json *v = NULL;
    err_t e;
    OK_CALL(yaml_parse(&a, S("a: &x {k: 1}\nb: *x\n"), &v, &e), &e);
    json_set_int(&a, json_get(v, "b"), "k", 2);
    EQ_STR(json_to_str(&a, v), S("{\"a\":{\"k\":1},\"b\":{\"k\":2}}"));
}

static void many_keys_are_distinguished(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf text = { 0 };
    for (int i = 0; i < 5000; i++)
        buf_printf(&text, "key%d: %d\n", i % 4000, i);
    struct json *v = NULL;
    err_t e;
    OK_CALL(yaml_parse(&a, buf_str(&text), &v, &e), &e);
    EQ_INT(json_len(v), 4000);
    EQ_INT(json_int(json_get(v, "key999"), -1), 4999);
    EQ_INT(json_int(json_get(v, "key1000"), -1), 1000);
}

static void note(void *context, str path)
{
    buf_printf(context, STR_FMT ";", STR_ARG(path));
}

static void duplicates_are_reported_and_the_last_wins(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf paths = { 0 };
    struct json_limits limits = { .duplicate = note, .context = &paths };
    struct json *v = NULL;
    err_t e;
    OK_CALL(yaml_parse_limited(&a, S("a: 1\nb:\n- x: 1\n  x: 2\na: 3\n"), &limits, &v, &e), &e);
    EQ_STR(buf_str(&paths), S("b[0].x;a;"));
    EQ_STR(json_to_str(&a, v), S("{\"a\":3,\"b\":[{\"x\":2}]}"));
}

static void errors_have_a_place(void)
{
    fails("a: 1\n b: 2\n", EINVAL,
          "invalid YAML at line 2, column 3: mapping values are not allowed in this context");
    fails("a: [1\nb: 2", EINVAL,
          "invalid YAML at line 2, column 2: did not find expected ',' or ']' while parsing a flow "
          "sequence");
    fails("a: *x", EINVAL,
          "invalid YAML at line 1, column 4: an alias refers to an unknown anchor");
    fails("a: &x [*x]", EINVAL,
          "invalid YAML at line 1, column 8: an anchor contains an alias to itself");
    fails("a: .inf", EINVAL,
          "invalid YAML at line 1, column 4: JSON cannot represent infinity and not-a-number");
    fails("~: 1", EINVAL, "invalid YAML at line 1, column 1: a key cannot be null");
    fails("? [a]\n: 1", EINVAL,
          "invalid YAML at line 1, column 5: a key must be text, a number or a boolean");
    fails(
        "x: {<<: 5}", EINVAL,
        "invalid YAML at line 1, column 9: a merge key (<<) takes a mapping or a list of mappings");
    fails("!!int abc", EINVAL,
          "invalid YAML at line 1, column 1: the value does not match its tag");
    fails("!!binary aGk=", EINVAL,
          "invalid YAML at line 1, column 1: !!binary is not supported; write the base64 text "
          "without the tag");
    fails("a: \"\x01\"", EINVAL, "invalid YAML at byte 5: control characters are not allowed");
    fails("a: 1\n---\nb: 2\n", EINVAL, "the YAML has more than one document, expected one");
}

static void bombs_do_not_explode(void)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n"));
    for (int i = 1; i < 30; i++)
        buf_printf(&text, "a%d: &a%d [*a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d, *a%d]\n", i,
                   i, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1, i - 1);
    auto_arena struct arena a = { 0 };
    struct json *v = NULL;
    err_t e;
    EQ_INT(yaml_parse(&a, buf_str(&text), &v, &e), -EINVAL);
    OK(str_ends(str_c(e.text), S("aliases make this document too large")));
    OK(arena_bytes(&a) < (size_t)64 << 20);

    buf_clear(&text);
    buf_put(&text, S("a: &a "));
    for (int i = 0; i < 100000; i++)
        buf_putc(&text, 'x');
    buf_put(&text, S("\nb: [*a"));
    for (int i = 0; i < 10000; i++)
        buf_put(&text, S(", *a"));
    buf_put(&text, S("]\n"));
    EQ_INT(yaml_parse(&a, buf_str(&text), &v, &e), -EINVAL);
}

static void limits_hold(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf deep = { 0 };
    for (int i = 0; i < 900; i++)
        buf_putc(&deep, '[');
    struct json *v = NULL;
    err_t e;
    EQ_INT(yaml_parse(&a, buf_str(&deep), &v, &e), -E2BIG);
    struct json_limits two = { .depth = 2 }, few = { .members = 2 };
    EQ_INT(yaml_parse_limited(&a, S("a: [1]"), &two, &v, &e), 0);
    EQ_INT(yaml_parse_limited(&a, S("a: [[1]]"), &two, &v, &e), -E2BIG);
    EQ_INT(yaml_parse_limited(&a, S("[1, 2, 3]"), &few, &v, &e), -E2BIG);
    EQ_INT(yaml_parse_limited(&a, S("{a: 1, b: 2, c: 3}"), &few, &v, &e), -E2BIG);
}

static void documents_are_listed(void)
{
    auto_arena struct arena a = { 0 };
    struct json *v = NULL;
    err_t e;
    OK_CALL(yaml_parse_all(&a, S("---\na: &x 1\n---\n# none\n---\nb: 2\n---\n"), NULL, &v, &e), &e);
    EQ_STR(json_to_str(&a, v), S("[{\"a\":1},{\"b\":2}]"));
    OK_CALL(yaml_parse_all(&a, S(""), NULL, &v, &e), &e);
    EQ_INT(json_len(v), 0);
    OK_CALL(yaml_parse_all(&a, S("{\"a\":1}"), NULL, &v, &e), &e);
    EQ_STR(json_to_str(&a, v), S("[{\"a\":1}]"));
    EQ_INT(yaml_parse_all(&a, S("a: &x 1\n---\nb: *x\n"), NULL, &v, &e), -EINVAL);
}

static void writes_blocks(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct json *v = NULL;
    err_t e;
    OK_CALL(
        json_parse(&a,
                   S("{\"apiVersion\":\"v1\",\"num\":3,\"none\":{},\"list\":[{\"a\":1,\"b\":[]},"
                     "[1,2],\"x\"],\"s\":\"yes\",\"port\":\"80\",\"text\":\"one\\n  two\\n\","
                     "\"deep\":{\"list\":[{\"k\":{\"v\":null}}]}}"),
                   &v, &e),
        &e);
    yaml_write(&out, v);
    EQ_STR(buf_str(&out),
           S("apiVersion: v1\nnum: 3\nnone: {}\nlist:\n- a: 1\n  b: []\n- - 1\n  - 2\n"
             "- x\ns: \"yes\"\nport: \"80\"\ntext: |\n  one\n    two\n"
             "deep:\n  list:\n  - k:\n      v: null\n"));
}

static void what_is_written_reads_back(void)
{
    static const char *const texts[] = {
        "",
        " ",
        "a",
        "a b",
        "a: b",
        "a:",
        "a #b",
        "#a",
        "- a",
        "-",
        "-a",
        "?",
        "? a",
        "null",
        "~",
        "Yes",
        "n",
        "12",
        "0x1f",
        "1e3",
        "1.5",
        ".5",
        "2001-01-01",
        "12:30",
        "+1",
        "'q'",
        "\"q\"",
        "a\nb",
        "a\nb\n",
        "a\nb\n\n",
        "\na",
        " a\nb",
        "a\n  b",
        "a \nb ",
        "\ta",
        "a\tb",
        "tab\n\tx",
        "a\r\nb",
        "\x01",
        "\x7f",
        "\xc2\x85",
        "\xc2\x80x",
        "a\xe2\x80\xa8z",
        "\xef\xbb\xbfx",
        "\xc3\xa9",
        "\xf0\x9f\x98\x80",
        "[a]",
        "{a}",
        "*a",
        "&a",
        "!a",
        "%a",
        "@a",
        "`a",
        "|",
        ">",
        "---",
        "--- a",
        "...",
        "a\n---\nb",
        "<<",
        "=",
        ".inf",
        "a\\b",
        "a,b",
        "a]b",
        "1_0",
        "0b1",
        "a\n \nb",
        "a\n\n\nb",
        "100m",
        "1Gi",
        "x: y\nz",
        "\n",
        "\n\n",
        "a\n#b",
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(texts); i++) {
        struct json *v = json_new_obj(&a), *list = json_new_arr(&a), *back = NULL;
        json_set_str(&a, v, "t", str_c(texts[i]));
        json_set_str(&a, v, texts[i], S("key"));
        json_push(&a, list, json_new_str(&a, str_c(texts[i])));
        json_push(&a, list, list->items[0]);
        json_set(&a, v, S("list"), list);
        auto_buf struct buf out = { 0 };
        yaml_write(&out, v);
        err_t e;
        if (OK_CALL(yaml_parse(&a, buf_str(&out), &back, &e), &e) && !json_eq(v, back))
            tap_note(__FILE__, __LINE__, "text %zu came back as %s from:\n%s", i,
                     json_to_str(&a, back).p, out.p);
        buf_clear(&out);
        yaml_write(&out, list->items[0]);
        if (OK_CALL(yaml_parse(&a, buf_str(&out), &back, &e), &e) && !json_eq(list->items[0], back))
            tap_note(__FILE__, __LINE__, "text %zu alone came back as %s", i,
                     json_to_str(&a, back).p);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(scalars_mean_what_kubernetes_takes_them_for),
                                        TAP(structure_becomes_a_tree),
                                        TAP(json_is_yaml),
                                        TAP(anchors_are_copied_and_merged),
                                        TAP(copies_do_not_share),
                                        TAP(many_keys_are_distinguished),
                                        TAP(duplicates_are_reported_and_the_last_wins),
                                        TAP(errors_have_a_place),
                                        TAP(bombs_do_not_explode),
                                        TAP(limits_hold),
                                        TAP(documents_are_listed),
                                        TAP(writes_blocks),
                                        TAP(what_is_written_reads_back),
                                        { 0 } });
}
