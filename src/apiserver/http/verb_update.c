/* PUT: the whole new state of an object, or of one of its subresources. Optimistic: a resourceVersion in the
 * body must be the current one, counting writes that are still on their way. */
#include "access.h"
#include "managed.h"
#include "read.h"
#include "verbs.h"
#include "write.h"

/* A PUT of custom resources, leases and definitions must say what it replaces. */
static void version_required(struct call *c)
{
    struct field_errors errors = { .arena = c->arena };
    struct field_path metadata = { .key = S("metadata") };
    field_invalid(&errors, &(struct field_path){ &metadata, .key = S("resourceVersion") },
                  json_new_int(c->arena, 0), "must be specified for an update");
    call_invalid(c, c->kind->plural, c->kind->group, c->name, &errors);
}

/* Version and uid of the body against what is there. False: answered. */
static bool check_preconditions(struct call *c, const struct update *u)
{
    struct json *metadata = json_make(c->arena, u->object, "metadata", NULL);
    str uid = json_text(json_get(metadata, "uid")), old_uid = object_span(u->old, u->old->uid);
    str version = json_text(json_get(metadata, "resourceVersion"));
    if (!u->patched && uid.n && !str_eq(uid, old_uid)) {
        call_conflict(c, c->kind, c->name,
                      arena_printf(c->arena,
                                   "Precondition failed: UID in precondition: " STR_FMT
                                   ", UID in object meta: " STR_FMT,
                                   STR_ARG(uid), STR_ARG(old_uid)));
        return false;
    }
    if (!version.n || str_eq(version, S("0"))) {
        if (u->patched || c->kind->unconditional_update || c->sub == KIND_SCALE)
            return true;
        version_required(c);
        return false;
    }
    if (str_eq(version, object_span(u->old, u->old->rv)))
        return true;
    int64_t number;
    if (str_to_i64(version, &number) < 0) {
        call_bad_version(c, version);
        return false;
    }
    call_conflict(c, c->kind, c->name, S(""));
    return false;
}

/* What no client may change is taken from what is there. */
static void restore_system_metadata(struct call *c, const struct update *u)
{
    struct json *now = json_make(c->arena, u->object, "metadata", NULL);
    const struct json *old = json_get(u->old_tree, "metadata");
    static const char *const kept[] = { "creationTimestamp", "generation", "selfLink" };
    static const char *const once_set[] = { "deletionTimestamp", "deletionGracePeriodSeconds" };
    for (size_t i = 0; i < countof(kept); i++) {
        struct json *value = json_get(old, kept[i]);
        if (value)
            json_set(c->arena, now, str_c(kept[i]), value);
        else
            json_del(now, str_c(kept[i]));
    }
    for (size_t i = 0; i < countof(once_set); i++) /* setting them is refused as a change */
        if (json_get(old, once_set[i]))
            json_set(c->arena, now, str_c(once_set[i]), json_get(old, once_set[i]));
    if (!json_text(json_get(now, "uid")).n)
        json_set(c->arena, now, S("uid"), json_get(old, "uid"));
    json_set(c->arena, now, S("resourceVersion"), json_get(old, "resourceVersion"));
    if (c->kind->namespaced && !json_text(json_get(now, "namespace")).n)
        json_set_str(c->arena, now, "namespace", c->ns);
    else if (!c->kind->namespaced)
        json_del(now, S("namespace"));
}

bool write_check_place(struct call *c, const struct json *object)
{
    str name = json_text(json_at(object, "metadata", "name", NULL));
    str ns = json_text(json_at(object, "metadata", "namespace", NULL));
    if (name.n && !str_eq(name, c->name))
        call_bad_request(c,
                         "the name of the object (" STR_FMT
                         ") does not match the name on the URL (" STR_FMT ")",
                         STR_ARG(name), STR_ARG(c->name));
    else if (c->kind->namespaced && ns.n && !str_eq(ns, c->ns))
        call_bad_request(
            c, "the namespace of the provided object does not match the namespace sent on "
               "the request");
    else
        return true;
    return false;
}

static bool check_names(struct call *c, const struct json *object)
{
    if (json_text(json_at(object, "metadata", "name", NULL)).n)
        return write_check_place(c, object);
    call_bad_request(c,
                     "the name of the object (" STR_FMT
                     " based on URL) was undeterminable: name must be provided",
                     STR_ARG(c->name));
    return false;
}

static bool prepare(struct call *c, const struct update *u)
{
    if (!access_may_grant(c, u->old_tree, u->object))
        return false;
    struct write_env env;
    write_env_init(&env, c->server, c, c->arena);
    write_owners_once(c, u->object);
    struct kind_change change = { c->kind, c->sub, u->object, u->old_tree };
    struct kind_fault fault = { .errors.arena = c->arena };
    if (!u->applied)
        managed_update(c, u->options, u->old_tree, u->object);
    kind_prepare(&change, &env.env, &fault);
    if (!fault.code && !fault.errors.n)
        kind_validate(&change, &env.env, &fault);
    if (!fault.code && !fault.errors.n)
        return true;
    call_fault(c, c->kind, c->name, &fault);
    return false;
}

void write_update(struct call *c, const struct update *u)
{
    if (!check_names(c, u->object) || !check_preconditions(c, u))
        return;
    restore_system_metadata(c, u);
    if (!prepare(c, u))
        return;
    if (write_is_same(c->arena, u->old_tree, u->object)) {
        write_answer(c, 200, NULL, u->old_tree);
        return;
    }
    str key = kind_key(c->arena, c->kind, c->ns, c->name);
    const struct object *stored = NULL;
    err_t e;
    bool goes = write_may_go(c->kind, u->object);
    if (u->options->dry_run) {
        write_answer(c, 200, NULL, u->object);
        return;
    }
    /* the last finalizer went: the update is answered, but what is deleted is what was there */
    stored = goes ? write_remove(c->server, c->arena, c->kind, key, u->old_tree, &e)
                  : write_stage(c->server, c->arena, c->kind, key, u->object, &e);
    if (!stored)
        call_stage_failed(c, &e);
    else
        write_answer(c, 200, goes ? NULL : stored, u->object);
}

/* A built-in scale is judged as such, before its object is. False: answered. */
bool check_scale(struct call *c, const struct json *scale)
{
    struct json *replicas = json_at(scale, "spec", "replicas", NULL);
    if (c->kind->custom || (json_int(replicas, 0) >= 0 && json_int(replicas, 0) <= INT32_MAX))
        return true;
    struct field_errors errors = { .arena = c->arena };
    struct field_path spec = { .key = S("spec") };
    field_invalid(&errors, &(struct field_path){ &spec, .key = S("replicas") }, replicas,
                  "must be greater than or equal to 0");
    call_invalid(c, S("Scale"), S("autoscaling"), c->name, &errors);
    return false;
}

/* PUT of a Scale: the replicas go into a copy of the object. */
static void update_scale(struct call *c, const struct write_options *o, const struct object *old)
{
    struct json *scale = call_body_object(c, kind_scale_kind(), o);
    if (!scale || !check_names(c, scale))
        return;
    if (!old) {
        call_not_found(c, c->kind, c->name);
        return;
    }
    if (!check_scale(c, scale))
        return;
    struct json *tree = read_tree(c->arena, c->kind, old), *object = json_copy(c->arena, tree);
    struct kind_fault fault = { .errors.arena = c->arena };
    kind_scale_apply(c->kind, c->arena, scale, object, &fault);
    if (fault.code || fault.errors.n) {
        call_fault(c, c->kind, c->name, &fault);
        return;
    }
    struct json *version = json_at(scale, "metadata", "resourceVersion", NULL);
    json_set(c->arena, json_make(c->arena, object, "metadata", NULL), S("resourceVersion"),
             version ? version : json_new_str(c->arena, S("")));
    write_update(c,
                 &(struct update){ .options = o, .old = old, .old_tree = tree, .object = object });
}

/* There is nothing to conflict with, unless a certain object is meant. */
static void create_instead(struct call *c, const struct write_options *o, struct json *object)
{
    struct json *metadata = json_make(c->arena, object, "metadata", NULL);
    str uid = json_text(json_get(metadata, "uid"));
    int64_t number;
    if (uid.n) {
        call_conflict(c, c->kind, c->name,
                      arena_printf(c->arena,
                                   "Precondition failed: UID in precondition: " STR_FMT
                                   ", UID in object meta: ",
                                   STR_ARG(uid)));
        return;
    }
    if (str_to_i64(json_text(json_get(metadata, "resourceVersion")), &number) == 0)
        json_del(metadata, S("resourceVersion"));
    write_create(c, o, object);
}

void verb_update(struct call *c)
{
    struct write_options o;
    if (!call_write_options(c, "UpdateOptions", &o))
        return;
    const struct object *old =
        store_latest(c->server->store, kind_key(c->arena, c->kind, c->ns, c->name));
    if (c->sub == KIND_SCALE) {
        update_scale(c, &o, old);
        return;
    }
    struct json *object = call_body_object(c, c->kind, &o);
    if (!object || !check_names(c, object))
        return;
    if (!old && c->kind->create_on_update && c->sub == KIND_MAIN) {
        create_instead(c, &o, object);
        return;
    }
    if (!old) {
        call_not_found(c, c->kind, c->name);
        return;
    }
    write_update(c, &(struct update){ .options = &o,
                                      .old = old,
                                      .old_tree = read_tree(c->arena, c->kind, old),
                                      .object = object });
}
