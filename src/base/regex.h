/* Regular expressions as CRD schemas use them (the syntax of Go's regexp), matched in time linear
 * in the text for every pattern: patterns and texts both come from clients.
 *
 * Supported: literals, ".", classes with ranges and negation, \d \w \s \D \W \S, [:alpha:] and
 * the like, \b \B ^ $ \A \z, groups (captures are not kept), (?:...) (?P<name>...) (?i) (?s) (?m)
 * (?U), alternation, * + ? {n} {n,} {n,m} up to 1000 and their lazy forms, \x41 \x{263a} \Q..\E
 * \n \t and the like. Not supported: \p{...} (returns -ENOTSUP), case folding beyond ASCII.
 * An error, as in Go: back-references and look-around. */
#ifndef FLYBALL_REGEX_H
#define FLYBALL_REGEX_H

#include "arena.h"

struct regex;

/* -EINVAL: not a regular expression; -ENOTSUP: uses a feature that is not supported; -E2BIG: too
 * large. */
int regex_compile(struct arena *a, str pattern, const struct regex **ret, err_t *e);

bool regex_matches(const struct regex *r, str text); /* anywhere in the text */
/* The same with a budget: adds the work done to `*steps`, and returns false once that reaches
 * `most`. */
bool regex_matches_within(const struct regex *r, str text, uint64_t most, uint64_t *steps);
/* Where the leftmost match at or after byte `from` begins and ends, as Go's FindStringIndex. */
bool regex_find_within(const struct regex *r, str text, size_t from, uint64_t most, uint64_t *steps,
                       size_t *ret_start, size_t *ret_end);

#endif
