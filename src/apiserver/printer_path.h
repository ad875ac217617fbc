/* The JSONPath of printer columns: names, indexes, [*] and one kind of filter.
 *
 *     .status.conditions[?(@.type=='Ready')].status     .spec.list[0]     .metadata.labels['a.b']
 *
 * A column shows the first value found, so this finds just that. */
#ifndef FLYBALL_APISERVER_PRINTER_PATH_H
#define FLYBALL_APISERVER_PRINTER_PATH_H

#include "../json/json.h"

/* NULL when there is nothing, or when the path is not understood. */
const struct json *printer_path_first(const struct json *object, str path);

#endif
