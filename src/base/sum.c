/* Checksums: see sum.h. XXH3 reads little-endian on every machine, so its result can be stored. */
#include "sum.h"

#define XXH_INLINE_ALL /* only one function of the library ends up in the binary */
#include <xxhash.h>

uint64_t sum64(str bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes.p ? bytes.p : "", bytes.n, seed);
}
