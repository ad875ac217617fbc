/* A server that answers with a function of the test, and a client for it: see fake.h. */
#include "fake.h"

static void fake_request(void *context, struct exchange *x)
{
    struct fake *f = context;
    str query = exchange_query(x), body = exchange_body(x);
    f->requests++;
    buf_printf(&f->log, STR_FMT " " STR_FMT "%s" STR_FMT "%s" STR_FMT "\n",
               STR_ARG(exchange_method(x)), STR_ARG(exchange_path(x)), query.n ? "?" : "",
               STR_ARG(query), body.n ? " " : "", STR_ARG(body));
    f->serve(f, x);
}

void fake_start_limited(struct fake *f, void (*serve)(struct fake *f, struct exchange *x),
                        struct kube_options options)
{
    err_t e = { 0 };
    *f = (struct fake){ .serve = serve };
    OK_CALL(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL,
                                             .start_wall_ns = INT64_C(1760000000) * NS_PER_S },
                     &f->loop, &e),
            &e);
    OK_CALL(http_server_new(f->loop,
                            &(struct http_server_options){ .on_request = fake_request,
                                                           .context = f },
                            &f->server, &e),
            &e);
    char url[64];
    snprintf(url, sizeof(url), "http://127.0.0.1:%d", http_server_port(f->server));
    struct kube_config config = { .where = S("a test"), .server = str_c(url), .ns = S("default") };
    options.loop = f->loop;
    options.config = &config;
    OK_CALL(kube_new(&options, &f->kube, &e), &e);
}

void fake_start(struct fake *f, void (*serve)(struct fake *f, struct exchange *x))
{
    fake_start_limited(f, serve, (struct kube_options){ 0 });
}

void fake_stop(struct fake *f)
{
    kube_free(f->kube);
    http_server_free(f->server);
    loop_free(f->loop);
    buf_done(&f->log);
}

void fake_answer(struct exchange *x, int status, const char *body)
{
    exchange_answer(x, status, HTTP_HEADERS({ S("content-type"), S("application/json") }),
                    str_c(body));
}

bool fake_until(struct fake *f, const bool *done)
{
    int64_t limit = loop_mono_ns(f->loop) + 3600 * NS_PER_S;
    while (!*done && loop_mono_ns(f->loop) < limit)
        loop_turn(f->loop);
    return OK(*done);
}

static void fake_tick(struct timer *timer)
{
    (void)timer; /* only there for time to move on */
}

void fake_for(struct fake *f, int64_t ns)
{
    int64_t limit = loop_mono_ns(f->loop) + ns;
    struct timer timer = { 0 };
    timer_set(f->loop, &timer, limit, fake_tick);
    while (loop_mono_ns(f->loop) < limit)
        loop_turn(f->loop);
    timer_stop(&timer);
}
