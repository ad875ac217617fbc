/* The connection to Prometheus, from flags, the environment and a ConfigMap.
 *
 *     flags, environment, ConfigMap ─► read_connection ─► check ─► client ─► all feeds start again
 *
 * It is replaced only when a setting changed: an edit of another key must not interrupt the queries. Settings that cannot
 * work (a token without TLS) leave the models without metrics, and s->no_metrics has the sentence for their conditions. */
#include "saturation_state.h"

struct connection {
    const char *url, *token, *token_file, *ca, *cert, *key, *server_name, *skip, *allow_http;
};

/* Flags always win. If a flag or the environment sets the URL, the ConfigMap is ignored; if only
 * the ConfigMap sets it, its other settings win over the environment. */
static struct connection read_connection(const struct saturation *s, const struct json *data)
{
    struct connection c = { 0 };
    const struct {
        const char **to, *flag, *key;
    } all[] = {
        { &c.url, "wva-prometheus-url", "PROMETHEUS_BASE_URL" },
        { &c.token, "", "PROMETHEUS_BEARER_TOKEN" },
        { &c.token_file, "wva-prometheus-token-file", "PROMETHEUS_TOKEN_PATH" },
        { &c.ca, "wva-prometheus-ca-file", "PROMETHEUS_CA_CERT_PATH" },
        { &c.cert, "wva-prometheus-cert-file", "PROMETHEUS_CLIENT_CERT_PATH" },
        { &c.key, "wva-prometheus-key-file", "PROMETHEUS_CLIENT_KEY_PATH" },
        { &c.server_name, "wva-prometheus-server-name", "PROMETHEUS_SERVER_NAME" },
        { &c.skip, "wva-prometheus-skip-verify", "PROMETHEUS_TLS_INSECURE_SKIP_VERIFY" },
        { &c.allow_http, "wva-prometheus-allow-http", "PROMETHEUS_ALLOW_HTTP" },
    };
    for (size_t i = 0; i < countof(all); i++)
        *all[i].to = saturation_options_get(s, all[i].flag, all[i].key);
    bool named = c.url != NULL;
    for (size_t i = 0; !named && i < countof(all); i++) {
        str value = json_text(json_get(data, all[i].key));
        if (value.n && !saturation_options_get(s, all[i].flag, NULL))
            *all[i].to = value.p;
    }
    return c;
}

static int check_connection(const struct connection *c, err_t *e)
{
    bool plain = str_starts(str_c(c->url), S("http://"));
    if (!plain && !str_starts(str_c(c->url), S("https://")))
        return err_set(e, EINVAL, "invalid Prometheus URL \"%s\"; use https://...", c->url);
    if (plain && !(c->allow_http && !strcmp(c->allow_http, "true")))
        return err_set(e, EINVAL,
                       "Prometheus URL \"%s\" does not use TLS; use https:// or set "
                       "PROMETHEUS_ALLOW_HTTP to \"true\"",
                       c->url);
    bool skips = c->skip && !strcmp(c->skip, "true");
    if (plain &&
        (c->token || c->token_file || c->ca || c->cert || c->key || c->server_name || skips))
        return err_set(
            e, EINVAL,
            "Prometheus URL \"%s\" does not use TLS; remove the token and TLS settings or "
            "use https://",
            c->url);
    return 0;
}

/* Creates a client; the TLS context is owned by it afterwards. */
static int open_prometheus(struct saturation *s, const struct connection *c,
                           struct prom_client **ret, err_t *e)
{
    struct tls *tls = NULL;
    bool pair = c->cert && c->key, skips = c->skip && !strcmp(c->skip, "true");
    struct tls_client_options t = { .ca_file = skips ? NULL : c->ca, /* may be unset */
                                    .cert_file = pair ? c->cert : NULL,
                                    .key_file = pair ? c->key : NULL,
                                    .server_name = str_c(c->server_name),
                                    .skip_verify = skips };
    int r = check_connection(c, e);
    if (r == 0 && str_starts(str_c(c->url), S("https://")))
        r = tls_client_new(&t, &tls, e);
    if (r < 0)
        return r;
    struct prom_client_options o = { .url = str_c(c->url),
                                     .tls = tls,
                                     .token = str_c(c->token),
                                     .token_file = c->token ? NULL : c->token_file };
    r = prom_client_new(manager_loop(s->manager), &o, ret, e);
    tls_unref(tls);
    return r;
}

/* Restarts all feeds: their queries went to the old client. */
static void restart_feeds(struct saturation *s, struct prom_client *client)
{
    for (struct map_slot *slot = NULL; (slot = map_next(&s->models, slot));) {
        struct sat_model *m = slot->value;
        collect_stop(&m->feed);
        m->fed = false;
    }
    saturation_probe_stop(s);
    prom_client_free(s->collector.prometheus);
    s->collector.prometheus = client;
    saturation_probe_start(s);
    controller_add(s->engine, S(""), S("cycle"));
}

static bool must_use_prometheus(const struct saturation *s, const char *source)
{
    return source && !strcmp(source, "prometheus") && !s->collector.prometheus;
}

static void set_text(char **to, str from)
{
    free(*to);
    *to = from.n ? mem_dup(from.p, from.n) : NULL;
}

/* A no-op unless a setting changed. On failure metrics are unavailable and s->no_metrics explains
 * why. */
int saturation_prometheus_connect(struct saturation *s, const struct json *data, err_t *e)
{
    const char *source = saturation_options_get(s, "wva-metrics-source", NULL);
    struct connection c = read_connection(s, data);
    auto_buf struct buf made_of = { 0 };
    struct prom_client *client = NULL;
    if (source && strcmp(source, "auto") && strcmp(source, "prometheus") && strcmp(source, "pods"))
        return err_set(e, EINVAL,
                       "invalid --wva-metrics-source \"%s\"; use auto, prometheus or pods", source);
    if (source && !strcmp(source, "pods"))
        c.url = NULL;
    const char *const parts[] = { c.url, c.token,       c.token_file, c.ca,        c.cert,
                                  c.key, c.server_name, c.skip,       c.allow_http };
    for (size_t i = 0; i < countof(parts); i++)
        buf_printf(&made_of, "%s\n", parts[i] ? parts[i] : "");
    if (s->connection && str_eqc(buf_str(&made_of), s->connection))
        return 0;
    set_text(&s->connection, buf_str(&made_of));
    set_text(&s->no_metrics, S(""));
    int r = c.url ? open_prometheus(s, &c, &client, e) : 0;
    if (r < 0)
        set_text(&s->no_metrics, str_c(e->text));
    restart_feeds(s, client);
    if (r == 0 && must_use_prometheus(s, source))
        set_text(&s->no_metrics, S("the URL of Prometheus is not set; set PROMETHEUS_BASE_URL"));
    return r;
}
