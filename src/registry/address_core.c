/* Which addresses a registry may be reached at; see address_core.h.
 *
 * Image names come from users, and redirects and token servers from registries: without this check they could
 * make the operator send requests to the cloud's metadata service or to services of the cluster. Ranges are
 * tables, tried in order; what is in none of their rows is public. IPv4 addresses inside IPv6 (mapped and
 * NAT64) are treated as IPv4. */
#include "address_core.h"

struct range {
    uint8_t bytes[16];
    unsigned bits;
    enum registry_address_kind kind;
};

static bool is_in(const uint8_t *address, const struct range *r)
{
    unsigned whole = r->bits / 8, rest = r->bits % 8;
    uint8_t mask = (uint8_t)(0xff00u >> rest);
    return memcmp(address, r->bytes, whole) == 0 &&
           (!rest || (address[whole] & mask) == (r->bytes[whole] & mask));
}

static enum registry_address_kind kind_of_ipv4(const uint8_t *address)
{
    static const struct range t[] = {
        { { 0 }, 8, REGISTRY_ADDRESS_FORBIDDEN },
        { { 10 }, 8, REGISTRY_ADDRESS_PRIVATE },
        { { 100, 64 }, 10, REGISTRY_ADDRESS_PRIVATE },
        { { 127 }, 8, REGISTRY_ADDRESS_FORBIDDEN },
        { { 169, 254 }, 16, REGISTRY_ADDRESS_FORBIDDEN },
        { { 172, 16 }, 12, REGISTRY_ADDRESS_PRIVATE },
        { { 192, 168 }, 16, REGISTRY_ADDRESS_PRIVATE },
        { { 224 }, 4, REGISTRY_ADDRESS_FORBIDDEN },
        { { 240 }, 4, REGISTRY_ADDRESS_FORBIDDEN },
    };
    for (size_t i = 0; i < countof(t); i++)
        if (is_in(address, &t[i]))
            return t[i].kind;
    return REGISTRY_ADDRESS_PUBLIC;
}

enum registry_address_kind registry_address_kind(const uint8_t *bytes, size_t n)
{
    static const uint8_t mapped[12] = { [10] = 0xff, [11] = 0xff };
    static const uint8_t nat64[12] = { 0x00, 0x64, 0xff, 0x9b };
    static const struct range t[] = {
        { { 0 }, 127, REGISTRY_ADDRESS_FORBIDDEN }, /* :: and ::1 */
        { { 0xfe, 0x80 }, 10, REGISTRY_ADDRESS_FORBIDDEN },
        { { 0xff }, 8, REGISTRY_ADDRESS_FORBIDDEN },
        { { 0xfc }, 7, REGISTRY_ADDRESS_PRIVATE },
    };
    if (n == 4)
        return kind_of_ipv4(bytes);
    if (n != 16)
        return REGISTRY_ADDRESS_UNKNOWN;
    if (memcmp(bytes, mapped, sizeof(mapped)) == 0 || memcmp(bytes, nat64, sizeof(nat64)) == 0)
        return kind_of_ipv4(bytes + 12);
    for (size_t i = 0; i < countof(t); i++)
        if (is_in(bytes, &t[i]))
            return t[i].kind;
    return REGISTRY_ADDRESS_PUBLIC;
}

/* A tenant chooses the registry, so a private address is a way into the cluster's network until the operator lists
 * it as a registry. */
bool registry_address_is_allowed(const uint8_t *bytes, size_t n, bool allow_private)
{
    enum registry_address_kind kind = registry_address_kind(bytes, n);
    return kind == REGISTRY_ADDRESS_PUBLIC || (kind != REGISTRY_ADDRESS_UNKNOWN && allow_private);
}
