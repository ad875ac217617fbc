/* Headers, percent-encoding, queries, URLs. */
#include "net/http.h"
#include "tap.h"

static void values_name_tokens(void)
{
    OK(http_value_has_token(S("gzip"), S("gzip")));
    OK(http_value_has_token(S("deflate, GZIP;q=0.5, br"), S("gzip")));
    OK(http_value_has_token(S("gzip;q=1.0"), S("gzip")));
    OK(!http_value_has_token(S("gzip;q=0"), S("gzip")));
    OK(!http_value_has_token(S("gzip; q=0.000"), S("gzip")));
    OK(!http_value_has_token(S("x-gzip"), S("gzip")));
    OK(!http_value_has_token(S(""), S("gzip")));
    OK(!http_value_has_token((str){ 0 }, S("gzip")));
}

static void headers_are_found_and_judged(void)
{
    struct http_headers h = HTTP_HEADERS({ S("Content-Type"), S("a") }, { S("x"), S("") },
                                         { S("content-type"), S("b") });
    EQ_STR(http_header_get(h, S("CONTENT-TYPE")), S("a"));
    OK(http_header_get(h, S("x")).p != NULL);
    OK(http_header_get(h, S("y")).p == NULL);
    OK(http_header_is_valid((struct http_header){ S("x-a_b"), S("tab\tand \xc3\xa4") }));
    OK(!http_header_is_valid((struct http_header){ S(""), S("v") }));
    OK(!http_header_is_valid((struct http_header){ S("a b"), S("v") }));
    OK(!http_header_is_valid((struct http_header){ S("a:"), S("v") }));
    OK(!http_header_is_valid((struct http_header){ S("a"), S("v\r") }));
    OK(!http_header_is_valid((struct http_header){ S("a"), S("v\0w") }));
    EQ_STR(str_c(http_reason(404)), S("Not Found"));
    EQ_STR(str_c(http_reason(299)), S("Unknown"));
}

static void percent_signs(void)
{
    static const struct {
        const char *text;
        bool plus;
        const char *want; /* NULL: refused */
    } table[] = {
        { "", false, "" },          { "plain", false, "plain" }, { "a%20b", false, "a b" },
        { "a+b", false, "a+b" },    { "a+b", true, "a b" },      { "%41%5a%7E", false, "AZ~" },
        { "%", false, NULL },       { "%4", false, NULL },       { "ab%4", false, NULL },
        { "%zz", false, NULL },     { "%00", false, NULL },      { "%c3%a4", false, "\xc3\xa4" },
        { "%%34%31", false, NULL }, { "x%41", false, "xA" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(table); i++) {
        str got = S("");
        int r = uri_decode(&a, str_c(table[i].text), table[i].plus, &got);
        EQ_INT(r, table[i].want ? 0 : -EINVAL);
        if (table[i].want)
            EQ_STR(got, str_c(table[i].want));
    }
    auto_buf struct buf b = { 0 };
    uri_encode(&b, S("a/b c~\xff"));
    EQ_STR(buf_str(&b), S("a%2Fb%20c~%FF"));
}

static void queries(void)
{
    auto_arena struct arena a = { 0 };
    str rest = S("a=1&&b&c=&=d&a=2"), name, value;
    auto_buf struct buf seen = { 0 };
    while (uri_query_next(&rest, &name, &value))
        buf_printf(&seen, "[" STR_FMT "|" STR_FMT "]", STR_ARG(name), STR_ARG(value));
    EQ_STR(buf_str(&seen), S("[a|1][b|][c|][|d][a|2]"));
    EQ_INT(uri_query_get(&a, S("x=1&fieldSelector=a%3Db+c"), S("fieldSelector"), &value), 1);
    EQ_STR(value, S("a=b c"));
    EQ_INT(uri_query_get(&a, S("x=1"), S("y"), &value), 0);
    EQ_INT(uri_query_get(&a, S(""), S("y"), &value), 0);
    EQ_INT(uri_query_get(&a, S("y=%"), S("y"), &value), -EINVAL);
    EQ_INT(uri_query_get(&a, S("%79=3"), S("y"), &value), 1);
}

static void urls(void)
{
    static const struct {
        const char *text, *host; /* NULL: refused */
        const char *prefix;
        int port;
        bool tls;
    } table[] = {
        { "https://10.0.0.1:6443", "10.0.0.1", "", 6443, true },
        { "https://host/", "host", "", 443, true },
        { "http://host", "host", "", 80, false },
        { "http://host:/x/y//", "host", "/x/y", 80, false },
        { "https://[::1]:8443/k8s/clusters/c-1", "::1", "/k8s/clusters/c-1", 8443, true },
        { "https://[fe80::1]", "fe80::1", "", 443, true },
        { "ftp://host", NULL, NULL, 0, false },
        { "host:80", NULL, NULL, 0, false },
        { "http://", NULL, NULL, 0, false },
        { "http://:80", NULL, NULL, 0, false },
        { "http://host:0", NULL, NULL, 0, false },
        { "http://host:65536", NULL, NULL, 0, false },
        { "http://host:8a", NULL, NULL, 0, false },
        { "http://[::1", NULL, NULL, 0, false },
        { "http://[::1]x", NULL, NULL, 0, false },
        { "http://user@host", NULL, NULL, 0, false },
        { "http://host?q", NULL, NULL, 0, false },
        { "http://host#f", NULL, NULL, 0, false },
        { "http://ho st", NULL, NULL, 0, false },
        { "http://h\xc3\xa4", NULL, NULL, 0, false },
    };
    for (size_t i = 0; i < countof(table); i++) {
        struct uri u = { 0 };
        err_t e = { 0 };
        int r = uri_parse(str_c(table[i].text), &u, &e);
        if (!OK((r == 0) == (table[i].host != NULL)))
            printf("# %s: %s\n", table[i].text, e.text);
        if (r < 0) {
            OK(strstr(e.text, table[i].text) != NULL);
            continue;
        }
        EQ_INT(u.tls, table[i].tls);
        EQ_STR(u.host, str_c(table[i].host));
        EQ_INT(u.port, table[i].port);
        EQ_STR(u.prefix, str_c(table[i].prefix));
    }
}

static void secrets_stay_on_this_machine_or_go_by_tls(void)
{
    static const struct {
        const char *url;
        bool goes;
    } table[] = {
        { "https://example.org", true },
        { "http://127.0.0.1:8001", true },
        { "http://127.9.9.9", true },
        { "http://[::1]:8001/x", true },
        { "http://localhost:8001", true },
        { "http://LocalHost", true },
        { "http://example.org", false },
        { "http://10.0.0.1:8080", false },
        { "http://128.0.0.1", false },
        { "http://0.0.0.0", false },
        { "http://127.0.0.1.example.org", false },
        { "http://localhost.example.org", false },
        { "http://[::]", false },
        { "http://[::ffff:10.0.0.1]", false },
        { "http://127.1", false },
    };
    for (size_t i = 0; i < countof(table); i++) {
        err_t e = { 0 };
        int r = uri_check_secret(str_c(table[i].url), &e);
        if ((r == 0) != table[i].goes)
            fprintf(stderr, "# %s\n", table[i].url);
        EQ_INT(r == 0, table[i].goes);
        OK(r == 0 || strstr(e.text, "--allow-insecure-token"));
    }
    EQ_INT(uri_check_secret(S("ftp://127.0.0.1"), NULL), -EINVAL);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(values_name_tokens),
                                        TAP(headers_are_found_and_judged),
                                        TAP(percent_signs),
                                        TAP(queries),
                                        TAP(urls),
                                        TAP(secrets_stay_on_this_machine_or_go_by_tls),
                                        { 0 } });
}
