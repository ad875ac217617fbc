#include "tap.h"
#include "test_json.h"

#include "apiserver/kinds/table.h"

#define NOW_NS (INT64_C(1700000000) * 1000000000)

static void ages_have_the_form_of_kubectl(void)
{
    static const struct {
        int64_t seconds;
        const char *want;
    } t[] = {
        { -5, "<invalid>" }, { -1, "0s" },       { 0, "0s" },           { 119, "119s" },
        { 120, "2m" },       { 125, "2m5s" },    { 600, "10m" },        { 10800, "3h" },
        { 11000, "3h3m" },   { 28800, "8h" },    { 172800, "2d" },      { 180000, "2d2h" },
        { 864000, "10d" },   { 63072000, "2y" }, { 64000000, "2y10d" }, { 400000000, "12y" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++)
        EQ_STR(table_age(&a, t[i].seconds), str_c(t[i].want));
}

static str cells_of(struct arena *a, const char *group, const char *plural, const char *object)
{
    const struct kind *k = kinds_find(str_c(group), S("v1"), str_c(plural));
    const struct json *items[] = { test_json_quoted(a, object) };
    struct json *table = table_make(a, k, items, 1, NULL,
                                    (struct table_options){ .now_ns = NOW_NS,
                                                            .include = TABLE_NONE,
                                                            .api_version = S("meta.k8s.io/v1") });
    EQ_INT(json_len(json_get(table, "columnDefinitions")), k->n_columns);
    const struct json *cells = json_get(json_item(json_get(table, "rows"), 0), "cells");
    EQ_INT(json_len(cells), k->n_columns);
    return json_to_str(a, cells);
}

static void built_in_kinds_have_cells(void)
{
    auto_arena struct arena a = { 0 };
    EQ_STR(cells_of(&a, "", "configmaps",
                    "{'metadata':{'name':'c','creationTimestamp':'2023-11-14T22:13:00Z'},'data':"
                    "{'a':'1'},'binaryData':{'b':''}}"),
           S("[\"c\",2,\"20s\"]"));
    EQ_STR(cells_of(&a, "", "services",
                    "{'metadata':{'name':'s'},'spec':{'type':'NodePort','clusterIP':'10.0.0.1',"
                    "'ports':[{'port':80,'protocol':'TCP','nodePort':30001}],'selector':{'b':'2',"
                    "'a':'1'}}}"),
           S("[\"s\",\"NodePort\",\"10.0.0.1\",\"<none>\",\"80:30001/TCP\",\"<unknown>\","
             "\"a=1,b=2\"]"));
    EQ_STR(cells_of(&a, "apps", "deployments",
                    "{'metadata':{'name':'d'},'spec':{'replicas':3,'selector':{'matchLabels':{'a':"
                    "'1'}},'template':{'spec':{'containers':[{'name':'x','image':'i'},{'name':'y',"
                    "'image':'j'}]}}},'status':{'readyReplicas':1}}"),
           S("[\"d\",\"1/3\",0,0,\"<unknown>\",\"x,y\",\"i,j\",\"a=1\"]"));
}

static void pods_show_their_status(void)
{
    static const struct {
        const char *pod, *want;
    } t[] = {
        { "{'metadata':{'name':'p'},'spec':{'containers':[{},{}]},'status':{'phase':'Pending'}}",
          "[\"p\",\"0/2\",\"Pending\",\"0\"" },
        { "{'metadata':{'name':'p'},'spec':{'containers':[{}]},'status':{'phase':'Running',"
          "'containerStatuses':[{'ready':true,'restartCount':3,'state':{'running':{}}}]}}",
          "[\"p\",\"1/1\",\"Running\",\"3\"" },
        { "{'metadata':{'name':'p'},'spec':{'containers':[{}]},'status':{'phase':'Running',"
          "'containerStatuses':[{'restartCount':4,'state':{'waiting':{'reason':'CrashLoopBackOff'}}"
          ",'lastState':{'terminated':{'finishedAt':'2023-11-14T22:12:20Z'}}}]}}",
          "[\"p\",\"0/1\",\"CrashLoopBackOff\",\"4 (60s ago)\"" },
        { "{'metadata':{'name':'p','deletionTimestamp':'2023-11-14T22:12:20Z'},'spec':{'containers'"
          ":[{}]},'status':{'phase':'Running'}}",
          "[\"p\",\"0/1\",\"Terminating\",\"0\"" },
        { "{'metadata':{'name':'p'},'spec':{'initContainers':[{'name':'i'}],'containers':[{}]},"
          "'status':{'phase':'Pending','initContainerStatuses':[{'name':'i','state':{'terminated':"
          "{'exitCode':2}}}]}}",
          "[\"p\",\"0/1\",\"Init:ExitCode:2\",\"0\"" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        str cells = cells_of(&a, "", "pods", t[i].pod);
        if (!str_starts(cells, str_c(t[i].want)))
            tap_note(__FILE__, __LINE__, STR_FMT ", want %s", STR_ARG(cells), t[i].want);
    }
}

static void rows_include_the_requested_object(void)
{
    auto_arena struct arena a = { 0 };
    const struct kind *k = kinds_find(S(""), S("v1"), S("configmaps"));
    const struct json *items[] = { test_json_quoted(&a,
                                                    "{'metadata':{'name':'c'},'data':{'a':'1'}}") };
    struct table_options options = { .api_version = S("meta.k8s.io/v1"), .no_columns = true };
    struct json *table =
        table_make(&a, k, items, 1, test_json_quoted(&a, "{'resourceVersion':'7'}"), options);
    OK(json_is(json_get(table, "columnDefinitions"), JSON_NULL));
    EQ_STR(json_text(json_at(table, "metadata", "resourceVersion", NULL)), S("7"));
    const struct json *object = json_get(json_item(json_get(table, "rows"), 0), "object");
    EQ_STR(json_text(json_get(object, "kind")), S("PartialObjectMetadata"));
    OK(!json_get(object, "data"));
    options.include = TABLE_OBJECT;
    table = table_make(&a, k, items, 1, NULL, options);
    OK(json_at(json_item(json_get(table, "rows"), 0), "object", "data", NULL));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(ages_have_the_form_of_kubectl),
        TAP(built_in_kinds_have_cells),
        TAP(pods_show_their_status),
        TAP(rows_include_the_requested_object),
        { 0 },
    });
}
