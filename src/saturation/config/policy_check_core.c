/* Validation of policy_core.h's settings. The messages are WVA's, compared by
 * test/golden/vectors/wva-v2-config.json.
 *
 * Analyzers fail at the first fault. Faults of quotas are collected and reported together, one per line, as WVA
 * does; an entry is counted among the quotas, not among all limiters. */
#include "policy_core.h"

#include "../../base/buf.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

/* quoted: WVA, like every text in this file */
int policy_check_analyzers(const struct sat_policy *p, double up, double down, err_t *e)
{
    for (size_t i = 0; i < p->analyzer_n; i++) {
        const struct policy_analyzer *x = &p->analyzers[i];
        if (x->has_up && (x->up <= 0 || x->up > 1))
            return err_set(e, EINVAL,
                           "analyzer \"" STR_FMT "\": scaleUpThreshold must be in (0, 1], got %.2f",
                           STR_ARG(x->type), x->up);
        if (x->has_down && (x->down <= 0 || x->down > 1))
            return err_set(e, EINVAL,
                           "analyzer \"" STR_FMT
                           "\": scaleDownBoundary must be in (0, 1], got %.2f",
                           STR_ARG(x->type), x->down);
        double own_up = x->has_up ? x->up : up, own_down = x->has_down ? x->down : down;
        if (own_up <= own_down)
            return err_set(e, EINVAL,
                           "analyzer \"" STR_FMT
                           "\": scaleUpThreshold (%.2f) must be > scaleDownBoundary (%.2f)",
                           STR_ARG(x->type), own_up, own_down);
    }
    return 0;
}

/* ---- limiters */

struct faults {
    struct buf text;
    size_t entry; /* among the quotas */
    str name;
};

static void add_fault(struct faults *f, const char *format, ...) PRINTF_LIKE(2, 3);

static void add_fault(struct faults *f, const char *format, ...)
{
    char text[400];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    buf_printf(&f->text, "%sentry[%zu]%s", f->text.n ? "\n" : "", f->entry, text);
}

static void check_types(struct faults *f, str where, struct quota_types types)
{
    for (size_t i = 0; i < types.n; i++) {
        const struct quota_type *t = &types.at[i];
        if (!str_trim(t->type).n)
            add_fault(f, " (\"" STR_FMT "\")." STR_FMT ": accelerator type name must not be empty",
                      STR_ARG(f->name), STR_ARG(where));
        else if (t->limit < QUOTA_UNLIMITED)
            add_fault(f,
                      " (\"" STR_FMT "\")." STR_FMT "[\"" STR_FMT "\"]: quota value %" PRId64
                      " is invalid; must be >= -1 (only -1 is allowed as negative — means "
                      "unlimited)",
                      STR_ARG(f->name), STR_ARG(where), STR_ARG(t->type), t->limit);
        else if (t->limit > QUOTA_MAX)
            add_fault(f,
                      " (\"" STR_FMT "\")." STR_FMT "[\"" STR_FMT "\"]: quota value %" PRId64
                      " exceeds the maximum of %d",
                      STR_ARG(f->name), STR_ARG(where), STR_ARG(t->type), t->limit, QUOTA_MAX);
    }
}

static void check_cluster(struct faults *f, const struct quota *q)
{
    if (q->namespace_n)
        add_fault(f,
                  " (\"" STR_FMT "\"): namespaceQuotas is invalid for cluster scope; use the "
                  "quotas map",
                  STR_ARG(f->name));
    if (q->exclude_n)
        add_fault(f, " (\"" STR_FMT "\"): exclude is invalid for cluster scope", STR_ARG(f->name));
    check_types(f, S("quotas"), q->types);
}

static void check_namespaces(struct faults *f, const struct quota *q)
{
    auto_arena struct arena scratch = { 0 };
    if (q->types.n)
        add_fault(f,
                  " (\"" STR_FMT "\"): quotas is invalid for namespace scope; use namespaceQuotas",
                  STR_ARG(f->name));
    for (size_t i = 0; i < q->exclude_n; i++)
        if (!str_trim(q->exclude[i]).n)
            add_fault(f, " (\"" STR_FMT "\"): exclude contains an empty namespace name",
                      STR_ARG(f->name));
    for (size_t i = 0; i < q->namespace_n; i++) {
        str ns = q->namespaces[i].ns;
        if (!str_trim(ns).n)
            add_fault(f, " (\"" STR_FMT "\"): namespaceQuotas contains an empty namespace key",
                      STR_ARG(f->name));
        else
            check_types(f, arena_printf(&scratch, "namespaceQuotas[\"" STR_FMT "\"]", STR_ARG(ns)),
                        q->namespaces[i].types);
    }
}

/* The index among the quotas of the first one before `at` with the same name; SIZE_MAX: none. */
static size_t find_same_name(const struct sat_policy *p, size_t at)
{
    size_t entry = 0;
    for (size_t i = 0; i < at; i++) {
        if (!str_eqc(p->limiters[i].type, "quota"))
            continue;
        if (str_eq(p->limiters[i].quota.name, p->limiters[at].quota.name))
            return entry;
        entry++;
    }
    return SIZE_MAX;
}

static void check_quota(struct faults *f, const struct sat_policy *p, size_t at)
{
    const struct policy_limiter *l = &p->limiters[at];
    f->name = l->quota.name;
    size_t same = find_same_name(p, at);
    if (!f->name.n)
        add_fault(f, ": name must not be empty");
    else if (same != SIZE_MAX)
        add_fault(f, ": duplicate limiter name \"" STR_FMT "\" (first seen at entry[%zu])",
                  STR_ARG(f->name), same);
    else if (str_eqc(l->scope, "cluster"))
        check_cluster(f, &l->quota);
    else if (str_eqc(l->scope, "namespace"))
        check_namespaces(f, &l->quota);
    else
        add_fault(f,
                  " (\"" STR_FMT "\"): scope must be \"cluster\" or \"namespace\", got \"" STR_FMT
                  "\"",
                  STR_ARG(f->name), STR_ARG(l->scope));
}

/* The types of limiters, and that those without a quota set none. */
static int check_limiter_types(const struct sat_policy *p, err_t *e)
{
    for (size_t i = 0; i < p->limiter_n; i++) {
        const struct policy_limiter *l = &p->limiters[i];
        if (str_eqc(l->type, "quota"))
            continue;
        if (!str_eqc(l->type, "gpu-inventory") && !str_eqc(l->type, "inventory"))
            return err_set(e, EINVAL,
                           "limiters[%zu]: unknown limiter type \"" STR_FMT
                           "\" (valid: \"gpu-inventory\", \"inventory\", \"quota\")",
                           i, STR_ARG(l->type));
        if (l->scope.n || l->quota.types.n || l->quota.namespace_n || l->quota.exclude_n)
            return err_set(e, EINVAL,
                           "limiters[%zu] (type \"" STR_FMT
                           "\"): must not set quota fields (scope/quotas/namespaceQuotas/exclude)",
                           i, STR_ARG(l->type));
    }
    return 0;
}

int policy_check_limiters(const struct sat_policy *p, err_t *e)
{
    int r = check_limiter_types(p, e);
    if (r < 0)
        return r;
    struct faults f = { 0 };
    for (size_t i = 0; i < p->limiter_n; i++)
        if (str_eqc(p->limiters[i].type, "quota")) {
            check_quota(&f, p, i);
            f.entry++;
        }
    if (f.text.n)
        r = err_set(e, EINVAL, "limiters: %s", f.text.p);
    buf_done(&f.text);
    return r;
}
