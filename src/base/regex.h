/* Regular expressions as CRD schemas write them (the syntax of Go's regexp), matched in time
 * linear in the text whatever the pattern: patterns and texts both come from strangers.
 *
 * Understood: literals, ".", classes with ranges and negation, \d \w \s \D \W \S, [:alpha:] and
 * its kin, \b \B ^ $ \A \z, groups (captures are not kept), (?:...) (?P<name>...) (?i) (?s) (?m)
 * (?U), alternation, * + ? {n} {n,} {n,m} up to 1000 and their lazy forms, \x41 \x{263a} \Q..\E
 * \n \t and the like. Not understood: \p{...} (answers -ENOTSUP), case folding beyond ASCII.
 * Not in Go either, so an error: back-references and look-around. */
#ifndef FLYBALL_APISERVER_REGEX_H
#define FLYBALL_APISERVER_REGEX_H

#include "arena.h"

struct regex;

/* -EINVAL: not a regular expression; -ENOTSUP: one that uses what we do not know; -E2BIG. */
int regex_compile(struct arena *a, str pattern, const struct regex **ret, err_t *e);

bool regex_matches(const struct regex *r, str text); /* anywhere in the text */
/* The same, adding what it took to `*steps`; false as soon as that reaches `most`. */
bool regex_matches_within(const struct regex *r, str text, uint64_t most, uint64_t *steps);

#endif
