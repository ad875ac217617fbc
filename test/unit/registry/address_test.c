/* Which addresses a dialogue with a registry may connect to. */
#include "registry/address_core.h"
#include "tap.h"

#include <arpa/inet.h>

static size_t parse(const char *text, uint8_t bytes[16])
{
    if (inet_pton(AF_INET, text, bytes) == 1)
        return 4;
    OK(inet_pton(AF_INET6, text, bytes) == 1);
    return 16;
}

static void addresses_are_distinguished(void)
{
    static const struct {
        const char *text;
        enum registry_address_kind kind;
    } t[] = {
        { "8.8.8.8", REGISTRY_ADDRESS_PUBLIC },
        { "10.1.2.3", REGISTRY_ADDRESS_PRIVATE },
        { "172.16.0.1", REGISTRY_ADDRESS_PRIVATE },
        { "172.31.255.255", REGISTRY_ADDRESS_PRIVATE },
        { "172.32.0.1", REGISTRY_ADDRESS_PUBLIC },
        { "192.168.0.1", REGISTRY_ADDRESS_PRIVATE },
        { "100.64.0.1", REGISTRY_ADDRESS_PRIVATE },
        { "127.0.0.1", REGISTRY_ADDRESS_FORBIDDEN },
        { "127.9.9.9", REGISTRY_ADDRESS_FORBIDDEN },
        { "169.254.169.254", REGISTRY_ADDRESS_FORBIDDEN }, /* metadata of clouds */
        { "0.0.0.0", REGISTRY_ADDRESS_FORBIDDEN },
        { "224.0.0.1", REGISTRY_ADDRESS_FORBIDDEN },
        { "255.255.255.255", REGISTRY_ADDRESS_FORBIDDEN },
        { "2606:4700::1111", REGISTRY_ADDRESS_PUBLIC },
        { "::1", REGISTRY_ADDRESS_FORBIDDEN },
        { "::", REGISTRY_ADDRESS_FORBIDDEN },
        { "fe80::1", REGISTRY_ADDRESS_FORBIDDEN },
        { "ff02::1", REGISTRY_ADDRESS_FORBIDDEN },
        { "fd00::1", REGISTRY_ADDRESS_PRIVATE },
        { "::ffff:127.0.0.1", REGISTRY_ADDRESS_FORBIDDEN }, /* IPv4 in disguise */
        { "::ffff:8.8.8.8", REGISTRY_ADDRESS_PUBLIC },
        { "64:ff9b::a00:1", REGISTRY_ADDRESS_PRIVATE },
    };
    for (size_t i = 0; i < countof(t); i++) {
        uint8_t bytes[16] = { 0 };
        size_t n = parse(t[i].text, bytes);
        if (!EQ_INT(registry_address_kind(bytes, n), t[i].kind))
            printf("# %s\n", t[i].text);
    }
    EQ_INT(registry_address_kind((const uint8_t *)"abc", 3), REGISTRY_ADDRESS_UNKNOWN);
}

/* The operator decides which registries are private; a tenant who names one does not. */
static void private_addresses_need_the_operators_consent(void)
{
    uint8_t private[16] = { 10, 0, 0, 1 }, loopback[16] = { 127, 0, 0, 1 }, public[16] = { 8, 8 };
    OK(registry_address_is_allowed(public, 4, false));
    OK(!registry_address_is_allowed(private, 4, false));
    OK(registry_address_is_allowed(private, 4, true));
    OK(!registry_address_is_allowed(loopback, 4, false));
    OK(registry_address_is_allowed(loopback, 4, true));
    OK(!registry_address_is_allowed(public, 3, true));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(addresses_are_distinguished),
                                        TAP(private_addresses_need_the_operators_consent),
                                        { 0 } });
}
