/* XXH3 on little-endian memory order: its result does not depend on the machine. */
#include "sum.h"

#define XXH_INLINE_ALL /* of a library that has all kinds of sums this one is used */
#include <xxhash.h>

uint64_t sum64(str bytes, uint64_t seed)
{
    return XXH3_64bits_withSeed(bytes.p ? bytes.p : "", bytes.n, seed);
}
