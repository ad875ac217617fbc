/* Checksums that are kept in files: the same in every run and on every machine, unlike map_hash(). They
 * find damage, not malice. */
#ifndef FLYBALL_SUM_H
#define FLYBALL_SUM_H

#include "str.h"

uint64_t sum64(str bytes, uint64_t seed); /* XXH3; chain several parts by the seed */

#endif
