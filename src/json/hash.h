/* Fingerprint of a document: lower-case hexadecimal SHA-256 of its canonical form (compact, keys
 * sorted by bytes, only quote, backslash and control characters escaped). Trees that differ only in
 * the order of members have the same fingerprint. */
#ifndef FLYBALL_HASH_H
#define FLYBALL_HASH_H

#include "../base/sha256.h"
#include "json.h"

void hash_json(const struct json *v, char ret_hex[SHA256_HEX + 1]);

#endif
