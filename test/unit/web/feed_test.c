/* The board shows what the engine knows, in virtual time: live numbers, decisions, removals; and the page asks the API
 * server for nothing. */
#include "saturation_world.h"
#include "web/web_internal.h"

static struct web *open_web(struct models *w)
{
    struct web *web = NULL;
    err_t e = { 0 };
    OK_CALL(web_new(&(struct web_options){ .manager = w->c.manager, .data = w->c.dir }, &web, &e),
            &e);
    return web;
}

/* The object on the board; an empty one if there is none. */
static const struct json *read_model(struct models *w, struct web *web, const char *key)
{
    const struct board_entry *e = board_get(&web->board, BOARD_MODEL, str_c(key));
    struct json *tree = json_new_obj(&w->c.arena);
    if (e)
        OK(json_parse(&w->c.arena, board_json(e), &tree, NULL) == 0);
    return tree;
}

static bool is_null(const struct json *model, const char *field)
{
    return json_is(json_get(model, field), JSON_NULL);
}

static void numbers_are_those_of_the_engine(void)
{
    struct models w;
    models_web(&w, 2, 0.9, 7, "");
    struct web *web = open_web(&w);
    models_pass(&w, 60);
    const struct json *m = read_model(&w, web, MODELS_NS "/web");
    EQ_INT(json_int(json_get(m, "current"), -1),
           json_int(json_at(models_status(&w, "web"), "currentAlloc", "numReplicas", NULL), -2));
    EQ_INT(json_int(json_get(m, "desired"), -1), models_desired(&w, "web"));
    EQ_REAL(json_real(json_get(m, "kv"), -1), 0.9);
    EQ_REAL(json_real(json_get(m, "queue"), -1), 14); /* of both replicas */
    EQ_STR(json_text(json_get(m, "accelerator")), S("A100"));
    OK(json_text(json_get(m, "reason")).n > 0);
    web_free(web);
    models_stop(&w);
}

/* What is not measured is null, not zero. */
static void missing_metrics_are_unknown(void)
{
    struct models w;
    models_web(&w, 2, 0.9, 7, "");
    for (size_t i = 0; i < w.pod_n; i++)
        w.pods[i].silent = true;
    struct web *web = open_web(&w);
    models_pass(&w, 1200);
    const struct json *m = read_model(&w, web, MODELS_NS "/web");
    OK(is_null(m, "kv"));
    OK(is_null(m, "queue"));
    OK(is_null(m, "slo"));
    web_free(web);
    models_stop(&w);
}

static void decisions_arrive_and_variants_leave(void)
{
    struct models w;
    models_web(&w, 2, 0.1, 0, "");
    struct web *web = open_web(&w);
    models_pass(&w, 30);
    size_t before = web->board.decisions;
    models_load(&w, "web", 0.95, 20);
    models_pass(&w, 120);
    OK(web->board.decisions > before);
    bool found = false;
    uint64_t cursor = 0;
    for (const struct board_entry *e; (e = board_next(&web->board, &cursor));)
        found |= e->kind == BOARD_DECISION && str_find(board_json(e), S("ScaleUp")) != SIZE_MAX;
    OK(found);
    cluster_do(&w.c, KUBE_DELETE, &saturation_variant_resource, MODELS_NS, "web", S(""));
    models_pass(&w, 180);
    OK(!board_get(&web->board, BOARD_MODEL, S(MODELS_NS "/web")));
    web_free(web);
    models_stop(&w);
}

/* Compared with the same minutes without a page. */
static void the_page_sends_no_request(void)
{
    size_t requests[2];
    for (int page = 0; page < 2; page++) {
        struct models w;
        models_web(&w, 2, 0.5, 0, "");
        models_pass(&w, 60);
        size_t before = w.c.operator_requests;
        struct web *web = page ? open_web(&w) : NULL;
        models_pass(&w, 600);
        requests[page] = w.c.operator_requests - before;
        web_free(web);
        models_stop(&w);
    }
    EQ_INT(requests[1], requests[0]);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(numbers_are_those_of_the_engine),
                                        TAP(missing_metrics_are_unknown),
                                        TAP(decisions_arrive_and_variants_leave),
                                        TAP(the_page_sends_no_request),
                                        { 0 } });
}
