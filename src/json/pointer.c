/* JSON pointers: see pointer.h. Keys are compared with tokens without unescaping them first, so a
 * lookup does not allocate. */
#include "pointer.h"

int pointer_check(str pointer, err_t *e)
{
    if (pointer.n && pointer.p[0] != '/')
        return err_set(e, EINVAL, "JSON pointer \"" STR_FMT "\" must be empty or start with \"/\"",
                       STR_ARG(pointer));
    for (size_t i = 0; i < pointer.n; i++)
        if (pointer.p[i] == '~' &&
            (i + 1 == pointer.n || (pointer.p[i + 1] != '0' && pointer.p[i + 1] != '1')))
            return err_set(e, EINVAL,
                           "JSON pointer \"" STR_FMT "\" has a \"~\" that is not \"~0\" or \"~1\"",
                           STR_ARG(pointer));
    return 0;
}

bool pointer_next(str *rest, str *ret_token)
{
    if (!rest->n)
        return false;
    str after = str_from(*rest, 1);
    size_t slash = str_find_char(after, '/');
    *ret_token = str_upto(after, slash);
    *rest = str_from(after, ret_token->n);
    return true;
}

bool pointer_split(str pointer, str *ret_parent, str *ret_last)
{
    size_t slash = pointer.n;
    while (slash > 0 && pointer.p[slash - 1] != '/')
        slash--;
    if (!slash)
        return false;
    *ret_parent = str_upto(pointer, slash - 1);
    *ret_last = str_from(pointer, slash);
    return true;
}

static size_t unescape(str token, size_t at, char *ret)
{
    *ret = token.p[at];
    if (*ret != '~' || at + 1 >= token.n)
        return 1;
    *ret = token.p[at + 1] == '1' ? '/' : '~';
    return 2;
}

str pointer_unescape(struct arena *a, str token)
{
    if (str_find_char(token, '~') == SIZE_MAX)
        return arena_str(a, token);
    char *text = arena_alloc(a, token.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < token.n;)
        i += unescape(token, i, &text[n++]);
    return (str){ text, n };
}

void pointer_put(struct buf *out, str key)
{
    buf_putc(out, '/');
    for (size_t i = 0; i < key.n; i++) {
        if (key.p[i] == '~')
            buf_put(out, S("~0"));
        else if (key.p[i] == '/')
            buf_put(out, S("~1"));
        else
            buf_putc(out, key.p[i]);
    }
}

static bool token_is(str token, str key)
{
    size_t n = 0;
    for (size_t i = 0; i < token.n; n++) {
        char c;
        i += unescape(token, i, &c);
        if (n >= key.n || key.p[n] != c)
            return false;
    }
    return n == key.n;
}

/* The member whose name is the (escaped) token. */
static struct json *pointer_member(const struct json *obj, str token)
{
    if (str_find_char(token, '~') == SIZE_MAX)
        return json_get_str(obj, token);
    json_each(m, obj)
        if (token_is(token, m->key))
            return m->value;
    return NULL;
}

static struct json *find_item(const struct json *arr, str token)
{
    int64_t at;
    if (!token.n || token.p[0] < '0' || token.p[0] > '9' || (token.p[0] == '0' && token.n > 1) ||
        str_to_i64(token, &at) < 0)
        return NULL;
    return json_item(arr, (size_t)at);
}

struct json *pointer_get(const struct json *root, str pointer)
{
    if (pointer_check(pointer, NULL) < 0)
        return NULL;
    struct json *v = (struct json *)(uintptr_t)root;
    for (str token; v && pointer_next(&pointer, &token);)
        v = json_is(v, JSON_ARR) ? find_item(v, token) : pointer_member(v, token);
    return v;
}
