/* The process flags of the Workload-Variant-Autoscaler (WVA), so that its manifests work with
 * another image and command: `flyball operator --wva`, with the same arguments and environment.
 *
 * These flags are always accepted. With --wva, WVA's defaults apply, and the environment
 * variable of a flag (--metrics-secure: METRICS_SECURE) and the keys of --config-file have the
 * same meaning as in WVA: a flag overrides the variable, which overrides the file. Controllers
 * read some of these keys from the environment themselves, so the file is copied into it. */
#include "../base/clock.h"
#include "../base/file.h"
#include "../base/log.h"
#include "../json/yaml.h"
#include "runtime_internal.h"

enum { CONFIG_FILE_MAX = 1 << 20 };

/* Adds WVA's flags and sets the defaults that are the same with and without --wva. */
void operator_flags_add(struct runtime *rt)
{
    struct wva_flags *o = &rt->wva;
    const struct flag flags[] = {
        { "Compatibility with the Workload-Variant-Autoscaler:", NULL, FLAG_TITLE, NULL, NULL },
        { "wva", NULL, FLAG_BOOL, &o->enabled,
          "Act as a drop-in replacement for WVA: its defaults, its environment, only the controller "
          "saturation" },
        { "config-file", "FILE", FLAG_TEXT, &o->config_file,
          "YAML file with settings that --wva otherwise reads from the environment" },
        { "health-probe-bind-address", "ADDRESS", FLAG_TEXT, &o->health_listen,
          "Address to serve /healthz and /readyz on, instead of --listen; 0: none (default: ports 8080 "
          "and 8081)" },
        { "leader-election-id", "NAME", FLAG_TEXT, &rt->lease_name, "Same as --lease-name" },
        { "leader-election-lease-duration", "TIME", FLAG_DURATION, &rt->lease_duration_ns,
          "Same as --lease-duration" },
        { "leader-election-renew-deadline", "TIME", FLAG_DURATION, &rt->renew_deadline_ns,
          "Same as --renew-deadline" },
        { "leader-election-retry-period", "TIME", FLAG_DURATION, &rt->retry_period_ns,
          "Same as --retry-period" },
        { "rest-client-timeout", "TIME", FLAG_DURATION, &rt->timeout_ns,
          "Timeout of a request to the API server" },
        { "v", "NUMBER", FLAG_INT, &o->verbosity, "Verbosity; 4 or more is --log-level debug" },
        { "zap-log-level", "LEVEL", FLAG_TEXT, &o->zap_level,
          "Log level: debug, info, error or a number" },
        { "zap-encoder", "FORMAT", FLAG_TEXT, &o->zap_encoder, "Log format: json or console" },
        { "zap-devel", NULL, FLAG_BOOL, &o->zap_devel, "Same as --log-level debug" },
    };
    static const char *const ignored[] = { "webhook-cert-path", "webhook-cert-name",
                                           "webhook-cert-key", "zap-stacktrace-level",
                                           "zap-time-encoding" };
    static_assert(countof(ignored) <= countof(o->ignored), "each ignored flag needs a target");
    o->verbosity = 2;
    rt->timeout_ns = 60 * NS_PER_S;
    for (size_t i = 0; i < countof(flags); i++)
        vec_push(&rt->flags, flags[i]);
    for (size_t i = 0; i < countof(ignored); i++)
        vec_push(&rt->flags, ((struct flag){ ignored[i], "VALUE", FLAG_TEXT, &o->ignored[i],
                                             "Accepted for compatibility; ignored" }));
}

/* ---- --wva */

/* Copies the scalar values of the file into the environment; variables that are set already win. */
static int read_config_file(const char *path, err_t *e)
{
    auto_buf struct buf text = { 0 };
    auto_arena struct arena a = { 0 };
    struct json *tree = NULL;
    if (file_read(path, CONFIG_FILE_MAX, &text, e) < 0)
        return -e->code;
    if (yaml_parse(&a, buf_str(&text), &tree, e) < 0)
        return err_wrap(e, "--config-file %s", path);
    json_each(m, tree) {
        str value = m->value->type == JSON_STR ? json_text(m->value) : json_to_str(&a, m->value);
        auto_buf struct buf key = { 0 }, copy = { 0 };
        buf_put(&key, m->key);
        buf_put(&copy, value);
        if (m->value->type != JSON_NULL && m->value->type <= JSON_STR && value.n && m->key.n &&
            setenv(key.p, copy.p, 0) < 0)
            return err_set(e, errno,
                           "--config-file %s: key \"%s\" is not a valid name of a variable", path,
                           key.p);
    }
    return 0;
}

/* Flags that have a variable in WVA. Our own flags have none: $NAMESPACE, for instance, may mean
 * anything. */
static bool has_variable(const char *name)
{
    static const char *const names[] = { "metrics-",        "webhook-", "health-",
                                         "leader-elect",    "rest-",    "enable-http2",
                                         "watch-namespace", "v" };
    for (size_t i = 0; i < countof(names); i++)
        if (str_starts(str_c(name), str_c(names[i])) && (names[i][1] || !name[1]))
            return true;
    return false;
}

/* Sets flags from the variables that WVA reads. */
static int read_environment(struct runtime *rt, err_t *e)
{
    VEC(struct flag) flags = { 0 };
    for (const struct flag *f = rt->flags.at; f->name; f++)
        if (f->kind != FLAG_TITLE && has_variable(f->name))
            vec_push(&flags, *f);
    vec_push(&flags, (struct flag){ 0 });
    int r = flags_from_env(flags.at, e);
    vec_done(&flags);
    return r;
}

int operator_flags_apply_wva(struct runtime *rt, err_t *e)
{
    struct wva_flags *o = &rt->wva;
    if (!o->enabled)
        return 0;
    rt->controllers = "saturation";
    rt->elect = false;
    rt->lease_name = "72dd1cf1.llm-d.ai";
    rt->lease_duration_ns = 60 * NS_PER_S;
    rt->renew_deadline_ns = 50 * NS_PER_S;
    rt->retry_period_ns = 10 * NS_PER_S;
    for (size_t i = 0; i < rt->settings.n; i++)
        if (!strcmp(rt->settings.at[i]->name, "wva-prometheus-probe"))
            rt->settings.at[i]->value = "true";
    o->metrics_listen = "0";
    o->health_listen = OPERATOR_PROBES;
    if (o->config_file && *o->config_file && read_config_file(o->config_file, e) < 0)
        return -e->code;
    return read_environment(rt, e);
}

/* ---- effects */

/* Maps klog's verbosity and zap's flags to --log-level and --log-format. */
int operator_flags_apply_log(struct runtime *rt, err_t *e)
{
    struct wva_flags *o = &rt->wva;
    int64_t number = 0;
    if (o->zap_encoder)
        rt->log_format = strcmp(o->zap_encoder, "console") != 0 ? o->zap_encoder : "text";
    if (o->zap_level && str_to_i64(str_c(o->zap_level), &number) < 0)
        rt->log_level = !strcmp(o->zap_level, "panic") ? "error" : o->zap_level;
    if (o->verbosity < 0)
        return err_set(e, EINVAL, "--v is %lld, but must be 0 or more", (long long)o->verbosity);
    if (o->verbosity >= 4 || number > 0 || o->zap_devel)
        rt->log_level = "debug";
    return 0;
}

/* One line with all flags and variables that have no effect here, so that a migration does not fail
 * silently. */
void operator_flags_log_ignored(const struct runtime *rt)
{
    static const char *const variables[] = { "POOL_GROUP",
                                             "SCALE_FROM_ZERO_ENGINE_MAX_CONCURRENCY",
                                             "PROMETHEUS_METRICS_CACHE_ENABLED",
                                             "PROMETHEUS_METRICS_CACHE_CLEANUP_INTERVAL",
                                             "PROMETHEUS_METRICS_CACHE_STALE_THRESHOLD",
                                             "PROMETHEUS_METRICS_CACHE_MAX_SIZE",
                                             "LOG_LEVEL" };
    auto_buf struct buf names = { 0 };
    for (const struct flag *f = rt->flags.at; f->name; f++)
        for (size_t i = 0; i < countof(rt->wva.ignored); i++)
            if (f->target == &rt->wva.ignored[i] && rt->wva.ignored[i])
                buf_printf(&names, "%s--%s", names.n ? ", " : "", f->name);
    for (size_t i = 0; rt->wva.enabled && i < countof(variables); i++) {
        const char *value = getenv(variables[i]);
        if (value && *value && strcmp(value, "false") != 0)
            buf_printf(&names, "%s$%s", names.n ? ", " : "", variables[i]);
    }
    if (names.n)
        log_info("settings without effect ignored", KV("settings", buf_str(&names)));
}
