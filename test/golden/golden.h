/* Golden vectors: files of cases, each run through the core that owns their family.
 *
 *     golden [--tap] FILE...
 *     golden --make FILE      prints the file with the expected parts as the code answers now
 *
 * A file is a JSON array of cases, or an object with its cases in `cases` or `vectors`; the beginning of its name
 * is the family (the longest that is known). Each group of families is one file here,
 * golden_<group>.c, with a table that golden.c lists:
 *
 *     static void run_reward(struct golden *g, const struct json *c)
 *     {
 *         const struct json *in = json_get(c, "input"), *want = json_get(c, "expected");
 *         golden_eq_real(g, "reward", reward(...), json_get(want, "reward"), (struct tolerance){ .relative = 1e-9 });
 *     }
 *     const struct golden_family golden_market[] = { { "mbcas-reward", run_reward }, { 0 } };
 *
 * A case passes when no check in it failed and at least one was made; a runner that checks nothing
 * proves nothing. Runners take what they allocate from `g->arena`, which is emptied after each case. */
#ifndef FLYBALL_GOLDEN_H
#define FLYBALL_GOLDEN_H

#include "json/json.h"

struct golden {
    struct arena *arena;     /* scratch of this case */
    const struct json *file; /* the whole file, for families that keep notes beside the cases */
    struct buf problems;     /* one sentence a failed check, "; " between */
    size_t checks;
};

struct golden_family {
    const char *name; /* NULL ends a table */
    void (*run)(struct golden *g, const struct json *c);
    /* The expected part of a case, as the code answers now; NULL: it cannot be computed. */
    struct json *(*make)(struct golden *g, const struct json *c);
};

/* `got` may differ from `want` by `absolute` or by `relative` times |want|, whichever is more. */
struct tolerance {
    double absolute, relative;
};

/* Each prints expected and actual values if they differ, and returns whether they agree. */
bool golden_ok(struct golden *g, bool condition, const char *format, ...) PRINTF_LIKE(3, 4);
bool golden_eq_int(struct golden *g, const char *what, int64_t got, const struct json *want);
bool golden_eq_bool(struct golden *g, const char *what, bool got, const struct json *want);
bool golden_eq_str(struct golden *g, const char *what, str got, const struct json *want);
bool golden_eq_json(struct golden *g, const char *what, const struct json *got,
                    const struct json *want);
/* Non-finite numbers are the strings "+Inf", "-Inf" and "NaN" in the files. */
bool golden_eq_real(struct golden *g, const char *what, double got, const struct json *want,
                    struct tolerance t);
/* Compares whether the input was refused (`bad`) with want.error. Returns whether there is more to compare. */
bool golden_check_error(struct golden *g, bool bad, const struct json *want);
double golden_real(const struct json *v, double otherwise); /* reads those strings too */

/* Fills a store of the token analyzer from the args of deployments; golden_saturation_tokens.c. */
struct sat_token_store;
void golden_load_templates(struct golden *g, struct sat_token_store *store,
                           const struct json *list);

extern const struct golden_family golden_aim[];
extern const struct golden_family golden_aim_engine[];
extern const struct golden_family golden_aim_inspection[];
extern const struct golden_family golden_aim_kinds[];
extern const struct golden_family golden_aim_status[];
extern const struct golden_family golden_apiserver[];
extern const struct golden_family golden_base[];
extern const struct golden_family golden_cgroup[];
extern const struct golden_family golden_doors[];
extern const struct golden_family golden_market[];
extern const struct golden_family golden_market_next[];
extern const struct golden_family golden_market_shares[];
extern const struct golden_family golden_runtimeconfig[];
extern const struct golden_family golden_saturation[];
extern const struct golden_family golden_saturation_config[];
extern const struct golden_family golden_saturation_discovery[];
extern const struct golden_family golden_saturation_slo[];
extern const struct golden_family golden_saturation_tokens[];
extern const struct golden_family golden_saturation_votes[];
extern const struct golden_family golden_schedule[];
extern const struct golden_family golden_timeline[];

#endif
