/* ResourceQuotas in requests and in their controller; see admission_quota.h and kinds/quota.h.
 *
 * A quota has effect from the moment its status states what is used, as in kube-apiserver: the controller counts when a
 * quota is written, and counts again when an object of the namespace goes away or a pod changes. In between, each
 * request adds what it uses. The quota is staged before the object, in the same batch, so that two requests of one
 * turn never use the same room, and both become durable together. */
#include "admission_quota.h"
#include "../kinds/quota.h"
#include "managed.h"

/* Built on first use, like all kinds. */
static const struct kind *quota_kind(void)
{
    return kinds_find(S(""), S("v1"), S("resourcequotas"));
}

/* Updates of other kinds change nothing that is counted. */
static bool can_change_usage(const struct kind *k)
{
    static const char *const plurals[] = { "pods", "services", "persistentvolumeclaims" };
    for (size_t i = 0; i < countof(plurals); i++)
        if (!k->custom && !k->group.n && str_eqc(k->plural, plurals[i]))
            return true;
    return false;
}

bool admission_quota_has_room(struct call *c, const struct json *object, const struct json *old)
{
    struct arena *a = c->arena;
    c->quotas = NULL;
    if (!c->kind->namespaced || (old && !can_change_usage(c->kind)) ||
        !store_any_latest(c->server->store, catalog_prefix(a, quota_kind(), c->ns), NULL, NULL))
        return true;
    const struct json *quotas = write_list_latest(c->server, a, quota_kind(), c->ns);
    for (uint32_t i = 0; i < json_len(quotas); i++) {
        struct json *quota = quotas->items[i], *used = NULL;
        str why = kind_quota_refusal(a, quota, c->kind, object, old, &used);
        if (why.n) {
            call_forbidden(c, c->kind, json_text(json_at(object, "metadata", "name", NULL)),
                           STR_FMT, STR_ARG(why));
            return false;
        }
        if (!used)
            continue;
        json_set(a, json_make(a, quota, "status", NULL), S("used"), used);
        if (!c->quotas)
            c->quotas = json_new_arr(a);
        json_push(a, c->quotas, quota);
    }
    return true;
}

void admission_quota_charge(struct call *c)
{
    err_t e;
    for (uint32_t i = 0; i < json_len(c->quotas); i++) {
        struct json *quota = c->quotas->items[i];
        str name = json_text(json_at(quota, "metadata", "name", NULL));
        (void)write_stage(c->server, c->arena, quota_kind(),
                          catalog_key(c->arena, quota_kind(), c->ns, name), quota, &e);
    }
}

/* ---- counting */

/* Adds what the objects of one kind use. A kind that the quota does not mention is not read. */
static void count_kind(struct server *s, struct arena *a, const struct kind *k, str ns,
                       const struct json *quota, struct json *used)
{
    const struct json *hard = json_at(quota, "spec", "hard", NULL);
    if (!json_len(kind_quota_usage(a, k, json_new_obj(a), hard)))
        return;
    const struct json *all = write_list_latest(s, a, k, ns);
    for (uint32_t i = 0; i < json_len(all); i++)
        if (kind_quota_selects(quota, k, all->items[i]))
            kind_quota_add(a, used, kind_quota_usage(a, k, all->items[i], hard), 1);
}

bool admission_quota_count(struct server *s, str ns)
{
    auto_arena struct arena a = { 0 };
    bool changed = false;
    const struct json *quotas = write_list_latest(s, &a, quota_kind(), ns);
    for (uint32_t i = 0; i < json_len(quotas); i++) {
        struct json *quota = quotas->items[i], *was = json_copy(&a, quota);
        struct json *used = json_new_obj(&a), *status = json_make(&a, quota, "status", NULL);
        const struct json *hard = json_at(quota, "spec", "hard", NULL);
        json_each(m, hard)
            json_set(&a, used, m->key, json_new_str(&a, S("0")));
        for (size_t n = 0; n < s->catalog.all.n; n++) {
            const struct kind *k = s->catalog.all.at[n];
            if (k->namespaced && k == k->storage && !k->answer_only)
                count_kind(s, &a, k, ns, quota, used);
        }
        if (json_len(hard)) {
            json_set(&a, status, S("hard"), json_copy(&a, hard));
            json_set(&a, status, S("used"), used);
        }
        if (json_eq(was, quota))
            continue;
        str name = json_text(json_at(quota, "metadata", "name", NULL));
        managed_update_as(s, &a, quota_kind(),
                          &(struct managed_change){ S("kube-controller-manager"), KIND_STATUS, was,
                                                    quota });
        changed |=
            write_end_edit(s, &a, quota_kind(), catalog_key(&a, quota_kind(), ns, name), quota);
    }
    return changed;
}
