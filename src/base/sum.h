/* Checksums that are stored in files: the same in every run and on every machine, unlike
 * map_hash(). They detect damage, not tampering. */
#ifndef FLYBALL_SUM_H
#define FLYBALL_SUM_H

#include "str.h"

uint64_t sum64(str bytes, uint64_t seed); /* XXH3; chain several parts by the seed */

#endif
