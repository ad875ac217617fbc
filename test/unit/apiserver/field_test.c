#include "tap.h"

#include "apiserver/schema/field.h"

static void paths_have_the_form_of_kube_apiserver(void)
{
    auto_arena struct arena a = { 0 };
    struct field_path spec = { NULL, .key = S("spec") }, ports = { &spec, .key = S("ports") },
                      first = { &ports, .index = 0, .how = FIELD_INDEX },
                      name = { &first, .key = S("name") };
    EQ_STR(field_path_text(&a, &name), S("spec.ports[0].name"));
    struct field_path data = { NULL, .key = S("data") },
                      key = { &data, .key = S("a b"), .how = FIELD_KEY };
    EQ_STR(field_path_text(&a, &key), S("data[a b]"));
    EQ_STR(field_path_text(&a, NULL), S("[]"));
}

static void errors_become_causes(void)
{
    auto_arena struct arena a = { 0 };
    struct field_errors errors = { .arena = &a };
    struct field_path name = { NULL, .key = S("name") }, size = { NULL, .key = S("size") };
    field_required(&errors, &name, NULL);
    EQ_STR(field_summary(&a, &errors), S("name: Required value"));
    field_invalid(&errors, &size, json_new_int(&a, 7), "must be less than %d", 5);
    EQ_STR(field_summary(&a, &errors),
           S("[name: Required value, size: Invalid value: 7: must be less than 5]"));
    field_not_supported(&errors, &size, json_new_str(&a, S("x")),
                        (const char *const[]){ "a", "b", NULL });
    struct json *causes = field_causes(&a, &errors);
    EQ_INT(json_len(causes), 3);
    EQ_STR(json_text(json_get(json_item(causes, 0), "reason")), S("FieldValueRequired"));
    EQ_STR(json_text(json_get(json_item(causes, 1), "field")), S("size"));
    EQ_STR(json_text(json_get(json_item(causes, 2), "message")),
           S("Unsupported value: \"x\": supported values: \"a\", \"b\""));
}

static void long_values_are_cut(void)
{
    auto_arena struct arena a = { 0 };
    struct field_errors errors = { .arena = &a };
    char text[4000];
    memset(text, 'x', sizeof(text));
    for (int i = 0; i < 20; i++)
        field_invalid(&errors, NULL, json_new_str(&a, (str){ text, sizeof(text) }), "too big");
    EQ_INT(errors.n, 20);
    OK(errors.at[19].message.n < 400);
    OK(str_ends(errors.at[19].message, S("...: too big")));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(paths_have_the_form_of_kube_apiserver),
        TAP(errors_become_causes),
        TAP(long_values_are_cut),
        { 0 },
    });
}
