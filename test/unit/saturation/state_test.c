/* The variants in memory: how many there may be. */
#include "saturation/saturation_state.h"
#include "tap.h"

#include <stdio.h>

static struct variant *put_number(struct saturation *s, int i)
{
    char name[32], spec[160];
    snprintf(name, sizeof(name), "v%d", i);
    snprintf(spec, sizeof(spec),
             "{\"modelID\":\"%s\",\"scaleTargetRef\":{\"kind\":\"Deployment\",\"name\":\"%s\"}}",
             name, name);
    struct variant_record r = { .meta = { .ns = S("a"), .name = str_c(name), .uid = str_c(name) },
                                .spec = str_c(spec) };
    return saturation_put(s, &r);
}

/* An API server that invents names without end does not fill the memory of the operator. */
static void more_variants_than_fit_are_ignored(void)
{
    struct saturation s = { 0 };
    int fit = 0;
    for (int i = 0; i < SAT_VARIANTS_MAX; i++)
        fit += put_number(&s, i) != NULL;
    EQ_INT(fit, SAT_VARIANTS_MAX);
    OK(!s.ignores_variants);
    OK(!put_number(&s, SAT_VARIANTS_MAX) && s.ignores_variants);
    OK(put_number(&s, 7) != NULL); /* an update of one that is there */
    EQ_INT((int64_t)s.by_key.n, SAT_VARIANTS_MAX);
    saturation_state_done(&s);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(more_variants_than_fit_are_ignored), { 0 } });
}
