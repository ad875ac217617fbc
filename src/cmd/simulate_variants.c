/* --variants of flyball simulate: a YAML list (or an object with `variants`) of
 *
 *     - name: l40s
 *       cost: 15                 of a replica for an hour
 *       min: 0                   (default 0)
 *       max: 64                  (default 100)
 *       initial: 4               replicas at the start, with --initial variants
 *       profile: {baseMs: 21, perSeqMs: 0.05, perPromptTokenMs: 0.13, perCachedTokenMs: 0.00018,
 *                 kvBlocks: 11900, blockTokens: 16, maxSeqs: 256, maxBatchedTokens: 512} */
#include "simulate.h"

#include "../base/file.h"
#include "../json/yaml.h"

#include <math.h>

enum { FILE_BYTES_MAX = 1 << 20 };

static const double noise_default = 0.03; /* of an iteration's time */

/* A number of `object`; NaN `otherwise`: it must be there. */
static int read_number(const struct json *object, const char *key, double otherwise, double *ret,
                       err_t *e)
{
    const struct json *v = json_get(object, key);
    *ret = json_real(v, v ? NAN : otherwise);
    if (!isfinite(*ret))
        return v ? err_set(e, EINVAL, "%s must be a number", key)
                 : err_set(e, EINVAL, "%s is missing", key);
    return 0;
}

static int read_count(const struct json *object, const char *key, double otherwise, int32_t *ret,
                      err_t *e)
{
    double value;
    if (read_number(object, key, otherwise, &value, e) < 0)
        return -e->code;
    if (value != floor(value) || value < -1 || value > INT32_MAX)
        return err_set(e, EINVAL, "%s is %g, but must be a whole number, 0 or more", key, value);
    *ret = (int32_t)value;
    return 0;
}

static int read_profile(const struct json *o, struct replica_profile *p, err_t *e)
{
    if (!json_is(o, JSON_OBJ))
        return err_set(e, EINVAL, "profile is missing, or is no mapping");
    if (read_number(o, "baseMs", NAN, &p->base_ms, e) < 0 ||
        read_number(o, "perSeqMs", 0, &p->per_seq_ms, e) < 0 ||
        read_number(o, "perPromptTokenMs", NAN, &p->per_prompt_token_ms, e) < 0 ||
        read_number(o, "perCachedTokenMs", 0, &p->per_cached_token_ms, e) < 0 ||
        read_number(o, "noise", noise_default, &p->noise, e) < 0 ||
        read_count(o, "kvBlocks", NAN, &p->kv_blocks, e) < 0 ||
        read_count(o, "blockTokens", 16, &p->block_tokens, e) < 0 ||
        read_count(o, "maxSeqs", 256, &p->max_seqs, e) < 0 ||
        read_count(o, "maxBatchedTokens", 2048, &p->max_batched_tokens, e) < 0)
        return err_wrap(e, "profile");
    return replica_profile_check(p, e) < 0 ? err_wrap(e, "profile") : 0;
}

/* One entry of the list; every value is checked here, so that the simulation need not. */
static int read_variant(struct arena *a, const struct json *o, struct fleet_variant *v, err_t *e)
{
    v->name = arena_str(a, json_text(json_get(o, "name")));
    if (!v->name.n)
        return err_set(e, EINVAL, "name is missing");
    if (read_number(o, "cost", NAN, &v->cost, e) < 0 || read_count(o, "min", 0, &v->min, e) < 0 ||
        read_count(o, "max", 100, &v->max, e) < 0 ||
        read_count(o, "initial", -1, &v->initial, e) < 0 ||
        read_profile(json_get(o, "profile"), &v->profile, e) < 0)
        return err_wrap(e, "variant " STR_FMT, STR_ARG(v->name));
    if (!(v->cost > 0 && v->cost < 1e9))
        return err_set(e, EINVAL, "variant " STR_FMT ": cost is %g, but must be more than 0",
                       STR_ARG(v->name), v->cost);
    if (v->min < 0 || v->max < v->min || v->max > 10000)
        return err_set(e, EINVAL,
                       "variant " STR_FMT
                       ": min is %d and max is %d, but must be 0 <= min <= max <= 10000",
                       STR_ARG(v->name), v->min, v->max);
    return 0;
}

/* All entries, with distinct names; `*ret` is in the arena. */
static int read_list(struct arena *a, const struct json *list, struct fleet_variant **ret,
                     size_t *ret_n, err_t *e)
{
    size_t n = json_len(list);
    if (!json_is(list, JSON_ARR) || !n)
        return err_set(e, EINVAL, "not a list of variants; see flyball simulate --help");
    if (n > FLEET_VARIANTS_MAX)
        return err_set(e, EINVAL, "%zu variants, but must be at most %d", n, FLEET_VARIANTS_MAX);
    struct fleet_variant *variants = arena_array(a, n, sizeof(*variants));
    for (size_t i = 0; i < n; i++) {
        if (read_variant(a, json_item(list, i), &variants[i], e) < 0)
            return err_wrap(e, "item %zu", i + 1);
        for (size_t k = 0; k < i; k++)
            if (str_eq(variants[k].name, variants[i].name))
                return err_set(e, EINVAL, "variant " STR_FMT " is listed twice",
                               STR_ARG(variants[i].name));
    }
    *ret = variants;
    *ret_n = n;
    return 0;
}

int simulate_read_variants(struct arena *a, const char *path, struct fleet_variant **ret,
                           size_t *ret_n, err_t *e)
{
    auto_buf struct buf text = { 0 };
    struct json *tree;
    if (file_read(path, FILE_BYTES_MAX, &text, e) < 0)
        return -e->code;
    if (yaml_parse(a, buf_str(&text), &tree, e) < 0)
        return err_wrap(e, "%s", path);
    const struct json *list = json_is(tree, JSON_OBJ) ? json_get(tree, "variants") : tree;
    return read_list(a, list, ret, ret_n, e) < 0 ? err_wrap(e, "%s", path) : 0;
}
