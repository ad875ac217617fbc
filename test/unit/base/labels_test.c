/* Label selectors: what is accepted, and what matches. */
#include "base/labels.h"
#include "tap.h"

static bool get_label(const void *labels, str key, str *ret)
{
    const char *const *pairs = labels;
    for (; *pairs; pairs += 2)
        if (str_eqc(key, pairs[0])) {
            *ret = str_c(pairs[1]);
            return true;
        }
    return false;
}

static void selectors_match_like_kubectl(void)
{
    static const char *const labels[] = { "pool", "a", "n", "7", "empty", "", NULL };
    static const struct {
        const char *text;
        bool match;
    } cases[] = {
        { "", true },
        { "  ", true },
        { "pool", true },
        { "!pool", false },
        { "!spot", true },
        { "pool=a", true },
        { "pool == a", true },
        { "pool!=a", false },
        { "other!=a", true },
        { "pool in (b, a)", true },
        { "pool notin (b)", true },
        { "other notin (b)", true },
        { "pool in (b)", false },
        { "n>6,n<8", true },
        { "n>7", false },
        { "pool>1", false },
        { "empty=", true },
        { "empty in (,x)", true },
        { "pool=a,!spot,n", true },
        { "pool=a,spot", false },
    };
    for (size_t i = 0; i < countof(cases); i++) {
        auto_arena struct arena a = { 0 };
        struct labels_selector s;
        err_t e = { 0 };
        EQ_INT(labels_parse(&a, str_c(cases[i].text), &s, &e), 0);
        if (labels_match(&s, get_label, labels) != cases[i].match)
            tap_note(__FILE__, __LINE__, "%s: want %d", cases[i].text, cases[i].match);
    }
}

static void wrong_selectors_are_refused(void)
{
    static const char *const texts[] = { "a,",      ",a",    "a=b=c", "a in b", "a in (b",
                                         "a > x",   "-a=b",  "a=-",   "a b",    "!a=b",
                                         "A.b/c/d", "a in)", "=a",    "B_/x=1", "a=b c" };
    for (size_t i = 0; i < countof(texts); i++) {
        auto_arena struct arena a = { 0 };
        struct labels_selector s;
        err_t e = { 0 };
        if (labels_parse(&a, str_c(texts[i]), &s, &e) == 0 || !e.text[0])
            tap_note(__FILE__, __LINE__, "%s: accepted", texts[i]);
    }
    OK(labels_is_key(S("example.com/a_b")));
    OK(!labels_is_key(S("/a")));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(selectors_match_like_kubectl), TAP(wrong_selectors_are_refused), { 0 } });
}
