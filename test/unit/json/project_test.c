/* Projection: every type of field, from well-formed and from odd objects, and what records cost. */
#include "tap.h"

#include "base/buf.h"
#include "base/sum.h"
#include "json/project.h"

struct container {
    str name, image;
    int64_t cpu_milli, memory_milli;
    bool has_probe;
};

struct pod {
    struct record meta;
    const struct labels *labels;
    str node, app, spec, owner;
    int64_t cpu_milli, started, restarts, priority;
    double weight;
    bool host, deleting, ready, on_n1, on_n2;
    uint64_t node_sum;
    LIST(struct container) containers;
};

static const struct field container_fields[] = {
    { "name", F_STR, offsetof(struct container, name) },
    { "image", F_WORD, offsetof(struct container, image) },
    { "resources.limits.cpu", F_MILLI, offsetof(struct container, cpu_milli), .otherwise = -1 },
    { "resources.limits.memory", F_MILLI, offsetof(struct container, memory_milli) },
    { "livenessProbe", F_HAS, offsetof(struct container, has_probe) },
};
static const struct fields container_shape = { sizeof(struct container), container_fields,
                                               countof(container_fields) };

static const struct field pod_fields[] = {
    { "metadata.labels", F_MAP, offsetof(struct pod, labels) },
    { "metadata.labels[\"app.kubernetes.io/name\"]", F_STR, offsetof(struct pod, app) },
    { "metadata.deletionTimestamp", F_HAS, offsetof(struct pod, deleting) },
    { "metadata.ownerReferences[controller=true].name", F_STR, offsetof(struct pod, owner) },
    { "spec.nodeName", F_WORD, offsetof(struct pod, node) },
    { "spec.nodeName", F_IS, offsetof(struct pod, on_n1), .text = "n1" },
    { "spec.nodeName", F_IS, offsetof(struct pod, on_n2), .text = "n2" },
    { "spec.nodeName", F_SUM, offsetof(struct pod, node_sum) },
    { "spec.affinity", F_RAW, offsetof(struct pod, spec) },
    { "spec.priority", F_INT, offsetof(struct pod, priority), .otherwise = 7 },
    { "spec.weight", F_REAL, offsetof(struct pod, weight), .otherwise = 2 },
    { "spec.hostNetwork", F_BOOL, offsetof(struct pod, host) },
    { "spec.containers[].resources.limits.cpu", F_MILLI, offsetof(struct pod, cpu_milli) },
    { "spec.containers", F_LIST, offsetof(struct pod, containers), .of = &container_shape },
    { "status.startTime", F_TIME, offsetof(struct pod, started), .otherwise = -5 },
    { "status.containerStatuses[].restartCount", F_INT, offsetof(struct pod, restarts) },
    { "status.conditions[type=Ready].met", F_BOOL, offsetof(struct pod, ready) },
};

static struct projector *projector;
static struct projection *pods;

static void setup(void)
{
    err_t e;
    projector = projector_new();
    OK_CALL(projection_new(projector, FIELDS(struct pod, pod_fields), 1, &pods, &e), &e);
}

static void teardown(void)
{
    projection_free(pods);
    projector_free(projector); /* asserts that every shared text was given back */
}

static const struct pod *make(const char *json)
{
    struct record *r = NULL;
    err_t e = { 0 };
    if (!OK_CALL(project(pods, str_c(json), &r, &e), &e))
        abort();
    return (const struct pod *)r;
}

static const char full[] =
    "{\"kind\":\"Pod\",\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":\"u-1\","
    "\"resourceVersion\":\"42\",\"managedFields\":[{\"a\":{\"name\":\"no\"}}],"
    "\"labels\":{\"b\":\"2\",\"a\":\"1\",\"app.kubernetes.io/name\":\"w\\u00e9b\"},"
    "\"ownerReferences\":[{\"name\":\"other\"},{\"controller\":true,\"name\":\"web\"}]},"
    "\"spec\":{\"nodeName\":\"n1\",\"affinity\":{\"x\": [1, {\"y\":null}]},\"priority\":9,"
    "\"weight\":0.5,\"hostNetwork\":true,\"containers\":["
    "{\"name\":\"main\",\"image\":\"nginx\",\"resources\":{\"limits\":{\"cpu\":\"250m\",\"memory\":\"1Ki\"}},"
    "\"livenessProbe\":{}},"
    "{\"name\":\"side\",\"image\":\"nginx\",\"resources\":{\"limits\":{\"cpu\":2}}}]},"
    "\"status\":{\"startTime\":\"1970-01-01T00:00:02Z\",\"containerStatuses\":"
    "[{\"restartCount\":3},{\"restartCount\":4}],\"conditions\":[{\"type\":\"A\",\"met\":false},"
    "{\"type\":\"Ready\",\"met\":true}]}}";

static void every_type_is_read(void)
{
    setup();
    const struct pod *p = make(full);
    EQ_STR(p->meta.ns, S("shop"));
    EQ_STR(p->meta.name, S("web-1"));
    EQ_STR(p->meta.uid, S("u-1"));
    EQ_STR(p->meta.rv, S("42"));
    EQ_INT(p->meta.node.hash, record_hash(S("shop"), S("web-1")));
    EQ_STR(intern_labels_get(p->labels, S("a")), S("1"));
    EQ_STR(intern_labels_get(p->labels, S("b")), S("2"));
    EQ_STR(intern_labels_get(p->labels, S("c")), S(""));
    EQ_STR(p->app, S("w\xc3\xa9"
                     "b"));
    EQ_STR(p->owner, S("web"));
    EQ_STR(p->node, S("n1"));
    EQ_STR(p->spec, S("{\"x\":[1,{\"y\":null}]}"));
    EQ_INT(p->priority, 9);
    EQ_REAL(p->weight, 0.5);
    OK(p->host && p->ready && !p->deleting);
    OK(p->on_n1 && !p->on_n2 && p->node_sum == sum64(S("n1"), 0));
    EQ_INT(p->cpu_milli, 2250);
    EQ_INT(p->restarts, 7);
    EQ_INT(p->started, INT64_C(2000000000));
    EQ_INT(p->containers.n, 2);
    EQ_STR(p->containers.at[0].name, S("main"));
    EQ_STR(p->containers.at[1].image, S("nginx"));
    OK(p->containers.at[0].image.p == p->containers.at[1].image.p);
    EQ_INT(p->containers.at[0].memory_milli, 1024000);
    EQ_INT(p->containers.at[1].cpu_milli, 2000);
    OK(p->containers.at[0].has_probe && !p->containers.at[1].has_probe);
    record_unref(&p->meta);
    teardown();
}

static void odd_members_are_absent(void)
{
    setup();
    const struct pod *p = make(
        "{\"metadata\":{\"name\":\"x\",\"namespace\":7,\"labels\":[\"a\"],"
        "\"deletionTimestamp\":null,\"ownerReferences\":{}},"
        "\"spec\":{\"nodeName\":{\"a\":1},\"priority\":\"9\",\"weight\":\"w\",\"hostNetwork\":1,"
        "\"containers\":[3,{\"name\":null,\"resources\":{\"limits\":{\"cpu\":\"much\"}}},[]]},"
        "\"status\":{\"startTime\":\"yesterday\",\"containerStatuses\":7,\"conditions\":null}}");
    EQ_STR(p->meta.ns, S(""));
    OK(!p->labels && !p->deleting && !p->host && !p->ready);
    EQ_STR(p->node, S(""));
    EQ_INT(p->priority, 7);
    EQ_REAL(p->weight, 2);
    EQ_INT(p->started, -5);
    EQ_INT(p->cpu_milli, 0);
    EQ_INT(p->containers.n, 3);
    EQ_INT(p->containers.at[1].cpu_milli, -1);
    record_unref(&p->meta);

    /* the same member twice: shared texts must be given back as often as taken */
    p = make("{\"metadata\":{\"name\":\"x\",\"labels\":{\"a\":\"1\"},\"labels\":{\"b\":\"1\"}},"
             "\"spec\":{\"nodeName\":\"a\",\"nodeName\":\"b\",\"containers\":[],\"containers\":"
             "[{\"image\":\"i\"}]}}");
    record_unref(&p->meta);
    p = make("{\"metadata\":{\"name\":\"x\",\"labels\":{}},\"spec\":{\"nodeName\":\"\"}}");
    OK(!p->labels);
    record_unref(&p->meta);
    teardown();
}

static void numbers_do_not_wrap(void)
{
    setup();
    const struct pod *p = make(
        "{\"metadata\":{\"name\":\"x\"},\"status\":{\"containerStatuses\":"
        "[{\"restartCount\":9223372036854775807},{\"restartCount\":1},{\"restartCount\":1e300},"
        "{\"restartCount\":18446744073709551615}]},"
        "\"spec\":{\"priority\":3.0}}");
    EQ_INT(p->restarts, INT64_MAX);
    EQ_INT(p->priority, 3);
    record_unref(&p->meta);
    teardown();
}

static void refuses_what_is_no_object(void)
{
    setup();
    static const char *const bad[] = { "",
                                       "{",
                                       "[]",
                                       "7",
                                       "{}",
                                       "{\"metadata\":{\"name\":\"\"}}",
                                       "{\"metadata\":{\"name\":\"x\"}}x" };
    for (size_t i = 0; i < countof(bad); i++) {
        struct record *r = NULL;
        err_t e = { 0 };
        OK(project(pods, str_c(bad[i]), &r, &e) == -EBADMSG && !r && e.text[0]);
    }
    teardown();
}

static void same_ignores_the_version(void)
{
    setup();
    const struct pod *a = make(full), *b = make(full);
    OK(record_same(&a->meta, &b->meta));
    record_unref(&b->meta);
    b = make("{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":\"u-1\"}}");
    OK(!record_same(&a->meta, &b->meta));
    const struct pod *c = make("{\"metadata\":{\"name\":\"web-1\",\"namespace\":\"shop\",\"uid\":"
                               "\"u-1\",\"resourceVersion\":\"9\",\"annotations\":{\"x\":\"y\"}}}");
    OK(record_same(&b->meta, &c->meta));
    record_unref(&a->meta);
    record_unref(&b->meta);
    record_unref(&c->meta);
    teardown();
}

static void labels_are_kept_once(void)
{
    setup();
    const struct pod *a = make(
                         "{\"metadata\":{\"name\":\"a\",\"labels\":{\"x\":\"1\",\"y\":\"2\"}}}"),
                     *b = make(
                         "{\"metadata\":{\"name\":\"b\",\"labels\":{\"y\":\"2\",\"x\":\"1\"}}}");
    OK(a->labels == b->labels);
    EQ_INT(a->labels->refs, 2);
    record_unref(&a->meta);
    EQ_STR(intern_labels_get(b->labels, S("y")), S("2"));
    struct record *kept = record_ref(&b->meta);
    record_unref(&b->meta);
    EQ_STR(kept->name, S("b"));
    record_unref(kept);
    teardown();
}

static void watch_lines(void)
{
    setup();
    struct watch_line line;
    err_t e;
    OK_CALL(project_watch_line(pods,
                               S("{\"type\":\"ADDED\",\"object\":{\"metadata\":{\"name\":\"a\"}}}"),
                               &line, &e),
            &e);
    EQ_INT(line.type, WATCH_ADDED);
    EQ_STR(line.record->name, S("a"));
    record_unref(line.record);
    OK_CALL(project_watch_line(
                pods,
                S("{\"object\":{\"metadata\":{\"resourceVersion\":\"77\",\"annotations\":"
                  "{\"k8s.io/initial-events-end\":\"true\"}}},\"type\":\"BOOKMARK\"}"),
                &line, &e),
            &e);
    OK(line.type == WATCH_BOOKMARK && line.initial_end && !line.record);
    EQ_STR(line.rv, S("77"));
    OK_CALL(project_watch_line(pods,
                               S("{\"type\":\"ERROR\",\"object\":{\"kind\":\"Status\",\"code\":410,"
                                 "\"reason\":\"Expired\",\"message\":\"too old\"}}"),
                               &line, &e),
            &e);
    OK(line.type == WATCH_ERROR && line.code == 410);
    EQ_STR(line.reason, S("Expired"));
    static const char *const bad[] = { "{\"type\":\"WHAT\",\"object\":{}}", "{\"type\":\"ADDED\"}",
                                       "{\"type\":\"MODIFIED\",\"object\":7}", "null",
                                       "{\"object\":" };
    for (size_t i = 0; i < countof(bad); i++)
        OK(project_watch_line(pods, str_c(bad[i]), &line, &e) == -EBADMSG);
    teardown();
}

static void bad_tables_are_refused(void)
{
    static const struct field bad[] = {
        { "a..b", F_INT, sizeof(struct record) },
        { "", F_INT, sizeof(struct record) },
        { "a[", F_INT, sizeof(struct record) },
        { "a[=x]", F_INT, sizeof(struct record) },
        { "a[\"\"]", F_INT, sizeof(struct record) },
        { "a", F_INT, 100000 },
        { "a", F_LIST, offsetof(struct pod, containers) },
    };
    struct projector *j = projector_new();
    for (size_t i = 0; i < countof(bad); i++) {
        struct projection *p = NULL;
        err_t e = { 0 };
        struct fields one = { sizeof(struct pod), &bad[i], 1 };
        if (!OK(projection_new(j, &one, 0, &p, &e) == -EINVAL && e.text[0]))
            printf("# taken: %s\n", bad[i].path);
    }
    projector_free(j);
}

/* A NUL would end a name early for C strings, but not for slices. */
static void no_text_holds_a_nul(void)
{
    static const char *const t[] = {
        "{\"metadata\":{\"name\":\"a\\u0000b\",\"resourceVersion\":\"1\"},\"spec\":{\"nodeName\":"
        "\"n\\u0000\",\"affinity\":{\"x\":\"\\u0000\"}}}",
        "{\"me\\u0074adata\":{\"name\":\"a\\u0000b\",\"resourceVersion\":\"1\"},\"spec\":{\"nodeName\":"
        "\"n\\u0000\",\"affinity\":{\"x\":\"\\u0000\"}}}", /* trimming leaves escaped names to the parser */
    };
    setup();
    for (size_t i = 0; i < countof(t); i++) {
        struct record *r;
        err_t e;
        if (!OK_CALL(project(pods, str_c(t[i]), &r, &e), &e))
            continue;
        const struct pod *p = record_as(struct pod, r);
        EQ_STR(r->name, S("a\xef\xbf\xbd"
                          "b"));
        EQ_STR(p->node, S("n\xef\xbf\xbd"));
        OK(str_find(p->spec, S("u0000")) == SIZE_MAX);
        record_unref(r);
    }
    teardown();
}

static size_t peak_labels(size_t n)
{
    auto_buf struct buf text = { 0 };
    struct record *r;
    err_t e;
    buf_put(&text, S("{\"metadata\":{\"name\":\"a\",\"labels\":{"));
    for (size_t i = n; i--;) /* the worst order, and every key twice */
        buf_printf(&text, "\"k%06zu\":\"old\",\"k%06zu\":\"v%zu\"%s", i, i, i, i ? "," : "");
    buf_put(&text, S("}}}"));
    OK_CALL(project(pods, buf_str(&text), &r, &e), &e);
    const struct labels *l = record_as(struct pod, r)->labels;
    size_t kept = l ? l->n : 0;
    EQ_STR(intern_labels_get(l, S("k000003")), S("v3"));
    record_unref(r);
    return kept;
}

static void many_labels_are_sorted_in_time(void)
{
    setup();
    EQ_INT((int64_t)peak_labels(10), 10);
    EQ_INT((int64_t)peak_labels(60000), 60000); /* by insertion: minutes */
    size_t before = projector_bytes(projector);
    EQ_INT((int64_t)before, 0); /* all was given back */
    teardown();
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(no_text_holds_a_nul),
                                        TAP(many_labels_are_sorted_in_time),
                                        TAP(every_type_is_read),
                                        TAP(odd_members_are_absent),
                                        TAP(numbers_do_not_wrap),
                                        TAP(refuses_what_is_no_object),
                                        TAP(same_ignores_the_version),
                                        TAP(labels_are_kept_once),
                                        TAP(watch_lines),
                                        TAP(bad_tables_are_refused),
                                        { 0 } });
}
