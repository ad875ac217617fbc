/* Error values: see err.h. The text is inside the value, so that errors need no allocation and no
 * owner; 500 bytes hold any sentence that we write, and longer ones are truncated visibly. */
#include "err.h"

#include <stdarg.h>
#include <stdio.h>

static void mark_if_cut(err_t *e, int wanted)
{
    if (wanted >= (int)sizeof(e->text))
        memcpy(e->text + sizeof(e->text) - 4, "...", 4);
}

int(err_set)(err_t *e, int code, const char *format, ...)
{
    code = code ? abs(code) : EINVAL;
    if (e) {
        va_list args;
        va_start(args, format);
        mark_if_cut(e, vsnprintf(e->text, sizeof(e->text), format, args));
        va_end(args);
        e->code = code;
    }
    return -code;
}

int(err_wrap)(err_t *e, const char *format, ...)
{
    if (!e)
        return -EINVAL;
    err_t inner = *e;
    char context[sizeof(e->text)];
    va_list args;
    va_start(args, format);
    vsnprintf(context, sizeof(context), format, args);
    va_end(args);
    return err_set(e, inner.code, "%s: %s", context, inner.text);
}
