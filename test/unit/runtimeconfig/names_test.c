/* Names beyond the golden vectors: any input gives names that a server accepts. */
#include "base/random.h"
#include "runtimeconfig/names_core.h"
#include "tap.h"

static bool is_label(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        bool alnum = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
        bool edge = i == 0 || i + 1 == s.n;
        if (!alnum && (edge || (c != '-' && c != '.' && c != '_')))
            return false;
    }
    return s.n > 0 && s.n <= NAMES_LABEL_MAX;
}

static str random_text(struct arena *a, struct random *r)
{
    size_t n = (size_t)random_below(r, 90);
    char *p = arena_alloc(a, n + 1);
    static const char likely[] = "abcXYZ019-._/:@ \xc3\xa9\xff";
    for (size_t i = 0; i < n; i++)
        p[i] = likely[random_below(r, sizeof(likely) - 1)];
    return (str){ p, n };
}

static void whatever_is_written_becomes_a_label(void)
{
    struct random r;
    random_init(&r, 7, 1);
    for (int i = 0; i < 2000; i++) {
        auto_arena struct arena a = { 0 };
        str text = random_text(&a, &r);
        str label = aim_names_label_value(&a, text);
        if (!OK(is_label(label)))
            printf("# " STR_FMT " of " STR_FMT "\n", STR_ARG(label), STR_ARG(text));
        str name = aim_names_rfc1123(&a, text), strict = aim_names_rfc1123_strict(&a, text);
        OK(!name.n || is_label(name));
        OK(!strict.n || is_label(strict));
        EQ_STR(aim_names_rfc1123(&a, name), name); /* once is enough */
    }
}

static void derived_names_fit(void)
{
    struct random r;
    random_init(&r, 11, 1);
    for (int i = 0; i < 500; i++) {
        auto_arena struct arena a = { 0 };
        str base = aim_names_rfc1123(&a, random_text(&a, &r));
        OK(aim_names_derived_template(&a, base, S("{}")).n <= NAMES_LABEL_MAX);
        struct aim_names_deployment d = { S("MI300X"), S("latency"), S("fp8"), 8 };
        OK(aim_names_template_of_deployment(&a, base, &d).n <= NAMES_LABEL_MAX);
        str isvc = aim_names_inference_service(&a, base, S("team-namespace"));
        OK(isvc.n + strlen("-predictor-team-namespace") <= NAMES_LABEL_MAX);
    }
}

static void images_are_cut_where_their_tag_begins(void)
{
    auto_arena struct arena a = { 0 };
    OK(str_starts(aim_names_model_of_image(&a, S("localhost:5000/team/chat")), S("chat-latest-")));
    OK(str_starts(aim_names_model_of_image(&a, S("localhost:5000/team/chat:2")), S("chat-2-")));
    OK(str_starts(aim_names_model_of_image(&a, S("x/chat:2@sha256:0123456789")),
                  S("chat-012345-")));
    OK(!str_eq(aim_names_model_of_image(&a, S("a/chat:2")),
               aim_names_model_of_image(&a, S("b/chat:2"))));
}

static void volumes_are_whole_and_never_overflow(void)
{
    const int64_t gib = (int64_t)1 << 30;
    EQ_INT(aim_names_volume_bytes(100 * gib, 10), 110 * gib); /* exact, not 110.00000000000001 */
    EQ_INT(aim_names_volume_bytes(-5, 10), 0);
    EQ_INT(aim_names_volume_bytes(gib, -50), gib);
    OK(aim_names_volume_bytes(INT64_MAX, INT64_MAX / 200) > 0);
    EQ_INT(aim_names_volume_bytes(INT64_MAX, 100) % gib, 0);
}

static void patterns_match_as_paths_do(void)
{
    static const struct {
        const char *pattern, *key;
        bool match, bad;
    } t[] = {
        { "team/*", "team/a", true, false }, { "team/*", "team/a/b", false, false },
        { "*", "a/b", false, false },        { "[a-", "a", false, true },
        { "[]a]", "a", false, true },        { "a\\", "a", false, true },
        { "[^/]*", "ab", true, false },      { "a*c*e", "abcde", true, false },
        { "a*c*e", "abcdef", false, false }, { "?", "\xc3\xa9", true, false },
        { "x[", "a", false, true },          { "", "a", false, false },
        { "*b", "aab", true, false },        { "[\\]]", "]", true, false },
    };
    for (size_t i = 0; i < countof(t); i++) {
        bool bad, match = aim_names_match_key(str_c(t[i].pattern), str_c(t[i].key), &bad);
        if (match != t[i].match || bad != t[i].bad)
            OK(tap_note(__FILE__, __LINE__, "%s on %s: %d %d", t[i].pattern, t[i].key, match, bad));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(whatever_is_written_becomes_a_label),
                                        TAP(derived_names_fit),
                                        TAP(images_are_cut_where_their_tag_begins),
                                        TAP(volumes_are_whole_and_never_overflow),
                                        TAP(patterns_match_as_paths_do),
                                        { 0 } });
}
