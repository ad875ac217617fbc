/* JSON to records: see project.h. The walk is in here; record.c has what is done with a record.
 *
 * A record is first built as an image in a scratch buffer that grows, so pointers into itself are
 * offsets there and are noted; the finished image is copied into one block of exact size and the
 * noted places are turned into addresses.
 *
 * The parser is yyjson on its dynamic pool. The tree it makes is a linked sequence, so members are
 * visited in one pass. What nobody declared (managedFields alone is 40 % of the bytes) does not reach it:
 * see trim.h. */
#include "projector.h"

#include "../base/quantity.h"
#include "../base/rfc3339.h"
#include "../base/sum.h"
#include "json.h"
#include "trim.h"

#include <malloc.h>
#include <yyjson.h>

enum {
    COST_LOOK_BYTES = 64 << 10, /* shorter documents cannot cost much */
    VALUES_MAX = 300000,        /* of one object */
    POOL_ITEM_MAX = 1 << 20,    /* after a larger document the pool is given back */
    LIST_MAX = 1 << 16, /* elements of an F_LIST: the text of one may be 3 bytes, its struct 100 */
};

struct projector *projector_new(void)
{
    struct projector *j = mem_zero(1, sizeof(*j));
    return j;
}

static void pool_drop(struct projector *j)
{
    if (j->pool)
        yyjson_alc_dyn_free(j->pool);
    j->pool = NULL;
}

static void document_drop(struct projector *j)
{
    if (j->document)
        yyjson_doc_free(j->document);
    j->document = NULL;
    buf_clear(&j->trimmed);
    if (j->document_bytes <= POOL_ITEM_MAX)
        return;
    pool_drop(j);
    buf_done(&j->trimmed);
    buf_done(&j->image);
}

void projector_free(struct projector *j)
{
    if (!j)
        return;
    document_drop(j);
    pool_drop(j);
    buf_done(&j->trimmed);
    buf_done(&j->image);
    vec_done(&j->places);
    vec_done(&j->pairs);
    intern_done(&j->intern);
    free(j);
}

size_t projector_bytes(const struct projector *j)
{
    return j->record_bytes + j->intern.bytes;
}

/* ---- the image */

static void *at(struct projector *j, size_t offset)
{
    return j->image.p + offset;
}

static size_t append(struct projector *j, size_t bytes, size_t align)
{
    size_t start = (j->image.n + align - 1) / align * align;
    size_t padding = start - j->image.n;
    buf_reserve(&j->image, padding + bytes);
    memset(j->image.p + j->image.n, 0, padding + bytes);
    j->image.n = start + bytes;
    return start;
}

static void set_text(struct projector *j, size_t slot, str text)
{
    size_t start = append(j, text.n + 1, 1);
    memcpy(at(j, start), text.p, text.n);
    *(str *)at(j, slot) = (str){ (const char *)start, text.n };
    vec_push(&j->places, slot);
}

/* Texts and lists both begin with their pointer. */
static void relocate(struct projector *j, char *block)
{
    for (size_t i = 0; i < j->places.n; i++) {
        char **pointer = (char **)(void *)(block + j->places.at[i]);
        *pointer = block + (uintptr_t)*pointer;
    }
}

static void set_defaults(struct projector *j, const struct fields *fields, size_t base)
{
    for (size_t i = 0; i < fields->n; i++) {
        const struct field *f = &fields->at[i];
        void *slot = at(j, base + f->offset);
        if (f->type == F_INT || f->type == F_MILLI || f->type == F_TIME)
            *(int64_t *)slot = f->otherwise;
        else if (f->type == F_REAL)
            *(double *)slot = (double)f->otherwise;
        else if (f->type == F_BOOL)
            *(bool *)slot = f->otherwise != 0;
        else if (f->type == F_STR || f->type == F_WORD || f->type == F_RAW)
            *(str *)slot = S("");
    }
}

/* ---- values */

static bool integer_of(yyjson_val *v, int64_t *ret)
{
    if (yyjson_is_sint(v) || (yyjson_is_uint(v) && yyjson_get_uint(v) <= INT64_MAX)) {
        *ret = yyjson_get_sint(v);
        return true;
    }
    double real = yyjson_get_num(v);
    if (!yyjson_is_real(v) || real < -0x1p62 || real > 0x1p62)
        return false;
    *ret = (int64_t)real;
    return (double)*ret == real;
}

static str text_of(yyjson_val *v)
{
    return yyjson_is_str(v) ? (str){ yyjson_get_str(v), yyjson_get_len(v) } : S("");
}

static bool milli_of(yyjson_val *v, int64_t *ret)
{
    int64_t whole;
    if (yyjson_is_str(v))
        return quantity_parse_milli(text_of(v), ret, NULL) == 0;
    return integer_of(v, &whole) && !__builtin_mul_overflow(whole, INT64_C(1000), ret);
}

static bool time_of(yyjson_val *v, int64_t *ret)
{
    return yyjson_is_str(v) && rfc3339_parse_ns(text_of(v), ret, NULL) == 0;
}

static void set_number(struct walk *w, struct field_target *target, size_t slot, int64_t value)
{
    int64_t *number = at(w->j, slot);
    bool more = target->many && target->seen == w->turn && target->field->type != F_TIME;
    int64_t sum = value;
    if (more && __builtin_add_overflow(*number, value, &sum))
        sum = value < 0 ? INT64_MIN : INT64_MAX;
    *number = sum;
}

static void set_map(struct projector *j, size_t slot, yyjson_val *v)
{
    size_t i, n;
    yyjson_val *key, *value;
    vec_clear(&j->pairs);
    yyjson_obj_foreach(v, i, n, key, value)
    {
        if (yyjson_is_str(value))
            vec_push(&j->pairs, ((struct labels_pair){ text_of(key), text_of(value) }));
    }
    *(const struct labels **)at(j, slot) = intern_labels(&j->intern, j->pairs.at, j->pairs.n);
}

static void set_raw(struct projector *j, size_t slot, yyjson_val *v)
{
    size_t n;
    char *text = yyjson_val_write_opts(v, 0, j->pool, &n, NULL);
    if (!text)
        return;
    set_text(j, slot, (str){ text, n });
    ((yyjson_alc *)j->pool)->free(((yyjson_alc *)j->pool)->ctx, text);
}

static void walk(struct walk *w, struct field_step *step, yyjson_val *v);

static void set_list(struct projector *j, size_t slot, struct fieldtree *of, yyjson_val *v)
{
    size_t i, n, count = MIN(yyjson_arr_size(v), (size_t)LIST_MAX), bytes = of->fields.bytes;
    size_t start = append(j, count * bytes, sizeof(int64_t));
    *(bytes_list *)at(j, slot) = (bytes_list){ (const char *)start, count };
    vec_push(&j->places, slot);
    yyjson_val *element;
    yyjson_arr_foreach(v, i, n, element)
    {
        if (i == count)
            break;
        struct walk w = { j, start + i * bytes, ++j->turns };
        set_defaults(j, &of->fields, w.base);
        walk(&w, &of->root, element);
    }
}

/* ---- the walk */

/* Of what is not summed the first counts; shared texts must not be taken twice in any case. */
static bool is_taken(const struct walk *w, const struct field_target *target)
{
    enum field_type type = target->field->type;
    return target->seen == w->turn && type != F_INT && type != F_REAL && type != F_MILLI;
}

static bool set_value(struct walk *w, struct field_target *target, yyjson_val *v)
{
    struct projector *j = w->j;
    size_t slot = w->base + target->field->offset;
    int64_t number;
    switch (target->field->type) {
    case F_STR:
        return yyjson_is_str(v) && (set_text(j, slot, text_of(v)), true);
    case F_WORD:
        if (yyjson_get_len(v) && yyjson_is_str(v)) /* "" is no word */
            *(str *)at(j, slot) = word_str(intern_word(&j->intern, text_of(v)));
        return yyjson_is_str(v);
    case F_MAP:
        return yyjson_is_obj(v) && (set_map(j, slot, v), true);
    case F_INT:
        return integer_of(v, &number) && (set_number(w, target, slot, number), true);
    case F_MILLI:
        return milli_of(v, &number) && (set_number(w, target, slot, number), true);
    case F_TIME:
        return time_of(v, &number) && (set_number(w, target, slot, number), true);
    case F_REAL:
        if (yyjson_is_num(v))
            *(double *)at(j, slot) =
                yyjson_get_num(v) +
                (target->many && target->seen == w->turn ? *(double *)at(j, slot) : 0);
        return yyjson_is_num(v);
    case F_BOOL:
        return yyjson_is_bool(v) && (*(bool *)at(j, slot) = yyjson_get_bool(v), true);
    case F_HAS:
        return *(bool *)at(j, slot) = true;
    case F_IS:
        return *(bool *)at(j, slot) = str_eqc(text_of(v), target->field->text);
    case F_SUM:
        return yyjson_is_str(v) && (*(uint64_t *)at(j, slot) = sum64(text_of(v), 0), true);
    case F_RAW:
        return set_raw(j, slot, v), true;
    case F_LIST:
        return yyjson_is_arr(v) && (set_list(j, slot, target->of, v), true);
    default:
        return false;
    }
}

static bool matches(const struct field_step *step, yyjson_val *element)
{
    if (step->kind == STEP_EACH)
        return true;
    yyjson_val *v = yyjson_obj_getn(element, step->key.p, step->key.n);
    return yyjson_is_bool(v) ? str_eq(step->value, yyjson_get_bool(v) ? S("true") : S("false"))
                             : yyjson_is_str(v) && str_eq(step->value, text_of(v));
}

static void walk_array(struct walk *w, struct field_step *step, yyjson_val *v)
{
    size_t i, n;
    yyjson_val *element;
    yyjson_arr_foreach(v, i, n, element)
    {
        for (struct field_step *child = step->children; child; child = child->next)
            if (child->kind != STEP_MEMBER && matches(child, element))
                walk(w, child, element);
    }
}

static void walk_object(struct walk *w, struct field_step *step, yyjson_val *v)
{
    size_t i, n;
    yyjson_val *key, *value;
    yyjson_obj_foreach(v, i, n, key, value)
    {
        str name = text_of(key);
        for (struct field_step *child = step->children; child; child = child->next)
            if (child->kind == STEP_MEMBER && str_eq(child->key, name)) {
                walk(w, child, value);
                break;
            }
    }
}

/* Recursion is as deep as the deepest declared path, whatever the document. */
static void walk(struct walk *w, struct field_step *step, yyjson_val *v)
{
    if (yyjson_is_null(v))
        return;
    for (struct field_target *t = step->targets; t; t = t->next)
        if (!is_taken(w, t) && set_value(w, t, v))
            t->seen = w->turn;
    if (!step->children)
        return;
    if (yyjson_is_obj(v))
        walk_object(w, step, v);
    else if (yyjson_is_arr(v))
        walk_array(w, step, v);
}

/* ---- documents */

typedef bool trim_fn(const struct field_step *step, str text, struct buf *out);

static yyjson_doc *read_trimmed(struct projector *j)
{
    json_hide_nul(j->trimmed.p, j->trimmed.n);
    memset(buf_reserve(&j->trimmed, YYJSON_PADDING_SIZE), 0, YYJSON_PADDING_SIZE);
    return yyjson_read_opts(j->trimmed.p, j->trimmed.n, YYJSON_READ_INSITU, j->pool, NULL);
}

/* A value costs the parser 16 bytes, and may be two bytes of text or, as a level, one. Nothing that a server stores
 * for real is like that, so what would be is refused before it is parsed. Short texts are not looked at. */
static int check_cost(str text, err_t *e)
{
    size_t depth = 0, deepest = 0, values = 0;
    bool in_text = false;
    for (size_t i = 0; text.n > COST_LOOK_BYTES && i < text.n; i++) {
        char c = text.p[i];
        if (in_text && c == '\\')
            i++;
        else if (c == '"')
            in_text = !in_text;
        else if (in_text)
            continue;
        else if (c == '[' || c == '{')
            deepest = MAX(deepest, ++depth), values++;
        else if (c == ',')
            values++;
        else if ((c == ']' || c == '}') && depth)
            depth--;
    }
    if (deepest > 2 * JSON_DEPTH_MAX)
        return err_set(e, E2BIG, "an object in the answer is nested more than %d levels deep",
                       2 * JSON_DEPTH_MAX);
    if (values > VALUES_MAX)
        return err_set(e, E2BIG, "an object in the answer has more than %d values", VALUES_MAX);
    return 0;
}

static int document_read(struct projection *p, str json, trim_fn *trim, yyjson_val **ret, err_t *e)
{
    struct projector *j = p->j;
    document_drop(j);
    if (!j->pool && !(j->pool = yyjson_alc_dyn_new()))
        return err_set(e, ENOMEM, "no memory to parse an object of %zu bytes", json.n);
    yyjson_read_err problem;
    bool trimmed = trim(&p->tree->root, json, &j->trimmed);
    j->document_bytes = json.n;
    int r = check_cost(trimmed ? buf_str(&j->trimmed) : json, e);
    if (r < 0)
        return r;
    if (trimmed)
        j->document = read_trimmed(j);
    if (!j->document && memmem(json.p, json.n, "\\u0000", 6)) {
        buf_clear(&j->trimmed);
        buf_put(&j->trimmed, json);
        j->document = read_trimmed(j);
    }
    if (!j->document) /* without the in-situ flag yyjson does not write to the text */
        j->document = yyjson_read_opts((char *)(uintptr_t)json.p, json.n, 0, j->pool, &problem);
    if (!j->document)
        return err_set(e, EBADMSG, "an object in the answer is no valid JSON at byte %zu: %s",
                       problem.pos, problem.msg);
    *ret = yyjson_doc_get_root(j->document);
    return 0;
}

static int record_make(struct projection *p, yyjson_val *object, struct record **ret, err_t *e)
{
    struct projector *j = p->j;
    buf_clear(&j->image);
    vec_clear(&j->places);
    append(j, p->fixed_bytes, sizeof(max_align_t));
    set_defaults(j, &record_own_fields, 0);
    set_defaults(j, &p->tree->fields, 0);
    struct walk w = { j, 0, ++j->turns };
    walk(&w, &p->tree->root, object);

    struct record *r = mem_alloc(j->image.n);
    memcpy(r, j->image.p, j->image.n);
    relocate(j, (char *)r);
    r->refs = 1;
    r->of = p;
    r->node.hash = record_hash(r->ns, r->name);
    p->records++;
    j->record_bytes += malloc_usable_size(r);
    if (!r->name.n) {
        record_unref(r);
        return err_set(e, EBADMSG, "an object in the answer has no metadata.name");
    }
    *ret = r;
    return 0;
}

int project(struct projection *p, str json, struct record **ret, err_t *e)
{
    yyjson_val *object;
    int r = document_read(p, json, trim_value, &object, e);
    return r < 0 ? r : record_make(p, object, ret, e);
}

static yyjson_val *member(yyjson_val *object, const char *name)
{
    return yyjson_obj_get(object, name);
}

static bool type_of(str name, enum watch_type *ret)
{
    static const char *const names[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };
    for (size_t i = 0; i < countof(names); i++)
        if (str_eqc(name, names[i])) {
            *ret = (enum watch_type)i;
            return true;
        }
    return false;
}

int project_watch_line(struct projection *p, str json, struct watch_line *ret, err_t *e)
{
    yyjson_val *root;
    int r = document_read(p, json, trim_watch_line, &root, e);
    if (r < 0)
        return r;
    struct watch_line line = { 0 };
    str type = text_of(member(root, "type"));
    if (!type_of(type, &line.type))
        return err_set(e, EBADMSG, "a watch event has the unknown type \"" STR_FMT "\"",
                       STR_ARG(str_upto(type, 40)));
    yyjson_val *object = member(root, "object"), *meta = member(object, "metadata");
    if (line.type <= WATCH_DELETED) {
        if ((r = record_make(p, object, &line.record, e)) < 0)
            return r;
    } else if (line.type == WATCH_BOOKMARK) {
        line.rv = text_of(member(meta, "resourceVersion"));
        yyjson_val *end = member(member(meta, "annotations"), "k8s.io/initial-events-end");
        line.initial_end = str_eq(text_of(end), S("true"));
    } else {
        line.code = yyjson_get_int(member(object, "code"));
        line.reason = text_of(member(object, "reason"));
        line.message = text_of(member(object, "message"));
    }
    *ret = line;
    return 0;
}
