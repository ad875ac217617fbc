/* The variants in memory: how many there may be. */
#include "base/log.h"
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

static void count_line(void *context, str line)
{
    (void)line;
    ++*(int *)context;
}

/* Nor does one fill the log, or spend its time on it. */
static void few_of_the_same_problems_are_logged(void)
{
    struct saturation s = { 0 };
    int lines = 0;
    log_redirect(count_line, &lines);
    for (int i = 0; i < 2000; i++) {
        char name[32];
        snprintf(name, sizeof(name), "v%d", i % 1000);
        saturation_put(&s, &(struct variant_record){
                               .meta = { .ns = S("a"), .name = str_c(name), .uid = str_c(name) },
                               .spec = S("{}") });
    }
    OK(lines > 0 && lines <= 10);
    saturation_report_problems(&s);
    saturation_report_problems(&s);
    OK(lines <= 11);
    saturation_put(&s, &(struct variant_record){
                           .meta = { .ns = S("a"), .name = S("late"), .uid = S("late") },
                           .spec = S("{}") });
    OK(lines >= 12); /* the next cycle has lines of its own */
    log_redirect(NULL, NULL);
    saturation_state_done(&s);
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(more_variants_than_fit_are_ignored), TAP(few_of_the_same_problems_are_logged), { 0 } });
}
