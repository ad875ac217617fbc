/* The flags of `flyball operator` and `flyball agent`, with those that the features add. */
#include "../base/clock.h"
#include "../base/log.h"
#include "runtime_internal.h"

#include <stdio.h>

static void add(struct runtime *rt, struct flag flag)
{
    vec_push(&rt->flags, flag);
}

static void add_common(struct runtime *rt)
{
    const struct flag flags[] = {
        { "Which cluster:", NULL, FLAG_TITLE, NULL, NULL },
        { "kubeconfig", "FILE", FLAG_TEXT, &rt->kubeconfig,
          "kubeconfig to use; without it $KUBECONFIG, then the service account of the pod, then "
          "~/.kube/config" },
        { "context", "NAME", FLAG_TEXT, &rt->context,
          "context in it, in place of the current one" },
        { "namespace", "NAME", FLAG_TEXT, &rt->ns,
          "namespace to work from, in place of the context's" },
        { "watch-namespace", "NAME", FLAG_TEXT, &rt->watch_namespace,
          "look only at objects in this namespace; without it at all" },
        { "qps", "NUMBER", FLAG_REAL, &rt->qps, "requests a second to the API server" },
        { "burst", "NUMBER", FLAG_REAL, &rt->burst, "requests at once" },
        { "allow-insecure-token", NULL, FLAG_BOOL, &rt->insecure_token,
          "Send tokens and passwords over plain HTTP to other hosts than loopback too" },
        { "What it shows:", NULL, FLAG_TITLE, NULL, NULL },
        { "listen", "ADDRESS", FLAG_TEXT, &rt->listen,
          "Where /healthz and /readyz are served, and /metrics where the address is loopback; none "
          "for nowhere" },
        { "open-metrics", NULL, FLAG_BOOL, &rt->open_metrics,
          "Serve /metrics at --listen to everybody, without TLS, whatever the address" },
        { "log-level", "LEVEL", FLAG_TEXT, &rt->log_level, "debug, info, warn or error" },
        { "log-format", "FORMAT", FLAG_TEXT, &rt->log_format, "text or json" },
    };
    for (size_t i = 0; i < countof(flags); i++)
        add(rt, flags[i]);
}

static void add_metrics(struct runtime *rt)
{
    struct original *o = &rt->original;
    const struct flag flags[] = {
        { "metrics-bind-address", "ADDRESS", FLAG_TEXT, &o->metrics_listen,
          "Where /metrics is served, in place of --listen; 0 for nowhere" },
        { "metrics-secure", NULL, FLAG_BOOL, &o->secure,
          "There by HTTPS, to those whom the API server allows to get /metrics" },
        { "metrics-cert-path", "DIR", FLAG_TEXT, &o->cert_path,
          "Directory of its certificate (default: a self-signed one is made)" },
        { "metrics-cert-name", "FILE", FLAG_TEXT, &o->cert_name, "Its certificate in there" },
        { "metrics-cert-key", "FILE", FLAG_TEXT, &o->cert_key, "Its key in there" },
        { "enable-http2", NULL, FLAG_BOOL, &o->http2, "HTTP/2 there too" },
    };
    o->secure = true;
    o->cert_name = "tls.crt";
    o->cert_key = "tls.key";
    for (size_t i = 0; i < countof(flags); i++)
        add(rt, flags[i]);
}

static void add_election(struct runtime *rt)
{
    const struct flag flags[] = {
        { "One leader among several:", NULL, FLAG_TITLE, NULL, NULL },
        { "leader-elect", NULL, FLAG_BOOL, &rt->elect, "work only while holding the lease" },
        { "lease-name", "NAME", FLAG_TEXT, &rt->lease_name, "name of the lease" },
        { "lease-namespace", "NAME", FLAG_TEXT, &rt->lease_namespace,
          "where it is; without it where --namespace says" },
        { "lease-duration", "TIME", FLAG_DURATION, &rt->lease_duration_ns,
          "how long others wait for a leader that is silent" },
        { "renew-deadline", "TIME", FLAG_DURATION, &rt->renew_deadline_ns,
          "a leader that could not renew for so long stops" },
        { "retry-period", "TIME", FLAG_DURATION, &rt->retry_period_ns, "between tries" },
    };
    for (size_t i = 0; i < countof(flags); i++)
        add(rt, flags[i]);
}

static void add_settings(struct runtime *rt, const struct feature *feature)
{
    for (const struct feature_setting *s = feature->settings; s && s->name; s++) {
        struct runtime_setting *setting = mem_zero(1, sizeof(*setting));
        *setting = (struct runtime_setting){ s->name, s->value };
        vec_push(&rt->settings, setting);
        if (s == feature->settings)
            add(rt, (struct flag){ feature->summary, NULL, FLAG_TITLE, NULL, NULL });
        add(rt, (struct flag){ s->name, "VALUE", FLAG_TEXT, &setting->value, s->help });
    }
}

static void add_all(struct runtime *rt)
{
    if (rt->spec->on_node)
        add(rt, (struct flag){ "node-name", "NAME", FLAG_TEXT, &rt->node_name,
                               "the node this runs on; without it $NODE_NAME" });
    add(rt, (struct flag){ "controllers", "LIST", FLAG_TEXT, &rt->controllers,
                           "which to run, by name with commas between; * is all, -NAME leaves one "
                           "out" });
    add_common(rt);
    add_metrics(rt);
    if (!rt->spec->on_node) {
        add_election(rt);
        operator_flags_add(rt);
    }
    for (const struct feature *const *f = features; *f; f++)
        if ((*f)->on_node == rt->spec->on_node)
            add_settings(rt, *f);
    add(rt, (struct flag){ 0 });
}

/* ---- --controllers */

bool runtime_wants(const struct runtime *rt, const struct feature *feature)
{
    if (feature->on_node != rt->spec->on_node)
        return false;
    bool wanted = false;
    str word, rest = str_c(rt->controllers);
    while (str_cut(&rest, ',', &word)) {
        word = str_trim(word);
        bool not = str_starts(word, S("-"));
        str name = not ? str_from(word, 1) : word;
        if (str_eq(name, S("*")) || str_eqc(name, feature->name))
            wanted = !not;
    }
    return wanted;
}

static int check_controllers(const struct runtime *rt, err_t *e)
{
    str word, rest = str_c(rt->controllers);
    while (str_cut(&rest, ',', &word)) {
        word = str_trim(word);
        str name = str_starts(word, S("-")) ? str_from(word, 1) : word;
        bool known = str_eq(name, S("*"));
        auto_buf struct buf all = { 0 };
        for (const struct feature *const *f = features; *f; f++) {
            if ((*f)->on_node != rt->spec->on_node)
                continue;
            known |= str_eqc(name, (*f)->name);
            buf_printf(&all, "%s%s", all.n ? ", " : "", (*f)->name);
        }
        if (!known)
            return err_set(e, EINVAL,
                           "--controllers names \"" STR_FMT
                           "\", which does not exist; there is: " STR_FMT,
                           STR_ARG(name), STR_ARG(buf_str(&all)));
    }
    return 0;
}

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
    rt->qps = 20;
    rt->burst = 30;
    add_all(rt);
    int r = flags_parse(rt->flags.at, argc, argv, &rt->help, NULL, e);
    if (r < 0 || rt->help)
        return r;
    if ((r = operator_flags_original(rt, e)) < 0 || /* then what was said counts again */
        (r = flags_parse(rt->flags.at, argc, argv, &rt->help, NULL, e)) < 0 ||
        (r = operator_flags_log(rt, e)) < 0)
        return r;
    if (!rt->node_name)
        rt->node_name = getenv("NODE_NAME");
    if ((r = check_controllers(rt, e)) < 0 || (r = setup_log(rt, e)) < 0)
        return r;
    if (rt->spec->on_node && (!rt->node_name || !*rt->node_name))
        return err_set(e, EINVAL, "which node is this? Say --node-name or set $NODE_NAME");
    operator_flags_tell_idle(rt);
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
    buf_put(&out, S("\nIt ends with 0 when asked to (SIGTERM, SIGINT), with 1 when it cannot go on "
                    "or loses the lease,\nand with 2 when it was called wrongly.\n"));
    fputs(out.p, stdout);
}
