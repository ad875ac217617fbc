/* Labels and numbers: see prom.h. */
#include "prom.h"

#include <math.h>

str prom_label_get(const struct prom_label *labels, size_t n, str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(labels[i].name, name))
            return labels[i].value;
    return S("");
}

int prom_number(str text, double *ret)
{
    bool sign = text.n && (text.p[0] == '-' || text.p[0] == '+');
    str size = str_from(text, sign);
    if (str_eq_nocase(size, S("inf")) || str_eq_nocase(size, S("infinity")))
        *ret = text.p[0] == '-' ? -INFINITY : INFINITY;
    else if (str_eq_nocase(text, S("nan")))
        *ret = NAN;
    else
        return str_to_f64(text, ret);
    return 0;
}
