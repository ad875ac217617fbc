/* JSON to records: see project.h. Operations on finished records are in record.c.
 *
 * The problem. A controller watches thousands of pods and needs a dozen of their fields. Keeping
 * the objects as trees costs many times their size in memory, and building a tree for every watch
 * event costs time for members that no feature reads. So a feature declares its fields as a table,
 * and this file turns the bytes of one object into one record of about 200 bytes in a single pass:
 *
 *     bytes of one object, 9 to 24 KB                       from frame.c or a watch line
 *        | trim.c       removes undeclared members by counting brackets: a third of a KB is left
 *        v
 *     trimmed text
 *        | find_same    ends here if the text is that of the record which is held
 *        | check_cost   rejects text that would make the parser allocate out of proportion
 *        | yyjson       parses in place, into a pool that is reused
 *        v
 *     yyjson document
 *        | walk         visits it once, along the tree of declared paths (fieldtree.c)
 *        v
 *     image             a growing buffer: struct | links | texts and lists; pointers are offsets
 *        | relocate     one malloc of the exact size, one memcpy, offsets become addresses
 *        v
 *     struct record     immutable, reference-counted
 *
 * Why an image. The size of a record is known only at the end, and a growing buffer moves. Texts
 * and lists therefore store their offset, and `places` remembers where these offsets are. A list of
 * allocations per record was rejected: cached objects are many, and one block each is the smallest
 * and is freed at once.
 *
 * Why not a tree of our own (json.h). It would be built from the yyjson document anyway, at the
 * cost of a second pass and an allocation per node.
 *
 * Why trim first. managedFields alone is 40 % of the bytes of an object, and no feature declares
 * it. Skipping a value by its brackets costs a seventh of parsing it (trim.h).
 *
 * Invariants:
 *   - The recursion of walk() is as deep as the deepest declared path, never as the document.
 *   - A field has its default unless a value of the right type was found. Invalid values are never an
 *     error: one odd field must not hide an object. Only invalid JSON and a missing name are errors.
 *   - Of several values for one field, numbers are summed and otherwise the first one counts; a word or
 *     map is interned at most once per field, so that record_unref() releases exactly what was taken.
 *   - Fields that are filled are marked with the number of the struct (`turn`) instead of a flag, so
 *     that the marks of the tree never have to be cleared.
 *
 * Memory. A projector owns the pool, the buffers and the interned texts, and serves all projections
 * of a thread. After a document larger than POOL_ITEM_MAX they are returned to the system, so that
 * one large object does not determine the memory of the process from then on. */
#include "projector.h"

#include "../base/quantity.h"
#include "../base/rfc3339.h"
#include "../base/sum.h"
#include "frame.h"
#include "json.h"
#include "trim.h"

#include <malloc.h>
#include <yyjson.h>

enum {
    COST_CHECK_BYTES = 64 << 10, /* shorter documents cannot cost much */
    VALUES_MAX = 300000,         /* per object */
    POOL_ITEM_MAX = 1 << 20,     /* bytes; after a larger document the pool is freed */
    LIST_MAX = 1 << 16, /* elements of an F_LIST: 3 bytes of text can become a struct of 100 */
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

static void *image_at(struct projector *j, size_t offset)
{
    return j->image.p + offset;
}

/* Appends zeroed bytes and returns their offset. May move the image: pointers into it are
 * invalid. */
static size_t image_append(struct projector *j, size_t bytes, size_t align)
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
    size_t start = image_append(j, text.n + 1, 1);
    memcpy(image_at(j, start), text.p, text.n);
    *(str *)image_at(j, slot) = (str){ (const char *)start, text.n };
    vec_push(&j->places, slot);
}

/* Turns the offsets in a copy of the image into addresses. Texts and lists both start with a
 * pointer. */
static void relocate_pointers(struct projector *j, char *block)
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
        void *slot = image_at(j, base + f->offset);
        if (f->type == F_INT || f->type == F_MILLI || f->type == F_TIME)
            *(int64_t *)slot = f->otherwise;
        else if (f->type == F_REAL)
            *(double *)slot = (double)f->otherwise;
        else if (f->type == F_BOOL)
            *(bool *)slot = f->otherwise != 0;
        else if (f->type == F_STR || f->type == F_WORD || f->type == F_RAW || f->type == F_ONCE)
            *(str *)slot = S("");
    }
}

/* ---- values */

/* False for numbers that are not integers; 3.0 is one. */
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

/* Sets a number or adds to it if the path goes through several elements; saturates. */
static void set_number(struct walk *w, struct field_target *target, size_t slot, int64_t value)
{
    int64_t *number = image_at(w->j, slot);
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
    *(const struct labels **)image_at(j, slot) = intern_labels(&j->intern, j->pairs.at, j->pairs.n);
}

/* Once: an allocation of its own, so that it can be freed before the record. */
static void set_raw(struct projector *j, size_t slot, yyjson_val *v, bool once)
{
    size_t n;
    char *text = yyjson_val_write_opts(v, 0, once ? NULL : j->pool, &n, NULL);
    if (text && once)
        *(str *)image_at(j, slot) = (str){ text, n };
    if (!text || once)
        return;
    set_text(j, slot, (str){ text, n });
    ((yyjson_alc *)j->pool)->free(((yyjson_alc *)j->pool)->ctx, text);
}

static void walk_value(struct walk *w, struct field_step *step, yyjson_val *v);

/* Every element is a struct of its own, filled like a record. */
static void set_list(struct projector *j, size_t slot, struct fieldtree *of, yyjson_val *v)
{
    size_t i, n, count = MIN(yyjson_arr_size(v), (size_t)LIST_MAX), bytes = of->fields.bytes;
    size_t start = image_append(j, count * bytes, sizeof(int64_t));
    *(bytes_list *)image_at(j, slot) = (bytes_list){ (const char *)start, count };
    vec_push(&j->places, slot);
    yyjson_val *element;
    yyjson_arr_foreach(v, i, n, element)
    {
        if (i == count)
            break;
        struct walk w = { j, start + i * bytes, ++j->turns };
        set_defaults(j, &of->fields, w.base);
        walk_value(&w, &of->root, element);
    }
}

/* ---- the walk */

/* True if the field has its final value: it is not summed, and interned texts must not be taken
 * twice. */
static bool is_filled(const struct walk *w, const struct field_target *target)
{
    enum field_type type = target->field->type;
    return target->seen == w->turn && type != F_INT && type != F_REAL && type != F_MILLI;
}

/* Stores a value in the field; false if it has the wrong type, and the field keeps its default. */
static bool set_value(struct walk *w, struct field_target *target, yyjson_val *v)
{
    struct projector *j = w->j;
    size_t slot = w->base + target->field->offset;
    int64_t number;
    switch (target->field->type) {
    case F_STR:
        return yyjson_is_str(v) && (set_text(j, slot, text_of(v)), true);
    case F_WORD:
        if (yyjson_get_len(v) && yyjson_is_str(v)) /* "" is not interned */
            *(str *)image_at(j, slot) = word_str(intern_word(&j->intern, text_of(v)));
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
            *(double *)image_at(j, slot) =
                yyjson_get_num(v) +
                (target->many && target->seen == w->turn ? *(double *)image_at(j, slot) : 0);
        return yyjson_is_num(v);
    case F_BOOL:
        return yyjson_is_bool(v) && (*(bool *)image_at(j, slot) = yyjson_get_bool(v), true);
    case F_HAS:
        return *(bool *)image_at(j, slot) = true;
    case F_IS:
        return *(bool *)image_at(j, slot) = str_eqc(text_of(v), target->field->text);
    case F_SUM:
        return yyjson_is_str(v) && (*(uint64_t *)image_at(j, slot) = sum64(text_of(v), 0), true);
    case F_RAW:
    case F_ONCE:
        return set_raw(j, slot, v, target->field->type == F_ONCE), true;
    case F_LIST:
        return yyjson_is_arr(v) && (set_list(j, slot, target->of, v), true);
    default:
        return false;
    }
}

static bool step_matches(const struct field_step *step, yyjson_val *element)
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
            if (child->kind != STEP_MEMBER && step_matches(child, element))
                walk_value(w, child, element);
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
                walk_value(w, child, value);
                break;
            }
    }
}

/* Fills the fields whose path ends here and continues with the longer ones. */
static void walk_value(struct walk *w, struct field_step *step, yyjson_val *v)
{
    if (yyjson_is_null(v))
        return;
    for (struct field_target *t = step->targets; t; t = t->next)
        if (!is_filled(w, t) && set_value(w, t, v))
            t->seen = w->turn;
    if (!step->children)
        return;
    if (yyjson_is_obj(v))
        walk_object(w, step, v);
    else if (yyjson_is_arr(v))
        walk_array(w, step, v);
}

/* ---- documents */

typedef bool trim_fn(const struct kept *keep, str text, struct buf *out);

static yyjson_doc *read_trimmed(struct projector *j)
{
    json_hide_nul(j->trimmed.p, j->trimmed.n);
    memset(buf_reserve(&j->trimmed, YYJSON_PADDING_SIZE), 0, YYJSON_PADDING_SIZE);
    return yyjson_read_opts(j->trimmed.p, j->trimmed.n, YYJSON_READ_INSITU, j->pool, NULL);
}

/* A value costs the parser 16 bytes, and may be two bytes of text or, as a level of nesting, one.
 * No server stores real objects like that, so such text is rejected before it is parsed. Short
 * texts are not checked. */
static int check_cost(str text, err_t *e)
{
    size_t depth = 0, deepest = 0, values = 0;
    bool in_text = false;
    for (size_t i = 0; text.n > COST_CHECK_BYTES && i < text.n; i++) {
        char c = text.p[i];
        if (in_text && c == '\\')
            i++;
        else if (c == '"')
            in_text = !in_text;
        else if (in_text)
            continue;
        else if (c == '[' || c == '{')
            depth++, values++, deepest = MAX(deepest, depth);
        else if (c == ',')
            values++;
        else if ((c == ']' || c == '}') && depth)
            depth--;
    }
    if (deepest > 2 * JSON_DEPTH_MAX)
        return err_set(e, E2BIG, "an object in the response is nested more than %d levels deep",
                       2 * JSON_DEPTH_MAX);
    if (values > VALUES_MAX)
        return err_set(e, E2BIG, "an object in the response has more than %d values", VALUES_MAX);
    return 0;
}

int projector_begin(struct projector *j, size_t bytes, err_t *e)
{
    document_drop(j);
    j->document_bytes = bytes;
    j->sum = 0;
    if (!j->pool && !(j->pool = yyjson_alc_dyn_new()))
        return err_set(e, ENOMEM, "out of memory while parsing an object of %zu bytes", bytes);
    return 0;
}

/* The text inside the quotes; false if it has escapes, which only the parser can read. */
static bool span_text(str text, const struct kept_span *span, str *ret)
{
    if (span->again || span->to < span->from + 2 || text.p[span->from] != '"')
        return false;
    *ret = (str){ text.p + span->from + 1, span->to - span->from - 2 };
    return !memchr(ret->p, '\\', ret->n);
}

/* The sum of the text without the version identifies the state of all declared fields. It has 64 bits, so two states of one
 * object are taken for the same once in 10^19 changes. */
struct record *projector_find_same(struct projection *p, size_t from, size_t to)
{
    struct projector *j = p->j;
    const struct kept_span *spans = p->tree->spans, *version = &spans[KEPT_VERSION];
    str text = buf_str(&j->trimmed), ns = S(""), name, rv;
    bool named = span_text(text, &spans[KEPT_NAME], &name) && span_text(text, version, &rv) &&
                 (!spans[KEPT_NS].to || span_text(text, &spans[KEPT_NS], &ns));
    if (!p->find || !named)
        return NULL;
    j->sum = sum64((str){ text.p + version->to, to - version->to },
                   sum64((str){ text.p + from, version->from - from }, 0));
    struct record *held = p->find(p->find_context, ns, name);
    if (!held || !held->sum || held->sum != j->sum || held->refs != 1 || held->rv.n != rv.n)
        return NULL;
    memcpy((char *)(uintptr_t)held->rv.p, rv.p, rv.n);
    return record_ref(held);
}

int projector_parse_trimmed(struct projector *j, yyjson_val **ret, err_t *e)
{
    if (j->trimmed.n > FRAME_ITEM_MAX) /* as JSON it would be refused for its size */
        return err_set(e, EMSGSIZE, "an object in the response has more than %d MiB of text",
                       FRAME_ITEM_MAX >> 20);
    int r = check_cost(buf_str(&j->trimmed), e);
    if (r < 0)
        return r;
    if (!(j->document = read_trimmed(j)))
        return err_set(e, EBADMSG, "an object in the response cannot be parsed");
    *ret = yyjson_doc_get_root(j->document);
    return 0;
}

static bool trim_document(struct projection *p, str json, trim_fn *trim)
{
    memset(p->tree->spans, 0, sizeof(p->tree->spans));
    return trim(&p->tree->keep, json, &p->j->trimmed);
}

/* Parses the trimmed text in place. If trimming or parsing it fails, parses the original instead,
 * whose error position means something to the user. */
static int document_read(struct projection *p, str json, bool trimmed, yyjson_val **ret, err_t *e)
{
    struct projector *j = p->j;
    yyjson_read_err problem;
    int r;
    if ((r = check_cost(trimmed ? buf_str(&j->trimmed) : json, e)) < 0)
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
        return err_set(e, EBADMSG, "an object in the response is not valid JSON at byte %zu: %s",
                       problem.pos, problem.msg);
    *ret = yyjson_doc_get_root(j->document);
    return 0;
}

int projector_make_record(struct projection *p, yyjson_val *object, struct record **ret, err_t *e)
{
    struct projector *j = p->j;
    buf_clear(&j->image);
    vec_clear(&j->places);
    image_append(j, p->fixed_bytes, sizeof(max_align_t));
    set_defaults(j, &record_own_fields, 0);
    set_defaults(j, &p->tree->fields, 0);
    struct walk w = { j, 0, ++j->turns };
    walk_value(&w, &p->tree->root, object);

    struct record *r = mem_alloc(j->image.n);
    memcpy(r, j->image.p, j->image.n);
    relocate_pointers(j, (char *)r);
    r->refs = 1;
    r->sum = j->sum;
    r->of = p;
    r->node.hash = record_hash(r->ns, r->name);
    p->records++;
    j->record_bytes += malloc_usable_size(r);
    if (!r->name.n) {
        record_unref(r);
        return err_set(e, EBADMSG, "an object in the response has no metadata.name");
    }
    *ret = r;
    return 0;
}

int project(struct projection *p, str json, struct record **ret, err_t *e)
{
    yyjson_val *object;
    int r = projector_begin(p->j, json.n, e);
    if (r < 0)
        return r;
    bool trimmed = trim_document(p, json, trim_value);
    if (trimmed && (*ret = projector_find_same(p, 0, p->j->trimmed.n)))
        return 0;
    r = document_read(p, json, trimmed, &object, e);
    return r < 0 ? r : projector_make_record(p, object, ret, e);
}

static yyjson_val *member(yyjson_val *object, const char *name)
{
    return yyjson_obj_get(object, name);
}

static bool parse_watch_type(str name, enum watch_type *ret)
{
    static const char *const names[] = { "ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR" };
    for (size_t i = 0; i < countof(names); i++)
        if (str_eqc(name, names[i])) {
            *ret = (enum watch_type)i;
            return true;
        }
    return false;
}

/* The same for an event, which the trimmers write as {"type":TYPE,"object":OBJECT}. A deleted object is not the same. */
bool projector_find_event(struct projection *p, struct watch_line *ret)
{
    str text = buf_str(&p->j->trimmed), added = S("{\"type\":\"ADDED\",\"object\":"),
        modified = S("{\"type\":\"MODIFIED\",\"object\":");
    bool is_new = str_starts(text, added);
    if (!is_new && !str_starts(text, modified))
        return false;
    *ret = (struct watch_line){ .type = is_new ? WATCH_ADDED : WATCH_MODIFIED };
    ret->record = projector_find_same(p, is_new ? added.n : modified.n, text.n - 1);
    return ret->record != NULL;
}

int project_watch_line(struct projection *p, str json, struct watch_line *ret, err_t *e)
{
    yyjson_val *root;
    int r = projector_begin(p->j, json.n, e);
    if (r < 0)
        return r;
    bool trimmed = trim_document(p, json, trim_watch_line);
    if (trimmed && projector_find_event(p, ret))
        return 0;
    r = document_read(p, json, trimmed, &root, e);
    return r < 0 ? r : projector_read_event(p, root, ret, e);
}

/* BOOKMARK and ERROR carry no object of the watched kind; their texts borrow from the document. */
int projector_read_event(struct projection *p, yyjson_val *root, struct watch_line *ret, err_t *e)
{
    struct watch_line line = { 0 };
    int r;
    str type = text_of(member(root, "type"));
    if (!parse_watch_type(type, &line.type))
        return err_set(e, EBADMSG, "a watch event has the unknown type \"" STR_FMT "\"",
                       STR_ARG(str_upto(type, 40)));
    yyjson_val *object = member(root, "object"), *meta = member(object, "metadata");
    if (line.type <= WATCH_DELETED) {
        if ((r = projector_make_record(p, object, &line.record, e)) < 0)
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
