/* SHA-256: see sha256.h. The round constants are the fractional bits of the cube roots of the first
 * 64 primes, the initial state those of the square roots of the first eight. Names follow FIPS
 * 180-4. */
#include "sha256.h"

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

static uint32_t rotate_right(uint32_t x, int by)
{
    return x >> by | x << (32 - by);
}

static uint32_t load_u32(const uint8_t *p)
{
    return (uint32_t)p[0] << 24 | (uint32_t)p[1] << 16 | (uint32_t)p[2] << 8 | p[3];
}

/* The message schedule: 16 words of the block, expanded to one word per round. */
static void expand_block(uint32_t w[64], const uint8_t *block)
{
    for (size_t i = 0; i < 16; i++)
        w[i] = load_u32(block + 4 * i);
    for (size_t i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] = w[i - 16] + (rotate_right(a, 7) ^ rotate_right(a, 18) ^ a >> 3) + w[i - 7] +
               (rotate_right(b, 17) ^ rotate_right(b, 19) ^ b >> 10);
    }
}

/* Mixes one block into the state: 64 rounds over the eight working variables a to h. */
static void compress_block(uint32_t state[8], const uint8_t *block)
{
    uint32_t w[64];
    expand_block(w, block);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (size_t i = 0; i < 64; i++) {
        uint32_t t1 = h + (rotate_right(e, 6) ^ rotate_right(e, 11) ^ rotate_right(e, 25)) +
                      ((e & f) ^ (~e & g)) + round_constants[i] + w[i];
        uint32_t t2 = (rotate_right(a, 2) ^ rotate_right(a, 13) ^ rotate_right(a, 22)) +
                      ((a & b) ^ (a & c) ^ (b & c));
        h = g, g = f, f = e, e = d + t1;
        d = c, c = b, b = a, a = t1 + t2;
    }
    state[0] += a, state[1] += b, state[2] += c, state[3] += d;
    state[4] += e, state[5] += f, state[6] += g, state[7] += h;
}

void sha256_init(struct sha256 *h)
{
    *h = (struct sha256){ .state = { 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                     0x9b05688c, 0x1f83d9ab, 0x5be0cd19 } };
}

void sha256_feed(struct sha256 *h, str data)
{
    while (data.n) {
        size_t held = h->bytes % sizeof(h->block), now = MIN(data.n, sizeof(h->block) - held);
        memcpy(h->block + held, data.p, now);
        h->bytes += now;
        data = str_from(data, now);
        if (held + now == sizeof(h->block))
            compress_block(h->state, h->block);
    }
}

/* Padding: a 1 bit, zeros up to 8 bytes before the end of a block, and the length in bits. */
void sha256_finish(struct sha256 *h, uint8_t ret_digest[SHA256_BYTES])
{
    uint64_t bits = h->bytes * 8;
    sha256_feed(h, (str){ "\x80", 1 });
    while (h->bytes % sizeof(h->block) != 56)
        sha256_feed(h, (str){ "", 1 });
    char length[8];
    for (size_t i = 0; i < 8; i++)
        length[i] = (char)(bits >> (56 - 8 * i));
    sha256_feed(h, (str){ length, sizeof(length) });
    for (size_t i = 0; i < SHA256_BYTES; i++)
        ret_digest[i] = (uint8_t)(h->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_hex(str data, char ret_hex[SHA256_HEX + 1])
{
    struct sha256 h;
    uint8_t digest[SHA256_BYTES];
    sha256_init(&h);
    sha256_feed(&h, data);
    sha256_finish(&h, digest);
    for (size_t i = 0; i < SHA256_BYTES; i++) {
        ret_hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        ret_hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    ret_hex[SHA256_HEX] = '\0';
}
