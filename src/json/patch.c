/* JSON patch: see patch.h.
 *
 * The document is copied once and then modified in place. A value that is inserted is copied too,
 * because a later operation may modify it. On an error the copy is abandoned in the arena, so a
 * patch applies as a whole or not at all.
 *
 * Every operation resolves its path to a place (a container and a member name or index) and then
 * reads, sets or removes there. Rules that differ from the RFC are those of the Go library that
 * kube-apiserver uses; see the table in patch.h.
 *
 * Untrusted patches can be expensive in two ways that the size of the body does not bound: "copy"
 * can double a document with every operation, and inserting at the front of a long list moves all
 * of it. Both are counted and limited. */
#include "patch.h"

#include "pointer.h"

#include <inttypes.h>

struct work {
    struct arena *arena;
    struct json *root;
    size_t copied; /* bytes copied by "copy" so far */
    size_t moved;  /* list entries moved by insertions and removals so far */
    size_t number; /* of the current operation, from 0 */
    str op, path, from;
    const struct json *value;
    err_t *e;
};

/* Where an operation applies: a member of an object or an element of an array. */
struct place {
    struct json *in;
    str name;  /* unescaped */
    size_t at; /* element; may be one past the end for add */
    bool appending;
};

/* Fails with the number, operation and path. */
static int refuse_operation(struct work *w, str path, const char *why)
{
    return err_set(w->e, ENOENT,
                   "JSON patch operation %zu (" STR_FMT " \"" STR_FMT "\") does not apply: %s",
                   w->number, STR_ARG(w->op), STR_ARG(path), why);
}

/* An index in a list of n; negative ones count from the end. */
static bool parse_index(size_t n, str token, size_t *ret)
{
    int64_t at;
    if (str_to_i64(token, &at) < 0 || at < -(int64_t)n)
        return false;
    *ret = (size_t)(at < 0 ? at + (int64_t)n : at);
    return true;
}

static struct json *step_into(struct work *w, struct json *v, str token)
{
    size_t at;
    if (!json_is(v, JSON_ARR))
        return json_get_str(v, str_find_char(token, '~') == SIZE_MAX
                                   ? token
                                   : pointer_unescape(w->arena, token));
    return parse_index(v->n, token, &at) ? json_item(v, at) : NULL;
}

/* Resolves a path to a place. `room` is 1 if the index after the last element is valid too. */
static int locate_place(struct work *w, str path, size_t room, struct place *ret)
{
    str parent, last;
    if (path.n && path.p[0] != '/') /* text before the first slash is ignored, as in Go */
        path = str_from(path, MIN(str_find_char(path, '/'), path.n));
    if (pointer_check(path, NULL) < 0 || !pointer_split(path, &parent, &last))
        return refuse_operation(w, path, "a path starts with \"/\" and names a part of the object");
    struct json *v = w->root;
    for (str token; v && pointer_next(&parent, &token);)
        v = step_into(w, v, token);
    if (!json_is(v, JSON_ARR) && !json_is(v, JSON_OBJ))
        return refuse_operation(w, path, "there is no such path");
    *ret = (struct place){ .in = v, .name = pointer_unescape(w->arena, last) };
    if (v->type == JSON_OBJ)
        return 0;
    ret->appending = room && str_eq(last, S("-"));
    if (ret->appending)
        ret->at = v->n;
    else if (!parse_index(v->n + room, last, &ret->at) || ret->at >= v->n + room)
        return refuse_operation(w, path, "there is no such index");
    return 0;
}

static struct json *value_at(const struct place *p) /* NULL: nothing there */
{
    return p->in->type == JSON_OBJ ? json_get_str(p->in, p->name) : json_item(p->in, p->at);
}

/* Ten thousand operations at the front of a list of a million would move terabytes. */
static int count_moved(struct work *w, str path, size_t entries)
{
    w->moved += entries;
    if (w->moved <= PATCH_MOVES_MAX)
        return 0;
    return refuse_operation(w, path,
                            "the patch moves too many elements; replace the whole list instead");
}

static int put_value(struct work *w, str path, struct json *value)
{
    struct place p;
    int result = locate_place(w, path, 1, &p);
    if (result < 0)
        return result;
    if (p.in->type == JSON_OBJ) {
        json_set(w->arena, p.in, p.name, value);
        return 0;
    }
    result = count_moved(w, path, p.in->n - p.at);
    if (result == 0)
        json_insert(w->arena, p.in, p.at, value);
    return result;
}

static struct json *new_value(struct work *w)
{
    return w->value ? json_copy(w->arena, w->value) : json_new_null(w->arena);
}

static int op_add(struct work *w)
{
    return put_value(w, w->path, new_value(w));
}

/* Removes the value at a path and returns it. */
static int remove_value(struct work *w, str path, struct json **ret)
{
    struct place p;
    int result = locate_place(w, path, 0, &p);
    if (result < 0)
        return result;
    struct json *was = value_at(&p);
    if (!was)
        return refuse_operation(w, path, "there is nothing to remove");
    result = count_moved(w, path, p.in->n - (p.in->type == JSON_ARR ? p.at : 0));
    if (result < 0)
        return result;
    if (p.in->type == JSON_OBJ)
        json_del(p.in, p.name);
    else
        json_remove(p.in, p.at);
    *ret = was;
    return 0;
}

static int op_remove(struct work *w)
{
    struct json *gone;
    return remove_value(w, w->path, &gone);
}

/* A missing member is added; a missing element is an error. */
static int op_replace(struct work *w)
{
    struct json *value = new_value(w);
    if (!w->path.n && (value->type == JSON_OBJ || value->type == JSON_ARR)) {
        w->root = value;
        return 0;
    }
    struct place p;
    int result = locate_place(w, w->path, 0, &p);
    if (result < 0)
        return result;
    if (p.in->type == JSON_OBJ)
        json_set(w->arena, p.in, p.name, value);
    else
        p.in->items[p.at] = value;
    return 0;
}

static int op_move(struct work *w)
{
    struct json *moved;
    int result = remove_value(w, w->from, &moved);
    return result < 0 ? result : put_value(w, w->path, moved);
}

static int op_copy(struct work *w)
{
    struct place p;
    int result = locate_place(w, w->from, 0, &p);
    if (result < 0)
        return result;
    struct json *from = value_at(&p);
    w->copied += json_weight(from, PATCH_COPY_BYTES_MAX);
    if (w->copied > PATCH_COPY_BYTES_MAX)
        return refuse_operation(w, w->from, "the patch copies more than 3 MiB");
    return put_value(w, w->path, from ? json_copy(w->arena, from) : json_new_null(w->arena));
}

static bool is_null(const struct json *v)
{
    return !v || v->type == JSON_NULL;
}

static int op_test(struct work *w)
{
    struct json *is = w->root;
    if (w->path.n) {
        struct place p;
        int result = locate_place(w, w->path, 0, &p);
        if (result < 0)
            return result;
        is = value_at(&p);
    }
    if ((is_null(is) && is_null(w->value)) || json_eq(is, w->value))
        return 0;
    return err_set(w->e, ESTALE,
                   "JSON patch operation %zu (test \"" STR_FMT "\") failed: the value is different",
                   w->number, STR_ARG(w->path));
}

static int apply_one(struct work *w)
{
    static const struct {
        const char *name;
        int (*run)(struct work *w);
    } operations[] = {
        { "add", op_add },   { "remove", op_remove }, { "replace", op_replace },
        { "move", op_move }, { "copy", op_copy },     { "test", op_test },
    };
    for (size_t i = 0; i < countof(operations); i++)
        if (str_eqc(w->op, operations[i].name))
            return operations[i].run(w);
    return refuse_operation(w, w->path, "op is one of add, remove, replace, move, copy and test");
}

/* An absent member is ""; a present one must be a string. */
static int read_text(struct work *w, const struct json *operation, const char *key, str *ret)
{
    const struct json *v = json_get(operation, key);
    if (!is_null(v) && v->type != JSON_STR)
        return err_set(w->e, EINVAL, "JSON patch operation %zu: %s must be a string, not %s",
                       w->number, key, json_type_name(v));
    *ret = json_text(v);
    return 0;
}

static int read_operation(struct work *w, const struct json *operation)
{
    if (!json_is(operation, JSON_OBJ))
        return err_set(w->e, EINVAL, "JSON patch operation %zu must be an object, not %s",
                       w->number, json_type_name(operation));
    int result = read_text(w, operation, "op", &w->op);
    if (result == 0)
        result = read_text(w, operation, "path", &w->path);
    if (result == 0)
        result = read_text(w, operation, "from", &w->from);
    w->value = json_get(operation, "value");
    return result;
}

/* Copies the document first; checks the depth of the result, because "copy" can nest it. */
int patch_apply(struct arena *a, const struct json *doc, const struct json *patch,
                struct json **ret, err_t *e)
{
    if (!json_is(patch, JSON_ARR))
        return err_set(e, EINVAL, "a JSON patch is an array of operations, not %s",
                       json_type_name(patch));
    if (patch->n > PATCH_OPERATIONS_MAX)
        return err_set(e, E2BIG,
                       "The allowed maximum operations in a JSON patch is %d, got %" PRIu32,
                       PATCH_OPERATIONS_MAX, patch->n);
    struct work w = { .arena = a, .e = e };
    int result = 0;
    for (w.number = 0; w.number < patch->n && result == 0; w.number++)
        result = read_operation(&w, patch->items[w.number]);
    if (result < 0)
        return result;
    w.root = json_copy(a, doc);
    for (w.number = 0; w.number < patch->n && result == 0; w.number++) {
        read_operation(&w, patch->items[w.number]);
        result = apply_one(&w);
    }
    if (result == 0 && json_deeper(w.root, JSON_DEPTH_MAX))
        return err_set(e, ENOENT, "the JSON patch makes an object of more than %d levels",
                       JSON_DEPTH_MAX);
    if (result == 0)
        *ret = w.root;
    return result;
}
