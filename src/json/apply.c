/* Server-side apply and ownership: see apply.h. The order of things is that of Kubernetes: compare
 * as the version of each manager sees it, take conflicts away or refuse, and only then write.
 *
 * managedFields are cut off the trees before they are compared, so that they never own themselves. */
#include "apply.h"

#include "managed.h"
#include "typed.h"

static const char last_applied[] = "kubectl.kubernetes.io/last-applied-configuration";

struct work {
    struct arena *arena;
    const struct apply_request *r;
    struct managed managed;
    struct json *live; /* copy without managedFields; an empty object for a new one */
    err_t *e;
};

/* One manager and the fields it would lose. */
struct clash {
    struct manager *manager;
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

/* Shares everything below with `object`: only its metadata are ever set. */
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

/* What a new object is compared with: what Kubernetes has before anything is set. */
static struct json *blank(struct arena *a, const struct apply_request *r)
{
    struct json *object = r->blank ? json_copy(a, r->blank) : json_new_obj(a);
    json_set_str(a, object, "apiVersion", json_text(json_get(r->object, "apiVersion")));
    json_set_str(a, object, "kind", json_text(json_get(r->object, "kind")));
    return object;
}

#define FIELD(text) .element = { .kind = FIELD_NAME, .name = STR_INIT(text) }, .member = true

/* What an object is called and where it stands belongs to nobody. Sorted, as every set is. */
static void strip_identity(struct work *w, struct manager *m)
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

/* Entries in the light of the shapes of today; those of versions no longer served go. */
static void reconcile(struct work *w)
{
    for (size_t i = 0; i < w->managed.n; i++) {
        struct manager *m = &w->managed.at[i];
        const struct shape *shape = shape_at(w, m->version);
        m->set = shape ? fieldset_reconcile(w->arena, &m->set, shape) : (struct fieldset){ 0 };
    }
    managed_drop_empty(&w->managed);
}

/* What others own and would lose as `old` becomes `new`. What was removed, nobody owns any more. */
static struct clash *find_clashes(struct work *w, const struct manager *self,
                                  const struct json *old, const struct json *new,
                                  struct typed_changes *ret_changes)
{
    struct clash *clashes = arena_array(w->arena, w->managed.n, sizeof(*clashes));
    struct typed_changes changes = changes_at(w, w->r->shape, old, new);
    const struct shape *seen = w->r->shape;
    struct fieldset set = fieldset_union(w->arena, &changes.modified, &changes.added);
    *ret_changes = changes;
    for (size_t i = 0; i < w->managed.n; i++) {
        struct manager *m = &w->managed.at[i];
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

static void take_over(struct work *w, const struct clash *clashes)
{
    for (size_t i = 0; i < w->managed.n; i++)
        w->managed.at[i].set =
            fieldset_difference(w->arena, &w->managed.at[i].set, &clashes[i].set);
    managed_drop_empty(&w->managed);
}

static struct json *with_managed(struct work *w, struct json *object)
{
    struct json *metadata = json_make(w->arena, object, "metadata", NULL);
    struct json *entries = managed_print(w->arena, &w->managed);
    json_del(metadata, S("managedFields"));
    if (entries)
        json_append(w->arena, metadata, S("managedFields"), entries);
    return object;
}

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

/* `name` changed `old` to `new` by something that is not an apply. */
static void own_changes(struct work *w, const struct json *old, const struct json *new, str name)
{
    reconcile(w);
    struct typed_changes c;
    take_over(w, find_clashes(w, NULL, old, new, &c));
    struct manager self = { .name = name,
                            .version = w->r->version,
                            .subresource = w->r->subresource,
                            .time = arena_str(w->arena, w->r->now).p,
                            .set = fieldset_union(w->arena, &c.modified, &c.added) };
    strip_identity(w, &self);
    if (!fieldset_empty(&self.set)) {
        struct manager *entry = managed_make(w->arena, &w->managed, &self);
        entry->set = fieldset_union(w->arena, &entry->set, &self.set);
        entry->time = self.time;
    }
    managed_cap(w->arena, &w->managed);
}

/* A list with nothing in it, or with one empty entry, asks to forget all managers. */
static bool is_reset(const struct json *entries)
{
    if (!json_is(entries, JSON_ARR))
        return false;
    return entries->n == 0 ||
           (entries->n == 1 && json_is(entries->items[0], JSON_OBJ) && !entries->items[0]->n);
}

/* The managers an update starts from: those it brings, unless it brings none or broken ones. */
static void starting_managers(struct work *w)
{
    err_t ignored;
    const struct json *stored = json_at(w->r->live, "metadata", "managedFields", NULL);
    const struct json *brought = json_at(w->r->object, "metadata", "managedFields", NULL);
    if (!w->r->subresource.n) {
        if (is_reset(brought))
            return;
        if (json_len(brought) <= APPLY_MANAGERS_MAX &&
            managed_parse(w->arena, brought, &w->managed, &ignored) == 0 && w->managed.n)
            return;
    }
    if (managed_parse(w->arena, stored, &w->managed, &ignored) < 0)
        w->managed = (struct managed){ 0 };
}

/* Who wrote another version must be able to read it. */
static int check_readers(struct work *w, const struct json *object)
{
    for (size_t i = 0; i < w->managed.n; i++) {
        str version = w->managed.at[i].version;
        const struct shape *theirs = shape_at(w, version);
        if (theirs && typed_check(theirs, seen_at(w, version, object), true, w->e) < 0)
            return err_wrap(w->e, "failed to convert new object");
    }
    return 0;
}

struct json *apply_update(struct arena *a, const struct apply_request *r)
{
    err_t ignored;
    struct work w = { .arena = a, .r = r, .e = &ignored };
    struct json *object = without_managed(a, r->object);
    starting_managers(&w);
    if (r->live && !w.managed.n)
        return object; /* nobody was recorded, so nobody is */
    w.live = r->live ? without_managed(a, r->live) : blank(a, r);
    if (typed_check(r->shape, object, true, &ignored) < 0 ||
        typed_check(r->shape, w.live, true, &ignored) < 0)
        return object;
    if (check_readers(&w, object) < 0)
        return object;
    own_changes(&w, w.live, object, manager_name(r));
    with_managed(&w, object);
    apply_keep_times(a, r->live, object);
    return object;
}

/* ---- apply: removing what is no longer applied */

/* Two by two: one after the other would copy the result once for each set. */
static struct fieldset union_of(struct arena *a, const struct fieldset *sets, size_t n)
{
    if (n <= 1)
        return n ? sets[0] : (struct fieldset){ 0 };
    struct fieldset left = union_of(a, sets, n / 2), right = union_of(a, sets + n / 2, n - n / 2);
    return fieldset_union(a, &left, &right);
}

/* Fields of `merged` that neither `pruned` has nor anybody owns leave. */
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
    kept = union_of(w->arena, sets, n);
    struct fieldset all = typed_fields(w->arena, shape, merged);
    all = fieldset_with_parents(w->arena, &all, shape);
    struct fieldset gone = fieldset_difference(w->arena, &all, &kept);
    return typed_remove(w->arena, shape, merged, &gone);
}

static bool version_seen(const struct managed *m, size_t before, str version)
{
    for (size_t i = 0; i < before; i++)
        if (str_eq(m->at[i].version, version))
            return true;
    return false;
}

static struct json *add_back_all_owned(struct work *w, const struct json *merged,
                                       struct json *pruned, str first)
{
    const struct shape *shape = shape_at(w, first);
    pruned = add_back_owned(w, shape, first, merged, pruned);
    for (size_t i = 0; i < w->managed.n; i++) {
        str version = w->managed.at[i].version;
        if (str_eq(version, first) || version_seen(&w->managed, i, version))
            continue;
        shape = shape_at(w, version);
        if (shape)
            pruned = add_back_owned(w, shape, version, merged, pruned);
    }
    return pruned;
}

/* Takes what the manager applied last time, does not now, and nobody else owns. */
static struct json *prune(struct work *w, struct json *merged, const struct manager *last)
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

enum { CONFLICT_BYTES_MAX = 1024 * 1024 }; /* of paths; others are not listed */

struct listing {
    struct arena *arena;
    struct apply_conflict *at;
    size_t n, cap, bytes;
    str message; /* of the manager in hand */
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

static int by_manager(const void *a, const void *b)
{
    return managed_cmp(((const struct clash *)a)->manager, ((const struct clash *)b)->manager);
}

static str conflict_sentence(struct arena *a, const struct listing *l)
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

static int refuse(struct work *w, struct clash *clashes, struct apply_result *ret)
{
    struct listing l = { .arena = w->arena };
    qsort(clashes, w->managed.n, sizeof(*clashes), by_manager);
    for (size_t i = 0; i < w->managed.n; i++) {
        l.message = arena_printf(w->arena, "conflict with %s",
                                 managed_describe(w->arena, clashes[i].manager).p);
        fieldset_each(&clashes[i].set, list_conflict, &l);
    }
    *ret = (struct apply_result){ .conflicts = l.at,
                                  .n_conflicts = l.n,
                                  .message = conflict_sentence(w->arena, &l) };
    return err_set(w->e, EEXIST, "%.480s", ret->message.p);
}

/* kubectl moving from client-side apply may take what its annotation shows it applied. */
static void forgive_kubectl(struct work *w, struct clash *clashes)
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

static bool any_clash(const struct work *w, const struct clash *clashes)
{
    for (size_t i = 0; i < w->managed.n; i++)
        if (!fieldset_empty(&clashes[i].set))
            return true;
    return false;
}

/* ---- apply */

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

/* The annotation of client-side apply follows what kubectl applies here. */
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

static int load(struct work *w)
{
    int result = managed_parse(w->arena, json_at(w->r->live, "metadata", "managedFields", NULL),
                               &w->managed, w->e);
    if (result < 0)
        return err_wrap(w->e, "failed to decode managed fields");
    w->live = w->r->live ? without_managed(w->arena, w->r->live) : blank(w->arena, w->r);
    if (typed_check(w->r->shape, w->live, true, w->e) < 0)
        return err_wrap(w->e, "failed to create typed live object");
    if (w->r->live && !w->managed.n)
        own_changes(w, blank(w->arena, w->r), w->live, S("before-first-apply"));
    reconcile(w);
    return 0;
}

int apply_patch(struct arena *a, const struct apply_request *r, struct apply_result *ret, err_t *e)
{
    err_t scratch;
    struct work w = { .arena = a, .r = r, .e = e ? e : &scratch };
    int result = check_configuration(&w);
    if (result == 0)
        result = load(&w);
    if (result < 0)
        return result;
    struct manager like = { .name = manager_name(r),
                            .version = r->version,
                            .subresource = r->subresource,
                            .applied = true };
    struct manager *self = managed_find(&w.managed, &like), last = self ? *self : like;
    struct json *object = typed_merge(a, r->shape, w.live, r->object);
    self = managed_make(a, &w.managed, &like);
    self->version = r->version;
    self->set = without_ignored(&w, typed_fields(a, r->shape, r->object));
    object = prune(&w, object, last.set.n ? &last : NULL);
    if ((result = check_readers(&w, object)) < 0)
        return result;

    struct typed_changes changes;
    struct clash *clashes = find_clashes(&w, self, w.live, object, &changes);
    if (!r->force) {
        struct clash *kept = arena_array(a, w.managed.n, sizeof(*kept));
        memcpy(kept, clashes, w.managed.n * sizeof(*kept));
        forgive_kubectl(&w, kept);
        if (any_clash(&w, kept))
            return refuse(&w, kept, ret);
    }
    strip_identity(&w, self);
    if (!json_eq(w.live, object))
        self->time = arena_str(a, r->now).p;
    take_over(&w, clashes);
    refresh_last_applied(&w, object);
    with_managed(&w, object);
    apply_keep_times(a, r->live, object);
    *ret = (struct apply_result){ .object = object };
    return 0;
}
