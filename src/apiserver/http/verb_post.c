/* POST to a subresource: requests that change or use an object and are not stored themselves.
 *
 *     pods/binding, bindings        Binding         sets spec.nodeName, as the scheduler does
 *     pods/eviction                 Eviction        deletes the pod
 *     serviceaccounts/token         TokenRequest    returns a signed token
 *
 * Bindings are refused for pods that are assigned, being deleted or gated, so a pod is assigned at most once.
 * An eviction is a delete that a PodDisruptionBudget must allow (eviction.c). */
#include "managed.h"
#include "read.h"
#include "token.h"
#include "verbs.h"
#include "write.h"

#include "../../base/rfc3339.h"

enum { TOKEN_SECONDS = 3600, TOKEN_SECONDS_MIN = 600 };

/* ---- pods */

static void refuse_binding(struct call *c, str pod, const char *why, str node)
{
    str kind = S("pods/binding");
    str message = arena_printf(c->arena,
                               "Operation cannot be fulfilled on " STR_FMT " \"" STR_FMT
                               "\": pod " STR_FMT " %s" STR_FMT,
                               STR_ARG(kind), STR_ARG(pod), STR_ARG(pod), why, STR_ARG(node));
    call_status(
        c, &(struct status){
               .code = 409, .reason = "Conflict", .message = message, .name = pod, .kind = kind });
}

/* kube-apiserver answers an invalid target with 500. False: answered. */
static bool check_target(struct call *c, const struct json *target)
{
    static const char *const allowed[] = { "Node", "<empty>", NULL };
    struct field_errors errors = { .arena = c->arena };
    struct json *kind = json_get(target, "kind");
    struct field_path at = { .key = S("target") };
    if (json_text(kind).n && !str_eq(json_text(kind), S("Node")))
        field_not_supported(&errors, &(struct field_path){ &at, .key = S("kind") }, kind, allowed);
    if (!json_text(json_get(target, "name")).n)
        field_required(&errors, &(struct field_path){ &at, .key = S("name") }, "");
    if (errors.n)
        call_status(c,
                    &(struct status){ .code = 500, .message = field_summary(c->arena, &errors) });
    return errors.n == 0;
}

/* Adds the binding's labels or annotations to the pod's. */
static void copy_members(struct arena *a, const struct json *from, struct json *tree,
                         const char *member)
{
    const struct json *all = json_at(from, "metadata", member, NULL);
    json_each(m, all)
        json_set(a, json_make(a, tree, "metadata", member, NULL), m->key, m->value);
}

/* Sets the condition PodScheduled to True. */
static void set_scheduled(struct call *c, struct json *tree)
{
    struct arena *a = c->arena;
    struct json *status = json_make(a, tree, "status", NULL),
                *list = json_get(status, "conditions");
    if (!list)
        json_set(a, status, S("conditions"), list = json_new_arr(a));
    for (size_t i = json_len(list); i-- > 0;)
        if (str_eq(json_text(json_get(json_item(list, i), "type")), S("PodScheduled")))
            json_remove(list, i);
    struct json *scheduled = json_new_obj(a);
    json_set_str(a, scheduled, "type", S("PodScheduled"));
    json_set_str(a, scheduled, "status", S("True"));
    json_set(a, scheduled, S("lastProbeTime"), json_new_null(a));
    json_set_str(a, scheduled, "lastTransitionTime", server_time(c->server, a));
    json_push(a, list, scheduled);
}

static const struct kind *pod_kind(void)
{
    return kinds_find(S(""), S("v1"), S("pods"));
}

/* Assigns a pod to a node. uid and resourceVersion in the binding are preconditions. */
static void post_binding(struct call *c, const struct write_options *o, const struct json *binding)
{
    const struct json *target = json_get(binding, "target"), *meta = json_get(binding, "metadata");
    str name = json_text(json_get(meta, "name")),
        key = catalog_key(c->arena, pod_kind(), c->ns, name);
    str uid = json_text(json_get(meta, "uid")), rev = json_text(json_get(meta, "resourceVersion"));
    if (c->name.n && !str_eq(name, c->name)) {
        call_bad_request(c, "name in URL does not match name in Binding object");
        return;
    }
    if (!check_target(c, target))
        return;
    const struct object *pod = store_latest(c->server->store, key);
    struct json *tree = pod ? read_tree(c->arena, pod_kind(), pod) : NULL;
    str node = json_text(json_at(tree, "spec", "nodeName", NULL));
    err_t e;
    if (!pod)
        call_not_found(c, pod_kind(), name);
    else if ((uid.n && !str_eq(uid, object_span(pod, pod->uid))) ||
             (rev.n && !str_eq(rev, object_span(pod, pod->rv))))
        call_conflict(c, pod_kind(), name,
                      S("the binding is meant for another pod or another version"));
    else if (pod->deleting)
        refuse_binding(c, name, "is being deleted, cannot be assigned to a host", S(""));
    else if (node.n)
        refuse_binding(c, name, "is already assigned to node ",
                       arena_printf(c->arena, "\"" STR_FMT "\"", STR_ARG(node)));
    else if (json_len(json_at(tree, "spec", "schedulingGates", NULL)))
        refuse_binding(c, name, "has non-empty .spec.schedulingGates", S(""));
    else {
        json_set_str(c->arena, json_make(c->arena, tree, "spec", NULL), "nodeName",
                     json_text(json_get(target, "name")));
        copy_members(c->arena, binding, tree, "annotations");
        copy_members(c->arena, binding, tree, "labels");
        set_scheduled(c, tree);
        if (!o->dry_run && !write_stage(c->server, c->arena, pod_kind(), key, tree, &e))
            write_stage_error(c, &e);
        else
            call_status(c, &(struct status){ .code = 201 });
    }
}

/* ---- service accounts */

/* A pod's token must be for the service account of the pod, and names the pod's node. False: answered. */
static bool check_pod(struct call *c, const struct json *pod, struct token_claims *ret)
{
    str account = json_text(json_at(pod, "spec", "serviceAccountName", NULL));
    if (!str_eq(account, c->name)) {
        call_bad_request(c,
                         "cannot bind token for serviceaccount \"" STR_FMT
                         "\" to pod running with different serviceaccount name.",
                         STR_ARG(c->name));
        return false;
    }
    ret->node = json_text(json_at(pod, "spec", "nodeName", NULL));
    const struct kind *nodes = kinds_find(S(""), S("v1"), S("nodes"));
    const struct object *node =
        ret->node.n ? store_latest(c->server->store, catalog_key(c->arena, nodes, S(""), ret->node))
                    : NULL;
    if (node)
        ret->node_uid = object_span(node, node->uid);
    return true;
}

/* The object that the token is bound to must exist, with the given uid. False: answered. */
static bool check_bound(struct call *c, const struct json *bound, struct token_claims *ret)
{
    static const struct {
        const char *kind, *plural;
    } kinds[] = { { "Pod", "pods" }, { "Secret", "secrets" }, { "Node", "nodes" } };
    str kind = json_text(json_get(bound, "kind")), name = json_text(json_get(bound, "name"));
    str uid = json_text(json_get(bound, "uid"));
    for (size_t i = 0; i < countof(kinds); i++) {
        if (!str_eqc(kind, kinds[i].kind) ||
            !str_eq(json_text(json_get(bound, "apiVersion")), S("v1")))
            continue;
        const struct kind *k = kinds_find(S(""), S("v1"), str_c(kinds[i].plural));
        const struct object *o =
            store_latest(c->server->store,
                         catalog_key(c->arena, k, k->namespaced ? c->ns : S(""), name));
        if (o)
            ret->bound_uid = object_span(o, o->uid);
        if (o && (!uid.n || str_eq(uid, ret->bound_uid)))
            return i > 0 || check_pod(c, read_tree(c->arena, k, o), ret);
        if (o)
            call_conflict(c, k, name, S("the UID in the bound object reference is another one"));
        else
            call_not_found(c, k, name);
        return false;
    }
    call_bad_request(c, "cannot bind token to object of type " STR_FMT ", Kind=" STR_FMT,
                     STR_ARG(json_text(json_get(bound, "apiVersion"))), STR_ARG(kind));
    return false;
}

/* Validates a TokenRequest. False: answered. */
static bool check_request(struct call *c, struct json *request, struct token_claims *ret)
{
    struct field_errors errors = { .arena = c->arena };
    struct json *spec = json_make(c->arena, request, "spec", NULL);
    struct json *seconds = json_get(spec, "expirationSeconds");
    struct json *name = json_at(request, "metadata", "name", NULL);
    struct field_path at = { .key = S("spec") }, meta = { .key = S("metadata") };
    bool misnamed = json_text(name).n && !str_eq(json_text(name), c->name);
    if (misnamed)
        field_invalid(&errors, &(struct field_path){ &meta, .key = S("name") }, name,
                      "must match the service account name if specified");
    struct field_path expiry = { &at, .key = S("expirationSeconds") };
    if (!misnamed && json_int(seconds, 0) < TOKEN_SECONDS_MIN)
        field_invalid(&errors, &expiry, seconds, "may not specify a duration less than 10 minutes");
    else if (!misnamed && json_int(seconds, 0) > UINT32_MAX)
        field_invalid(&errors, &expiry, seconds,
                      "may not specify a duration larger than 2^32 seconds");
    if (errors.n)
        call_invalid(c, S("TokenRequest"), S("authentication.k8s.io"), misnamed ? c->name : S(""),
                     &errors);
    const struct json *bound = json_get(spec, "boundObjectRef");
    return errors.n == 0 && (!json_is(bound, JSON_OBJ) || check_bound(c, bound, ret));
}

/* Creates a token and returns it in the status of the request. */
static void post_token(struct call *c, struct json *request)
{
    struct arena *a = c->arena;
    const struct object *account =
        store_latest(c->server->store, catalog_key(a, c->kind, c->ns, c->name));
    if (!account) {
        call_not_found(c, c->kind, c->name);
        return;
    }
    struct token_claims claims = { .ns = c->ns, .account = c->name };
    if (!check_request(c, request, &claims))
        return;
    struct json *metadata = json_make(a, request, "metadata", NULL);
    struct json *spec = json_make(a, request, "spec", NULL);
    if (!json_len(json_get(spec, "audiences"))) {
        struct json *audiences = json_new_arr(a);
        json_push(a, audiences, json_new_str(a, TOKEN_ISSUER));
        json_set(a, spec, S("audiences"), audiences);
    }
    int64_t until = server_now_ns(c->server) / NS_PER_S +
                    json_int(json_get(spec, "expirationSeconds"), TOKEN_SECONDS);
    claims.uid = object_span(account, account->uid);
    claims.audiences = json_get(spec, "audiences");
    claims.bound = json_get(spec, "boundObjectRef");
    claims.until_s = until;
    char text[RFC3339_TEXT_MAX];
    json_set_str(a, metadata, "name", c->name);
    json_set_str(a, metadata, "uid", claims.uid);
    json_set_str(a, metadata, "creationTimestamp", server_time(c->server, a));
    struct json *status = json_make(a, request, "status", NULL);
    json_set_str(a, status, "token", token_make(c->server, a, &claims));
    json_set_str(a, status, "expirationTimestamp", rfc3339_text(until, text));
    call_object(c, 201, kind_of_posted_sub(KIND_TOKEN), request);
}

void verb_post(struct call *c, const struct write_options *o, struct json *object)
{
    if (c->sub == KIND_BINDING || c->sub == KIND_MAIN)
        post_binding(c, o, object);
    else if (c->sub == KIND_EVICTION)
        eviction_post(c, o, object);
    else
        post_token(c, object);
}
