/* POST to pods/eviction: deletes a pod if its disruption budget allows it; quoted: kube-apiserver.
 *
 * Pods that do not run need no budget. A budget that has room loses one disruption and remembers the pod before the pod is
 * deleted, so that a second eviction cannot use the same room; if the delete then fails (a precondition), the room stays
 * used until the controller of the budget counts again, as in kube-apiserver. */
#include "read.h"
#include "remove.h"
#include "verbs.h"

enum { RETRY_S = 10, DISRUPTED_MAX = 2000 };

/* Built on first use, like all kinds. */
static const struct kind *budget_kind(void)
{
    return kinds_find(S("policy"), S("v1"), S("poddisruptionbudgets"));
}

/* A pod without the condition is not ready. */
static bool is_ready(const struct json *pod)
{
    const struct json *list = json_at(pod, "status", "conditions", NULL);
    for (size_t i = 0; i < json_len(list); i++)
        if (str_eqc(json_text(json_get(json_item(list, i), "type")), "Ready"))
            return str_eqc(json_text(json_get(json_item(list, i), "status")), "True");
    return false;
}

/* Pods that do not run serve no requests. */
static bool needs_budget(const struct json *pod)
{
    str phase = json_text(json_at(pod, "status", "phase", NULL));
    return !str_eqc(phase, "Succeeded") && !str_eqc(phase, "Failed") &&
           !str_eqc(phase, "Pending") && !json_at(pod, "metadata", "deletionTimestamp", NULL);
}

/* 429 with one cause, which clients such as kubectl drain retry. Always false. */
static bool refuse_eviction(struct call *c, str why, int retry_after_s)
{
    struct json *causes = json_new_arr(c->arena), *cause = json_new_obj(c->arena);
    json_set_str(c->arena, cause, "reason", S("DisruptionBudget"));
    json_set_str(c->arena, cause, "message", why);
    json_push(c->arena, causes, cause);
    call_status(c, &(struct status){ .code = 429,
                                     .reason = "TooManyRequests",
                                     .message = S("Cannot evict pod as it would violate the pod's "
                                                  "disruption budget."),
                                     .causes = causes,
                                     .retry_after_s = retry_after_s });
    return false;
}

/* Takes one disruption from the budget. */
static void use_budget(struct call *c, struct json *budget)
{
    struct arena *a = c->arena;
    struct json *status = json_make(a, budget, "status", NULL);
    int64_t left = json_int(json_get(status, "disruptionsAllowed"), 0) - 1;
    err_t e;
    json_set_int(a, status, "disruptionsAllowed", left);
    json_set(a, json_make(a, status, "disruptedPods", NULL), c->name,
             json_new_str(a, server_time(c->server, a)));
    if (left == 0) {
        struct json *list = json_get(status, "conditions"), *condition = json_new_obj(a);
        if (!list)
            json_set(a, status, S("conditions"), list = json_new_arr(a));
        for (size_t i = json_len(list); i-- > 0;)
            if (str_eqc(json_text(json_get(json_item(list, i), "type")), "DisruptionAllowed"))
                json_remove(list, i);
        json_set_str(a, condition, "type", S("DisruptionAllowed"));
        json_set_str(a, condition, "status", S("False"));
        json_set_int(a, condition, "observedGeneration",
                     json_int(json_get(status, "observedGeneration"), 0));
        json_set_str(a, condition, "lastTransitionTime", server_time(c->server, a));
        json_set_str(a, condition, "reason", S("InsufficientPods"));
        json_set_str(a, condition, "message", S(""));
        json_push(a, list, condition);
    }
    str name = json_text(json_at(budget, "metadata", "name", NULL));
    (void)write_stage(c->server, a, budget_kind(), catalog_key(a, budget_kind(), c->ns, name),
                      budget, &e);
}

/* The order of the checks decides which message a client sees.
 * False: answered. */
static bool check_budget(struct call *c, struct json *budget, const struct json *pod, bool dry_run)
{
    const struct json *status = json_get(budget, "status");
    str name = json_text(json_at(budget, "metadata", "name", NULL));
    str policy = json_text(json_at(budget, "spec", "unhealthyPodEvictionPolicy", NULL));
    int64_t healthy = json_int(json_get(status, "currentHealthy"), 0);
    int64_t wanted = json_int(json_get(status, "desiredHealthy"), 0);
    int64_t allowed = json_int(json_get(status, "disruptionsAllowed"), 0);
    if (!is_ready(pod) && (str_eqc(policy, "AlwaysAllow") || (healthy >= wanted && wanted > 0)))
        return true;
    if (json_int(json_get(status, "observedGeneration"), 0) <
        json_int(json_at(budget, "metadata", "generation", NULL), 0))
        return refuse_eviction(c,
                               arena_printf(c->arena,
                                            "The disruption budget " STR_FMT
                                            " is still being processed by the server.",
                                            STR_ARG(name)),
                               RETRY_S);
    if (allowed < 0 || json_len(json_get(status, "disruptedPods")) > DISRUPTED_MAX) {
        call_forbidden(c, budget_kind(), name, "%s",
                       allowed < 0 ? "pdb disruptions allowed is negative"
                                   : "DisruptedPods map too big - too many evictions not confirmed "
                                     "by PDB controller");
        return false;
    }
    if (!allowed)
        return refuse_eviction(c,
                               arena_printf(c->arena,
                                            "The disruption budget " STR_FMT
                                            " needs %lld healthy pods and has %lld currently",
                                            STR_ARG(name), (long long)wanted, (long long)healthy),
                               0);
    if (!dry_run)
        use_budget(c, budget);
    return true;
}

/* Asks the budget that selects the pod, if there is one. False: answered. */
static bool check_budgets(struct call *c, const struct json *pod, bool dry_run)
{
    const struct json *all = write_list_latest(c->server, c->arena, budget_kind(), c->ns);
    const struct json *labels = json_at(pod, "metadata", "labels", NULL);
    struct json *found = NULL;
    for (size_t i = 0; i < json_len(all); i++) {
        struct json *budget = json_item(all, i);
        if (!kind_selector_matches(json_at(budget, "spec", "selector", NULL), labels))
            continue;
        if (found) {
            call_status(c, &(struct status){ .code = 500,
                                             .message = S("This pod has more than one "
                                                          "PodDisruptionBudget, which the eviction "
                                                          "subresource does not support.") });
            return false;
        }
        found = budget;
    }
    return !found || check_budget(c, found, pod, dry_run);
}

/* uid and resourceVersion of the options. False: answered. */
static bool check_preconditions(struct call *c, const struct json *options,
                                const struct object *pod)
{
    const struct json *wanted = json_get(options, "preconditions");
    str uid = json_text(json_get(wanted, "uid"));
    str version = json_text(json_get(wanted, "resourceVersion"));
    if ((!uid.n || str_eq(uid, object_span(pod, pod->uid))) &&
        (!version.n || str_eq(version, object_span(pod, pod->rv))))
        return true;
    call_conflict(c, c->kind, c->name,
                  S("the UID or resourceVersion in the precondition is not that of the record. The "
                    "object might have been deleted and then recreated"));
    return false;
}

void eviction_post(struct call *c, const struct write_options *o, const struct json *eviction)
{
    const struct object *pod =
        store_latest(c->server->store, catalog_key(c->arena, c->kind, c->ns, c->name));
    const struct json *options = json_get(eviction, "deleteOptions");
    bool dry = o->dry_run || json_len(json_get(options, "dryRun"));
    if (!str_eq(json_text(json_at(eviction, "metadata", "name", NULL)), c->name)) {
        call_bad_request(c, "name in URL does not match name in Eviction object");
        return;
    }
    if (!pod) {
        call_not_found(c, c->kind, c->name);
        return;
    }
    const struct json *tree = read_tree(c->arena, c->kind, pod);
    if ((needs_budget(tree) && !check_budgets(c, tree, dry)) ||
        !check_preconditions(c, options, pod))
        return;
    struct removed r =
        remove_object(c->server, c->arena, c->kind, pod,
                      &(struct remove_options){
                          .grace_s = json_int(json_get(options, "gracePeriodSeconds"), -1),
                          .dry_run = dry });
    if (r.how == REMOVAL_FAILED)
        write_stage_error(c, &r.error);
    else
        call_status(c, &(struct status){ .code = 201 });
}
