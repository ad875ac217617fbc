/* DELETE of one object or of a collection.
 *
 * Options come in the body or, if there is none, in the query; both become one DeleteOptions tree that is
 * decoded and checked in the same way. remove.c does the work; this file decides what the client sees: a Status
 * if the object is gone, the object if it is only marked or if its kind asks for that.
 *
 * Deleting a collection answers with the list as it was before. Its objects are selected first and deleted then,
 * each with its own preconditions; the first that fails stops the rest. */
#include "../schema/types.h"
#include "admission.h"
#include "convert.h"
#include "read.h"
#include "remove.h"
#include "verbs.h"
#include "webhook.h"

struct delete_options {
    struct remove_options remove;
    str uid, version;        /* preconditions; "": none */
    const struct json *tree; /* as given, for admission */
};

/* The options as one tree, from the body or the query. NULL: answered. */
static struct json *read_options_tree(struct call *c)
{
    if (c->request->body.n) {
        struct json *tree = call_body_tree(c);
        str kind = json_text(json_get(tree, "kind"));
        if (tree && (!json_is(tree, JSON_OBJ) || (kind.n && !str_eq(kind, S("DeleteOptions"))))) {
            call_bad_request(c, "no kind \"" STR_FMT "\" is registered for options of a delete",
                             STR_ARG(kind));
            return NULL;
        }
        err_t e = { 0 };
        if (tree &&
            schema_decode(types_schema("meta.v1.DeleteOptions"), c->arena, tree, NULL, &e) < 0) {
            call_bad_request(c, "DeleteOptions: %s", e.text);
            return NULL;
        }
        return tree;
    }
    struct json *tree = json_new_obj(c->arena);
    str policy = call_query(c, "propagationPolicy"), grace = call_query(c, "gracePeriodSeconds");
    str orphan = call_query(c, "orphanDependents"), dry_run = call_query(c, "dryRun");
    int64_t seconds;
    if (policy.n)
        json_set_str(c->arena, tree, "propagationPolicy", policy);
    if (orphan.n)
        json_set_bool(c->arena, tree, "orphanDependents", !str_eq(orphan, S("false")));
    if (grace.n && str_to_i64(grace, &seconds) < 0) {
        call_bad_request(c, "strconv.ParseInt: parsing \"" STR_FMT "\": invalid syntax",
                         STR_ARG(grace));
        return NULL;
    }
    if (grace.n)
        json_set_int(c->arena, tree, "gracePeriodSeconds", seconds);
    if (dry_run.p) {
        struct json *list = json_new_arr(c->arena);
        json_push(c->arena, list, json_new_str(c->arena, dry_run));
        json_set(c->arena, tree, S("dryRun"), list);
    }
    return tree;
}

/* propagationPolicy, or the older orphanDependents; both is an error. */
static void read_policy(struct call *c, const struct json *tree, struct remove_options *ret,
                        struct field_errors *errors)
{
    static const struct {
        const char *word;
        enum propagation propagation;
    } words[] = { { "Foreground", PROPAGATE_FOREGROUND },
                  { "Background", PROPAGATE_BACKGROUND },
                  { "Orphan", PROPAGATE_ORPHAN } };
    static const char *const allowed[] = { "Foreground", "Background", "Orphan", "nil", NULL };
    struct json *policy = json_get(tree, "propagationPolicy");
    struct json *orphan = json_get(tree, "orphanDependents");
    struct field_path at = { .key = S("propagationPolicy") };
    if (json_is(orphan, JSON_BOOL))
        ret->propagation = orphan->boolean ? PROPAGATE_ORPHAN : PROPAGATE_BACKGROUND;
    if (!policy)
        return;
    if (json_is(orphan, JSON_BOOL))
        field_invalid(errors, &at, policy,
                      "orphanDependents and deletionPropagation cannot be both set");
    for (size_t i = 0; i < countof(words); i++) {
        if (str_eqc(json_text(policy), words[i].word)) {
            ret->propagation = words[i].propagation;
            return;
        }
    }
    field_not_supported(errors, &at, policy, allowed);
    (void)c;
}

/* False: answered. */
static bool read_delete_options(struct call *c, struct delete_options *ret)
{
    struct json *tree = read_options_tree(c);
    if (!tree)
        return false;
    struct delete_options o = { .remove.grace_s = -1, .tree = tree };
    struct field_errors errors = { .arena = c->arena };
    struct json *grace = json_get(tree, "gracePeriodSeconds"), *dry_run = json_get(tree, "dryRun");
    o.remove.grace_s = json_is(grace, JSON_INT) ? (grace->integer < 0 ? 1 : grace->integer) : -1;
    read_policy(c, tree, &o.remove, &errors);
    static const char *const all[] = { "All", NULL };
    o.remove.dry_run = json_len(dry_run) > 0;
    bool known = true;
    for (uint32_t i = 0; i < json_len(dry_run); i++)
        known = known && str_eqc(json_text(dry_run->items[i]), all[0]);
    if (!known)
        field_not_supported(&errors, &(struct field_path){ .key = S("dryRun") }, dry_run, all);
    o.uid = json_text(json_at(tree, "preconditions", "uid", NULL));
    o.version = json_text(json_at(tree, "preconditions", "resourceVersion", NULL));
    if (errors.n)
        call_invalid(c, S("DeleteOptions"), S("meta.k8s.io"), S(""), &errors);
    *ret = o;
    return errors.n == 0;
}

/* Compares uid or resourceVersion. Unlike other conflicts, this one names the kind. False: answered. */
static bool check_precondition(struct call *c, str wanted, str actual, const char *what,
                               const char *meaning)
{
    if (!wanted.n || str_eq(wanted, actual))
        return true;
    const struct kind *k = c->kind;
    str kind = k->group.n ? arena_printf(c->arena, STR_FMT "." STR_FMT, STR_ARG(k->kind),
                                         STR_ARG(k->group))
                          : k->kind;
    str message =
        arena_printf(c->arena,
                     "Operation cannot be fulfilled on " STR_FMT " \"" STR_FMT
                     "\": the %s in the precondition (" STR_FMT
                     ") does not match the %s in record (" STR_FMT "). The object might have "
                     "been %s",
                     STR_ARG(kind), STR_ARG(c->name), what, STR_ARG(wanted), what, STR_ARG(actual),
                     meaning);
    call_status(c, &(struct status){ .code = 409,
                                     .reason = "Conflict",
                                     .message = message,
                                     .name = c->name,
                                     .group = k->group,
                                     .kind = k->kind });
    return false;
}

static bool check_preconditions(struct call *c, const struct delete_options *o,
                                const struct object *old)
{
    return check_precondition(c, o->uid, object_span(old, old->uid), "UID",
                              "deleted and then recreated") &&
           check_precondition(c, o->version, object_span(old, old->rv), "ResourceVersion",
                              "modified");
}

static bool is_protected_namespace(const struct call *c)
{
    return remove_is_kind(c->kind, S(""), S("namespaces")) &&
           (str_eq(c->name, S("default")) || str_eq(c->name, S("kube-system")) ||
            str_eq(c->name, S("kube-public")));
}

static void answer_success(struct call *c, const struct json *tree)
{
    call_status(c, &(struct status){ .code = 200,
                                     .name = c->name,
                                     .group = c->kind->group,
                                     .kind = c->kind->plural,
                                     .uid = json_text(json_at(tree, "metadata", "uid", NULL)) });
}

/* The kind's default policy, unless the client set one or the object's finalizers contain one. */
static struct remove_options effective_options(struct call *c, const struct delete_options *o,
                                               const struct object *old)
{
    struct remove_options r = o->remove;
    if (c->kind->owns_nothing)
        r.propagation = PROPAGATE_BACKGROUND;
    if (r.propagation == PROPAGATE_DEFAULT && c->kind->orphans_by_default && !old->finalizers.n)
        r.propagation = PROPAGATE_ORPHAN;
    return r;
}

static void warn_of_orphans(struct call *c, const struct delete_options *o)
{
    if (o->remove.propagation == PROPAGATE_DEFAULT && c->kind->orphans_by_default)
        call_warn(c, S("child pods are preserved by default when jobs are deleted; set "
                       "propagationPolicy=Background to remove them or set "
                       "propagationPolicy=Orphan to suppress this warning"));
}

void verb_delete(struct call *c)
{
    struct delete_options o;
    if (!read_delete_options(c, &o))
        return;
    const struct object *old =
        store_latest(c->server->store, catalog_key(c->arena, c->kind, c->ns, c->name));
    if (!old) {
        call_not_found(c, c->kind, c->name);
        return;
    }
    if (!convert_one(c, old))
        return;
    if (is_protected_namespace(c)) {
        call_forbidden(c, c->kind, c->name, "this namespace may not be deleted");
        return;
    }
    if (!check_preconditions(c, &o, old))
        return;
    if (!admission_check_delete(c, read_tree(c->arena, c->kind, old), c->name, o.tree,
                                o.remove.dry_run))
        return;
    warn_of_orphans(c, &o);
    struct remove_options how = effective_options(c, &o, old);
    const struct kind *as = convert_stored_kind(c->kind);
    struct json *shown = as == c->kind ? NULL : read_tree(c->arena, c->kind, old);
    struct removed r = remove_object(c->server, c->arena, as, old, &how);
    if (shown) { /* a delete changes nothing but metadata */
        json_set(c->arena, shown, S("metadata"), json_get(r.tree, "metadata"));
        r.tree = shown;
    }
    if (r.how == REMOVAL_FAILED)
        write_stage_error(c, &r.error);
    else if (r.how == REMOVAL_GONE && !c->kind->delete_returns_object)
        answer_success(c, r.tree);
    else
        call_object(c, 200, c->kind, r.tree);
}

struct selection {
    struct object **at; /* owned references */
    size_t n;
};

static struct selection select_objects(struct call *c, const struct list_options *l)
{
    str prefix = catalog_prefix(c->arena, c->kind, c->ns);
    VEC(struct object *) selected = { 0 };
    struct tree_cursor cursor = tree_seek(store_tree(c->server->store), prefix);
    for (struct object *each; (each = tree_next_in(&cursor, prefix));)
        if (read_is_selected(c->kind, l, each) && (!l->limit || selected.n < (size_t)l->limit))
            vec_push(&selected, object_ref(each));
    return (struct selection){ selected.at, selected.n };
}

/* Asks policies and webhooks about each object, before any is deleted. Returns how many may be deleted; the one after
 * them was refused, which is answered then. -1: the call waits for webhooks. */
static int64_t admit_collection(struct call *c, const struct selection *s,
                                const struct delete_options *o)
{
    bool waiting = false;
    for (size_t i = 0; admission_exists(c) && i < s->n; i++) {
        if (!webhook_has_room(c))
            return -1;
        const struct object *now = store_latest(c->server->store, object_key(s->at[i]));
        struct call_scratch scratch;
        call_enter_scratch(c, &scratch);
        bool allowed = !now || admission_check_delete(c, read_tree(c->arena, c->kind, now), S(""),
                                                      o->tree, o->remove.dry_run);
        call_leave_scratch(c, &scratch);
        if (allowed)
            continue;
        if (c->answer.status)
            return (int64_t)i;
        waiting = true;
    }
    return waiting ? -1 : (int64_t)s->n;
}

/* Deletes the first n, until one fails, which is answered. */
static void delete_objects(struct call *c, const struct selection *s, size_t n,
                           const struct delete_options *o)
{
    for (size_t i = 0; i < n; i++) {
        auto_arena struct arena scratch = { 0 };
        const struct object *now = store_latest(c->server->store, object_key(s->at[i]));
        if (!now)
            continue;
        c->name = arena_str(c->arena, store_key_split(object_key(now)).name);
        if (!check_preconditions(c, o, now))
            return;
        struct remove_options how = effective_options(c, o, now);
        struct removed r =
            remove_object(c->server, &scratch, convert_stored_kind(c->kind), now, &how);
        if (r.how == REMOVAL_FAILED) {
            write_stage_error(c, &r.error);
            return;
        }
    }
}

/* Answers with the list of what was selected, as it was before. */
void verb_delete_collection(struct call *c)
{
    struct delete_options o;
    struct list_options l;
    c->name = S(""); /* of each object in turn; see server_resume() */
    if (!read_delete_options(c, &o) || !call_list_options(c, &l))
        return;
    struct selection s = select_objects(c, &l);
    bool readable = convert_objects(c, c->kind, s.at, s.n, false);
    int64_t n = readable ? admit_collection(c, &s, &o) : -1;
    if (n == (int64_t)s.n)
        verb_list(c); /* may wait, too */
    if (n >= 0 && (c->answer.status == 200 || n < (int64_t)s.n)) {
        if (n)
            warn_of_orphans(c, &o);
        delete_objects(c, &s, (size_t)n, &o);
    }
    for (size_t i = 0; i < s.n; i++)
        object_unref(s.at[i]);
    free(s.at);
}
