/* Complaints: few lines however much fails, and none that is neither logged nor counted. */
#include "base/log.h"
#include "fake.h"
#include "kube/controller.h"

static struct {
    int64_t lines, left_out, summaries; /* `left_out` as the summaries count */
    struct buf last;
} seen;

static void hear(void *context, str line)
{
    (void)context;
    size_t at = str_find(line, S(" count="));
    int64_t count = 0;
    if (at != SIZE_MAX) {
        OK(str_to_i64(str_trim(str_from(line, at + 7)), &count) == 0 && count > 0);
        OK(str_find(line, S("controller=widget")) != SIZE_MAX);
        seen.summaries++;
    } else {
        seen.lines++;
    }
    seen.left_out += count;
    buf_clear(&seen.last);
    buf_put(&seen.last, line);
}

struct run {
    struct fake f;
    struct controller *c;
    int64_t turns;
    const char *before, *after; /* the key's name in the failure's text; NULL: no failure */
};

static struct reconciled reconcile_as_requested(struct reconcile *r)
{
    struct run *run = r->context;
    if (!run->before)
        return reconciled();
    run->turns++;
    return reconciled_failed(r, "%s" STR_FMT "%s", run->before, STR_ARG(r->name), run->after);
}

static void serve_nothing(struct fake *f, struct exchange *x)
{
    (void)f;
    fake_answer(x, 200, "{}");
}

static void refuse(struct run *run)
{
    run->before = "patch widgets ns/";
    run->after = ": refused";
}

static void run_start(struct run *run)
{
    *run = (struct run){ 0 };
    refuse(run);
    fake_start(&run->f, serve_nothing);
    run->c =
        controller_new(run->f.kube, &(struct controller_spec){ .name = "widget",
                                                               .reconcile = reconcile_as_requested,
                                                               .context = run });
    buf_clear(&seen.last);
    seen.lines = seen.left_out = seen.summaries = 0;
    controller_start(run->c);
}

static void add_keys(struct run *run, int n)
{
    for (int i = 0; i < n; i++) {
        char name[20];
        snprintf(name, sizeof(name), "w-%03d", i);
        controller_add(run->c, S("ns"), str_c(name));
    }
}

static void run_stop(struct run *run)
{
    controller_free(run->c);
    fake_stop(&run->f);
}

static bool last_says(const char *text)
{
    return str_find(buf_str(&seen.last), str_c(text)) != SIZE_MAX;
}

static void an_outage_takes_a_line_every_ten_seconds(void)
{
    struct run run;
    run_start(&run);
    add_keys(&run, 200);
    fake_for(&run.f, 61 * NS_PER_S);
    OK(run.turns > 600);
    EQ_INT(seen.lines, 10);
    EQ_INT(seen.summaries, 6);
    OK(last_says("error=\"patch widgets ns/w-"));

    run.before = NULL; /* the server is back: what was not logged yet still is */
    fake_for(&run.f, 30 * NS_PER_S);
    EQ_INT(seen.lines + seen.left_out, run.turns);
    run_stop(&run);
}

static void another_failure_is_logged_at_once(void)
{
    struct run run;
    run_start(&run);
    add_keys(&run, 20);
    fake_for(&run.f, NS_PER_MS);
    EQ_INT(seen.lines, 10);
    run.before = "Operation cannot be fulfilled on widgets \"";
    run.after = "\": somebody was faster";
    controller_add(run.c, S("ns"), S("other"));
    fake_for(&run.f, NS_PER_MS);
    EQ_INT(seen.lines, 11);
    OK(last_says("name=other") && last_says("retry_ms="));
    run_stop(&run);
}

static void after_a_quiet_period_it_is_logged_again(void)
{
    struct run run;
    run_start(&run);
    add_keys(&run, 20);
    fake_for(&run.f, NS_PER_MS);
    run.before = NULL;
    fake_for(&run.f, 25 * NS_PER_S);
    EQ_INT(seen.lines, 10);
    EQ_INT(seen.left_out, 10);
    refuse(&run);
    controller_add(run.c, S("ns"), S("w-000"));
    fake_for(&run.f, NS_PER_MS);
    EQ_INT(seen.lines, 11);
    run_stop(&run);
}

static void the_end_reports_what_was_left_out(void)
{
    struct run run;
    run_start(&run);
    add_keys(&run, 30);
    fake_for(&run.f, NS_PER_MS);
    int64_t turns = run.turns;
    run_stop(&run);
    EQ_INT(seen.lines + seen.left_out, turns);
    EQ_INT(seen.summaries, 1);
}

/* Every failure has a text of its own: the lines are few all the same. */
static void endless_variety_has_an_end(void)
{
    struct run run;
    run_start(&run);
    for (int i = 0; i < 1000; i++) {
        char text[40];
        snprintf(text, sizeof(text), "failure of the kind %d on ", i);
        run.before = text;
        controller_add(run.c, S("ns"), S("w"));
        fake_for(&run.f, NS_PER_MS);
    }
    OK(run.turns >= 1000);
    OK(seen.lines < 20);
    int64_t turns = run.turns;
    run_stop(&run);
    EQ_INT(seen.lines + seen.left_out, turns);
}

int main(void)
{
    log_redirect(hear, NULL);
    int result = tap_run((struct tap_case[]){ TAP(an_outage_takes_a_line_every_ten_seconds),
                                              TAP(another_failure_is_logged_at_once),
                                              TAP(after_a_quiet_period_it_is_logged_again),
                                              TAP(the_end_reports_what_was_left_out),
                                              TAP(endless_variety_has_an_end),
                                              { 0 } });
    buf_done(&seen.last);
    return result;
}
