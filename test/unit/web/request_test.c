/* Cookies, credentials and event ids as browsers and others send them. */
#include "web/request_core.h"

#include "tap.h"

static void finds_its_cookie_among_others(void)
{
    static const struct {
        const char *header, *want;
    } t[] = {
        { "f=1", "1" },        { "a=b; f=1; c=d", "1" },
        { "f=1;f=2", "1" },    { " f=1 ", "1" },
        { "xf=1", "" },        { "f", "" },
        { "f=", "" },          { "", "" },
        { ";;==;f", "" },      { "ff=1", "" },
        { "f=a=b", "a=b" },    { "F=1", "" },
        { "a=f=1; f=2", "2" },
    };
    for (size_t i = 0; i < countof(t); i++)
        EQ_STR(web_request_cookie(str_c(t[i].header), S("f")), str_c(t[i].want));
    EQ_STR(web_request_cookie((str){ 0 }, S("f")), S(""));
}

static void finds_a_bearer_token(void)
{
    static const struct {
        const char *header, *want;
    } t[] = {
        { "Bearer abc", "abc" }, { "bearer  abc ", "abc" }, { "Bearer", "" },
        { "Bearer ", "" },       { "Basic abc", "" },       { "", "" },
        { "abc", "" },           { "Bearer a b", "a b" },
    };
    for (size_t i = 0; i < countof(t); i++)
        EQ_STR(web_request_bearer(str_c(t[i].header)), str_c(t[i].want));
    EQ_STR(web_request_bearer((str){ 0 }), S(""));
}

static void reads_only_ids_of_this_process(void)
{
    uint64_t number = 7;
    OK(web_request_event_id(S("0a1b2c3d-12"), "0a1b2c3d", &number));
    EQ_INT(number, 12);
    static const char *const bad[] = { "",
                                       "-",
                                       "0a1b2c3d",
                                       "0a1b2c3d-",
                                       "0a1b2c3d--1",
                                       "0a1b2c3e-12",
                                       "0a1b2c3d-1x",
                                       "0a1b2c3d-12-3",
                                       "12",
                                       "x0a1b2c3d-1",
                                       "0a1b2c3d-99999999999999999999" };
    for (size_t i = 0; i < countof(bad); i++)
        OK(!web_request_event_id(str_c(bad[i]), "0a1b2c3d", &number));
    OK(!web_request_event_id((str){ 0 }, "0a1b2c3d", &number));
    EQ_INT(number, 12); /* untouched */
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(finds_its_cookie_among_others),
                                        TAP(finds_a_bearer_token),
                                        TAP(reads_only_ids_of_this_process),
                                        { 0 } });
}
