/* Compiles paths to a tree of steps: see fieldtree.h for why, project.h for the grammar.
 *
 *     spec.nodeName                            spec -+- nodeName            -> target
 *     spec.containers[].image                        +- containers - [] -+- image -> target
 *     spec.containers[].resources.limits.cpu                             +- resources - limits - cpu
 *
 * Paths with a common prefix share its steps. Tables are `static const` in the features, so a path
 * that is invalid is a bug, found by the first test that creates the projection. */
#include "fieldtree.h"

static const struct field record_fields[] = {
    { "metadata.namespace", F_WORD, offsetof(struct record, ns) },
    { "metadata.name", F_STR, offsetof(struct record, name) },
    { "metadata.uid", F_STR, offsetof(struct record, uid) },
    { "metadata.resourceVersion", F_STR, offsetof(struct record, rv) },
};

const struct fields record_own_fields = { sizeof(struct record), record_fields,
                                          countof(record_fields) };

static const size_t type_bytes[F_TYPE_N] = {
    [F_STR] = sizeof(str),       [F_WORD] = sizeof(str),        [F_MAP] = sizeof(void *),
    [F_INT] = sizeof(int64_t),   [F_REAL] = sizeof(double),     [F_BOOL] = sizeof(bool),
    [F_MILLI] = sizeof(int64_t), [F_TIME] = sizeof(int64_t),    [F_HAS] = sizeof(bool),
    [F_RAW] = sizeof(str),       [F_LIST] = sizeof(LIST(char)), [F_IS] = sizeof(bool),
    [F_SUM] = sizeof(uint64_t),  [F_ONCE] = sizeof(str),
};

/* Removes one step from `*rest`: name, ["name"], [] or [key=value]. */
static bool next_step(str *rest, struct field_step *ret)
{
    *ret = (struct field_step){ .kind = STEP_MEMBER };
    if (!str_starts(*rest, S("["))) {
        size_t n = 0;
        while (n < rest->n && rest->p[n] != '.' && rest->p[n] != '[')
            n++;
        ret->key = str_upto(*rest, n);
        *rest = str_from(*rest, n);
        return n > 0;
    }
    bool quoted = str_starts(*rest, S("[\""));
    size_t close = str_find(*rest, quoted ? S("\"]") : S("]"));
    if (close == SIZE_MAX)
        return false;
    str inside = { rest->p + 1 + quoted, close - 1 - quoted };
    *rest = str_from(*rest, close + 1 + quoted);
    if (quoted) {
        ret->key = inside;
        return inside.n > 0;
    }
    size_t equals = str_find_char(inside, '=');
    ret->kind = inside.n ? STEP_MATCH : STEP_EACH;
    ret->key = str_upto(inside, equals == SIZE_MAX ? 0 : equals);
    ret->value = equals == SIZE_MAX ? S("") : str_from(inside, equals + 1);
    return !inside.n || ret->key.n > 0;
}

static struct field_step *child_of(struct arena *a, struct field_step *parent,
                                   const struct field_step *wanted)
{
    struct field_step **at = &parent->children;
    for (; *at; at = &(*at)->next)
        if ((*at)->kind == wanted->kind && str_eq((*at)->key, wanted->key) &&
            str_eq((*at)->value, wanted->value))
            return *at;
    *at = arena_new(a, struct field_step);
    **at = *wanted;
    return *at;
}

/* Adds the steps of the target's path that are not in the tree yet. */
static int add_path(struct arena *a, struct fieldtree *tree, struct field_target *target, err_t *e)
{
    struct field_step *at = &tree->root, step;
    str path = str_c(target->field->path), rest = path;
    while (rest.n) {
        bool more = at != &tree->root && str_starts(rest, S("."));
        if (more)
            rest = str_from(rest, 1);
        if (!next_step(&rest, &step))
            return err_set(e, EINVAL,
                           "field path \"" STR_FMT "\" cannot be read at \"" STR_FMT
                           "\": a name, [\"name\"], [] or [key=value] is expected",
                           STR_ARG(path), STR_ARG(rest));
        target->many |= step.kind != STEP_MEMBER;
        at = child_of(a, at, &step);
    }
    if (at == &tree->root)
        return err_set(e, EINVAL, "a declared field has an empty path");
    target->next = at->targets;
    at->targets = target;
    return 0;
}

/* Adds one field, and for F_LIST compiles the tree of its elements. */
static int add_field(struct arena *a, struct fieldtree *tree, const struct field *f, err_t *e)
{
    if ((unsigned)f->type >= F_TYPE_N || f->offset > tree->fields.bytes ||
        type_bytes[f->type] > tree->fields.bytes - f->offset)
        return err_set(e, EINVAL, "field \"%s\" lies outside its struct", f->path);
    struct field_target *target = arena_new(a, struct field_target);
    target->field = f;
    if (f->type == F_LIST) {
        if (!f->of)
            return err_set(e, EINVAL, "field \"%s\" is a list without fields of its own", f->path);
        int r = fieldtree_compile(a, f->of, false, &target->of, e);
        if (r < 0)
            return r;
        tree->shares |= target->of->shares;
    }
    tree->shares |= f->type == F_WORD || f->type == F_MAP || f->type == F_ONCE;
    tree->has_once |= f->type == F_ONCE;
    return add_path(a, tree, target, e);
}

static int add_all(struct arena *a, struct fieldtree *tree, const struct fields *fields, err_t *e)
{
    for (size_t i = 0; i < fields->n; i++) {
        int r = add_field(a, tree, &fields->at[i], e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- what to keep */

struct kept *fieldtree_find_kept(const struct kept *keep, str name)
{
    struct kept *m = keep->members;
    while (m && !str_eq(m->key, name))
        m = m->next;
    return m;
}

static struct kept *add_member(struct arena *a, struct kept *keep, str name)
{
    struct kept *m = fieldtree_find_kept(keep, name);
    if (m)
        return m;
    m = arena_new(a, struct kept);
    m->key = name;
    m->next = keep->members;
    keep->members = m;
    return m;
}

static struct kept *add_each(struct arena *a, struct kept *keep)
{
    if (!keep->each)
        keep->each = arena_new(a, struct kept);
    return keep->each;
}

/* Adds what the paths of a step need. Recursion is as deep as the declared paths. */
static void add_kept(struct arena *a, struct kept *keep, const struct field_step *step)
{
    for (const struct field_target *t = step->targets; t; t = t->next) {
        enum field_type type = t->field->type;
        keep->whole |= type == F_RAW || type == F_ONCE || type == F_MAP;
        if (t->of)
            add_kept(a, add_each(a, keep), &t->of->root);
    }
    for (const struct field_step *child = step->children; child; child = child->next) {
        if (child->kind == STEP_MATCH)
            add_member(a, add_each(a, keep), child->key);
        add_kept(a,
                 child->kind == STEP_MEMBER ? add_member(a, keep, child->key) : add_each(a, keep),
                 child);
    }
}

/* Has the trimmers note where the parts of an object's identity are, unless all of its metadata is kept. */
static void add_spans(struct fieldtree *tree)
{
    static const str names[KEPT_SPANS] = { [KEPT_NS] = STR_INIT("namespace"),
                                           [KEPT_NAME] = STR_INIT("name"),
                                           [KEPT_VERSION] = STR_INIT("resourceVersion") };
    struct kept *metadata = fieldtree_find_kept(&tree->keep, S("metadata"));
    for (size_t i = 0; i < KEPT_SPANS; i++)
        fieldtree_find_kept(metadata, names[i])->span = &tree->spans[i];
}

int fieldtree_compile(struct arena *a, const struct fields *fields, bool is_record,
                      struct fieldtree **ret, err_t *e)
{
    struct fieldtree *tree = arena_new(a, struct fieldtree);
    tree->fields = *fields;
    if (is_record && fields->bytes < sizeof(struct record))
        return err_set(e, EINVAL, "the struct of a cached object must begin with struct record");
    int r = is_record ? add_all(a, tree, &record_own_fields, e) : 0;
    if (r >= 0)
        r = add_all(a, tree, fields, e);
    if (r < 0)
        return r;
    add_kept(a, &tree->keep, &tree->root);
    if (is_record)
        add_spans(tree);
    *ret = tree;
    return 0;
}
