/* Records and histories of the token analyzer: see token_store.h.
 *
 * A record is what is known of a variant: its hardware, the flags of its template, and the capacity that was
 * measured. A history is the recent load of one kind of workload, keyed by model, hardware and length of
 * answers, since these decide how many tokens fit. Records own their texts; the maps own the records. */
#include "token_store.h"

#include <inttypes.h>

/* ---- records */

static void free_record(struct sat_token_record *r)
{
    arena_done(&r->texts);
    free(r);
}

void sat_token_store_done(struct sat_token_store *store)
{
    for (struct map_slot *s = NULL; (s = map_next(&store->records, s));)
        free_record(s->value);
    for (struct map_slot *s = NULL; (s = map_next(&store->histories, s));)
        free(s->value);
    map_done(&store->records);
    map_done(&store->histories);
}

static str record_key(struct arena *a, struct sat_token_variant v)
{
    return arena_printf(a, STR_FMT "|" STR_FMT "|" STR_FMT, STR_ARG(v.ns), STR_ARG(v.model),
                        STR_ARG(v.name));
}

struct sat_token_record *sat_token_find(const struct sat_token_store *store,
                                        struct sat_token_variant variant)
{
    auto_arena struct arena scratch = { 0 };
    return map_get(&store->records, record_key(&scratch, variant));
}

/* Stores a copy with its own texts; `value` may refer to texts of the record that is replaced. */
static void replace_record(struct sat_token_store *store, struct sat_token_variant variant,
                           const struct sat_token_record *value)
{
    struct sat_token_record *r = mem_zero(1, sizeof(*r));
    *r = *value;
    r->texts = (struct arena){ 0 };
    r->key = record_key(&r->texts, variant);
    r->model = arena_str(&r->texts, variant.model);
    r->accelerator = arena_str(&r->texts, value->accelerator);
    r->args.kv_cache_dtype = arena_str(&r->texts, value->args.kv_cache_dtype);
    struct sat_token_record *old = map_put(&store->records, r->key, r);
    if (old)
        free_record(old);
}

void sat_token_store_forget(struct sat_token_store *store, struct sat_token_variant variant)
{
    struct sat_token_record *r = sat_token_find(store, variant);
    if (!r)
        return;
    map_del(&store->records, r->key);
    free_record(r);
}

static bool is_same_hardware(const struct sat_token_record *r, struct sat_token_hardware h)
{
    return str_eq(r->accelerator, h.accelerator) && r->gpus_per_replica == h.gpus_per_replica;
}

void sat_token_store_measured(struct sat_token_store *store, struct sat_token_variant variant,
                              struct sat_token_hardware hardware, int64_t effective)
{
    struct sat_token_record *old = sat_token_find(store, variant);
    if (old && is_same_hardware(old, hardware)) {
        old->live = true;
        old->effective = effective;
        return;
    }
    struct sat_token_record value = old ? *old : (struct sat_token_record){ 0 };
    value.accelerator = hardware.accelerator;
    value.gpus_per_replica = hardware.gpus_per_replica;
    value.live = true;
    value.effective = effective;
    replace_record(store, variant, &value);
}

void sat_token_store_template(struct sat_token_store *store, struct sat_token_variant variant,
                              struct sat_token_hardware hardware, const struct sat_vllm_args *args)
{
    const struct sat_token_record *old = sat_token_find(store, variant);
    struct sat_token_record value = { .accelerator = hardware.accelerator,
                                      .gpus_per_replica = hardware.gpus_per_replica };
    if (old && old->live)
        value = *old; /* a measurement wins over a template */
    value.has_args = true;
    value.args = *args;
    replace_record(store, variant, &value);
}

const struct sat_token_record *sat_token_find_alike(const struct sat_token_store *store,
                                                    const struct sat_token_record *record)
{
    const struct sat_token_record *best = NULL;
    for (struct map_slot *s = NULL; (s = map_next(&store->records, s));) {
        const struct sat_token_record *r = s->value;
        bool alike = r != record && r->live && r->effective > 0 && r->has_args &&
                     str_eq(r->model, record->model) &&
                     is_same_hardware(r, (struct sat_token_hardware){ record->accelerator,
                                                                      record->gpus_per_replica }) &&
                     sat_vllm_args_alike(&r->args, &record->args);
        if (alike &&
            (!best || str_cmp(r->key, best->key) < 0)) /* deterministic: the map has no order */
            best = r;
    }
    return best;
}

/* ---- histories */

static const char *answer_length(double output_tokens)
{
    return output_tokens < 100 ? "short" : output_tokens < 500 ? "medium" : "long";
}

struct sat_token_history *sat_token_get_history(struct sat_token_store *store, str model,
                                                struct sat_token_hardware hardware,
                                                double output_tokens)
{
    auto_arena struct arena scratch = { 0 };
    str key = arena_printf(&scratch, STR_FMT "|" STR_FMT "|%" PRId64 "|%s", STR_ARG(model),
                           STR_ARG(hardware.accelerator), hardware.gpus_per_replica,
                           answer_length(output_tokens));
    struct sat_token_history *h = map_get(&store->histories, key);
    if (h)
        return h;
    h = mem_zero(1, sizeof(*h) + key.n + 1);
    memcpy(h->key, key.p, key.n);
    map_put(&store->histories, (str){ h->key, key.n }, h);
    return h;
}

void sat_token_history_add(struct sat_token_history *h, int64_t in_use)
{
    h->values[h->next] = in_use;
    h->next = (h->next + 1) % TOKEN_HISTORY_MAX;
    h->n = MIN(h->n + 1, (size_t)TOKEN_HISTORY_MAX);
}

double sat_token_history_mean(const struct sat_token_history *h)
{
    double sum = 0;
    for (size_t i = 0; i < h->n; i++)
        sum += (double)h->values[i];
    return h->n ? sum / (double)h->n : 0;
}
