/* The formats of text: those OpenAPI schemas may name, and the kinds of name Kubernetes knows. */
#ifndef FLYBALL_APISERVER_FORMATS_H
#define FLYBALL_APISERVER_FORMATS_H

#include "../../base/str.h"

/* True if the text is of that format, or if the format is one that nobody checks. */
bool format_fits(str format, str text);
/* Whether values of that type of OpenAPI can have it. */
bool format_known(str format, str type);

/* Names. Each answers NULL when the text will do, else what would (for an error message). */
const char *format_dns_label(str text);      /* my-name: 63 of [a-z0-9-] */
const char *format_dns_label_1035(str text); /* the same, starts with a letter */
const char *format_dns_subdomain(str text);  /* labels joined by dots, 253 */
const char *format_qualified_name(str text); /* [prefix/]Name, a label or annotation key */
const char *format_label_value(str text);    /* empty or 63 of [A-Za-z0-9_.-] */
const char *format_config_key(str text);     /* 253 of [A-Za-z0-9_.-], not . or .. */
const char *format_port_name(str text);      /* 15 of [a-z0-9-] with a letter */
const char *format_env_name(str text);
const char *format_path_segment(str text); /* not . or .., no / or % */

bool format_among(str text, const char *const *words); /* ended by NULL */
bool format_is_ipv4(str text);
bool format_is_ipv6(str text);
bool format_is_ip(str text);

#endif
