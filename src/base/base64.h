/* Base64 (RFC 4648 §4) as Go's encoding/base64 takes it: padded; line breaks are skipped. */
#ifndef FLYBALL_BASE64_H
#define FLYBALL_BASE64_H

#include "buf.h"

void base64_encode(struct buf *out, str bytes);
int base64_decode(struct buf *out, str text); /* appends; -EINVAL leaves `out` as it was */

#endif
