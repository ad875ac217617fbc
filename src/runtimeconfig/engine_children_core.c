/* Children as components: see engine_children_core.h.
 *
 * Pods are read check by check, not pod by pod: one pod that cannot pull its image explains a deployment better than
 * another one that is pending. The order of the checks is that of the original. */
#include "engine_children_core.h"

#include "service_status_core.h"

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

static struct aim_engine_component make_state(enum aim_engine_state state, str reason, str message)
{
    return (struct aim_engine_component){
        .state = state, .reason = reason, .message = message, .has_reason = true
    };
}

static struct aim_engine_component make_error(enum aim_engine_class class, str reason, str message)
{
    return (struct aim_engine_component){ .errors = { { class, reason, message } } };
}

/* ---- logs */

const char *aim_engine_log_class_name(enum aim_engine_log_class class)
{
    static const char *const names[ENGINE_LOG_N] = { "unknown", "infrastructure", "not-found",
                                                     "auth", "storage-full" };
    return names[class];
}

/* Parts in order, in any case, with anything between them. */
static bool line_matches(str line, const char *pattern)
{
    str rest = str_c(pattern), part;
    while (str_cut(&rest, '*', &part)) {
        size_t at = 0;
        while (at + part.n <= line.n && !str_eq_nocase((str){ line.p + at, part.n }, part))
            at++;
        if (at + part.n > line.n)
            return false;
        line = str_from(line, at + part.n);
    }
    return true;
}

/* Finds the first line that matches; false: none. */
static bool find_line(str log, const char *pattern, str *ret_line)
{
    str line;
    while (str_cut(&log, '\n', &line))
        if (line_matches(line, pattern)) {
            *ret_line = str_trim(line);
            return true;
        }
    return false;
}

/* Groups in the order of precedence, patterns in order within a group, "*" for anything. */
enum aim_engine_log_class aim_engine_classify_log(str log, str *ret_line)
{
    static const struct {
        enum aim_engine_log_class class;
        const char *pattern;
    } t[] = {
        { ENGINE_LOG_INFRASTRUCTURE, "RBAC:*not found" },
        { ENGINE_LOG_INFRASTRUCTURE, "clusterrole*not found" },
        { ENGINE_LOG_INFRASTRUCTURE, "forbidden*cannot*resource" },
        { ENGINE_LOG_INFRASTRUCTURE, "serviceaccount*cannot" },
        { ENGINE_LOG_NOT_FOUND, "Repository Not Found" },
        { ENGINE_LOG_NOT_FOUND, "RepositoryNotFoundError" },
        { ENGINE_LOG_NOT_FOUND, "404*not*found" },
        { ENGINE_LOG_NOT_FOUND, "not*found*404" },
        { ENGINE_LOG_NOT_FOUND, "NoSuchKey" },
        { ENGINE_LOG_NOT_FOUND, "NoSuchBucket" },
        { ENGINE_LOG_NOT_FOUND, "model*not*found" },
        { ENGINE_LOG_NOT_FOUND, "file*not*found" },
        { ENGINE_LOG_NOT_FOUND, "s3*404" },
        { ENGINE_LOG_AUTH, "access*denied*s3" },
        { ENGINE_LOG_AUTH, "s3*403" },
        { ENGINE_LOG_AUTH, "InvalidAccessKeyId" },
        { ENGINE_LOG_AUTH, "SignatureDoesNotMatch" },
        { ENGINE_LOG_AUTH, "s3*unauthorized" },
        { ENGINE_LOG_AUTH, "aws*credentials*not*found" },
        { ENGINE_LOG_AUTH, "NoCredentialProviders" },
        { ENGINE_LOG_AUTH, "Access to model * is restricted" },
        { ENGINE_LOG_AUTH, "Cannot access gated repo" },
        { ENGINE_LOG_AUTH, "Invalid*token*huggingface" },
        { ENGINE_LOG_AUTH, "huggingface*authentication*failed" },
        { ENGINE_LOG_AUTH, "401*Unauthorized*hf.co" },
        { ENGINE_LOG_AUTH, "403*Forbidden*hf.co" },
        { ENGINE_LOG_FULL, "no space left on device" },
        { ENGINE_LOG_FULL, "disk*full" },
        { ENGINE_LOG_FULL, "ENOSPC" },
        { ENGINE_LOG_FULL, "quota*exceeded" },
        { ENGINE_LOG_FULL, "storage*full" },
    };
    for (size_t i = 0; i < countof(t); i++)
        if (find_line(log, t[i].pattern, ret_line))
            return t[i].class;
    *ret_line = S("");
    return ENGINE_LOG_UNKNOWN;
}

/* ---- pods */

/* The first container of the list that cannot pull its image. */
static bool find_pull_error(struct arena *a, const struct json *statuses,
                            struct aim_engine_component *ret)
{
    for (size_t i = 0; i < json_len(statuses); i++) {
        const struct json *c = json_item(statuses, i);
        const struct json *waiting = json_at(c, "state", "waiting", NULL);
        str reason = text_of(waiting, "reason"), message = text_of(waiting, "message");
        if (!str_eqc(reason, "ImagePullBackOff") && !str_eqc(reason, "ErrImagePull"))
            continue;
        str text = arena_printf(a, "Container " STR_FMT ": " STR_FMT, STR_ARG(text_of(c, "name")),
                                STR_ARG(message));
        enum aim_service_pull_kind kind = aim_service_pull_cause(message);
        *ret = kind == SERVICE_PULL_AUTH ? make_error(ENGINE_AUTH, S("ImagePullAuthFailure"), text)
               : kind == SERVICE_PULL_MISSING
                   ? make_error(ENGINE_MISSING_UPSTREAM, S("ImageNotFound"), text)
                   : make_error(ENGINE_INFRASTRUCTURE, S("ImagePullBackOff"), text);
        return true;
    }
    return false;
}

/* The class and reason of a pod that failed for this reason. */
static struct aim_engine_component failure_of(str reason, str message)
{
    if (str_eqc(reason, "OOMKilled"))
        return make_error(ENGINE_EXHAUSTED, S("PodOOMKilled"), message);
    if (str_eqc(reason, "DeadlineExceeded"))
        return make_error(ENGINE_INVALID, S("PodDeadlineExceeded"), message);
    if (str_eqc(reason, "Evicted"))
        return make_error(ENGINE_INFRASTRUCTURE, S("PodEvicted"), message);
    return make_error(ENGINE_INVALID, S("PodFailed"), message);
}

/* The last lines of a log, for a cause that its words do not show. */
static str last_lines(str log, int lines)
{
    log = str_trim(log);
    for (size_t i = log.n; i > 0; i--)
        if (log.p[i - 1] == '\n' && --lines == 0)
            return str_from(log, i);
    return log;
}

/* The log names the cause better than an exit code. */
static struct aim_engine_component failure_with_log(struct arena *a,
                                                    struct aim_engine_component from, str log)
{
    static const struct {
        enum aim_engine_class class;
        const char *reason, *message;
    } t[ENGINE_LOG_N] = {
        [ENGINE_LOG_AUTH] = { ENGINE_AUTH, "AuthError",
                              "Authentication error detected in pod logs: " },
        [ENGINE_LOG_FULL] = { ENGINE_EXHAUSTED, "StorageFull",
                              "Storage full error detected in pod logs: " },
        [ENGINE_LOG_NOT_FOUND] = { ENGINE_INVALID, "SourceNotFound",
                                   "Source resource not found (404): " },
    };
    str line;
    enum aim_engine_log_class class = aim_engine_classify_log(log, &line);
    str text =
        arena_printf(a, STR_FMT "\n\nLog excerpt:\n" STR_FMT, STR_ARG(from.errors[0].message),
                     STR_ARG(line.n ? line : last_lines(log, 3)));
    if (!t[class].reason)
        return make_error(from.errors[0].class, from.errors[0].reason, text);
    return make_error(t[class].class, str_c(t[class].reason),
                      arena_printf(a, "%s" STR_FMT, t[class].message, STR_ARG(text)));
}

/* The first terminated container of the list. */
static bool find_terminated(struct arena *a, const struct json *statuses, bool init, str log,
                            struct aim_engine_component *ret)
{
    for (size_t i = 0; i < json_len(statuses); i++) {
        const struct json *c = json_item(statuses, i);
        const struct json *end = json_at(c, "state", "terminated", NULL);
        int64_t code = json_int(json_get(end, "exitCode"), 0);
        str reason = text_of(end, "reason"), name = text_of(c, "name");
        const char *who = init ? "Init container" : "Container";
        if (!end)
            continue;
        str text =
            code ? arena_printf(a, "%s " STR_FMT " failed with exit code %lld: " STR_FMT, who,
                                STR_ARG(name), (long long)code, STR_ARG(text_of(end, "message")))
                 : arena_printf(a, "%s " STR_FMT " terminated with reason: " STR_FMT, who,
                                STR_ARG(name), STR_ARG(reason));
        *ret = failure_of(reason, text);
        if (code && log.n && !str_eqc(reason, "OOMKilled"))
            *ret = failure_with_log(a, *ret, log);
        return true;
    }
    return false;
}

/* Containers explain a failure better than the pod's own reason, and main containers better than init
 * containers. */
static struct aim_engine_component failed_pod(struct arena *a, const struct json *pod, str log)
{
    const struct json *status = json_get(pod, "status");
    struct aim_engine_component c;
    if (find_terminated(a, json_get(status, "containerStatuses"), false, log, &c) ||
        find_terminated(a, json_get(status, "initContainerStatuses"), true, log, &c))
        return c;
    str message = text_of(status, "message");
    return failure_of(text_of(status, "reason"), message.n ? message : S("Pod failed"));
}

/* A pod without the condition is not ready. */
static bool is_pod_ready(const struct json *pod)
{
    return str_eqc(text_of(aim_engine_find_condition(pod, "Ready"), "status"), "True");
}

/* The latest event that explains why pods are pending; lists of events are in the order of time. */
static struct aim_engine_component pending_pods(const struct json *events)
{
    static const char *const stuck[] = { "FailedScheduling", "FailedMount", "FailedAttachVolume",
                                         "FailedCreatePodSandBox" };
    for (size_t i = json_len(events); i > 0; i--) {
        const struct json *e = json_item(events, i - 1);
        str reason = text_of(e, "reason"), message = text_of(e, "message");
        if (str_eqc(reason, "Pulling"))
            return make_state(ENGINE_PROGRESSING, reason, message);
        for (size_t k = 0; k < countof(stuck); k++)
            if (str_eqc(reason, stuck[k]))
                return make_state(ENGINE_PENDING, reason, message);
    }
    return make_state(ENGINE_PENDING, S("PodsPending"), S("Pods are pending"));
}

static const struct json *find_phase(const struct json *items, const char *phase)
{
    for (size_t i = 0; i < json_len(items); i++)
        if (str_eqc(json_text(json_at(json_item(items, i), "status", "phase", NULL)), phase))
            return json_item(items, i);
    return NULL;
}

static bool any_pod_ready(const struct json *items)
{
    for (size_t i = 0; i < json_len(items); i++) {
        str phase = json_text(json_at(json_item(items, i), "status", "phase", NULL));
        if (str_eqc(phase, "Succeeded") ||
            (str_eqc(phase, "Running") && is_pod_ready(json_item(items, i))))
            return true;
    }
    return false;
}

/* The pods of a workload as one component; the head of this file has the order. */
struct aim_engine_component aim_engine_pods(struct arena *a, const struct json *pods,
                                            const struct json *events, str log)
{
    const struct json *items = json_get(pods, "items"), *failed;
    struct aim_engine_component c;
    if (!json_len(items))
        return make_error(ENGINE_MISSING_DOWNSTREAM, S("NoPods"), S("No pods found"));
    for (size_t i = 0; i < json_len(items); i++) {
        const struct json *status = json_get(json_item(items, i), "status");
        if (find_pull_error(a, json_get(status, "containerStatuses"), &c) ||
            find_pull_error(a, json_get(status, "initContainerStatuses"), &c))
            return c;
    }
    failed = find_phase(items, "Failed");
    if (failed)
        return failed_pod(a, failed, log);
    if (any_pod_ready(items))
        return make_state(ENGINE_READY, S("PodsReady"), S("Pods are ready"));
    if (find_phase(items, "Running"))
        return make_state(ENGINE_STARTING, S("PodsStarting"),
                          S("Pods are running, waiting for readiness"));
    if (find_phase(items, "Pending"))
        return pending_pods(events);
    return make_state(ENGINE_PROGRESSING, S("PodsProgressing"), S("Pods are progressing"));
}

/* ---- jobs, volumes, routes */

/* A job that used up its retries is a fault of what it ran, an eviction one of the cluster. */
static struct aim_engine_component failed_job(const struct json *condition)
{
    str reason = text_of(condition, "reason"), message = text_of(condition, "message");
    message = message.n ? message : S("Job failed");
    if (str_eqc(reason, "BackoffLimitExceeded"))
        return make_error(ENGINE_INVALID, S("JobBackoffLimitExceeded"), message);
    if (str_eqc(reason, "DeadlineExceeded"))
        return make_error(ENGINE_INVALID, S("JobDeadlineExceeded"), message);
    if (str_eqc(reason, "Evicted"))
        return make_error(ENGINE_INFRASTRUCTURE, S("JobEvicted"), message);
    return make_error(ENGINE_INVALID, S("JobFailed"), message);
}

struct aim_engine_component aim_engine_job(const struct json *job)
{
    const struct json *list = json_at(job, "status", "conditions", NULL);
    if (!json_is(job, JSON_OBJ))
        return make_error(ENGINE_MISSING_DOWNSTREAM, S("JobNotFound"), S("Job not found"));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *c = json_item(list, i);
        if (!str_eqc(text_of(c, "status"), "True"))
            continue;
        if (str_eqc(text_of(c, "type"), "Complete"))
            return (struct aim_engine_component){ .state = ENGINE_READY, .reason = S("Ready") };
        if (str_eqc(text_of(c, "type"), "Failed"))
            return failed_job(c);
    }
    return make_state(ENGINE_PROGRESSING, S("JobRunning"), S("Job is in progress"));
}

/* A volume that is bound is ready; provisioning is observed by the Resizing condition, as the original does. */
struct aim_engine_component aim_engine_claim(struct arena *a, const struct json *claim)
{
    const struct json *list = json_at(claim, "status", "conditions", NULL);
    str phase = json_text(json_at(claim, "status", "phase", NULL));
    if (!json_is(claim, JSON_OBJ))
        return make_error(ENGINE_MISSING_DOWNSTREAM, S("PvcNotFound"), S("PVC not found"));
    if (str_eqc(phase, "Bound"))
        return (struct aim_engine_component){ .state = ENGINE_READY, .reason = S("Ready") };
    if (str_eqc(phase, "Lost"))
        return make_error(ENGINE_INFRASTRUCTURE, S("PvcLost"), S("PVC lost its underlying volume"));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *c = json_item(list, i);
        if (str_eqc(text_of(c, "type"), "Resizing") && str_eqc(text_of(c, "status"), "False") &&
            str_eqc(text_of(c, "reason"), "ProvisioningFailed"))
            return make_error(ENGINE_INFRASTRUCTURE, S("PvcProvisioningFailed"),
                              arena_printf(a, "PVC provisioning failed: " STR_FMT,
                                           STR_ARG(text_of(c, "message"))));
    }
    return make_state(ENGINE_PROGRESSING, S("PvcPending"), S("PVC is pending"));
}

/* One condition of one parent; false: it is of another type. */
static bool read_route_condition(struct arena *a, const struct json *c,
                                 struct aim_engine_component *ret)
{
    str type = text_of(c, "type"), status = text_of(c, "status"), message = text_of(c, "message");
    if (str_eqc(type, "Accepted") && str_eqc(status, "True"))
        *ret =
            make_state(ENGINE_READY, S("HTTPRouteAccepted"), S("HTTPRoute is accepted by gateway"));
    else if (str_eqc(type, "Accepted"))
        *ret = make_error(ENGINE_INVALID, text_of(c, "reason"),
                          arena_printf(a, "HTTPRoute rejected: " STR_FMT, STR_ARG(message)));
    else if (str_eqc(type, "ResolvedRefs") && str_eqc(status, "False"))
        *ret = make_error(ENGINE_MISSING_DOWNSTREAM, text_of(c, "reason"),
                          arena_printf(a, "HTTPRoute backend not resolved: " STR_FMT,
                                       STR_ARG(message)));
    else
        return false;
    return true;
}

/* The first condition of the first parent that states something about the route. */
struct aim_engine_component aim_engine_route(struct arena *a, const struct json *route)
{
    const struct json *parents = json_at(route, "status", "parents", NULL);
    struct aim_engine_component c;
    if (!json_is(route, JSON_OBJ))
        return make_error(ENGINE_MISSING_DOWNSTREAM, S("HTTPRouteNotFound"),
                          S("HTTPRoute not found"));
    for (size_t i = 0; i < json_len(parents); i++) {
        const struct json *list = json_get(json_item(parents, i), "conditions");
        for (size_t k = 0; k < json_len(list); k++)
            if (read_route_condition(a, json_item(list, k), &c))
                return c;
    }
    return make_state(ENGINE_PROGRESSING, S("HTTPRoutePending"),
                      S("HTTPRoute is waiting for gateway acceptance"));
}
