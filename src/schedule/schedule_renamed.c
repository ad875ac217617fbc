/* HPAs that a template left behind when its name changed. Such an HPA is owned by the schedule and has the annotation of
 * its template, but another name than the template has now. It is deleted once the new one exists, so that the workload
 * is never without an HPA; two of them for a moment only repeat each other. An HPA that another user made owned by the
 * schedule lacks the annotation and stays. */
#include "schedule_turn.h"

#include "../base/log.h"

static const struct schedule_hpa_record *find_renamed(const struct schedule_turn *turn, str name)
{
    const struct schedule_object *o = &turn->pass.object;
    const struct schedule_hpa_record *hpa;
    if (!o->uid.n)
        return NULL;
    cache_each_in(hpa, turn->state->hpas, SCHEDULE_HPA_BY_OWNER, o->uid)
        if (hpa->template_hash.n && str_eq(hpa->meta.ns, o->ns) && !str_eq(hpa->meta.name, name))
            return hpa;
    return NULL;
}

static void on_renamed_deleted(struct reconcile *r, const struct kube_reply *reply)
{
    struct schedule_turn *turn = r->turn;
    if (reply->failure && reply->reason != KUBE_NOT_FOUND && reply->reason != KUBE_CONFLICT) {
        if (!kube_is_server_failure(reply))
            schedule_turn_event(turn, &(struct schedule_event){ true, "HPADeleteFailed",
                                                                str_c(reply->failure) });
        reconcile_fail_call(r, reply);
        return;
    }
    schedule_turn_step(r, turn);
}

bool schedule_turn_delete_renamed(struct reconcile *r, struct schedule_turn *turn)
{
    const struct schedule_object *o = &turn->pass.object;
    if (!o->spec->template || !turn->pass.template_found || turn->renamed_sent)
        return false;
    str name = schedule_template_target(r->arena, o->spec, o->ns, o->name).name;
    const struct schedule_hpa_record *hpa = find_renamed(turn, name);
    if (!hpa)
        return false;
    turn->renamed_sent = true; /* one per turn: the cache does not know of the deletion yet */
    struct json *body = json_new_obj(r->arena);
    json_set_str(r->arena, json_make(r->arena, body, "preconditions", NULL), "uid", hpa->meta.uid);
    log_info("deleting the HPA of a template that was renamed", KV("namespace", o->ns),
             KV("name", o->name), KV("hpa", hpa->meta.name));
    schedule_turn_event(turn,
                        &(struct schedule_event){
                            false, "HPADeleted",
                            arena_printf(r->arena,
                                         "HorizontalPodAutoscaler " STR_FMT "/" STR_FMT
                                         " is deleted: HPASpecTemplate has the name " STR_FMT
                                         " now",
                                         STR_ARG(o->ns), STR_ARG(hpa->meta.name), STR_ARG(name)) });
    reconcile_call(r,
                   &(struct kube_request){ .verb = KUBE_DELETE,
                                           .resource = &resource_hpas,
                                           .ns = o->ns,
                                           .name = hpa->meta.name,
                                           .body = json_to_str(r->arena, body) },
                   on_renamed_deleted);
    return true;
}
