#include "tap.h"
#include "test_json.h"

#include "shapes.h"
#include "json/apply.h"

#define EARLIER "2026-11-15T20:00:00Z"
#define LATER "2026-11-15T21:00:00Z"

static struct apply_request request(const char *manager, const struct json *live,
                                    const struct json *object)
{
    return (struct apply_request){ .shape = &widget,
                                   .version = S("g/v1"),
                                   .kind = S("Widget"),
                                   .manager = str_c(manager),
                                   .now = S(EARLIER),
                                   .live = live,
                                   .object = object };
}

/* A Widget with that spec. */
static struct json *spec(struct arena *a, const char *text)
{
    struct json *v =
        test_json_quoted(a, "{'apiVersion':'g/v1','kind':'Widget','metadata':{'name':'w'}}");
    json_set(a, v, S("spec"), test_json_quoted(a, text));
    return v;
}

static struct json *applied(struct arena *a, const char *manager, const struct json *live,
                            const char *config)
{
    struct apply_request r = request(manager, live, spec(a, config));
    struct apply_result result = { 0 };
    err_t e;
    r.force = true;
    OK_CALL(apply_patch(a, &r, &result, &e), &e);
    return result.object;
}

/* One line per entry: "manager/operation[/subresource]: fieldsV1" */
static str who_owns(struct arena *a, const struct json *object)
{
    auto_buf struct buf out = { 0 };
    const struct json *entries = json_at(object, "metadata", "managedFields", NULL);
    for (size_t i = 0; i < json_len(entries); i++) {
        const struct json *e = json_item(entries, i);
        str sub = json_text(json_get(e, "subresource"));
        buf_printf(&out, STR_FMT "/" STR_FMT "%s" STR_FMT ": %s\n",
                   STR_ARG(json_text(json_get(e, "manager"))),
                   STR_ARG(json_text(json_get(e, "operation"))), sub.n ? "/" : "", STR_ARG(sub),
                   json_to_str(a, json_get(e, "fieldsV1")).p);
    }
    return arena_str(a, buf_str(&out));
}

#define IS_SPEC(object, want)                                                                      \
    EQ_STR(json_to_str(&a, json_get(object, "spec")), json_to_str(&a, test_json_quoted(&a, want)))

static void order_of_merged_lists(void)
{
    static const struct {
        const char *live, *config, *want;
    } t[] = {
        { "['a','b','c']", "['b']", "['a','b','c']" },
        { "['a','b','c']", "['d']", "['a','b','c','d']" },
        { "['a','b','c']", "['c','a']", "['b','c','a']" },
        { "['a','b']", "['b','x','a']", "['b','x','a']" },
        { "['a','b','c','d']", "['d','b']", "['a','c','d','b']" },
        { "['a']", "['x','a','y']", "['x','a','y']" },
        { "[]", "['x','a']", "['x','a']" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct json *live = json_new_obj(&a);
        json_set(&a, live, S("tags"), test_json_quoted(&a, t[i].live));
        struct json *config = json_new_obj(&a);
        json_set(&a, config, S("tags"), test_json_quoted(&a, t[i].config));
        struct json *first = applied(&a, "a", NULL, json_to_str(&a, live).p);
        struct json *got = applied(&a, "b", first, json_to_str(&a, config).p);
        EQ_STR(json_to_str(&a, json_at(got, "spec", "tags", NULL)),
               json_to_str(&a, test_json_quoted(&a, t[i].want)));
    }
}

static void what_is_given_up_goes_unless_owned(void)
{
    auto_arena struct arena a = { 0 };
    struct json *o = applied(&a, "al", NULL, "{'options':{'k':'1','l':'1'},'tags':['a','b']}");
    o = applied(&a, "bo", o, "{'options':{'l':'1'},'tags':['b']}");
    o = applied(&a, "al", o, "{'color':'red'}");
    IS_SPEC(o, "{'options':{'l':'1'},'tags':['b'],'color':'red'}");
    o = applied(&a, "bo", o, "{}");
    IS_SPEC(o, "{'color':'red'}");
    EQ_STR(who_owns(&a, o), S("al/Apply: {\"f:spec\":{\"f:color\":{}}}\n"
                              "bo/Apply: {\"f:spec\":{}}\n"));
}

static void nothing_given_is_changed(void)
{
    auto_arena struct arena a = { 0 };
    struct json *live = applied(&a, "al", NULL, "{'ports':[{'port':80}],'owner':{'name':'x'}}");
    struct json *before = json_copy(&a, live), *config = spec(&a, "{'ports':[{'port':81}]}");
    struct apply_request r = request("bo", live, config);
    struct apply_result result;
    OK_CALL(apply_patch(&a, &r, &result, &(err_t){ 0 }), &(err_t){ 0 });
    r.object = result.object;
    apply_update(&a, &r);
    OK(json_eq(live, before) && json_eq(config, spec(&a, "{'ports':[{'port':81}]}")));
}

static void same_again_keeps_the_times(void)
{
    auto_arena struct arena a = { 0 };
    struct json *live = applied(&a, "al", NULL, "{'color':'red'}");
    struct apply_request r = request("al", live, spec(&a, "{'color':'red'}"));
    struct apply_result result;
    r.now = S(LATER);
    OK_CALL(apply_patch(&a, &r, &result, &(err_t){ 0 }), &(err_t){ 0 });
    OK(json_eq(result.object, live));
    r.object = spec(&a, "{'color':'blue'}");
    OK_CALL(apply_patch(&a, &r, &result, &(err_t){ 0 }), &(err_t){ 0 });
    EQ_STR(json_text(
               json_get(json_item(json_at(result.object, "metadata", "managedFields", NULL), 0),
                        "time")),
           S(LATER));
    r.object = live;
    OK(json_eq(apply_update(&a, &r), live));

    struct json *touched = json_copy(&a, live);
    json_set_str(&a, json_item(json_at(touched, "metadata", "managedFields", NULL), 0), "time",
                 S(LATER));
    apply_keep_times(&a, live, touched);
    OK(json_eq(touched, live));
}

static void conflicts_are_listed(void)
{
    auto_arena struct arena a = { 0 };
    struct json *live = applied(&a, "al", NULL, "{'color':'red','ports':[{'port':80,'name':'x'}]}");
    struct apply_request r =
        request("up", live, spec(&a, "{'color':'red','size':1,'ports':[{'port':80,'name':'x'}]}"));
    live = apply_update(&a, &r);
    r = request("bo", live, spec(&a, "{'color':'blue','size':2,'ports':[{'port':80,'name':'y'}]}"));
    struct apply_result result = { 0 };
    err_t e;
    EQ_INT(apply_patch(&a, &r, &result, &e), -EEXIST);
    EQ_STR(result.message,
           S("Apply failed with 3 conflicts: conflicts with \"al\":\n- .spec.color\n"
             "- .spec.ports[port=80,protocol=\"TCP\"].name\nconflicts with \"up\" using g/v1:\n"
             "- .spec.size"));
    EQ_INT(result.n_conflicts, 3);
    EQ_STR(result.conflicts[2].message, S("conflict with \"up\" using g/v1"));
    EQ_STR(str_c(e.text), result.message);
    r.force = true;
    OK_CALL(apply_patch(&a, &r, &result, &e), &e);
    EQ_STR(
        who_owns(&a, result.object),
        S("al/Apply: {\"f:spec\":{\"f:ports\":{\"k:{\\\"port\\\":80,\\\"protocol\\\":\\\"TCP\\\"}\":"
          "{\".\":{},\"f:port\":{}}}}}\n"
          "bo/Apply: {\"f:spec\":{\"f:color\":{},\"f:ports\":{\"k:{\\\"port\\\":80,"
          "\\\"protocol\\\":\\\"TCP\\\"}\":{\".\":{},\"f:name\":{},\"f:port\":{}}},"
          "\"f:size\":{}}}\n"));
}

static void bad_configurations_are_refused(void)
{
    static const struct {
        const char *config;
        int code;
        const char *sentence;
    } t[] = {
        { "{}", EINVAL, "invalid object type: /, Kind=" },
        { "{'apiVersion':'v1','kind':'Pod'}", EINVAL, "invalid object type: /v1, Kind=Pod" },
        { "{'apiVersion':'g/v1','kind':'Widget','metadata':{'managedFields':[]}}", EINVAL,
          "metadata.managedFields must be nil" },
        { "{'apiVersion':'g/v1','kind':'Widget','metadata':{'name':'w','namespace':'n'},"
          "'spec':{'nosuch':1}}",
          EBADMSG,
          "failed to create typed patch object (n/w; g/v1, Kind=Widget): .spec.nosuch: field not "
          "declared in schema" },
        { "{'apiVersion':'g/v1','kind':'Widget','spec':{'size':'big'}}", EBADMSG,
          "failed to create typed patch object (/; g/v1, Kind=Widget): .spec.size: expected numeric "
          "(int or float), got string" },
        { "{'apiVersion':'g/v1','kind':'Widget','spec':{'ports':{}}}", EBADMSG, NULL },
        { "{'apiVersion':'g/v1','kind':'Widget','spec':[]}", EBADMSG, NULL },
        { "{'apiVersion':'g/v1','kind':'Widget','spec':{'color':true}}", EBADMSG, NULL },
        { "{'apiVersion':'g/v1','kind':'Widget','spec':{'tags':['a',null]}}", EBADMSG, NULL },
        { "{'apiVersion':'g/v1','kind':'Widget','spec':{'tags':['a','a']}}", EBADMSG,
          "failed to create typed patch object (/; g/v1, Kind=Widget): .spec.tags: duplicate entries "
          "for key [=\"a\"]" },
        { "{'apiVersion':'g/v1','kind':'Widget','spec':{'ports':[{'port':80},{'port':80,"
          "'protocol':'TCP'}]}}",
          EBADMSG, NULL },
        { "{'apiVersion':'g/v1','kind':'Widget','spec':{'args':[{}]}}", EBADMSG,
          "failed to create typed patch object (/; g/v1, Kind=Widget): .spec.args[0]: expected "
          "string, got map[string]interface {}" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct apply_request r = request("al", NULL, test_json_quoted(&a, t[i].config));
        struct apply_result result = { 0 };
        err_t e = { 0 };
        EQ_INT(apply_patch(&a, &r, &result, &e), -t[i].code);
        if (t[i].sentence)
            EQ_STR(str_c(e.text), str_c(t[i].sentence));
    }
}

static void unrecorded_objects_get_an_owner_first(void)
{
    auto_arena struct arena a = { 0 };
    struct json *live = spec(&a, "{'color':'red','size':1}");
    struct apply_request r = request("al", live, spec(&a, "{'color':'blue'}"));
    struct apply_result result = { 0 };
    err_t e;
    EQ_INT(apply_patch(&a, &r, &result, &e), -EEXIST);
    EQ_STR(result.message, S("Apply failed with 1 conflict: conflict with \"before-first-apply\" "
                             "using g/v1: .spec.color"));
}

static void subresources_have_their_own_entries(void)
{
    auto_arena struct arena a = { 0 };
    struct json *live = applied(&a, "al", NULL, "{'color':'red'}");
    struct fieldset not_status = { 0 };
    OK(fieldset_parse(&a, test_json_quoted(&a, "{'f:spec':{},'f:metadata':{}}"), &not_status,
                      NULL) == 0);
    struct json *changed = json_copy(&a, live);
    json_set(&a, changed, S("status"),
             test_json_quoted(&a, "{'replicas':2,'conditions':[{'type':'R'}]}"));
    json_set_str(&a, json_get(changed, "spec"), "color", S("ignored"));
    struct apply_request r = request("al", live, changed);
    r.subresource = S("status");
    r.ignored = &not_status;
    struct json *got = apply_update(&a, &r);
    EQ_STR(who_owns(&a, got),
           S("al/Apply: {\"f:spec\":{\"f:color\":{}}}\n"
             "al/Update/status: {\"f:status\":{\".\":{},\"f:conditions\":{\".\":{},"
             "\"k:{\\\"type\\\":\\\"R\\\"}\":{\".\":{},\"f:type\":{}}},\"f:replicas\":{}}}\n"));
}

static void updates_may_bring_or_forget_managers(void)
{
    auto_arena struct arena a = { 0 };
    struct json *live = applied(&a, "al", NULL, "{'color':'red'}");
    static const struct {
        const char *entries, *want;
    } t[] = {
        { "null", "al/Apply: {\"f:spec\":{\"f:color\":{}}}\n" },
        { "[]", "" },
        { "[{}]", "" },
        { "[{'manager':'x','operation':'Nonsense'}]", "al/Apply: {\"f:spec\":{\"f:color\":{}}}\n" },
        { "[{'manager':'x','operation':'Apply','apiVersion':'g/v1','fieldsType':'FieldsV1',"
          "'fieldsV1':{'f:spec':{'f:color':{}}}}]",
          "x/Apply: {\"f:spec\":{\"f:color\":{}}}\n" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct json *changed = json_copy(&a, live);
        json_set(&a, json_get(changed, "metadata"), S("managedFields"),
                 test_json_quoted(&a, t[i].entries));
        struct apply_request r = request("up", live, changed);
        EQ_STR(who_owns(&a, apply_update(&a, &r)), str_c(t[i].want));
        r.subresource = S("status"); /* there they are not even looked at */
        EQ_STR(who_owns(&a, apply_update(&a, &r)), S("al/Apply: {\"f:spec\":{\"f:color\":{}}}\n"));
    }
}

static void what_does_not_fit_is_not_recorded(void)
{
    auto_arena struct arena a = { 0 };
    struct apply_request r = request("up", NULL, spec(&a, "{'nosuch':1}"));
    struct json *got = apply_update(&a, &r);
    OK(got && !json_at(got, "metadata", "managedFields", NULL));
}

static void old_updaters_become_one(void)
{
    auto_arena struct arena a = { 0 };
    struct apply_request r = request("creator", NULL, spec(&a, "{'options':{'c':'0'}}"));
    r.now = S("2026-01-01T00:00:00Z");
    struct json *live = apply_update(&a, &r);
    for (int i = 1; i <= 12; i++) {
        struct json *changed = json_copy(&a, live);
        char name[8], key[8];
        snprintf(name, sizeof(name), "m%02d", i);
        snprintf(key, sizeof(key), "k%02d", i);
        json_set_str(&a, json_at(changed, "spec", "options", NULL), key, S("1"));
        r = request(name, live, changed);
        r.now = arena_printf(&a, "2026-01-01T00:00:%02dZ", i);
        live = apply_update(&a, &r);
    }
    EQ_INT(json_len(json_at(live, "metadata", "managedFields", NULL)), 10);
    OK(str_starts(
        who_owns(&a, live),
        S("ancient-changes/Update: {\"f:spec\":{\".\":{},\"f:options\":{\".\":{},\"f:c\":{},"
          "\"f:k01\":{},\"f:k02\":{},\"f:k03\":{}}}}\nm04/Update: ")));
}

static const struct shape *only_v1(void *context, str version)
{
    (void)context;
    return str_eq(version, S("g/v1")) ? &widget : NULL;
}

static void entries_of_lost_versions_go(void)
{
    auto_arena struct arena a = { 0 };
    struct json *live = applied(&a, "al", NULL, "{'color':'red'}");
    json_set_str(&a, json_item(json_at(live, "metadata", "managedFields", NULL), 0), "apiVersion",
                 S("g/v0"));
    struct apply_request r = request("bo", live, spec(&a, "{'color':'blue'}"));
    struct apply_result result = { 0 };
    err_t e;
    r.shape_of = only_v1;
    OK_CALL(apply_patch(&a, &r, &result, &e), &e);
    EQ_STR(who_owns(&a, result.object), S("bo/Apply: {\"f:spec\":{\"f:color\":{}}}\n"));
    r.shape_of = NULL;
    EQ_INT(apply_patch(&a, &r, &result, &e), -EEXIST);
}

static void kubectl_may_take_what_it_applied_before(void)
{
    auto_arena struct arena a = { 0 };
    struct json *created = spec(&a, "{'color':'red','size':1}");
    json_set_str(&a, json_make(&a, created, "metadata", "annotations", NULL),
                 "kubectl.kubernetes.io/last-applied-configuration",
                 S("{\"apiVersion\":\"g/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\"},"
                   "\"spec\":{\"color\":\"red\"}}\n"));
    struct apply_request r = request("kubectl-client-side-apply", NULL, created);
    struct json *live = apply_update(&a, &r);
    struct apply_result result = { 0 };
    err_t e;
    r = request("kubectl", live, spec(&a, "{'color':'blue','size':2}"));
    EQ_INT(apply_patch(&a, &r, &result, &e), -EEXIST);
    EQ_STR(result.message, S("Apply failed with 1 conflict: conflict with "
                             "\"kubectl-client-side-apply\" using g/v1: .spec.size"));
    r.object = spec(&a, "{'color':'blue'}");
    OK_CALL(apply_patch(&a, &r, &result, &e), &e);
    EQ_STR(json_text(json_at(result.object, "metadata", "annotations",
                             "kubectl.kubernetes.io/last-applied-configuration", NULL)),
           S("{\"apiVersion\":\"g/v1\",\"kind\":\"Widget\",\"metadata\":{\"name\":\"w\"},"
             "\"spec\":{\"color\":\"blue\"}}\n"));
    r.manager = S("other");
    EQ_INT(apply_patch(&a, &r, &result, &e), -EEXIST);
}

/* As kube-apiserver records `kubectl create deployment`. */
static void structs_by_value_are_not_owned(void)
{
    auto_arena struct arena a = { 0 };
    struct apply_request r = {
        .shape = &deployment,
        .version = S("apps/v1"),
        .manager = S("kubectl-create"),
        .now = S(EARLIER),
        .object = test_json_quoted(
            &a, "{'apiVersion':'apps/v1','kind':'Deployment','metadata':{'name':'d',"
                "'labels':{'app':'d'}},'spec':{'replicas':1,'selector':{'matchLabels':"
                "{'app':'d'}},'strategy':{'type':'RollingUpdate','rollingUpdate':"
                "{'maxSurge':1}},'template':{'metadata':{'labels':{'app':'d'}},'spec':"
                "{'containers':[{'name':'c','image':'i','resources':{}}]}}},'status':{}}"),
    };
    EQ_STR(
        who_owns(&a, apply_update(&a, &r)),
        S("kubectl-create/Update: {\"f:metadata\":{\"f:labels\":{\".\":{},\"f:app\":{}}},"
          "\"f:spec\":{\"f:replicas\":{},\"f:selector\":{},\"f:strategy\":{\"f:rollingUpdate\":"
          "{\".\":{},\"f:maxSurge\":{}},\"f:type\":{}},\"f:template\":{\"f:metadata\":{\"f:labels\":"
          "{\".\":{},\"f:app\":{}}},\"f:spec\":{\"f:containers\":{\"k:{\\\"name\\\":\\\"c\\\"}\":"
          "{\".\":{},\"f:image\":{},\"f:name\":{},\"f:resources\":{}}}}}}}\n"));
}

static void long_lists_cost_their_length(void)
{
    auto_arena struct arena a = { 0 };
    struct json *config = spec(&a, "{}"), *tags = json_new_arr(&a), *map = json_new_obj(&a);
    for (int i = 0; i < 20000; i++) {
        str text = arena_printf(&a, "t%d", (i * 7919) % 20000);
        json_push(&a, tags, json_new_str(&a, text));
        json_append(&a, map, text, json_new_str(&a, text));
    }
    json_set(&a, json_get(config, "spec"), S("tags"), tags);
    json_set(&a, json_get(config, "spec"), S("options"), map);
    struct apply_request r = request("al", NULL, config);
    struct apply_result result = { 0 };
    err_t e;
    OK_CALL(apply_patch(&a, &r, &result, &e), &e);
    r.live = result.object;
    r.manager = S("bo");
    OK_CALL(apply_patch(&a, &r, &result, &e), &e);
    EQ_INT(json_len(json_at(result.object, "metadata", "managedFields", NULL)), 2);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(order_of_merged_lists),
                                        TAP(what_is_given_up_goes_unless_owned),
                                        TAP(nothing_given_is_changed),
                                        TAP(same_again_keeps_the_times),
                                        TAP(conflicts_are_listed),
                                        TAP(bad_configurations_are_refused),
                                        TAP(unrecorded_objects_get_an_owner_first),
                                        TAP(subresources_have_their_own_entries),
                                        TAP(updates_may_bring_or_forget_managers),
                                        TAP(what_does_not_fit_is_not_recorded),
                                        TAP(old_updaters_become_one),
                                        TAP(entries_of_lost_versions_go),
                                        TAP(kubectl_may_take_what_it_applied_before),
                                        TAP(structs_by_value_are_not_owned),
                                        TAP(long_lists_cost_their_length),
                                        { 0 } });
}
