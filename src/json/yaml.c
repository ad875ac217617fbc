/* Parses YAML text into a tree, from libyaml's events: see yaml.h for the dialect. The meaning of
 * scalars is in yaml_scalar.c, writing in yaml_write.c.
 *
 * One event is current (`r->event`). read_node() is entered with the first event of a node and
 * returns with its last one, so that every loop has the form "next event, then handle it".
 *
 * Anchors are known until the end of their document. An alias copies the tree of its anchor, after
 * counting the bytes of the copy against YAML_ALIAS_BYTES. Counting bytes instead of nodes stops
 * both kinds of bomb: many small nodes ("billion laughs") and few large texts. Sharing the tree
 * instead of copying was rejected: trees are modified in place, and a shared node would change in
 * two places. */
#include "yaml.h"

#include "../base/map.h"

#include <math.h>
#include <yaml.h>

struct reader {
    yaml_parser_t parser;
    yaml_event_t event; /* the current event; type YAML_NO_EVENT: none */
    struct arena *arena;
    const struct json_limits *limits;
    size_t depth_max;
    struct map anchors;   /* name to tree; a NULL tree is still being parsed */
    size_t aliased_bytes; /* copied for aliases so far */
    struct buf path;      /* of the current node, if duplicates are reported */
    err_t *e;
};

static struct json *read_node(struct reader *r, size_t depth);

static void reader_done(struct reader *r)
{
    yaml_event_delete(&r->event);
    yaml_parser_delete(&r->parser);
    map_done(&r->anchors);
    buf_done(&r->path);
}

static struct json *fail_at(struct reader *r, const char *problem)
{
    err_set(r->e, EINVAL, "invalid YAML at line %zu, column %zu: %s", r->event.start_mark.line + 1,
            r->event.start_mark.column + 1, problem);
    return NULL;
}

static bool next_event(struct reader *r)
{
    yaml_event_delete(&r->event);
    if (yaml_parser_parse(&r->parser, &r->event))
        return true;
    const yaml_parser_t *p = &r->parser;
    if (p->error == YAML_READER_ERROR)
        err_set(r->e, EINVAL, "invalid YAML at byte %zu: %s", p->problem_offset + 1, p->problem);
    else
        err_set(r->e, EINVAL, "invalid YAML at line %zu, column %zu: %s%s%s",
                p->problem_mark.line + 1, p->problem_mark.column + 1,
                p->problem ? p->problem : "unreadable", p->context ? " " : "",
                p->context ? p->context : "");
    return false;
}

/* ---- anchors and aliases */

static void anchor_open(struct reader *r, const yaml_char_t *name, str *ret_kept)
{
    *ret_kept = (str){ 0 };
    if (!name)
        return;
    *ret_kept = arena_str(r->arena, str_c((const char *)name));
    map_put(&r->anchors, *ret_kept, NULL);
}

static struct json *anchor_close(struct reader *r, str name, struct json *tree)
{
    if (name.n && tree)
        map_put(&r->anchors, name, tree);
    return tree;
}

static struct json *read_alias(struct reader *r)
{
    str name = str_c((const char *)r->event.data.alias.anchor);
    struct json *tree = map_get(&r->anchors, name);
    if (tree) {
        r->aliased_bytes += json_weight(tree, YAML_ALIAS_BYTES);
        return r->aliased_bytes <= YAML_ALIAS_BYTES
                   ? json_copy(r->arena, tree)
                   : fail_at(r, "aliases make this document too large");
    }
    for (struct map_slot *s = NULL; (s = map_next(&r->anchors, s));)
        if (str_eq(s->key, name))
            return fail_at(r, "an anchor contains an alias to itself");
    return fail_at(r, "an alias refers to an unknown anchor");
}

/* ---- mappings */

struct mapping {
    struct json *obj;
};

static void mapping_put(struct reader *r, struct mapping *m, str key, struct json *value)
{
    json_set(r->arena, m->obj, key, value);
}

static bool merge_one(struct reader *r, struct mapping *m, const struct json *from)
{
    if (!json_is(from, JSON_OBJ))
        return fail_at(r, "a merge key (<<) takes a mapping or a list of mappings");
    json_each(each, from)
        mapping_put(r, m, each->key, each->value);
    return true;
}

/* In a list, earlier mappings take precedence: they are merged last. */
static bool merge_mapping(struct reader *r, struct mapping *m, const struct json *from)
{
    if (!json_is(from, JSON_ARR))
        return merge_one(r, m, from);
    for (size_t i = from->n; i-- > 0;)
        if (!merge_one(r, m, from->items[i]))
            return false;
    return true;
}

static bool is_merge_key(const yaml_event_t *event)
{
    return event->type == YAML_SCALAR_EVENT && event->data.scalar.length == 2 &&
           memcmp(event->data.scalar.value, "<<", 2) == 0 && event->data.scalar.plain_implicit;
}

static bool key_text(struct reader *r, const struct json *key, str *ret)
{
    switch (key->type) {
    case JSON_STR:
        *ret = json_text(key);
        return true;
    case JSON_BOOL:
    case JSON_INT:
    case JSON_REAL:
        *ret = json_to_str(r->arena, key);
        return true;
    default:
        fail_at(r, key->type == JSON_NULL ? "a key cannot be null"
                                          : "a key must be text, a number or a boolean");
        return false;
    }
}

static size_t path_key(struct reader *r, str key)
{
    size_t before = r->path.n;
    if (r->limits->duplicate && before <= JSON_PATH_BYTES)
        buf_printf(&r->path, before ? "." STR_FMT : STR_FMT,
                   STR_ARG(str_upto(key, JSON_PATH_BYTES)));
    return before;
}

/* The current event is the first of a key; parses key and value. */
static bool read_entry(struct reader *r, struct mapping *m, size_t depth)
{
    bool merges = is_merge_key(&r->event);
    struct json *key = read_node(r, depth);
    str name;
    if (!key || !key_text(r, key, &name))
        return false;
    size_t before = path_key(r, name);
    if (!merges && r->limits->duplicate && json_find(m->obj, name))
        r->limits->duplicate(r->limits->context, buf_str(&r->path));
    struct json *value = next_event(r) ? read_node(r, depth) : NULL;
    if (!value)
        return false;
    r->path.n = before;
    if (merges)
        return merge_mapping(r, m, value);
    mapping_put(r, m, name, value);
    return true;
}

static bool check_member_count(struct reader *r, size_t n)
{
    if (!r->limits->members || n <= r->limits->members)
        return true;
    err_set(r->e, E2BIG, "YAML has more than %zu entries in one mapping or list at line %zu",
            r->limits->members, r->event.start_mark.line + 1);
    return false;
}

static struct json *read_mapping(struct reader *r, size_t depth)
{
    str anchor;
    anchor_open(r, r->event.data.mapping_start.anchor, &anchor);
    struct mapping m = { .obj = json_new_obj(r->arena) };
    bool fine = next_event(r);
    while (fine && r->event.type != YAML_MAPPING_END_EVENT)
        fine = read_entry(r, &m, depth) && check_member_count(r, m.obj->n) && next_event(r);
    return fine ? anchor_close(r, anchor, m.obj) : NULL;
}

/* ---- the rest */

static struct json *read_sequence(struct reader *r, size_t depth)
{
    str anchor;
    anchor_open(r, r->event.data.sequence_start.anchor, &anchor);
    struct json *list = json_new_arr(r->arena);
    size_t before = r->path.n;
    for (;;) {
        if (!next_event(r))
            return NULL;
        if (r->event.type == YAML_SEQUENCE_END_EVENT)
            return anchor_close(r, anchor, list);
        if (r->limits->duplicate && before <= JSON_PATH_BYTES)
            buf_printf(&r->path, "[%u]", list->n);
        struct json *item = read_node(r, depth);
        if (!item)
            return NULL;
        r->path.n = before;
        json_push(r->arena, list, item);
        if (!check_member_count(r, list->n))
            return NULL;
    }
}

/* The text after "tag:yaml.org,2002:", or the whole tag. */
static str short_tag(const yaml_char_t *tag)
{
    str s = str_c((const char *)tag), prefix = S("tag:yaml.org,2002:");
    return str_starts(s, prefix) ? str_from(s, prefix.n) : s;
}

static bool tag_takes(str tag, const struct json *v)
{
    if (str_eq(tag, S("int")))
        return v->type == JSON_INT;
    if (str_eq(tag, S("float")))
        return v->type == JSON_INT || v->type == JSON_REAL;
    return str_eq(tag, S("bool")) ? v->type == JSON_BOOL : v->type == JSON_NULL;
}

static struct json *read_tagged(struct reader *r, str tag, str text)
{
    if (str_eq(tag, S("binary")))
        return fail_at(r, "!!binary is not supported; write the base64 text without the tag");
    if (!str_eq(tag, S("int")) && !str_eq(tag, S("float")) && !str_eq(tag, S("bool")) &&
        !str_eq(tag, S("null")))
        return json_new_str(r->arena, text);
    struct json *v = yaml_resolve(r->arena, text);
    return v && tag_takes(tag, v) ? v : fail_at(r, "the value does not match its tag");
}

static struct json *read_non_finite(struct reader *r, str text)
{
    if (!r->limits->non_finite)
        return fail_at(r, "JSON cannot represent infinity and not-a-number");
    bool nan = str_eq_nocase(text, S(".nan"));
    return json_new_real(r->arena, nan ? (double)NAN : text.p[0] == '-' ? -HUGE_VAL : HUGE_VAL);
}

static struct json *read_scalar(struct reader *r)
{
    str text = { (const char *)r->event.data.scalar.value, r->event.data.scalar.length };
    str anchor;
    anchor_open(r, r->event.data.scalar.anchor, &anchor);
    struct json *v;
    if (r->event.data.scalar.tag)
        v = read_tagged(r, short_tag(r->event.data.scalar.tag), text);
    else if (r->event.data.scalar.style != YAML_PLAIN_SCALAR_STYLE)
        v = json_new_str(r->arena, text);
    else if (!(v = yaml_resolve(r->arena, text)) && !(v = read_non_finite(r, text)))
        return NULL;
    return anchor_close(r, anchor, v);
}

static struct json *read_node(struct reader *r, size_t depth)
{
    switch (r->event.type) {
    case YAML_ALIAS_EVENT:
        return read_alias(r);
    case YAML_SCALAR_EVENT:
        return read_scalar(r);
    case YAML_SEQUENCE_START_EVENT:
    case YAML_MAPPING_START_EVENT:
        if (depth < r->depth_max)
            return r->event.type == YAML_MAPPING_START_EVENT ? read_mapping(r, depth + 1)
                                                             : read_sequence(r, depth + 1);
        err_set(r->e, E2BIG, "YAML is nested more than %zu levels deep at line %zu", r->depth_max,
                r->event.start_mark.line + 1);
        return NULL;
    default:
        return fail_at(r, "expected a value");
    }
}

/* The next document, or NULL with a result of 0 at the end of the stream. */
static int read_document(struct reader *r, struct json **ret)
{
    *ret = NULL;
    map_done(&r->anchors);
    do {
        if (!next_event(r))
            return -r->e->code;
        if (r->event.type == YAML_STREAM_END_EVENT)
            return 0;
    } while (r->event.type != YAML_DOCUMENT_START_EVENT);
    if (!next_event(r) || !(*ret = read_node(r, 0)) || !next_event(r))
        return -r->e->code;
    return 0;
}

static int reader_init(struct reader *r, struct arena *a, str text,
                       const struct json_limits *limits)
{
    if (text.n > UINT32_MAX / 2)
        return err_set(r->e, E2BIG, "YAML of %zu bytes is too large", text.n);
    if (!yaml_parser_initialize(&r->parser))
        return err_set(r->e, ENOMEM, "out of memory while reading YAML");
    yaml_parser_set_input_string(&r->parser, (const unsigned char *)(text.p ? text.p : ""), text.n);
    r->arena = a;
    r->limits = limits;
    r->depth_max = limits->depth ? limits->depth : JSON_DEPTH_MAX;
    return 0;
}

static bool looks_like_json(str text)
{
    str start = str_trim(text);
    return start.n && start.p[0] == '{';
}

static const struct json_limits no_limits;

int yaml_parse_limited(struct arena *a, str text, const struct json_limits *limits,
                       struct json **ret, err_t *e)
{
    err_t scratch;
    if (looks_like_json(text) && json_parse_limited(a, text, limits, ret, &scratch) == 0)
        return 0;
    struct reader r = { .e = e ? e : &scratch };
    int result = reader_init(&r, a, text, limits);
    if (result < 0)
        return result;
    struct json *tree = NULL, *another = NULL;
    result = read_document(&r, &tree);
    if (result == 0 && tree)
        result = read_document(&r, &another);
    if (result == 0 && another)
        result = err_set(r.e, EINVAL, "the YAML has more than one document, expected one");
    reader_done(&r);
    if (result == 0)
        *ret = tree ? tree : json_new_null(a);
    return result;
}

int yaml_parse(struct arena *a, str text, struct json **ret, err_t *e)
{
    return yaml_parse_limited(a, text, &no_limits, ret, e);
}

int yaml_parse_all(struct arena *a, str text, const struct json_limits *limits, struct json **ret,
                   err_t *e)
{
    err_t scratch;
    struct json *all = json_new_arr(a), *one = NULL;
    limits = limits ? limits : &no_limits;
    if (looks_like_json(text) && json_parse_limited(a, text, limits, &one, &scratch) == 0) {
        json_push(a, all, one);
        *ret = all;
        return 0;
    }
    struct reader r = { .e = e ? e : &scratch };
    int result = reader_init(&r, a, text, limits);
    if (result < 0)
        return result;
    while ((result = read_document(&r, &one)) == 0 && one)
        if (one->type != JSON_NULL)
            json_push(a, all, one);
    reader_done(&r);
    if (result == 0)
        *ret = all;
    return result;
}
