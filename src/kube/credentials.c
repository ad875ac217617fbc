/* See credentials.h. The `authorization` header is built when its source changes and only copied per
 * request. There are three sources:
 *
 *   static       token or username and password of the config: set once
 *   token file   reread before a request, at most every 50 s; also after a 401
 *   exec plugin  a child process; requests wait until it has printed an ExecCredential
 *
 * Invariant: at most one plugin process runs, and after a failure none is started for 10 s. on_change is
 * always called from the loop, never from inside credentials_ready(), so the client may send or fail calls
 * in it. The texts of the plugin's last result live in `answer_arena`, which is replaced as a whole. */
#include "credentials.h"

#include "../base/base64.h"
#include "../base/file.h"
#include "../base/rfc3339.h"
#include "../base/vec.h"
#include "../json/json.h"
#include "../net/loop.h"

#include <unistd.h>

enum { TOKEN_MAX_BYTES = 64 << 10 };

static const int64_t reread_ns = 50 * NS_PER_S, plugin_pause_ns = 10 * NS_PER_S;

struct credentials {
    struct loop *loop;
    const struct kube_config *config;
    credentials_fn *on_change;
    void *context;
    struct buf header; /* "Bearer ..." or "Basic ..." */
    int64_t read_ns;   /* mono: when the token file was last read; 0: never */
    struct arena answer_arena;
    struct exec_answer answer; /* of the plugin */
    bool has_answer;
    struct child *plugin;    /* running */
    int64_t plugin_pause_ns; /* mono: do not start the plugin before this time */
    err_t plugin_failure;
    struct timer retry;
};

static void set_header(struct credentials *cr, const char *scheme, str value)
{
    buf_clear(&cr->header);
    if (value.n)
        buf_printf(&cr->header, "%s " STR_FMT, scheme, STR_ARG(value));
}

static void set_basic(struct credentials *cr)
{
    auto_buf struct buf pair = { 0 }, text = { 0 };
    buf_printf(&pair, STR_FMT ":" STR_FMT, STR_ARG(cr->config->username),
               STR_ARG(cr->config->password));
    base64_encode(&text, buf_str(&pair));
    set_header(cr, "Basic", buf_str(&text));
}

struct credentials *credentials_new(struct loop *loop, const struct kube_config *c,
                                    credentials_fn *on_change, void *context)
{
    struct credentials *cr = mem_zero(1, sizeof(*cr));
    cr->loop = loop;
    cr->config = c;
    cr->on_change = on_change;
    cr->context = context;
    if (c->token.n)
        set_header(cr, "Bearer", c->token);
    else if (c->username.n)
        set_basic(cr);
    return cr;
}

void credentials_free(struct credentials *cr)
{
    if (!cr)
        return;
    if (cr->plugin)
        child_kill(cr->plugin);
    timer_stop(&cr->retry);
    buf_done(&cr->header);
    arena_done(&cr->answer_arena);
    free(cr);
}

/* ---- token files */

static void read_token_file(struct credentials *cr)
{
    int64_t now = loop_mono_ns(cr->loop);
    if (cr->read_ns && now - cr->read_ns < reread_ns)
        return;
    auto_buf struct buf text = { 0 };
    if (file_read(cr->config->token_file.p, TOKEN_MAX_BYTES, &text, NULL) < 0)
        return; /* keep the old token; the next request tries again */
    str token = str_trim(buf_str(&text));
    if (!token.n)
        return;
    cr->read_ns = now;
    set_header(cr, "Bearer", token);
}

/* ---- plugins */

static int get_pem(struct arena *a, const struct json *status, const char *key, str *ret, err_t *e)
{
    /* plain PEM, or base64 as some plugins print it */
    str text = json_text(json_get(status, key));
    if (!text.n || str_find(text, S("-----BEGIN")) != SIZE_MAX) {
        *ret = text;
        return 0;
    }
    auto_buf struct buf bytes = { 0 };
    if (base64_decode(&bytes, text) < 0)
        return err_set(e, EINVAL, "status.%s is not PEM", key);
    *ret = arena_str(a, buf_str(&bytes));
    return 0;
}

int credentials_parse_answer(struct arena *a, str text, struct exec_answer *ret, err_t *e)
{
    struct json *root;
    struct exec_answer answer = { .expires_ns = INT64_MAX };
    int r = json_parse(a, text, &root, e);
    if (r < 0)
        return r;
    if (!str_eq(json_text(json_get(root, "kind")), S("ExecCredential")))
        return err_set(e, EINVAL, "kind is \"" STR_FMT "\", but must be ExecCredential",
                       STR_ARG(str_upto(json_text(json_get(root, "kind")), 60)));
    const struct json *status = json_get(root, "status");
    answer.token = json_text(json_get(status, "token"));
    if ((r = get_pem(a, status, "clientCertificateData", &answer.cert_pem, e)) < 0 ||
        (r = get_pem(a, status, "clientKeyData", &answer.key_pem, e)) < 0)
        return r;
    if (!answer.token.n && (!answer.cert_pem.n || !answer.key_pem.n))
        return err_set(e, EINVAL,
                       "status has neither a token nor clientCertificateData with clientKeyData");
    str expires = json_text(json_get(status, "expirationTimestamp"));
    if (expires.n && rfc3339_parse_ns(expires, &answer.expires_ns, e) < 0)
        return err_wrap(e, "status.expirationTimestamp");
    *ret = answer;
    return 0;
}

static bool answer_is_fresh(const struct credentials *cr)
{
    return cr->has_answer && loop_wall_ns(cr->loop) < cr->answer.expires_ns;
}

static void set_plugin_failure(struct credentials *cr, const struct child_result *result)
{
    const struct exec_plugin *x = cr->config->exec;
    str words = str_trim(result->errors);
    size_t line = str_find_char(words, '\n');
    if (result->timed_out)
        err_set(&cr->plugin_failure, ETIMEDOUT, "timed out");
    else if (result->signal)
        err_set(&cr->plugin_failure, EIO, "killed by signal %d", result->signal);
    else if (result->exit_status)
        err_set(&cr->plugin_failure, EIO, "exited with status %d: " STR_FMT, result->exit_status,
                STR_ARG(str_upto(words, MIN(line, (size_t)200))));
    err_wrap(&cr->plugin_failure, "credential plugin " STR_FMT, STR_ARG(x->command));
}

/* Stores the new credential and reports whether the client certificate changed, or reports the failure. */
static void on_plugin_exit(void *context, const struct child_result *result)
{
    struct credentials *cr = context;
    cr->plugin = NULL;
    struct arena arena = { 0 };
    struct exec_answer answer;
    bool ok = !result->timed_out && !result->signal && !result->exit_status &&
              credentials_parse_answer(&arena, result->out, &answer, &cr->plugin_failure) == 0;
    if (!ok) {
        set_plugin_failure(cr, result);
        arena_done(&arena);
        cr->plugin_pause_ns = loop_mono_ns(cr->loop) + plugin_pause_ns;
        cr->on_change(cr->context, cr->plugin_failure.text, false);
        return;
    }
    bool cert =
        cr->has_answer ? !str_eq(cr->answer.cert_pem, answer.cert_pem) : answer.cert_pem.n > 0;
    arena_done(&cr->answer_arena);
    cr->answer_arena = arena;
    cr->answer = answer;
    /* use even an expired credential for a while, or the plugin would run in a loop */
    cr->answer.expires_ns = MAX(answer.expires_ns, loop_wall_ns(cr->loop) + plugin_pause_ns);
    cr->has_answer = true;
    set_header(cr, "Bearer", answer.token);
    cr->on_change(cr->context, NULL, cert);
}

static str make_exec_info(const struct exec_plugin *x, struct arena *a)
{
    struct json *q = json_new_obj(a);
    json_set_str(a, q, "apiVersion", x->api_version);
    json_set_str(a, q, "kind", S("ExecCredential"));
    struct json *spec = json_make(a, q, "spec", NULL);
    json_set_bool(a, spec, "interactive", false);
    struct json *cluster;
    if (x->cluster_json.n && json_parse(a, x->cluster_json, &cluster, NULL) == 0)
        json_set(a, spec, S("cluster"), cluster);
    return json_to_str(a, q);
}

typedef VEC(const char *) words;

/* Runs the plugin with the arguments and environment of the kubeconfig plus KUBERNETES_EXEC_INFO. */
static int plugin_start(struct credentials *cr, err_t *e)
{
    const struct exec_plugin *x = cr->config->exec;
    auto_arena struct arena a = { 0 };
    words argv = { 0 }, env = { 0 };
    vec_push(&argv, x->command.p);
    for (size_t i = 0; i < x->arg_count; i++)
        vec_push(&argv, x->args[i].p);
    vec_push(&argv, NULL);
    /* the config's come first: getenv() returns the first match */
    for (size_t i = 0; i < x->env_count; i++)
        vec_push(&env, arena_printf(&a, STR_FMT "=" STR_FMT, STR_ARG(x->env[i].name),
                                    STR_ARG(x->env[i].value))
                           .p);
    vec_push(&env,
             arena_printf(&a, "KUBERNETES_EXEC_INFO=" STR_FMT, STR_ARG(make_exec_info(x, &a))).p);
    for (char **var = environ; *var; var++)
        vec_push(&env, *var);
    vec_push(&env, NULL);
    struct child_options options = {
        .argv = argv.at, .env = env.at, .on_exit = on_plugin_exit, .context = cr
    };
    int r = child_start(cr->loop, &options, &cr->plugin, e);
    vec_done(&argv);
    vec_done(&env);
    if (r < 0)
        return err_wrap(e, "credential plugin " STR_FMT "%s" STR_FMT, STR_ARG(x->command),
                        x->install_hint.n ? ": " : "", STR_ARG(x->install_hint));
    return 0;
}

/* Reports the failure from the loop, not from inside the caller. */
static void on_failure_deferred(struct timer *timer)
{
    struct credentials *cr = container_of(timer, struct credentials, retry);
    cr->on_change(cr->context, cr->plugin_failure.text, false);
}

static void request_plugin_run(struct credentials *cr)
{
    if (cr->plugin || timer_is_set(&cr->retry))
        return;
    int64_t now = loop_mono_ns(cr->loop);
    if (now >= cr->plugin_pause_ns && plugin_start(cr, &cr->plugin_failure) == 0)
        return;
    cr->plugin_pause_ns = MAX(cr->plugin_pause_ns, now + plugin_pause_ns);
    timer_set(cr->loop, &cr->retry, now, on_failure_deferred);
}

/* ---- interface for the client */

bool credentials_ready(struct credentials *cr)
{
    if (!cr->config->exec || answer_is_fresh(cr))
        return true;
    request_plugin_run(cr);
    return false;
}

void credentials_authorize(struct credentials *cr, struct http_header_list *list)
{
    if (cr->config->token_file.n && !cr->config->exec)
        read_token_file(cr);
    if (cr->header.n)
        http_header_list_add(list, S("authorization"), buf_str(&cr->header));
    if (cr->config->impersonate.n)
        http_header_list_add(list, S("impersonate-user"), cr->config->impersonate);
}

/* The next request rereads the token file or runs the plugin again. */
void credentials_refused(struct credentials *cr)
{
    cr->read_ns = 0;
    cr->answer.expires_ns = 0;
}

void credentials_cert(const struct credentials *cr, str *ret_cert_pem, str *ret_key_pem)
{
    *ret_cert_pem = cr->answer.cert_pem;
    *ret_key_pem = cr->answer.key_pem;
}
