/* Lookups by name, when a cache is made. See prototable.h; reading messages needs numbers only. */
#include "prototable.h"

const struct prototable_message *prototable_find(const struct prototable *t, const char *group,
                                                 const char *version, const char *kind)
{
    for (size_t i = 0; i < t->n_kinds; i++) {
        const struct prototable_kind *k = &t->kinds[i];
        if (!strcmp(k->kind, kind) && !strcmp(k->group, group) && !strcmp(k->version, version))
            return &t->messages[k->message];
    }
    return NULL;
}

const struct prototable_field *prototable_member(const struct prototable *t,
                                                 const struct prototable_message *m, str name)
{
    for (unsigned i = 0; i < m->n; i++)
        if (str_eq(prototable_name(t, &t->fields[m->first + i]), name))
            return &t->fields[m->first + i];
    return NULL;
}
