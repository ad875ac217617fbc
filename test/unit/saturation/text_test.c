#include "tap.h"

#include "saturation/objects/text_core.h"

static void shortens_accelerators(void)
{
    static const struct {
        const char *product, *want;
    } t[] = {
        { "NVIDIA-A100-PCIE-80GB", "A100" },
        { "AMD-MI300X-192G", "MI300X" },
        { "Intel-Gaudi-2-96GB", "Gaudi-2" },
        { "intel-Max", "Max" },
        { "INTEL-Max-", "Max-" },
        { "A100", "A100" },
        { "", "" },
        { "-", "" },
        { "-x", "x" },
        { "NVIDIA-", "" },
        { "H100-80GB", "80GB" },
    };
    for (size_t i = 0; i < countof(t); i++)
        EQ_STR(sat_accelerator_name(str_c(t[i].product)), str_c(t[i].want));
}

static void names_what_is_cached(void)
{
    auto_buf struct buf out = { 0 };
    static const struct text_pair pairs[] = { { { "ns", 2 }, { "x", 1 } },
                                              { { "a", 1 }, { "", 0 } } };
    sat_cache_key(&out, S("q"), pairs, 2);
    EQ_STR(buf_str(&out), S("q:a=,ns=x"));
    buf_clear(&out);
    sat_cache_key(&out, S("q"), NULL, 0);
    EQ_STR(buf_str(&out), S("q"));
}

static void judges_age(void)
{
    EQ_INT(sat_freshness_of(-1), FRESHNESS_FRESH);
    EQ_INT(sat_freshness_of(59999999999), FRESHNESS_FRESH);
    EQ_INT(sat_freshness_of(60000000000), FRESHNESS_STALE);
    EQ_INT(sat_freshness_of(299999999999), FRESHNESS_STALE);
    EQ_STR(str_c(sat_freshness_name(sat_freshness_of(300000000000))), S("unavailable"));
}

static void splits_words(void)
{
    static const struct {
        const char *text, *want;
    } t[] = {
        { "", "" },
        { "  ", "" },
        { "a", "a|" },
        { " a  b ", "a|b|" },
        { "sh -c \"a b\" 'c d'e", "sh|-c|a b|c de|" },
        { "a\tb\nc", "a\tb\nc|" },
        { "'' \"\" x", "x|" },
        { "\"it's\" 'a \"b\"'", "it's|a \"b\"|" },
        { "'open end", "open end|" },
        { "a\\ b", "a\\|b|" },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        auto_buf struct buf out = { 0 };
        struct sat_words words = sat_split_command(&a, str_c(t[i].text));
        for (size_t k = 0; k < words.n; k++)
            buf_printf(&out, STR_FMT "|", STR_ARG(words.at[k]));
        EQ_STR(buf_str(&out), str_c(t[i].want));
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(shortens_accelerators),
                                        TAP(names_what_is_cached),
                                        TAP(judges_age),
                                        TAP(splits_words),
                                        { 0 } });
}
