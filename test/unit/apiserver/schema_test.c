#include "tap.h"
#include "test_json.h"

#include "apiserver/schema/schema.h"

static const struct schema *schema_of(struct arena *a, const char *properties)
{
    auto_buf struct buf text = { 0 };
    buf_printf(&text, "{'type':'object','properties':{%s}}", properties);
    struct field_errors errors = { .arena = a };
    const struct schema *s = schema_from_openapi(a, test_json_quoted(a, text.p), NULL, &errors);
    EQ_STR(field_summary(a, &errors), S(""));
    return s;
}

/* All errors as "path:Reason path:Reason". */
static str faults(struct arena *a, const struct field_errors *errors)
{
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < errors->n; i++)
        buf_printf(&text, "%s" STR_FMT ":%s", i ? " " : "", STR_ARG(errors->at[i].path),
                   field_reason_word(errors->at[i].reason) + strlen("FieldValue"));
    return arena_str(a, buf_str(&text));
}

static void values_are_validated(void)
{
    static const struct {
        const char *properties, *value, *want;
    } t[] = {
        { "'a':{'type':'string'}", "{'a':'x'}", "" },
        { "'a':{'type':'string'}", "{'a':1}", "a:TypeInvalid" },
        { "'a':{'type':'string'}", "{'a':null}", "a:TypeInvalid" },
        { "'a':{'type':'string','nullable':true}", "{'a':null}", "" },
        { "'a':{'type':'integer'}", "{'a':1.5}", "a:TypeInvalid" },
        { "'a':{'type':'integer'}", "{'a':2.0}", "" },
        { "'a':{'type':'number'}", "{'a':2}", "" },
        { "'a':{'type':'boolean'}", "{'a':'true'}", "a:TypeInvalid" },
        { "'a':{'type':'string','minLength':2,'maxLength':3}", "{'a':'x'}", "a:Invalid" },
        { "'a':{'type':'string','minLength':2,'maxLength':3}", "{'a':'xxxx'}", "a:TooLong" },
        { "'a':{'type':'string','maxLength':2}", "{'a':'\xc3\xbc\xc3\xbc'}", "" },
        { "'a':{'type':'string','enum':['x','y']}", "{'a':'z'}", "a:NotSupported" },
        { "'a':{'type':'string','enum':['x']}", "{'a':1}", "a:TypeInvalid a:NotSupported" },
        { "'a':{'type':'string','pattern':'^a+$'}", "{'a':'b'}", "a:Invalid" },
        { "'a':{'type':'string','format':'date-time'}", "{'a':'tomorrow'}", "a:TypeInvalid" },
        { "'a':{'type':'integer','minimum':1,'maximum':3}", "{'a':0}", "a:Invalid" },
        { "'a':{'type':'integer','minimum':1,'maximum':3}", "{'a':4}", "a:Invalid" },
        { "'a':{'type':'number','minimum':0,'exclusiveMinimum':true}", "{'a':0}", "a:Invalid" },
        { "'a':{'type':'number','multipleOf':0.1}", "{'a':0.3}", "" },
        { "'a':{'type':'integer','multipleOf':5}", "{'a':7}", "a:Invalid" },
        { "'a':{'type':'array','items':{'type':'integer'},'maxItems':1}", "{'a':[1,'2']}",
          "a:TooMany a[1]:TypeInvalid" },
        { "'a':{'type':'array','items':{'type':'string'},'x-kubernetes-list-type':'set'}",
          "{'a':['x','y','x']}", "a[2]:Duplicate" },
        { "'a':{'type':'object','maxProperties':1,'additionalProperties':{'type':'integer'}}",
          "{'a':{'k':'v'}}", "a.k:TypeInvalid" },
        { "'a':{'type':'object','properties':{'b':{'type':'string'}},'required':['b','c']}",
          "{'a':{}}", "a.b:Required a.c:Required" },
        { "'a':{'x-kubernetes-int-or-string':true}", "{'a':true}", "a:TypeInvalid" },
        { "'a':{'x-kubernetes-int-or-string':true,'pattern':'^x'}", "{'a':5}", "" },
        { "'a':{'x-kubernetes-int-or-string':true,'pattern':'^x'}", "{'a':'5'}", "a:Invalid" },
        { "'a':{'type':'integer','oneOf':[{'minimum':5},{'maximum':7}]}", "{'a':6}",
          "<nil>:Invalid" },
        { "'a':{'type':'integer','oneOf':[{'minimum':5},{'maximum':3}]}", "{'a':6}", "" },
        { "'a':{'type':'integer','anyOf':[{'minimum':5},{'maximum':3}]}", "{'a':4}",
          "<nil>:Invalid a:Invalid" },
        { "'a':{'type':'integer','not':{'minimum':5}}", "{'a':6}", "<nil>:Invalid" },
        { "'a':{'type':'integer','allOf':[{'minimum':5},{'maximum':9}]}", "{'a':6}", "" },
        { "'a':{'type':'object','x-kubernetes-embedded-resource':true,"
          "'x-kubernetes-preserve-unknown-fields':true}",
          "{'a':{'kind':'X'}}", "a.apiVersion:Required" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        struct field_errors errors = { .arena = &a };
        const struct schema *s = schema_of(&a, t[i].properties);
        if (s)
            schema_validate(s, test_json_quoted(&a, t[i].value), NULL, NULL, &errors);
        EQ_STR(faults(&a, &errors), str_c(t[i].want));
    }
}

static void unchanged_values_are_not_reported(void)
{
    auto_arena struct arena a = { 0 };
    const struct schema *s = schema_of(
        &a, "'a':{'type':'integer','maximum':1},'b':{'type':'integer','maximum':1},"
            "'l':{'type':'array','x-kubernetes-list-type':'map','x-kubernetes-list-map-keys':['k'],"
            "'items':{'type':'object','required':['k'],'properties':{'k':{'type':'string'},"
            "'v':{'type':'integer','maximum':1}}}}");
    struct json *old = test_json_quoted(&a, "{'a':5,'b':1,'l':[{'k':'x','v':7},{'k':'y','v':1}]}");
    struct json *new = test_json_quoted(&a, "{'a':5,'b':2,'l':[{'k':'y','v':3},{'k':'x','v':7}]}");
    struct field_errors errors = { .arena = &a };
    schema_validate(s, new, old, NULL, &errors);
    EQ_STR(faults(&a, &errors), S("b:Invalid l[0].v:Invalid"));
}

static void unknown_fields_are_dropped(void)
{
    auto_arena struct arena a = { 0 };
    const struct schema *s = schema_of(
        &a,
        "'spec':{'type':'object','properties':{'a':{'type':'string'},"
        "'keep':{'type':'object','x-kubernetes-preserve-unknown-fields':true,"
        "'properties':{'p':{'type':'object','properties':{'q':{'type':'string'}}}}},"
        "'l':{'type':'array','items':{'type':'object','properties':{'b':{'type':'string'}}}}}}");
    struct json *v =
        test_json_quoted(&a, "{'kind':'K','metadata':{'name':'n'},'x':1,'spec':{'a':'1','b':2,"
                             "'keep':{'z':{'y':1},'p':{'q':'1','r':2}},'l':[{'b':'1','c':2}]}}");
    struct schema_unknown unknown = { .arena = &a };
    schema_prune(s, v, true, &unknown);
    EQ_STR(json_to_str(&a, v),
           json_to_str(&a,
                       test_json_quoted(&a,
                                        "{'kind':'K','metadata':{'name':'n'},'spec':{'a':'1',"
                                        "'keep':{'z':{'y':1},'p':{'q':'1'}},'l':[{'b':'1'}]}}")));
    if (EQ_INT(unknown.n, 4)) {
        EQ_STR(unknown.paths[0], S("x"));
        EQ_STR(unknown.paths[1], S("spec.b"));
        EQ_STR(unknown.paths[2], S("spec.keep.p.r"));
        EQ_STR(unknown.paths[3], S("spec.l[0].c"));
    }
}

static void absent_fields_get_their_default(void)
{
    auto_arena struct arena a = { 0 };
    const struct schema *s = schema_of(
        &a, "'s':{'type':'object','default':{},'properties':{'n':{'type':'integer','default':3},"
            "'m':{'type':'integer','nullable':true,'default':4}}},"
            "'l':{'type':'array','items':{'type':'object','properties':{'p':{'type':'string',"
            "'default':'TCP'}}}},'o':{'type':'object','properties':{'d':{'type':'string',"
            "'default':'x'}}},'m':{'type':'object','additionalProperties':{'type':'object',"
            "'properties':{'e':{'type':'string','default':'y'}}}}");
    struct json *v = test_json_quoted(&a, "{'l':[{},{'p':'UDP'}],'m':{'k':{}}}");
    schema_default(s, &a, v);
    OK(json_eq(v, test_json_quoted(&a, "{'l':[{'p':'TCP'},{'p':'UDP'}],'m':{'k':{'e':'y'}},"
                                       "'s':{'n':3,'m':4}}")));
    v = test_json_quoted(&a, "{'s':{'n':null,'m':null}}");
    schema_default(s, &a, v);
    OK(json_eq(v, test_json_quoted(&a, "{'s':{'n':3,'m':null}}")));
}

static void definitions_must_be_structural(void)
{
    static const struct {
        const char *schema, *want;
    } t[] = {
        { "{'type':'string'}", "type:Invalid" },
        { "{}", "type:Required" },
        { "{'type':'object','properties':{'a':{}}}", "properties[a].type:Required" },
        { "{'type':'object','properties':{'a':{'x-kubernetes-preserve-unknown-fields':true}}}",
          "" },
        { "{'type':'object','properties':{'a':{'type':'text'}}}",
          "properties[a].type:NotSupported" },
        { "{'type':'object','properties':{'a':{'type':'array'}}}", "properties[a].items:Required" },
        { "{'type':'object','properties':{'a':{'type':'array','items':{}}}}",
          "properties[a].items.type:Required" },
        { "{'type':'object','properties':{'a':{'type':'string','default':5}}}",
          "properties[a].default:TypeInvalid" },
        { "{'type':'object','properties':{'a':{'type':'object','default':{'x':1}}}}",
          "properties[a].default:Invalid" },
        { "{'type':'object','properties':{'a':{'type':'string','pattern':'['}}}",
          "properties[a].pattern:Invalid" },
        { "{'type':'object','additionalProperties':{'type':'string'}}",
          "additionalProperties:Forbidden" },
        { "{'type':'object','properties':{'a':{'type':'object','properties':{'b':{'type':"
          "'string'}},'additionalProperties':{'type':'string'}}}}",
          "properties[a].additionalProperties:Forbidden" },
        { "{'type':'object','properties':{'a':{'type':'array','uniqueItems':true,'items':{'type':"
          "'string'}}}}",
          "properties[a].uniqueItems:Forbidden" },
        { "{'type':'object','properties':{'l':{'type':'array','items':{'type':'object','properties'"
          ":{'a':{'type':'string'}}},'x-kubernetes-list-type':'map'}}}",
          "properties[l].x-kubernetes-list-map-keys:Required" },
        { "{'type':'object','properties':{'l':{'type':'array','items':{'type':'object','properties'"
          ":{'a':{'type':'string'}}},'x-kubernetes-list-type':'map',"
          "'x-kubernetes-list-map-keys':['a']}}}",
          "properties[l].items.properties[a].default:Required" },
        { "{'type':'object','properties':{'l':{'type':'array','items':{'type':'object'},"
          "'x-kubernetes-list-type':'set'}}}",
          "properties[l].items.x-kubernetes-map-type:Invalid" },
        { "{'type':'object','properties':{'a':{'type':'string','x-kubernetes-list-type':'set'}}}",
          "properties[a].type:Invalid" },
        { "{'type':'object','properties':{'a':{'type':'integer','anyOf':[{'type':'integer'}]}}}",
          "properties[a].anyOf[0].type:Forbidden" },
        { "{'type':'object','properties':{'a':{'x-kubernetes-int-or-string':true,'anyOf':[{'type':"
          "'integer'},{'type':'string'}]}}}",
          "" },
        { "{'type':'object','anyOf':[{'properties':{'b':{'minimum':1}}}]}",
          "properties[b]:Required" },
        { "{'type':'object','properties':{'metadata':{'type':'object','properties':{'labels':"
          "{'type':'object'}}}}}",
          "properties[metadata]:Forbidden" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        struct field_errors errors = { .arena = &a };
        schema_from_openapi(&a, test_json_quoted(&a, t[i].schema), NULL, &errors);
        EQ_STR(faults(&a, &errors), str_c(t[i].want));
    }
    OK(schema_has_cel_rules(
        test_json_quoted(&a, "{'properties':{'a':{'x-kubernetes-validations':[{}]}}}")));
    OK(!schema_has_cel_rules(
        test_json_quoted(&a, "{'properties':{'a':{'x-kubernetes-validations':[]}}}")));
}

static void shapes_follow_the_schema(void)
{
    auto_arena struct arena a = { 0 };
    const struct schema *s = schema_of(
        &a, "'o':{'type':'object','x-kubernetes-map-type':'atomic','properties':{'x':{'type':"
            "'string'}}},'l':{'type':'array','x-kubernetes-list-type':'map',"
            "'x-kubernetes-list-map-keys':['k'],'items':{'type':'object','properties':{'k':{'type':"
            "'string','default':'d'}}}},'s':{'type':'array','x-kubernetes-list-type':'set','items':"
            "{'type':'string'}},'m':{'type':'object','additionalProperties':{'type':'string'}}");
    const struct shape *shape = schema_shape(s);
    const struct shape *o = shape_member(shape, S("o")), *l = shape_member(shape, S("l"));
    OK(o->kind == SHAPE_OBJ && o->atomic && shape_field(o, S("x")));
    OK(l->kind == SHAPE_LIST && l->list == SHAPE_MAP_LIST && l->n_keys == 1);
    EQ_STR(json_text(shape_field(l->element, S("k"))->value_if_absent), S("d"));
    OK(shape_member(shape, S("s"))->list == SHAPE_SET_LIST);
    OK(shape_member(shape_member(shape, S("m")), S("any"))->kind == SHAPE_SCALAR);
    OK(!shape_member(shape, S("nosuch")));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(values_are_validated),
        TAP(unchanged_values_are_not_reported),
        TAP(unknown_fields_are_dropped),
        TAP(absent_fields_get_their_default),
        TAP(definitions_must_be_structural),
        TAP(shapes_follow_the_schema),
        { 0 },
    });
}
