#include "tap.h"

#include "apiserver/kinds/kinds.h"

static struct json *crd_of(struct arena *a, const char *plural, const char *kind)
{
    struct json *v = NULL;
    err_t e;
    auto_buf struct buf text = { 0 };
    buf_printf(
        &text,
        "{\"metadata\":{\"name\":\"%s.example.com\"},\"spec\":{\"group\":\"example.com\","
        "\"scope\":\"Namespaced\",\"names\":{\"plural\":\"%s\",\"kind\":\"%s\"},\"versions\":"
        "[{\"name\":\"v1\",\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":"
        "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":"
        "{\"n\":{\"type\":\"integer\",\"default\":1}}}}}},\"subresources\":{\"status\":{},"
        "\"scale\":{\"specReplicasPath\":\".spec.n\",\"statusReplicasPath\":\".status.n\"}}}]}}",
        plural, plural, kind);
    OK_CALL(json_parse(a, buf_str(&text), &v, &e), &e);
    return v;
}

static str create(struct arena *a, struct json *crd)
{
    const struct kind *k =
        kinds_find(S("apiextensions.k8s.io"), S("v1"), S("customresourcedefinitions"));
    struct kind_env env = { .arena = a };
    struct kind_change change = { k, KIND_MAIN, crd, NULL };
    struct kind_fault fault;
    err_t e;
    OK_CALL(kind_decode(k, a, crd, NULL, &e), &e);
    kind_prepare(&change, &env, &fault);
    kind_validate(&change, &env, &fault);
    return fault.errors.n ? fault.errors.at[0].path : S("");
}

static void definitions_become_kinds(void)
{
    auto_arena struct arena a = { 0 };
    struct json *crd = crd_of(&a, "widgets", "Widget");
    EQ_STR(create(&a, crd), S(""));
    EQ_STR(json_text(json_at(crd, "spec", "names", "listKind", NULL)), S("WidgetList"));
    EQ_STR(json_text(json_at(crd, "spec", "names", "singular", NULL)), S("widget"));
    EQ_STR(json_text(json_item(json_at(crd, "status", "storedVersions", NULL), 0)), S("v1"));
    struct kinds_list list;
    kinds_from_crd(&a, crd, &list);
    if (!EQ_INT(list.n, 1))
        return;
    const struct kind *k = list.at[0];
    OK(k->custom && k->namespaced && k->storage == k);
    EQ_INT(k->subresources, 1u << KIND_STATUS | 1u << KIND_SCALE);
    struct json *object = json_new_obj(&a);
    json_set_str(&a, object, "kind", S("Widget"));
    json_set_str(&a, json_make(&a, object, "metadata", NULL), "name", S("w"));
    json_set_str(&a, json_make(&a, object, "spec", NULL), "x", S("unknown"));
    struct schema_unknown unknown = { .arena = &a };
    err_t e;
    OK_CALL(kind_decode(k, &a, object, &unknown, &e), &e);
    EQ_INT(unknown.n, 1);
    EQ_INT(json_int(json_at(object, "spec", "n", NULL), 0), 1);
    struct kind_fault fault;
    EQ_INT(json_int(json_at(kind_scale_of(k, &a, object, &fault), "spec", "replicas", NULL), 0), 1);
}

static void errors_have_the_right_path(void)
{
    auto_arena struct arena a = { 0 };
    struct json *crd = crd_of(&a, "widgets", "Widget");
    json_set_str(&a, json_get(crd, "metadata"), "name", S("other.example.com"));
    EQ_STR(create(&a, crd), S("metadata.name"));
    crd = crd_of(&a, "widgets", "Widget");
    struct json *version = json_item(json_at(crd, "spec", "versions", NULL), 0);
    json_del(json_at(version, "schema", "openAPIV3Schema", "properties", "spec", NULL), S("type"));
    EQ_STR(create(&a, crd), S("spec.validation.openAPIV3Schema.properties[spec].type"));
    crd = crd_of(&a, "widgets", "Widget");
    json_del(json_item(json_at(crd, "spec", "versions", NULL), 0), S("schema"));
    EQ_STR(create(&a, crd), S("spec.versions[0].schema.openAPIV3Schema"));
}

static str condition(const struct json *crd, const char *type, const char *key)
{
    const struct json *list = json_at(crd, "status", "conditions", NULL);
    for (uint32_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(list->items[i], "type")), type))
            return json_text(json_get(list->items[i], key));
    return S("");
}

static void name_conflicts_are_resolved(void)
{
    auto_arena struct arena a = { 0 };
    struct json *first = crd_of(&a, "things", "Thing"), *rival = crd_of(&a, "thongs", "Thing");
    create(&a, first);
    create(&a, rival);
    json_set_str(&a, json_at(rival, "spec", "names", NULL), "listKind", S("ThongList"));
    const struct json *all[] = { first, rival };
    OK(kinds_accept_crd_names(&a, first, all, 2, 0));
    EQ_STR(condition(first, "Established", "status"), S("True"));
    OK(!kinds_accept_crd_names(&a, first, all, 2, 99)); /* settled */
    OK(kinds_accept_crd_names(&a, rival, all, 2, 0));
    EQ_STR(condition(rival, "NamesAccepted", "reason"), S("KindConflict"));
    EQ_STR(condition(rival, "Established", "status"), S("False"));
    EQ_STR(json_text(json_at(rival, "status", "acceptedNames", "plural", NULL)), S("thongs"));
    OK(kinds_accept_crd_names(&a, rival, all + 1, 1, 0)); /* the first one left */
    EQ_STR(condition(rival, "NamesAccepted", "status"), S("True"));
    EQ_STR(json_text(json_at(rival, "status", "acceptedNames", "kind", NULL)), S("Thing"));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(definitions_become_kinds),
        TAP(errors_have_the_right_path),
        TAP(name_conflicts_are_resolved),
        { 0 },
    });
}
