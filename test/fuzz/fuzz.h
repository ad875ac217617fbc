/* What every fuzzer defines: reads hostile bytes, must neither crash nor leak, and may abort()
 * where a law it states is broken (what was written reads back equal, and so on). */
#ifndef FLYBALL_FUZZ_H
#define FLYBALL_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
