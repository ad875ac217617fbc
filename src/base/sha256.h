/* SHA-256 (FIPS 180-4). Implemented here because fingerprints of documents are needed below `net`,
 * the only folder that may use OpenSSL. Not for secrets: it is not proven to run in constant
 * time. */
#ifndef FLYBALL_SHA256_H
#define FLYBALL_SHA256_H

#include "str.h"

enum { SHA256_BYTES = 32, SHA256_HEX = 2 * SHA256_BYTES };

struct sha256 {
    uint32_t state[8];
    uint64_t bytes;    /* fed so far */
    uint8_t block[64]; /* the incomplete block */
};

void sha256_init(struct sha256 *h);
void sha256_feed(struct sha256 *h, str data);
void sha256_finish(struct sha256 *h, uint8_t ret_digest[SHA256_BYTES]);

/* In one call, as lower-case hexadecimal terminated with NUL. */
void sha256_hex(str data, char ret_hex[SHA256_HEX + 1]);

#endif
