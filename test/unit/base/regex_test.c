#include "tap.h"

#include "base/buf.h"
#include "base/regex.h"

static const struct regex *compile(struct arena *a, const char *pattern)
{
    const struct regex *r = NULL;
    err_t e;
    return OK_CALL(regex_compile(a, str_c(pattern), &r, &e), &e) ? r : NULL;
}

static void matches_as_go_does(void)
{
    static const struct {
        const char *pattern, *yes, *no;
    } t[] = {
        { "^[A-Z]{2}\\d+$", "AB12", "ab12" },
        { "^\\d+(\\.\\d+)?$", "10.0", "10." },
        { "^(\\d+)%?$", "50%", "half" },
        { "b", "abc", "aac" },
        { "^a|b$", "axx", "xxa" },
        { "^(?:a|bc)*$", "abcabc", "abca c" },
        { "^[^a-c]+$", "xyz", "xbz" },
        { "^[]a]+$", "]a", "b" },
        { "^[a\\]-]+$", "a]-", "b" },
        { "^[[:alpha:]_]+$", "ab_", "a1" },
        { "^\\w+\\s\\W$", "ab !", "ab c" },
        { "(?i)^abc$", "aBC", "abd" },
        { "(?s)^a.b$", "a\nb", "ab" },
        { "^a.b$", "axb", "a\nb" },
        { "(?m)^b$", "a\nb\nc", "ab" },
        { "\\bfoo\\b", "a foo b", "afoo b" },
        { "\\Bo", "fo", "o" },
        { "^a{2,3}$", "aaa", "aaaa" },
        { "^a{2,}$", "aaaa", "a" },
        { "^a{,2}$", "a{,2}", "aa" },
        { "^x{$", "x{", "x" },
        { "^a??b$", "ab", "aab" },
        { "^(a*)*$", "aaa", "b" },
        { "^(|a)+$", "aa", "b" },
        { "^\\x41\\x{263a}$", "A\xe2\x98\xba", "A" },
        { "^.$", "\xc3\xbc", "\xc3\xbc\xc3\xbc" },
        { "^\\Qa.b\\E$", "a.b", "axb" },
        { "^(?P<name>a)(?<other>b)$", "ab", "a" },
        { "\\Aab\\z", "ab", "ab\n" },
        { "^$", "", "a" },
        { "^[a-z0-9]([-a-z0-9]*[a-z0-9])?$", "a-b", "a-" },
        { "^(a(?i)b)c$", "aBc", "aBC" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        const struct regex *r = compile(&a, t[i].pattern);
        if (!r)
            continue;
        if (!regex_matches(r, str_c(t[i].yes)))
            tap_note(__FILE__, __LINE__, "%s does not match %s", t[i].pattern, t[i].yes);
        if (regex_matches(r, str_c(t[i].no)))
            tap_note(__FILE__, __LINE__, "%s matches %s", t[i].pattern, t[i].no);
    }
}

static void refuses_what_go_refuses(void)
{
    static const char *const bad[] = { "[",       "(",       ")",       "*a",          "a**",
                                       "a{2}{3}", "[b-a]",   "\\",      "\\1",         "(?=a)",
                                       "(?<!a)",  "a{1001}", "[[:x:]]", "\\x{110000}", "(?z)a",
                                       "a{3,2}",  "(a",      "\\y" };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(bad); i++) {
        const struct regex *r = NULL;
        err_t e;
        if (regex_compile(&a, str_c(bad[i]), &r, &e) != -EINVAL)
            tap_note(__FILE__, __LINE__, "%s is accepted", bad[i]);
    }
    const struct regex *r = NULL;
    EQ_INT(regex_compile(&a, S("\\p{L}"), &r, NULL), -ENOTSUP);
    EQ_INT(regex_compile(&a, S("((a{1000}){1000}){1000}"), &r, NULL), -E2BIG);
}

static void hard_patterns_stay_linear(void)
{
    auto_arena struct arena a = { 0 };
    const struct regex *r = compile(&a, "^(a+)+(a|aa)*$");
    auto_buf struct buf text = { 0 };
    for (int i = 0; i < 50000; i++)
        buf_putc(&text, 'a');
    buf_putc(&text, '!');
    OK(r && !regex_matches(r, buf_str(&text)));
    text.n--;
    OK(r && regex_matches(r, buf_str(&text)));
}

static void broken_text_is_one_character_a_byte(void)
{
    auto_arena struct arena a = { 0 };
    const struct regex *r = compile(&a, "^..$");
    OK(r && regex_matches(r, (str){ "\xff\xc3", 2 }));
    OK(r && !regex_matches(r, (str){ "\xff\xc3\x28", 3 }));
}

int main(void)
{
    return tap_run((struct tap_case[]){
        TAP(matches_as_go_does),
        TAP(refuses_what_go_refuses),
        TAP(hard_patterns_stay_linear),
        TAP(broken_text_is_one_character_a_byte),
        { 0 },
    });
}
