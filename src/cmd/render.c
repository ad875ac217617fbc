/* flyball render: shows the runtime configuration and the route of AIMServices, from files only.
 *
 *      read_file()         documents of -c and -f
 *        complete_object() what the API server would add: schema defaults, namespace, uid
 *      render_service()    per AIMService: runtimeconfig_answer(), the controller's own decision
 *        report as comments, then the HTTPRoute as YAML
 *
 * Because of the second step, hash and path are those of a cluster. The output is valid YAML, so
 * it can be piped to kubectl. All documents live in one arena until the command ends. */
#include "cmd.h"

#include "../base/file.h"
#include "../json/yaml.h"
#include "../runtimeconfig/aim_kinds.h"
#include "../runtimeconfig/runtimeconfig_report_core.h"
#include "../runtimeconfig/service_children_core.h"
#include "flags.h"
#include "manifest_fields.h"

#include <stdio.h>

enum { RENDER_BYTES_MAX = 4 << 20 };

struct render {
    const char *file, *config, *ns, *operator_ns, *group, *encoding_name;
    enum aim_path_encoding encoding;
    bool explain;
    struct arena arena;
    struct json *documents; /* all that were read */
    struct buf out;
    size_t services, failures;
};

static const char usage[] =
    "Usage: flyball render -f FILE [-c FILE] [FLAGS]\n\n"
    "Renders AIMServices without a cluster: the runtime configuration of each, its hash, the HTTP path\n"
    "and the HTTPRoute. FILE is YAML or JSON; - is standard input. Both files may contain services,\n"
    "configurations and templates. The exit code is 1 if a service would be degraded.\n\nFlags:\n";

/* ---- reading */

/* Sets the defaults of a schema, as the API server would. */
static void set_defaults(struct arena *a, const struct json *schema, struct json *value)
{
    if (json_is(value, JSON_ARR))
        for (uint32_t i = 0; i < value->n; i++)
            set_defaults(a, json_get(schema, "items"), value->items[i]);
    if (!json_is(value, JSON_OBJ))
        return;
    json_each(p, json_get(schema, "properties")) {
        const struct json *otherwise = json_get(p->value, "default");
        struct json *member = json_get_str(value, p->key);
        if (!member && otherwise) {
            member = json_copy(a, otherwise);
            json_set(a, value, p->key, member);
        }
        set_defaults(a, p->value, member);
    }
}

/* The schema of an object in the embedded CRDs, also if it has the newer group of AIM; NULL for other kinds. */
static const struct json *find_schema(struct arena *a, const struct json *object)
{
    str api_version = json_text(json_get(object, "apiVersion"));
    if (str_starts(api_version, S(AIM_GROUP_NEWER)))
        api_version = S(AIM_GROUP);
    return manifest_schema(a, api_version, json_text(json_get(object, "kind")));
}

/* Refuses fields that the API server would refuse: a misspelled one would be ignored silently. */
static int check_fields(struct render *r, const char *file, const struct json *object, err_t *e)
{
    auto_buf struct buf problems = { 0 };
    size_t n = manifest_unknown_fields(&problems, find_schema(&r->arena, object), object);
    if (!n)
        return 0;
    fputs(problems.p, stderr);
    return err_set(e, EINVAL, "%s: " STR_FMT " " STR_FMT " has unknown fields", file,
                   STR_ARG(json_text(json_get(object, "kind"))),
                   STR_ARG(json_text(json_at(object, "metadata", "name", NULL))));
}

static bool is_cluster_kind(str kind)
{
    return str_starts(kind, S("AIMCluster"));
}

/* Adds what the API server would add before the operator sees the object. */
static void complete_object(struct render *r, struct json *object)
{
    struct arena *a = &r->arena;
    struct json *metadata = json_make(a, object, "metadata", NULL);
    str kind = json_text(json_get(object, "kind"));
    if (!is_cluster_kind(kind) && !json_get(metadata, "namespace"))
        json_set_str(a, metadata, "namespace", str_c(r->ns));
    if (str_eqc(kind, "AIMService") && !json_get(metadata, "uid"))
        json_set_str(a, metadata, "uid", S("00000000-0000-0000-0000-000000000000"));
    set_defaults(a, json_at(find_schema(a, object), "properties", "spec", NULL),
                 json_make(a, object, "spec", NULL));
}

/* Appends the documents of a file or of standard input. */
static int read_file(struct render *r, const char *file, err_t *e)
{
    auto_buf struct buf text = { 0 };
    struct json *documents;
    const char *path = strcmp(file, "-") ? file : "/dev/stdin";
    if (file_read(path, RENDER_BYTES_MAX, &text, e) < 0)
        return -e->code;
    if (yaml_parse_all(&r->arena, buf_str(&text), NULL, &documents, e) < 0)
        return err_wrap(e, "%s", file);
    for (size_t i = 0; i < json_len(documents); i++) {
        struct json *object = json_item(documents, i);
        if (!json_is(object, JSON_OBJ))
            return err_set(e, EINVAL, "%s: document %zu is not an object", file, i + 1);
        if (check_fields(r, file, object, e) < 0)
            return -e->code;
        complete_object(r, object);
        json_push(&r->arena, r->documents, object);
    }
    return 0;
}

/* Finds a document by kind and name, and by namespace unless that is empty. */
static const struct json *find_object(const struct render *r, const char *kind, str ns, str name)
{
    for (size_t i = 0; i < json_len(r->documents); i++) {
        const struct json *o = json_item(r->documents, i), *metadata = json_get(o, "metadata");
        if (str_eqc(json_text(json_get(o, "kind")), kind) &&
            str_eq(json_text(json_get(metadata, "name")), name) &&
            (!ns.n || str_eq(json_text(json_get(metadata, "namespace")), ns)))
            return o;
    }
    return NULL;
}

/* ---- rendering */

/* The template that the service names, from the files if it is there. */
static struct aim_route_template find_template(const struct render *r, const struct json *service)
{
    const struct json *spec = json_get(service, "spec");
    str ns = json_text(json_at(service, "metadata", "namespace", NULL));
    str name = json_text(json_get(spec, "templateRef"));
    name = name.n ? name : json_text(json_at(spec, "template", "name", NULL));
    const struct json *t = find_object(r, "AIMServiceTemplate", ns, name);
    t = t ? t : find_object(r, "AIMClusterServiceTemplate", S(""), name);
    const struct json *source = json_item(json_at(t, "spec", "modelSources", NULL), 0);
    str model = json_text(json_at(t, "spec", "modelName", NULL));
    return (struct aim_route_template){
        .ready = true,
        .name = name,
        .model_name = model.n ? model : json_text(json_at(spec, "model", "ref", NULL)),
        .source_name = aim_service_source_id(source)
    };
}

static void put_commented(struct buf *out, str text)
{
    for (str line; str_cut(&text, '\n', &line) && text.p;)
        buf_printf(out, "# " STR_FMT "\n", STR_ARG(line));
}

/* Appends the report of a service as comments, and its route as YAML. */
static void render_service(struct render *r, const struct json *service)
{
    str name = json_text(json_at(service, "spec", "runtimeConfigName", NULL));
    str ns = json_text(json_at(service, "metadata", "namespace", NULL));
    struct runtimeconfig_case c = {
        .group = r->group,
        .service = service,
        .operator_ns = str_c(r->operator_ns),
        .in_namespace = find_object(r, "AIMRuntimeConfig", ns, name),
        .in_cluster = find_object(r, "AIMClusterRuntimeConfig", S(""), name),
        .cluster_default =
            find_object(r, "AIMClusterRuntimeConfig", S(""), S(RUNTIMECONFIG_DEFAULT)),
        .template = find_template(r, service),
        .encoding = r->encoding,
    };
    auto_buf struct buf report = { 0 };
    struct runtimeconfig_answer answer = runtimeconfig_answer(&r->arena, &c);
    runtimeconfig_report(&report, &c, &answer, r->explain);
    if (r->services++)
        buf_put(&r->out, S("---\n"));
    put_commented(&r->out, buf_str(&report));
    if (answer.route)
        yaml_write(&r->out, answer.route);
    r->failures += answer.fails;
    buf_done(&answer.trace);
}

/* Renders all services of both files; degraded services are an error, but all are shown. */
static int render_files(struct render *r, err_t *e)
{
    r->documents = json_new_arr(&r->arena);
    int failed = r->config ? read_file(r, r->config, e) : 0;
    failed = failed ? failed : read_file(r, r->file, e);
    if (failed)
        return failed;
    for (size_t i = 0; i < json_len(r->documents); i++)
        if (str_eqc(json_text(json_get(json_item(r->documents, i), "kind")), "AIMService"))
            render_service(r, json_item(r->documents, i));
    fputs(r->out.p ? r->out.p : "", stdout);
    if (!r->services)
        return err_set(e, ENOENT, "%s contains no AIMService", r->file);
    if (r->failures)
        return err_set(e, EINVAL, "%zu of %zu services would be degraded", r->failures,
                       r->services);
    return 0;
}

static void print_help(const struct flag *flags)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, str_c(usage));
    flags_help(&text, flags);
    fputs(text.p, stdout);
}

/* Reads all manifests before it resolves anything: a service may come before the configuration that it refers
 * to. */
int cmd_render(int argc, char **argv)
{
    struct render r = { .ns = "default",
                        .operator_ns = "kaiwo-system",
                        .group = AIM_GROUP,
                        .encoding_name = "rfc3986" };
    const struct flag flags[] = {
        { "file", "FILE", FLAG_TEXT, &r.file, "File with the services to render", .letter = 'f' },
        { "config", "FILE", FLAG_TEXT, &r.config, "File with runtime configurations",
          .letter = 'c' },
        { "explain", NULL, FLAG_BOOL, &r.explain, "Show the value of every placeholder" },
        { "namespace", "NAME", FLAG_TEXT, &r.ns, "Namespace of objects that have none",
          .letter = 'n' },
        { "aim-group", "GROUP", FLAG_TEXT, &r.group, "API group of AIM" },
        { "aim-path-encoding", "NAME", FLAG_TEXT, &r.encoding_name,
          "Encoding of paths: rfc3986 or rfc1123" },
        { 0 },
    };
    bool help = false;
    err_t e;
    if (flags_parse(flags, argc, argv, &help, NULL, &e) < 0)
        return fprintf(stderr, "flyball render: %s\n", e.text), EXIT_USAGE;
    if (help)
        return print_help(flags), EXIT_SUCCESS;
    if (!r.file)
        return fputs(
                   "flyball render: --file is missing; it names the services to render; see --help\n",
                   stderr),
               EXIT_USAGE;
    if (!aim_kinds(r.group))
        return fprintf(stderr, "flyball render: --aim-group is \"%s\", but must be %s or %s\n",
                       r.group, AIM_GROUP, AIM_GROUP_NEWER),
               EXIT_USAGE;
    int failed = aim_path_encoding_parse(str_c(r.encoding_name), &r.encoding, &e);
    failed = failed ? failed : render_files(&r, &e);
    if (failed)
        fprintf(stderr, "flyball render: %s\n", e.text);
    buf_done(&r.out);
    arena_done(&r.arena);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
