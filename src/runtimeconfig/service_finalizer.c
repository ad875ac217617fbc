/* Adding and removing finalizers: see service_finalizer.h. They keep an object until unfinished caches that were created
 * for it are deleted; owner references cannot do that, because finished caches must stay. */
#include "service_finalizer.h"

#include "names_core.h"

static str full_name(const struct aim_turn *t, const char *name)
{
    return aim_names_label_key(t->r->arena, aim_kinds_of(t->aim)->group, name);
}

static const struct json *list_of(const struct aim_turn *t)
{
    return json_at(t->object, "metadata", "finalizers", NULL);
}

bool aim_finalizer_has(const struct aim_turn *t, const char *name)
{
    const struct json *list = list_of(t);
    str wanted = full_name(t, name);
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eq(json_text(json_item(list, i)), wanted))
            return true;
    return false;
}

void aim_finalizer_send(struct aim_turn *t, const char *name, bool add)
{
    aim_send(t, &(struct kube_request){ .verb = KUBE_MERGE_PATCH,
                                        .resource = &aim_kinds_of(t->aim)->at[t->of->kind],
                                        .ns = t->ns,
                                        .name = t->name,
                                        .body = kube_finalizer_body(t->r->arena, t->rv, list_of(t),
                                                                    full_name(t, name), add) });
}

void aim_finalizer_release(struct aim_turn *t, const char *const *names, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (aim_finalizer_has(t, names[i])) {
            aim_finalizer_send(t, names[i], false);
            return;
        }
}
