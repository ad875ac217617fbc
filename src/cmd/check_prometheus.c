/* The probe of flyball check that asks Prometheus for the series that variants are decided from.
 *
 * The address is a flag and not read from the operator's settings: those name it as seen from inside the cluster, where
 * this command usually does not run. */
#include "../prom/query.h"
#include "check.h"

struct answer {
    struct loop *loop;
    size_t models;
    bool failed;
    err_t e;
};

static void take_answer(void *context, const struct prom_result *result, const err_t *failure)
{
    struct answer *a = context;
    a->failed = failure != NULL;
    if (failure)
        a->e = *failure;
    else
        a->models = result->n;
    loop_stop(a->loop);
}

/* The cache gauge has another name since vLLM 0.10; either will do. */
static int count_models(struct check *c, struct answer *ret, err_t *e)
{
    struct prom_client *client;
    int r = prom_client_new(c->x.loop,
                            &(struct prom_client_options){ .url = str_c(c->prometheus),
                                                           .token_file = c->prometheus_token_file,
                                                           .timeout_ns = 20 * NS_PER_S,
                                                           .retry = { 2, NS_PER_S, 2, 0.1 } },
                            &client, e);
    if (r < 0)
        return r;
    prom_client_query(client, &(struct prom_query){
                                  .promql = S("count by (model_name, namespace) "
                                              "({__name__=~\"vllm:(kv|gpu)_cache_usage_perc\"})"),
                                  .on_done = take_answer,
                                  .context = ret });
    loop_run(c->x.loop);
    prom_client_free(client);
    if (ret->failed)
        *e = ret->e;
    return ret->failed ? -e->code : 0;
}

void check_prometheus(struct check *c)
{
    struct answer answer = { .loop = c->x.loop };
    err_t e;
    if (!c->prometheus) {
        check_add(c, CHECK_UNKNOWN, "Prometheus", S("not checked"),
                  S("give its address with --prometheus URL"));
        return;
    }
    int r = count_models(c, &answer, &e);
    if (r < 0)
        check_add(c, CHECK_FAILED, "Prometheus", str_c(e.text),
                  S("check the address, the token and the network"));
    else if (!answer.models)
        check_add(
            c, CHECK_WARNING, "Prometheus", S("it answers, but has no vLLM series"),
            S("let it scrape the model servers, with the labels namespace and pod; variants hold their replicas "
              "until it does"));
    else
        check_add(c, CHECK_OK, "Prometheus",
                  arena_printf(&c->x.arena, "it answers, and has vLLM series of %zu models",
                               answer.models),
                  S(""));
}
