/* Admission webhooks of a write: which ones see it, in which order, and what follows from their answers.
 *
 *   mutating      one after the other, by configuration and position; each sees what those before it made of the object.
 *                 If one changes the object, those before it with reinvocationPolicy IfNeeded are asked once more
 *   validating    all at once, on the final object; the first refusal in that order is reported
 *
 * Configurations are read from the store for every write, so that they take effect as soon as they are committed, and
 * parsed once per version. Writes to them are not subject to webhooks, so that a broken one can be removed. */
#include "webhook.h"

#include "../../base/log.h"
#include "../../json/patch.h"
#include "convert.h"
#include "read.h"

#define GROUP S("admissionregistration.k8s.io")

/* ---- configurations */

struct hook {
    const struct json *spec;
    const struct policy *conditions; /* NULL: none */
    str name, id;
};

/* A parsed configuration, valid for one revision of its object. */
struct hook_config {
    struct hook_config *next;
    struct arena arena;
    str key;
    int64_t rev;
    struct hook *hooks;
    size_t n;
};

/* Everything of a configuration is in its arena. */
static void free_config(struct hook_config *c)
{
    arena_done(&c->arena);
    free(c);
}

void webhook_configs_free(struct hook_config *first)
{
    for (struct hook_config *next; first; first = next) {
        next = first->next;
        free_config(first);
    }
}

/* Frees those whose object was deleted or replaced. */
static void sweep_configs(struct server *s)
{
    for (struct hook_config **at = &s->hook_configs; *at;) {
        struct hook_config *c = *at;
        const struct object *o = store_get(s->store, c->key);
        if (o && o->rev == c->rev) {
            at = &c->next;
            continue;
        }
        *at = c->next;
        free_config(c);
    }
}

/* A configuration that cannot be parsed has no webhooks: only a damaged file has one. */
static struct hook_config *parse_config(const struct object *o)
{
    struct hook_config *c = mem_zero(1, sizeof(*c));
    struct arena *a = &c->arena;
    struct json *tree = NULL;
    c->key = arena_str(a, object_key(o));
    c->rev = o->rev;
    if (json_parse(a, arena_str(a, object_json(o)), &tree, NULL) < 0)
        return c;
    const struct json *list = json_get(tree, "webhooks");
    c->hooks = arena_array(a, json_len(list), sizeof(*c->hooks));
    for (; c->n < json_len(list); c->n++) {
        struct hook *h = &c->hooks[c->n];
        h->spec = list->items[c->n];
        h->name = json_text(json_get(h->spec, "name"));
        h->id = arena_printf(a, STR_FMT " " STR_FMT, STR_ARG(c->key), STR_ARG(h->name));
        if (json_len(json_get(h->spec, "matchConditions")))
            h->conditions = kind_policy_compile_conditions(a, h->spec, NULL, NULL);
    }
    return c;
}

static const struct hook_config *find_config(struct server *s, const struct object *o)
{
    for (struct hook_config *c = s->hook_configs; c; c = c->next)
        if (c->rev == o->rev && str_eq(c->key, object_key(o)))
            return c;
    sweep_configs(s);
    struct hook_config *c = parse_config(o);
    c->next = s->hook_configs;
    s->hook_configs = c;
    return c;
}

/* Keys of configurations begin with these. They are looked for on every write. */
#define PREFIX(type) "admissionregistration.k8s.io/" type "webhookconfigurations/"
static const char *const prefixes[] = { PREFIX("validating"), PREFIX("mutating") };

bool webhook_exist(struct server *s)
{
    for (size_t i = 0; i < countof(prefixes); i++) {
        str prefix = str_c(prefixes[i]);
        struct tree_cursor cursor = tree_seek(store_tree(s->store), prefix);
        if (tree_next_in(&cursor, prefix))
            return true;
    }
    return false;
}

struct hook_list {
    const struct hook **at;
    size_t n;
};

/* All webhooks of one type, in the order in which they are asked. */
static struct hook_list collect_hooks(struct call *c, bool mutating)
{
    struct hook_list list = { 0 };
    str prefix = str_c(prefixes[mutating]);
    for (int pass = 0; pass < 2; pass++) { /* count, then collect */
        list.n = 0;
        struct tree_cursor cursor = tree_seek(store_tree(c->server->store), prefix);
        for (const struct object *o; (o = tree_next_in(&cursor, prefix));) {
            const struct hook_config *config = find_config(c->server, o);
            for (size_t i = 0; i < config->n; i++, list.n++)
                if (pass)
                    list.at[list.n] = &config->hooks[i];
        }
        if (!pass)
            list.at = arena_array(c->arena, list.n, sizeof(*list.at));
    }
    return list;
}

/* ---- selecting */

/* A webhook that sees the request, in the version that its rules name. */
struct invocation {
    const struct hook *hook;
    const struct kind *as;
    struct admission_request request;
};

/* Whether the webhook sees the request. Fills in the invocation. A condition that fails to evaluate refuses the
 * request: then the call is answered. */
static bool select_hook(const struct admission_request *r, const struct hook *h,
                        struct invocation *ret)
{
    struct call *c = r->call;
    bool exact = str_eqc(json_text(json_get(h->spec, "matchPolicy")), "Exact");
    const struct kind *as = admission_selects(r, h->spec)
                                ? admission_find_version(r, json_get(h->spec, "rules"), exact)
                                : NULL;
    if (!as)
        return false;
    *ret = (struct invocation){ .hook = h, .as = as };
    if (!admission_view(r, as, &ret->request))
        return false;
    str why = S("");
    if (!h->conditions || admission_conditions_hold(&ret->request, h->conditions, &why))
        return true;
    if (why.n)
        call_forbidden(c, c->kind, r->name, STR_FMT, STR_ARG(why));
    return false;
}

/* ---- asking */

void webhook_answer_internal(struct call *c, str why)
{
    call_status(c, &(struct status){ .code = 500,
                                     .reason = "InternalError",
                                     .message =
                                         arena_printf(c->arena, "Internal error occurred: " STR_FMT,
                                                      STR_ARG(why)) });
}

/* The refusal of a webhook is passed on as its Status. */
static void answer_denied(struct call *c, const struct hook_verdict *v)
{
    struct arena *a = c->arena;
    struct json *tree = status_tree(a, &(struct status){ .code = v->code, .message = v->message });
    const struct json *details = json_get(v->status, "details");
    int64_t wait_s = json_int(json_get(details, "retryAfterSeconds"), 0);
    if (v->reason.n)
        json_set_str(a, tree, "reason", v->reason);
    if (json_len(details) && json_is(details, JSON_OBJ))
        json_set(a, tree, S("details"), json_copy(a, details));
    if (wait_s > 0)
        call_add_header(c, "Retry-After", arena_printf(a, "%lld", (long long)wait_s));
    call_json(c, v->code, tree);
}

/* The verdict of a webhook. False: it is not known yet. */
static bool ask_hook(const struct invocation *i, bool mutating, int round, struct hook_verdict *ret)
{
    struct call *c = i->request.call;
    const struct json *spec = i->hook->spec;
    struct hook_target target;
    webhook_target(c, json_get(spec, "clientConfig"),
                   json_int(json_get(spec, "timeoutSeconds"), 10), &target);
    struct json *request = admission_make_request(&i->request, i->as);
    json_set(c->arena, request, S("object"),
             i->request.object ? json_copy(c->arena, i->request.object) : json_new_null(c->arena));
    json_set(c->arena, request, S("oldObject"),
             i->request.old ? json_copy(c->arena, i->request.old) : json_new_null(c->arena));
    struct hook_question q = {
        .id = arena_printf(c->arena, STR_FMT " %d", STR_ARG(i->hook->id), round),
        .version = webhook_choose_version(json_get(spec, "admissionReviewVersions")),
        .request = request
    };
    const struct hook_answer *answer = webhook_ask(c, &target, &q);
    if (answer)
        webhook_admission_read(c->arena, &answer->reply, i->hook->name, q.version, answer->uid,
                               mutating, ret);
    return answer != NULL;
}

/* What follows from a verdict. False: answered with a refusal. */
static bool apply_verdict(struct call *c, const struct hook *h, struct hook_verdict *v)
{
    for (size_t i = 0; i < json_len(v->warnings); i++)
        if (json_text(json_item(v->warnings, i)).n)
            call_warn(c, json_text(json_item(v->warnings, i)));
    if (v->how == HOOK_ALLOWED)
        return true;
    if (v->how == HOOK_DENIED) {
        answer_denied(c, v);
        return false;
    }
    str why = arena_printf(c->arena, "failed calling webhook \"" STR_FMT "\": " STR_FMT,
                           STR_ARG(h->name), STR_ARG(v->why));
    if (!str_eqc(json_text(json_get(h->spec, "failurePolicy")), "Ignore")) {
        webhook_answer_internal(c, why);
        return false;
    }
    log_warn("webhook failed; its failurePolicy is Ignore", KV("webhook", h->name),
             KV("why", v->why));
    return true;
}

/* ---- mutating */

/* Why the patch does not apply, in the words of kube-apiserver: the first operation that fails is found by applying one
 * after the other. */
str webhook_describe_patch_error(struct arena *a, const struct json *object,
                                 const struct json *patch, const err_t *e)
{
    struct json *now = json_copy(a, object);
    enum { MOST = 100 }; /* each is a pass over the object */
    for (uint32_t i = 0; json_len(patch) <= MOST && i < json_len(patch); i++) {
        struct json one = { .type = JSON_ARR, .n = 1, .items = &patch->items[i] };
        if (patch_apply(a, now, &one, &now, NULL) == 0)
            continue;
        str op = json_text(json_get(patch->items[i], "op"));
        str path = json_text(json_get(patch->items[i], "path")), rest = path, key = S("");
        while (str_cut(&rest, '/', &key))
            ;
        if (str_eqc(op, "test"))
            return arena_printf(a, "testing value " STR_FMT " failed: test failed", STR_ARG(path));
        if (str_eqc(op, "remove"))
            return arena_printf(a,
                                "error in remove for path: '" STR_FMT
                                "': Unable to remove nonexistent key: " STR_FMT ": missing value",
                                STR_ARG(path), STR_ARG(key));
        if (str_eqc(op, "add") || str_eqc(op, "replace"))
            return arena_printf(a,
                                STR_FMT " operation does not apply: doc is missing path: \"" STR_FMT
                                        "\": missing value",
                                STR_ARG(op), STR_ARG(path));
        if (!str_eqc(op, "move") && !str_eqc(op, "copy"))
            return arena_printf(a, "Unexpected kind: " STR_FMT, STR_ARG(op));
        break;
    }
    return arena_str(a, str_c(e->text));
}

/* Applies the patch to the object, which must then decode as its kind. The result replaces r->object. False: answered. */
static bool apply_patch(struct admission_request *r, const struct invocation *i,
                        const struct json *patch, bool *ret_changed)
{
    struct call *c = r->call;
    struct json *result = NULL;
    err_t e = { 0 };
    if (!i->request.object) {
        webhook_answer_internal(c, arena_printf(c->arena,
                                                "admission webhook \"" STR_FMT
                                                "\" attempted to modify the object, which is not "
                                                "supported for this operation",
                                                STR_ARG(i->hook->name)));
        return false;
    }
    const struct kind *k = i->request.kind;
    if (patch_apply(c->arena, i->request.object, patch, &result, &e) < 0) {
        webhook_answer_internal(c, webhook_describe_patch_error(c->arena, i->request.object, patch,
                                                                &e));
        return false;
    }
    int failed = kind_decode(k, c->arena, result, NULL, &e);
    if (!failed &&
        (!str_eq(json_text(json_get(result, "kind")), k->kind) ||
         !str_eq(json_text(json_get(result, "apiVersion")), kind_api_version(c->arena, k))))
        failed = err_set(&e, EINVAL, "the patch changes kind or apiVersion");
    if (failed) {
        webhook_answer_internal(c, arena_str(c->arena, str_c(e.text)));
        return false;
    }
    *ret_changed = !json_eq(result, i->request.object);
    r->object = k == r->kind ? result : convert_tree(c, k, r->kind, result);
    return r->object != NULL;
}

/* What is known of a mutating webhook: see webhook_mutate(). */
struct turn {
    bool was_asked; /* and has reinvocationPolicy IfNeeded */
    bool again;     /* a later one changed the object */
};

/* One round over all webhooks. False: answered, or waiting. */
static bool run_round(struct admission_request *r, struct hook_list hooks, struct turn *turns,
                      int round, bool *ret_changed)
{
    for (size_t i = 0; i < hooks.n; i++) {
        struct invocation call;
        struct hook_verdict v;
        bool changed = false;
        if (!select_hook(r, hooks.at[i], &call)) {
            if (r->call->answer.status || webhook_is_waiting(r->call))
                return false;
            continue;
        }
        if (round && !turns[i].again)
            continue;
        if (!ask_hook(&call, true, round, &v) || !apply_verdict(r->call, hooks.at[i], &v) ||
            (v.patch && !apply_patch(r, &call, v.patch, &changed)))
            return false;
        for (size_t k = 0; changed && k < hooks.n; k++)
            if (turns[k].was_asked)
                turns[k] = (struct turn){ .again = true };
        *ret_changed |= changed;
        if (str_eqc(json_text(json_get(hooks.at[i]->spec, "reinvocationPolicy")), "IfNeeded"))
            turns[i].was_asked = true;
    }
    return true;
}

/* A second round asks those again whose policy wants it, and no other, as kube-apiserver does. There is no
 * third: webhooks that undo each other's changes must not go on for ever. In each round policies come first. */
bool webhook_mutate(struct admission_request *r)
{
    struct call *c = r->call;
    if (str_eq(c->kind->group, GROUP))
        return true;
    struct hook_list hooks = { 0 };
    if (c->wait) /* not a write of the server itself, and there are some */
        hooks = collect_hooks(c, true);
    struct turn *turns = arena_array(c->arena, hooks.n, sizeof(*turns));
    struct mutation m = { 0 };
    for (bool again = true; again && m.round < 2; m.round++) {
        m.changed = again = false;
        if (!admission_run_mutations(r, &m))
            return false;
        for (size_t i = 0; m.round && m.changed && i < hooks.n; i++)
            turns[i].again |= turns[i].was_asked;
        if (!run_round(r, hooks, turns, m.round, &again))
            return false;
        again |= m.changed;
    }
    return true;
}

/* ---- validating */

/* Every webhook is asked, even if one has refused already: they run side by side, and all may warn. */
bool webhook_validate(const struct admission_request *r)
{
    struct call *c = r->call;
    if (!c->wait || str_eq(c->kind->group, GROUP))
        return true;
    struct hook_list hooks = collect_hooks(c, false);
    struct hook_verdict *verdicts = arena_array(c->arena, hooks.n, sizeof(*verdicts));
    bool complete = true;
    for (size_t i = 0; i < hooks.n; i++) {
        struct invocation call;
        verdicts[i].how = HOOK_ALLOWED;
        if (select_hook(r, hooks.at[i], &call))
            complete &= ask_hook(&call, false, 0, &verdicts[i]);
        if (c->answer.status)
            return false;
    }
    complete &= !webhook_is_waiting(c);
    bool allowed = complete;
    for (size_t i = 0; complete && i < hooks.n; i++) /* all may warn, the first may refuse */
        if (allowed || json_len(verdicts[i].warnings))
            allowed = apply_verdict(c, hooks.at[i], &verdicts[i]) && allowed;
    return allowed;
}
