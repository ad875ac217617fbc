/* Which addresses a dialogue with a registry may connect to. A registry names token servers and redirects; without these
 * rules it could make the operator read services that only the operator reaches. Pure. */
#ifndef FLYBALL_ADDRESS_CORE_H
#define FLYBALL_ADDRESS_CORE_H

#include "../base/base.h"

enum registry_address_kind {
    REGISTRY_ADDRESS_UNKNOWN, /* not an address: never allowed */
    REGISTRY_ADDRESS_PUBLIC,
    REGISTRY_ADDRESS_PRIVATE,   /* RFC 1918, fc00::/7, carrier-grade NAT */
    REGISTRY_ADDRESS_FORBIDDEN, /* loopback, link-local, multicast, unspecified, reserved */
};

/* `bytes` are 4 or 16, in network order. An IPv4 address in an IPv6 one counts as the former. */
enum registry_address_kind registry_address_kind(const uint8_t *bytes, size_t n);

/* Only public addresses, unless the operator lists the registry's host (`allow_private`): then any, also those that the
 * registry names. */
bool registry_address_is_allowed(const uint8_t *bytes, size_t n, bool allow_private);

#endif
