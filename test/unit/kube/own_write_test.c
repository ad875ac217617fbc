/* Whose a change of the status is, whether it is seen before or after the answer to the write; and for how long the
 * answer is newer than the cache. */
#include "tap.h"

#include "kube/own_write.h"

static bool shows(struct own_write *w, const char *version)
{
    return own_write_is_ours(w, &(struct record){ .rv = str_c(version) });
}

/* NULL: without success. */
static bool end_with_text(struct own_write *w, const char *version, const char *text)
{
    auto_arena struct arena a = { 0 };
    struct json *o = json_new_obj(&a);
    struct kube_reply reply = { .object = o, .failure = version ? NULL : "it failed" };
    if (version)
        json_set_str(&a, json_make(&a, o, "metadata", NULL), "resourceVersion", str_c(version));
    return own_write_end(w, &reply, S("1"), str_c(text));
}

static bool end(struct own_write *w, const char *version)
{
    return end_with_text(w, version, "{}");
}

static void what_is_seen_after_the_answer(void)
{
    struct own_write w = { 0 };
    OK(!shows(&w, "1"));
    own_write_begin(&w);
    OK(!end(&w, "2"));
    OK(shows(&w, "2"));
    OK(!shows(&w, "3"));
    own_write_done(&w);
}

static void what_is_seen_before_the_answer(void)
{
    struct own_write w = { 0 };
    own_write_begin(&w);
    OK(shows(&w, "2"));
    OK(!end(&w, "2"));
    own_write_begin(&w);
    OK(shows(&w, "3"));
    OK(end(&w, "4")); /* that was not it */
    OK(shows(&w, "4"));
    own_write_begin(&w);
    OK(shows(&w, "5") && shows(&w, "6"));
    OK(end(&w, "6")); /* nor was the first of them */
    own_write_done(&w);
}

static void what_was_not_answered_may_be_seen_later(void)
{
    struct own_write w = { 0 };
    own_write_begin(&w);
    OK(!end(&w, "2"));
    own_write_begin(&w);
    OK(!end(&w, NULL));
    OK(shows(&w, "2"));
    OK(!shows(&w, "3"));
    own_write_done(&w);
}

static void a_write_is_pending_until_the_cache_has_another_version(void)
{
    auto_arena struct arena a = { 0 };
    struct own_write w = { 0 };
    OK(!own_write_is_pending(&w, S("1"), 0));
    end_with_text(&w, "2", "{\"a\":1}");
    OK(own_write_is_pending(&w, S("1"), 0));
    EQ_INT(json_int(json_get(own_write_json(&w, &a, S("1"), 0), "a"), 0), 1);
    end_with_text(&w, NULL, "{\"a\":2}"); /* a failed write changes nothing */
    EQ_INT(json_int(json_get(own_write_json(&w, &a, S("1"), 0), "a"), 0), 1);
    OK(!own_write_json(&w, &a, S("9"), 0));
    OK(!w.text && !own_write_is_pending(&w, S("1"), 0)); /* the cache does not go back */
    end(&w, "1");                                        /* nothing changed: no event comes */
    OK(!own_write_is_pending(&w, S("1"), 0));
    own_write_done(&w);
}

/* One turn writes finalizers and then the status, both to the version that the cache has. These versions are no numbers. */
static void writes_in_between_are_not_the_last_one(void)
{
    auto_arena struct arena a = { 0 };
    struct own_write w = { 0 };
    end_with_text(&w, "b", "{}");
    end_with_text(&w, "c", "{\"a\":1}");
    end_with_text(&w, "d", "{\"a\":2}");
    static const char *const older[] = { "1", "b", "c", "b" };
    for (size_t i = 0; i < countof(older); i++)
        EQ_INT(json_int(json_get(own_write_json(&w, &a, str_c(older[i]), 0), "a"), 0), 2);
    OK(!own_write_is_pending(&w, S("d"), 0));
    OK(!own_write_is_pending(&w, S("c"), 0)); /* forgotten */
    end_with_text(&w, "e", "{}");
    OK(!own_write_is_pending(&w, S("c"), 0)); /* not of this chain */
    own_write_done(&w);
}

static void a_held_write_outlasts_versions_in_between(void)
{
    struct own_write w = { 0 };
    end(&w, "c");
    own_write_hold(&w, 50);
    OK(own_write_is_pending(&w, S("1"), 10) && own_write_is_pending(&w, S("b"), 49));
    OK(!own_write_is_pending(&w, S("c"), 20));
    end(&w, "d");
    own_write_hold(&w, 50);
    OK(!own_write_is_pending(&w, S("b"), 50)); /* it never came */
    end(&w, "e");                              /* not held: the next one starts again */
    OK(!own_write_is_pending(&w, S("b"), 0));
    own_write_done(&w);
}

/* Another client wrote after the version that the cache has and before us: what the watch delivers first is older. */
static void versions_have_an_order(void)
{
    auto_arena struct arena a = { 0 };
    struct own_write w = { 0 };
    end_with_text(&w, "12", "{\"a\":1}"); /* written to version 1 */
    static const char *const older[] = { "1", "2", "9", "11" };
    for (size_t i = 0; i < countof(older); i++)
        EQ_INT(json_int(json_get(own_write_json(&w, &a, str_c(older[i]), 0), "a"), 0), 1);
    OK(!own_write_is_pending(&w, S("100"), 0)); /* the watch has passed it */
    OK(!own_write_is_pending(&w, S("2"), 0));
    end(&w, "12");
    OK(!own_write_is_pending(&w, S("12"), 0));
    end(&w, "99999999999999999999"); /* no number that fits: not ordered */
    OK(own_write_is_pending(&w, S("1"), 0) && !own_write_is_pending(&w, S("2"), 0));
    own_write_done(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(what_is_seen_after_the_answer),
                                        TAP(what_is_seen_before_the_answer),
                                        TAP(what_was_not_answered_may_be_seen_later),
                                        TAP(a_write_is_pending_until_the_cache_has_another_version),
                                        TAP(writes_in_between_are_not_the_last_one),
                                        TAP(a_held_write_outlasts_versions_in_between),
                                        TAP(versions_have_an_order),
                                        { 0 } });
}
