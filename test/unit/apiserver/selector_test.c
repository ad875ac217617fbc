/* Selectors: the grammar, what matches, and what is refused. */
#include "tap.h"

#include "apiserver/http/selector.h"
#include "json/scan.h"

static struct object *object(const char *labels)
{
    char json[500];
    snprintf(
        json, sizeof(json),
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\",\"resourceVersion\":"
        "\"7\",\"labels\":%s},\"spec\":{\"nodeName\":\"n\\\"1\",\"replicas\":3}}",
        labels);
    struct object *o;
    if (object_new(S("/pods/ns/p"), str_c(json), 7, false, &o) < 0)
        abort();
    return o;
}

static void labels_match(void)
{
    static const struct {
        const char *selector, *labels;
        bool want;
    } t[] = {
        { "", "{}", true },
        { "a=b", "{\"a\":\"b\"}", true },
        { "a==b", "{\"a\":\"b\"}", true },
        { "a=b", "{\"a\":\"c\"}", false },
        { "a=b", "{}", false },
        { "a!=b", "{}", true },
        { "a!=b", "{\"a\":\"b\"}", false },
        { "a in (b,c)", "{\"a\":\"c\"}", true },
        { "a in ( b , c )", "{\"a\":\"d\"}", false },
        { "a notin (b)", "{}", true },
        { "a notin (b)", "{\"a\":\"b\"}", false },
        { "a", "{\"a\":\"\"}", true },
        { "!a", "{\"a\":\"\"}", false },
        { "!a", "{\"b\":\"a\"}", true },
        { "a=", "{\"a\":\"\"}", true },
        { "a=,b=1", "{\"a\":\"\",\"b\":\"1\"}", true },
        { "a>5", "{\"a\":\"6\"}", true },
        { "a>5", "{\"a\":\"5\"}", false },
        { "a<5", "{\"a\":\"4\"}", true },
        { "a>5", "{\"a\":\"x\"}", false },
        { "example.com/a=1,in=2", "{\"example.com/a\":\"1\",\"in\":\"2\"}", true },
        { "a in (),!b", "{\"a\":\"\"}", true },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        struct label_selector s;
        err_t e = { 0 };
        auto_object struct object *o = object(t[i].labels);
        OK_CALL(selector_parse_labels(&a, str_c(t[i].selector), &s, &e), &e);
        if (selector_matches_labels(&s, o) != t[i].want)
            tap_note(__FILE__, __LINE__, "%s on %s", t[i].selector, t[i].labels);
    }
}

static void nonsense_is_refused(void)
{
    static const char *const t[] = { "a===b", "a=b c", "a in b",  "-x=1", "a,", "=b",
                                     "a>x",   "(a)",   "a in (b", "!",    "a!", "a/b/c=1",
                                     "/a=1",  "a=-b",  ",a",      "a=b=c" };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        struct label_selector s;
        err_t e = { 0 };
        if (selector_parse_labels(&a, str_c(t[i]), &s, &e) == 0 || !e.text[0])
            tap_note(__FILE__, __LINE__, "%s was taken", t[i]);
    }
}

static void fields_parse(void)
{
    auto_arena struct arena a = { 0 };
    struct field_selector s;
    err_t e = { 0 };
    OK_CALL(selector_parse_fields(&a, S("metadata.name=p,spec.nodeName!=x,a.b==c,d="), &s, &e), &e);
    EQ_INT(s.n, 4);
    EQ_STR(s.terms[1].path, S("spec.nodeName"));
    OK(s.terms[1].negated && !s.terms[2].negated);
    EQ_STR(s.terms[2].value, S("c"));
    EQ_STR(s.terms[3].value, S(""));
    EQ_STR(selector_exact_field(&s, S("metadata.name")), S("p"));
    OK(!selector_exact_field(&s, S("spec.nodeName")).p);
    OK(selector_parse_fields(&a, S("metadata.name"), &s, &e) < 0);
    OK(selector_parse_fields(&a, S("=x"), &s, &e) < 0);
    OK(selector_parse_fields(&a, S("a=x\\,y"), &s, &e) == 0);
    EQ_STR(s.terms[0].value, S("x,y"));
}

static void scanning_survives_anything(void)
{
    static const char *const t[] = { "",          "{",        "{\"", "{\"a\"", "{\"a\":",
                                     "{\"a\":\"", "[",        "[,",  "}",      "{\"a\":{",
                                     "\"",        "{\"a\":1", "{,}", "{\"a\\", "[[[[" };
    for (size_t i = 0; i < countof(t); i++) {
        str rest = str_c(t[i]), key, value;
        for (int steps = 0; steps < 10 && scan_next(&rest, &key, &value); steps++)
            ;
        scan_path(str_c(t[i]), S("a.b"));
    }
    struct object *o;
    EQ_INT(object_new(S("k"), S("{\"kind\":\"A\"}"), 1, false, &o), -EINVAL);
    EQ_INT(object_new(S("k"), S("not json"), 1, false, &o), -EINVAL);
}

static void events_show_old_data_under_a_new_version(void)
{
    auto_object struct object *o = object("{\"resourceVersion\":\"7\"}");
    auto_buf struct buf out = { 0 };
    object_put_as(&out, o, 123456);
    OK(strstr(out.p, "\"resourceVersion\":\"123456\",\"labels\":{\"resourceVersion\":\"7\"}") !=
       NULL);
    buf_clear(&out);
    object_put_item(&out, o);
    OK(str_starts(buf_str(&out), S("{\"metadata\":{")));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(labels_match),
                                        TAP(nonsense_is_refused),
                                        TAP(fields_parse),
                                        TAP(scanning_survives_anything),
                                        TAP(events_show_old_data_under_a_new_version),
                                        { 0 } });
}
