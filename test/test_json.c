#include "test_json.h"

#include "tap.h"

struct json *test_json(struct arena *a, const char *text)
{
    struct json *v = NULL;
    err_t e;
    OK_CALL(json_parse(a, str_c(text), &v, &e), &e);
    return v;
}

struct json *test_json_quoted_by(struct arena *a, const char *text, char quote)
{
    if (!text)
        return NULL;
    auto_free char *copy = mem_dup(text, strlen(text));
    for (char *c = copy; *c; c++)
        *c = *c == quote ? '"' : *c;
    return test_json(a, copy);
}

struct json *test_json_quoted(struct arena *a, const char *text)
{
    return test_json_quoted_by(a, text, '\'');
}
