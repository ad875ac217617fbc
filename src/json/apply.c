/* Server-side apply and field ownership: see apply.h.
 *
 * The problem. Several clients write the same object: a user applies a manifest, an autoscaler sets
 * spec.replicas, a controller sets the status. A merge of two documents alone cannot decide whether
 * a field that is missing in the manifest was removed by its author or never belonged to it. So the
 * object carries, per manager, the set of fields that this manager owns, and every write updates
 * these sets.
 *
 * The data. A set (fieldset.h) is a tree of field names, list keys and set values. With shapes
 * (shape.h), typed.h computes on objects: which fields a configuration names, what differs between
 * two objects, an object with fields merged in or removed. This file only combines these
 * operations.
 *
 *     apply_patch                                   apply_update (POST, PUT, PATCH)
 *     -----------                                   ------------
 *     live object   configuration                   live object   new object
 *           \          /    \                              \        /
 *          typed_merge    typed_fields                   typed_compare
 *                |             |                               |
 *              prune      fields of self                fields that changed
 *                |             |                               |
 *           find_clashes <-----+                          find_clashes
 *                |                                             |
 *     others lose something? --no--> write            others lose those fields,
 *           |yes                                      this manager gains them
 *     force? --yes--> others lose those fields
 *           |no
 *     409 with every conflict
 *
 * Invariants:
 *   - A field that changes is owned by the manager that changed it, and by others only if they set the
 *     same value.
 *   - A field is removed only by its last owner: prune() removes what the manager applied last time and
 *     does not apply now, and adds back what any other manager owns.
 *   - managedFields are removed from the trees before they are compared, so that they are never owned,
 *     and so is the identity of the object (name, uid, resourceVersion, ...): see strip_identity().
 *   - Nothing is written before all conflicts are known; a refused apply leaves no trace.
 *
 * Versions. An entry is a set of fields in the version in which its manager wrote. A field may have
 * another name or shape in another version, so each entry is compared with the objects converted to
 * its own version: find_clashes() compares once per change of shape, not once per manager. Entries
 * of a version that is no longer served are dropped, because they cannot be compared with anything.
 *
 * The order of the steps is that of Kubernetes, even where another one would be cheaper, because it
 * decides which of two errors a client gets. Updates never fail: an update whose
 * ownership cannot be computed goes through without managedFields.
 *
 * Cost. All sets and trees are in the arena of the request. A request can bring APPLY_MANAGERS_MAX
 * entries; sets are merged pairwise (union_sets), because adding one after the other would copy the
 * result once per entry, and the list of conflicts is limited, because the longest keys times the
 * most fields would be a product. Trees share their unchanged parts with the input. */
#include "apply.h"

#include "managed_fields.h"
#include "typed.h"

static const char last_applied[] = "kubectl.kubernetes.io/last-applied-configuration";

struct work {
    struct arena *arena;
    const struct apply_request *r;
    struct managed_fields managed;
    struct json *live; /* a copy without managedFields; blank if the object is being created */
    err_t *e;
};

/* A manager and the fields that it would lose. */
struct clash {
    struct field_manager *manager;
    struct fieldset set;
};

static const struct shape *shape_at(const struct work *w, str version)
{
    if (!w->r->shape_of || str_eq(version, w->r->version))
        return w->r->shape;
    return w->r->shape_of(w->r->context, version);
}

static const struct json *seen_at(const struct work *w, str version, const struct json *object)
{
    if (!w->r->view || str_eq(version, w->r->version))
        return object;
    return w->r->view(w->r->context, version, object);
}

/* Shares everything except the object and its metadata, because only these are modified later. */
static struct json *without_managed(struct arena *a, const struct json *object)
{
    const struct json *metadata = json_get(object, "metadata");
    if (!json_is(metadata, JSON_OBJ))
        return json_copy(a, object);
    struct json *copy = json_shallow(a, object), *own = json_shallow(a, metadata);
    json_del(own, S("managedFields"));
    json_set(a, copy, S("metadata"), own);
    return copy;
}

/* A new object is compared with the zero value of its Go type, which Kubernetes starts from. */
static struct json *blank_object(struct arena *a, const struct apply_request *r)
{
    struct json *object = r->blank ? json_copy(a, r->blank) : json_new_obj(a);
    json_set_str(a, object, "apiVersion", json_text(json_get(r->object, "apiVersion")));
    json_set_str(a, object, "kind", json_text(json_get(r->object, "kind")));
    return object;
}

#define FIELD(text) .element = { .kind = FIELD_NAME, .name = STR_INIT(text) }, .member = true

/* Identity and bookkeeping fields are never owned. The nodes are sorted, like those of every
 * set. */
static void strip_identity(struct work *w, struct field_manager *m)
{
    static struct fieldset_node in_metadata[] = {
        { FIELD("clusterName") },
        { FIELD("creationTimestamp") },
        { FIELD("generation") },
        { FIELD("managedFields") },
        { FIELD("name") },
        { FIELD("namespace") },
        { FIELD("resourceVersion") },
        { FIELD("selfLink") },
        { FIELD("uid") },
    };
    static struct fieldset_node top[] = {
        { FIELD("apiVersion") },
        { FIELD("kind") },
        { FIELD("metadata"), .below = { .nodes = in_metadata, .n = countof(in_metadata) } },
    };
    const struct fieldset never = { .nodes = top, .n = countof(top) };
    m->set = fieldset_difference(w->arena, &m->set, &never);
}

static struct fieldset without_ignored(const struct work *w, struct fieldset set)
{
    return w->r->ignored ? fieldset_without(w->arena, &set, w->r->ignored) : set;
}

static struct typed_changes changes_at(const struct work *w, const struct shape *shape,
                                       const struct json *old, const struct json *new)
{
    struct typed_changes c = typed_compare(w->arena, shape, old, new);
    return (struct typed_changes){ without_ignored(w, c.added), without_ignored(w, c.modified),
                                   without_ignored(w, c.removed) };
}

/* Adapts the entries to the current shapes, which may have changed since they were written, and
 * drops those of versions that are no longer served. */
static void reconcile_entries(struct work *w)
{
    for (size_t i = 0; i < w->managed.n; i++) {
        struct field_manager *m = &w->managed.at[i];
        const struct shape *shape = shape_at(w, m->version);
        m->set = shape ? fieldset_reconcile(w->arena, &m->set, shape) : (struct fieldset){ 0 };
    }
    managed_fields_drop_empty(&w->managed);
}

/* The fields that each other manager owns and that differ between `old` and `new`, one clash per
 * entry in the same order. Removed fields leave every set right away: that is no conflict. */
static struct clash *find_clashes(struct work *w, const struct field_manager *self,
                                  const struct json *old, const struct json *new,
                                  struct typed_changes *ret_changes)
{
    struct clash *clashes = arena_array(w->arena, w->managed.n, sizeof(*clashes));
    struct typed_changes changes = changes_at(w, w->r->shape, old, new);
    const struct shape *seen = w->r->shape;
    struct fieldset set = fieldset_union(w->arena, &changes.modified, &changes.added);
    *ret_changes = changes;
    for (size_t i = 0; i < w->managed.n; i++) {
        struct field_manager *m = &w->managed.at[i];
        const struct shape *shape = shape_at(w, m->version);
        clashes[i].manager = m;
        if (m == self || !shape)
            continue;
        if (shape != seen) {
            changes =
                changes_at(w, shape, seen_at(w, m->version, old), seen_at(w, m->version, new));
            seen = shape;
            set = fieldset_union(w->arena, &changes.modified, &changes.added);
        }
        clashes[i].set = fieldset_intersection(w->arena, &m->set, &set);
        m->set = fieldset_difference(w->arena, &m->set, &changes.removed);
    }
    return clashes;
}

/* The managers lose what they clash about; the caller adds it to its own set. */
static void take_ownership(struct work *w, const struct clash *clashes)
{
    for (size_t i = 0; i < w->managed.n; i++)
        w->managed.at[i].set =
            fieldset_difference(w->arena, &w->managed.at[i].set, &clashes[i].set);
    managed_fields_drop_empty(&w->managed);
}

/* Puts the entries into the object. */
static struct json *with_managed(struct work *w, struct json *object)
{
    struct json *metadata = json_make(w->arena, object, "metadata", NULL);
    struct json *entries = managed_fields_print(w->arena, &w->managed);
    json_del(metadata, S("managedFields"));
    if (entries)
        json_append(w->arena, metadata, S("managedFields"), entries);
    return object;
}

/* Compares with the old timestamps in place, and restores the new ones if anything else differs. */
void apply_keep_times(struct arena *a, const struct json *live, struct json *object)
{
    const struct json *before = json_at(live, "metadata", "managedFields", NULL);
    struct json *now = json_at(object, "metadata", "managedFields", NULL);
    if (!json_len(now) || json_len(before) != json_len(now))
        return;
    struct json *timeless = json_copy(a, now);
    for (size_t i = 0; i < timeless->n; i++) {
        struct json *time = json_get(json_item(before, i), "time");
        if (time)
            json_set(a, timeless->items[i], S("time"), json_copy(a, time));
        else
            json_del(timeless->items[i], S("time"));
    }
    json_set(a, json_get(object, "metadata"), S("managedFields"), timeless);
    if (!json_eq(live, object))
        json_set(a, json_get(object, "metadata"), S("managedFields"), now);
}

/* ---- updates */

static str manager_name(const struct apply_request *r)
{
    return r->manager.n ? r->manager : S("unknown");
}

/* Records that manager `name` changed `old` to `new` with a write that is not an apply. */
static void own_changes(struct work *w, const struct json *old, const struct json *new, str name)
{
    reconcile_entries(w);
    struct typed_changes c;
    take_ownership(w, find_clashes(w, NULL, old, new, &c));
    struct field_manager self = { .name = name,
                                  .version = w->r->version,
                                  .subresource = w->r->subresource,
                                  .time = arena_str(w->arena, w->r->now).p,
                                  .set = fieldset_union(w->arena, &c.modified, &c.added) };
    strip_identity(w, &self);
    if (!fieldset_empty(&self.set)) {
        struct field_manager *entry = managed_fields_make(w->arena, &w->managed, &self);
        entry->set = fieldset_union(w->arena, &entry->set, &self.set);
        entry->time = self.time;
    }
    managed_fields_cap(w->arena, &w->managed);
}

/* An empty list, or a list with one empty entry, is the request to remove all managers. */
static bool is_reset(const struct json *entries)
{
    if (!json_is(entries, JSON_ARR))
        return false;
    return entries->n == 0 ||
           (entries->n == 1 && json_is(entries->items[0], JSON_OBJ) && !entries->items[0]->n);
}

/* The entries that an update starts from: those in the new object, or the stored ones if it has
 * none or malformed ones. A subresource cannot change them. */
static void load_entries(struct work *w)
{
    err_t ignored;
    const struct json *stored = json_at(w->r->live, "metadata", "managedFields", NULL);
    const struct json *brought = json_at(w->r->object, "metadata", "managedFields", NULL);
    if (!w->r->subresource.n) {
        if (is_reset(brought))
            return;
        if (json_len(brought) <= APPLY_MANAGERS_MAX &&
            managed_fields_parse(w->arena, brought, &w->managed, &ignored) == 0 && w->managed.n)
            return;
    }
    if (managed_fields_parse(w->arena, stored, &w->managed, &ignored) < 0)
        w->managed = (struct managed_fields){ 0 };
}

/* The new object must be valid in the version of every manager. */
static int check_versions(struct work *w, const struct json *object)
{
    for (size_t i = 0; i < w->managed.n; i++) {
        str version = w->managed.at[i].version;
        const struct shape *theirs = shape_at(w, version);
        if (theirs && typed_check(theirs, seen_at(w, version, object), true, w->e) < 0)
            return err_wrap(w->e, "failed to convert new object");
    }
    return 0;
}

/* Failures of any step return the object without managedFields instead of an error. */
struct json *apply_update(struct arena *a, const struct apply_request *r)
{
    err_t ignored;
    struct work w = { .arena = a, .r = r, .e = &ignored };
    struct json *object = without_managed(a, r->object);
    load_entries(&w);
    if (r->live && !w.managed.n)
        return object; /* ownership was never tracked or has been reset: do not start now */
    w.live = r->live ? without_managed(a, r->live) : blank_object(a, r);
    if (typed_check(r->shape, object, true, &ignored) < 0 ||
        typed_check(r->shape, w.live, true, &ignored) < 0)
        return object;
    if (check_versions(&w, object) < 0)
        return object;
    own_changes(&w, w.live, object, manager_name(r));
    with_managed(&w, object);
    apply_keep_times(a, r->live, object);
    return object;
}

/* ---- apply: removing what is no longer applied */

/* Pairwise: adding one set after the other would copy the result once per set. */
static struct fieldset union_sets(struct arena *a, const struct fieldset *sets, size_t n)
{
    if (n <= 1)
        return n ? sets[0] : (struct fieldset){ 0 };
    struct fieldset left = union_sets(a, sets, n / 2),
                    right = union_sets(a, sets + n / 2, n - n / 2);
    return fieldset_union(a, &left, &right);
}

/* `merged` without the fields that are neither in `pruned` nor owned by a manager of that
 * version. */
static struct json *add_back_owned(struct work *w, const struct shape *shape, str version,
                                   const struct json *merged, const struct json *pruned)
{
    struct fieldset *sets = arena_array(w->arena, w->managed.n + 1, sizeof(*sets)), kept;
    size_t n = 0;
    kept = typed_fields(w->arena, shape, pruned);
    sets[n++] = fieldset_with_parents(w->arena, &kept, shape);
    for (size_t i = 0; i < w->managed.n; i++)
        if (str_eq(w->managed.at[i].version, version))
            sets[n++] = fieldset_with_parents(w->arena, &w->managed.at[i].set, shape);
    kept = union_sets(w->arena, sets, n);
    struct fieldset all = typed_fields(w->arena, shape, merged);
    all = fieldset_with_parents(w->arena, &all, shape);
    struct fieldset gone = fieldset_difference(w->arena, &all, &kept);
    return typed_remove(w->arena, shape, merged, &gone);
}

static bool is_version_seen(const struct managed_fields *m, size_t before, str version)
{
    for (size_t i = 0; i < before; i++)
        if (str_eq(m->at[i].version, version))
            return true;
    return false;
}

/* The same for every version that has entries, starting with that of the pruning manager. */
static struct json *add_back_all_owned(struct work *w, const struct json *merged,
                                       struct json *pruned, str first)
{
    const struct shape *shape = shape_at(w, first);
    pruned = add_back_owned(w, shape, first, merged, pruned);
    for (size_t i = 0; i < w->managed.n; i++) {
        str version = w->managed.at[i].version;
        if (str_eq(version, first) || is_version_seen(&w->managed, i, version))
            continue;
        shape = shape_at(w, version);
        if (shape)
            pruned = add_back_owned(w, shape, version, merged, pruned);
    }
    return pruned;
}

/* Removes what the manager applied last time, does not apply now, and no other manager owns. */
static struct json *prune_fields(struct work *w, struct json *merged,
                                 const struct field_manager *last)
{
    const struct shape *shape = last ? shape_at(w, last->version) : NULL;
    if (!shape || fieldset_empty(&last->set))
        return merged;
    struct fieldset before = fieldset_with_parents(w->arena, &last->set, shape);
    struct json *pruned = typed_remove(w->arena, shape, merged, &before);
    pruned = add_back_all_owned(w, merged, pruned, last->version);

    struct fieldset all = typed_fields(w->arena, shape, merged);
    struct fieldset left = typed_fields(w->arena, shape, pruned);
    all = fieldset_with_parents(w->arena, &all, shape);
    left = fieldset_with_parents(w->arena, &left, shape);
    struct fieldset gone = fieldset_difference(w->arena, &all, &left);
    gone = fieldset_intersection(w->arena, &gone, &before);
    return typed_remove(w->arena, shape, merged, &gone);
}

/* ---- apply: conflicts */

enum { CONFLICT_BYTES_MAX = 1024 * 1024 }; /* of all paths; further conflicts are not listed */

struct listing {
    struct arena *arena;
    struct apply_conflict *at;
    size_t n, cap, bytes;
    str message; /* of the current manager */
};

static void list_conflict(void *context, str path)
{
    struct listing *l = context;
    if (l->bytes > CONFLICT_BYTES_MAX)
        return; /* the longest keys around the most fields would be a product */
    l->bytes += path.n;
    if (l->n == l->cap) {
        l->cap = l->cap ? l->cap * 2 : 8;
        struct apply_conflict *larger = arena_array(l->arena, l->cap, sizeof(*larger));
        if (l->n)
            memcpy(larger, l->at, l->n * sizeof(*larger));
        l->at = larger;
    }
    l->at[l->n++] = (struct apply_conflict){ l->message, arena_str(l->arena, path) };
}

static int compare_clashes(const void *a, const void *b)
{
    return managed_fields_cmp(((const struct clash *)a)->manager,
                              ((const struct clash *)b)->manager);
}

/* The message of the Status. */
static str conflict_message(struct arena *a, const struct listing *l)
{
    if (l->n == 1)
        return arena_printf(a, "Apply failed with 1 conflict: " STR_FMT ": " STR_FMT,
                            STR_ARG(l->at[0].message), STR_ARG(l->at[0].field));
    auto_buf struct buf out = { 0 };
    buf_printf(&out, "Apply failed with %zu conflicts: ", l->n);
    for (size_t i = 0; i < l->n; i++) {
        str who = str_from(l->at[i].message, S("conflict").n);
        if (i == 0 || !str_eq(l->at[i].message, l->at[i - 1].message))
            buf_printf(&out, "%sconflicts" STR_FMT ":", i ? "\n" : "", STR_ARG(who));
        buf_printf(&out, "\n- " STR_FMT, STR_ARG(l->at[i].field));
    }
    return arena_str(a, buf_str(&out));
}

/* Lists every conflict in the result and returns -EEXIST. */
static int refuse_conflicts(struct work *w, struct clash *clashes, struct apply_result *ret)
{
    struct listing l = { .arena = w->arena };
    qsort(clashes, w->managed.n, sizeof(*clashes), compare_clashes);
    for (size_t i = 0; i < w->managed.n; i++) {
        l.message = arena_printf(w->arena, "conflict with %s",
                                 managed_fields_describe(w->arena, clashes[i].manager).p);
        fieldset_each(&clashes[i].set, list_conflict, &l);
    }
    *ret = (struct apply_result){ .conflicts = l.at,
                                  .n_conflicts = l.n,
                                  .message = conflict_message(w->arena, &l) };
    return err_set(w->e, EEXIST, "%.480s", ret->message.p);
}

/* A migration from client-side apply: fields that kubectl applied according to its annotation, and
 * that still have that value, are not conflicts for kubectl. */
static void exempt_kubectl(struct work *w, struct clash *clashes)
{
    const struct json *note = json_at(w->live, "metadata", "annotations", last_applied, NULL);
    struct json *applied = NULL;
    err_t ignored;
    if (!str_eq(w->r->manager, S("kubectl")) || !json_text(note).n ||
        json_parse(w->arena, json_text(note), &applied, &ignored) < 0 ||
        !str_eq(json_text(json_get(applied, "apiVersion")), w->r->version) ||
        typed_check(w->r->shape, applied, false, &ignored) < 0)
        return;
    struct fieldset own = typed_fields(w->arena, w->r->shape, applied);
    struct typed_changes c = typed_compare(w->arena, w->r->shape, applied, w->live);
    own = fieldset_difference(w->arena, &own, &c.modified);
    own = fieldset_difference(w->arena, &own, &c.added);
    own = fieldset_difference(w->arena, &own, &c.removed);
    for (size_t i = 0; i < w->managed.n; i++)
        clashes[i].set = fieldset_difference(w->arena, &clashes[i].set, &own);
}

static bool has_clash(const struct work *w, const struct clash *clashes)
{
    for (size_t i = 0; i < w->managed.n; i++)
        if (!fieldset_empty(&clashes[i].set))
            return true;
    return false;
}

/* ---- apply */

/* The texts are quoted: kube-apiserver. */
static int check_configuration(const struct work *w)
{
    const struct json *config = w->r->object;
    str version = json_text(json_get(config, "apiVersion")),
        kind = json_text(json_get(config, "kind"));
    if (!str_eq(version, w->r->version) || (w->r->kind.n && !str_eq(kind, w->r->kind)))
        return err_set(w->e, EINVAL, "invalid object type: %s" STR_FMT ", Kind=" STR_FMT,
                       str_find_char(version, '/') == SIZE_MAX ? "/" : "", STR_ARG(version),
                       STR_ARG(kind));
    if (json_is(json_at(config, "metadata", "managedFields", NULL), JSON_ARR))
        return err_set(w->e, EINVAL, "metadata.managedFields must be nil");
    if (typed_check(w->r->shape, config, false, w->e) == 0)
        return 0;
    const struct json *metadata = json_get(config, "metadata");
    return err_wrap(w->e,
                    "failed to create typed patch object (" STR_FMT "/" STR_FMT "; %s" STR_FMT
                    ", Kind=" STR_FMT ")",
                    STR_ARG(json_text(json_get(metadata, "namespace"))),
                    STR_ARG(json_text(json_get(metadata, "name"))),
                    str_find_char(version, '/') == SIZE_MAX ? "/" : "", STR_ARG(version),
                    STR_ARG(kind));
}

/* Keeps the annotation of client-side apply up to date, so that a user can go back to it. */
static void refresh_last_applied(struct work *w, struct json *object)
{
    struct json *annotations = json_at(object, "metadata", "annotations", NULL);
    if (!str_eq(w->r->manager, S("kubectl")) || !json_text(json_get(annotations, last_applied)).n)
        return;
    struct json *config = json_copy(w->arena, w->r->object);
    json_del(json_at(config, "metadata", "annotations", NULL), str_c(last_applied));
    auto_buf struct buf text = { 0 };
    json_write_canonical(&text, config);
    buf_putc(&text, '\n');
    json_set(w->arena, annotations, str_c(last_applied), json_new_str(w->arena, buf_str(&text)));
}

/* Reads the entries and the live object. If ownership was never tracked, everything in the live
 * object belongs to a manager "before-first-apply". */
static int load_live(struct work *w)
{
    int result =
        managed_fields_parse(w->arena, json_at(w->r->live, "metadata", "managedFields", NULL),
                             &w->managed, w->e);
    if (result < 0)
        return err_wrap(w->e, "failed to decode managed fields");
    w->live = w->r->live ? without_managed(w->arena, w->r->live) : blank_object(w->arena, w->r);
    if (typed_check(w->r->shape, w->live, true, w->e) < 0)
        return err_wrap(w->e, "failed to create typed live object");
    if (w->r->live && !w->managed.n)
        own_changes(w, blank_object(w->arena, w->r), w->live, S("before-first-apply"));
    reconcile_entries(w);
    return 0;
}

/* In order: merge, prune, check, find conflicts, and only then change ownership. */
int apply_patch(struct arena *a, const struct apply_request *r, struct apply_result *ret, err_t *e)
{
    err_t scratch;
    struct work w = { .arena = a, .r = r, .e = e ? e : &scratch };
    int result = check_configuration(&w);
    if (result == 0)
        result = load_live(&w);
    if (result < 0)
        return result;
    struct field_manager like = { .name = manager_name(r),
                                  .version = r->version,
                                  .subresource = r->subresource,
                                  .applied = true };
    struct field_manager *self = managed_fields_find(&w.managed, &like), last = self ? *self : like;
    struct json *object = typed_merge(a, r->shape, w.live, r->object);
    self = managed_fields_make(a, &w.managed, &like);
    self->version = r->version;
    self->set = without_ignored(&w, typed_fields(a, r->shape, r->object));
    object = prune_fields(&w, object, last.set.n ? &last : NULL);
    if ((result = check_versions(&w, object)) < 0)
        return result;

    struct typed_changes changes;
    struct clash *clashes = find_clashes(&w, self, w.live, object, &changes);
    if (!r->force) {
        struct clash *kept = arena_array(a, w.managed.n, sizeof(*kept));
        memcpy(kept, clashes, w.managed.n * sizeof(*kept));
        exempt_kubectl(&w, kept);
        if (has_clash(&w, kept))
            return refuse_conflicts(&w, kept, ret);
    }
    strip_identity(&w, self);
    if (!json_eq(w.live, object))
        self->time = arena_str(a, r->now).p;
    take_ownership(&w, clashes);
    refresh_last_applied(&w, object);
    with_managed(&w, object);
    apply_keep_times(a, r->live, object);
    *ret = (struct apply_result){ .object = object };
    return 0;
}
