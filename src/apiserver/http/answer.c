/* Successful answers: text, trees, and objects in the form that the client asked for (JSON, YAML, Table, metadata only),
 * and the Warning headers beside them.
 *
 * An answer is complete in memory before its first byte is sent, so a failure on the way can still become a Status.
 * Whatever a client can make long, such as names in warnings, is limited here. */
#include "call.h"

#include "../../base/utf8.h"
#include "../../json/yaml.h"
#include "read.h"
#include "server.h"

void call_add_header(struct call *c, const char *name, str value)
{
    struct http_header h = { str_c(name), arena_str(c->arena, value) };
    vec_push(&c->answer.headers, h);
}

enum {
    WARNINGS_MAX = 64,        /* headers per answer */
    WARNING_RUNES_MAX = 4096, /* of all texts; if they have more, each is cut... */
    WARNING_RUNES_CUT = 256,  /* ...to this, as kube-apiserver does */
};

struct warning { /* in the arena of the call */
    str text;
    struct warning *next;
};

static size_t count_runes(str text)
{
    size_t n = 0;
    for (; text.n; n++)
        (void)utf8_next(&text);
    return n;
}

static str first_runes(str text, size_t n)
{
    str rest = text;
    while (n-- && rest.n)
        (void)utf8_next(&rest);
    return str_upto(text, text.n - rest.n);
}

/* Adds a Warning header (RFC 7234: code, agent, quoted text). */
static void put_warning(struct call *c, str text)
{
    auto_buf struct buf out = { 0 };
    if (c->cuts_warnings)
        text = first_runes(text, WARNING_RUNES_CUT);
    if (c->warning_runes >= WARNING_RUNES_MAX || c->answer.headers.n >= WARNINGS_MAX)
        return;
    c->warning_runes += count_runes(text);
    buf_put(&out, S("299 - \""));
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            buf_putc(&out, '\\');
        buf_putc(&out, (unsigned char)text.p[i] < 0x20 ? ' ' : text.p[i]);
    }
    buf_putc(&out, '"');
    call_add_header(c, "Warning", buf_str(&out));
}

static void remove_warnings(struct call *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < c->answer.headers.n; i++)
        if (!str_eq(c->answer.headers.at[i].name, S("Warning")))
            c->answer.headers.at[kept++] = c->answer.headers.at[i];
    c->answer.headers.n = kept;
    c->warning_runes = 0;
}

/* Clients show warnings to the user. Each text is sent once. Names of fields can have any length, and clients refuse long
 * heads (Python's a line of 64 KiB), so both the number and the length are limited. */
void call_warn(struct call *c, str text)
{
    struct warning **end = &c->warnings;
    if (c->cuts_warnings && c->warning_runes >= WARNING_RUNES_MAX)
        return;
    for (; *end; end = &(*end)->next)
        if (str_eq((*end)->text, text))
            return;
    *end = arena_new(c->arena, struct warning);
    (*end)->text = arena_str(c->arena, text);
    c->n_warnings++;
    if (c->cuts_warnings || c->warning_runes + count_runes(text) <= WARNING_RUNES_MAX) {
        put_warning(c, text);
        return;
    }
    c->cuts_warnings = true;
    remove_warnings(c);
    for (const struct warning *w = c->warnings; w; w = w->next)
        put_warning(c, w->text);
}

void call_enter_scratch(struct call *c, struct call_scratch *s)
{
    *s = (struct call_scratch){ .outer = c->arena,
                                .headers = c->answer.headers.n,
                                .warnings = c->n_warnings };
    c->arena = &s->arena;
}

/* Copies all headers and warnings, because warnings that become too long replace earlier ones. Few calls have any. */
static void keep_answer(struct call *c)
{
    for (size_t i = 0; i < c->answer.headers.n; i++) {
        struct http_header *h = &c->answer.headers.at[i];
        h->value = arena_str(c->arena, h->value);
    }
    for (struct warning **at = &c->warnings; *at; at = &(*at)->next) {
        struct warning *copy = arena_new(c->arena, struct warning);
        *copy = (struct warning){ arena_str(c->arena, (*at)->text), (*at)->next };
        *at = copy;
    }
}

void call_leave_scratch(struct call *c, struct call_scratch *s)
{
    c->arena = s->outer;
    c->name = arena_str(c->arena, c->name); /* a verb may have set it */
    if (c->answer.status || c->answer.headers.n != s->headers || c->n_warnings != s->warnings)
        keep_answer(c);
    arena_done(&s->arena);
}

void call_discard_answer(struct call *c)
{
    buf_done(&c->answer.body);
    vec_done(&c->answer.headers);
    c->answer = (struct answer){ 0 };
    c->warnings = NULL;
    c->n_warnings = c->warning_runes = 0;
    c->cuts_warnings = false;
}

void call_text(struct call *c, int status, const char *content_type, str body)
{
    c->answer.status = status;
    c->answer.content_type = content_type;
    buf_clear(&c->answer.body);
    buf_put(&c->answer.body, body);
}

/* kube-apiserver writes YAML with sorted keys. */
static void write_yaml(struct call *c, const struct json *body)
{
    auto_buf struct buf text = { 0 };
    struct json *sorted = NULL;
    json_write_canonical(&text, body);
    bool read = json_parse(c->arena, buf_str(&text), &sorted, NULL) == 0;
    yaml_write(&c->answer.body, read ? sorted : body);
}

void call_json(struct call *c, int status, const struct json *body)
{
    c->answer.status = status;
    buf_clear(&c->answer.body);
    if (c->text == TEXT_YAML) {
        c->answer.content_type = "application/yaml";
        write_yaml(c, body);
        return;
    }
    c->answer.content_type = "application/json";
    if (c->pretty)
        json_write_pretty(&c->answer.body, body);
    else
        json_write(&c->answer.body, body);
}

str answer_meta_version(const struct call *c)
{
    return c->form_v1beta1 ? S("meta.k8s.io/v1beta1") : S("meta.k8s.io/v1");
}

struct table_options answer_table_options(const struct call *c)
{
    str include = call_query(c, "includeObject");
    return (struct table_options){ .include = str_eq(include, S("None"))     ? TABLE_NONE
                                              : str_eq(include, S("Object")) ? TABLE_OBJECT
                                                                             : TABLE_METADATA,
                                   .now_ns = server_now_ns(c->server),
                                   .api_version = answer_meta_version(c) };
}

/* `no_columns`: leave out the column definitions of a table, as in all events of a watch but the first. */
struct json *answer_shape_object(struct call *c, const struct kind *k, struct json *object,
                                 bool no_columns)
{
    if (c->form == FORM_PARTIAL)
        return table_partial(c->arena, object, answer_meta_version(c));
    if (c->form != FORM_TABLE)
        return object;
    struct table_options o = answer_table_options(c);
    o.no_columns = no_columns;
    struct json *meta = json_new_obj(c->arena);
    json_set_str(c->arena, meta, "resourceVersion",
                 json_text(json_at(object, "metadata", "resourceVersion", NULL)));
    const struct json *items[] = { object };
    return table_make(c->arena, k, items, 1, meta, o);
}

void call_object(struct call *c, int status, const struct kind *k, struct json *object)
{
    call_json(c, status, answer_shape_object(c, k, object, false));
}
