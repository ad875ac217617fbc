/* Name lookups for the client, on libuv's thread pool (getaddrinfo blocks). Numeric addresses need
 * no lookup, but are also reported later in the turn, so that callers see one order of events. */
#include "client_internal.h"
#include "loop_internal.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>

enum { ADDRESSES_MAX = 16 };

struct dial_lookup {
    uv_getaddrinfo_t request;
    struct deferred numeric; /* for a numeric address: reports it later in this turn */
    struct loop *loop;
    char *host;
    struct dial_address address;
    void (*done)(void *owner, const struct dial_address *addresses, size_t n, const err_t *why);
    void *owner; /* `done` is NULL after a cancel */
};

static void dial_lookup_free(struct dial_lookup *l)
{
    free(l->host);
    free(l);
}

static size_t copy_addresses(const struct addrinfo *list, struct dial_address *ret)
{
    size_t n = 0;
    for (const struct addrinfo *a = list; a && n < ADDRESSES_MAX; a = a->ai_next) {
        if (a->ai_addrlen > sizeof(ret[n].at))
            continue;
        memcpy(&ret[n].at, a->ai_addr, a->ai_addrlen);
        ret[n++].n = a->ai_addrlen;
    }
    return n;
}

/* On the loop's thread. A canceled lookup ends here too, and frees itself silently. */
static void on_looked_up(uv_getaddrinfo_t *request, int status, struct addrinfo *list)
{
    struct dial_lookup *l = request->data;
    struct dial_address addresses[ADDRESSES_MAX];
    size_t n = status < 0 ? 0 : copy_addresses(list, addresses);
    err_t e;
    l->loop->jobs--;
    loop_release(l->loop);
    if (n == 0)
        err_set(&e, EHOSTUNREACH, "cannot resolve host name %s: %s", l->host,
                status < 0 ? uv_strerror(status) : "it has no address");
    if (l->done)
        l->done(l->owner, n ? addresses : NULL, n, n ? NULL : &e);
    uv_freeaddrinfo(list);
    dial_lookup_free(l);
}

static void on_numeric(struct deferred *d)
{
    struct dial_lookup *l = container_of(d, struct dial_lookup, numeric);
    l->done(l->owner, &l->address, 1, NULL);
    dial_lookup_free(l);
}

/* True for an IPv4 or IPv6 address in numbers. */
static bool parse_numeric(const char *host, uint16_t port, struct dial_address *ret)
{
    struct sockaddr_in *in = (void *)&ret->at;
    struct sockaddr_in6 *in6 = (void *)&ret->at;
    if (inet_pton(AF_INET, host, &in->sin_addr) == 1) {
        in->sin_family = AF_INET;
        in->sin_port = htons(port);
        ret->n = sizeof(*in);
        return true;
    }
    if (inet_pton(AF_INET6, host, &in6->sin6_addr) == 1) {
        in6->sin6_family = AF_INET6;
        in6->sin6_port = htons(port);
        ret->n = sizeof(*in6);
        return true;
    }
    return false;
}

struct dial_lookup *dial_lookup_start(struct loop *loop, str host, uint16_t port,
                                      void (*done)(void *owner,
                                                   const struct dial_address *addresses, size_t n,
                                                   const err_t *why),
                                      void *owner)
{
    struct dial_lookup *l = mem_zero(1, sizeof(*l));
    l->loop = loop;
    l->host = mem_dup(host.p, host.n);
    l->done = done;
    l->owner = owner;
    if (parse_numeric(l->host, port, &l->address)) {
        loop_defer(loop, LOOP_SOON, &l->numeric, on_numeric);
        return l;
    }
    char service[8];
    snprintf(service, sizeof(service), "%d", port);
    struct addrinfo hints = { .ai_socktype = SOCK_STREAM, .ai_flags = AI_ADDRCONFIG };
    l->request.data = l;
    loop->jobs++;
    loop_hold(loop);
    int r = uv_getaddrinfo(&loop->uv, &l->request, on_looked_up, l->host, service, &hints);
    assert(r == 0); /* fails only for missing or overlong arguments, which uri_parse() excludes */
    (void)r;
    return l;
}

void dial_lookup_cancel(struct dial_lookup *l)
{
    if (!l)
        return;
    l->done = NULL;
    if (l->numeric.next) {
        loop_cancel_deferred(&l->numeric);
        dial_lookup_free(l);
    } else {
        uv_cancel((uv_req_t *)&l->request);
    }
}
