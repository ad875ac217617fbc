/* Parts of a request: see request_core.h.
 *
 * Nothing is copied: a part borrows from its header. An odd header has no part instead of an error, because the answer
 * is the same: the request has no session, or the stream begins again. */
#include "request_core.h"

str web_request_cookie(str header, str name)
{
    str one, key;
    while (str_cut(&header, ';', &one)) {
        str value = str_trim(one);
        if (str_cut(&value, '=', &key) && value.p && str_eq(key, name))
            return value;
    }
    return S("");
}

str web_request_bearer(str header)
{
    str scheme = S("");
    bool two = header.p && str_cut(&header, ' ', &scheme) && header.p;
    return two && str_eq_nocase(scheme, S("bearer")) ? str_trim(header) : S("");
}

bool web_request_event_id(str id, const char *epoch, uint64_t *ret)
{
    str first;
    int64_t number;
    if (!id.p || !str_cut(&id, '-', &first) || !str_eqc(first, epoch) || !id.p ||
        str_to_i64(id, &number) < 0 || number < 0)
        return false;
    *ret = (uint64_t)number;
    return true;
}
