/* Query parameters: the options of writes, lists and watches.
 *
 * A value that cannot be parsed is answered with 400, a combination that is not allowed with 422, in
 * kube-apiserver's words and order. Unknown parameters are ignored.
 *
 * The resourceVersion of a list means (call_list_options):
 *
 *     unset           the newest state
 *     "0"             the newest state, without a limit: kube-apiserver answers from its cache here
 *     a number        at least that version; exactly that version with a limit or resourceVersionMatch=Exact */
#include "call.h"

#include "../../base/utf8.h"
#include "../../net/http.h"

enum { MANAGER_MAX = 128 };

str call_query(const struct call *c, const char *name)
{
    str value;
    return uri_query_get(c->arena, c->request->query, str_c(name), &value) == 1
               ? utf8_clean(c->arena, value)
               : (str){ 0 };
}

/* Every value except "false" and "0" is true, as in kube-apiserver. */
bool call_query_true(const struct call *c, const char *name)
{
    str value = call_query(c, name);
    return value.p && !str_eq_nocase(value, S("false")) && !str_eq(value, S("0"));
}

static bool parse_query_int(struct call *c, const char *name, int64_t *ret)
{
    str value = call_query(c, name);
    if (!value.p || str_to_i64(value, ret) == 0)
        return true;
    call_bad_request(c, "strconv.ParseInt: parsing \"" STR_FMT "\": invalid syntax",
                     STR_ARG(value));
    return false;
}

static bool report_errors(struct call *c, const char *kind, const struct field_errors *errors)
{
    if (errors->n)
        call_invalid(c, str_c(kind), S("meta.k8s.io"), S(""), errors);
    return errors->n == 0;
}

/* The part of User-Agent before the slash: kubectl, kube-controller-manager, ... */
static str manager_of_agent(struct call *c)
{
    str agent = call_header(c, "user-agent"), name = agent;
    str_cut(&agent, '/', &name);
    return name.n ? utf8_clean(c->arena, str_upto(name, MANAGER_MAX)) : S("unknown");
}

static bool is_printable(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)
            return false;
    return true;
}

static void check_manager(struct call *c, struct field_errors *errors, str manager)
{
    struct field_path at = { .key = S("fieldManager") };
    if (manager.n > MANAGER_MAX)
        field_too_long(errors, &at, MANAGER_MAX);
    else if (!is_printable(manager))
        field_invalid(errors, &at, json_new_str(c->arena, manager),
                      "should only contain printable characters");
}

/* `kind` is the name of the options in messages: CreateOptions, UpdateOptions, PatchOptions. */
bool call_write_options(struct call *c, const char *kind, struct write_options *ret)
{
    struct write_options o = { .warn = true };
    struct field_errors errors = { .arena = c->arena };
    str dry_run = call_query(c, "dryRun"), validation = call_query(c, "fieldValidation");
    static const char *const all_or_nothing[] = { "All", NULL };
    static const char *const levels[] = { "", "Ignore", "Strict", "Warn", NULL };
    o.manager = call_query(c, "fieldManager");
    o.manager_given = o.manager.n > 0;
    if (!o.manager_given)
        o.manager = manager_of_agent(c);
    o.force = call_query_true(c, "force");
    if (str_eq(dry_run, S("All"))) {
        o.dry_run = true;
    } else if (dry_run.p) {
        struct json *values = json_new_arr(c->arena);
        json_push(c->arena, values, json_new_str(c->arena, dry_run));
        field_not_supported(&errors, &(struct field_path){ .key = S("dryRun") }, values,
                            all_or_nothing);
    }
    check_manager(c, &errors, o.manager);
    if (str_eq(validation, S("Strict")))
        o.strict = true, o.warn = false;
    else if (str_eq(validation, S("Ignore")))
        o.warn = false;
    else if (validation.n && !str_eq(validation, S("Warn")))
        field_not_supported(&errors, &(struct field_path){ .key = S("fieldValidation") },
                            json_new_str(c->arena, validation), levels);
    *ret = o;
    return report_errors(c, kind, &errors);
}

/* Whether metadata.namespace can be selected. Cluster-scoped kinds with their own list of selectable fields
 * leave it out. */
static bool has_namespace_field(const struct kind *k)
{
    return k->namespaced || (!k->custom && !k->n_selectable);
}

static bool parse_selectors(struct call *c, struct list_options *o)
{
    err_t e;
    str labels = call_query(c, "labelSelector"), fields = call_query(c, "fieldSelector");
    if (selector_parse_labels(c->arena, labels.p ? labels : S(""), &o->labels, &e) < 0 ||
        selector_parse_fields(c->arena, fields.p ? fields : S(""), &o->fields, &e) < 0) {
        call_bad_request(c, "%s", e.text);
        return false;
    }
    return true;
}

/* Refuses field selectors on paths that the kind does not support. False: answered. */
static bool check_fields(struct call *c, const struct list_options *o)
{
    for (size_t i = 0; i < o->fields.n; i++) {
        str path = o->fields.terms[i].path;
        if (str_eq(path, S("metadata.name")) ||
            (str_eq(path, S("metadata.namespace")) && has_namespace_field(c->kind)) ||
            kind_field_known(c->kind, path))
            continue;
        call_bad_request(c, "field label not supported: " STR_FMT, STR_ARG(path));
        return false;
    }
    return true;
}

void call_bad_version(struct call *c, str version)
{
    str message =
        arena_printf(c->arena,
                     "resourceVersion: Invalid value: \"" STR_FMT "\": it is not a number",
                     STR_ARG(version));
    call_status(c, &(struct status){ .code = 500, .message = message });
}

/* Watches and lists report a bad resourceVersion differently. False: answered. */
static bool parse_version(struct call *c, struct list_options *o)
{
    str text = call_query(c, "resourceVersion");
    if (!text.n)
        return true;
    if (str_to_i64(text, &o->rev) < 0 || o->rev < 0) {
        if (c->verb == VERB_WATCH) {
            call_bad_version(c, text);
            return false;
        }
        call_bad_request(c,
                         "invalid resource version: resourceVersion: Invalid value: \"" STR_FMT
                         "\": strconv.ParseUint: parsing \"" STR_FMT "\": invalid syntax",
                         STR_ARG(text), STR_ARG(text));
        return false;
    }
    return true;
}

/* The allowed combinations of resourceVersionMatch and other parameters of a list. */
static void check_match_of_list(struct call *c, struct field_errors *errors, str match,
                                bool rev_given, bool initial_given)
{
    struct field_path at = { .key = S("resourceVersionMatch") };
    static const char *const words[] = { "Exact", "NotOlderThan", "", NULL };
    if (match.n) {
        if (!rev_given)
            field_forbidden(errors, &at,
                            "resourceVersionMatch is forbidden unless resourceVersion is provided");
        if (call_query(c, "continue").n)
            field_forbidden(errors, &at,
                            "resourceVersionMatch is forbidden when continue is provided");
        if (!str_eq(match, S("Exact")) && !str_eq(match, S("NotOlderThan")))
            field_not_supported(errors, &at, json_new_str(c->arena, match), words);
        if (str_eq(match, S("Exact")) && str_eq(call_query(c, "resourceVersion"), S("0")))
            field_forbidden(
                errors, &at,
                "resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"");
    }
    if (initial_given)
        field_forbidden(errors, &(struct field_path){ .key = S("sendInitialEvents") },
                        "sendInitialEvents is forbidden for list");
}

/* The same for a watch. */
static void check_match_of_watch(struct call *c, struct field_errors *errors, str match,
                                 bool initial_given)
{
    struct field_path at = { .key = S("resourceVersionMatch") };
    static const char *const words[] = { "NotOlderThan", NULL };
    str from = call_query(c, "resourceVersion");
    if (initial_given && !str_eq(match, S("NotOlderThan")))
        field_forbidden(errors, &at,
                        "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan");
    if (!initial_given && match.n)
        field_forbidden(
            errors, &at,
            "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided");
    if (match.n && !str_eq(match, S("NotOlderThan")))
        field_not_supported(errors, &at, json_new_str(c->arena, match), words);
    if (call_query(c, "continue").n && (initial_given || !from.n || str_eq(from, S("0"))))
        field_forbidden(errors, &at, "resourceVersionMatch is forbidden when continue is provided");
}

bool call_list_options(struct call *c, struct list_options *ret)
{
    struct list_options o = { 0 };
    bool initial = call_query(c, "sendInitialEvents").p;
    if (!parse_query_int(c, "limit", &o.limit) ||
        !parse_query_int(c, "timeoutSeconds", &o.timeout_s))
        return false;
    struct field_errors errors = { .arena = c->arena };
    str match = call_query(c, "resourceVersionMatch");
    bool rev_given = call_query(c, "resourceVersion").n > 0;
    if (c->verb == VERB_WATCH)
        check_match_of_watch(c, &errors, match, initial);
    else
        check_match_of_list(c, &errors, match, rev_given, initial);
    if (!parse_selectors(c, &o) || !report_errors(c, "ListOptions", &errors) ||
        !check_fields(c, &o) || !parse_version(c, &o))
        return false;
    o.limit = MAX(o.limit, 0);
    if (str_eq(call_query(c, "resourceVersion"), S("0")))
        o.limit = 0; /* kube-apiserver's cache does not page */
    o.bookmarks = call_query_true(c, "allowWatchBookmarks");
    /* a watch without a version that accepts bookmarks gets one at the end of its initial state */
    o.initial_events =
        initial ? call_query_true(c, "sendInitialEvents") : o.bookmarks && o.rev == 0;
    o.continue_token = call_query(c, "continue");
    o.match = str_eq(match, S("Exact")) ? MATCH_EXACT : match.n ? MATCH_NOT_OLDER : MATCH_ANY;
    if (o.match == MATCH_ANY && o.rev > 0)
        o.match = o.limit > 0 ? MATCH_EXACT : MATCH_NOT_OLDER;
    *ret = o;
    return true;
}
