/* Content negotiation: the media type and the form of the answer.
 *
 * The Accept header is a list of media types, sorted by weight; the first that the server can serve wins. A type
 * may ask for a Table or for metadata only:
 *
 *     application/json;as=Table;g=meta.k8s.io;v=v1, application/json
 *
 * Answers are JSON or YAML. Clients that prefer protobuf name JSON after it; a client that accepts nothing else
 * gets 406. */
#include "call.h"

struct clause {
    str type; /* "application/json" */
    str as, group, version;
    double weight;
};

str call_header(const struct call *c, const char *name)
{
    str value = http_header_get(c->request->headers, str_c(name));
    return value.p ? value : S("");
}

/* One media type with its parameters. A weight that is not a number counts as 0, which excludes the type. */
static struct clause parse_clause(str text)
{
    struct clause clause = { .weight = 1 };
    str part;
    for (bool first = true; str_cut(&text, ';', &part); first = false) {
        part = str_trim(part);
        size_t eq = str_find_char(part, '=');
        if (first) {
            clause.type = part;
            continue;
        }
        str name = str_upto(part, eq), value = eq == SIZE_MAX ? S("") : str_from(part, eq + 1);
        if (str_eq(name, S("as")))
            clause.as = value;
        else if (str_eq(name, S("g")))
            clause.group = value;
        else if (str_eq(name, S("v")))
            clause.version = value;
        else if (str_eq(name, S("q")) && str_to_f64(value, &clause.weight) < 0)
            clause.weight = 0;
    }
    return clause;
}

/* Whether the type can be served; sets c->text. */
static bool take_text(struct call *c, str type)
{
    if (str_eq_nocase(type, S("application/yaml"))) {
        c->text = TEXT_YAML;
        return true;
    }
    c->text = TEXT_JSON;
    return str_eq_nocase(type, S("application/json")) || str_eq(type, S("*/*")) || !type.n;
}

/* Whether the form can be served for this verb; sets c->form. */
static bool take_form(struct call *c, const struct clause *clause)
{
    static const struct {
        str word;
        enum answer_form form;
    } forms[] = {
        { { "Table", 5 }, FORM_TABLE },
        { { "PartialObjectMetadata", 21 }, FORM_PARTIAL },
        { { "PartialObjectMetadataList", 25 }, FORM_PARTIAL_LIST },
    };
    c->form = FORM_OBJECT;
    if (!clause->as.n)
        return true;
    bool v1 = str_eq(clause->version, S("v1")), v1beta1 = str_eq(clause->version, S("v1beta1"));
    if (!str_eq(clause->group, S("meta.k8s.io")) || (!v1 && !v1beta1))
        return false;
    for (size_t i = 0; i < countof(forms); i++) {
        if (!str_eq(clause->as, forms[i].word))
            continue;
        bool collection = c->verb == VERB_LIST || c->verb == VERB_DELETECOLLECTION;
        if ((forms[i].form == FORM_PARTIAL_LIST) != collection && forms[i].form != FORM_TABLE)
            return false;
        c->form = forms[i].form;
        c->form_v1beta1 = v1beta1;
        return true;
    }
    return false;
}

/* A list as PartialObjectMetadata, the form of a single object: kube-apiserver answers 406 if it comes
 * first, instead of trying the next type. */
static bool is_misfit(const struct call *c, const struct clause *clause)
{
    return c->verb == VERB_LIST && str_eq(clause->as, S("PartialObjectMetadata")) &&
           str_eq(clause->group, S("meta.k8s.io"));
}

/* Checks ?includeObject= of a table. False: answered. */
static bool check_include(struct call *c)
{
    str include = call_query(c, "includeObject");
    if (c->form != FORM_TABLE || !include.n || str_eq(include, S("None")) ||
        str_eq(include, S("Metadata")) || str_eq(include, S("Object")))
        return true;
    c->form = FORM_OBJECT;
    call_bad_request(c, "unrecognized includeObject value: \"" STR_FMT "\"", STR_ARG(include));
    return false;
}

/* Sorts the types by weight, stable, and takes the first that fits. False: answered with 406 or 400. */
bool call_negotiate(struct call *c)
{
    str accept = call_header(c, "accept"), part;
    if (!str_trim(accept).n)
        return true;
    /* the highest weight first, equal ones in the order of the header */
    VEC(struct clause) clauses = { 0 };
    while (str_cut(&accept, ',', &part) && clauses.n < 64) {
        struct clause clause = parse_clause(part);
        size_t at = clauses.n;
        vec_push(&clauses, clause);
        for (; at > 0 && clauses.at[at - 1].weight < clause.weight; at--)
            clauses.at[at] = clauses.at[at - 1];
        clauses.at[at] = clause;
    }
    bool found = false, misfit = false;
    for (size_t i = 0; i < clauses.n && !found && !misfit; i++)
        if (clauses.at[i].weight > 0 && take_text(c, clauses.at[i].type)) {
            found = take_form(c, &clauses.at[i]);
            misfit = !found && is_misfit(c, &clauses.at[i]);
        }
    vec_done(&clauses);
    if (!found) {
        c->text = TEXT_JSON;
        c->form = FORM_OBJECT;
        call_status(c,
                    &(struct status){ .code = 406,
                                      .reason = "NotAcceptable",
                                      .message = S("only the following media types are accepted: "
                                                   "application/json, application/yaml") });
    }
    return found && check_include(c);
}

const char *call_aggregated_version(const struct call *c)
{
    str accept = call_header(c, "accept"), part;
    while (str_cut(&accept, ',', &part)) {
        struct clause clause = parse_clause(part);
        if (!str_eq_nocase(clause.type, S("application/json")))
            continue;
        if (!clause.as.n)
            return NULL;
        if (!str_eq(clause.as, S("APIGroupDiscoveryList")) ||
            !str_eq(clause.group, S("apidiscovery.k8s.io")))
            continue;
        if (str_eq(clause.version, S("v2")))
            return "v2";
        if (str_eq(clause.version, S("v2beta1")))
            return "v2beta1";
    }
    return NULL;
}

str call_content_type(const struct call *c)
{
    str value = call_header(c, "content-type"), type = value;
    str_cut(&value, ';', &type);
    type = str_trim(type);
    char *lower = arena_alloc(c->arena, type.n + 1);
    for (size_t i = 0; i < type.n; i++)
        lower[i] = (char)(type.p[i] >= 'A' && type.p[i] <= 'Z' ? type.p[i] + 32 : type.p[i]);
    return (str){ lower, type.n };
}
