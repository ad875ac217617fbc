/* Successful answers: text, trees, and objects in the form that the client asked for. */
#include "call.h"

#include "../../json/yaml.h"
#include "read.h"
#include "server.h"

void call_add_header(struct call *c, const char *name, str value)
{
    struct http_header h = { str_c(name), arena_str(c->arena, value) };
    vec_push(&c->answer.headers, h);
}

enum { WARNINGS_MAX = 64 }; /* headers per answer */

/* A Warning header (RFC 7234: code, agent, quoted text), which clients show to the user. Each text is sent
 * once; at most WARNINGS_MAX headers, because clients refuse longer heads. */
void call_warn(struct call *c, str text)
{
    auto_buf struct buf out = { 0 };
    buf_put(&out, S("299 - \""));
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            buf_putc(&out, '\\');
        buf_putc(&out, (unsigned char)text.p[i] < 0x20 ? ' ' : text.p[i]);
    }
    buf_putc(&out, '"');
    if (c->answer.headers.n >= WARNINGS_MAX)
        return;
    for (size_t i = 0; i < c->answer.headers.n; i++)
        if (str_eq(c->answer.headers.at[i].value, buf_str(&out)))
            return; /* sent already */
    call_add_header(c, "Warning", buf_str(&out));
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

str call_meta_version(const struct call *c)
{
    return c->form_v1beta1 ? S("meta.k8s.io/v1beta1") : S("meta.k8s.io/v1");
}

struct table_options call_table_options(const struct call *c)
{
    str include = call_query(c, "includeObject");
    return (struct table_options){ .include = str_eq(include, S("None"))     ? TABLE_NONE
                                              : str_eq(include, S("Object")) ? TABLE_OBJECT
                                                                             : TABLE_METADATA,
                                   .now_ns = server_now_ns(c->server),
                                   .api_version = call_meta_version(c) };
}

/* `no_columns`: leave out the column definitions of a table, as in all events of a watch but the first. */
struct json *call_shape_object(struct call *c, const struct kind *k, struct json *object,
                               bool no_columns)
{
    if (c->form == FORM_PARTIAL)
        return table_partial(c->arena, object, call_meta_version(c));
    if (c->form != FORM_TABLE)
        return object;
    struct table_options o = call_table_options(c);
    o.no_columns = no_columns;
    struct json *meta = json_new_obj(c->arena);
    json_set_str(c->arena, meta, "resourceVersion",
                 json_text(json_at(object, "metadata", "resourceVersion", NULL)));
    const struct json *items[] = { object };
    return table_make(c->arena, k, items, 1, meta, o);
}

void call_object(struct call *c, int status, const struct kind *k, struct json *object)
{
    call_json(c, status, call_shape_object(c, k, object, false));
}
