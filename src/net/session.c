/* The exchanges of one server connection, the same for both protocols: see session.h. */
#include "session.h"

#include <stdarg.h>
#include <stdio.h>

void session_add(struct session *s, struct exchange *x)
{
    x->session = s;
    list_prepend(&s->exchanges, &x->item);
}

void session_remove(struct session *s, struct exchange *x)
{
    list_remove(&x->item);
    s->held -= x->held;
    *s->host.unread_bytes -= x->held;
    x->held = 0;
    x->session = NULL;
}

void session_disconnect_all(struct session *s)
{
    for (struct exchange *x; (x = list_first(&s->exchanges, struct exchange, item));)
        exchange_disconnect(x);
}

void session_report_limit(const struct session *s, const char *format, ...)
{
    const struct http_server_options *o = s->host.options;
    if (!o->on_limit)
        return;
    char what[200];
    va_list args;
    va_start(args, format);
    vsnprintf(what, sizeof(what), format, args);
    va_end(args);
    o->on_limit(o->context, s->host.peer->address, what);
}
