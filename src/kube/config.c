/* Finds the config: files named by flag, environment or home directory, or the service account of the pod.
 * kubeconfig.c parses the documents. */
#include "config.h"

#include "../base/file.h"
#include "../base/vec.h"

#include <unistd.h>

enum { FILE_MAX_BYTES = 4 << 20, FILES_MAX = 64 };

static const char account_dir[] = "/var/run/secrets/kubernetes.io/serviceaccount";

struct files {
    struct arena arena;
    VEC(str) paths;
    VEC(str) texts;
};

static void files_done(struct files *f)
{
    arena_done(&f->arena);
    vec_done(&f->paths);
    vec_done(&f->texts);
}

/* A missing file is skipped if `may_lack`; every other failure is returned. */
static int files_add(struct files *f, str path, bool may_lack, err_t *e)
{
    auto_buf struct buf text = { 0 };
    str name = arena_str(&f->arena, path);
    int r = file_read(name.p, FILE_MAX_BYTES, &text, e);
    if (r == -ENOENT && may_lack)
        return 0;
    if (r < 0)
        return err_wrap(e, "kubeconfig");
    vec_push(&f->paths, name);
    vec_push(&f->texts, arena_str(&f->arena, buf_str(&text)));
    return 0;
}

static int files_parse(struct files *f, const struct kube_config_options *o,
                       struct kube_config **ret, err_t *e)
{
    return kube_config_parse(f->texts.at, f->paths.at, f->paths.n, o, ret, e);
}

static int from_environment(struct files *f, str list, const struct kube_config_options *o,
                            struct kube_config **ret, err_t *e)
{
    str path, rest = list;
    while (str_cut(&rest, ':', &path)) {
        int r = path.n && f->paths.n < FILES_MAX ? files_add(f, path, true, e) : 0;
        if (r < 0)
            return r;
    }
    if (!f->paths.n)
        return err_set(e, ENOENT, "none of the files in $KUBECONFIG exists: " STR_FMT,
                       STR_ARG(list));
    return files_parse(f, o, ret, e);
}

static int from_home(struct files *f, const struct kube_config_options *o, struct kube_config **ret,
                     err_t *e)
{
    const char *home = getenv("HOME");
    str path = arena_printf(&f->arena, "%s/.kube/config", home ? home : "");
    int r = files_add(f, path, true, e);
    if (r < 0)
        return r;
    if (!f->paths.n)
        return err_set(e, ENOENT,
                       "no kubeconfig found: " STR_FMT " does not exist, $KUBECONFIG is not set, "
                       "and this is not a pod; pass --kubeconfig FILE",
                       STR_ARG(path));
    return files_parse(f, o, ret, e);
}

static int apply_namespace(const struct kube_config_options *o, struct kube_config *c)
{
    if (o->ns && *o->ns)
        c->ns = arena_str(&c->arena, str_c(o->ns));
    return 0;
}

int kube_config_load(const struct kube_config_options *o, struct kube_config **ret, err_t *e)
{
    __attribute__((cleanup(files_done))) struct files f = { 0 };
    const char *list = getenv("KUBECONFIG"), *host = getenv("KUBERNETES_SERVICE_HOST");
    if (o->kubeconfig && *o->kubeconfig) {
        int r = files_add(&f, str_c(o->kubeconfig), false, e);
        return r < 0 ? r : files_parse(&f, o, ret, e);
    }
    if (list && *list)
        return from_environment(&f, str_c(list), o, ret, e);
    if (host && *host && !o->context) {
        int r =
            kube_config_in_cluster(account_dir, host, getenv("KUBERNETES_SERVICE_PORT"), ret, e);
        return r < 0 ? r : apply_namespace(o, *ret);
    }
    return from_home(&f, o, ret, e);
}

/* The token must be readable now; the CA file is read when the client is created. */
int kube_config_in_cluster(const char *dir, const char *host, const char *port,
                           struct kube_config **ret, err_t *e)
{
    struct kube_config *c = mem_zero(1, sizeof(*c));
    struct arena *a = &c->arena;
    bool is_v6 = strchr(host, ':') != NULL;
    c->where = S("the service account of this pod");
    c->server = arena_printf(a, "https://%s%s%s:%s", is_v6 ? "[" : "", host, is_v6 ? "]" : "",
                             port && *port ? port : "443");
    c->token_file = arena_printf(a, "%s/token", dir);
    c->ca_file = arena_printf(a, "%s/ca.crt", dir);
    auto_buf struct buf ns = { 0 };
    int r = file_read(arena_printf(a, "%s/namespace", dir).p, 256, &ns, NULL);
    c->ns =
        r < 0 || !str_trim(buf_str(&ns)).n ? S("default") : arena_str(a, str_trim(buf_str(&ns)));
    if (access(c->token_file.p, R_OK) < 0) {
        r = err_set(e, errno, "running in a pod, but cannot read its token %s: %s", c->token_file.p,
                    strerror(errno));
        kube_config_free(c);
        return r;
    }
    *ret = c;
    return 0;
}
