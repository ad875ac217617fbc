/* JSON in tests: written in C without escapes, and a failed check if it cannot be read. */
#ifndef FLYBALL_TEST_JSON_H
#define FLYBALL_TEST_JSON_H

#include "json/json.h"

struct json *test_json(struct arena *a, const char *text);
/* With ' instead of "; NULL for NULL. */
struct json *test_json_quoted(struct arena *a, const char *text);
/* With another character instead of ", for texts that contain '. */
struct json *test_json_quoted_by(struct arena *a, const char *text, char quote);

#endif
