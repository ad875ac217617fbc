/* The work of a request grows at most as n log n with its body.
 *
 * For every list and map of every built-in type, and of a custom resource that has all kinds of them,
 * bodies of N, 2N and 4N entries go through every verb that writes. The server is compiled with a call to
 * __sanitizer_cov_trace_pc() in every basic block, and what the C library does to memory is counted by
 * its bytes, so that the work is a number that does not depend on the machine. From one step to the next,
 * n log n grows by 2.2 and a square by 4; between them is the line. */
#include "tap.h"

#include "apiserver/controllers/controllers.h"
#include "base/map.h"
#include "growth_objects.h"
#include "support/inproc.h"

enum { N = 350, BYTES_PER_STEP = 32 };
#define RATIO_MAX 2.75

static _Thread_local uint64_t steps; /* the commit thread has its own */

void __sanitizer_cov_trace_pc(void);
void *__real_memcpy(void *to, const void *from, size_t n);
void *__real_memmove(void *to, const void *from, size_t n);
void *__real_memset(void *to, int byte, size_t n);
int __real_memcmp(const void *a, const void *b, size_t n);
void *__wrap_memcpy(void *to, const void *from, size_t n);
void *__wrap_memmove(void *to, const void *from, size_t n);
void *__wrap_memset(void *to, int byte, size_t n);
int __wrap_memcmp(const void *a, const void *b, size_t n);

void __sanitizer_cov_trace_pc(void)
{
    steps++;
}

void *__wrap_memcpy(void *to, const void *from, size_t n)
{
    steps += n / BYTES_PER_STEP;
    return __real_memcpy(to, from, n);
}

void *__wrap_memmove(void *to, const void *from, size_t n)
{
    steps += n / BYTES_PER_STEP;
    return __real_memmove(to, from, n);
}

void *__wrap_memset(void *to, int byte, size_t n)
{
    steps += n / BYTES_PER_STEP;
    return __real_memset(to, byte, n);
}

int __wrap_memcmp(const void *a, const void *b, size_t n)
{
    steps += 1;
    return __real_memcmp(a, b, n);
}

/* ---- requests */

enum write { POST, PUT, STRATEGIC, MERGE, JSON_PATCH, APPLY, DELETE_ALL, WRITE_N };
static const char *const verb_names[WRITE_N] = {
    "POST",       "PUT",   "strategic merge patch",   "merge patch",
    "JSON patch", "apply", "merge patch that deletes"
};

static struct server *server;
static size_t places, measured, accepted;
static bool broken;

static str path_of(struct arena *a, const struct kind *k, str name)
{
    return arena_printf(a, "/%s" STR_FMT "%s" STR_FMT "%s/" STR_FMT "%s" STR_FMT,
                        k->group.n ? "apis/" : "api/", STR_ARG(k->group), k->group.n ? "/" : "",
                        STR_ARG(k->version), k->namespaced ? "/namespaces/default" : "",
                        STR_ARG(k->plural), name.n ? "/" : "", STR_ARG(name));
}

static int send(struct arena *a, const char *method, str path, const char *query, const char *type,
                str body, uint64_t *ret_steps)
{
    uint64_t before = steps;
    struct inproc_answer answer = inproc_send(server, a,
                                              &(struct inproc_request){ .method = method,
                                                                        .path = path.p,
                                                                        .query = query,
                                                                        .body = body.p,
                                                                        .body_n = body.n,
                                                                        .content_type = type });
    *ret_steps = steps - before;
    return answer.status;
}

static str pointer_of(struct arena *a, const struct growth_place *place)
{
    str text = S("");
    for (size_t i = 1; i < place->n; i++)
        text = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(text),
                            STR_ARG(place->names[i].n ? place->names[i] : S("0")));
    return text;
}

/* The body of a verb, as text. */
static str body_of(struct arena *a, enum write verb, const struct json *base,
                   const struct growth_place *place, size_t n, enum growth_entries entries)
{
    struct json *value = growth_entries(a, place, n, entries), *object = json_copy(a, base);
    if (verb == JSON_PATCH) {
        struct json *patch = json_new_arr(a), *operation = json_new_obj(a);
        json_set_str(a, operation, "op", S("add"));
        json_set_str(a, operation, "path", pointer_of(a, place));
        json_set(a, operation, S("value"), value);
        json_push(a, patch, operation);
        return json_to_str(a, patch);
    }
    if (verb == DELETE_ALL)
        json_each(m, value)
            m->value = json_new_null(a);
    growth_put(a, object, place, value);
    return json_to_str(a, object);
}

/* The work of one request to an object that is as it was made, and is again afterwards. */
static uint64_t measure(enum write verb, const struct kind *k, const struct growth_place *place,
                        size_t n, enum growth_entries entries, int *ret_status)
{
    static const char *const types[WRITE_N] = { "application/json",
                                                "application/json",
                                                "application/strategic-merge-patch+json",
                                                "application/merge-patch+json",
                                                "application/json-patch+json",
                                                "application/apply-patch+yaml",
                                                "application/merge-patch+json" };
    auto_arena struct arena a = { 0 };
    uint64_t work, ignored;
    struct json *base = growth_base(&a, k);
    str name = json_text(json_at(base, "metadata", "name", NULL));
    str one = path_of(&a, k, name), all = path_of(&a, k, S(""));
    str body = body_of(&a, verb, base, place, n + (verb == PUT), entries); /* one is new */
    if (verb != POST) {
        str before = json_to_str(&a, base);
        if (verb == DELETE_ALL || (verb == PUT && entries == GROWTH_DIFFERENT))
            before = body_of(&a, POST, base, place, n, entries);
        send(&a, "POST", all, NULL, types[POST], before, &ignored);
    }
    const char *method = verb == POST ? "POST" : verb == PUT ? "PUT" : "PATCH";
    *ret_status =
        send(&a, method, verb == POST ? all : one,
             verb == APPLY ? "fieldManager=test&force=true" : NULL, types[verb], body, &work);
    send(&a, "DELETE", one, "gracePeriodSeconds=0", NULL, S(""), &ignored);
    return work;
}

/* Differences, as a constant part means nothing. Below ten steps per entry nothing was looked at. */
static bool grows_too_fast(const uint64_t work[3])
{
    double first = (double)work[1] - (double)work[0], second = (double)work[2] - (double)work[1];
    return second > 10.0 * N && second > RATIO_MAX * first;
}

static void check_verb(enum write verb, const struct kind *k, const struct growth_place *place,
                       enum growth_entries entries)
{
    auto_arena struct arena a = { 0 };
    int status;
    uint64_t work[3];
    for (size_t i = 0; i < countof(work); i++)
        work[i] = measure(verb, k, place, (size_t)N << i, entries, &status);
    measured++;
    accepted += status < 300;
    if (!grows_too_fast(work))
        return;
    broken = true;
    printf("# " STR_FMT STR_FMT ", %s, %s entries: %d; %llu, %llu, %llu steps\n", STR_ARG(k->kind),
           STR_ARG(growth_place_text(&a, place)), verb_names[verb],
           entries == GROWTH_SAME ? "equal" : "different", status, (unsigned long long)work[0],
           (unsigned long long)work[1], (unsigned long long)work[2]);
}

/* Every field of every type once, and once more in the kinds that have most rules of their own. */
static bool is_known(const struct kind *k, const struct growth_place *place)
{
    static struct map known;
    static struct arena names;
    if (str_eqc(k->kind, "Pod") || k->custom)
        return false;
    const struct schema *holder = place->n > 1 ? place->steps[place->n - 2] : NULL;
    str type = holder && holder->message ? holder->message->name : S("");
    str key = arena_printf(&names, STR_FMT "." STR_FMT, STR_ARG(type),
                           STR_ARG(place->names[place->n - 1]));
    return type.n && map_put(&known, key, &known);
}

static void check_place(void *context, const struct growth_place *place)
{
    const struct kind *k = context;
    if (is_known(k, place))
        return;
    places++;
    for (enum write verb = POST; verb < WRITE_N; verb++) {
        if ((verb == STRATEGIC && k->custom) ||
            (verb == DELETE_ALL && place->steps[place->n - 1]->type == SCHEMA_ARRAY))
            continue;
        check_verb(verb, k, place, GROWTH_DIFFERENT);
        if (verb != DELETE_ALL && place->steps[place->n - 1]->type == SCHEMA_ARRAY)
            check_verb(verb, k, place, GROWTH_SAME);
    }
}

static void open_all(void)
{
    err_t e;
    setvbuf(stdout, NULL, _IOLBF, 0);
    OK_CALL(server_new(NULL,
                       &(struct server_options){ .history_events = 16,
                                                 .controllers = controllers_all },
                       &server, &e),
            &e);
    places = measured = accepted = 0;
    broken = false;
}

static void close_all(void)
{
    printf("# %zu lists and maps, %zu comparisons, %zu of accepted bodies\n", places, measured,
           accepted);
    OK(!broken);
    server_free(server);
}

static bool is_writable(const struct kind *k)
{
    return (k->verbs & KIND_CREATE) && (k->verbs & KIND_PATCH) && k->storage == k &&
           !str_eqc(k->kind, "Namespace");
}

static void built_in_types(void)
{
    open_all();
    size_t n;
    const struct kind *const *all = kinds_builtin(&n);
    for (size_t i = 0; i < n; i++)
        if (is_writable(all[i]))
            growth_places(all[i]->schema, check_place, (void *)(uintptr_t)all[i]);
    OK(places > 100);
    close_all();
}

/* ---- custom resources */

static const char definition[] =
    "{\"apiVersion\":\"apiextensions.k8s.io/v1\",\"kind\":\"CustomResourceDefinition\","
    "\"metadata\":{\"name\":\"grows.g.io\"},\"spec\":{\"group\":\"g.io\",\"scope\":\"Namespaced\","
    "\"names\":{\"plural\":\"grows\",\"kind\":\"Grow\"},\"versions\":[{\"name\":\"v1\",\"served\":true,"
    "\"storage\":true,\"schema\":{\"openAPIV3Schema\":%s}}]}}";

#define ITEM                                                                                       \
    "{\"type\":\"object\",\"required\":[\"key\"],\"properties\":{\"key\":{\"type\":\"string\"},"   \
    "\"more\":{\"type\":\"integer\"}}}"

static const char openapi[] =
    "{\"type\":\"object\",\"properties\":{\"spec\":{\"type\":\"object\",\"properties\":{"
    "\"set\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":\"string\"}},"
    "\"numbers\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"set\",\"items\":{\"type\":\"integer\"}},"
    "\"keyed\":{\"type\":\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":["
    "\"key\"],\"items\":" ITEM "},"
    "\"atomic\":{\"type\":\"array\",\"items\":" ITEM "},"
    "\"map\":{\"type\":\"object\",\"additionalProperties\":{\"type\":\"string\"}},"
    "\"objects\":{\"type\":\"object\",\"additionalProperties\":" ITEM "},"
    "\"nested\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"properties\":{\"inner\":{\"type\":"
    "\"array\",\"x-kubernetes-list-type\":\"map\",\"x-kubernetes-list-map-keys\":[\"key\"],\"items\":" ITEM
    "}}}},"
    "\"either\":{\"type\":\"array\",\"items\":{\"type\":\"object\",\"x-kubernetes-preserve-unknown-fields\":"
    "true,\"anyOf\":[{\"required\":[\"a\"]},{\"required\":[\"b\"]}]}},"
    "\"words\":{\"type\":\"array\",\"items\":{\"type\":\"string\",\"pattern\":\"^(n|m)*[0-9]+$\"}}"
    "}}}}";

static void define(struct arena *a)
{
    uint64_t ignored;
    EQ_INT(send(a, "POST", S("/apis/apiextensions.k8s.io/v1/customresourcedefinitions"), NULL,
                "application/json", arena_printf(a, definition, openapi), &ignored),
           201);
}

static void custom_types(void)
{
    open_all();
    auto_arena struct arena a = { 0 };
    struct json *tree = NULL;
    struct field_errors errors = { .arena = &a };
    err_t e;
    define(&a);
    OK_CALL(json_parse(&a, str_c(openapi), &tree, &e), &e);
    struct kind k = { .group = S("g.io"),
                      .version = S("v1"),
                      .kind = S("Grow"),
                      .plural = S("grows"),
                      .namespaced = true,
                      .custom = true,
                      .schema = schema_from_openapi(&a, tree, NULL, &errors) };
    EQ_INT(errors.n, 0);
    growth_places(k.schema, check_place, &k);
    EQ_INT(places, 10);
    close_all();
}

/* ---- bodies that no type describes */

#define MAPS "/api/v1/namespaces/default/configmaps"

static str repeat(struct arena *a, const char *head, const char *each, size_t n, const char *tail)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, str_c(head));
    for (size_t i = 0; i < n; i++) {
        str rest = str_c(each);
        buf_put(&text, i ? S(",") : S(""));
        for (str part; str_cut(&rest, '#', &part);) {
            buf_put(&text, part);
            if (rest.p)
                buf_printf(&text, "%zu", i);
        }
    }
    buf_put(&text, str_c(tail));
    return arena_str(a, buf_str(&text));
}

static const struct {
    const char *what, *method, *path, *type, *head, *each, *tail;
} texts[] = {
    { "a JSON patch of many additions", "PATCH", MAPS "/base", "application/json-patch+json", "[",
      "{\"op\":\"add\",\"path\":\"/data/k#\",\"value\":\"v\"}", "]" },
    { "a JSON patch with escaped names", "PATCH", MAPS "/base", "application/json-patch+json", "[",
      "{\"op\":\"add\",\"path\":\"/metadata/annotations/a~1k#\",\"value\":\"v\"}", "]" },
    { "a strategic patch that retains keys", "PATCH", MAPS "/base",
      "application/strategic-merge-patch+json", "{\"data\":{\"$retainKeys\":[", "\"k#\"", "]}}" },
    { "managed fields", "POST", MAPS, "application/json",
      "{\"metadata\":{\"name\":\"x\",\"managedFields\":[{\"manager\":\"a\",\"operation\":\"Update\","
      "\"apiVersion\":\"v1\",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":{",
      "\"f:k#\":{}", "}}]}}" },
    { "unknown fields", "POST", MAPS, "application/json", "{\"metadata\":{\"name\":\"x\"},",
      "\"unknown#\":1", "}" },
    { "the same key again and again", "POST", MAPS, "application/json",
      "{\"metadata\":{\"name\":\"x\"},\"data\":{", "\"k\":\"#\"", "}}" },
    { "properties of a definition", "POST",
      "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json",
      "{\"metadata\":{\"name\":\"wides.w.io\"},\"spec\":{\"group\":\"w.io\",\"scope\":\"Namespaced\","
      "\"names\":{\"plural\":\"wides\",\"kind\":\"Wide\"},\"versions\":[{\"name\":\"v1\",\"served\":true,"
      "\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{",
      "\"p#\":{\"type\":\"string\",\"default\":\"d\"}", "}}}}]}}" },
    { "an enum of a definition", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      "application/json",
      "{\"metadata\":{\"name\":\"wides.w.io\"},\"spec\":{\"group\":\"w.io\",\"scope\":\"Namespaced\","
      "\"names\":{\"plural\":\"wides\",\"kind\":\"Wide\"},\"versions\":[{\"name\":\"v1\",\"served\":true,"
      "\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"e\":{"
      "\"type\":\"string\",\"enum\":[",
      "\"w#\"", "]}}}}}]}}" },
    { "a rule of a definition", "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
      "application/json",
      "{\"metadata\":{\"name\":\"wides.w.io\"},\"spec\":{\"group\":\"w.io\",\"scope\":\"Namespaced\","
      "\"names\":{\"plural\":\"wides\",\"kind\":\"Wide\"},\"versions\":[{\"name\":\"v1\",\"served\":true,"
      "\"storage\":true,\"schema\":{\"openAPIV3Schema\":{\"type\":\"object\",\"properties\":{\"e\":{"
      "\"type\":\"integer\",\"x-kubernetes-validations\":[{\"rule\":\"self in [",
      "#", "]\"}]}}}}}]}}" },
    { "one text under a pattern", "POST", "/apis/g.io/v1/namespaces/default/grows",
      "application/json",
      "{\"apiVersion\":\"g.io/v1\",\"kind\":\"Grow\",\"metadata\":{\"name\":\"x\"},\"spec\":{\"words\":[\"",
      "nm", "\"]}}" },
    { "a YAML mapping", "PATCH", MAPS "/base?fieldManager=t", "application/apply-patch+yaml",
      "{apiVersion: v1, kind: ConfigMap, metadata: {name: base}, data: {", "k#: v", "}}" },
};

static uint64_t measure_text(size_t i, size_t n, int *ret_status)
{
    auto_arena struct arena a = { 0 };
    uint64_t work, ignored;
    str path = str_c(texts[i].path), query = S("");
    size_t question = str_find_char(path, '?');
    if (question != SIZE_MAX) {
        query = str_from(path, question + 1);
        path = arena_str(&a, str_upto(path, question));
    }
    send(
        &a, "POST", S(MAPS), NULL, "application/json",
        S("{\"metadata\":{\"name\":\"base\",\"annotations\":{\"a\":\"b\"}},\"data\":{\"k0\":\"v\"}}"),
        &ignored);
    *ret_status = send(&a, texts[i].method, path, query.n ? query.p : NULL, texts[i].type,
                       repeat(&a, texts[i].head, texts[i].each, n, texts[i].tail), &work);
    send(&a, "DELETE", S(MAPS "/base"), NULL, NULL, S(""), &ignored);
    send(&a, "DELETE", S(MAPS "/x"), NULL, NULL, S(""), &ignored);
    send(&a, "DELETE", S("/apis/g.io/v1/namespaces/default/grows/x"), NULL, NULL, S(""), &ignored);
    send(&a, "DELETE", S("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/wides.w.io"),
         NULL, NULL, S(""), &ignored);
    return work;
}

static void other_bodies(void)
{
    open_all();
    auto_arena struct arena a = { 0 };
    define(&a);
    for (size_t i = 0; i < countof(texts); i++) {
        int status;
        uint64_t work[3];
        for (size_t j = 0; j < countof(work); j++)
            work[j] = measure_text(i, (size_t)N << j, &status);
        measured++;
        accepted += status < 300;
        if (!OK(!grows_too_fast(work)))
            printf("# %s: %d; %llu, %llu, %llu steps\n", texts[i].what, status,
                   (unsigned long long)work[0], (unsigned long long)work[1],
                   (unsigned long long)work[2]);
    }
    close_all();
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(custom_types), TAP(other_bodies), TAP(built_in_types), { 0 } });
}
