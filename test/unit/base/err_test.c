#include "tap.h"

#include "base/err.h"

static void set_and_wrap(void)
{
    err_t e;
    EQ_INT(err_set(&e, ENOENT, "file %s: missing", "a"), -ENOENT);
    EQ_STR(str_c(e.text), S("file a: missing"));
    EQ_INT(err_wrap(&e, "config %d", 3), -ENOENT);
    EQ_STR(str_c(e.text), S("config 3: file a: missing"));
    EQ_INT(err_set(NULL, EIO, "no error to fill"), -EIO);
    EQ_INT(err_set(&e, 0, "code zero is still a failure"), -EINVAL);
}

static void long_text_is_cut_visibly(void)
{
    err_t e;
    char text[2000];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    err_set(&e, EINVAL, "%s", text);
    EQ_INT(strlen(e.text), sizeof(e.text) - 1);
    OK(str_ends(str_c(e.text), S("x...")));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(set_and_wrap), TAP(long_text_is_cut_visibly), { 0 } });
}
