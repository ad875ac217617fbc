/* PUT: replaces an object, or one of its subresources.
 *
 * Concurrency is optimistic: a resourceVersion in the body must be the current one, compared with
 * store_latest(), so it counts writes that are not committed yet. Of two clients that read the same version one
 * gets 409 and reads again.
 *
 * verb_update_object() is the common path of PUT and PATCH:
 *
 *     check_names -> managedFields -> admission_mutate -> check_preconditions -> restore_system_metadata ->
 *     prepare_update (grants, kind_prepare, kind_validate) -> admission_check_write -> nothing changed: answer, no write -> stage, or delete if the last
 *     finalizer is gone
 *
 * A write that changes nothing gets no new version, so that controllers that repeat themselves wake no watch. */
#include "access.h"
#include "admission.h"
#include "admission_quota.h"
#include "convert.h"
#include "managed.h"
#include "read.h"
#include "verbs.h"
#include "write.h"

/* A PUT of a custom resource, lease or definition must name the version that it replaces. */
static void refuse_missing_version(struct call *c)
{
    struct field_errors errors = { .arena = c->arena };
    struct field_path metadata = { .key = S("metadata") };
    field_invalid(&errors, &(struct field_path){ &metadata, .key = S("resourceVersion") },
                  json_new_int(c->arena, 0), "must be specified for an update");
    call_invalid(c, c->kind->plural, c->kind->group, c->name, &errors);
}

/* Compares resourceVersion and uid of the body with the current object. False: answered. */
static bool check_preconditions(struct call *c, const struct object_update *u)
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
        refuse_missing_version(c);
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

/* Copies the fields that clients cannot change from the current object. */
static void restore_system_metadata(struct call *c, const struct object_update *u)
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
    for (size_t i = 0; i < countof(once_set);
         i++) /* a new value is kept here, and validation refuses it */
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

/* The body must have the name of the path. False: answered. */
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

/* To decide about a certificate, or to issue it, needs the right to do so for its signer. False: answered. */
static bool check_signer(struct call *c, const struct object_update *u)
{
    const struct json *now = json_get(u->object, "status"), *was = json_get(u->old_tree, "status");
    bool approves = c->sub == KIND_APPROVAL;
    bool signs = c->sub == KIND_STATUS &&
                 !json_eq(json_get(now, "certificate"), json_get(was, "certificate"));
    if (!(c->kind->subresources & 1u << KIND_APPROVAL) || (!approves && !signs))
        return true;
    str signer = json_text(json_at(u->old_tree, "spec", "signerName", NULL));
    struct access want = { .verb = approves ? S("approve") : S("sign"),
                           .group = c->group,
                           .resource = S("signers"),
                           .name = signer };
    struct access any = want;
    any.name =
        arena_printf(c->arena, STR_FMT "/*", STR_ARG(str_upto(signer, str_find_char(signer, '/'))));
    if (access_is_allowed(c->server, c->arena, &c->user, &want, NULL) ||
        access_is_allowed(c->server, c->arena, &c->user, &any, NULL))
        return true;
    call_forbidden(c, c->kind, c->name,
                   "user not permitted to %s requests with signerName \"" STR_FMT "\"",
                   approves ? "approve" : "sign", STR_ARG(signer));
    return false;
}

/* The steps before the write that can refuse it. False: answered. */
static bool prepare_update(struct call *c, const struct object_update *u)
{
    if (!access_check_grant(c, u->old_tree, u->object) || !check_signer(c, u))
        return false;
    write_dedupe_owners(c, u->object);
    return write_prepare(c, &(struct kind_change){ c->kind, c->sub, u->object, u->old_tree });
}

/* Webhooks see the object before it is compared with the stored one, as in kube-apiserver. */
void verb_update_object(struct call *c, const struct object_update *given)
{
    struct object_update own = *given, *u = &own;
    if (!check_names(c, u->object))
        return;
    if (!u->applied)
        managed_update(c, u->options, u->old_tree, u->object);
    if (!admission_mutate(c, &u->object, u->old_tree, u->options->dry_run) ||
        !check_preconditions(c, u))
        return;
    restore_system_metadata(c, u);
    if (!prepare_update(c, u) ||
        !admission_check_write(c, u->object, u->old_tree, u->options->dry_run) ||
        (c->sub != KIND_STATUS && !admission_quota_has_room(c, u->object, u->old_tree)))
        return;
    if (write_is_same(c->arena, u->old_tree, u->object)) {
        write_answer(c, 200, NULL, u->old_tree);
        return;
    }
    str key = catalog_key(c->arena, c->kind, c->ns, c->name);
    const struct object *stored = NULL;
    const struct kind *as = convert_stored_kind(c->kind);
    err_t e;
    bool goes = write_can_delete(c->kind, u->object);
    struct json *now = convert_for_store(c, u->object);
    if (!now)
        return;
    if (u->options->dry_run) {
        write_answer(c, 200, NULL, u->object);
        return;
    }
    if (!goes)
        admission_quota_charge(c);
    /* the update removed the last finalizer: answer with it, but the tombstone shows the old state */
    stored = goes ? write_remove(c->server, c->arena, as, key, read_tree(c->arena, as, u->old), &e)
                  : write_stage(c->server, c->arena, as, key, now, &e);
    if (!stored)
        write_stage_error(c, &e);
    else
        write_answer(c, 200, goes ? NULL : stored, u->object);
}

/* PUT of a Scale: writes its replicas into a copy of the object. */
static void update_scale(struct call *c, const struct write_options *o, const struct object *old)
{
    struct json *scale = call_body_object(c, kind_scale_kind(), o);
    if (!scale || !check_names(c, scale))
        return;
    if (!old) {
        call_not_found(c, c->kind, c->name);
        return;
    }
    if (!write_check_scale(c, scale))
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
    verb_update_object(c, &(struct object_update){
                              .options = o, .old = old, .old_tree = tree, .object = object });
}

/* PUT of an object that does not exist, for kinds that allow it. A uid in the body means a certain object,
 * so that is a conflict. */
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
    verb_create_object(c, o, object);
}

void verb_update(struct call *c)
{
    struct write_options o;
    if (!call_write_options(c, "UpdateOptions", &o))
        return;
    const struct object *old =
        store_latest(c->server->store, catalog_key(c->arena, c->kind, c->ns, c->name));
    if (!convert_one(c, old))
        return;
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
    verb_update_object(c, &(struct object_update){ .options = &o,
                                                   .old = old,
                                                   .old_tree = read_tree(c->arena, c->kind, old),
                                                   .object = object });
}
