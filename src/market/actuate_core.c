/* The controller's step: see actuate_core.h. */
#include "actuate_core.h"

#include "limit_core.h"

#include "../base/clock.h"
#include "../base/quantity.h"

const char *const actuate_phase_names[ACTUATE_PHASE_N] = { "Pending", "Applied", "Failed" };

static const int64_t backoff_first_ns = 5 * NS_PER_S, backoff_most_ns = 300 * NS_PER_S;
static const int64_t look_again_ns = 5 * NS_PER_S, room_look_ns = NS_PER_S;

static const char restore_failed[] = "RestoreFailed";

/* ---- sums */

static int64_t limit_or_request(int64_t limit, int64_t request)
{
    return limit >= 0 ? limit : MAX(request, (int64_t)0);
}

int64_t actuate_spec_limit(const struct actuate_pod *pod)
{
    int64_t sum = 0;
    for (size_t i = 0; i < pod->n; i++)
        sum += limit_or_request(pod->containers[i].limit_milli, pod->containers[i].request_milli);
    return sum;
}

int64_t actuate_claimed_limit(const struct actuate_pod *pod)
{
    int64_t sum = 0;
    for (size_t i = 0; i < pod->n; i++) {
        const struct actuate_container *c = &pod->containers[i];
        sum += MAX(limit_or_request(c->limit_milli, c->request_milli),
                   limit_or_request(c->now_limit, c->now_request));
    }
    return sum;
}

int64_t actuate_least_limit(const struct actuate_pod *pod)
{
    int64_t sum = 0;
    for (size_t i = 0; i < pod->n; i++) {
        const struct actuate_container *c = &pod->containers[i];
        sum += c->fixed ? limit_or_request(c->limit_milli, c->request_milli) : SHARE_MIN_MILLI + 1;
    }
    return sum;
}

/* What the node says is in force: -1 where it does not say. */
static void sum_in_force(const struct actuate_pod *pod, struct actuate_plan *plan)
{
    plan->in_force_request = plan->in_force_limit = 0;
    for (size_t i = 0; i < pod->n; i++) {
        const struct actuate_container *c = &pod->containers[i];
        int64_t request = c->allocated_milli >= 0 ? c->allocated_milli : c->now_request;
        if (c->now_limit < 0 && request < 0 && (c->limit_milli >= 0 || c->request_milli >= 0)) {
            plan->in_force_request = plan->in_force_limit = -1;
            return;
        }
        plan->in_force_request += MAX(request, (int64_t)0);
        plan->in_force_limit += limit_or_request(c->now_limit, request);
    }
}

static bool has_limits(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++)
        if (pod->containers[i].limit_milli < 0)
            return false;
    return true;
}

/* ---- targets */

/* The weights are what the containers had when nobody had touched them. */
static int64_t original_share(const struct actuate_container *c, bool has_originals)
{
    int64_t limit = has_originals ? c->original_limit : c->limit_milli;
    int64_t request = has_originals ? c->original_request : c->request_milli;
    return limit > 0 ? limit : request > 0 ? request : 100;
}

static void fill_shares(const struct actuate_input *in, struct container_share *shares)
{
    for (size_t i = 0; i < in->pod.n; i++) {
        const struct actuate_container *c = &in->pod.containers[i];
        shares[i] = (struct container_share){
            .weight_milli = original_share(c, in->memory.has_originals),
            .fixed = c->fixed,
            .limit_milli = c->fixed ? limit_or_request(c->limit_milli, c->request_milli) : 0,
            .request_milli = c->fixed ? MAX(c->request_milli, (int64_t)0) : 0,
        };
    }
}

static int split(struct arena *a, const struct actuate_input *in, int64_t limit, int64_t request,
                 err_t *e)
{
    struct container_share *shares = arena_array(a, in->pod.n, sizeof(*shares));
    struct resize_room room = { 0 };
    fill_shares(in, shares);
    for (size_t i = 0; i < in->pod.n; i++)
        resize_room_add(&room, &shares[i]);
    limit = resize_limit_within(&room, limit);
    request = resize_request_within(&room, limit, request);
    int r = resize_split(limit, request, shares, in->pod.n, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < in->pod.n; i++) {
        struct actuate_container *c = &in->pod.containers[i];
        c->target_limit = c->fixed ? c->limit_milli : shares[i].limit_milli;
        c->target_request = c->fixed                        ? c->request_milli
                            : in->pod.qos == QOS_GUARANTEED ? c->target_limit
                                                            : shares[i].request_milli;
    }
    return 0;
}

/* A limit that was added cannot be taken away again, only be made to mean nothing. */
static void target_originals(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++) {
        struct actuate_container *c = &pod->containers[i];
        c->target_request =
            c->original_request < 0 && c->request_milli >= 0 ? 0 : c->original_request;
        c->target_limit = c->original_limit < 0 && c->limit_milli >= 0
                              ? MAX(ACTUATE_UNLIMITED_MILLI, c->target_request)
                              : c->original_limit;
        if (c->fixed) {
            c->target_request = c->request_milli;
            c->target_limit = c->limit_milli;
        }
    }
}

/* Back to what the node admitted; false when it does not say. */
static bool target_admitted(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++) {
        struct actuate_container *c = &pod->containers[i];
        int64_t request = c->allocated_milli >= 0 ? c->allocated_milli : c->now_request;
        if (request < 0 || (c->now_limit < 0 && c->limit_milli >= 0))
            return false;
        c->target_request = request;
        c->target_limit = c->now_limit;
    }
    return true;
}

static bool spec_is_target(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++) {
        const struct actuate_container *c = &pod->containers[i];
        if (c->request_milli != c->target_request || c->limit_milli != c->target_limit)
            return false;
    }
    return true;
}

static int64_t target_limit(const struct actuate_pod *pod)
{
    int64_t sum = 0;
    for (size_t i = 0; i < pod->n; i++)
        sum += limit_or_request(pod->containers[i].target_limit, pod->containers[i].target_request);
    return sum;
}

/* ---- verdicts */

static struct actuate_plan verdict(enum actuate_phase phase, const char *reason, str message)
{
    return (struct actuate_plan){ .phase = phase, .reason = reason, .message = message };
}

/* The runtime knows requests only as shares, which are coarser: what the node admitted decides. */
static bool is_enacted(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++) {
        const struct actuate_container *c = &pod->containers[i];
        bool request = c->request_milli == c->now_request || c->request_milli == c->allocated_milli;
        if (c->limit_milli != c->now_limit || (c->request_milli >= 0 && !request))
            return false;
    }
    return true;
}

static int64_t error_backoff(int n)
{
    return n >= 7 ? backoff_most_ns : MIN(backoff_first_ns << MAX(n - 1, 0), backoff_most_ns);
}

/* The spec is as it should be: has the node followed? `done` is what to say then. */
static struct actuate_plan follow(struct arena *a, const struct actuate_input *in,
                                  struct actuate_plan done)
{
    const struct actuate_pod *pod = &in->pod;
    if (str_eqc(pod->progress, "Error")) {
        struct actuate_plan plan =
            verdict(ACTUATE_PENDING, "ResizeError",
                    arena_printf(a, "the node could not carry out the resize: " STR_FMT,
                                 STR_ARG(pod->progress_message)));
        plan.wake_ns = error_backoff(in->memory.error_n + 1);
        return plan;
    }
    if (!pod->pending.n && !pod->progressing && is_enacted(pod)) {
        done.verified = true;
        return done;
    }
    struct actuate_plan plan =
        verdict(ACTUATE_PENDING, "Applying",
                pod->progressing ? S("the node is carrying out the resize")
                                 : S("the resize was accepted; the node has not taken it up yet"));
    plan.wake_ns = look_again_ns;
    return plan;
}

static struct actuate_plan send(struct actuate_plan plan, const struct actuate_input *in)
{
    plan.patch = true;
    plan.from_milli = actuate_spec_limit(&in->pod);
    plan.to_milli = target_limit(&in->pod);
    return plan;
}

/* The node said no: the spec goes back, so that the room it reserves is free again. */
static struct actuate_plan withdraw(struct arena *a, const struct actuate_input *in, bool for_good)
{
    const struct actuate_pod *pod = &in->pod;
    struct actuate_plan plan =
        for_good ? verdict(ACTUATE_FAILED, "Infeasible",
                           arena_printf(a, "the node can never give that: " STR_FMT,
                                        STR_ARG(pod->pending_message)))
                 : verdict(ACTUATE_FAILED, "Deferred",
                           arena_printf(a, "the node had no room for a minute: " STR_FMT,
                                        STR_ARG(pod->pending_message)));
    plan.infeasible_milli = for_good ? actuate_spec_limit(pod) : 0;
    plan.wake_ns = for_good ? ACTUATE_INFEASIBLE_NS : ACTUATE_REFUSED_NS;
    return target_admitted(pod) && !spec_is_target(pod) ? send(plan, in) : plan;
}

/* What the node says about a spec that is what we want. */
static struct actuate_plan settle(struct arena *a, const struct actuate_input *in,
                                  struct actuate_plan done)
{
    const struct actuate_pod *pod = &in->pod;
    if (str_eqc(pod->pending, "Infeasible"))
        return withdraw(a, in, true);
    if (str_eqc(pod->pending, "Deferred")) {
        int64_t since = pod->pending_since_ns ? pod->pending_since_ns : in->memory.attempted_ns;
        int64_t waited = in->now_ns - since;
        if (since && waited >= ACTUATE_DEFERRED_NS)
            return withdraw(a, in, false);
        struct actuate_plan plan = verdict(ACTUATE_PENDING, "Deferred",
                                           arena_printf(a, "the node has no room yet: " STR_FMT,
                                                        STR_ARG(pod->pending_message)));
        plan.wake_ns = since ? ACTUATE_DEFERRED_NS - MAX(waited, (int64_t)0) : ACTUATE_DEFERRED_NS;
        return plan;
    }
    return follow(a, in, done);
}

/* ---- pods that are not ours to resize */

static struct actuate_plan give_back(struct arena *a, const struct actuate_input *in)
{
    struct actuate_plan done =
        verdict(ACTUATE_APPLIED, "Excluded",
                in->restore ? S("the market gives all pods back: this one has what it had before")
                            : S("the pod opted out of the market"));
    if (!in->memory.has_originals) {
        done.verified = true;
        return done;
    }
    target_originals(&in->pod);
    if (!spec_is_target(&in->pod)) {
        if (str_eqc(in->memory.refusal_reason, restore_failed) &&
            in->now_ns < in->memory.attempted_ns + ACTUATE_REFUSED_NS)
            return (struct actuate_plan){ .phase = ACTUATE_FAILED,
                                          .reason = restore_failed,
                                          .message = in->memory.refusal_message,
                                          .wake_ns = in->memory.attempted_ns + ACTUATE_REFUSED_NS -
                                                     in->now_ns };
        return send(verdict(ACTUATE_PENDING, "Restoring", S("the pod gets back what it had")), in);
    }
    struct actuate_plan plan = follow(a, in, done);
    plan.delete_originals = plan.verified;
    return plan;
}

static bool can_move(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++)
        if (!pod->containers[i].fixed)
            return true;
    return false;
}

static bool is_out_of_scope(const struct actuate_pod *pod, struct actuate_plan *ret)
{
    if (pod->mirror)
        *ret = verdict(ACTUATE_FAILED, "Unmanageable", S("static pods cannot be resized"));
    else if (pod->windows)
        *ret = verdict(ACTUATE_FAILED, "Unmanageable", S("Windows pods cannot be resized"));
    else if (pod->qos == QOS_BEST_EFFORT)
        *ret = verdict(ACTUATE_FAILED, "Unmanageable",
                       S("a BestEffort pod cannot be given CPU: its QoS class would change"));
    else if (pod->qos == QOS_GUARANTEED && !pod->guaranteed_too)
        *ret = verdict(ACTUATE_APPLIED, "GuaranteedQoS",
                       S("Guaranteed pods are left alone; the annotation mbcas.io/skip-guaranteed: "
                         "\"false\" gives them to the market"));
    else if (!can_move(pod))
        *ret = verdict(ACTUATE_FAILED, "Unmanageable",
                       S("a resize would restart the pod's containers; the annotation "
                         "mbcas.io/allow-restart: \"true\" allows that"));
    else
        return false;
    return true;
}

/* ---- the wish */

static int read_amount(str text, const char *field, int64_t *ret, err_t *e)
{
    if (quantity_parse_milli(text, ret, e) < 0)
        return err_wrap(e, "spec.%s", field);
    if (*ret <= 0)
        return err_set(e, EINVAL, "spec.%s is \"" STR_FMT "\", want more than 0", field,
                       STR_ARG(text));
    return 0;
}

static int read_desired(const struct actuate_input *in, int64_t *ret_limit, int64_t *ret_request,
                        err_t *e)
{
    int r = read_amount(in->desired_limit, "desiredCPULimit", ret_limit, e);
    if (r == 0)
        r = read_amount(in->desired_request, "desiredCPURequest", ret_request, e);
    if (r == 0 && *ret_request > *ret_limit)
        r = err_set(e, EINVAL,
                    "spec.desiredCPURequest is \"" STR_FMT "\", want at most the limit, " STR_FMT,
                    STR_ARG(in->desired_request), STR_ARG(in->desired_limit));
    return r;
}

/* Was the same, or something smaller, refused a short time ago? A node that refused no more than the pod has
 * resizes it to nothing else either. */
static bool is_refused(struct arena *a, const struct actuate_input *in, int64_t limit,
                       struct actuate_plan *ret)
{
    const struct actuate_memory *m = &in->memory;
    struct actuate_plan has = { 0 };
    sum_in_force(&in->pod, &has);
    bool too_large = m->infeasible_milli && in->now_ns < m->infeasible_until_ns &&
                     MAX(limit, has.in_force_limit) >= m->infeasible_milli;
    bool refused = m->refusal_reason.n && !str_eqc(m->refusal_reason, restore_failed);
    int64_t until = too_large ? m->infeasible_until_ns : m->attempted_ns + ACTUATE_REFUSED_NS;
    if ((!too_large && !refused) || in->now_ns >= until)
        return false;
    *ret = verdict(ACTUATE_FAILED, too_large ? "Infeasible" : m->refusal_reason.p,
                   refused ? m->refusal_message
                           : arena_printf(a, "the node could not give %lldm a short time ago",
                                          (long long)m->infeasible_milli));
    ret->wake_ns = until - in->now_ns;
    return true;
}

/* May the pod be resized to its targets now? If not, the plan says until when to wait. */
static bool must_wait(struct arena *a, const struct actuate_input *in, int64_t grows_by,
                      struct actuate_plan *ret)
{
    const struct actuate_memory *m = &in->memory;
    int64_t since = m->patched_ns ? MAX(in->now_ns - m->patched_ns, (int64_t)0) : INT64_MAX;
    int64_t pause =
        str_eqc(in->pod.progress, "Error") ? error_backoff(m->error_n + 1) : STEP_COOLDOWN_NS;
    if (since < pause) {
        *ret = verdict(ACTUATE_PENDING, "RateLimited",
                       arena_printf(a, "the next resize may come %lld s after the last one",
                                    (long long)(pause / NS_PER_S)));
        ret->wake_ns = pause - since;
        return true;
    }
    if (grows_by <= in->room_milli)
        return false;
    *ret = verdict(ACTUATE_PENDING, "WaitingForRoom",
                   S("others on the node give up CPU first; then this pod gets it"));
    ret->wake_ns = room_look_ns;
    return true;
}

/* Bounds the step; a limit where there was none is no step. */
static struct resize_step bound_step(struct arena *a, const struct actuate_input *in, int64_t limit)
{
    if (!has_limits(&in->pod))
        return (struct resize_step){ STEP_OK, limit, 0, S("") };
    return resize_step_check(a, actuate_spec_limit(&in->pod), limit, -1);
}

static struct actuate_plan pursue(struct arena *a, const struct actuate_input *in)
{
    int64_t limit = 0, request = 0;
    struct actuate_plan plan;
    err_t e;
    if (read_desired(in, &limit, &request, &e) < 0 || split(a, in, limit, request, &e) < 0)
        return verdict(ACTUATE_FAILED, "InvalidDesiredCPU", arena_str(a, str_c(e.text)));
    if (spec_is_target(&in->pod))
        return settle(a, in, verdict(ACTUATE_APPLIED, "Applied", S("")));
    if (is_refused(a, in, limit, &plan))
        return plan;
    struct resize_step step = bound_step(a, in, limit);
    if (step.allowed_milli != limit &&
        split(a, in, step.allowed_milli, MIN(request, limit_request(step.allowed_milli)), &e) < 0)
        return verdict(ACTUATE_FAILED, "InvalidDesiredCPU", arena_str(a, str_c(e.text)));
    if (must_wait(a, in, target_limit(&in->pod) - actuate_claimed_limit(&in->pod), &plan)) {
        if (step.verdict == STEP_TOO_LARGE) { /* that one waits between its steps is no news */
            plan.reason = "StepSizeExceeded";
            plan.message = step.reason;
        }
        return plan;
    }
    if (in->dry_run) {
        plan = verdict(ACTUATE_PENDING, "DryRun",
                       arena_printf(a, "the CPU limit would go from %lldm to %lldm",
                                    (long long)actuate_spec_limit(&in->pod),
                                    (long long)target_limit(&in->pod)));
        return in->memory.dry_run_done ? plan : send(plan, in);
    }
    plan = step.allowed_milli == limit
               ? verdict(ACTUATE_PENDING, "Applying", S("the resize is being sent"))
               : verdict(ACTUATE_PENDING, "StepSizeExceeded", step.reason);
    plan.record_originals = !in->memory.has_originals;
    plan.wake_ns = STEP_COOLDOWN_NS;
    return send(plan, in);
}

struct actuate_plan actuate_decide(struct arena *a, const struct actuate_input *in)
{
    const struct actuate_pod *pod = &in->pod;
    struct actuate_plan plan;
    if (!pod->found)
        plan = verdict(ACTUATE_FAILED, "PodNotFound", S("there is no such pod, or another one"));
    else if (pod->ending)
        plan = (struct actuate_plan){ .reason = "PodEnding", .leave = true };
    else if (pod->opted_out || in->restore)
        plan = give_back(a, in);
    else if (is_out_of_scope(pod, &plan))
        ;
    else if (!pod->running)
        plan = verdict(ACTUATE_PENDING, "PodNotRunning", S("the pod does not run yet"));
    else
        plan = pursue(a, in);
    sum_in_force(pod, &plan);
    return plan;
}

/* ---- the patch */

static void set_amount(struct arena *a, struct json *container, const char *kind, int64_t milli)
{
    if (milli < 0)
        return;
    char text[QUANTITY_TEXT_MAX];
    struct quantity q = quantity_of(milli, -3, QUANTITY_DECIMAL);
    json_set_str(a, json_make(a, container, "resources", kind, NULL), "cpu",
                 quantity_text(&q, text));
}

struct json *actuate_patch(struct arena *a, const struct actuate_pod *pod)
{
    struct json *body = json_new_obj(a), *spec = json_make(a, body, "spec", NULL);
    for (size_t i = 0; i < pod->n; i++) {
        const struct actuate_container *c = &pod->containers[i];
        if (c->request_milli == c->target_request && c->limit_milli == c->target_limit)
            continue;
        str list_name = c->sidecar ? S("initContainers") : S("containers");
        struct json *list = json_get_str(spec, list_name), *one = json_new_obj(a);
        if (!list)
            json_set(a, spec, list_name, list = json_new_arr(a));
        json_set_str(a, one, "name", c->name);
        set_amount(a, one, "limits", c->target_limit);
        set_amount(a, one, "requests", c->target_request);
        json_push(a, list, one);
    }
    return body;
}
