#include "tap.h"

#include "apiserver/kinds/kinds.h"
#include "apiserver/schema/openapi.h"
#include "apiserver/schema/openapi_v2.h"

static const struct json *schemas_of(const struct json *document)
{
    return json_at(document, "components", "schemas", NULL);
}

static void documents_have_paths_and_schemas(void)
{
    auto_arena struct arena a = { 0 };
    size_t n = 0;
    const struct kind *const *kinds = kinds_builtin(&n);
    struct json *d = openapi_document(&a, kinds, n, S("coordination.k8s.io"), S("v1"));
    struct json *patch =
        json_at(d, "paths", "/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}",
                "patch", NULL);
    EQ_STR(json_text(json_at(patch, "x-kubernetes-group-version-kind", "kind", NULL)), S("Lease"));
    bool strict = false;
    const struct json *parameters = json_get(patch, "parameters");
    for (uint32_t i = 0; i < json_len(parameters); i++)
        strict =
            strict || str_eqc(json_text(json_get(parameters->items[i], "name")), "fieldValidation");
    OK(strict);
    const struct json *lease = json_get(schemas_of(d), "io.k8s.api.coordination.v1.Lease");
    EQ_STR(json_text(json_get(lease, "type")), S("object"));
    EQ_STR(json_text(json_at(json_item(json_get(lease, "x-kubernetes-group-version-kind"), 0),
                             "group", NULL)),
           S("coordination.k8s.io"));
    EQ_STR(json_text(json_at(schemas_of(d), "io.k8s.api.coordination.v1.LeaseSpec", "properties",
                             "leaseDurationSeconds", "type", NULL)),
           S("integer"));
    OK(json_get(schemas_of(d), "io.k8s.api.coordination.v1.LeaseList"));
    OK(json_get(schemas_of(d), "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
}

/* Every reference resolves. */
static void check_refs(struct arena *a, const struct json *node, const struct json *schemas)
{
    if (json_is(node, JSON_ARR))
        for (uint32_t i = 0; i < node->n; i++)
            check_refs(a, node->items[i], schemas);
    json_each(m, node) {
        if (str_eqc(m->key, "$ref") && json_is(m->value, JSON_STR)) {
            str name = str_from(json_text(m->value), strlen("#/components/schemas/"));
            if (!json_get_str(schemas, name))
                tap_note(__FILE__, __LINE__, STR_FMT " leads nowhere", STR_ARG(name));
        } else {
            check_refs(a, m->value, schemas);
        }
    }
}

static void references_resolve(void)
{
    auto_arena struct arena a = { 0 };
    size_t n = 0;
    const struct kind *const *kinds = kinds_builtin(&n);
    for (size_t i = 0; i < n; i++) {
        struct json *d = openapi_document(&a, kinds, n, kinds[i]->group, kinds[i]->version);
        check_refs(&a, d, schemas_of(d));
    }
}

static void custom_resources_keep_their_schema(void)
{
    auto_arena struct arena a = { 0 };
    struct json *crd = NULL;
    err_t e;
    OK_CALL(json_parse(&a,
                       S("{\"spec\":{\"group\":\"things.example.com\",\"scope\":\"Namespaced\","
                         "\"names\":{\"plural\":\"gadgets\",\"singular\":\"gadget\",\"kind\":"
                         "\"Gadget\",\"listKind\":\"GadgetList\"},\"versions\":[{\"name\":\"v1\","
                         "\"served\":true,\"storage\":true,\"schema\":{\"openAPIV3Schema\":{"
                         "\"type\":\"object\",\"description\":\"A thing.\",\"properties\":{"
                         "\"metadata\":{\"type\":\"object\"},\"spec\":{\"type\":\"object\","
                         "\"required\":[\"size\"],\"properties\":{\"size\":{\"type\":\"integer\","
                         "\"description\":\"How big.\"}}}}}}}]}}"),
                       &crd, &e),
            &e);
    struct kinds_list list;
    kinds_from_crd(&a, crd, &list);
    EQ_INT(list.n, 1);
    struct json *d = openapi_document(&a, list.at, list.n, S("things.example.com"), S("v1"));
    const struct json *gadget = json_get(schemas_of(d), "com.example.things.v1.Gadget");
    EQ_STR(json_text(json_get(gadget, "description")), S("A thing."));
    EQ_STR(json_text(json_item(json_at(gadget, "properties", "spec", "required", NULL), 0)),
           S("size"));
    EQ_STR(json_text(
               json_get(json_item(json_at(gadget, "properties", "metadata", "allOf", NULL), 0),
                        "$ref")),
           S("#/components/schemas/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
    check_refs(&a, d, schemas_of(d));
}

static void the_index_names_documents_by_their_hash(void)
{
    auto_arena struct arena a = { 0 };
    size_t n = 0;
    const struct kind *const *kinds = kinds_builtin(&n);
    struct json *index = openapi_index(&a, kinds, n);
    str core = json_text(json_at(index, "paths", "api/v1", "serverRelativeURL", NULL));
    str apps = json_text(json_at(index, "paths", "apis/apps/v1", "serverRelativeURL", NULL));
    OK(str_starts(core, S("/openapi/v3/api/v1?hash=")));
    OK(str_starts(apps, S("/openapi/v3/apis/apps/v1?hash=")));
    auto_buf struct buf text = { 0 };
    json_write(&text, openapi_document(&a, kinds, n, S("apps"), S("v1")));
    EQ_STR(str_from(apps, strlen("/openapi/v3/apis/apps/v1?hash=")),
           openapi_hash(&a, buf_str(&text)));
}

/* The form of a document that kube-apiserver sends. */
static void version_two_has_a_protobuf_form(void)
{
    static const char text[] =
        "{\"swagger\":\"2.0\",\"info\":{\"title\":\"T\",\"version\":\"v\"},\"definitions\":"
        "{\"A\":{\"type\":\"object\",\"x-k\":1,\"properties\":{\"b\":{\"minimum\":1.5,"
        "\"additionalProperties\":{\"type\":\"string\"}}}}}}";
    static const char wanted[] =
        "\012\0032.0\022\006\012\001T\022\001vB\000JB\012@\012\001A\022;"
        "\262\001\010\012\006object\372\001\012\012\003x-k\022\003\022\0011"
        "\312\001 \012\036\012\001b\022\031I\000\000\000\000\000\000\370?"
        "\252\001\015\012\013\262\001\010\012\006string";
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct json *document = NULL;
    OK(json_parse(&a, str_c(text), &document, NULL) == 0);
    openapi_v2_protobuf(&out, document);
    EQ_STR(buf_str(&out), ((str){ wanted, sizeof(wanted) - 1 }));
}

static void version_two_has_plain_references(void)
{
    auto_arena struct arena a = { 0 };
    size_t n = 0;
    const struct kind *const *kinds = kinds_builtin(&n);
    struct json *d = json_get(openapi_v2_document(&a, kinds, n, S("v1")), "definitions");
    const struct json *lease = json_get(d, "io.k8s.api.coordination.v1.Lease");
    EQ_STR(json_text(json_at(lease, "properties", "metadata", "$ref", NULL)),
           S("#/definitions/io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
    OK(!json_at(lease, "properties", "metadata", "allOf", NULL));
    EQ_STR(json_text(json_at(d, "io.k8s.apimachinery.pkg.util.intstr.IntOrString", "type", NULL)),
           S("string"));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(documents_have_paths_and_schemas),
        TAP(references_resolve),
        TAP(custom_resources_keep_their_schema),
        TAP(the_index_names_documents_by_their_hash),
        TAP(version_two_has_a_protobuf_form),
        TAP(version_two_has_plain_references),
        { 0 },
    });
}
