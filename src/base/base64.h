/* Base64 (RFC 4648 §4) as Go's encoding/base64 implements it: padded, line breaks are skipped. */
#ifndef FLYBALL_BASE64_H
#define FLYBALL_BASE64_H

#include "buf.h"

void base64_encode(struct buf *out, str bytes);
int base64_decode(struct buf *out, str text); /* appends; -EINVAL leaves `out` unchanged */

/* The URL-safe alphabet of RFC 4648 §5, without padding. */
void base64url_encode(struct buf *out, str bytes);
int base64url_decode(struct buf *out, str text);

#endif
