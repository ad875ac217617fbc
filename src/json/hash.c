/* The canonical form is written as a whole and hashed: documents are small. */
#include "hash.h"

void hash_json(const struct json *v, char ret_hex[SHA256_HEX + 1])
{
    auto_buf struct buf text = { 0 };
    json_write_canonical(&text, v);
    sha256_hex(buf_str(&text), ret_hex);
}
