#include "tap.h"

#include "apiserver/schema/types.h"

static void every_type_is_complete(void)
{
    size_t n = 0;
    const struct schema_message *const *all = types_all(&n);
    OK(n > 250);
    for (size_t i = 0; i < n; i++) {
        const struct schema_message *m = all[i];
        for (uint32_t j = 0; j < m->n_fields; j++) {
            const struct schema_field *f = &m->fields[j];
            if (!f->name.n)
                continue;
            OK(f->schema.shape != NULL);
            for (uint32_t k = 0; k < f->schema.n_list_keys; k++)
                OK(f->schema.element && schema_field(f->schema.element, f->schema.list_keys[k]));
            for (uint32_t k = 0; k < j; k++)
                if (str_eq(m->fields[k].name, f->name) ||
                    (f->number && m->fields[k].number == f->number))
                    tap_note(__FILE__, __LINE__, STR_FMT "." STR_FMT " is declared twice",
                             STR_ARG(m->name), STR_ARG(f->name));
        }
    }
}

/* An unknown format would accept everything. */
static void every_format_is_known(void)
{
    static const char *const known[] = { "dns-label",  "dns-subdomain", "qualified-name",
                                         "config-key", "env-name",      "ip",
                                         "cidr",       "sysctl",        "port" };
    size_t n = 0, used = 0;
    const struct schema_message *const *all = types_all(&n);
    for (size_t i = 0; i < n; i++) {
        for (uint32_t j = 0; j < all[i]->n_fields; j++) {
            const struct schema *s = &all[i]->fields[j].schema;
            const struct schema_limits *own = s->limits,
                                       *item = s->element ? s->element->limits : NULL;
            const str formats[] = { own ? own->format : S(""), own ? own->key_format : S(""),
                                    item ? item->format : S("") };
            for (size_t k = 0; k < countof(formats); k++) {
                bool found = !formats[k].n;
                for (size_t l = 0; l < countof(known); l++)
                    found = found || str_eqc(formats[k], known[l]);
                OK(found);
                used += formats[k].n > 0;
            }
        }
    }
    OK(used > 30);
}

static void fields_have_what_the_table_declares(void)
{
    const struct schema_message *port = types_message("core.v1.ServicePort");
    const struct schema_field *protocol =
        schema_field(&(struct schema){ .message = port }, S("protocol"));
    EQ_STR(json_text(protocol->schema.fallback), S("TCP"));
    OK(protocol->schema.limits && json_len(protocol->schema.limits->one_of_values) == 3);
    OK(protocol->presence == SCHEMA_OMIT);

    const struct schema *spec = types_schema("core.v1.PodSpec");
    const struct schema_field *containers = schema_field(spec, S("containers"));
    OK(containers->required && containers->presence == SCHEMA_ALWAYS && containers->number == 2);
    OK(containers->patch == SHAPE_PATCH_MERGE);
    EQ_STR(containers->patch_key, S("name"));
    OK(schema_shape(&containers->schema)->list == SHAPE_MAP_LIST);
    OK(shape_member(schema_shape(containers->schema.element), S("image")) != NULL);

    /* fields of an embedded type */
    const struct schema *volume = types_schema("core.v1.Volume");
    OK(schema_field(volume, S("emptyDir")) && schema_field(volume, S("emptyDir"))->number == 0);
    OK(!types_message("core.v1.NoSuch"));

    auto_arena struct arena a = { 0 };
    EQ_STR(types_openapi_name(&a, S("core.v1.Pod")), S("io.k8s.api.core.v1.Pod"));
    EQ_STR(types_openapi_name(&a, S("meta.v1.ObjectMeta")),
           S("io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(every_type_is_complete),
        TAP(every_format_is_known),
        TAP(fields_have_what_the_table_declares),
        { 0 },
    });
}
