/* GET of one object, or of its Scale. */
#include "read.h"
#include "server.h"
#include "verbs.h"

/* kube-apiserver waits three seconds for the version, because its cache lags behind etcd. This server has
 * no such cache, so waiting could not help. */
struct status status_future_version(struct arena *a, int64_t rev, int64_t now)
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

bool call_refuse_future_version(struct call *c, int64_t rev)
{
    int64_t now = store_rev(c->server->store);
    if (rev <= now)
        return false;
    struct status s = status_future_version(c->arena, rev, now);
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

void verb_get(struct call *c)
{
    str version = call_query(c, "resourceVersion");
    int64_t rev = 0;
    if (version.n && (str_to_i64(version, &rev) < 0 || rev < 0)) {
        call_bad_version(c, version);
        return;
    }
    if (call_refuse_future_version(c, rev))
        return;
    const struct object *o =
        store_get(c->server->store, registry_key(c->arena, c->kind, c->ns, c->name));
    if (!o) {
        call_not_found(c, c->kind, c->name);
    } else if (c->sub == KIND_SCALE) {
        answer_scale(c, o);
    } else if (c->form == FORM_OBJECT && c->text == TEXT_JSON && !c->pretty) {
        c->answer.status = 200;
        c->answer.content_type = "application/json";
        read_put(&c->answer.body, c->kind, c->set, o, false);
    } else {
        call_object(c, 200, c->kind, read_tree(c->arena, c->kind, o));
    }
}
