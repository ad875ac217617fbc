/* The live page of `flyball operator --web-listen`.
 *
 * Users log in with a token whose user RBAC allows to get /flyball/page through the same two reviews as
 * /metrics; docs/page.md shows the role. An address without a host is loopback, for `kubectl port-forward`. Any other
 * host is served over HTTPS with the certificate of --metrics-cert-path, or a self-signed one, because the token of
 * a user must not cross a network in plain text. */
#include "../base/log.h"
#include "../web/web.h"
#include "runtime_internal.h"

static void authorize_page(void *context, str token, struct exchange *x,
                           void (*serve)(void *context, struct exchange *x), void *serve_context)
{
    guard_pass_token(context, token, x, serve, serve_context);
}

int runtime_web(struct runtime *rt, err_t *e)
{
    if (runtime_is_none(rt->web_listen))
        return 0;
    auto_free char *text = mem_dup(rt->web_listen, strlen(rt->web_listen));
    const char *address = NULL;
    struct tls *tls = NULL;
    uint16_t port;
    int r = flags_split_listen("web-listen", text, &address, &port, e);
    if (r < 0)
        return r;
    if (address && !uri_host_is_loopback(str_c(address)) && (r = runtime_make_tls(rt, &tls, e)) < 0)
        return err_wrap(e, "--web-listen %s", rt->web_listen);
    rt->web_guard = guard_new(rt->kube, "/flyball/page");
    r = web_new(&(struct web_options){ .manager = rt->manager,
                                       .address = address,
                                       .port = port,
                                       .tls = tls,
                                       .authorize = authorize_page,
                                       .context = rt->web_guard },
                &rt->web, e);
    bool secure = tls != NULL;
    tls_unref(tls);
    if (r < 0)
        return err_wrap(e, "--web-listen %s", rt->web_listen);
    log_info("serving the page", KV_C("address", address ? address : "127.0.0.1"),
             KV_INT("port", web_port(rt->web)), KV_C("tls", secure ? "yes" : "no"));
    return 0;
}

void runtime_web_stop(struct runtime *rt, int64_t limit_ns)
{
    if (!rt->web)
        return;
    rt->draining++;
    web_stop(rt->web, limit_ns, runtime_on_drained, rt);
}

void runtime_web_done(struct runtime *rt)
{
    guard_free(rt->web_guard); /* first: its pending exchanges belong to the page's server */
    web_free(rt->web);
}
