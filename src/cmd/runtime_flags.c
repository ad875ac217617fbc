/* The flags of `flyball operator` and `flyball agent`, including those of the features.
 *
 * The table is built at run time: common flags, metrics, leader election, compatibility with
 * WVA, then one group per feature from its settings. A feature declares a setting with name,
 * default and help, and reads it with manager_setting(); it does not know about flags.
 *
 * The table is parsed twice: the first pass finds --wva, which changes defaults and reads the
 * environment; the second lets explicit flags override both. */
#include "../base/clock.h"
#include "../base/log.h"
#include "runtime_internal.h"

#include <stdio.h>

static void add_flag(struct runtime *rt, struct flag flag)
{
    vec_push(&rt->flags, flag);
}

/* Flags of both commands. */
static void add_common_flags(struct runtime *rt)
{
    const struct flag flags[] = {
        { "Cluster:", NULL, FLAG_TITLE, NULL, NULL },
        { "kubeconfig", "FILE", FLAG_TEXT, &rt->kubeconfig,
          "Path of the kubeconfig (default: $KUBECONFIG, then the service account of the pod, then "
          "~/.kube/config)" },
        { "context", "NAME", FLAG_TEXT, &rt->context,
          "Context of the kubeconfig (default: the current one)" },
        { "namespace", "NAME", FLAG_TEXT, &rt->ns,
          "Namespace of flyball itself (default: that of the context or the pod)" },
        { "watch-namespace", "NAME", FLAG_TEXT, &rt->watch_namespace,
          "Only watch objects in this namespace (default: all namespaces)" },
        { "qps", "NUMBER", FLAG_REAL, &rt->qps,
          "Maximum requests per second to the API server; 0: as many as its latency permits" },
        { "burst", "NUMBER", FLAG_REAL, &rt->burst,
          "Maximum burst of requests with --qps; 0: the requests of one second" },
        { "allow-insecure-token", NULL, FLAG_BOOL, &rt->insecure_token,
          "Send tokens and passwords over plain HTTP, even to hosts that are not loopback" },
        { "Metrics, health and logs:", NULL, FLAG_TITLE, NULL, NULL },
        { "listen", "ADDRESS", FLAG_TEXT, &rt->listen,
          "Address to serve /healthz and /readyz on, and /metrics if the address is loopback; none: do "
          "not listen" },
        { "open-metrics", NULL, FLAG_BOOL, &rt->open_metrics,
          "Serve /metrics on --listen to all clients, without TLS, whatever the address" },
        { "log-level", "LEVEL", FLAG_TEXT, &rt->log_level,
          "Log level: debug, info, warn or error" },
        { "log-format", "FORMAT", FLAG_TEXT, &rt->log_format, "Log format: text or json" },
    };
    for (size_t i = 0; i < countof(flags); i++)
        add_flag(rt, flags[i]);
}

/* Flags of both commands, with the names of controller-runtime. */
static void add_metrics_flags(struct runtime *rt)
{
    struct wva_flags *o = &rt->wva;
    const struct flag flags[] = {
        { "metrics-bind-address", "ADDRESS", FLAG_TEXT, &o->metrics_listen,
          "Address to serve /metrics on, instead of --listen; 0: do not serve it" },
        { "metrics-secure", NULL, FLAG_BOOL, &o->secure,
          "Serve /metrics over HTTPS to clients authorized by RBAC" },
        { "metrics-cert-path", "DIR", FLAG_TEXT, &o->cert_path,
          "Directory of the certificate (default: self-signed)" },
        { "metrics-cert-name", "FILE", FLAG_TEXT, &o->cert_name, "File name of the certificate" },
        { "metrics-cert-key", "FILE", FLAG_TEXT, &o->cert_key, "File name of the private key" },
        { "enable-http2", NULL, FLAG_BOOL, &o->http2, "Enable HTTP/2 for /metrics" },
    };
    o->secure = true;
    o->cert_name = "tls.crt";
    o->cert_key = "tls.key";
    for (size_t i = 0; i < countof(flags); i++)
        add_flag(rt, flags[i]);
}

/* Flags of the operator: an agent works for its own node and needs no leader. */
static void add_election_flags(struct runtime *rt)
{
    const struct flag flags[] = {
        { "Leader election:", NULL, FLAG_TITLE, NULL, NULL },
        { "leader-elect", NULL, FLAG_BOOL, &rt->elect, "Work only while holding the lease" },
        { "lease-name", "NAME", FLAG_TEXT, &rt->lease_name, "Name of the lease" },
        { "lease-namespace", "NAME", FLAG_TEXT, &rt->lease_namespace,
          "Namespace of the lease (default: --namespace)" },
        { "lease-duration", "TIME", FLAG_DURATION, &rt->lease_duration_ns,
          "Time until another replica takes over from a leader that stopped renewing" },
        { "renew-deadline", "TIME", FLAG_DURATION, &rt->renew_deadline_ns,
          "Step down if the lease is not renewed within this time" },
        { "retry-period", "TIME", FLAG_DURATION, &rt->retry_period_ns,
          "Time between attempts to acquire or renew the lease" },
    };
    for (size_t i = 0; i < countof(flags); i++)
        add_flag(rt, flags[i]);
}

/* What the help calls the value of a feature's flag: the flags are named after what they take. */
static const char *value_name(const struct feature_setting *s)
{
    static const struct {
        const char *end, *value;
    } names[] = { { "-ca", "FILE" },        { "-file", "FILE" },      { "-dir", "DIR" },
                  { "-root", "DIR" },       { "-url", "URL" },        { "-map", "NAME" },
                  { "-name", "NAME" },      { "-namespace", "NAME" }, { "-listen", "ADDRESS" },
                  { "-timeout", "TIME" },   { "-interval", "TIME" },  { "-max", "NUMBER" },
                  { "-namespaces", "LIST" } };
    bool is_switch = s->value && (!strcmp(s->value, "true") || !strcmp(s->value, "false"));
    if (is_switch || strstr(s->help, "if true"))
        return "true|false";
    for (size_t i = 0; i < countof(names); i++)
        if (str_ends(str_c(s->name), str_c(names[i].end)))
            return names[i].value;
    return "VALUE";
}

/* Adds one group per feature. Values are owned by the runtime, because
 * the table points to them. */
static void add_settings(struct runtime *rt, const struct feature *feature)
{
    for (const struct feature_setting *s = feature->settings; s && s->name; s++) {
        struct runtime_setting *setting = mem_zero(1, sizeof(*setting));
        *setting = (struct runtime_setting){ s->name, s->value };
        vec_push(&rt->settings, setting);
        if (s == feature->settings)
            add_flag(rt, (struct flag){ feature->name, NULL, FLAG_TITLE, NULL, feature->summary });
        add_flag(rt, (struct flag){ s->name, value_name(s), FLAG_TEXT, &setting->value, s->help });
    }
}

/* Builds the table in the order of the help. */
static void build_flags(struct runtime *rt)
{
    if (rt->spec->on_node)
        add_flag(rt, (struct flag){ "node-name", "NAME", FLAG_TEXT, &rt->node_name,
                                    "Name of the node (default: $NODE_NAME)" });
    add_flag(rt,
             (struct flag){ "controllers", "LIST", FLAG_TEXT, &rt->controllers,
                            "Comma-separated controllers to run; * is all, -NAME excludes one" });
    add_common_flags(rt);
    add_metrics_flags(rt);
    if (!rt->spec->on_node) {
        add_flag(rt,
                 (struct flag){ "web-listen", "ADDRESS", FLAG_TEXT, &rt->web_listen,
                                "Address to serve the live page on, to users authorized by RBAC; "
                                "over HTTPS unless it is loopback (default: none)" });
        add_election_flags(rt);
        operator_flags_add(rt);
    }
    for (const struct feature *const *f = features; *f; f++)
        if ((*f)->on_node == rt->spec->on_node)
            add_settings(rt, *f);
    add_flag(rt, (struct flag){ 0 });
}

/* ---- --controllers */

/* Evaluates the list from left to right, so that "*,-market" means all but market. */
bool runtime_list_has(const char *list, const char *controller)
{
    bool wanted = false;
    str word, rest = str_c(list);
    while (str_cut(&rest, ',', &word)) {
        word = str_trim(word);
        bool exclude = str_starts(word, S("-"));
        str name = exclude ? str_from(word, 1) : word;
        if (str_eq(name, S("*")) || str_eqc(name, controller))
            wanted = !exclude;
    }
    return wanted;
}

bool runtime_is_enabled(const struct runtime *rt, const struct feature *feature)
{
    return feature->on_node == rt->spec->on_node &&
           runtime_list_has(rt->controllers, feature->name);
}

/* Rejects names that no feature has: a typo must not disable a controller silently. */
int runtime_list_check(const char *list, bool on_node, err_t *e)
{
    str word, rest = str_c(list);
    while (str_cut(&rest, ',', &word)) {
        word = str_trim(word);
        str name = str_starts(word, S("-")) ? str_from(word, 1) : word;
        bool known = str_eq(name, S("*"));
        auto_buf struct buf all = { 0 };
        for (const struct feature *const *f = features; *f; f++) {
            if ((*f)->on_node != on_node)
                continue;
            known |= str_eqc(name, (*f)->name);
            buf_printf(&all, "%s%s", all.n ? ", " : "", (*f)->name);
        }
        if (!known)
            return err_set(e, EINVAL,
                           "--controllers contains \"" STR_FMT
                           "\", which does not exist; must be one of " STR_FMT,
                           STR_ARG(name), STR_ARG(buf_str(&all)));
    }
    return 0;
}

/* Logging starts only after the flags are valid; errors before are printed as text. */
static int setup_log(const struct runtime *rt, err_t *e)
{
    enum log_level level;
    if (log_level_parse(str_c(rt->log_level), &level) < 0)
        return err_set(e, EINVAL, "--log-level is \"%s\", but must be debug, info, warn or error",
                       rt->log_level);
    bool json = !strcmp(rt->log_format, "json");
    if (!json && strcmp(rt->log_format, "text") != 0)
        return err_set(e, EINVAL, "--log-format is \"%s\", but must be text or json",
                       rt->log_format);
    log_setup(level, json ? LOG_JSON : LOG_TEXT);
    return 0;
}

/* Reads the flags twice: with --wva, other defaults are set in between, which explicit flags override. */
int runtime_flags(struct runtime *rt, int argc, char **argv, err_t *e)
{
    rt->controllers = "*";
    rt->listen = rt->spec->on_node ? "0.0.0.0:8082" : OPERATOR_LISTEN;
    rt->log_level = "info";
    rt->log_format = "text";
    rt->lease_name = "flyball-operator";
    rt->elect = !rt->spec->on_node;
    rt->lease_duration_ns = 15 * NS_PER_S;
    rt->renew_deadline_ns = 10 * NS_PER_S;
    rt->retry_period_ns = 2 * NS_PER_S;
    build_flags(rt);
    int r = flags_parse(rt->flags.at, argc, argv, &rt->help, NULL, e);
    if (r < 0 || rt->help)
        return r;
    if ((r = operator_flags_apply_wva(rt, e)) < 0 || /* explicit flags override it */
        (r = flags_parse(rt->flags.at, argc, argv, &rt->help, NULL, e)) < 0 ||
        (r = operator_flags_apply_log(rt, e)) < 0)
        return r;
    if (!rt->node_name)
        rt->node_name = getenv("NODE_NAME");
    if ((r = runtime_list_check(rt->controllers, rt->spec->on_node, e)) < 0 ||
        (r = setup_log(rt, e)) < 0)
        return r;
    if (rt->spec->on_node && (!rt->node_name || !*rt->node_name))
        return err_set(e, EINVAL, "node name unknown; set --node-name or $NODE_NAME");
    operator_flags_log_ignored(rt);
    return 0;
}

void runtime_flags_done(struct runtime *rt)
{
    for (size_t i = 0; i < rt->settings.n; i++)
        free(rt->settings.at[i]);
    vec_done(&rt->settings);
    vec_done(&rt->flags);
}

void runtime_help(const struct runtime *rt)
{
    auto_buf struct buf out = { 0 };
    buf_printf(&out, "Usage: flyball %s [FLAGS]\n\n%s\n\nControllers:\n", rt->spec->name,
               rt->spec->summary);
    for (const struct feature *const *f = features; *f; f++)
        if ((*f)->on_node == rt->spec->on_node)
            buf_printf(&out, "  %-16s%s\n", (*f)->name, (*f)->summary);
    buf_put(&out, S("\nFlags:\n"));
    flags_help(&out, rt->flags.at);
    buf_put(
        &out,
        S("\nExit codes: 0 after SIGTERM or SIGINT, 1 on failure or if the lease is lost, 2 on a "
          "usage error.\n"));
    fputs(out.p, stdout);
}
