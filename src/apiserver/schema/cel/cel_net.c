/* IP addresses and networks: ip(), cidr() and their methods.
 *
 * A value refers to a struct address in the arena: the bytes (4 or 16) and, for a network, the prefix length.
 * Zones and IPv4 addresses inside IPv6 ("::ffff:1.2.3.4") are refused, as by kube-apiserver: two texts of one
 * address would compare as different, and a rule could be evaded.
 *
 * inet_pton() decides whether a text is an address, but does not explain a refusal; parse_address() therefore reads a
 * refused IPv4 text again, only to find the reason that Go reports. Error texts are Go's and Kubernetes', because
 * clients see them. */
#include "cel_node.h"

#include <arpa/inet.h>
#include <stdio.h>

struct address {
    uint8_t bytes[16];
    uint32_t n; /* 4 or 16 */
    uint32_t bits;
};

/* Why Go's netip does not accept a text; NULL if it does. */
static const char *parse_address(str text, struct address *ret)
{
    char room[64];
    *ret = (struct address){ .n = 4 };
    bool v6 = str_find_char(text, ':') != SIZE_MAX, dots = str_find_char(text, '.') != SIZE_MAX;
    if (!v6 && !dots)
        return "unable to parse IP";
    if (text.n >= sizeof(room))
        return v6 ? "each colon-separated field must have at most four digits"
                  : "IPv4 field has value >255";
    memcpy(room, text.p, text.n);
    room[text.n] = '\0';
    if (strlen(room) != text.n)
        return "unexpected character";
    if (v6) {
        ret->n = 16;
        return inet_pton(AF_INET6, room, ret->bytes) == 1 ? NULL
               : strchr(room, '%')                        ? "zone"
                                                          : "unable to parse IP";
    }
    if (inet_pton(AF_INET, room, ret->bytes) == 1)
        return NULL;
    uint32_t fields = 0, value = 0, digits = 0;
    for (const char *p = room;; p++) {
        if (*p >= '0' && *p <= '9') {
            if (digits == 1 && value == 0)
                return "IPv4 field has octet with leading zero";
            value = value * 10 + (uint32_t)(*p - '0');
            digits++;
            if (value > 255)
                return "IPv4 field has value >255";
        } else if (*p == '.' || !*p) {
            if (!digits)
                return "IPv4 field must have at least one digit";
            fields++, digits = 0, value = 0;
            if (!*p)
                return fields < 4 ? "IPv4 address too short" : "IPv4 address too long";
            if (fields == 4)
                return "IPv4 address too long";
        } else {
            return "unexpected character";
        }
    }
}

/* An IPv4 address written as IPv6, ::ffff:0:0/96. */
static bool is_mapped(const struct address *a)
{
    static const uint8_t prefix[12] = { [10] = 0xff, [11] = 0xff };
    return a->n == 16 && !memcmp(a->bytes, prefix, sizeof(prefix));
}

static struct cel_value keep_address(struct cel_machine *m, const struct address *a,
                                     enum cel_kind kind)
{
    struct address *kept = arena_new(m->arena, struct address);
    *kept = *a;
    return (struct cel_value){ .kind = (uint8_t)kind, .n = a->n, .other = kept };
}

/* ip(text): the address or an error. The reason "zone" has a sentence of its own. */
static struct cel_value to_ip(struct cel_machine *m, str text)
{
    struct address a;
    const char *why = parse_address(text, &a);
    if (why && strchr(why, 'z') == why)
        return cel_fail(m->arena, "IP address \"" STR_FMT "\" with zone value is not allowed",
                        STR_ARG(text));
    if (why)
        return cel_fail(m->arena,
                        "IP Address \"" STR_FMT "\" parse error during conversion from string: "
                        "ParseAddr(\"" STR_FMT "\"): %s",
                        STR_ARG(text), STR_ARG(text), why);
    if (is_mapped(&a))
        return cel_fail(m->arena, "IPv4-mapped IPv6 address \"" STR_FMT "\" is not allowed",
                        STR_ARG(text));
    return keep_address(m, &a, CEL_IP);
}

static struct cel_value fail_prefix(struct cel_machine *m, str text, const char *why)
{
    return cel_fail(m->arena,
                    "network address parse error during conversion from string: network address "
                    "parse error during conversion from string: netip.ParsePrefix(\"" STR_FMT
                    "\"): %s",
                    STR_ARG(text), why);
}

/* cidr(text): the last "/" separates address and length. The address may have bits set beyond the prefix;
 * masked() clears them. */
static struct cel_value to_cidr(struct cel_machine *m, str text)
{
    struct address a;
    size_t slash = SIZE_MAX;
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] == '/')
            slash = i;
    if (slash == SIZE_MAX)
        return fail_prefix(m, text, "no '/'");
    str address = str_upto(text, slash), bits = str_from(text, slash + 1);
    const char *why = parse_address(address, &a);
    if (why) {
        str full = *why == 'z' ? S("IPv6 zones cannot be present in a prefix")
                               : arena_printf(m->arena, "ParseAddr(\"" STR_FMT "\"): %s",
                                              STR_ARG(address), why);
        return fail_prefix(m, text, full.p);
    }
    int64_t n;
    bool odd = bits.n > 1 && (bits.p[0] < '1' || bits.p[0] > '9');
    if (odd || str_to_i64(bits, &n) < 0)
        return fail_prefix(
            m, text,
            arena_printf(m->arena, "bad bits after slash: \"" STR_FMT "\"", STR_ARG(bits)).p);
    if (n < 0 || n > (int64_t)a.n * 8)
        return fail_prefix(m, text, "prefix length out of range");
    if (is_mapped(&a))
        return cel_fail(m->arena,
                        "network address parse error during conversion from string: IPv4-mapped "
                        "IPv6 address \"" STR_FMT "\" is not allowed",
                        STR_ARG(text));
    a.bits = (uint32_t)n;
    return keep_address(m, &a, CEL_CIDR);
}

bool cel_put_net(struct buf *out, struct cel_value v)
{
    char room[INET6_ADDRSTRLEN];
    const struct address *a = v.other;
    if (!inet_ntop(a->n == 4 ? AF_INET : AF_INET6, a->bytes, room, sizeof(room)))
        return false;
    buf_put(out, str_c(room));
    if (v.kind == CEL_CIDR)
        buf_printf(out, "/%u", a->bits);
    return true;
}

bool cel_net_equal(struct cel_value a, struct cel_value b)
{
    const struct address *left = a.other, *right = b.other;
    return left->n == right->n && !memcmp(left->bytes, right->bytes, left->n) &&
           (a.kind == CEL_IP || left->bits == right->bits);
}

static bool is_zero(const uint8_t *bytes, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (bytes[i])
            return false;
    return true;
}

/* Whether the first `bits` bits are equal. Addresses of different families never are. */
static bool same_bits(const struct address *a, const struct address *b, uint32_t bits)
{
    if (a->n != b->n)
        return false;
    for (uint32_t i = 0; i < bits; i++)
        if ((a->bytes[i / 8] ^ b->bytes[i / 8]) & (0x80 >> i % 8))
            return false;
    return true;
}

static bool is_loopback(const struct address *a)
{
    return a->n == 4 ? a->bytes[0] == 127 : is_zero(a->bytes, 15) && a->bytes[15] == 1;
}

static bool is_link_local(const struct address *a)
{
    return a->n == 4 ? a->bytes[0] == 169 && a->bytes[1] == 254
                     : a->bytes[0] == 0xfe && (a->bytes[1] & 0xc0) == 0x80;
}

static bool is_link_local_multicast(const struct address *a)
{
    return a->n == 4 ? a->bytes[0] == 224 && !a->bytes[1] && !a->bytes[2]
                     : a->bytes[0] == 0xff && (a->bytes[1] & 0x0f) == 2;
}

/* Go's IsGlobalUnicast: everything that is not special, private networks included. */
static bool is_global(const struct address *a)
{
    static const uint8_t broadcast[4] = { 255, 255, 255, 255 };
    bool multicast = a->n == 4 ? (a->bytes[0] & 0xf0) == 0xe0 : a->bytes[0] == 0xff;
    if (a->n == 4 && !memcmp(a->bytes, broadcast, 4))
        return false;
    return !is_zero(a->bytes, a->n) && !is_loopback(a) && !multicast && !is_link_local(a);
}

static struct cel_value check_address(const char *name, const struct address *a)
{
    return cel_of_bool(!strcmp(name, "isUnspecified")          ? is_zero(a->bytes, a->n)
                       : !strcmp(name, "isLoopback")           ? is_loopback(a)
                       : !strcmp(name, "isLinkLocalMulticast") ? is_link_local_multicast(a)
                       : !strcmp(name, "isLinkLocalUnicast")   ? is_link_local(a)
                                                               : is_global(a));
}

/* Whether the text is what the address prints as: "::1" is, "0:0::1" is not. */
static struct cel_value is_canonical(struct cel_machine *m, str text)
{
    auto_buf struct buf out = { 0 };
    struct cel_value ip = to_ip(m, text);
    if (cel_is_error(ip))
        return ip;
    cel_put_net(&out, ip);
    return cel_of_bool(str_eq(buf_str(&out), text));
}

static struct cel_value mask(struct cel_machine *m, const struct address *a)
{
    struct address masked = *a;
    for (uint32_t i = a->bits; i < a->n * 8; i++)
        masked.bytes[i / 8] &= (uint8_t)~(0x80 >> i % 8);
    return keep_address(m, &masked, CEL_CIDR);
}

/* Methods that take an address or network also accept its text, which may fail to parse. */
struct cel_value cel_call_net(struct cel_machine *m, enum cel_fn fn, const struct cel_overload *o,
                              const struct cel_value *a)
{
    const struct address *address = a[0].other;
    struct cel_value other = a[1];
    switch (fn) {
    case CEL_F_IP:
        return to_ip(m, cel_text(a[0]));
    case CEL_F_IS_IP:
        return cel_of_bool(!cel_is_error(to_ip(m, cel_text(a[0]))));
    case CEL_F_IP_CANONICAL:
        return is_canonical(m, cel_text(a[0]));
    case CEL_F_IP_IS:
        return check_address(o->name, address);
    case CEL_F_IP_FAMILY:
        return cel_of_int(address->n == 4 ? 4 : 6);
    case CEL_F_CIDR:
        return to_cidr(m, cel_text(a[0]));
    case CEL_F_IS_CIDR:
        return cel_of_bool(!cel_is_error(to_cidr(m, cel_text(a[0]))));
    case CEL_F_CIDR_HAS_IP_TEXT:
    case CEL_F_CIDR_HAS_IP:
        if (fn == CEL_F_CIDR_HAS_IP_TEXT)
            other = to_ip(m, cel_text(a[1]));
        return cel_is_error(other) ? cel_no_overload() /* as the original reports it */
                                   : cel_of_bool(same_bits(address, other.other, address->bits));
    case CEL_F_CIDR_HAS_CIDR_TEXT:
    case CEL_F_CIDR_HAS_CIDR: {
        if (fn == CEL_F_CIDR_HAS_CIDR_TEXT)
            other = to_cidr(m, cel_text(a[1]));
        if (cel_is_error(other))
            return other;
        const struct address *inner = other.other;
        return cel_of_bool(address->bits <= inner->bits &&
                           same_bits(address, inner, address->bits));
    }
    case CEL_F_CIDR_IP:
        return keep_address(m, address, CEL_IP);
    case CEL_F_CIDR_BITS:
        return cel_of_int(address->bits);
    default:
        return mask(m, address);
    }
}
