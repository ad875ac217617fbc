/* Parses kubeconfig documents: merges them, selects a context and resolves its cluster and user. This file does
 * no I/O; config.c reads the files.
 *
 *     texts --yaml--> sources --current-context--> context --> cluster, user --> struct kube_config
 *
 * Entries are merged by name and the first file wins, which is the same as searching the files in order, so no
 * merged document is built. Every error names the file and the field. The tables of `struct member` are the
 * grammar. Parsed trees live in a temporary arena; all texts of the result are copied into the config's. */
#include "config.h"

#include "../base/base64.h"
#include "../json/yaml.h"

struct source {
    str path;
    struct json *root;
};

/* A named entry that was found, and the file it is from. */
struct entry {
    str path;          /* of the file */
    const char *list;  /* "clusters" */
    const char *inner; /* "cluster" */
    str name;
    const struct json *value;
};

struct load {
    struct kube_config *config;
    struct source *sources;
    size_t n;
    err_t *e;
};

/* ---- typed members, with errors that name the field */

static int fail_wrong_type(struct load *l, const struct entry *in, const char *key,
                           const struct json *found, const char *wanted)
{
    return err_set(l->e, EINVAL, STR_FMT ": %s[" STR_FMT "].%s.%s is %s %s, but must be %s",
                   STR_ARG(in->path), in->list, STR_ARG(in->name), in->inner, key,
                   strchr("aeio", json_type_name(found)[0]) ? "an" : "a", json_type_name(found),
                   wanted);
}

static bool is_absent(const struct json *v)
{
    return !v || v->type == JSON_NULL;
}

static int get_text(struct load *l, const struct entry *in, const char *key, void *ret)
{
    const struct json *v = json_get(in->value, key);
    if (is_absent(v))
        return 0;
    if (v->type != JSON_STR)
        return fail_wrong_type(l, in, key, v, "a string");
    *(str *)ret = arena_str(&l->config->arena, json_text(v));
    return 0;
}

static int get_bool(struct load *l, const struct entry *in, const char *key, void *ret)
{
    const struct json *v = json_get(in->value, key);
    if (is_absent(v))
        return 0;
    if (v->type != JSON_BOOL)
        return fail_wrong_type(l, in, key, v, "true or false");
    *(bool *)ret = v->boolean;
    return 0;
}

static int get_base64(struct load *l, const struct entry *in, const char *key, void *ret)
{
    str text = { 0 };
    int r = get_text(l, in, key, &text);
    if (r < 0 || !text.n)
        return r;
    auto_buf struct buf bytes = { 0 };
    if (base64_decode(&bytes, text) < 0)
        return err_set(l->e, EINVAL, STR_FMT ": %s[" STR_FMT "].%s.%s is not valid base64",
                       STR_ARG(in->path), in->list, STR_ARG(in->name), in->inner, key);
    *(str *)ret = arena_str(&l->config->arena, buf_str(&bytes));
    return 0;
}

/* A relative path is relative to the folder of the file that contains it. */
static str resolve_path(struct arena *a, str file, str path)
{
    size_t slash = file.n;
    while (slash && file.p[slash - 1] != '/')
        slash--;
    if (!path.n || path.p[0] == '/' || !slash)
        return path;
    return arena_printf(a, STR_FMT STR_FMT, STR_ARG(str_upto(file, slash)), STR_ARG(path));
}

static int get_path(struct load *l, const struct entry *in, const char *key, void *ret)
{
    str path = { 0 };
    int r = get_text(l, in, key, &path);
    if (r >= 0 && path.n)
        *(str *)ret = resolve_path(&l->config->arena, in->path, path);
    return r;
}

/* Which member goes where: the tables below are the grammar. */
struct member {
    const char *key;
    int (*get)(struct load *l, const struct entry *in, const char *key, void *ret);
    size_t offset;
};

static int get_members(struct load *l, const struct entry *in, const struct member *members,
                       void *into)
{
    for (const struct member *m = members; m->key; m++) {
        int r = m->get(l, in, m->key, (char *)into + m->offset);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- finding entries */

/* All names in a list of all files: "a, b". */
static str names_of(struct load *l, const char *list)
{
    auto_buf struct buf names = { 0 };
    for (size_t i = 0; i < l->n; i++) {
        const struct json *entries = json_get(l->sources[i].root, list);
        for (size_t k = 0; k < json_len(entries) && names.n < 200; k++)
            buf_printf(&names, "%s" STR_FMT, names.n ? ", " : "",
                       STR_ARG(json_text(json_get(json_item(entries, k), "name"))));
    }
    return arena_str(&l->config->arena, names.n ? buf_str(&names) : S("none"));
}

/* Finds the named entry in the first file that has it; fails with the available names otherwise. */
static int find_entry(struct load *l, const char *list, const char *inner, str name,
                      struct entry *ret)
{
    for (size_t i = 0; i < l->n; i++) {
        const struct json *entries = json_get(l->sources[i].root, list);
        if (!is_absent(entries) && entries->type != JSON_ARR)
            return err_set(l->e, EINVAL, STR_FMT ": %s must be a list", STR_ARG(l->sources[i].path),
                           list);
        for (size_t k = 0; k < json_len(entries); k++) {
            const struct json *entry = json_item(entries, k);
            if (!str_eq(json_text(json_get(entry, "name")), name))
                continue;
            *ret = (struct entry){ l->sources[i].path, list, inner,
                                   arena_str(&l->config->arena, name), json_get(entry, inner) };
            if (!json_is(ret->value, JSON_OBJ))
                return err_set(l->e, EINVAL, STR_FMT ": %s[" STR_FMT "] has no %s",
                               STR_ARG(ret->path), list, STR_ARG(name), inner);
            return 0;
        }
    }
    return err_set(l->e, ENOENT, STR_FMT ": %s \"" STR_FMT "\" not found; available: " STR_FMT,
                   STR_ARG(l->sources[0].path), inner, STR_ARG(name), STR_ARG(names_of(l, list)));
}

/* ---- the parts of a config */

static int reject_member(struct load *l, const struct entry *in, const char *key, const char *why)
{
    if (is_absent(json_get(in->value, key)))
        return 0;
    return err_set(l->e, EINVAL, STR_FMT ": %s[" STR_FMT "].%s.%s is set, but %s",
                   STR_ARG(in->path), in->list, STR_ARG(in->name), in->inner, key, why);
}

#define AT(field) offsetof(struct kube_config, field)

/* Address and trust of the API server. Settings that would change where traffic goes but are not supported
 * are errors, not ignored. */
static int read_cluster(struct load *l, const struct entry *in)
{
    static const struct member members[] = {
        { "server", get_text, AT(server) },
        { "certificate-authority-data", get_base64, AT(ca_pem) },
        { "certificate-authority", get_path, AT(ca_file) },
        { "tls-server-name", get_text, AT(tls_server_name) },
        { "insecure-skip-tls-verify", get_bool, AT(skip_verify) },
        { 0 },
    };
    struct kube_config *c = l->config;
    int r = get_members(l, in, members, c);
    if (r < 0)
        return r;
    if (!c->server.n)
        return err_set(l->e, EINVAL,
                       STR_FMT ": clusters[" STR_FMT "].cluster.server is missing; set it to an "
                               "address such as https://10.0.0.1:6443",
                       STR_ARG(in->path), STR_ARG(in->name));
    return reject_member(l, in, "proxy-url", "proxies are not supported");
}

/* Arguments and environment of the plugin, copied into the config. */
static int read_exec_args(struct load *l, const struct entry *in, struct exec_plugin *x)
{
    const struct json *args = json_get(in->value, "args"), *env = json_get(in->value, "env");
    struct arena *a = &l->config->arena;
    str *texts = arena_array(a, json_len(args), sizeof(str));
    for (size_t i = 0; i < json_len(args); i++) {
        const struct json *arg = json_item(args, i);
        if (!json_is(arg, JSON_STR))
            return fail_wrong_type(l, in, "args", args, "a list of strings");
        texts[i] = arena_str(a, json_text(arg));
    }
    struct exec_env *pairs = arena_array(a, json_len(env), sizeof(*pairs));
    for (size_t i = 0; i < json_len(env); i++) {
        const struct json *pair = json_item(env, i);
        pairs[i].name = arena_str(a, json_text(json_get(pair, "name")));
        pairs[i].value = arena_str(a, json_text(json_get(pair, "value")));
        if (!pairs[i].name.n || str_find_char(pairs[i].name, '=') != SIZE_MAX ||
            !json_is(json_get(pair, "value"), JSON_STR))
            return fail_wrong_type(l, in, "env", env,
                                   "a list of names and values that are strings");
    }
    x->args = texts;
    x->arg_count = json_len(args);
    x->env = pairs;
    x->env_count = json_len(env);
    return 0;
}

/* spec.cluster of the ExecCredential, for plugins with provideClusterInfo. */
static str cluster_info(struct load *l, const struct entry *cluster)
{
    struct arena *a = &l->config->arena;
    struct kube_config *c = l->config;
    struct json *info = json_new_obj(a);
    json_set_str(a, info, "server", c->server);
    if (c->tls_server_name.n)
        json_set_str(a, info, "tls-server-name", c->tls_server_name);
    if (c->skip_verify)
        json_set_bool(a, info, "insecure-skip-tls-verify", true);
    if (c->ca_pem.n) {
        auto_buf struct buf text = { 0 };
        base64_encode(&text, c->ca_pem);
        json_set_str(a, info, "certificate-authority-data", buf_str(&text));
    }
    const struct json *extensions = json_get(cluster->value, "extensions");
    for (size_t i = 0; i < json_len(extensions); i++) {
        const struct json *one = json_item(extensions, i);
        if (str_eq(json_text(json_get(one, "name")), S("client.authentication.k8s.io/exec")))
            json_set(a, info, S("config"), json_copy(a, json_get(one, "extension")));
    }
    return json_to_str(a, info);
}

/* The exec plugin of the user, if any. The plugin runs without a terminal, so interactiveMode Always is an error. */
static int read_exec(struct load *l, const struct entry *user, const struct entry *cluster)
{
    static const struct member members[] = {
        { "command", get_text, offsetof(struct exec_plugin, command) },
        { "apiVersion", get_text, offsetof(struct exec_plugin, api_version) },
        { "installHint", get_text, offsetof(struct exec_plugin, install_hint) },
        { "provideClusterInfo", get_bool, offsetof(struct exec_plugin, provide_cluster_info) },
        { 0 },
    };
    const struct json *exec = json_get(user->value, "exec");
    if (is_absent(exec))
        return 0;
    struct entry in = *user;
    in.inner = "user.exec";
    in.value = exec;
    struct exec_plugin *x = arena_new(&l->config->arena, struct exec_plugin);
    int r = get_members(l, &in, members, x);
    if (r >= 0)
        r = read_exec_args(l, &in, x);
    if (r < 0)
        return r;
    if (!x->command.n)
        return fail_wrong_type(l, &in, "command", NULL, "the name of a program");
    if (!str_eq(x->api_version, S("client.authentication.k8s.io/v1")) &&
        !str_eq(x->api_version, S("client.authentication.k8s.io/v1beta1")))
        return err_set(l->e, EINVAL,
                       STR_FMT ": users[" STR_FMT "].user.exec.apiVersion is \"" STR_FMT
                               "\", but must be client.authentication.k8s.io/v1 or v1beta1",
                       STR_ARG(in.path), STR_ARG(in.name), STR_ARG(x->api_version));
    if (str_eq(json_text(json_get(exec, "interactiveMode")), S("Always")))
        return reject_member(l, &in, "interactiveMode", "interactive plugins are not supported");
    if (str_find_char(x->command, '/') != SIZE_MAX)
        x->command = resolve_path(&l->config->arena, in.path, x->command);
    if (x->provide_cluster_info)
        x->cluster_json = cluster_info(l, cluster);
    l->config->exec = x;
    return 0;
}

/* Client certificate, token or password. A certificate without its key, or the reverse, is an error. */
static int read_user(struct load *l, const struct entry *in)
{
    static const struct member members[] = {
        { "client-certificate-data", get_base64, AT(cert_pem) },
        { "client-certificate", get_path, AT(cert_file) },
        { "client-key-data", get_base64, AT(key_pem) },
        { "client-key", get_path, AT(key_file) },
        { "token", get_text, AT(token) },
        { "tokenFile", get_path, AT(token_file) },
        { "username", get_text, AT(username) },
        { "password", get_text, AT(password) },
        { "as", get_text, AT(impersonate) },
        { 0 },
    };
    struct kube_config *c = l->config;
    int r = get_members(l, in, members, c);
    if (r < 0)
        return r;
    bool has_cert = c->cert_pem.n || c->cert_file.n, has_key = c->key_pem.n || c->key_file.n;
    if (has_cert != has_key)
        return err_set(l->e, EINVAL,
                       STR_FMT ": users[" STR_FMT "].user has a client %s but no client %s",
                       STR_ARG(in->path), STR_ARG(in->name), has_cert ? "certificate" : "key",
                       has_cert ? "key" : "certificate");
    return reject_member(l, in, "auth-provider", "only exec plugins are supported");
}

/* ---- all together */

static int parse_all(struct load *l, struct arena *trees, const str *texts, const str *paths)
{
    for (size_t i = 0; i < l->n; i++) {
        struct source *s = &l->sources[i];
        s->path = arena_str(&l->config->arena, paths[i]);
        if (yaml_parse(trees, texts[i], &s->root, l->e) < 0)
            return err_wrap(l->e, STR_FMT, STR_ARG(paths[i]));
        if (s->root->type != JSON_OBJ && s->root->type != JSON_NULL)
            return err_set(l->e, EINVAL,
                           STR_FMT " is not a kubeconfig: expected a mapping with clusters, users "
                                   "and contexts",
                           STR_ARG(paths[i]));
    }
    return 0;
}

static int pick_context(struct load *l, const char *wanted, struct entry *ret)
{
    str name = str_c(wanted);
    for (size_t i = 0; i < l->n && !name.n; i++)
        name = json_text(json_get(l->sources[i].root, "current-context"));
    if (!name.n)
        return err_set(l->e, EINVAL,
                       STR_FMT ": current-context is not set; pass --context; available: " STR_FMT,
                       STR_ARG(l->sources[0].path), STR_ARG(names_of(l, "contexts")));
    return find_entry(l, "contexts", "context", name, ret);
}

struct names {
    str cluster, user, ns;
};

/* Fills the config from the selected context, its cluster and its user. */
static int build_config(struct load *l, const struct kube_config_options *o)
{
    static const struct member members[] = {
        { "cluster", get_text, offsetof(struct names, cluster) },
        { "user", get_text, offsetof(struct names, user) },
        { "namespace", get_text, offsetof(struct names, ns) },
        { 0 },
    };
    struct kube_config *c = l->config;
    struct entry context, cluster, user;
    struct names names = { .ns = S("default") };
    int r = pick_context(l, o->context, &context);
    if (r < 0 || (r = get_members(l, &context, members, &names)) < 0)
        return r;
    if ((r = find_entry(l, "clusters", "cluster", names.cluster, &cluster)) < 0 ||
        (r = read_cluster(l, &cluster)) < 0)
        return r;
    if (names.user.n && ((r = find_entry(l, "users", "user", names.user, &user)) < 0 ||
                         (r = read_user(l, &user)) < 0 || (r = read_exec(l, &user, &cluster)) < 0))
        return r;
    c->ns = names.ns;
    if (o->ns && *o->ns)
        c->ns = arena_str(&c->arena, str_c(o->ns));
    c->where = arena_printf(&c->arena, STR_FMT ", context \"" STR_FMT "\"", STR_ARG(context.path),
                            STR_ARG(context.name));
    return 0;
}

int kube_config_parse(const str *texts, const str *paths, size_t n,
                      const struct kube_config_options *options, struct kube_config **ret, err_t *e)
{
    assert(n);
    auto_arena struct arena trees = { 0 };
    err_t unused;
    struct kube_config *c = mem_zero(1, sizeof(*c));
    struct load l = { c, arena_array(&trees, n, sizeof(struct source)), n, e ? e : &unused };
    int r = parse_all(&l, &trees, texts, paths);
    if (r >= 0)
        r = build_config(&l, options);
    if (r < 0) {
        kube_config_free(c);
        return r;
    }
    *ret = c;
    return 0;
}

void kube_config_free(struct kube_config *c)
{
    if (!c)
        return;
    arena_done(&c->arena);
    free(c);
}
