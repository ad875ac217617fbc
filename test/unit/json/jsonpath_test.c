#include "tap.h"

#include "json/jsonpath.h"

static const char object[] =
    "{\"metadata\":{\"name\":\"web\",\"labels\":{\"app.kubernetes.io/name\":\"w\",\"team\":\"t\","
    "\"with space\":\"sp\",\"br[0]\":\"brk\",\"quo'te\":\"q\",\"$d\":\"dollar\",\"\":\"none\"}},"
    "\"spec\":{\"replicas\":3,\"ratio\":1.5,\"on\":true,\"nothing\":null,\"list\":["
    "{\"n\":\"a\",\"v\":1},{\"n\":\"b\",\"v\":2,\"x\":true},{\"n\":\"c\",\"v\":3}],"
    "\"numbers\":[10,20,30,40],\"nested\":[[1,2],[3,4]],\"text\":\"hi\",\"empty\":[]}}";

static struct json *root(struct arena *a)
{
    struct json *v = NULL;
    err_t e;
    OK_CALL(json_parse(a, str_c(object), &v, &e), &e);
    return v;
}

/* All values as one JSON list, or the text of the error. */
static str find_texts(struct arena *a, const char *path, unsigned flags)
{
    struct jsonpath p;
    struct jsonpath_values values;
    struct json *list = json_new_arr(a);
    err_t e;
    if (jsonpath_parse(a, (struct jsonpath_source){ str_c(path), 1, flags }, &p, &e) < 0)
        return arena_printf(a, "parse: %s", e.text);
    int result = jsonpath_find(a, &p, root(a), &values, &e);
    if (result < 0)
        return arena_printf(a, "%s: %s", result == -ENOENT ? "missing" : "wrong", e.text);
    for (size_t i = 0; i < values.n; i++)
        json_push(a, list, json_copy(a, values.at[i]));
    return json_to_str(a, list);
}

struct expectation {
    const char *path, *want;
};

static void check(const struct expectation *t, size_t n, unsigned flags)
{
    for (size_t i = 0; i < n; i++) {
        auto_arena struct arena a = { 0 };
        tap_eq_str(__FILE__, __LINE__, t[i].path, find_texts(&a, t[i].path, flags),
                   str_c(t[i].want));
    }
}

static void values_are_found(void)
{
    static const struct expectation t[] = {
        { ".metadata.name", "[\"web\"]" },
        { "$.metadata.name", "[\"web\"]" },
        { "@ .metadata .name ", "[\"web\"]" },
        { ".metadata.labels.app\\.kubernetes\\.io/name", "[\"w\"]" },
        { ".metadata.labels.with\\ space", "[\"sp\"]" },
        { ".metadata.labels.quo'te", "[\"q\"]" },
        { ".metadata.labels['team']", "[\"t\"]" },
        { ".metadata.labels['app\\.kubernetes\\.io/name']", "[\"w\"]" },
        { "['metadata.name']", "[\"web\"]" },
        { ".spec.list[0].n", "[\"a\"]" },
        { ".spec.list[-1].n", "[\"c\"]" },
        { ".spec.list[].n", "[\"a\"]" },
        { ".spec.list[*].n", "[\"a\",\"b\",\"c\"]" },
        { ".spec.list.*.v", "[1,2,3]" },
        { ".spec.numbers[1:3]", "[20,30]" },
        { ".spec.numbers[2:]", "[30,40]" },
        { ".spec.numbers[:2]", "[10,20]" },
        { ".spec.numbers[::3]", "[10,40]" },
        { ".spec.numbers[-2:]", "[30,40]" },
        { ".spec.numbers[1:1]", "[]" },
        { ".spec.numbers[0,2]", "[10,30]" },
        { ".metadata['name','labels'].team", "[\"t\"]" },
        { ".spec.nested[0][1]", "[2]" },
        { ".spec.nested[*][0]", "[1,3]" },
        { ".spec.list[?(@.n==\"b\")].v", "[2]" },
        { ".spec.list[?(@.n=='b')].v", "[2]" },
        { ".spec.list[?(@.n!=\"b\")].v", "[1,3]" },
        { ".spec.list[?(@.v>1)].n", "[\"b\",\"c\"]" },
        { ".spec.list[?(@.v<=2)].n", "[\"a\",\"b\"]" },
        { ".spec.list[?(@.n>=\"b\")].n", "[\"b\",\"c\"]" },
        { ".spec.list[?(@.x)].n", "[\"b\"]" },
        { ".spec.list[?(@.none)].n", "[]" },
        { ".spec.list[?(@.n==\")\")].v", "[]" },
        { "..n", "[\"a\",\"b\",\"c\"]" },
        { ".spec..v", "[1,2,3]" },
        { "...team", "[\"t\"]" },
        { ".spec.nothing", "[null]" },
        { ".spec.nothing[0]", "[]" },
        { ".spec.text.*", "[104,105]" },
        { "\"a\\tb\"", "[\"a\\tb\"]" },
        { "'it\\'s \\x41\\u00e9\\101'", "[\"it's A\xc3\xa9"
                                        "A\"]" },
        { ".metadata.name \"x\"", "[\"x\"]" },
        { "-4", "[-4]" },
        { "+1.50", "[1.5]" },
        { "007", "[7]" },
        { "true", "[true]" },
        { "range .spec.list[*]", "[]" },
    };
    check(t, countof(t), 0);
    auto_arena struct arena a = { 0 };
    OK(str_eq(find_texts(&a, "", 0), find_texts(&a, "$", 0)));
}

static void errors_have_a_column(void)
{
    static const struct expectation t[] = {
        { ".metadata.nosuch", "missing: column 11: nosuch is not found" },
        { ".nosuch.deeper", "missing: column 2: nosuch is not found" },
        { ".metadata.name.x", "missing: column 16: x is not found" },
        { ".spec.nothing.x", "missing: column 15: x is not found" },
        { "..nosuch", "missing: column 3: nosuch is not found" },
        { ".spec.", "missing: column 7:  is not found" },
        { ".spec.numbers[9]", "wrong: column 15: array index out of bounds: index 9, length 4" },
        { ".spec.numbers[-9]", "wrong: column 15: array index out of bounds: index -5, length 4" },
        { ".spec.numbers[1:9]", "wrong: column 15: array index out of bounds: index 8, length 4" },
        { ".spec.numbers[3:1]",
          "wrong: column 15: starting index 3 is greater than ending index 1" },
        { ".spec.numbers[::0]", "wrong: column 15: step must be > 0" },
        { ".spec.text[0]", "wrong: column 12: string is not array or slice" },
        { ".spec[?(@.x)]",
          "wrong: column 6: map[string]interface {} is not array or slice and cannot be filtered" },
        { ".spec.list[?(@.v==\"1\")]", "wrong: column 11: incompatible types for comparison" },
        { ".spec.list[?(@.v==1.0)]", "wrong: column 11: incompatible types for comparison" },
        { ".spec.list[?(@.v=1)]", "wrong: column 11: unrecognized filter operator" },
        { ".spec.list[?(@.x==true)]", "missing: column 16: x is not found" },
        { ".spec.list[?(@.*==1)]", "wrong: column 11: can only compare one element at a time" },
        { "end", "wrong: column 1: not in range, nothing to end" },
        { "null", "wrong: column 1: unrecognized identifier null" },
        { ".spec.list[0", "parse: column 11: unterminated array" },
        { ".spec.list[a]", "parse: column 12: invalid array index a" },
        { ".spec.list[1-2]", "parse: column 12: invalid array index 1-2" },
        { ".spec.list[-]", "parse: column 12: array index is not a number: -" },
        { ".spec.list[99999999999999999999]",
          "parse: column 12: array index is not a number: 99999999999999999999" },
        { ".spec.list[\"a\"]", "parse: column 12: invalid array index \"a\"" },
        { ".spec.list[?(@.a", "parse: column 14: unterminated filter" },
        { ".spec.list[?(@.a)x", "parse: column 18: unclosed array expect ]" },
        { ".a....b", "parse: column 5: invalid multiple recursive descent" },
        { "..*", "parse: column 3: unrecognized character in action: U+002A" },
        { ".a\t.b", "parse: column 3: unrecognized character in action: U+0009" },
        { ".a\n", "parse: column 3: unclosed action" },
        { "\"a", "parse: column 1: unterminated quoted string" },
        { "\"\\q\"", "parse: column 1: invalid escape in quoted string \\q" },
        { "--1", "parse: column 1: cannot parse number -" },
        { ".a}", "parse: column 3: unrecognized character in action: U+007D" },
    };
    check(t, countof(t), 0);
    auto_arena struct arena a = { 0 };
    struct jsonpath p;
    err_t e;
    EQ_INT(jsonpath_parse(&a, (struct jsonpath_source){ S(".a[x]"), 17, 0 }, &p, &e), -EINVAL);
    EQ_STR(str_c(e.text), S("column 20: invalid array index x"));
}

static void literal_keys_hold_anything(void)
{
    static const struct expectation t[] = {
        { ".metadata.labels['team']", "[\"t\"]" },
        { ".metadata['labels'][\"team\"]", "[\"t\"]" },
        { ".metadata.labels ['team']", "[\"t\"]" },
        { ".metadata.labels['app.kubernetes.io/name']", "[\"w\"]" },
        { ".metadata.labels['br[0]']", "[\"brk\"]" },
        { ".metadata.labels[\"quo'te\"]", "[\"q\"]" },
        { ".metadata.labels['$d']", "[\"dollar\"]" },
        { ".metadata.labels['']", "[\"none\"]" },
        { ".metadata.labels[ 'team' , \"$d\" ]", "[\"t\",\"dollar\"]" },
        { ".metadata.labels['app\\.kubernetes\\.io/name']",
          "missing: column 18: app\\.kubernetes\\.io/name is not found" },
        { ".metadata.labels['team'].x", "missing: column 26: x is not found" },
        { ".spec.list[ 1 ].n", "[\"b\"]" },
        { ".metadata.labels['team\"]", "parse: column 18: invalid array index 'team\"" },
        { ".metadata.labels['team'x]", "parse: column 18: invalid array index 'team'x" },
    };
    check(t, countof(t), JSONPATH_LITERAL_KEYS);
}

static void missing_may_be_fine(void)
{
    static const struct expectation t[] = {
        { ".metadata.nosuch.deeper", "[]" },
        { ".spec.list[*].x", "[true]" },
        { ".spec.list[9]", "wrong: column 12: array index out of bounds: index 9, length 3" },
    };
    check(t, countof(t), JSONPATH_ALLOW_MISSING);
}

static void one_is_one(void)
{
    static const struct {
        const char *path;
        int code;
        const char *want;
    } t[] = {
        { ".metadata.name", 0, "web" },
        { ".spec.list[1].n", 0, "b" },
        { ".spec.list[-1].n", 0, "c" },
        { ".spec.replicas", 0, "3" },
        { ".spec.ratio", 0, "1.5" },
        { ".spec.on", 0, "true" },
        { ".spec.nothing", 0, "<nil>" },
        { "..team", 0, "t" },
        { ".spec.list[?(@.v==2)].n", 0, "b" },
        { ".spec.nested[1]", 0, "[3,4]" },
        { ".spec.list[*].n", E2BIG, NULL },
        { ".spec.empty[*]", ENOENT, NULL },
        { ".spec.nosuch", ENOENT, NULL },
        { ".spec.nothing[0]", ENOENT, NULL },
        { ".spec.list[9]", EBADMSG, NULL },
        { ".spec.text[0]", EBADMSG, NULL },
        { ".spec.list[-1].nosuch", ENOENT, NULL },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        auto_buf struct buf out = { 0 };
        struct jsonpath p;
        const struct json *v = NULL;
        err_t e;
        OK_CALL(jsonpath_parse(&a, (struct jsonpath_source){ str_c(t[i].path), 1, 0 }, &p, &e), &e);
        EQ_INT(jsonpath_one(&a, &p, root(&a), &v, &e), -t[i].code);
        if (v)
            jsonpath_put(&out, v);
        EQ_STR(buf_str(&out), str_c(t[i].want ? t[i].want : ""));
    }
}

static void first_is_first_or_nothing(void)
{
    static const struct expectation t[] = {
        { ".spec.replicas", "3" },
        { ".spec.list[*].n", "\"a\"" },
        { ".spec.list[?(@.x)].n", "\"b\"" },
        { ".spec.list[?(@.v>2)].n", "\"c\"" },
        { ".metadata.labels['app\\.kubernetes\\.io/name']", "\"w\"" },
        { ".spec.nothing", "null" },
        { ".spec.nosuch.deep", "" },
        { ".spec.list[7]", "" },
        { ".spec.list[?(@.n=='z')].v", "" },
        { ".spec.list[*].nosuch", "" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct jsonpath p;
        err_t e;
        struct jsonpath_source source = { str_c(t[i].path), 1, JSONPATH_ALLOW_MISSING };
        OK_CALL(jsonpath_parse(&a, source, &p, &e), &e);
        const struct json *v = jsonpath_first(&a, &p, root(&a));
        EQ_STR(v ? json_to_str(&a, v) : S(""), str_c(t[i].want));
    }
}

static void plain_paths_do_not_allocate(void)
{
    auto_arena struct arena a = { 0 }, scratch = { 0 };
    struct jsonpath p;
    const struct json *v = NULL;
    err_t e;
    struct json *o = root(&a);
    OK_CALL(jsonpath_parse(&a, (struct jsonpath_source){ S(".spec.list[1].n"), 1, 0 }, &p, &e), &e);
    OK(p.plain && jsonpath_one(&scratch, &p, o, &v, &e) == 0 && arena_bytes(&scratch) == 0);
}

static void reals_print_as_in_go(void)
{
    static const struct {
        double v;
        const char *text;
    } t[] = { { 0, "0" },           { 1.5, "1.5" },           { 100000, "100000" },
              { 1e6, "1e+06" },     { 1.5e6, "1.5e+06" },     { 0.0001, "0.0001" },
              { 0.00001, "1e-05" }, { 123456.5, "123456.5" }, { -2e-7, "-2e-07" } };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        auto_buf struct buf out = { 0 };
        jsonpath_put(&out, json_new_real(&a, t[i].v));
        EQ_STR(buf_str(&out), str_c(t[i].text));
    }
}

static void multiplying_is_bounded(void)
{
    auto_arena struct arena a = { 0 };
    struct json *list = json_new_arr(&a), *o = json_new_obj(&a);
    for (int i = 0; i < 400; i++)
        json_push(&a, list, json_new_int(&a, i));
    for (int i = 0; i < 400; i++) {
        struct json *outer = json_new_arr(&a);
        json_push(&a, outer, list);
        json_set(&a, o, arena_printf(&a, "k%d", i), outer);
    }
    struct jsonpath p;
    struct jsonpath_values values;
    err_t e;
    OK_CALL(jsonpath_parse(&a, (struct jsonpath_source){ S(".*[*][*]"), 1, 0 }, &p, &e), &e);
    EQ_INT(jsonpath_find(&a, &p, o, &values, &e), -EBADMSG);
    EQ_STR(str_c(e.text), S("the path selects more than 100000 values"));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(values_are_found),
                                        TAP(errors_have_a_column),
                                        TAP(literal_keys_hold_anything),
                                        TAP(missing_may_be_fine),
                                        TAP(one_is_one),
                                        TAP(first_is_first_or_nothing),
                                        TAP(plain_paths_do_not_allocate),
                                        TAP(reals_print_as_in_go),
                                        TAP(multiplying_is_bounded),
                                        { 0 } });
}
