/* POST: creates an object. verb_create_object() also serves PUT and apply of an object that does not exist.
 *
 *     namespace exists and is not terminating -> name -> managedFields -> admission_mutate -> access_check_grant
 *     (roles) -> uid, creationTimestamp -> kind_prepare, kind_validate -> admission_check_write -> the name is free
 *     -> stage
 *
 * The order decides which error a client sees first and is pinned by the recordings in test/conformance. The
 * name is checked last and against store_latest(), so it counts writes that are not committed yet. */
#include "access.h"
#include "admission.h"
#include "admission_quota.h"
#include "convert.h"
#include "managed.h"
#include "read.h"
#include "verbs.h"
#include "write.h"

enum { NAME_MAX_BEFORE_SUFFIX = 58, NAME_TRIES = 8 };

/* Sets the namespace of the path in the body. False: the body names another one, answered. */
static bool take_namespace(struct call *c, struct json *metadata)
{
    str given = json_text(json_get(metadata, "namespace"));
    if (!c->kind->namespaced) {
        json_del(metadata, S("namespace"));
        return true;
    }
    if (given.n && !str_eq(given, c->ns)) {
        call_bad_request(
            c, "the namespace of the provided object does not match the namespace sent on "
               "the request");
        return false;
    }
    json_set_str(c->arena, metadata, "namespace", c->ns);
    return true;
}

/* The namespace must exist and not be terminating. False: answered. */
static bool check_namespace(struct call *c, struct json *metadata)
{
    if (!take_namespace(c, metadata))
        return false;
    if (!c->kind->namespaced)
        return true;
    const struct kind *namespaces = kinds_find(S(""), S("v1"), S("namespaces"));
    const struct object *ns =
        store_latest(c->server->store, catalog_key(c->arena, namespaces, S(""), c->ns));
    if (!ns) {
        call_not_found(c, namespaces, c->ns);
        return false;
    }
    if (!ns->deleting)
        return true;
    struct json *causes = json_new_arr(c->arena), *cause = json_new_obj(c->arena);
    json_set_str(c->arena, cause, "reason", S("NamespaceTerminating"));
    json_set_str(c->arena, cause, "message",
                 arena_printf(c->arena, "namespace " STR_FMT " is being terminated",
                              STR_ARG(c->ns)));
    json_set_str(c->arena, cause, "field", S("metadata.namespace"));
    json_push(c->arena, causes, cause);
    str name = json_text(json_get(metadata, json_get(metadata, "name") ? "name" : "generateName"));
    str resource = c->group.n ? arena_printf(c->arena, STR_FMT "." STR_FMT, STR_ARG(c->resource),
                                             STR_ARG(c->group))
                              : c->resource;
    str message =
        arena_printf(c->arena,
                     STR_FMT " \"" STR_FMT "\" is forbidden: unable to create new content in "
                             "namespace " STR_FMT " because it is being terminated",
                     STR_ARG(resource), STR_ARG(name), STR_ARG(c->ns));
    call_status(c, &(struct status){ .code = 403,
                                     .reason = "Forbidden",
                                     .message = message,
                                     .name = name,
                                     .group = c->group,
                                     .kind = c->resource,
                                     .causes = causes });
    return false;
}

/* A random suffix; tries again if the name is taken. The last try stands, and the create then fails with
 * 409. */
static void generate_name(struct call *c, struct json *metadata)
{
    str prefix = str_upto(json_text(json_get(metadata, "generateName")), NAME_MAX_BEFORE_SUFFIX);
    for (int i = 0; i < NAME_TRIES; i++) {
        str name = arena_printf(c->arena, STR_FMT STR_FMT, STR_ARG(prefix),
                                STR_ARG(server_name_suffix(c->server, c->arena)));
        json_set_str(c->arena, metadata, "name", name);
        if (!store_latest(c->server->store, catalog_key(c->arena, c->kind, c->ns, name)))
            return;
    }
}

/* Removes what a client may not set, and generates the name. */
static void clear_system_metadata(struct call *c, struct json *metadata)
{
    const str never[] = { S("deletionTimestamp"), S("deletionGracePeriodSeconds"), S("selfLink"),
                          S("resourceVersion") };
    for (size_t i = 0; i < countof(never); i++)
        json_del(metadata, never[i]);
    if (!json_text(json_get(metadata, "name")).n && json_text(json_get(metadata, "generateName")).n)
        generate_name(c, metadata);
    json_del(metadata, S("uid"));
    json_del(metadata, S("creationTimestamp"));
}

static void set_system_metadata(struct call *c, struct json *metadata)
{
    json_set_str(c->arena, metadata, "uid", server_uid(c->server, c->arena));
    json_set_str(c->arena, metadata, "creationTimestamp", server_time(c->server, c->arena));
}

/* A resourceVersion is refused by the storage of kube-apiserver: after validation, and never in a dry run. */
void verb_create_object(struct call *c, const struct write_options *o, struct json *object)
{
    struct json *metadata = json_make(c->arena, object, "metadata", NULL);
    str version = json_text(json_get(metadata, "resourceVersion"));
    if (!check_namespace(c, metadata))
        return;
    if (c->set && c->set->terminating) {
        call_forbidden(c, c->kind, json_text(json_get(metadata, "name")),
                       "create not allowed while custom resource definition is terminating");
        return;
    }
    clear_system_metadata(c, metadata);
    write_dedupe_owners(c, object);
    if (!c->managed_by_apply)
        managed_update(c, o, NULL, object);
    if (!admission_mutate(c, &object, NULL, o->dry_run))
        return;
    metadata = json_make(c->arena, object, "metadata", NULL);
    if (!take_namespace(c, metadata) || !access_check_grant(c, NULL, object))
        return;
    set_system_metadata(c, metadata);
    write_dedupe_owners(c, object);
    struct kind_change change = { .kind = c->kind, .sub = KIND_MAIN, .object = object };
    if (!write_prepare(c, &change) || (c->verb != VERB_CREATE && !call_authorize_create(c)))
        return;
    if (!admission_check_write(c, object, NULL, o->dry_run) ||
        !admission_quota_has_room(c, object, NULL))
        return;
    if (version.n && !str_eq(version, S("0")) && !o->dry_run) {
        call_status(c, &(struct status){ .code = 500,
                                         .message =
                                             S("resourceVersion should not be set on objects to "
                                               "be created") });
        return;
    }
    str name = json_text(json_get(metadata, "name"));
    str key = catalog_key(c->arena, c->kind, c->ns, name);
    const struct object *existing = store_latest(c->server->store, key);
    if (existing) {
        call_already_exists(c, c->kind, name, existing->deleting);
        return;
    }
    struct object *stored = NULL;
    err_t e;
    const struct kind *as = convert_stored_kind(c->kind);
    struct json *made = convert_for_store(c, object);
    if (!made)
        return;
    if (!o->dry_run)
        admission_quota_charge(c);
    if (!o->dry_run && !(stored = write_stage(c->server, c->arena, as, key, made, &e)))
        write_stage_error(c, &e);
    else
        write_answer(c, 201, stored, object);
}

/* Reviews are validated and answered; nothing is stored. */
static void create_review(struct call *c, const struct write_options *o, struct json *object,
                          struct json *metadata)
{
    if (!take_namespace(c, metadata))
        return;
    struct kind_change change = { c->kind, KIND_MAIN, object, NULL };
    struct kind_env env = { .arena = c->arena };
    struct kind_fault fault;
    kind_validate(&change, &env, &fault);
    if (fault.code) {
        call_invalid(c, S(""), c->kind->group, S(""), &fault.errors);
    } else {
        managed_update(c, o, NULL, object);
        c->form = FORM_OBJECT; /* reviews have no columns */
        review_answer(c, object);
    }
}

void verb_create(struct call *c)
{
    struct write_options o;
    if (!call_write_options(c, "CreateOptions", &o))
        return;
    const struct kind *posted = kind_of_posted_sub(c->sub), *k = posted ? posted : c->kind;
    struct json *object = call_body_object(c, k, &o);
    if (!object)
        return;
    struct json *metadata = json_make(c->arena, object, "metadata", NULL);
    if (!posted && !k->answer_only)
        verb_create_object(c, &o, object);
    else if (!posted && k->group.n)
        create_review(c, &o, object, metadata);
    else if (check_namespace(c, metadata) && admission_mutate(c, &object, NULL, o.dry_run) &&
             admission_check_write(c, object, NULL, o.dry_run))
        verb_post(c, &o, object);
}
