/* flyball install: the manifests that run flyball in a cluster, for `kubectl apply -f -`. They are the files
 * of deploy/, which name the namespace flyball-system and the image flyball; only these two are set here. */
#include "cmd.h"
#include "flags.h"
#include "manifests.h"

#include "../json/yaml.h"

#include <stdio.h>

struct options {
    const char *ns, *image;
    bool crds, monitors;
};

static const char usage[] =
    "Usage: flyball install [FLAGS] | kubectl apply --server-side -f -\n\n"
    "Prints what a cluster needs to run flyball: custom resource definitions, one role a component with\n"
    "the least it needs, the operator's Deployment, the agent's DaemonSet, their services and monitors.\n"
    "Nothing is contacted. The same command with `kubectl delete -f -` takes it away again.\n\nFlags:\n";

static void set_namespace(struct arena *a, struct json *o, str ns)
{
    struct json *meta = json_get(o, "metadata");
    if (str_eqc(json_text(json_get(o, "kind")), "Namespace"))
        json_set_str(a, meta, "name", ns);
    if (json_get(meta, "namespace"))
        json_set_str(a, meta, "namespace", ns);
    const struct json *subjects = json_get(o, "subjects");
    for (size_t i = 0; i < json_len(subjects); i++)
        json_set_str(a, json_item(subjects, i), "namespace", ns);
}

static void set_image(struct arena *a, struct json *o, str image)
{
    const struct json *containers = json_at(o, "spec", "template", "spec", "containers", NULL);
    for (size_t i = 0; i < json_len(containers); i++)
        json_set_str(a, json_item(containers, i), "image", image);
}

static bool is_monitor(const struct json *o)
{
    return str_starts(json_text(json_get(o, "apiVersion")), S("monitoring.coreos.com/"));
}

static int put_manifest(struct buf *out, const struct manifest *m, const struct options *o,
                        err_t *e)
{
    auto_arena struct arena a = { 0 };
    struct json *documents;
    int r = manifest_read(m, &a, &documents, e);
    if (r < 0)
        return r;
    for (size_t i = 0; i < json_len(documents); i++) {
        struct json *object = json_item(documents, i);
        if (is_monitor(object) && !o->monitors)
            continue;
        set_namespace(&a, object, str_c(o->ns));
        set_image(&a, object, str_c(o->image));
        buf_put(out, S("---\n"));
        yaml_write(out, object);
    }
    return 0;
}

static int put_all(struct buf *out, const struct options *o, err_t *e)
{
    int r = 0;
    for (const struct manifest *m = manifests_crds; o->crds && m->name && r >= 0; m++)
        r = put_manifest(out, m, o, e);
    for (const struct manifest *m = manifests_install; m->name && r >= 0; m++)
        r = put_manifest(out, m, o, e);
    return r;
}

/* A DNS label, as the API server wants it: checked here, so that nothing is applied by half. */
static int check_namespace(const char *ns, err_t *e)
{
    size_t n = strlen(ns);
    bool good = n > 0 && n <= 63 && strspn(ns, "abcdefghijklmnopqrstuvwxyz0123456789-") == n &&
                ns[0] != '-' && ns[n - 1] != '-';
    return good ? 0
                : err_set(
                      e, EINVAL,
                      "--namespace is \"%s\", but must be 1 to 63 lower-case letters, digits and "
                      "inner dashes",
                      ns);
}

int cmd_install(int argc, char **argv)
{
    struct options o = { "flyball-system", "flyball:" FLYBALL_VERSION, true, true };
    const struct flag flags[] = {
        { "namespace", "NAME", FLAG_TEXT, &o.ns, "where flyball runs" },
        { "image", "IMAGE", FLAG_TEXT, &o.image, "of both, built with deploy/Containerfile" },
        { "crds", NULL, FLAG_BOOL, &o.crds, "print the custom resource definitions too" },
        { "monitors", NULL, FLAG_BOOL, &o.monitors,
          "print ServiceMonitor and PodMonitor too; --monitors=false where the cluster has no "
          "Prometheus operator" },
        { 0 },
    };
    err_t e = { 0 };
    bool help = false;
    auto_buf struct buf out = { 0 };
    int r = flags_parse(flags, argc, argv, &help, NULL, &e);
    if (r >= 0 && help) {
        buf_put(&out, str_c(usage));
        flags_help(&out, flags);
    } else if (r >= 0 && (r = check_namespace(o.ns, &e)) >= 0) {
        r = put_all(&out, &o, &e);
    }
    if (r < 0) {
        fprintf(stderr, "flyball install: %s\n", e.text);
        return EXIT_USAGE;
    }
    bool written = fwrite(out.p, 1, out.n, stdout) == out.n && fflush(stdout) == 0;
    if (!written)
        fprintf(stderr, "flyball install: standard output: %s\n", strerror(errno));
    return written ? EXIT_SUCCESS : EXIT_FAILURE;
}
