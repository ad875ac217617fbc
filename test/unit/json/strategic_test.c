#include "tap.h"
#include "test_json.h"

#include "shapes.h"
#include "json/strategic.h"

struct change {
    const char *object, *patch, *want;
};

static void check(const struct shape *shape, const struct change *t, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        auto_arena struct arena a = { 0 };
        struct json *object = test_json_quoted(&a, t[i].object),
                    *patch = test_json_quoted(&a, t[i].patch);
        struct json *old = object, *before = json_copy(&a, object), *kept = json_copy(&a, patch);
        err_t e;
        if (OK_CALL(strategic_patch(&a, shape, &object, patch, &e), &e) &&
            !json_eq(object, test_json_quoted(&a, t[i].want)))
            tap_note(__FILE__, __LINE__, "%s gave %s", t[i].patch, json_to_str(&a, object).p);
        OK(json_eq(old, before) && json_eq(patch, kept));
    }
}

static void maps_merge(void)
{
    static const struct change t[] = {
        { "{'metadata':{'labels':{'a':'1','b':'2'}}}", "{'metadata':{'labels':{'b':null,'c':'3'}}}",
          "{'metadata':{'labels':{'a':'1','c':'3'}}}" },
        { "{'metadata':{'labels':{'a':'1'}}}",
          "{'metadata':{'labels':{'$patch':'replace','only':'this'}}}",
          "{'metadata':{'labels':{'only':'this'}}}" },
        /* as recorded: a directive on what is not there does nothing */
        { "{'metadata':{'name':'d'}}", "{'metadata':{'labels':{'$patch':'replace','x':'1'}}}",
          "{'metadata':{'name':'d'}}" },
        { "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':{'$patch':'delete'}}}",
          "{'metadata':{'labels':{}}}" },
        { "{'spec':{'strategy':{'type':'RollingUpdate','rollingUpdate':{'maxSurge':1}}}}",
          "{'spec':{'strategy':{'$retainKeys':['type'],'type':'Recreate'}}}",
          "{'spec':{'strategy':{'type':'Recreate'}}}" },
        { "{'spec':{}}", "{'spec':{'strategy':{'type':'Recreate','rollingUpdate':null}}}",
          "{'spec':{'strategy':{'type':'Recreate'}}}" },
        { "{'spec':{'replicas':1}}", "{'spec':{'replicas':{'$patch':'replace'}}}", "{'spec':{}}" },
    };
    check(&deployment, t, countof(t));
}

#define IN_POD(text) "{'spec':{'template':{'spec':{" text "}}}}"

static void lists_merge_by_key(void)
{
    static const struct change t[] = {
        { IN_POD("'containers':[{'name':'a','image':'1'},{'name':'b','image':'1'}]"),
          IN_POD("'containers':[{'name':'b','image':'2'}]"),
          IN_POD("'containers':[{'name':'a','image':'1'},{'name':'b','image':'2'}]") },
        { IN_POD("'containers':[{'name':'a'},{'name':'b'}]"), IN_POD("'containers':[{'name':'c'}]"),
          IN_POD("'containers':[{'name':'c'},{'name':'a'},{'name':'b'}]") },
        { IN_POD("'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]"),
          IN_POD("'containers':[{'name':'c'},{'name':'a'}]"),
          IN_POD("'containers':[{'name':'b'},{'name':'c'},{'name':'a'}]") },
        { IN_POD("'containers':[{'name':'a','env':[{'name':'A','value':'1'}],'args':['x','y']}]"),
          IN_POD("'containers':[{'name':'a','env':[{'name':'B','value':'2'}],'args':['z']}]"),
          IN_POD(
              "'containers':[{'name':'a','env':[{'name':'B','value':'2'},{'name':'A','value':'1'}]"
              ",'args':['z']}]") },
        { IN_POD("'containers':[{'name':'a','args':['x']}]"),
          IN_POD("'containers':[{'name':'a','args':null}]"),
          IN_POD("'containers':[{'name':'a'}]") },
        { IN_POD("'containers':[{'name':'a'},{'name':'b'}]"),
          IN_POD("'containers':[{'name':'a','$patch':'delete'},{'name':'z','$patch':'delete'}]"),
          IN_POD("'containers':[{'name':'b'}]") },
        { IN_POD("'containers':[{'name':'a'},{'name':'b'}]"),
          IN_POD("'containers':[{'$patch':'replace'},{'name':'z','args':null}]"),
          IN_POD("'containers':[{'name':'z'}]") },
        { IN_POD("'containers':[{'name':'a','ports':[{'containerPort':53,'protocol':'TCP'},"
                 "{'containerPort':53,'protocol':'UDP'}]}]"),
          IN_POD("'containers':[{'name':'a','ports':[{'containerPort':53,'name':'dns'}]}]"),
          IN_POD("'containers':[{'name':'a','ports':[{'containerPort':53,'protocol':'TCP',"
                 "'name':'dns'},{'containerPort':53,'protocol':'UDP'}]}]") },
        { IN_POD("'tolerations':[{'key':'a'}]"), IN_POD("'tolerations':[{'key':'b'}]"),
          IN_POD("'tolerations':[{'key':'b'}]") },
        { IN_POD("'restartPolicy':'Always'"),
          IN_POD("'containers':[{'name':'a'},{'name':'b','$patch':'delete'}]"),
          IN_POD("'restartPolicy':'Always','containers':[{'name':'a'}]") },
        { IN_POD("'volumes':[{'name':'v','emptyDir':{}}]"),
          IN_POD("'volumes':[{'name':'v','$retainKeys':['name','hostPath'],'hostPath':{}}]"),
          IN_POD("'volumes':[{'name':'v','hostPath':{}}]") },
    };
    check(&deployment, t, countof(t));
}

static void orders_are_set(void)
{
    static const struct change t[] = {
        { IN_POD("'containers':[{'name':'a'},{'name':'b','image':'1'}]"),
          IN_POD("'$setElementOrder/containers':[{'name':'b'},{'name':'a'}],"
                 "'containers':[{'name':'b','image':'2'}]"),
          IN_POD("'containers':[{'name':'b','image':'2'},{'name':'a'}]") },
        { IN_POD("'containers':[{'name':'a'},{'name':'b'},{'name':'c'}]"),
          IN_POD("'$setElementOrder/containers':[{'name':'c'},{'name':'a'}]"),
          IN_POD("'containers':[{'name':'b'},{'name':'c'},{'name':'a'}]") },
        { IN_POD("'containers':[{'name':'a','env':[{'name':'A'},{'name':'B'}]}]"),
          IN_POD("'$setElementOrder/containers':[{'name':'a'}],'containers':[{'name':'a',"
                 "'$setElementOrder/env':[{'name':'B'}],'env':[{'name':'A','$patch':'delete'}]}]"),
          IN_POD("'containers':[{'name':'a','env':[{'name':'B'}]}]") },
        { IN_POD("'restartPolicy':'x'"),
          IN_POD("'$setElementOrder/containers':[{'name':'b'},{'name':'a'}],"
                 "'containers':[{'name':'b'},{'name':'a'}]"),
          IN_POD("'restartPolicy':'x','containers':[{'name':'b'},{'name':'a'}]") },
        { "{'metadata':{'finalizers':['b']}}",
          "{'metadata':{'finalizers':['c'],'$setElementOrder/finalizers':['c','b']}}",
          "{'metadata':{'finalizers':['c','b']}}" },
        { "{'metadata':{}}", "{'metadata':{'$setElementOrder/finalizers':['c','b']}}",
          "{'metadata':{}}" },
        /* the new one takes the deleted one's slot, behind the server's own */
        { IN_POD("'containers':[{'name':'b'},{'name':'a'}]"),
          IN_POD("'$setElementOrder/containers':[{'name':'c'}],"
                 "'containers':[{'name':'c'},{'name':'b','$patch':'delete'}]"),
          IN_POD("'containers':[{'name':'a'},{'name':'c'}]") },
    };
    check(&deployment, t, countof(t));
}

static void scalars_merge(void)
{
    static const struct change t[] = {
        { "{'metadata':{'finalizers':['a','b']}}", "{'metadata':{'finalizers':['c','b']}}",
          "{'metadata':{'finalizers':['c','a','b']}}" },
        { "{'metadata':{'finalizers':['a','b']}}",
          "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a','z']}}",
          "{'metadata':{'finalizers':['b']}}" },
        { "{'metadata':{}}", "{'metadata':{'$deleteFromPrimitiveList/finalizers':['a']}}",
          "{'metadata':{}}" },
        { "{'metadata':{'finalizers':[]}}", "{'metadata':{'finalizers':[]}}",
          "{'metadata':{'finalizers':[]}}" },
        { "{}", "{'metadata':{'finalizers':['a'],'labels':{'x':null}}}",
          "{'metadata':{'finalizers':['a'],'labels':{}}}" },
    };
    check(&deployment, t, countof(t));
}

static void failures_say_why(void)
{
    static const struct {
        const char *object, *patch;
        int code;
        const char *sentence;
    } t[] = {
        { "{}", "[]", EINVAL, "a strategic merge patch is an object, not array" },
        { IN_POD("'containers':[{'name':'a'}]"), IN_POD("'containers':[{'image':'x:1'}]"), EBADMSG,
          "map: {\"image\":\"x:1\"} does not contain declared merge key: name" },
        { IN_POD("'containers':[{'name':'a'}]"),
          IN_POD("'containers':[{'name':'a','$patch':'merge'}]"), EBADMSG,
          "merging lists cannot yet be specified in the patch" },
        { IN_POD("'containers':[{'name':'a'}]"), IN_POD("'containers':[{'name':'a','$patch':'x'}]"),
          EBADMSG, NULL },
        { IN_POD("'containers':[{'name':'a'}]"), IN_POD("'containers':[{'$patch':'delete'}]"),
          EBADMSG, NULL },
        { IN_POD("'containers':[{'name':'a'}]"), IN_POD("'containers':[['a']]"), ENOTSUP,
          "lists of lists are not supported" },
        { IN_POD("'containers':[{'name':'a'}]"), IN_POD("'containers':['a']"), EBADMSG,
          "list element types are not identical in containers" },
        { "{'metadata':{'labels':{'a':'1'}}}", "{'metadata':{'labels':{'$patch':'merge'}}}",
          EBADMSG, NULL },
        { "{'spec':{'strategy':{}}}", "{'spec':{'strategy':{'$retainKeys':'type'}}}", EINVAL,
          NULL },
        { "{'spec':{'strategy':{}}}",
          "{'spec':{'strategy':{'$retainKeys':['type'],'rollingUpdate':{}}}}", EINVAL, NULL },
        { "{'metadata':{}}", "{'metadata':{'$setElementOrder':[]}}", EINVAL, NULL },
        { "{'metadata':{}}", "{'metadata':{'$deleteFromPrimitiveList':[]}}", EINVAL, NULL },
        { "{'metadata':{'finalizers':[]}}", "{'metadata':{'$setElementOrder/finalizers':['a']}}",
          EBADMSG, "no elements in any of the given slices for finalizers" },
        { "{'metadata':{'finalizers':['a']}}", "{'metadata':{'$setElementOrder/finalizers':1}}",
          EBADMSG, NULL },
        { IN_POD("'containers':[{'name':'a'},{'name':'b'}]"),
          IN_POD("'$setElementOrder/containers':[{'name':'a'},{'name':'b'}],"
                 "'containers':[{'name':'b'},{'name':'a'}]"),
          EBADMSG,
          "the order in the patch list containers does not match its $setElementOrder list" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct json *object = test_json_quoted(&a, t[i].object), *before = object;
        err_t e = { 0 };
        EQ_INT(strategic_patch(&a, &deployment, &object, test_json_quoted(&a, t[i].patch), &e),
               -t[i].code);
        OK(object == before);
        if (t[i].sentence)
            EQ_STR(str_c(e.text), str_c(t[i].sentence));
    }
}

static void long_lists_cost_their_length(void)
{
    auto_arena struct arena a = { 0 };
    struct json *object = json_new_obj(&a), *patch = json_new_obj(&a);
    struct json *live = json_new_arr(&a), *change = json_new_arr(&a);
    for (int i = 0; i < 30000; i++) {
        struct json *one = json_new_obj(&a);
        json_set(&a, one, S("name"), json_new_str(&a, arena_printf(&a, "c%d", i)));
        json_push(&a, i % 2 ? live : change, one);
    }
    json_set(&a, json_make(&a, object, "spec", "template", "spec", NULL), S("containers"), live);
    json_set(&a, json_make(&a, patch, "spec", "template", "spec", NULL), S("containers"), change);
    err_t e;
    OK_CALL(strategic_patch(&a, &deployment, &object, patch, &e), &e);
    EQ_INT(json_len(json_at(object, "spec", "template", "spec", "containers", NULL)), 30000);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(maps_merge),
                                        TAP(lists_merge_by_key),
                                        TAP(orders_are_set),
                                        TAP(scalars_merge),
                                        TAP(failures_say_why),
                                        TAP(long_lists_cost_their_length),
                                        { 0 } });
}
