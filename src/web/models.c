/* Models on the board: the state of the saturation engine, read once per second while a page is open.
 *
 * The engine decides every few seconds about thousands of variants and changes numbers in place, so there is no
 * event to follow; board_put() drops what did not change. Rounded to what the page shows, a quiet model causes no
 * traffic at all. A variant that the engine no longer has is removed by comparing rounds. */
#include "../saturation/saturation_controller.h"
#include "../saturation/saturation_live.h"
#include "web_internal.h"

#include <math.h>

static double round_to(double value, double steps)
{
    return round(value * steps) / steps;
}

static void put_model(void *context, const struct saturation_live *v)
{
    struct web *w = context;
    auto_buf struct buf key = { 0 }, json = { 0 };
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(v->ns), STR_ARG(v->name));
    buf_putc(&json, '{');
    web_put_text(&json, "model", v->model);
    web_put_text(&json, "accelerator", v->accelerator);
    web_put_text(&json, "kind", v->kind);
    web_put_text(&json, "target", v->target);
    web_put_int(&json, "current", v->current);
    web_put_int(&json, "desired", v->desired);
    web_put_int(&json, "pending", v->pending);
    web_put_real(&json, "cost", v->cost);
    web_put_real(&json, "kv", round_to(v->kv, 1000));
    web_put_real(&json, "queue", round_to(v->waiting, 10));
    web_put_real(&json, "demand", round_to(v->demand, 100));
    web_put_real(&json, "capacity", round_to(v->have, 100));
    web_put_real(&json, "slo", round_to(v->attainment, 10000));
    web_put_text(&json, "reason", v->reason);
    buf_printf(&json, "\"asleep\":%s,\"decided\":%s}", v->asleep ? "true" : "false",
               v->decided ? "true" : "false");
    board_put(&w->board, BOARD_MODEL, buf_str(&key), buf_str(&json),
              (const uint16_t[BOARD_CHANNELS]){
                  board_number(v->current < 0 ? NAN : (double)v->current, 1),
                  board_number(v->desired < 0 ? NAN : (double)v->desired, 1),
                  board_number(v->kv, 1000), board_number(v->waiting, 1) });
}

/* Variants that are on the board but not in the engine. They are few, so their keys are copied. */
static void remove_models(struct web *w)
{
    auto_arena struct arena a = { 0 };
    VEC(str) gone = { 0 };
    uint64_t cursor = 0;
    for (const struct board_entry *e; (e = board_next(&w->board, &cursor));) {
        struct saturation_live live;
        str ns, name = board_key(e);
        if (e->kind == BOARD_MODEL && !e->gone && str_cut(&name, '/', &ns) &&
            !saturation_live_find(w->saturation, &a, ns, name, &live))
            vec_push(&gone, arena_str(&a, board_key(e)));
    }
    for (size_t i = 0; i < gone.n; i++)
        board_remove(&w->board, BOARD_MODEL, gone.at[i]);
    vec_done(&gone);
}

void web_models_update(struct web *w, bool thorough)
{
    if (!w->saturation)
        return;
    saturation_live_each(w->saturation, put_model, w);
    if (thorough || w->round % 8 == 0) /* a removal may be seen later */
        remove_models(w);
}

/* The conditions, with what was decided and why, as `flyball explain` prints them. */
void web_models_detail(struct web *w, struct arena *a, str ns, str name, struct buf *out)
{
    struct saturation_live live;
    if (!w->saturation || !saturation_live_find(w->saturation, a, ns, name, &live))
        return;
    web_put_text(out, "reason", live.reason);
    web_put_raw(out, "status", live.status);
}
