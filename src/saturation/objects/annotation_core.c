/* Variants described by annotations on an HPA or ScaledObject, instead of a VariantAutoscaling; see
 * annotation_core.h.
 *
 * The cost is text in an annotation, and WVA reads it with Go's strconv.ParseFloat: underscores between digits,
 * hexadecimal with a binary exponent, "inf" and "nan". This file reads and prints numbers the same way, because
 * both its acceptance and its error messages are compared. ANNOTATION_OURS adds rules where WVA's lead nowhere
 * (a cost that is not finite, an HPA that KEDA controls, a label instead of the annotation). Messages are
 * quoted: WVA.
 *
 * If several objects describe one workload, one of them counts and the others are reported as its duplicates. */
#include "annotation_core.h"

#include <math.h>
#include <stdio.h>

/* ---- numbers as Go reads them */

enum { NUMBER_BYTES_MAX = 128 };

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c + ('a' - 'A')) : c;
}

static bool is_digit(char c, bool hex)
{
    c = lower(c);
    return (c >= '0' && c <= '9') || (hex && c >= 'a' && c <= 'f');
}

/* Copies the text without underscores, in lower case; an underscore must be between digits. */
static bool strip_underscores(str text, char out[static NUMBER_BYTES_MAX])
{
    size_t n = 0, first = text.n && (text.p[0] == '+' || text.p[0] == '-') ? 1 : 0;
    bool hex = text.n > first + 1 && text.p[first] == '0' && lower(text.p[first + 1]) == 'x';
    if (text.n >= NUMBER_BYTES_MAX)
        return false;
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] != '_') {
            out[n++] = lower(text.p[i]);
            continue;
        }
        bool after_prefix = hex && i == first + 2;
        if (i == 0 || i + 1 == text.n || !is_digit(text.p[i + 1], hex) ||
            !(after_prefix || is_digit(text.p[i - 1], hex)))
            return false;
    }
    out[n] = '\0';
    return true;
}

static const char *skip_digits(const char *p, bool hex, bool *any)
{
    while (is_digit(*p, hex)) {
        p++;
        *any = true;
    }
    return p;
}

/* Digits with at most one point, then an exponent, which hexadecimal numbers must have. */
static bool is_number(const char *p)
{
    bool digits = false, exponent = false;
    p += *p == '+' || *p == '-';
    bool hex = p[0] == '0' && p[1] == 'x';
    p = skip_digits(hex ? p + 2 : p, hex, &digits);
    if (*p == '.')
        p = skip_digits(p + 1, hex, &digits);
    if (!digits)
        return false;
    if (*p == (hex ? 'p' : 'e')) {
        p++;
        p += *p == '+' || *p == '-';
        p = skip_digits(p, false, &exponent);
        return exponent && !*p;
    }
    return !hex && !*p;
}

/* "inf", "+Infinity", "nan" in any case; NaN has no sign. */
static bool read_special(str text, double *ret)
{
    bool negative = text.n && text.p[0] == '-', sign = negative || (text.n && text.p[0] == '+');
    str word = str_from(text, sign);
    if (!sign && str_eq_nocase(word, S("nan"))) {
        *ret = NAN;
        return true;
    }
    if (!str_eq_nocase(word, S("inf")) && !str_eq_nocase(word, S("infinity")))
        return false;
    *ret = negative ? -INFINITY : INFINITY;
    return true;
}

int annotation_parse_number(str text, double *ret)
{
    char plain[NUMBER_BYTES_MAX];
    if (read_special(text, ret))
        return 0;
    if (!strip_underscores(text, plain) || !is_number(plain))
        return -EINVAL;
    double value = strtod(plain, NULL);
    if (!isfinite(value))
        return -ERANGE;
    *ret = value;
    return 0;
}

/* ---- reading an object */

bool annotation_is_managed(const struct annotation_object *o, enum annotation_rules rules)
{
    return str_eqc(o->managed, "true") ||
           (rules == ANNOTATION_OURS && str_eqc(o->managed_label, "true"));
}

struct number_text {
    char text[40];
};

/* A number as Go prints it with %v: the shortest digits, without an exponent below 1e21. */
static struct number_text show_number(double value)
{
    struct number_text t;
    if (isinf(value)) {
        snprintf(t.text, sizeof(t.text), "%cInf", value < 0 ? '-' : '+');
        return t;
    }
    int digits = 0;
    char text[40];
    do
        snprintf(text, sizeof(text), "%.*e", digits, value);
    while (strtod(text, NULL) != value && ++digits < 17);
    int exponent = atoi(strchr(text, 'e') + 1);
    if (exponent < -4 || exponent >= 21)
        snprintf(t.text, sizeof(t.text), "%s", text);
    else
        snprintf(t.text, sizeof(t.text), "%.*f", MAX(digits - exponent, 0), value);
    return t;
}

static int read_cost(str text, enum annotation_rules rules, double *ret, err_t *e)
{
    int r = annotation_parse_number(text, ret);
    if (r < 0)
        return err_set(e, EINVAL,
                       "annotation llm-d.ai/variant-cost must be a numeric string, got \"" STR_FMT
                       "\": strconv.ParseFloat: parsing \"" STR_FMT "\": %s",
                       STR_ARG(text), STR_ARG(text),
                       r == -ERANGE ? "value out of range" : "invalid syntax");
    if (*ret < 0)
        return err_set(e, EINVAL,
                       "annotation \"llm-d.ai/variant-cost\" must be non-negative, got %s",
                       show_number(*ret).text);
    if (rules == ANNOTATION_OURS && !isfinite(*ret))
        return err_set(e, EINVAL,
                       "annotation llm-d.ai/variant-cost must be a finite number, got \"" STR_FMT
                       "\"",
                       STR_ARG(text));
    return 0;
}

/* The variant that the object describes. -ENOENT: it does not describe one; -EINVAL: it does, but wrongly. */
int annotation_read(const struct annotation_object *o, enum annotation_rules rules,
                    struct annotation_variant *ret, err_t *e)
{
    enum { KEDA_MAX_DEFAULT = 100 };
    bool hpa = o->kind == ANNOTATION_HPA;
    if (!annotation_is_managed(o, rules))
        return err_set(e, ENOENT, "annotation llm-d.ai/managed must be \"true\"");
    if (o->deleting || (rules == ANNOTATION_OURS && o->child))
        return err_set(e, ENOENT, "%s", o->deleting ? "it is being deleted" : "KEDA controls it");
    if (!o->model.n)
        return err_set(e, EINVAL, "required annotation llm-d.ai/model-id is missing or empty");
    struct annotation_variant v = {
        .kind = o->kind,
        .ns = o->ns,
        .name = o->name,
        .model = o->model,
        .cost_text = o->cost.n ? o->cost : S("10.0"),
        .target_api = o->target_api.n ? o->target_api : S("apps/v1"),
        .target_kind = o->target_kind.n ? o->target_kind : S("Deployment"),
        .target = o->target,
        .has_min = o->has_min || hpa,
        .min = o->has_min ? o->min : 1,
        .max = o->has_max ? o->max
               : hpa      ? 0
                          : KEDA_MAX_DEFAULT,
    };
    if (read_cost(v.cost_text, rules, &v.cost, e) < 0)
        return -EINVAL;
    if (!o->target.n)
        return err_set(e, EINVAL, "%s " STR_FMT "/" STR_FMT " has no scaleTargetRef",
                       hpa ? "HPA" : "ScaledObject", STR_ARG(o->ns), STR_ARG(o->name));
    if (!v.has_min)
        v.min = 0;
    *ret = v;
    return 0;
}

/* ---- who describes a workload */

static bool is_same_target(const struct annotation_variant *a, const struct annotation_variant *b)
{
    return str_eq(a->ns, b->ns) && str_eq(a->target_kind, b->target_kind) &&
           str_eq(a->target, b->target);
}

/* Whether `a`, which comes before `b`, counts instead of it. */
static bool is_preferred(const struct annotation_variant *a, const struct annotation_variant *b,
                         enum annotation_rules rules)
{
    if (a->kind != b->kind)
        return a->kind > b->kind;
    return rules == ANNOTATION_OURS && str_cmp(a->name, b->name) <= 0;
}

/* Marks all but the preferred description of each workload. Quadratic; there are a few objects per namespace. */
void annotation_choose(struct annotation_variant *variants, size_t n, enum annotation_rules rules)
{
    for (size_t i = 0; i < n; i++) {
        size_t best = i;
        for (size_t k = 0; k < n; k++) {
            if (k == best || !is_same_target(&variants[k], &variants[i]))
                continue;
            if (k < best ? is_preferred(&variants[k], &variants[best], rules)
                         : !is_preferred(&variants[best], &variants[k], rules))
                best = k;
        }
        variants[i].duplicate_of = best == i ? S("") : variants[best].name;
    }
}
