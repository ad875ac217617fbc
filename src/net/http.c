/* Headers and status texts: see http.h. */
#include "http.h"

str http_header_get(struct http_headers headers, str name)
{
    for (size_t i = 0; i < headers.n; i++)
        if (str_eq_nocase(headers.at[i].name, name))
            return headers.at[i].value;
    return (str){ 0 };
}

/* "q=0", "q=0.", "q=0.000" exclude the value that they follow. */
static bool weight_is_zero(str parameters)
{
    str parameter;
    while (str_cut(&parameters, ';', &parameter)) {
        parameter = str_trim(parameter);
        if (parameter.n < 3 || !str_eq_nocase(str_upto(parameter, 2), S("q=")))
            continue;
        for (size_t i = 2; i < parameter.n; i++)
            if (parameter.p[i] != '0' && parameter.p[i] != '.')
                return false;
        return true;
    }
    return false;
}

bool http_value_has_token(str value, str token)
{
    str item;
    while (value.p && str_cut(&value, ',', &item)) {
        str name = item;
        str_cut(&item, ';', &name);
        if (str_eq_nocase(str_trim(name), token))
            return !item.p || !weight_is_zero(item);
    }
    return false;
}

static bool is_token(unsigned char c)
{
    if ((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))
        return true;
    return c && strchr("!#$%&'*+-.^_`|~", c);
}

bool http_header_is_valid(struct http_header header)
{
    if (header.name.n == 0)
        return false;
    for (size_t i = 0; i < header.name.n; i++)
        if (!is_token((unsigned char)header.name.p[i]))
            return false;
    for (size_t i = 0; i < header.value.n; i++) {
        unsigned char c = (unsigned char)header.value.p[i];
        if ((c < 0x20 && c != '\t') || c == 0x7f)
            return false;
    }
    return true;
}

bool http_header_is_framing(str name)
{
    static const char *const names[] = { "connection", "content-length",    "keep-alive",
                                         "upgrade",    "transfer-encoding", "proxy-connection" };
    for (size_t i = 0; i < countof(names); i++)
        if (str_eq_nocase(name, str_c(names[i])))
            return true;
    return false;
}

const char *http_reason(int status)
{
    static const struct {
        int status;
        const char *text;
    } reasons[] = {
        { 100, "Continue" },
        { 101, "Switching Protocols" },
        { 200, "OK" },
        { 201, "Created" },
        { 202, "Accepted" },
        { 204, "No Content" },
        { 206, "Partial Content" },
        { 301, "Moved Permanently" },
        { 302, "Found" },
        { 303, "See Other" },
        { 304, "Not Modified" },
        { 307, "Temporary Redirect" },
        { 308, "Permanent Redirect" },
        { 400, "Bad Request" },
        { 401, "Unauthorized" },
        { 403, "Forbidden" },
        { 404, "Not Found" },
        { 405, "Method Not Allowed" },
        { 406, "Not Acceptable" },
        { 408, "Request Timeout" },
        { 409, "Conflict" },
        { 410, "Gone" },
        { 411, "Length Required" },
        { 412, "Precondition Failed" },
        { 413, "Request Entity Too Large" },
        { 414, "Request URI Too Long" },
        { 415, "Unsupported Media Type" },
        { 417, "Expectation Failed" },
        { 421, "Misdirected Request" },
        { 422, "Unprocessable Entity" },
        { 429, "Too Many Requests" },
        { 431, "Request Header Fields Too Large" },
        { 500, "Internal Server Error" },
        { 501, "Not Implemented" },
        { 502, "Bad Gateway" },
        { 503, "Service Unavailable" },
        { 504, "Gateway Timeout" },
        { 505, "HTTP Version Not Supported" },
        { 507, "Insufficient Storage" },
    };
    for (size_t i = 0; i < countof(reasons); i++)
        if (reasons[i].status == status)
            return reasons[i].text;
    return "Unknown";
}
