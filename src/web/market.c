/* The market on the board: pods as they change, nodes as sums over their pods.
 *
 * The numbers of a pod are in the status of its PodAllocation, which the node's agent writes. They are parsed once
 * per change. A node has no object of its own here: its price is that of its pods, which is the same for all of
 * them, and its use is their sum. */
#include "../base/quantity.h"
#include "../market/market_records.h"
#include "web_internal.h"

#include <math.h>

enum { POD_USED, POD_LIMIT, POD_NEED, POD_PRICE }; /* numbers of a pod */
#define PRICE_SCALE 1000.0

struct web_node {
    uint64_t round;           /* in which it was summed last */
    double used, limit, need; /* millicores */
    double price;             /* NaN: unknown */
    size_t pods;
    char name[]; /* the key in web->nodes */
};

static double milli_of(str quantity)
{
    int64_t milli;
    return quantity.n && quantity_parse_milli(quantity, &milli, NULL) == 0 ? (double)milli : NAN;
}

static double milli_at(const struct json *status, const char *field)
{
    return milli_of(json_text(json_get(status, field)));
}

static double real_at(const struct json *status, const char *field)
{
    return json_real(json_get(status, field), NAN);
}

static double first_known(double a, double b)
{
    return isnan(a) ? b : a;
}

/* An array in the order of POD_FIELDS in page.js: ten thousand pods would repeat the names of the fields. The limit of
 * the history is the one in force, or else the desired one. */
static void put_pod(struct web *w, const struct allocation_record *r, str key)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf json = { 0 };
    struct json *status = NULL;
    if (r->status.n)
        (void)json_parse(&a, r->status, &status, NULL);
    double used = milli_at(status, "usageCPU"), applied = milli_at(status, "appliedCPULimit"),
           need = milli_at(status, "needCPU"), desired = milli_of(r->desired_limit),
           price = real_at(status, "shadowPriceCPU");
    buf_putc(&json, '[');
    web_put_text(&json, NULL, r->pod_name);
    web_put_text(&json, NULL, r->node);
    web_put_real(&json, NULL, used);
    web_put_real(&json, NULL, applied);
    web_put_real(&json, NULL, milli_at(status, "appliedCPURequest"));
    web_put_real(&json, NULL, desired);
    web_put_real(&json, NULL, need);
    web_put_real(&json, NULL, milli_at(status, "guaranteedCPU"));
    web_put_real(&json, NULL, real_at(status, "throttling"));
    web_put_real(&json, NULL, real_at(status, "weight"));
    web_put_real(&json, NULL, price);
    web_put_text(&json, NULL, json_text(json_get(status, "mode")));
    web_put_text(&json, NULL, json_text(json_get(status, "phase")));
    buf_printf(&json, "%zu]", json_len(json_get(status, "problems")));
    board_put(&w->board, BOARD_POD, key, buf_str(&json),
              (const uint16_t[BOARD_CHANNELS]){ [POD_USED] = board_number(used, 1),
                                                [POD_LIMIT] =
                                                    board_number(first_known(applied, desired), 1),
                                                [POD_NEED] = board_number(need, 1),
                                                [POD_PRICE] = board_number(price, PRICE_SCALE) });
}

/* The key is that of the PodAllocation, so that two objects for one pod stay apart. */
void web_market_put(struct web *w, const struct record *old, const struct record *now)
{
    const struct record *any = now ? now : old;
    auto_buf struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(any->ns), STR_ARG(any->name));
    if (now)
        put_pod(w, record_as(struct allocation_record, now), buf_str(&key));
    else
        board_remove(&w->board, BOARD_POD, buf_str(&key));
}

/* ---- nodes */

static struct web_node *find_node(struct web *w, str name)
{
    struct web_node *node = map_get(&w->nodes, name);
    if (node)
        return node;
    node = mem_zero(1, sizeof(*node) + name.n + 1);
    memcpy(node->name, name.p, name.n);
    map_put(&w->nodes, (str){ node->name, name.n }, node);
    return node;
}

static void add_if_known(double *sum, uint16_t number)
{
    if (number != BOARD_NUMBER_UNKNOWN)
        *sum += number;
}

/* The numbers of the board are enough, so that nothing is parsed again. */
static void add_pod(struct web *w, const struct allocation_record *r)
{
    auto_buf struct buf key = { 0 };
    buf_printf(&key, STR_FMT "/" STR_FMT, STR_ARG(r->meta.ns), STR_ARG(r->meta.name));
    const struct board_entry *e = board_get(&w->board, BOARD_POD, buf_str(&key));
    if (!e || !r->node.n)
        return;
    struct web_node *node = find_node(w, r->node);
    if (node->round != w->round)
        node->used = node->limit = node->need = 0, node->pods = 0, node->price = NAN;
    node->round = w->round;
    node->pods++;
    add_if_known(&node->used, e->numbers[POD_USED]);
    add_if_known(&node->limit, e->numbers[POD_LIMIT]);
    add_if_known(&node->need, e->numbers[POD_NEED]);
    if (e->numbers[POD_PRICE] != BOARD_NUMBER_UNKNOWN)
        node->price = e->numbers[POD_PRICE] / PRICE_SCALE;
}

/* Ten millicores per unit in the history, so that 650 cores fit. */
static void put_node(struct web *w, const struct web_node *node)
{
    auto_buf struct buf json = { 0 };
    buf_putc(&json, '{');
    web_put_real(&json, "used", node->used);
    web_put_real(&json, "limit", node->limit);
    web_put_real(&json, "need", node->need);
    web_put_real(&json, "price", node->price);
    buf_printf(&json, "\"pods\":%zu}", node->pods);
    board_put(&w->board, BOARD_NODE, str_c(node->name), buf_str(&json),
              (const uint16_t[BOARD_CHANNELS]){ board_number(node->price, PRICE_SCALE),
                                                board_number(node->used, .1),
                                                board_number(node->limit, .1) });
}

void web_market_update_nodes(struct web *w)
{
    const struct allocation_record *r;
    if (!w->allocations || !cache_synced(w->allocations))
        return;
    cache_each(r, w->allocations)
        add_pod(w, r);
    for (struct map_slot *s = NULL; (s = map_next(&w->nodes, s));) {
        const struct web_node *node = s->value;
        if (node->round == w->round)
            put_node(w, node);
        else
            board_remove(&w->board, BOARD_NODE, str_c(node->name));
    }
}

void web_market_done(struct web *w)
{
    for (struct map_slot *s = NULL; (s = map_next(&w->nodes, s));)
        free(s->value);
    map_done(&w->nodes);
}
