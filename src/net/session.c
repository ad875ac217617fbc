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

const char *session_put_refusal(const struct session *s, int status, struct buf *body)
{
    const struct http_server_options *o = s->host.options;
    if (o->refusal)
        return o->refusal(o->context, status, body);
    buf_printf(body, "%d %s\n", status, http_reason(status));
    return "text/plain; charset=utf-8";
}

bool session_sets_header(str name)
{
    return http_header_is_framing(name) || str_eq_nocase(name, S("date"));
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
