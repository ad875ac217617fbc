/* Text formats: names as Kubernetes defines them, IP addresses, and the formats of OpenAPI
 * schemas. */
#ifndef FLYBALL_APISERVER_FORMAT_H
#define FLYBALL_APISERVER_FORMAT_H

#include "../../base/str.h"

/* True if the text has that format, or if the format is unknown or never checked. */
bool format_matches(str format, str text);
/* True if OpenAPI defines this format for values of `type`. */
bool format_is_known(str format, str type);

/* Each returns NULL if the text is valid, else the detail of an error message. */
const char *format_dns_label(str text);      /* my-name: 63 of [a-z0-9-] */
const char *format_dns_label_1035(str text); /* a DNS label that starts with a letter */
const char *format_dns_subdomain(str text);  /* labels joined by dots, 253 */
const char *format_qualified_name(str text); /* [prefix/]Name: a label or annotation key */
const char *format_label_value(str text);    /* empty or 63 of [A-Za-z0-9_.-] */
const char *format_config_key(str text);     /* 253 of [A-Za-z0-9_.-], not . or .. */
const char *format_env_name(str text);
const char *format_path_segment(str text); /* not . or .., no / or % */

bool format_is_one_of(str text, const char *const *words); /* `words` ends in NULL */
bool format_is_ipv4(str text);
bool format_is_ipv6(str text);
bool format_is_ip(str text);

#endif
