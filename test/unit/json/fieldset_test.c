#include "tap.h"
#include "test_json.h"

#include "shapes.h"
#include "json/fieldset.h"

static struct fieldset set(struct arena *a, const char *text)
{
    struct fieldset s = { 0 };
    err_t e;
    OK_CALL(fieldset_parse(a, test_json_quoted(a, text), &s, &e), &e);
    return s;
}

static void is(struct arena *a, const struct fieldset *got, const char *want, const char *what)
{
    struct json *printed = fieldset_print(a, got);
    if (!json_eq(printed, test_json_quoted(a, want)))
        tap_note(__FILE__, __LINE__, "%s is %s, want %s", what, json_to_str(a, printed).p, want);
}

static void fields_v1_round_trips(void)
{
    static const char *const texts[] = {
        "{}",
        "{'f:a':{}}",
        "{'f:a':{'f:b':{},'f:c':{}}}",
        "{'f:a':{'.':{},'f:b':{}}}",
        "{'f:ports':{'k:{\\'port\\':80,\\'protocol\\':\\'TCP\\'}':{'.':{},'f:name':{}}}}",
        "{'f:tags':{'v:\\'a\\'':{},'v:\\'b\\'':{},'v:true':{},'i:0':{},'i:12':{}}}",
        "{'f:':{},'f:a.b/c':{}}",
        "{'v:1':{},'v:1.5':{},'v:2':{},'v:10':{}}",
        "{'f:x':{'k:{\\'name\\':\\'a\\\\u003cb\\'}':{}}}",
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(texts); i++) {
        struct json *in = test_json_quoted(&a, texts[i]);
        struct fieldset s = set(&a, texts[i]);
        EQ_STR(json_to_str(&a, fieldset_print(&a, &s)), json_to_str(&a, in));
    }
}

static void unsorted_and_unknown_elements_are_fixed(void)
{
    auto_arena struct arena a = { 0 };
    struct fieldset s = set(&a, "{'f:b':{},'i:1':{},'f:a':{},'x:future':{'f:z':{}},'v:1':{},"
                                "'k:{\\'z\\':1,\\'a\\':2}':{}}");
    EQ_STR(json_to_str(&a, fieldset_print(&a, &s)),
           S("{\"f:a\":{},\"f:b\":{},\"k:{\\\"a\\\":2,\\\"z\\\":1}\":{},\"v:1\":{},\"i:1\":{}}"));
}

static void broken_ones_are_refused(void)
{
    static const char *const texts[] = { "{'a':{}}",  "{'':{}}",      "{'k:[]':{}}", "{'k:{':{}}",
                                         "{'v:':{}}", "{'i:x':{}}",   "{'f:a':1}",   "{'f:a':[]}",
                                         "[]",        "{'f:a':null}", "{'fx':{}}" };
    for (size_t i = 0; i < countof(texts); i++) {
        auto_arena struct arena a = { 0 };
        struct fieldset s = { 0 };
        err_t e;
        EQ_INT(fieldset_parse(&a, test_json_quoted(&a, texts[i]), &s, &e), -EINVAL);
    }
    auto_arena struct arena a = { 0 };
    struct fieldset s = set(&a, "{}");
    OK(fieldset_parse(&a, NULL, &s, NULL) == 0 && fieldset_empty(&s));
}

static void algebra(void)
{
    static const struct {
        const char *x, *y, *both, *common, *minus, *without;
    } t[] = {
        { "{'f:a':{}}", "{'f:b':{}}", "{'f:a':{},'f:b':{}}", "{}", "{'f:a':{}}", "{'f:a':{}}" },
        { "{'f:a':{}}", "{'f:a':{}}", "{'f:a':{}}", "{'f:a':{}}", "{}", "{}" },
        { "{'f:a':{'.':{},'f:b':{}}}", "{'f:a':{'f:b':{},'f:c':{}}}",
          "{'f:a':{'.':{},'f:b':{},'f:c':{}}}", "{'f:a':{'f:b':{}}}", "{'f:a':{}}", "{'f:a':{}}" },
        { "{'f:a':{'f:b':{}}}", "{'f:a':{}}", "{'f:a':{'.':{},'f:b':{}}}", "{}",
          "{'f:a':{'f:b':{}}}", "{}" },
        { "{'f:a':{}}", "{'f:a':{'f:b':{}}}", "{'f:a':{'.':{},'f:b':{}}}", "{}", "{'f:a':{}}",
          "{'f:a':{}}" },
        { "{'k:{\\'p\\':80}':{'f:x':{}},'v:1':{}}", "{'k:{\\'p\\':80.0}':{'f:x':{}},'v:1.0':{}}",
          "{'k:{\\'p\\':80}':{'f:x':{}},'v:1':{}}", "{'k:{\\'p\\':80}':{'f:x':{}},'v:1':{}}", "{}",
          "{}" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct fieldset x = set(&a, t[i].x), y = set(&a, t[i].y), got;
        got = fieldset_union(&a, &x, &y);
        is(&a, &got, t[i].both, "union");
        got = fieldset_union(&a, &y, &x);
        is(&a, &got, t[i].both, "union the other way");
        got = fieldset_intersection(&a, &x, &y);
        is(&a, &got, t[i].common, "intersection");
        got = fieldset_difference(&a, &x, &y);
        is(&a, &got, t[i].minus, "difference");
        got = fieldset_without(&a, &x, &y);
        is(&a, &got, t[i].without, "without");
        is(&a, &x, t[i].x, "what was given");
        OK(fieldset_eq(&x, &x) && !fieldset_empty(&x));
    }
}

static void parents_are_added_where_declared(void)
{
    auto_arena struct arena a = { 0 };
    struct fieldset s = set(&a, "{'f:spec':{'f:options':{'f:a':{}},'f:ports':{'k:{\\'port\\':80}':"
                                "{'f:name':{}}},'f:free':{'f:x':{'f:y':{}}}}}");
    struct fieldset got = fieldset_with_parents(&a, &s, &widget);
    is(&a, &got,
       "{'f:spec':{'.':{},'f:options':{'.':{},'f:a':{}},'f:ports':{'.':{},'k:{\\'port\\':80}':"
       "{'f:name':{}}},'f:free':{'.':{},'f:x':{'f:y':{}}}}}",
       "with parents");
}

static void what_became_atomic_is_one_field(void)
{
    auto_arena struct arena a = { 0 };
    struct fieldset s = set(&a, "{'f:spec':{'f:owner':{'f:name':{}},'f:args':{'.':{},'i:0':{}},"
                                "'f:color':{},'f:tags':{'v:\\'a\\'':{}}}}");
    struct fieldset got = fieldset_reconcile(&a, &s, &widget);
    is(&a, &got, "{'f:spec':{'f:owner':{},'f:args':{},'f:color':{},'f:tags':{'v:\\'a\\'':{}}}}",
       "reconciled");
}

static void collect(void *context, str path)
{
    buf_printf(context, STR_FMT "\n", STR_ARG(path));
}

static void paths_read_well(void)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct fieldset s = set(&a, "{'f:spec':{'.':{},'f:ports':{'k:{\\'port\\':80,\\'protocol\\':"
                                "\\'TCP\\'}':{'.':{},'f:name':{}}},'f:tags':{'v:\\'a\\'':{},"
                                "'i:3':{}}},'f:z':{}}");
    fieldset_each(&s, collect, &out);
    EQ_STR(buf_str(&out), S(".spec\n.z\n.spec.ports[port=80,protocol=\"TCP\"]\n"
                            ".spec.ports[port=80,protocol=\"TCP\"].name\n.spec.tags[=\"a\"]\n"
                            ".spec.tags[3]\n"));
}

static void fields_are_found_by_their_names(void)
{
    auto_arena struct arena a = { 0 };
    struct fieldset s = set(&a, "{'f:metadata':{'.':{},'f:labels':{}},'f:status':{}}");
    struct fieldset_element status = fieldset_name(S("status")), none = fieldset_name(S("stat"));
    OK(fieldset_find(&s, &status) && fieldset_find(&s, &status)->member);
    OK(!fieldset_find(&s, &none));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(fields_v1_round_trips),
                                        TAP(unsorted_and_unknown_elements_are_fixed),
                                        TAP(broken_ones_are_refused),
                                        TAP(algebra),
                                        TAP(parents_are_added_where_declared),
                                        TAP(what_became_atomic_is_one_field),
                                        TAP(paths_read_well),
                                        TAP(fields_are_found_by_their_names),
                                        { 0 } });
}
