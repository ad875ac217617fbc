/* What to do next about one pod: see actuate_core.h.
 *
 * The problem. An agent desires CPU for a pod; the API server accepts a resize; the kubelet
 * admits it, defers it or rejects it; the runtime enacts it. Each party can be slow, refuse or
 * restart, and the controller sees only what the watch shows. So it keeps no state machine of
 * its own: every step derives the position from the pod, the status and the clock, and returns
 * one action.
 *
 *   not found, ending                            Failed PodNotFound, no status
 *   opted out, --market-restore   restore_originals()
 *     |- spec is not the originals               Pending Restoring    patch back
 *     `- spec is, and the node has enacted it    Applied Excluded     delete the originals
 *   static, Windows, BestEffort, Guaranteed      Failed or Applied    leave the pod alone
 *   otherwise                     follow_spec()
 *     |- quantities are invalid                  Failed InvalidDesiredCPU
 *     |- spec is not the target
 *     |    |- refused a short time ago           Failed, as before    wait
 *     |    |- resized less than 5 s ago          Pending RateLimited  wait
 *     |    |- other pods must shrink first       Pending WaitingForRoom
 *     |    `- else                               Pending Applying     patch, in a bounded step
 *     `- spec is the target       check_node()
 *          |- Infeasible                         Failed Infeasible    withdraw, for 10 minutes
 *          |- Deferred for 60 s                  Failed Deferred      withdraw, for 2 minutes
 *          |- Deferred, in progress, error       Pending              wait
 *          `- enacted                            Applied Applied      verified
 *
 * The invariants.
 *
 *   - Applied means that the node reports the values for every container, not that the API
 *     server accepted them.
 *   - The originals are in the status before the first patch is sent. After a crash in between we
 *     must not take our own numbers for the owner's.
 *   - Whatever does not end with an event sets `wake_ns`.
 *   - A refused amount is withdrawn from the spec, because a pending resize reserves CPU on the
 *     node, and is not sent again before its time.
 *
 * How an amount becomes a patch. The pod's limit and request are split over the containers in
 * proportion to their originals (resize_split). Fixed containers keep what they have. A step is
 * at most a factor of 10 or 20 cores; a target further away is reached in several steps, 5 s
 * apart.
 *
 * What was rejected. Splitting by the present values, as MBCAS does: rounding makes shares drift
 * with every resize. Comparing requests with what the runtime reports: it knows them as shares,
 * which are coarser than millicores, so the request that the node admitted decides (is_enacted).
 * Removing an added limit when the pod opts out: Kubernetes does not allow it, so the pod gets a
 * limit of 256 cores, which has the same effect.
 *
 * Memory: messages are allocated in the caller's arena; targets are written into the pod's
 * containers. */
#include "actuate_core.h"

#include "limit_core.h"

#include "../base/clock.h"
#include "../base/quantity.h"

const char *const actuate_phase_names[ACTUATE_PHASE_N] = { "Pending", "Applied", "Failed" };

static const int64_t backoff_first_ns = 5 * NS_PER_S, backoff_most_ns = 300 * NS_PER_S;
static const int64_t recheck_ns = 5 * NS_PER_S, room_recheck_ns = NS_PER_S;

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

/* Adds up what the node reports as in force; -1 if a container is not reported. */
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

/* The weight of a container in the split: what it had before the first resize. */
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

/* Sets the targets so that they add up to the limit and the request, as far as the pod can have
 * them. */
static int split_targets(struct arena *a, const struct actuate_input *in, int64_t limit,
                         int64_t request, err_t *e)
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
    actuate_keep_memory(&in->pod);
    for (size_t i = 0; i < in->pod.n; i++) {
        struct actuate_container *c = &in->pod.containers[i];
        c->target_limit = c->fixed ? c->limit_milli : shares[i].limit_milli;
        c->target_request = c->fixed                        ? c->request_milli
                            : in->pod.qos == QOS_GUARANTEED ? c->target_limit
                                                            : shares[i].request_milli;
    }
    return 0;
}

/* A limit that was added cannot be removed again; a very large one has the same effect. */
static void target_originals(const struct actuate_pod *pod)
{
    actuate_restore_memory(pod);
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

/* Sets the targets to what the node admitted; false if it does not report that. */
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
    return actuate_admit_memory(pod);
}

/* Is the CPU of the spec what the node admitted? Then a refusal concerns the memory. */
static bool is_cpu_admitted(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++) {
        const struct actuate_container *c = &pod->containers[i];
        if (c->request_milli != c->target_request || c->limit_milli != c->target_limit)
            return false;
    }
    return true;
}

static bool spec_is_target(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++) {
        const struct actuate_container *c = &pod->containers[i];
        if (!actuate_memory_is_target(c))
            return false;
    }
    return is_cpu_admitted(pod);
}

static int64_t target_limit(const struct actuate_pod *pod)
{
    int64_t sum = 0;
    for (size_t i = 0; i < pod->n; i++)
        sum += limit_or_request(pod->containers[i].target_limit, pod->containers[i].target_request);
    return sum;
}

/* ---- verdicts */

static struct actuate_plan make_verdict(enum actuate_phase phase, const char *reason, str message)
{
    return (struct actuate_plan){ .phase = phase, .reason = reason, .message = message };
}

/* The runtime reports requests only as shares, which are coarser: a request that the node
 * admitted counts too. */
static bool is_enacted(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++) {
        const struct actuate_container *c = &pod->containers[i];
        bool request = c->request_milli == c->now_request || c->request_milli == c->allocated_milli;
        if (c->limit_milli != c->now_limit || (c->request_milli >= 0 && !request) ||
            !actuate_memory_is_enacted(c))
            return false;
    }
    return true;
}

static int64_t error_backoff(int n)
{
    return n >= 7 ? backoff_most_ns : MIN(backoff_first_ns << MAX(n - 1, 0), backoff_most_ns);
}

/* The spec equals the targets. Returns `done` if the node has enacted it, otherwise what it is
 * waiting for. */
static struct actuate_plan check_progress(struct arena *a, const struct actuate_input *in,
                                          struct actuate_plan done)
{
    const struct actuate_pod *pod = &in->pod;
    if (str_eqc(pod->progress, "Error")) {
        struct actuate_plan plan =
            make_verdict(ACTUATE_PENDING, "ResizeError",
                         arena_printf(a, "the node failed to resize the pod: " STR_FMT,
                                      STR_ARG(pod->progress_message)));
        plan.wake_ns = error_backoff(in->memory.error_n + 1);
        return plan;
    }
    if (!pod->pending.n && !pod->progressing && is_enacted(pod)) {
        done.verified = true;
        return done;
    }
    struct actuate_plan plan =
        make_verdict(ACTUATE_PENDING, "Applying",
                     pod->progressing ? S("the resize is in progress on the node")
                                      : S("the resize was accepted; waiting for the node"));
    plan.wake_ns = recheck_ns;
    return plan;
}

static struct actuate_plan plan_patch(struct actuate_plan plan, const struct actuate_input *in)
{
    plan.patch = true;
    plan.from_milli = actuate_spec_limit(&in->pod);
    plan.to_milli = target_limit(&in->pod);
    return plan;
}

/* The node refused: the spec returns to what the node admitted, which releases the CPU that it
 * reserves. */
static struct actuate_plan withdraw_resize(struct arena *a, const struct actuate_input *in,
                                           bool infeasible)
{
    const struct actuate_pod *pod = &in->pod;
    struct actuate_plan plan =
        infeasible
            ? make_verdict(ACTUATE_FAILED, "Infeasible",
                           arena_printf(a, "the resize cannot fit on the node: " STR_FMT,
                                        STR_ARG(pod->pending_message)))
            : make_verdict(
                  ACTUATE_FAILED, "Deferred",
                  arena_printf(a,
                               "the node had no room for 60 s; the resize was withdrawn: " STR_FMT,
                               STR_ARG(pod->pending_message)));
    plan.wake_ns = infeasible ? ACTUATE_INFEASIBLE_NS : ACTUATE_REFUSED_NS;
    bool known = target_admitted(pod), differs = known && !spec_is_target(pod);
    plan.memory_refused = differs && is_cpu_admitted(pod);
    plan.infeasible_milli = infeasible && !plan.memory_refused ? actuate_spec_limit(pod) : 0;
    return differs ? plan_patch(plan, in) : plan;
}

/* The spec equals the targets: evaluates the PodResizePending condition, then the progress. */
static struct actuate_plan check_node(struct arena *a, const struct actuate_input *in,
                                      struct actuate_plan done)
{
    const struct actuate_pod *pod = &in->pod;
    if (str_eqc(pod->pending, "Infeasible"))
        return withdraw_resize(a, in, true);
    if (str_eqc(pod->pending, "Deferred")) {
        int64_t since = pod->pending_since_ns ? pod->pending_since_ns : in->memory.attempted_ns;
        int64_t waited = in->now_ns - since;
        if (since && waited >= ACTUATE_DEFERRED_NS)
            return withdraw_resize(a, in, false);
        struct actuate_plan plan =
            make_verdict(ACTUATE_PENDING, "Deferred",
                         arena_printf(a, "the node has no room yet: " STR_FMT,
                                      STR_ARG(pod->pending_message)));
        plan.wake_ns = since ? ACTUATE_DEFERRED_NS - MAX(waited, (int64_t)0) : ACTUATE_DEFERRED_NS;
        return plan;
    }
    return check_progress(a, in, done);
}

/* ---- pods that must not be resized */

/* The pod opted out, or the market is being uninstalled: restores the originals, then forgets
 * them. */
static struct actuate_plan restore_originals(struct arena *a, const struct actuate_input *in)
{
    struct actuate_plan done =
        make_verdict(ACTUATE_APPLIED, "Excluded",
                     in->restore ? S("--market-restore is set: the pod has its original resources")
                                 : S("the pod opted out with mbcas.io/managed: \"false\""));
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
        return plan_patch(make_verdict(ACTUATE_PENDING, "Restoring",
                                       S("restoring the original resources of the pod")),
                          in);
    }
    struct actuate_plan plan = check_progress(a, in, done);
    plan.delete_originals = plan.verified;
    return plan;
}

static bool has_resizable_container(const struct actuate_pod *pod)
{
    for (size_t i = 0; i < pod->n; i++)
        if (!pod->containers[i].fixed)
            return true;
    return false;
}

/* Pods that the market must leave alone, with the verdict in `ret`. */
static bool is_out_of_scope(const struct actuate_pod *pod, struct actuate_plan *ret)
{
    if (pod->mirror)
        *ret = make_verdict(ACTUATE_FAILED, "Unmanageable", S("static pods cannot be resized"));
    else if (pod->windows)
        *ret = make_verdict(ACTUATE_FAILED, "Unmanageable", S("Windows pods cannot be resized"));
    else if (pod->qos == QOS_BEST_EFFORT)
        *ret = make_verdict(ACTUATE_FAILED, "Unmanageable",
                            S("BestEffort pods cannot be resized: their QoS class would change"));
    else if (pod->qos == QOS_GUARANTEED && !pod->guaranteed_too)
        *ret =
            make_verdict(ACTUATE_APPLIED, "GuaranteedQoS",
                         S("Guaranteed pods are not resized; to include this one, annotate it with "
                           "mbcas.io/skip-guaranteed: \"false\""));
    else if (!has_resizable_container(pod))
        *ret = make_verdict(
            ACTUATE_FAILED, "Unmanageable",
            S("a resize would restart the pod's containers; to allow that, annotate it "
              "with mbcas.io/allow-restart: \"true\""));
    else
        return false;
    return true;
}

/* ---- the spec */

static int read_amount(str text, const char *field, int64_t *ret, err_t *e)
{
    if (quantity_parse_milli(text, ret, e) < 0)
        return err_wrap(e, "spec.%s", field);
    if (*ret <= 0)
        return err_set(e, EINVAL, "spec.%s is \"" STR_FMT "\", but must be greater than 0", field,
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
                    "spec.desiredCPURequest is \"" STR_FMT
                    "\", but must not exceed spec.desiredCPULimit, \"" STR_FMT "\"",
                    STR_ARG(in->desired_request), STR_ARG(in->desired_limit));
    return r;
}

/* Was this amount, or a smaller one, refused a short time ago? A node that rejected no more than
 * the pod already has (for instance with a static CPU manager) will reject every other amount
 * too. */
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
    *ret =
        make_verdict(ACTUATE_FAILED, too_large ? "Infeasible" : m->refusal_reason.p,
                     refused
                         ? m->refusal_message
                         : arena_printf(a,
                                        "the node recently rejected a limit of %lldm as infeasible",
                                        (long long)m->infeasible_milli));
    ret->wake_ns = until - in->now_ns;
    return true;
}

/* Must the resize wait, for its cooldown or for room? Then `ret` is Pending, with the time to
 * wait. */
static bool must_wait(struct arena *a, const struct actuate_input *in, int64_t grows_by,
                      struct actuate_plan *ret)
{
    const struct actuate_memory *m = &in->memory;
    int64_t since = m->patched_ns ? MAX(in->now_ns - m->patched_ns, (int64_t)0) : INT64_MAX;
    int64_t pause =
        str_eqc(in->pod.progress, "Error") ? error_backoff(m->error_n + 1) : STEP_COOLDOWN_NS;
    if (since < pause) {
        *ret = make_verdict(ACTUATE_PENDING, "RateLimited",
                            arena_printf(a, "waiting until %lld s after the last resize",
                                         (long long)(pause / NS_PER_S)));
        ret->wake_ns = pause - since;
        return true;
    }
    if (grows_by <= in->room_milli)
        return false;
    *ret = make_verdict(ACTUATE_PENDING, "WaitingForRoom",
                        S("waiting for other pods on the node to release CPU"));
    ret->wake_ns = room_recheck_ns;
    return true;
}

/* Limits the size of the step. Adding a first limit is not a step. */
static struct resize_step bound_step(struct arena *a, const struct actuate_input *in, int64_t limit)
{
    if (!has_limits(&in->pod))
        return (struct resize_step){ STEP_OK, limit, 0, S("") };
    return resize_step_check(a, actuate_spec_limit(&in->pod), limit, -1);
}

/* Memory goes before CPU: a container that is about to be killed cannot wait. It starts when
 * nothing else is under way. Returns whether `ret` is the step. */
static bool follow_memory(struct arena *a, const struct actuate_input *in, struct actuate_plan *ret)
{
    const struct actuate_pod *pod = &in->pod;
    if (in->now_ns < in->memory.memory_until_ns || pod->pending.n || pod->progressing ||
        !is_enacted(pod) || !actuate_target_memory(pod))
        return false;
    for (size_t i = 0; i < pod->n; i++) {
        struct actuate_container *c = &pod->containers[i];
        c->target_request = c->request_milli;
        c->target_limit = c->limit_milli;
    }
    if (must_wait(a, in, 0, ret))
        return true;
    *ret = make_verdict(ACTUATE_PENDING, in->dry_run ? "DryRun" : "Applying",
                        in->dry_run ? S("dry run: the memory would change")
                                    : S("sending the resize of memory"));
    if (in->dry_run && in->memory.dry_run_done)
        return true;
    ret->record_originals = !in->dry_run && !in->memory.has_originals;
    ret->wake_ns = in->dry_run ? 0 : STEP_COOLDOWN_NS;
    *ret = plan_patch(*ret, in);
    ret->of_memory = true;
    return true;
}

/* The pod takes part in the market: brings it towards the spec. */
static struct actuate_plan follow_spec(struct arena *a, const struct actuate_input *in)
{
    int64_t limit = 0, request = 0;
    struct actuate_plan plan;
    err_t e;
    if (follow_memory(a, in, &plan))
        return plan;
    if (read_desired(in, &limit, &request, &e) < 0 || split_targets(a, in, limit, request, &e) < 0)
        return make_verdict(ACTUATE_FAILED, "InvalidDesiredCPU", arena_str(a, str_c(e.text)));
    if (spec_is_target(&in->pod))
        return check_node(a, in, make_verdict(ACTUATE_APPLIED, "Applied", S("")));
    if (is_refused(a, in, limit, &plan))
        return plan;
    struct resize_step step = bound_step(a, in, limit);
    if (step.allowed_milli != limit &&
        split_targets(a, in, step.allowed_milli, MIN(request, limit_request(step.allowed_milli)),
                      &e) < 0)
        return make_verdict(ACTUATE_FAILED, "InvalidDesiredCPU", arena_str(a, str_c(e.text)));
    if (must_wait(a, in, target_limit(&in->pod) - actuate_claimed_limit(&in->pod), &plan)) {
        if (step.verdict == STEP_TOO_LARGE) { /* pausing between steps is not worth a new reason */
            plan.reason = "StepSizeExceeded";
            plan.message = step.reason;
        }
        return plan;
    }
    if (in->dry_run) {
        plan =
            make_verdict(ACTUATE_PENDING, "DryRun",
                         arena_printf(a, "dry run: the CPU limit would change from %lldm to %lldm",
                                      (long long)actuate_spec_limit(&in->pod),
                                      (long long)target_limit(&in->pod)));
        return in->memory.dry_run_done ? plan : plan_patch(plan, in);
    }
    plan = step.allowed_milli == limit
               ? make_verdict(ACTUATE_PENDING, "Applying", S("sending the resize"))
               : make_verdict(ACTUATE_PENDING, "StepSizeExceeded", step.reason);
    plan.record_originals = !in->memory.has_originals;
    plan.wake_ns = STEP_COOLDOWN_NS;
    return plan_patch(plan, in);
}

struct actuate_plan actuate_decide(struct arena *a, const struct actuate_input *in)
{
    const struct actuate_pod *pod = &in->pod;
    struct actuate_plan plan;
    if (!pod->found)
        plan = make_verdict(
            ACTUATE_FAILED, "PodNotFound",
            S("the pod does not exist, or was replaced by another one of the same name"));
    else if (pod->ending)
        plan = (struct actuate_plan){ .reason = "PodEnding", .skip_status = true };
    else if (pod->opted_out || in->restore)
        plan = restore_originals(a, in);
    else if (is_out_of_scope(pod, &plan))
        ;
    else if (!pod->running)
        plan = make_verdict(ACTUATE_PENDING, "PodNotRunning", S("the pod is not running yet"));
    else
        plan = follow_spec(a, in);
    sum_in_force(pod, &plan);
    int64_t left = in->memory.memory_until_ns - in->now_ns;
    if (left > 0 && (!plan.wake_ns || left < plan.wake_ns))
        plan.wake_ns = left;
    return plan;
}
