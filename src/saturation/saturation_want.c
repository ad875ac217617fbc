/* Decisions about variants without a VariantAutoscaling, across restarts and for `flyball get
 * variants`.
 *
 * A VariantAutoscaling has its last target in its status. A variant that an HPA or ScaledObject
 * describes has no status, so the target is kept in flyball's own ConfigMap (kube/keep.h), under
 * "want.HEX" of namespace and name:
 *
 *     {"ns", "variant", "uid": of the workload, "target", "reason", "at"}
 *
 * A new leader takes it over if the workload is still the same one, as it does with a status. It is
 * written when the target changes, and removed with the variant. Only the leader writes. */
#include "../base/rfc3339.h"
#include "saturation_state.h"

static str want_key(struct arena *a, str ns, str name)
{
    return keep_key(a, "want", (const str[]){ ns, name }, 2);
}

static struct json *read_want(const struct saturation *s, struct arena *a, const struct variant *v)
{
    struct json *tree = NULL;
    str text = keep_get(s->keep, want_key(a, v->ns, v->name));
    return text.n && json_parse(a, text, &tree, NULL) == 0 ? tree : NULL;
}

void saturation_want_restore(const struct saturation *s, struct variant *v)
{
    auto_arena struct arena a = { 0 };
    if (!v->scaler || v->decided || v->desired > 0 || !s->keep || !v->workload_uid)
        return;
    const struct json *want = read_want(s, &a, v);
    int64_t target = json_int(json_get(want, "target"), 0);
    if (str_eqc(json_text(json_get(want, "uid")), v->workload_uid) && target > 0 &&
        target <= SAT_REPLICAS_MAX)
        v->desired = (int)target;
}

void saturation_want_save(const struct saturation *s, const struct variant *v, str reason)
{
    auto_arena struct arena a = { 0 };
    char at[RFC3339_TEXT_MAX];
    if (!v->scaler || !s->keep || !v->workload_uid || !manager_leads(s->manager))
        return;
    const struct json *old = read_want(s, &a, v);
    if (old && json_int(json_get(old, "target"), -1) == v->desired &&
        str_eqc(json_text(json_get(old, "uid")), v->workload_uid))
        return;
    struct json *want = json_new_obj(&a);
    json_set_str(&a, want, "ns", v->ns);
    json_set_str(&a, want, "variant", v->name);
    json_set_str(&a, want, "uid", str_c(v->workload_uid));
    json_set_int(&a, want, "target", v->desired);
    json_set_str(&a, want, "reason", reason);
    json_set_str(&a, want, "at",
                 rfc3339_text(loop_wall_ns(manager_loop(s->manager)) / NS_PER_S, at));
    keep_put(s->keep, want_key(&a, v->ns, v->name), json_to_str(&a, want));
}

void saturation_want_forget(const struct saturation *s, str ns, str name)
{
    auto_arena struct arena a = { 0 };
    str key = want_key(&a, ns, name);
    if (s->keep && manager_leads(s->manager) && keep_get(s->keep, key).n)
        keep_del(s->keep, key);
}
