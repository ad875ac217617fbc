/* Families aim-inspection, aim-registry and aim-keychain: references, credentials, the dialogue with a registry, and what
 * the labels of an image contain. The registry of a case is a table of answers; REGISTRY in it is replaced by its host. */
#include "golden.h"

#include "registry/registry.h"
#include "runtimeconfig/inspection_core.h"

#define HOST "127.0.0.1:5000"

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

/* ---- aim-inspection */

static void run_labels(struct golden *g, const struct json *c)
{
    struct json *got = NULL;
    const struct json *want = json_get(c, "expect");
    int r = aim_inspection_metadata(g->arena, json_get(c, "labels"), &got, NULL);
    if (golden_ok(g, (r < 0) == (json_get(want, "error") != NULL), "fails: %d", r) && r == 0)
        golden_eq_json(g, "metadata", got, json_get(want, "metadata"));
}

static void run_reference(struct golden *g, const struct json *c)
{
    struct registry_reference r;
    const struct json *want = json_get(c, "expect");
    int result = registry_reference_parse(g->arena, text_of(c, "image"), &r, NULL);
    if (!golden_ok(g, (result < 0) == (json_get(want, "error") != NULL), "fails: %d", result) ||
        result < 0)
        return;
    golden_eq_str(g, "registry", r.registry, json_get(want, "registry"));
    golden_eq_str(g, "repository", r.repository, json_get(want, "repository"));
    golden_eq_str(g, "identifier", registry_reference_identifier(&r), json_get(want, "identifier"));
    golden_eq_str(g, "scheme", registry_reference_is_local(&r) ? S("http") : S("https"),
                  json_get(want, "scheme"));
}

static void check_template(struct golden *g, const struct json *got, const struct json *want)
{
    const struct json *meta = json_get(got, "metadata");
    golden_eq_str(g, "name", text_of(meta, "name"), json_get(want, "name"));
    golden_ok(g, json_eq(json_get(meta, "namespace"), json_get(want, "namespace")),
              "namespace differs");
    golden_eq_json(g, "labels", json_get(meta, "labels"), json_get(want, "labels"));
    golden_eq_json(g, "spec", json_get(got, "spec"), json_get(want, "spec"));
}

static void run_templates(struct golden *g, const struct json *c)
{
    const struct json *model = json_get(c, "model"), *want = json_get(c, "expect");
    const struct json *list = json_get(want, "templates"),
                      *flag = json_get(want, "expectsTemplates");
    enum aim_inspection_expects expects = aim_inspection_expects(model);
    const struct json *got = aim_inspection_templates(g->arena, "aim.eai.amd.com", model);
    golden_ok(g,
              json_is(flag, JSON_BOOL)
                  ? expects == (flag->boolean ? INSPECTION_EXPECTS_SOME : INSPECTION_EXPECTS_NONE)
                  : expects == INSPECTION_UNKNOWN,
              "expects %d", (int)expects);
    if (golden_ok(g, json_len(got) == json_len(list), "%zu templates", json_len(got)))
        for (size_t i = 0; i < json_len(list); i++)
            check_template(g, json_item(got, i), json_item(list, i));
}

static void run_aggregate(struct golden *g, const struct json *c)
{
    const struct json *words = json_get(c, "statuses"), *flag = json_get(c, "expects");
    const struct json *want = json_get(c, "expect");
    str *at = arena_array(g->arena, json_len(words) + 1, sizeof(*at));
    for (size_t i = 0; i < json_len(words); i++)
        at[i] = json_text(json_item(words, i));
    enum aim_inspection_expects expects = !json_is(flag, JSON_BOOL) ? INSPECTION_UNKNOWN
                                          : flag->boolean           ? INSPECTION_EXPECTS_SOME
                                                                    : INSPECTION_EXPECTS_NONE;
    struct aim_engine_component got = aim_inspection_aggregate(at, json_len(words), expects);
    golden_eq_str(g, "state", str_c(aim_engine_state_name(got.state)), json_get(want, "state"));
    golden_eq_str(g, "reason", got.reason, json_get(want, "reason"));
    golden_eq_str(g, "message", got.message, json_get(want, "message"));
}

static void run_inspection(struct golden *g, const struct json *c)
{
    str fn = text_of(c, "fn");
    if (str_eqc(fn, "labels"))
        run_labels(g, c);
    else if (str_eqc(fn, "reference"))
        run_reference(g, c);
    else if (str_eqc(fn, "templates"))
        run_templates(g, c);
    else if (str_eqc(fn, "aggregate"))
        run_aggregate(g, c);
    else if (golden_ok(g, str_eqc(fn, "registryError"), "unknown function " STR_FMT, STR_ARG(fn)))
        golden_eq_str(g, "class",
                      str_c(aim_inspection_error_class((int)json_int(json_get(c, "status"), 0),
                                                       text_of(c, "message"))),
                      json_at(c, "expect", "class", NULL));
}

/* ---- aim-keychain */

static void run_keychain(struct golden *g, const struct json *c)
{
    const struct json *given = json_get(c, "secrets"), *want = json_get(c, "expect");
    struct registry_secret *at = arena_array(g->arena, json_len(given) + 1, sizeof(*at));
    struct registry_reference image;
    struct registry_credentials got;
    for (size_t i = 0; i < json_len(given); i++)
        at[i] = (struct registry_secret){ text_of(json_item(given, i), "type"),
                                          text_of(json_item(given, i), "data") };
    if (!golden_ok(g, registry_reference_parse(g->arena, text_of(c, "image"), &image, NULL) == 0,
                   "the image cannot be read"))
        return;
    int r = registry_keychain_find(g->arena, at, json_len(given), &image, false, &got, NULL);
    if (!golden_ok(g, (r < 0) == (json_get(want, "error") != NULL), "fails: %d", r) || r < 0)
        return;
    if (!golden_ok(g, got.found != (json_get(want, "anonymous") != NULL), "found: %d", got.found) ||
        !got.found)
        return;
    golden_eq_str(g, "username", got.username, json_get(want, "username"));
    golden_eq_str(g, "password", got.password, json_get(want, "password"));
    if (got.identity_token.n || json_get(want, "identityToken"))
        golden_eq_str(g, "identityToken", got.identity_token, json_get(want, "identityToken"));
}

/* ---- aim-registry */

static str replace_host(struct golden *g, str text)
{
    auto_buf struct buf out = { 0 };
    for (size_t at; (at = str_find(text, S("REGISTRY"))) != SIZE_MAX;) {
        buf_put(&out, str_upto(text, at));
        buf_put(&out, S(HOST));
        text = str_from(text, at + strlen("REGISTRY"));
    }
    buf_put(&out, text);
    return arena_str(g->arena, buf_str(&out));
}

static str header_of(struct golden *g, const struct json *answer, const char *name)
{
    json_each(m, json_get(answer, "headers"))
        if (str_eq_nocase(m->key, str_c(name)))
            return replace_host(g, json_text(m->value));
    return S("");
}

/* The answers of a path come in turn; the last one repeats. `served` counts the requests of each path. */
static struct registry_answer answer_of(struct golden *g, const struct json *c, struct json *served,
                                        str path)
{
    str key = arena_printf(g->arena, "GET " STR_FMT, STR_ARG(path));
    const struct json *list = json_get_str(json_get(c, "routes"), key);
    int64_t turn = json_int(json_get_str(served, key), 0);
    json_set(g->arena, served, key, json_new_int(g->arena, turn + 1));
    if (!json_len(list))
        return (struct registry_answer){ .status = 404 };
    size_t at = MIN((size_t)turn, json_len(list) - 1);
    const struct json *a = json_item(list, at);
    return (struct registry_answer){
        .status = (int)json_int(json_get(a, "status"), 0),
        .body = replace_host(g, text_of(a, "body")),
        .content_type = header_of(g, a, "Content-Type"),
        .location = header_of(g, a, "Location"),
        .authenticate = header_of(g, a, "WWW-Authenticate"),
        .retry_after = header_of(g, a, "Retry-After"),
    };
}

/* "Basic(user:password)" and "Bearer token", as the recordings write it. */
static str shown_authorization(struct golden *g, const struct json *c, str header)
{
    if (!str_starts(header, S("Basic ")))
        return header;
    return arena_printf(g->arena, "Basic(" STR_FMT ":" STR_FMT ")", STR_ARG(text_of(c, "username")),
                        STR_ARG(text_of(c, "password")));
}

static void check_request(struct golden *g, const struct json *c, const struct registry_request *r,
                          str path, str query, const struct json *want)
{
    golden_eq_str(g, "request", arena_printf(g->arena, "GET " STR_FMT, STR_ARG(path)),
                  json_get(want, "request"));
    golden_ok(g, str_eq(query, text_of(want, "query")), "query " STR_FMT, STR_ARG(query));
    golden_ok(g, str_eq(r->accept, text_of(want, "accept")), "accept " STR_FMT, STR_ARG(r->accept));
    golden_ok(g,
              str_eq(shown_authorization(g, c, r->authorization), text_of(want, "authorization")),
              "authorization differs");
}

static void check_result(struct golden *g, const struct registry_result *got,
                         const struct json *want)
{
    static const char *const stages[] = { "manifest", "image", "config" };
    const struct json *error = json_get(want, "error"), *status = json_get(want, "httpStatus");
    if (!error) {
        const struct json *labels = json_get(want, "labels");
        golden_ok(g, got->cause == REGISTRY_OK, "fails: " STR_FMT, STR_ARG(got->message));
        golden_ok(g, json_is(labels, JSON_OBJ) ? json_eq(got->labels, labels) : !got->labels,
                  "labels differ");
        return;
    }
    if (!golden_ok(g, got->cause != REGISTRY_OK, "does not fail"))
        return;
    golden_eq_str(g, "error", str_c(stages[got->stage]), error);
    golden_ok(g, got->status == (int)json_int(status, 0), "status %d", got->status);
    if (status)
        golden_ok(g,
                  json_is(json_get(want, "codes"), JSON_ARR)
                      ? json_eq(got->codes, json_get(want, "codes"))
                      : !got->codes,
                  "codes differ");
}

static void run_registry(struct golden *g, const struct json *c)
{
    const struct json *want = json_get(c, "expect"), *requests = json_get(want, "requests");
    struct json *served = json_new_obj(g->arena);
    struct registry_dialogue d;
    struct registry_request request;
    struct registry_question q = { .plain_http = true };
    size_t n = 0;
    q.credentials.username = text_of(c, "username");
    q.credentials.password = text_of(c, "password");
    q.credentials.found = q.credentials.username.n > 0;
    if (registry_reference_parse(g->arena, replace_host(g, text_of(c, "image")), &q.image, NULL)) {
        golden_eq_str(g, "error", S("reference"), json_get(want, "error"));
        return;
    }
    registry_dialogue_start(&d, g->arena, &q);
    for (; registry_dialogue_next(&d, &request); n++) {
        str path = str_from(request.url, strlen("http://" HOST)), query = S("");
        size_t mark = str_find_char(path, '?');
        if (mark != SIZE_MAX) {
            query = str_from(path, mark + 1);
            path = str_upto(path, mark);
        }
        check_request(g, c, &request, path, query, json_item(requests, n));
        struct registry_answer answer = answer_of(g, c, served, path);
        registry_dialogue_answer(&d, &answer);
    }
    bool limited = d.redirects == REGISTRY_REDIRECTS; /* the original follows ten */
    golden_ok(g, n == json_len(requests) || (limited && n < json_len(requests)), "%zu requests", n);
    check_result(g, &d.result, want);
}

const struct golden_family golden_aim_inspection[] = {
    { "aim-inspection", run_inspection },
    { "aim-keychain", run_keychain },
    { "aim-registry", run_registry },
    { 0 },
};
