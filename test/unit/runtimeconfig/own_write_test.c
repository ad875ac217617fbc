/* Whose a change of the status is, whether it is seen before or after the answer to the write. */
#include "tap.h"

#include "runtimeconfig/own_write.h"

static bool shows(struct aim_own_write *w, const char *version)
{
    return aim_own_write_is_ours(w, &(struct record){ .rv = str_c(version) });
}

/* NULL: without success. */
static bool end(struct aim_own_write *w, const char *version)
{
    auto_arena struct arena a = { 0 };
    struct json *o = json_new_obj(&a);
    struct kube_reply reply = { .object = o, .failure = version ? NULL : "it failed" };
    if (version)
        json_set_str(&a, json_make(&a, o, "metadata", NULL), "resourceVersion", str_c(version));
    return aim_own_write_end(w, &reply);
}

static void what_is_seen_after_the_answer(void)
{
    struct aim_own_write w = { 0 };
    OK(!shows(&w, "1"));
    aim_own_write_begin(&w);
    OK(!end(&w, "2"));
    OK(shows(&w, "2"));
    OK(!shows(&w, "3"));
}

static void what_is_seen_before_the_answer(void)
{
    struct aim_own_write w = { 0 };
    aim_own_write_begin(&w);
    OK(shows(&w, "2"));
    OK(!end(&w, "2"));
    aim_own_write_begin(&w);
    OK(shows(&w, "3"));
    OK(end(&w, "4")); /* that was not it */
    OK(shows(&w, "4"));
    aim_own_write_begin(&w);
    OK(shows(&w, "5") && shows(&w, "6"));
    OK(end(&w, "6")); /* nor was the first of them */
}

static void what_was_not_answered_may_be_seen_later(void)
{
    struct aim_own_write w = { 0 };
    aim_own_write_begin(&w);
    OK(!end(&w, "2"));
    aim_own_write_begin(&w);
    OK(!end(&w, NULL));
    OK(shows(&w, "2"));
    OK(!shows(&w, "3"));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(what_is_seen_after_the_answer),
                                        TAP(what_is_seen_before_the_answer),
                                        TAP(what_was_not_answered_may_be_seen_later),
                                        { 0 } });
}
