/* What is built in can be read, and is of the declared kind. */
#include "cmd/manifests.h"
#include "tap.h"

static void crds_are_definitions(void)
{
    OK(manifests_crds[0].name);
    for (const struct manifest *m = manifests_crds; m->name; m++) {
        auto_arena struct arena a = { 0 };
        struct json *documents = NULL;
        err_t e;
        if (!OK_CALL(manifest_read(m, &a, &documents, &e), &e))
            continue;
        EQ_INT(json_len(documents), 1);
        const struct json *crd = json_item(documents, 0);
        EQ_STR(json_text(json_get(crd, "kind")), S("CustomResourceDefinition"));
        str group = json_text(json_at(crd, "spec", "group", NULL));
        str plural = json_text(json_at(crd, "spec", "names", "plural", NULL));
        EQ_STR(json_text(json_at(crd, "metadata", "name", NULL)),
               arena_printf(&a, STR_FMT "." STR_FMT, STR_ARG(plural), STR_ARG(group)));
        EQ_STR(str_c(m->name),
               arena_printf(&a, STR_FMT "_" STR_FMT ".yaml", STR_ARG(group), STR_ARG(plural)));
        struct json *versions = json_at(crd, "spec", "versions", NULL);
        OK(json_len(versions) > 0);
        for (size_t i = 0; i < json_len(versions); i++)
            OK(json_at(json_item(versions, i), "schema", "openAPIV3Schema", NULL));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(crds_are_definitions), { 0 } });
}
