/* Dialogue with a registry: see dialogue_core.h.
 *
 *     PING      GET /v2/                      200: no authentication; 401: challenge, or none
 *     TOKEN     GET realm?scope=&service=     with the credentials, if any
 *     MANIFEST  GET /v2/R/manifests/TAG       a manifest, or an index of platforms
 *     CHILD     GET /v2/R/manifests/sha256:   the manifest of our platform
 *     CONFIG    GET /v2/R/blobs/sha256:       the configuration, which has the labels
 *     LIST      GET /v2/R/tags/list or /v2/_catalog instead of the last three, page by page
 *
 * Each step may be redirected (REGISTRY_REDIRECTS times, never from HTTPS to HTTP; authorization stays with the host that
 * it was meant for) and repeated (REGISTRY_TRIES times if the server or the network failed). A 401 on the manifest with
 * a new challenge gets one more token, because some registries ask for scopes only then. What was named by a digest is
 * verified against it: a registry, or who answers in its place, cannot choose the labels. */
#include "dialogue_core.h"

#include "../base/base64.h"
#include "../base/sha256.h"

#define TYPE_INDEX "application/vnd.oci.image.index.v1+json"
#define TYPE_LIST "application/vnd.docker.distribution.manifest.list.v2+json"
#define TYPE_MANIFEST "application/vnd.oci.image.manifest.v1+json"
#define TYPE_SCHEMA2 "application/vnd.docker.distribution.manifest.v2+json"
#define TYPE_SCHEMA1 "application/vnd.docker.distribution.manifest.v1+json"
#define TYPE_SCHEMA1_SIGNED "application/vnd.docker.distribution.manifest.v1+prettyjws"

const char *registry_cause_reason(enum registry_cause cause)
{
    static const char *const reasons[REGISTRY_CAUSE_N] = {
        "MetadataExtracted", "RegistryUnreachable", "ImagePullAuthFailure",
        "ImageNotFound",     "RateLimited",         "MetadataExtractionFailed"
    };
    return reasons[cause];
}

/* ---- ends */

/* Where a failure is reported: a failed token belongs to the step that needed it. */
static enum registry_stage stage_of(const struct registry_dialogue *d)
{
    enum registry_step step = d->step == REGISTRY_TOKEN ? d->after_token : d->step;
    return step == REGISTRY_CONFIG  ? REGISTRY_AT_CONFIG
           : step == REGISTRY_CHILD ? REGISTRY_AT_IMAGE
                                    : REGISTRY_AT_MANIFEST;
}

static void end_with_failure(struct registry_dialogue *d, enum registry_cause cause,
                             enum registry_stage stage, str message)
{
    d->result.done = true;
    d->result.cause = cause;
    d->result.stage = stage;
    d->result.message = message;
}

/* The codes in {"errors": [{"code": ...}]}; NULL: the body has none. */
static const struct json *codes_of(struct arena *a, str body)
{
    struct json *tree = NULL, *codes = json_new_arr(a);
    const struct json *errors;
    if (json_parse(a, body, &tree, NULL))
        return NULL;
    errors = json_get(tree, "errors");
    for (size_t i = 0; i < json_len(errors); i++) {
        str code = json_text(json_get(json_item(errors, i), "code"));
        if (code.n)
            json_push(a, codes, json_new_str(a, code));
    }
    return codes->n ? codes : NULL;
}

/* The status decides the cause, so that a controller knows whether to retry: DENIED and NOT_FOUND are for a
 * person to fix. */
static void fail_with_status(struct registry_dialogue *d, const struct registry_answer *answer)
{
    int status = answer->status;
    enum registry_cause cause = status == 401 || status == 403   ? REGISTRY_DENIED
                                : status == 404                  ? REGISTRY_NOT_FOUND
                                : status == 429                  ? REGISTRY_LIMITED
                                : status >= 500 || status == 408 ? REGISTRY_UNREACHABLE
                                                                 : REGISTRY_MALFORMED;
    static const char *const what[] = { "registry", "token server",        "manifest",
                                        "manifest", "image configuration", "list" };
    end_with_failure(d, cause, stage_of(d),
                     arena_printf(d->a, STR_FMT "/" STR_FMT ": the %s answered HTTP status %d",
                                  STR_ARG(d->q.image.registry), STR_ARG(d->q.image.repository),
                                  what[d->step], status));
    d->result.status = status;
    d->result.codes = codes_of(d->a, answer->body);
    d->result.retry_after = arena_str(d->a, answer->retry_after);
}

/* ---- requests */

/* Moves to a step; its URL is on the registry itself, except for the token. */
static void go_to(struct registry_dialogue *d, enum registry_step step, str path)
{
    d->step = step;
    d->redirects = d->tries = 0;
    d->target = REGISTRY_HOST;
    d->same_host = true;
    d->at = (struct registry_url){ !d->q.plain_http, d->q.image.registry, path };
}

static str manifest_path(struct registry_dialogue *d)
{
    str id = registry_reference_identifier(&d->q.image);
    return arena_printf(d->a, "/v2/" STR_FMT "/manifests/" STR_FMT, STR_ARG(d->q.image.repository),
                        STR_ARG(id));
}

static str list_path(struct registry_dialogue *d)
{
    str of = d->q.image.repository;
    if (d->q.list == REGISTRY_CATALOG)
        return S("/v2/_catalog?n=1000");
    return d->q.list == REGISTRY_TAGS
               ? arena_printf(d->a, "/v2/" STR_FMT "/tags/list?n=1000", STR_ARG(of))
               : arena_printf(d->a, "/v2/namespaces/" STR_FMT "/repositories?page_size=100",
                              STR_ARG(of));
}

void registry_dialogue_start(struct registry_dialogue *d, struct arena *a,
                             const struct registry_question *q)
{
    *d = (struct registry_dialogue){ .a = a, .q = *q };
    d->result.names = q->list ? json_new_arr(a) : NULL;
    d->scopes[d->scope_n++] =
        q->list == REGISTRY_CATALOG
            ? S("registry:catalog:*")
            : arena_printf(a, "repository:" STR_FMT ":pull", STR_ARG(q->image.repository));
    if (q->list == REGISTRY_HUB) /* not a registry: it has no handshake */
        go_to(d, REGISTRY_LIST, list_path(d));
    else
        go_to(d, REGISTRY_PING, S("/v2/"));
}

static str basic_of(struct registry_dialogue *d)
{
    auto_buf struct buf plain = { 0 }, out = { 0 };
    if (!d->q.credentials.found)
        return S("");
    buf_printf(&plain, STR_FMT ":" STR_FMT, STR_ARG(d->q.credentials.username),
               STR_ARG(d->q.credentials.password));
    buf_put(&out, S("Basic "));
    base64_encode(&out, buf_str(&plain));
    return arena_str(d->a, buf_str(&out));
}

/* Nothing after a redirect to another host: a storage service must not learn the registry's credentials. */
static str authorization_of(struct registry_dialogue *d)
{
    if (!d->same_host || d->step == REGISTRY_PING)
        return S("");
    if (d->step == REGISTRY_TOKEN || d->basic)
        return basic_of(d);
    return d->token.n ? arena_printf(d->a, "Bearer " STR_FMT, STR_ARG(d->token)) : S("");
}

/* The request of the current step. Answers are limited per step, and a repeated one waits 100 ms, then 300 ms. */
bool registry_dialogue_next(struct registry_dialogue *d, struct registry_request *ret)
{
    static const size_t limits[] = { REGISTRY_TOKEN_BYTES,    REGISTRY_TOKEN_BYTES,
                                     REGISTRY_MANIFEST_BYTES, REGISTRY_MANIFEST_BYTES,
                                     REGISTRY_CONFIG_BYTES,   REGISTRY_MANIFEST_BYTES };
    if (d->result.done)
        return false;
    *ret = (struct registry_request){
        .url = registry_url_text(d->a, &d->at),
        .authorization = authorization_of(d),
        .accept = d->step == REGISTRY_MANIFEST
                      ? S(TYPE_SCHEMA1 "," TYPE_SCHEMA1_SIGNED "," TYPE_SCHEMA2 "," TYPE_MANIFEST
                                       "," TYPE_LIST "," TYPE_INDEX)
                  : d->step == REGISTRY_CHILD ? d->child_type
                                              : S(""),
        .bytes_max = d->step == REGISTRY_CONFIG && d->config_bytes >= 0
                         ? (size_t)MAX(d->config_bytes, 1)
                         : limits[d->step],
        .wait_ms = d->tries == 0   ? 0
                   : d->tries == 1 ? 100
                                   : 300,
        .target = d->target,
    };
    return true;
}

/* ---- authentication */

/* Asks for a token, then continues with `then`. */
static void request_token(struct registry_dialogue *d, enum registry_step then, str path)
{
    str url = registry_token_url(d->a, &d->challenge, d->scopes, d->scope_n);
    struct registry_url at;
    bool valid = registry_url_parse(url, &at);
    if (!valid || (!at.tls && !d->q.plain_http)) {
        end_with_failure(d, REGISTRY_MALFORMED, REGISTRY_AT_MANIFEST,
                         arena_printf(d->a, STR_FMT ": the token server is not an HTTPS URL",
                                      STR_ARG(d->q.image.registry)));
        return;
    }
    d->after_token = then;
    d->path_after_token = path;
    d->step = REGISTRY_TOKEN;
    d->redirects = d->tries = 0;
    d->target = REGISTRY_REALM;
    d->same_host = true;
    d->at = at;
}

/* The first answer decides how all others are authenticated. */
static void on_ping(struct registry_dialogue *d, const struct registry_answer *answer)
{
    if (answer->status != 200 && answer->status != 401) {
        fail_with_status(d, answer);
        return;
    }
    enum registry_step first = d->q.list ? REGISTRY_LIST : REGISTRY_MANIFEST;
    str path = d->q.list ? list_path(d) : manifest_path(d);
    if (answer->status == 401)
        d->challenge = registry_challenge_parse(d->a, answer->authenticate);
    d->basic = d->challenge.scheme == REGISTRY_BASIC;
    if (d->challenge.scheme == REGISTRY_OTHER_SCHEME)
        end_with_failure(d, REGISTRY_MALFORMED, REGISTRY_AT_MANIFEST,
                         arena_printf(d->a,
                                      STR_FMT
                                      ": the registry asks for an authentication scheme that is "
                                      "not supported; use Basic or Bearer",
                                      STR_ARG(d->q.image.registry)));
    else if (d->challenge.scheme == REGISTRY_BEARER)
        request_token(d, first, path);
    else
        go_to(d, first, path);
}

/* Docker calls it "token", OAuth2 "access_token"; both should be equal, and the original uses the latter. */
static void on_token(struct registry_dialogue *d, const struct registry_answer *answer)
{
    struct json *tree = NULL;
    if (answer->status != 200) {
        fail_with_status(d, answer);
        return;
    }
    int r = json_parse(d->a, answer->body, &tree, NULL);
    str token = json_text(json_get(tree, "access_token"));
    d->token = token.n ? token : json_text(json_get(tree, "token"));
    bool usable = d->token.n > 0;
    for (size_t i = 0; i < d->token.n; i++) /* it becomes a header */
        usable =
            usable && (unsigned char)d->token.p[i] > ' ' && (unsigned char)d->token.p[i] < 0x7f;
    if (r || !usable) {
        d->token = S("");
        end_with_failure(d, REGISTRY_MALFORMED, REGISTRY_AT_MANIFEST,
                         arena_printf(d->a, STR_FMT ": the token server sent no token",
                                      STR_ARG(d->q.image.registry)));
        return;
    }
    go_to(d, d->after_token, d->path_after_token);
}

/* A second challenge, with scopes that the first one did not have; false: there is none. */
static bool renew_token(struct registry_dialogue *d, const struct registry_answer *answer)
{
    struct registry_challenge c = registry_challenge_parse(d->a, answer->authenticate);
    if (d->renewed || c.scheme != REGISTRY_BEARER || d->challenge.scheme != REGISTRY_BEARER ||
        d->target != REGISTRY_HOST)
        return false;
    d->renewed = true;
    bool known = !c.scope.n || d->scope_n == REGISTRY_SCOPES;
    for (size_t i = 0; i < d->scope_n; i++)
        known = known || str_eq(d->scopes[i], c.scope);
    if (!known) { /* first: some token servers read only one */
        memmove(d->scopes + 1, d->scopes, d->scope_n * sizeof(*d->scopes));
        d->scopes[0] = c.scope;
        d->scope_n++;
    }
    request_token(d, d->step, d->at.path);
    return true;
}

/* ---- documents */

static bool has_digest(str body, str digest)
{
    char hex[SHA256_HEX + 1];
    sha256_hex(body, hex);
    return str_eqc(str_from(digest, strlen("sha256:")), hex);
}

static void fail_document(struct registry_dialogue *d, enum registry_stage stage, const char *why)
{
    end_with_failure(d, REGISTRY_MALFORMED, stage,
                     arena_printf(d->a, STR_FMT "/" STR_FMT ": %s", STR_ARG(d->q.image.registry),
                                  STR_ARG(d->q.image.repository), why));
}

/* The first manifest of the index for our platform; one without a platform counts as linux/amd64. */
static const struct json *find_platform(const struct json *index, str architecture)
{
    const struct json *list = json_get(index, "manifests");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *m = json_item(list, i), *p = json_get(m, "platform");
        str os = json_text(json_get(p, "os")), cpu = json_text(json_get(p, "architecture"));
        if (!json_is(p, JSON_OBJ)) {
            os = S("linux");
            cpu = S("amd64");
        }
        if (str_eqc(os, "linux") && str_eq(cpu, architecture))
            return m;
    }
    return NULL;
}

static void read_index(struct registry_dialogue *d, const struct json *index)
{
    str cpu = str_c(d->q.architecture ? d->q.architecture : "amd64");
    const struct json *m = find_platform(index, cpu);
    d->child = json_text(json_get(m, "digest"));
    d->child_type = json_text(json_get(m, "mediaType"));
    if (!m) {
        fail_document(
            d, REGISTRY_AT_IMAGE,
            arena_printf(d->a, "the index has no image for linux/" STR_FMT, STR_ARG(cpu)).p);
        return;
    }
    if (!registry_is_digest(d->child)) {
        fail_document(d, REGISTRY_AT_IMAGE, "the index names an invalid digest");
        return;
    }
    go_to(d, REGISTRY_CHILD,
          arena_printf(d->a, "/v2/" STR_FMT "/manifests/" STR_FMT, STR_ARG(d->q.image.repository),
                       STR_ARG(d->child)));
}

/* A manifest of an image: next comes its configuration. */
static void read_manifest(struct registry_dialogue *d, const struct json *manifest)
{
    const struct json *config = json_get(manifest, "config");
    d->config = json_text(json_get(config, "digest"));
    d->config_bytes = json_int(json_get(config, "size"), -1);
    if (!registry_is_digest(d->config)) {
        fail_document(d, REGISTRY_AT_CONFIG, "the manifest names no configuration");
        return;
    }
    if (d->config_bytes > REGISTRY_CONFIG_BYTES) {
        fail_document(d, REGISTRY_AT_CONFIG, "the configuration is larger than 8 MiB");
        return;
    }
    go_to(d, REGISTRY_CONFIG,
          arena_printf(d->a, "/v2/" STR_FMT "/blobs/" STR_FMT, STR_ARG(d->q.image.repository),
                       STR_ARG(d->config)));
}

/* The media type, without parameters: of the header, or of the document if the header is not specific. */
static str type_of(const struct registry_answer *answer, const struct json *document)
{
    str header = answer->content_type, type = json_text(json_get(document, "mediaType"));
    size_t end = str_find_char(header, ';');
    if (end != SIZE_MAX)
        header = str_upto(header, end);
    header = str_trim(header);
    bool specific = str_starts(header, S("application/vnd."));
    return specific || !type.n ? header : type;
}

/* A manifest or an index of platforms. What was requested by digest must have it; a tag is trusted as the
 * registry answers it. */
static void on_manifest(struct registry_dialogue *d, const struct registry_answer *answer)
{
    struct json *tree = NULL;
    bool child = d->step == REGISTRY_CHILD;
    enum registry_stage stage = child ? REGISTRY_AT_IMAGE : REGISTRY_AT_MANIFEST;
    str digest = child ? d->child : d->q.image.digest;
    if (digest.n && !has_digest(answer->body, digest)) {
        fail_document(d, stage, "the manifest does not have the digest by which it was requested");
        return;
    }
    char hex[SHA256_HEX + 1];
    sha256_hex(answer->body, hex);
    d->result.digest = arena_printf(d->a, "sha256:%s", hex);
    int r = json_parse(d->a, arena_str(d->a, answer->body), &tree, NULL);
    str type = type_of(answer, tree);
    if (str_eqc(type, TYPE_SCHEMA1) || str_eqc(type, TYPE_SCHEMA1_SIGNED))
        fail_document(d, REGISTRY_AT_IMAGE, "the manifest has schema 1, which is not supported");
    else if (str_eqc(type, TYPE_INDEX) || str_eqc(type, TYPE_LIST)) {
        if (child || r)
            fail_document(d, REGISTRY_AT_IMAGE,
                          r ? "the index is not JSON" : "an index within an index");
        else
            read_index(d, tree);
    } else if (r)
        fail_document(d, REGISTRY_AT_CONFIG, "the manifest is not JSON");
    else
        read_manifest(d, tree);
}

/* Size and digest come from the manifest, which was verified itself. */
static void on_config(struct registry_dialogue *d, const struct registry_answer *answer)
{
    struct json *tree = NULL;
    if (d->config_bytes >= 0 && answer->body.n != (size_t)d->config_bytes) {
        fail_document(d, REGISTRY_AT_CONFIG,
                      "the configuration does not have the size in its manifest");
        return;
    }
    if (!has_digest(answer->body, d->config)) {
        fail_document(d, REGISTRY_AT_CONFIG,
                      "the configuration does not have the digest in its manifest");
        return;
    }
    if (json_parse(d->a, arena_str(d->a, answer->body), &tree, NULL) || !json_is(tree, JSON_OBJ)) {
        fail_document(d, REGISTRY_AT_CONFIG, "the configuration is not JSON");
        return;
    }
    const struct json *labels = json_at(tree, "config", "Labels", NULL);
    d->result.labels = json_is(labels, JSON_OBJ) ? labels : NULL;
    d->result.done = true;
}

/* ---- lists */

/* The target of `<...>; rel="next"`; empty: this is the last page. */
static str next_of_header(str link)
{
    str one;
    while (str_cut(&link, ',', &one)) {
        size_t from = str_find_char(one, '<'), to = str_find_char(one, '>');
        bool next = str_find(one, S("rel=\"next\"")) != SIZE_MAX ||
                    str_find(one, S("rel=next")) != SIZE_MAX;
        if (next && from != SIZE_MAX && to != SIZE_MAX && from < to)
            return str_from(str_upto(one, to), from + 1);
    }
    return S("");
}

/* Adds the names of a page; returns how many. */
static size_t take_names(struct registry_dialogue *d, const struct json *tree)
{
    static const char *const keys[] = {
        [REGISTRY_TAGS] = "tags", [REGISTRY_CATALOG] = "repositories", [REGISTRY_HUB] = "results"
    };
    const struct json *list = json_get(tree, keys[d->q.list]);
    size_t before = d->result.names->n;
    for (size_t i = 0; i < json_len(list) && d->result.names->n < REGISTRY_NAMES; i++) {
        const struct json *one = json_item(list, i);
        str name = json_text(d->q.list == REGISTRY_HUB ? json_get(one, "name") : one);
        if (name.n && name.n <= 255)
            json_push(d->a, d->result.names, json_new_str(d->a, name));
    }
    return d->result.names->n - before;
}

/* Pages follow on the same host until one is empty or there is no next; more than REGISTRY_NAMES are left out. */
static void on_list(struct registry_dialogue *d, const struct registry_answer *answer)
{
    struct json *tree = NULL;
    struct registry_url to;
    if (json_parse(d->a, arena_str(d->a, answer->body), &tree, NULL) || !json_is(tree, JSON_OBJ)) {
        fail_document(d, REGISTRY_AT_MANIFEST, "the list is not JSON");
        return;
    }
    size_t added = take_names(d, tree);
    str next = d->q.list == REGISTRY_HUB ? json_text(json_get(tree, "next"))
                                         : next_of_header(answer->link);
    if (!added || !next.n || d->result.names->n >= REGISTRY_NAMES || ++d->pages == REGISTRY_PAGES) {
        d->result.done = true;
        return;
    }
    str url = registry_url_resolve(d->a, &d->at, arena_str(d->a, next));
    if (!registry_url_parse(url, &to) || !str_eq(to.host, d->at.host) || to.tls != d->at.tls) {
        fail_document(d, REGISTRY_AT_MANIFEST, "the next page of the list is on another server");
        return;
    }
    bool same = d->same_host;
    enum registry_target target = d->target;
    go_to(d, REGISTRY_LIST, to.path);
    d->at.host = to.host; /* a redirect may have led there: credentials stay away from it */
    d->same_host = same;
    d->target = target;
}

/* ---- answers */

static bool is_retried(const struct registry_answer *answer)
{
    static const int statuses[] = { 0, 408, 500, 502, 503, 504 };
    for (size_t i = 0; i < countof(statuses); i++)
        if (answer->status == statuses[i])
            return true;
    return false;
}

static bool is_redirect(int status)
{
    return status == 301 || status == 302 || status == 303 || status == 307 || status == 308;
}

/* `same_host` is never regained: a redirect back to the registry stays without credentials. */
static void follow_redirect(struct registry_dialogue *d, const struct registry_answer *answer)
{
    str url = registry_url_resolve(d->a, &d->at, answer->location);
    struct registry_url to;
    if (d->redirects == REGISTRY_REDIRECTS) {
        fail_document(d, stage_of(d), "more than 5 redirects");
        return;
    }
    if (!registry_url_parse(url, &to) || (d->at.tls && !to.tls)) {
        fail_document(d, stage_of(d), "a redirect that is not allowed");
        return;
    }
    d->redirects++;
    d->tries = 0;
    d->same_host = d->same_host && str_eq(to.host, d->at.host);
    if (!str_eq(to.host, d->at.host))
        d->target = REGISTRY_REDIRECT;
    d->at = to;
}

/* A tree takes up to 20 times the memory of its text, if the text is all brackets and commas. */
static bool has_too_many_values(str body)
{
    size_t n = 0;
    for (size_t i = 0; i < body.n; i++)
        n += body.p[i] == ',' || body.p[i] == '[' || body.p[i] == '{';
    return n > REGISTRY_VALUES;
}

/* The answer is used once; what is kept of it is copied. */
void registry_dialogue_answer(struct registry_dialogue *d, const struct registry_answer *answer)
{
    if (d->result.done)
        return;
    if (answer->refused) {
        end_with_failure(d, REGISTRY_MALFORMED, stage_of(d), arena_str(d->a, answer->failure));
        return;
    }
    if (is_retried(answer) && ++d->tries < REGISTRY_TRIES)
        return;
    if (answer->status == 0) {
        end_with_failure(d, REGISTRY_UNREACHABLE, stage_of(d), arena_str(d->a, answer->failure));
        return;
    }
    if (is_redirect(answer->status) && answer->location.n) {
        follow_redirect(d, answer);
        return;
    }
    if (answer->too_large || has_too_many_values(answer->body)) {
        fail_document(d, stage_of(d), "an answer is too large");
        return;
    }
    if (d->step == REGISTRY_PING)
        on_ping(d, answer);
    else if (d->step == REGISTRY_TOKEN)
        on_token(d, answer);
    else if (answer->status == 401 && renew_token(d, answer))
        ;
    else if (answer->status != 200)
        fail_with_status(d, answer);
    else if (d->step == REGISTRY_CONFIG)
        on_config(d, answer);
    else if (d->step == REGISTRY_LIST)
        on_list(d, answer);
    else
        on_manifest(d, answer);
}
