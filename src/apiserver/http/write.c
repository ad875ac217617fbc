/* The steps that all writes share; see write.h.
 *
 *     tree -> (storage version) -> text with resourceVersion -> struct object -> store_stage -> commit at the
 *                                                                                               end of the turn
 *
 * The store owns the staged object. The version is assigned here, when a write is staged, and not when it is
 * committed: versions are consecutive in the order of staging. */
#include "write.h"

#include "../../json/seen.h"
#include "admission.h"
#include "read.h"

enum { USUAL_BYTES = 1000 }; /* first allocation: enough for most objects */

/* Encodes the tree and stages it. The limit does not apply to tombstones, because an object that exists
 * must be deletable. */
static struct object *stage_object(struct server *s, struct arena *a, const struct kind *k, str key,
                                   struct json *tree, bool deleted, err_t *e)
{
    const err_t *failure = store_failure(s->store);
    if (failure) {
        *e = *failure;
        return NULL;
    }
    int64_t rev = store_next_rev(s->store);
    auto_buf struct buf text = { 0 };
    buf_reserve(&text, USUAL_BYTES);
    struct json *stored = tree;
    if (k != k->storage) {
        stored = json_copy(a, tree);
        kind_to_storage(k, a, stored);
    }
    object_text(a, stored, rev, &text);
    if (text.n > OBJECT_BYTES_MAX && !deleted) {
        err_set(e, E2BIG, "object is too large: %zu bytes; the limit is %d bytes", text.n,
                OBJECT_BYTES_MAX);
        return NULL;
    }
    if (stored != tree)
        json_set(a, json_make(a, tree, "metadata", NULL), S("resourceVersion"),
                 json_new_str(a, arena_printf(a, "%lld", (long long)rev)));
    struct object *o = NULL;
    int result = object_new(key, buf_str(&text), rev, deleted, &o);
    assert(result == 0); /* object_text() wrote the text */
    if (store_check_room(s->store, o, e) < 0) {
        object_unref(o);
        return NULL;
    }
    store_stage(s->store, o);
    server_commit_soon(s);
    return o;
}

struct object *write_stage(struct server *s, struct arena *a, const struct kind *k, str key,
                           struct json *tree, err_t *e)
{
    return stage_object(s, a, k, key, tree, false, e);
}

struct object *write_remove(struct server *s, struct arena *a, const struct kind *k, str key,
                            struct json *tree, err_t *e)
{
    return stage_object(s, a, k, key, tree, true, e);
}

/* 413 for an object that is too large, 507 for a full disk, else 500. */
void write_stage_error(struct call *c, const err_t *e)
{
    int code = e->code == E2BIG ? 413 : e->code == ENOSPC ? 507 : 500;
    const char *reason = code == 413   ? "RequestEntityTooLarge"
                         : code == 507 ? "InsufficientStorage" /* kube-apiserver has none for it */
                                       : "InternalError";
    call_status(c, &(struct status){ .code = code,
                                     .reason = reason,
                                     .message = arena_str(c->arena, str_c(e->text)) });
}

/* ---- lookups for kinds; the context is the call */

static const struct json *env_lookup(void *context, const struct kind *k, str ns, str name)
{
    const struct call *call = context;
    const struct object *o =
        store_latest(call->server->store, catalog_key(call->arena, k, ns, name));
    return o ? read_tree(call->arena, k, o) : NULL;
}

struct collected {
    struct arena *arena;
    const struct kind *kind;
    struct json *list;
};

static bool collect_tree(void *context, struct object *o)
{
    struct collected *to = context;
    struct json *tree = read_tree(to->arena, to->kind, o);
    if (tree)
        json_push(to->arena, to->list, tree);
    return false;
}

struct json *write_list_latest(struct server *s, struct arena *a, const struct kind *k, str ns)
{
    struct collected to = { a, k, json_new_arr(a) };
    store_any_latest(s->store, catalog_prefix(a, k, ns), collect_tree, &to);
    return to.list;
}

static const struct json *env_list(void *context, const struct kind *k, str ns)
{
    const struct call *call = context;
    return write_list_latest(call->server, call->arena, k, ns);
}

/* Whether any committed service contains the text, such as a quoted IP address. */
static bool env_service_holds(void *context, str text)
{
    const struct call *call = context;
    struct tree_cursor c = tree_seek(store_tree(call->server->store), S("/services/"));
    for (const struct object *o; (o = tree_next_in(&c, S("/services/")));)
        if (str_find(object_json(o), text) != SIZE_MAX)
            return true;
    return false;
}

/* Marks the node ports in use: the numbers after "nodePort": and "healthCheckNodePort": in the text of all
 * services. */
static void env_service_ports(void *context, bool *used, int64_t first, int64_t n)
{
    const struct call *call = context;
    struct tree_cursor c = tree_seek(store_tree(call->server->store), S("/services/"));
    for (const struct object *o; (o = tree_next_in(&c, S("/services/")));) {
        str rest = object_json(o), mark = S("odePort\":");
        for (size_t at; (at = str_find(rest, mark)) != SIZE_MAX;) {
            rest = str_from(rest, at + mark.n);
            int64_t port = 0;
            for (size_t i = 0; i < MIN(rest.n, (size_t)6) && rest.p[i] >= '0' && rest.p[i] <= '9';
                 i++)
                port = port * 10 + (rest.p[i] - '0');
            if (port >= first && port < first + n)
                used[port - first] = true;
        }
    }
}

static void env_warn(void *context, str text)
{
    call_warn(context, text);
}

bool write_prepare(struct call *c, const struct kind_change *change)
{
    struct kind_env env = { .arena = c->arena,
                            .now_ns = server_now_ns(c->server),
                            .context = c,
                            .lookup = env_lookup,
                            .list = env_list,
                            .user = c->kind->subresources & 1u << KIND_APPROVAL
                                        ? admission_user(c->arena, &c->user)
                                        : NULL,
                            .service_holds = env_service_holds,
                            .service_ports = env_service_ports,
                            .warn = env_warn,
                            .no_accounts = c->server->no_accounts };
    struct kind_fault fault = { .errors.arena = c->arena };
    kind_prepare(change, &env, &fault);
    if (!fault.code && !fault.errors.n)
        kind_validate(change, &env, &fault);
    if (!fault.code && !fault.errors.n)
        return true;
    call_fault(c, c->kind,
               change->old ? c->name : json_text(json_at(change->object, "metadata", "name", NULL)),
               &fault);
    return false;
}

/* quoted: kube-apiserver */
void write_dedupe_owners(struct call *c, const struct json *object)
{
    struct json *owners = json_at(object, "metadata", "ownerReferences", NULL);
    uint32_t n = (uint32_t)json_len(owners), kept = 0;
    bool *again = arena_array(c->arena, n, sizeof(*again));
    struct seen seen = seen_new(c->arena, 1);
    for (uint32_t i = 0; i < n; i++)
        again[i] = seen_value(&seen, json_item(owners, i), i);
    for (uint32_t i = n; i-- > 0;) {
        if (!again[i])
            continue;
        str uid = json_text(json_get(json_item(owners, i), "uid"));
        call_warn(c,
                  arena_printf(c->arena,
                               ".metadata.ownerReferences contains duplicate entries; API server "
                               "dedups owner references in 1.20+, and may reject such requests "
                               "as early as 1.24; please fix your requests; duplicate UID(s) "
                               "observed: " STR_FMT,
                               STR_ARG(uid)));
    }
    for (uint32_t i = 0; i < n; i++)
        if (!again[i])
            owners->items[kept++] = owners->items[i];
    if (n)
        owners->n = kept;
}

/* ---- answers and comparisons */

/* Answers with the stored bytes if they are what the client asked for, else with the tree in its form. */
void write_answer(struct call *c, int status, const struct object *stored, struct json *tree)
{
    if (c->sub == KIND_SCALE) {
        struct kind_fault fault = { .errors.arena = c->arena };
        struct json *scale = kind_scale_of(c->kind, c->arena, tree, &fault);
        if (scale)
            call_object(c, status, kind_scale_kind(), scale);
        else
            call_fault(c, c->kind, c->name, &fault);
        return;
    }
    if (stored && c->kind->conversion)
        json_set_str(c->arena, json_make(c->arena, tree, "metadata", NULL), "resourceVersion",
                     object_span(stored, stored->rv));
    else if (c->kind->custom && c->kind != c->kind->storage && !c->kind->conversion)
        kind_from_storage(c->kind, c->arena,
                          tree); /* fields that the stored version lacks are lost */
    bool plain = c->form == FORM_OBJECT && c->text == TEXT_JSON && !c->pretty;
    if (!stored || !plain || c->kind != c->kind->storage) {
        call_object(c, status, c->kind, tree);
        return;
    }
    c->answer.status = status;
    c->answer.content_type = "application/json";
    buf_clear(&c->answer.body);
    buf_put(&c->answer.body, object_json(stored));
}

static struct json *copy_without_times(struct arena *a, const struct json *managed)
{
    struct json *copy = json_copy(a, managed);
    for (size_t i = 0; i < json_len(copy); i++)
        json_del(json_item(copy, i), S("time"));
    return copy;
}

bool write_is_same(struct arena *a, const struct json *old, const struct json *now)
{
    struct json *x = json_copy(a, old), *y = json_copy(a, now);
    struct json *mx = json_make(a, x, "metadata", NULL), *my = json_make(a, y, "metadata", NULL);
    struct json *managed = copy_without_times(a, json_get(mx, "managedFields"));
    if (!json_eq(managed, copy_without_times(a, json_get(my, "managedFields"))))
        return false;
    const str ignored[] = { S("managedFields"), S("resourceVersion") };
    for (size_t i = 0; i < countof(ignored); i++) {
        json_del(mx, ignored[i]);
        json_del(my, ignored[i]);
    }
    return json_eq(x, y);
}

bool write_can_delete(const struct kind *k, const struct json *tree)
{
    const struct json *meta = json_get(tree, "metadata");
    bool is_namespace = !k->group.n && str_eq(k->plural, S("namespaces"));
    return json_get(meta, "deletionTimestamp") && !json_len(json_get(meta, "finalizers")) &&
           json_int(json_get(meta, "deletionGracePeriodSeconds"), 0) == 0 &&
           !(is_namespace && json_len(json_at(tree, "spec", "finalizers", NULL)));
}

/* ---- checks of names and scales */

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

bool write_check_scale(struct call *c, const struct json *scale)
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

/* ---- edits by controllers */

struct json *write_begin_edit(struct server *s, struct arena *a, str key,
                              const struct kind **ret_kind)
{
    struct catalog_set *set;
    const struct object *o = store_latest(s->store, key);
    const struct kind *k = o ? catalog_find_by_key(&s->catalog, key, &set) : NULL;
    struct json *tree = NULL;
    err_t e;
    if (!k || json_parse(a, object_json(o), &tree, &e) < 0)
        return NULL;
    *ret_kind = k;
    return tree;
}

bool write_end_edit(struct server *s, struct arena *a, const struct kind *k, str key,
                    struct json *tree)
{
    struct json *metadata = json_make(a, tree, "metadata", NULL);
    if (json_get(metadata, "finalizers") && !json_len(json_get(metadata, "finalizers")))
        json_del(metadata, S("finalizers"));
    if (json_get(metadata, "ownerReferences") && !json_len(json_get(metadata, "ownerReferences")))
        json_del(metadata, S("ownerReferences"));
    err_t e;
    if (!write_can_delete(k, tree))
        return write_stage(s, a, k, key, tree, &e) != NULL;
    const struct kind *same; /* what is deleted is what was there */
    struct json *last = write_begin_edit(s, a, key, &same);
    return last && write_remove(s, a, k, key, last, &e) != NULL;
}
