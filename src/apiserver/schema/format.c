/* Text formats: the kinds of names that Kubernetes knows, IP addresses, and the formats that an OpenAPI
 * schema can name.
 *
 * A name check returns NULL or the message that kube-apiserver would print (quoted: kube-apiserver), so a
 * caller needs no text of its own. A format that is unknown, or known but never checked by kube-apiserver
 * either (isbn, creditcard, ...), accepts everything; format_is_known() separates the two, because a
 * definition that names an unknown format gets a warning. */
#include "format.h"

#include "../../base/duration.h"
#include "../../base/rfc3339.h"

#include <arpa/inet.h>

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_alnum(char c)
{
    return is_digit(c) || is_lower(c) || (c >= 'A' && c <= 'Z');
}

static bool is_hex(char c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

static bool is_all_hex(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!is_hex(s.p[i]))
            return false;
    return s.n > 0;
}

/* ---- names */

/* The alphabet of a DNS label: lower case letters, digits, and dashes inside. */
static bool has_label_chars(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        bool inner = i > 0 && i + 1 < s.n;
        if (!is_digit(s.p[i]) && !is_lower(s.p[i]) && !(inner && s.p[i] == '-'))
            return false;
    }
    return s.n > 0;
}

/* RFC 1123 label: the name of a namespace, a container or a volume. */
const char *format_dns_label(str text)
{
    if (text.n > 63)
        return "must be no more than 63 bytes";
    return has_label_chars(text)
               ? NULL
               : "a lowercase RFC 1123 label must consist of lower case alphanumeric characters "
                 "or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  "
                 "or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
}

/* RFC 1035 label: as above, but starts with a letter. The names of custom resources and their
 * versions. */
const char *format_dns_label_1035(str text)
{
    if (text.n > 63)
        return "must be no more than 63 bytes";
    return has_label_chars(text) && is_lower(text.p[0])
               ? NULL
               : "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start "
                 "with an alphabetic character, and end with an alphanumeric character (e.g. "
                 "'my-name',  or 'abc-123', regex used for validation is "
                 "'[a-z]([-a-z0-9]*[a-z0-9])?')";
}

/* RFC 1123 subdomain: the name of most objects. */
const char *format_dns_subdomain(str text)
{
    if (text.n > 253)
        return "must be no more than 253 bytes";
    str rest = text, part;
    while (str_cut(&rest, '.', &part))
        if (!has_label_chars(part))
            return "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric "
                   "characters, '-' or '.', and must start and end with an alphanumeric character "
                   "(e.g. 'example.com', regex used for validation is "
                   "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    return NULL;
}

/* The alphabet of label keys and values: letters and digits, with "-", "_" and "." inside. */
static bool has_name_chars(str s)
{
    for (size_t i = 0; i < s.n; i++) {
        bool inner = i > 0 && i + 1 < s.n;
        bool mark = s.p[i] == '-' || s.p[i] == '_' || s.p[i] == '.';
        if (!is_alnum(s.p[i]) && !(inner && mark))
            return false;
    }
    return s.n > 0;
}

/* A label or annotation key: an optional DNS subdomain, a slash, a name. */
const char *format_qualified_name(str text)
{
    str name = text;
    size_t slash = str_find_char(text, '/');
    if (slash != SIZE_MAX) {
        str prefix = str_upto(text, slash);
        name = str_from(text, slash + 1);
        if (str_find_char(name, '/') != SIZE_MAX)
            return "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and "
                   "must start and end with an alphanumeric character (e.g. 'MyName',  or "
                   "'my.name',  or '123-abc', regex used for validation is "
                   "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]') with an optional DNS subdomain "
                   "prefix and '/' (e.g. 'example.com/MyName')";
        if (!prefix.n)
            return "prefix part must be non-empty";
        if (format_dns_subdomain(prefix))
            return "prefix part must be a DNS subdomain (e.g. 'example.com/MyName')";
    }
    if (!name.n)
        return "name part must be non-empty";
    if (name.n > 63)
        return "name part must be no more than 63 bytes";
    return has_name_chars(name)
               ? NULL
               : "name part must consist of alphanumeric characters, '-', '_' or '.', and must "
                 "start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or "
                 "'123-abc', regex used for validation is "
                 "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
}

/* The value of a label; may be empty. */
const char *format_label_value(str text)
{
    if (text.n > 63)
        return "must be no more than 63 bytes";
    return !text.n || has_name_chars(text)
               ? NULL
               : "a valid label must be an empty string or consist of alphanumeric characters, '-', "
                 "'_' or '.', and must start and end with an alphanumeric character (e.g. "
                 "'MyValue',  or 'my_value',  or '12345', regex used for validation is "
                 "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
}

/* A key of a ConfigMap or Secret: becomes a file name, so "." and ".." are refused. */
const char *format_config_key(str text)
{
    if (text.n > 253)
        return "must be no more than 253 bytes";
    for (size_t i = 0; i < text.n; i++)
        if (!is_alnum(text.p[i]) && !strchr("-_.", text.p[i]))
            return "a valid config key must consist of alphanumeric characters, '-', '_' or '.' (e.g. "
                   "'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
                   "'[-._a-zA-Z0-9]+')";
    if (!text.n)
        return "must not be empty";
    if (str_eqc(text, ".") || str_starts(text, S("..")))
        return "must not be '.' or start with '..'";
    return NULL;
}

/* The name of an environment variable, relaxed to what the kernel accepts. */
const char *format_env_name(str text)
{
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] < ' ' || (unsigned char)text.p[i] > '~' || text.p[i] == '=')
            return "a valid environment variable name must consist only of printable ASCII characters "
                   "other than '='";
    return text.n ? NULL : "must not be empty";
}

/* A name that only has to fit into a URL path: roles, events, metrics. */
const char *format_path_segment(str text)
{
    if (str_eqc(text, ".") || str_eqc(text, ".."))
        return "may not be '.' or '..'";
    if (str_find_char(text, '/') != SIZE_MAX || str_find_char(text, '%') != SIZE_MAX)
        return "may not contain '/' or '%'";
    return NULL;
}

/* ---- addresses */

/* inet_pton() on a bounded copy; text with a NUL byte is not an address. */
static bool is_address(int family, str text)
{
    char name[64], address[16];
    if (!text.p || !text.n || text.n >= sizeof(name) || memchr(text.p, '\0', text.n))
        return false;
    memcpy(name, text.p, text.n);
    name[text.n] = '\0';
    return inet_pton(family, name, address) == 1;
}

bool format_is_ipv4(str text)
{
    return text.n && is_address(AF_INET, text);
}

bool format_is_ipv6(str text)
{
    return text.n && is_address(AF_INET6, text);
}

bool format_is_ip(str text)
{
    return format_is_ipv4(text) || format_is_ipv6(text);
}

/* An address and a prefix length, such as 10.9.8.0/24. */
static bool is_cidr(str text)
{
    size_t slash = str_find_char(text, '/');
    int64_t bits = 0;
    if (slash == SIZE_MAX || str_to_i64(str_from(text, slash + 1), &bits) < 0 || bits < 0)
        return false;
    str address = str_upto(text, slash);
    return (format_is_ipv4(address) && bits <= 32) || (format_is_ipv6(address) && bits <= 128);
}

/* Six, eight or twenty pairs of hex digits, separated by ":" or "-". */
static bool is_mac(str text)
{
    size_t groups = 0;
    char separator = text.n > 2 ? text.p[2] : ':';
    str rest = text, part;
    if (separator != ':' && separator != '-')
        return false;
    for (; str_cut(&rest, separator, &part); groups++)
        if (part.n != 2 || !is_all_hex(part))
            return false;
    return groups == 6 || groups == 8 || groups == 20;
}

/* ---- the rest of what OpenAPI names */

/* Labels separated by dots; a dotted name ends in a label of two or more letters. */
static bool is_hostname(str text)
{
    str rest = text, part = S("");
    bool dotted = str_find_char(text, '.') != SIZE_MAX, letters = true;
    if (!text.n || text.n > 253)
        return false;
    while (str_cut(&rest, '.', &part)) {
        if (!part.n || part.n > 63 || part.p[0] == '-' || part.p[part.n - 1] == '-')
            return false;
        letters = part.n >= 2;
        for (size_t i = 0; i < part.n; i++) {
            letters = letters && is_alnum(part.p[i]) && !is_digit(part.p[i]);
            if (!is_alnum(part.p[i]) && part.p[i] != '-')
                return false;
        }
    }
    return !dotted || letters;
}

/* 36 characters in the usual groups; `version` is the digit at its place, 0 for any. */
static bool is_uuid(str text, char version)
{
    for (size_t i = 0; i < text.n; i++) {
        bool dash = i == 8 || i == 13 || i == 18 || i == 23;
        if (dash ? text.p[i] != '-' : !is_hex(text.p[i]))
            return false;
    }
    return text.n == 36 && (!version || text.p[14] == version);
}

/* A scheme and something after it, or an absolute path. */
static bool is_uri(str text)
{
    size_t colon = str_find_char(text, ':');
    if (str_starts(text, S("/")))
        return true;
    if (colon == SIZE_MAX || colon == 0)
        return false;
    for (size_t i = 0; i < colon; i++)
        if (!is_alnum(text.p[i]) && !(i && strchr("+-.", text.p[i])))
            return false;
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.p[i] <= ' ')
            return false;
    return colon + 1 < text.n;
}

static bool is_email(str text)
{
    size_t at = str_find_char(text, '@');
    return at != SIZE_MAX && at > 0 && !format_dns_subdomain(str_from(text, at + 1));
}

/* The standard alphabet with padding, in groups of four. */
static bool is_base64(str text)
{
    size_t padding = 0;
    for (size_t i = 0; i < text.n; i++) {
        padding += text.p[i] == '=';
        if (text.p[i] != '=' && (padding || (!is_alnum(text.p[i]) && !strchr("+/", text.p[i]))))
            return false;
    }
    return text.n % 4 == 0 && padding <= 2;
}

static bool is_date_time(str text)
{
    int64_t seconds;
    return rfc3339_parse(text, &seconds, NULL) == 0;
}

/* YYYY-MM-DD; the calendar check is that of a full timestamp. */
static bool is_date(str text)
{
    char instant[32] = { 0 };
    if (text.n != 10)
        return false;
    memcpy(instant, text.p, 10);
    memcpy(instant + 10, "T00:00:00Z", 10);
    return is_date_time(str_c(instant));
}

/* A Go duration, or a number and a unit, where a longer unit may be any word that begins with it: "1d",
 * "2 weeks". */
static bool is_duration(str text)
{
    static const char *const units[] = { "ns",   "nano", "us",  "micro", "ms",  "milli",
                                         "s",    "sec",  "m",   "min",   "h",   "hr",
                                         "hour", "d",    "day", "w",     "week" };
    int64_t ns;
    if (duration_parse(text, &ns, NULL) == 0)
        return true;
    size_t digits = 0;
    while (digits < text.n && is_digit(text.p[digits]))
        digits++;
    str unit = str_trim(str_from(text, digits));
    for (size_t i = 0; digits && i < countof(units); i++) {
        str name = str_c(units[i]);
        if (name.n > 2 ? str_starts(unit, name) : str_eq(unit, name))
            return true;
    }
    return false;
}

static bool is_hexcolor(str text)
{
    str digits = str_starts(text, S("#")) ? str_from(text, 1) : text;
    return (digits.n == 3 || digits.n == 6) && is_all_hex(digits);
}

static bool is_bson_id(str text)
{
    return text.n == 24 && is_all_hex(text);
}

static bool is_any_uuid(str text)
{
    return is_uuid(text, '\0');
}

static bool is_uuid3(str text)
{
    return is_uuid(text, '3');
}

static bool is_uuid4(str text)
{
    return is_uuid(text, '4');
}

static bool is_uuid5(str text)
{
    return is_uuid(text, '5');
}

static bool is_short_name(str text)
{
    return !format_dns_label(text);
}

static bool is_long_name(str text)
{
    return !format_dns_subdomain(text);
}

static const struct {
    const char *name;
    bool (*fits)(str text);
} formats[] = {
    { "date-time", is_date_time },
    { "datetime", is_date_time },
    { "date", is_date },
    { "duration", is_duration },
    { "byte", is_base64 },
    { "uri", is_uri },
    { "email", is_email },
    { "hostname", is_hostname },
    { "ipv4", format_is_ipv4 },
    { "ipv6", format_is_ipv6 },
    { "cidr", is_cidr },
    { "mac", is_mac },
    { "uuid", is_any_uuid },
    { "uuid3", is_uuid3 },
    { "uuid4", is_uuid4 },
    { "uuid5", is_uuid5 },
    { "bsonobjectid", is_bson_id },
    { "hexcolor", is_hexcolor },
    { "k8s-short-name", is_short_name },
    { "k8s-long-name", is_long_name },
    { "isbn", NULL }, /* NULL: known, but not checked */
    { "isbn10", NULL },
    { "isbn13", NULL },
    { "creditcard", NULL },
    { "ssn", NULL },
    { "rgbcolor", NULL },
    { "password", NULL },
};

bool format_matches(str format, str text)
{
    for (size_t i = 0; i < countof(formats); i++)
        if (str_eqc(format, formats[i].name) && formats[i].fits)
            return formats[i].fits(text);
    return true;
}

bool format_is_known(str format, str type)
{
    if (str_eqc(type, "integer"))
        return str_eqc(format, "int32") || str_eqc(format, "int64");
    if (str_eqc(type, "number"))
        return str_eqc(format, "float") || str_eqc(format, "double");
    for (size_t i = 0; i < countof(formats) && str_eqc(type, "string"); i++)
        if (str_eqc(format, formats[i].name))
            return true;
    return false;
}

bool format_is_one_of(str text, const char *const *words)
{
    for (; *words; words++)
        if (str_eqc(text, *words))
            return true;
    return false;
}
