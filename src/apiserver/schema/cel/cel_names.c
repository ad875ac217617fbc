/* Named formats (format.dns1123Label() and the like): validate() returns an optional list of what is wrong. And the
 * authorizer of policies: each step of a check is a new value, and check() asks the server. */
#include "../format.h"
#include "cel_node.h"

static const struct name_format {
    const char *name;
    const char *(*check)(str text);
    const char *schema_format, *message; /* instead of `check` */
    bool prefix;
    uint32_t regex_size; /* for the cost */
} formats[] = {
    { "dns1123Label", format_dns_label, .regex_size = 30 },
    { "dns1123Subdomain", format_dns_subdomain, .regex_size = 60 },
    { "dns1035Label", format_dns_label_1035, .regex_size = 30 },
    { "qualifiedName", format_qualified_name, .regex_size = 60 },
    { "dns1123LabelPrefix", format_dns_label, .prefix = true, .regex_size = 30 },
    { "dns1123SubdomainPrefix", format_dns_subdomain, .prefix = true, .regex_size = 60 },
    { "dns1035LabelPrefix", format_dns_label_1035, .prefix = true, .regex_size = 30 },
    { "labelValue", format_label_value, .regex_size = 40 },
    { "uri", .regex_size = 1000 },
    { "uuid", .schema_format = "uuid", .message = "does not match the UUID format",
      .regex_size = 80 },
    { "byte", .schema_format = "byte", .message = "invalid base64", .regex_size = 80 },
    { "date", .schema_format = "date", .message = "invalid date", .regex_size = 100 },
    { "datetime", .schema_format = "date-time", .message = "invalid datetime", .regex_size = 100 },
};

uint32_t cel_format_regex_size(struct cel_value format)
{
    return formats[format.integer].regex_size;
}

/* Index of a format; countof(formats): there is none. */
static size_t find_format(str name)
{
    size_t i = 0;
    while (i < countof(formats) && !str_eqc(name, formats[i].name))
        i++;
    return i;
}

static struct cel_value of_format(size_t i)
{
    return (struct cel_value){ .kind = CEL_FORMAT, .integer = (int64_t)i };
}

/* A prefix of a name may end in a hyphen. */
static str mask_hyphen(struct arena *a, str text)
{
    if (text.n < 2 || text.p[text.n - 1] != '-')
        return text;
    return arena_join(a, (str[]){ str_upto(text, text.n - 2), S("a") }, 2);
}

/* An empty optional: the text is valid; otherwise a list with one reason. "uri" is whatever url() accepts. */
static struct cel_value validate(struct cel_machine *m, const struct name_format *f, str text)
{
    static const struct cel_overload is_url = { "url", "U:s", CEL_F_URL };
    struct cel_value problem = { .kind = CEL_NULL };
    if (f->check) {
        const char *why = f->check(f->prefix ? mask_hyphen(m->arena, text) : text);
        if (why)
            problem = cel_of_text(str_c(why));
    } else if (f->schema_format) {
        if (!format_matches(str_c(f->schema_format), text))
            problem = cel_of_text(str_c(f->message));
    } else {
        struct cel_value arg = cel_of_text(text);
        struct cel_value url = cel_call_url(m, CEL_F_URL, &is_url, &arg);
        size_t intro = strlen("URL parse error during conversion from string: ");
        if (cel_is_error(url))
            problem = cel_of_text(str_from(cel_text(url), intro));
    }
    if (problem.kind == CEL_NULL)
        return (struct cel_value){ .kind = CEL_OPTIONAL };
    return cel_optional_of(m->arena, cel_append(m->arena, cel_new_list(m->arena, 1), problem));
}

struct cel_value cel_call_names(struct cel_machine *m, enum cel_fn fn, const struct cel_overload *o,
                                const struct cel_value *a)
{
    if (fn == CEL_F_VALIDATE)
        return validate(m, &formats[a[0].integer], cel_text(a[1]));
    size_t i = find_format(fn == CEL_F_NAMED ? cel_text(a[0]) : str_c(o->name + strlen("format.")));
    if (fn == CEL_F_NAME_FORMAT)
        return of_format(i);
    return i == countof(formats) ? (struct cel_value){ .kind = CEL_OPTIONAL }
                                 : cel_optional_of(m->arena, of_format(i));
}

/* ---- the authorizer: a JSON object collects the attributes of the check */

/* Each step copies what is collected so far, since an authorizer may be used for several checks. */
static struct cel_value with_attribute(struct cel_machine *m, struct cel_value from,
                                       const char *name, const struct cel_value *a, uint32_t n,
                                       enum cel_kind kind)
{
    struct json *attributes = from.other ? json_copy(m->arena, from.json) : json_new_obj(m->arena);
    if (n == 3) { /* serviceAccount(namespace, name) */
        json_set_str(m->arena, attributes, "accountNamespace", cel_text(a[1]));
        json_set_str(m->arena, attributes, "accountName", cel_text(a[2]));
    } else {
        json_set_str(m->arena, attributes, name, cel_text(a[1]));
    }
    return (struct cel_value){ .kind = (uint8_t)kind, .json = attributes };
}

struct cel_value cel_call_authorizer(struct cel_machine *m, enum cel_fn fn,
                                     const struct cel_overload *o, const struct cel_value *a,
                                     uint32_t n)
{
    if (fn == CEL_F_AUTHZ) {
        char result = o->signature[0];
        return with_attribute(m, a[0], o->name, a, n,
                              result == 'X'   ? CEL_AUTHORIZER
                              : result == 'Y' ? CEL_PATH_CHECK
                              : result == 'Z' ? CEL_GROUP_CHECK
                                              : CEL_RESOURCE_CHECK);
    }
    if (fn == CEL_F_AUTHZ_CHECK) {
        if (!m->host || !m->host->check)
            return cel_fail(m->arena, "no authorizer");
        return m->host->check(m->host, m->arena, &a[0], cel_text(a[1]));
    }
    /* a decision: allowed in `is_json`, its reason as text */
    return !strcmp(o->name, "allowed")   ? cel_of_bool(a[0].is_json)
           : !strcmp(o->name, "errored") ? cel_of_bool(false)
           : !strcmp(o->name, "error")   ? cel_of_text(S(""))
                                         : cel_of_text(cel_text(a[0]));
}
