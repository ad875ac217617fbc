/* Confined queries, and the positions and messages of rejected ones. test/integration/tenants.py checks the results
 * against a real Prometheus. */
#include "prom/promql.h"

#include "base/buf.h"
#include "tap.h"

static const struct promql_matcher shop = { STR_INIT("namespace"), STR_INIT("shop") };

#define N "{namespace=\"shop\"}"

static const struct {
    const char *query, *want;
} confined[] = {
    /* selectors */
    { "up", "up" N },
    { "up{}", "up" N },
    { "{}", N },
    { "up{job=\"x\"}", "up{job=\"x\",namespace=\"shop\"}" },
    { "up{job=\"x\",}", "up{job=\"x\",namespace=\"shop\"}" },
    { "up { job = \"x\" , }", "up { job = \"x\" ,namespace=\"shop\" }" },
    { "{__name__=\"up\"}", "{__name__=\"up\",namespace=\"shop\"}" },
    { "{__name__=~\".+\"}", "{__name__=~\".+\",namespace=\"shop\"}" },
    { "{job!=\"\",a=~`x`,b!~'y'}", "{job!=\"\",a=~`x`,b!~'y',namespace=\"shop\"}" },
    { ":a:b", ":a:b" N },
    { "job:up:sum", "job:up:sum" N },
    { "rate", "rate" N },
    { "_", "_" N },
    /* UTF-8 names of Prometheus 3 */
    { "{\"http.requests\"}", "{\"http.requests\",namespace=\"shop\"}" },
    { "{\"http.requests\",\"a.b\"=\"c\"}", "{\"http.requests\",\"a.b\"=\"c\",namespace=\"shop\"}" },
    { "{\"namespace\"=\"shop\"}", "{\"namespace\"=\"shop\",namespace=\"shop\"}" },
    { "{\"\xc3\xa9t\xc3\xa9\"}", "{\"\xc3\xa9t\xc3\xa9\",namespace=\"shop\"}" },
    /* a namespace of their own does not help */
    { "up{namespace=\"bank\"}", "up{namespace=\"bank\",namespace=\"shop\"}" },
    { "up{namespace=~\".*\"}", "up{namespace=~\".*\",namespace=\"shop\"}" },
    { "up{namespace!=\"shop\"}", "up{namespace!=\"shop\",namespace=\"shop\"}" },
    { "up{namespace='shop'}", "up{namespace='shop',namespace=\"shop\"}" },
    { "up{namespace=\"shop\"}", "up" N },
    { "up{namespace=\"shop\",job=\"x\"}", "up{namespace=\"shop\",job=\"x\"}" },
    { "up{exported_namespace=\"shop\"}", "up{exported_namespace=\"shop\",namespace=\"shop\"}" },
    { "up{Namespace=\"shop\"}", "up{Namespace=\"shop\",namespace=\"shop\"}" },
    /* strings that look like something else */
    { "up{a=\"} or secret{\"}", "up{a=\"} or secret{\",namespace=\"shop\"}" },
    { "up{a='}\"'}", "up{a='}\"',namespace=\"shop\"}" },
    { "up{a=`\\`}", "up{a=`\\`,namespace=\"shop\"}" },
    { "up{a=\"\\\"} or secret{a=\\\"\"}", "up{a=\"\\\"} or secret{a=\\\"\",namespace=\"shop\"}" },
    { "up{a=\"\\\\\"}", "up{a=\"\\\\\",namespace=\"shop\"}" },
    { "up{a=\"\\x7d\\u007d\\U0000007d\\175\"}",
      "up{a=\"\\x7d\\u007d\\U0000007d\\175\",namespace=\"shop\"}" },
    { "up{a=\"#\"} # {", "up{a=\"#\",namespace=\"shop\"}" },
    { "up{a=`multi\nline`}", "up{a=`multi\nline`,namespace=\"shop\"}" },
    /* comments and blanks */
    { "  up  ", "up" N },
    { "up # or secret", "up" N },
    { "# up\nsecret", "secret" N },
    { "# up\rsecret", "secret" N },
    { "up{# \"\n}", "up{namespace=\"shop\" }" },
    { "up#\"\n{a=\"b\"}", "up {a=\"b\",namespace=\"shop\"}" },
    { "sum#\nby#\n(a)#\n(up)", "sum by (a) (up" N ")" },
    { "rate # (\n(up[5m])", "rate (up" N "[5m])" },
    /* ranges, subqueries, offsets, times */
    { "rate(up[5m])", "rate(up" N "[5m])" },
    { "rate(up{a=\"b\"}[1h30m])", "rate(up{a=\"b\",namespace=\"shop\"}[1h30m])" },
    { "max_over_time(rate(up[5m])[1h:1m])", "max_over_time(rate(up" N "[5m])[1h:1m])" },
    { "max_over_time(up[1h:])", "max_over_time(up" N "[1h:])" },
    { "sum(up)[1h:5m] offset 1d", "sum(up" N ")[1h:5m] offset 1d" },
    { "up offset 5m", "up" N " offset 5m" },
    { "up OFFSET -5m", "up" N " OFFSET -5m" },
    { "up @ 1609746000", "up" N " @ 1609746000" },
    { "up @ -1.5", "up" N " @ -1.5" },
    { "up @ start()", "up" N " @ start()" },
    { "rate(up[5m] @ end() offset 1w)", "rate(up" N "[5m] @ end() offset 1w)" },
    { "up[300]", "up" N "[300]" },
    { "up[1m] offset 1y2w3d4h5m6s7ms", "up" N "[1m] offset 1y2w3d4h5m6s7ms" },
    /* operators */
    { "a+b", "a" N "+b" N },
    { "a-b", "a" N "-b" N },
    { "-a", "-a" N },
    { "--a * -b", "--a" N " * -b" N },
    { "a and b or c unless d", "a" N " and b" N " or c" N " unless d" N },
    { "a AND on(x) b", "a" N " AND on(x) b" N },
    { "a == bool b", "a" N " == bool b" N },
    { "a > BOOL 1", "a" N " > BOOL 1" },
    { "a ^ b ^ c % 2", "a" N " ^ b" N " ^ c" N " % 2" },
    { "a atan2 b", "a" N " atan2 b" N },
    { "a * on(namespace, pod) group_left(node) b",
      "a" N " * on(namespace, pod) group_left(node) b" N },
    { "a / ignoring(x,) group_right b", "a" N " / ignoring(x,) group_right b" N },
    { "a * on() group_left () (b)", "a" N " * on() group_left () (b" N ")" },
    { "a * on(sum) group_left(by) b", "a" N " * on(sum) group_left(by) b" N },
    { "a * on(\"x.y\") b", "a" N " * on(\"x.y\") b" N },
    { "(a)", "(a" N ")" },
    { "((a)) / ((b))", "((a" N ")) / ((b" N "))" },
    { "a != b", "a" N " != b" N },
    { "a >= 1 <= 2", "a" N " >= 1 <= 2" },
    /* aggregations and functions */
    { "sum(up)", "sum(up" N ")" },
    { "SUM BY (a) (up)", "SUM BY (a) (up" N ")" },
    { "sum(up) without (a, b)", "sum(up" N ") without (a, b)" },
    { "sum by () (up)", "sum by () (up" N ")" },
    { "topk(5, up)", "topk(5, up" N ")" },
    { "count_values(\"v\", up)", "count_values(\"v\", up" N ")" },
    { "quantile by (a) (0.9, up)", "quantile by (a) (0.9, up" N ")" },
    { "histogram_quantile(0.9, sum by (le) (rate(x_bucket[5m])))",
      "histogram_quantile(0.9, sum by (le) (rate(x_bucket" N "[5m])))" },
    { "label_replace(up, \"namespace\", \"$1\", \"job\", \"(.*)\")",
      "label_replace(up" N ", \"namespace\", \"$1\", \"job\", \"(.*)\")" },
    { "label_join(up, \"x\", \",\", \"a\", \"b\")",
      "label_join(up" N ", \"x\", \",\", \"a\", \"b\")" },
    { "absent(up{job=\"x\"})", "absent(up{job=\"x\",namespace=\"shop\"})" },
    { "absent_over_time(up[5m])", "absent_over_time(up" N "[5m])" },
    { "scalar(a) + vector(1) + time()", "scalar(a" N ") + vector(1) + time()" },
    { "clamp(a, -1, +Inf)", "clamp(a" N ", -1, +Inf)" },
    { "hour()", "hour()" },
    { "sort_desc(a)", "sort_desc(a" N ")" },
    /* literals */
    { "1", "1" },
    { "1.5e-3 + .5 + 5. + 0x1F", "1.5e-3 + .5 + 5. + 0x1F" },
    { "Inf - NaN + inf", "Inf - NaN + inf" },
    { "0x1e+a", "0x1e+a" N },
    { "1e5+a", "1e5+a" N },
    { "\"text\"", "\"text\"" },
    { "infinity", "infinity" N },
    { "nan_total", "nan_total" N },
    { "e5", "e5" N },
};

static void every_selector_is_confined(void)
{
    for (size_t i = 0; i < countof(confined); i++) {
        auto_arena struct arena a = { 0 };
        str got = S(""), again = S("");
        err_t e = { 0 };
        if (promql_confine(&a, str_c(confined[i].query), &shop, &got, &e) < 0)
            tap_note(__FILE__, __LINE__, "%s: %s", confined[i].query, e.text);
        EQ_STR(got, str_c(confined[i].want));
        OK_CALL(promql_confine(&a, got, &shop, &again, &e), &e);
        EQ_STR(again, got);
    }
}

static const struct {
    const char *query;
    int at;           /* 0: the message has no position */
    const char *part; /* of the message */
} refused[] = {
    { "", 1, "expected an expression" },
    { "# up", 5, "expected an expression" },
    { "up up", 4, "an operator or the end" },
    { "up{", 4, "expected a label" },
    { "up}", 3, "\"}\"" },
    { "up{}{}", 5, "\"{\"" },
    { "up{a}", 5, "one of" },
    { "up{a=b}", 6, "a string" },
    { "up{a=\"b\" c=\"d\"}", 10, ", or }" },
    { "up{,}", 4, "a label" },
    { "up{a=\"b\",,}", 10, "a label" },
    { "up{a==\"b\"}", 5, "one of" },
    { "up{a:b=\"c\"}", 4, "a label" },
    { "up{\"a\"=~}", 9, "a string" },
    { "up{a=\"b\" or c=\"d\"}", 10, ", or }" }, /* alternatives of MetricsQL would undo ours */
    { "up{a=\"b", 6, "unterminated" },
    { "up{a=\"b\nc\"}", 6, "unterminated" },
    { "up{a='b\"}", 6, "unterminated" },
    { "up{a=`b", 6, "unterminated" },
    { "up{a=\"\\", 7, "escape" },
    { "up{a=\"\\q\"}", 7, "escape" },
    { "up{a=\"\\'\"}", 7, "escape" },
    { "up{a=\"\\x1\"}", 7, "escape" },
    { "sum", 1, "aggregation" },
    { "sum{a=\"b\"}", 1, "aggregation" },
    { "sum + 1", 1, "aggregation" },
    { "by", 1, "keyword" },
    { "offset", 1, "keyword" },
    { "up offset", 10, "a duration" },
    { "up offset secret", 11, "a duration" },
    { "up offset step()", 11, "a duration" },
    { "up[5m", 6, "expected ]" },
    { "up[]", 4, "a duration" },
    { "up[5m:1m:1m]", 9, "]" },
    { "up[secret]", 4, "a duration" },
    { "up[5m+secret]", 6, "]" },
    { "up[5m] smoothed", 8, "an operator" },
    { "up @ secret", 6, "a time" },
    { "up @ start", 11, "expected (" },
    { "info(up)", 1, "unknown or not allowed" },
    { "Rate(up[5m])", 1, "unknown" },
    { "frobnicate(up)", 1, "unknown" },
    { "WITH (x = up) x", 1, "unknown" },
    { "a default b", 3, "an operator" },
    { "a xor b", 3, "an operator" },
    { "a + fill(0) b", 5, "keyword" },
    { "a * group_left b", 5, "keyword" },
    { "a * on b", 8, "( with labels" },
    { "a * on(x", 9, ", or )" },
    { "a * on(x) group_left (sum(secret)) b", 26, ", or )" },
    { "a * on(x) group_left (secret)", 30, "expected an expression" },
    { "sum by (a(b)) (up)", 10, ", or )" },
    { "sum by a (up)", 8, "( with labels" },
    { "sum(up", 7, ", or )" },
    { "topk(5, up,)", 12, "an expression" },
    { "rate(,)", 6, "an expression" },
    { "()", 2, "an expression" },
    { "(up", 4, "an operator or )" },
    { "1m5", 1, "bad number" },
    { "5foo", 1, "bad number" },
    { "1.2.3", 1, "bad number" },
    { "0x", 1, "bad number" },
    { "1e", 1, "bad number" },
    { "1_000", 1, "bad number" },
    { "a $ b", 3, "\"$\"" },
    { "a ! b", 3, "\"!\"" },
    { "a; b", 2, "\";\"" },
    { "a = b", 3, "an operator" },
    { "{{}}", 2, "a label" },
    { "caf\xc3\xa9", 4, "U+00E9" },
    { "\"\xc3\xa9\" \xc3\xa9", 5, "U+00E9" }, /* characters, not bytes */
    { "up{a=\"\xff\"}", 0, "not UTF-8" },
    { "\xef\xbb\xbfup", 1, "U+FEFF" },
    { "a\x0b+ b", 2, "U+000B" },
    { "a\xc2\xa0+ b", 2, "U+00A0" },
    { "a on(b) c", 3, "an operator" },
    { "[5m]", 1, "an expression" },
    { "a:b(c)", 4, "an operator" },
};

static void what_cannot_be_parsed_is_refused(void)
{
    for (size_t i = 0; i < countof(refused); i++) {
        auto_arena struct arena a = { 0 };
        auto_buf struct buf at = { 0 };
        str got = S("untouched");
        err_t e = { 0 };
        buf_printf(&at, "at character %d: ", refused[i].at);
        int r = promql_confine(&a, str_c(refused[i].query), &shop, &got, &e);
        if (r == 0) {
            tap_note(__FILE__, __LINE__, "%s became %s", refused[i].query, got.p);
            continue;
        }
        EQ_STR(got, S("untouched"));
        if ((refused[i].at && !str_starts(str_c(e.text), buf_str(&at))) ||
            str_find(str_c(e.text), str_c(refused[i].part)) == SIZE_MAX)
            tap_note(__FILE__, __LINE__, "%s: %s; want %d, %s", refused[i].query, e.text,
                     refused[i].at, refused[i].part);
    }
    auto_arena struct arena a = { 0 };
    str got;
    err_t e;
    OK(promql_confine(&a, (str){ "a\0b", 3 }, &shop, &got, &e) < 0);
}

static void depth_and_length_have_limits(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf deep = { 0 }, wide = { 0 };
    str got;
    err_t e;
    for (int i = 0; i < 99; i++)
        buf_putc(&deep, '(');
    buf_putc(&deep, 'a');
    for (int i = 0; i < 99; i++)
        buf_putc(&deep, ')');
    OK_CALL(promql_confine(&a, buf_str(&deep), &shop, &got, &e), &e);
    auto_buf struct buf deeper = { 0 };
    buf_printf(&deeper, "((%s))", deep.p);
    OK(promql_confine(&a, buf_str(&deeper), &shop, &got, &e) < 0);
    OK(strstr(e.text, "too deeply") != NULL);
    while (wide.n < PROMQL_BYTES_MAX - 2)
        buf_put(&wide, S("a+"));
    buf_putc(&wide, 'a');
    OK_CALL(promql_confine(&a, buf_str(&wide), &shop, &got, &e), &e);
    buf_put(&wide, S("    "));
    OK(promql_confine(&a, buf_str(&wide), &shop, &got, &e) < 0);
}

static void a_matcher_cannot_be_broken_out_of(void)
{
    static const char *const values[] = { "", "a\"", "a\\", "a}b", "a\nb", "a b", "\xc3\xa9" };
    auto_arena struct arena a = { 0 };
    str got;
    err_t e;
    for (size_t i = 0; i < countof(values); i++) {
        struct promql_matcher m = { S("namespace"), str_c(values[i]) };
        OK(promql_confine(&a, S("up"), &m, &got, &e) < 0);
    }
    struct promql_matcher dotted = { S("cluster_id"), S("eu-1.example") };
    OK_CALL(promql_confine(&a, S("up"), &dotted, &got, &e), &e);
    EQ_STR(got, S("up{cluster_id=\"eu-1.example\"}"));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(every_selector_is_confined),
        TAP(what_cannot_be_parsed_is_refused),
        TAP(depth_and_length_have_limits),
        TAP(a_matcher_cannot_be_broken_out_of),
        { 0 },
    });
}
