/* GET of one object, of its Scale, or of the log of a pod. */
#include "convert.h"
#include "read.h"
#include "server.h"
#include "verbs.h"

/* kube-apiserver waits three seconds for the version, because its cache lags behind etcd. This server has
 * no such cache, so waiting could not help. */
struct status verb_future_status(struct arena *a, int64_t rev, int64_t now)
{
    struct json *cause = json_new_obj(a), *causes = json_new_arr(a);
    json_set_str(a, cause, "reason", S("ResourceVersionTooLarge"));
    json_set_str(a, cause, "message", S("Too large resource version"));
    json_push(a, causes, cause);
    str message = arena_printf(a, "Timeout: Too large resource version: %lld, current: %lld",
                               (long long)rev, (long long)now);
    return (struct status){
        .code = 504, .reason = "Timeout", .message = message, .causes = causes, .retry_after_s = 1
    };
}

bool verb_refuse_future(struct call *c, int64_t rev)
{
    int64_t now = store_rev(c->server->store);
    if (rev <= now)
        return false;
    struct status s = verb_future_status(c->arena, rev, now);
    call_status(c, &s);
    return true;
}

static void answer_scale(struct call *c, const struct object *o)
{
    struct kind_fault fault = { .errors.arena = c->arena };
    struct json *scale = kind_scale_of(c->kind, c->arena, read_tree(c->arena, c->kind, o), &fault);
    if (!scale)
        call_fault(c, c->kind, c->name, &fault);
    else
        call_object(c, 200, kind_scale_kind(), scale);
}

/* Whether a node of this name is registered. */
static bool has_node(const struct call *c, str name)
{
    struct catalog_set *set;
    const struct kind *nodes = catalog_find(&c->server->catalog, S(""), S("v1"), S("nodes"), &set);
    return store_get(c->server->store, catalog_key(c->arena, nodes, S(""), name)) != NULL;
}

/* There are no kubelets to ask: a simulated one leaves what a container printed in an annotation of its pod. Without it,
 * a pod without a node has no log, and a missing node is reported as the recorded server does, as a pod. */
static void answer_log(struct call *c, const struct object *o)
{
    const struct json *pod = read_tree(c->arena, c->kind, o);
    const struct json *text =
        json_at(pod, "metadata", "annotations", "testbed.flyball.dev/log", NULL);
    str node = json_text(json_at(pod, "spec", "nodeName", NULL));
    if (!text && !node.n) {
        str why = arena_printf(c->arena, "pod " STR_FMT " does not have a host assigned",
                               STR_ARG(c->name));
        struct status s = { .code = 400, .reason = "BadRequest", .message = why };
        call_status(c, &s);
    } else if (!text && !has_node(c, node)) {
        call_not_found(c, c->kind, node);
    } else {
        c->answer.status = 200;
        c->answer.content_type = "text/plain";
        buf_put(&c->answer.body, json_text(text));
    }
}

void verb_get(struct call *c)
{
    str version = call_query(c, "resourceVersion");
    int64_t rev = 0;
    if (version.n && (str_to_i64(version, &rev) < 0 || rev < 0)) {
        call_bad_version(c, version);
        return;
    }
    if (verb_refuse_future(c, rev))
        return;
    const struct object *o =
        store_get(c->server->store, catalog_key(c->arena, c->kind, c->ns, c->name));
    if (!o) {
        call_not_found(c, c->kind, c->name);
    } else if (!convert_one(c, o)) {
        return; /* answered, or waiting */
    } else if (c->sub == KIND_SCALE) {
        answer_scale(c, o);
    } else if (c->sub == KIND_LOG) {
        answer_log(c, o);
    } else if (c->form == FORM_OBJECT && c->text == TEXT_JSON && !c->pretty) {
        c->answer.status = 200;
        c->answer.content_type = "application/json";
        read_put(&c->answer.body, c->kind, c->set, o, false);
    } else {
        call_object(c, 200, c->kind, read_tree(c->arena, c->kind, o));
    }
}
