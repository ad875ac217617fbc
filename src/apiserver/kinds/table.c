/* Builds a Table: column definitions, and one row per object. It is what `kubectl get` asks for instead of the
 * objects.
 *
 *   kind->columns   name, type and priority of each column; custom resources add a JSONPath
 *   kind->cells     a function for built-in kinds: table_cells.c, table_pod.c, table_hpa.c
 *   no function     the JSONPath of each column, converted to the type of the column
 *
 * A row also carries as much of its object as the client asked for: nothing, metadata (the default), or all of
 * it. Ages are computed from the `now` of the request, so that one table is consistent in itself. */
#include "table.h"

#include "kind_hooks.h"

#include "table_columns.h"

#include "../../base/rfc3339.h"

/* The two largest units of a duration, as kubectl prints it: seconds below 2 minutes, then
 * coarser steps. A clock skew of up to one second counts as 0. */
str table_age(struct arena *a, int64_t seconds)
{
    int64_t minutes = seconds / 60, hours = minutes / 60, days = hours / 24, years = days / 365;
    const char *large = "", *small = "";
    int64_t first = 0, second = 0;
    if (seconds < -1)
        return S("<invalid>");
    if (seconds < 120)
        large = "s", first = MAX(seconds, 0);
    else if (minutes < 10)
        large = "m", first = minutes, small = "s", second = seconds % 60;
    else if (minutes < 180)
        large = "m", first = minutes;
    else if (hours < 8)
        large = "h", first = hours, small = "m", second = minutes % 60;
    else if (hours < 48)
        large = "h", first = hours;
    else if (days < 8)
        large = "d", first = days, small = "h", second = hours % 24;
    else if (days < 730)
        large = "d", first = days;
    else if (years < 8)
        large = "y", first = years, small = "d", second = days % 365;
    else
        large = "y", first = years;
    return second
               ? arena_printf(a, "%lld%s%lld%s", (long long)first, large, (long long)second, small)
               : arena_printf(a, "%lld%s", (long long)first, large);
}

/* ---- cells of custom resources */

/* Strings as they are, anything else as JSON with sorted keys. */
static struct json *text_cell(struct arena *a, const struct json *value)
{
    if (json_is(value, JSON_STR))
        return json_new_str(a, json_text(value));
    if (json_is(value, JSON_NULL))
        return json_new_str(a, S("<no value>"));
    auto_buf struct buf text = { 0 };
    json_write_canonical(&text, value);
    return json_new_str(a, buf_str(&text));
}

/* The age of a timestamp; text that is not one is "<invalid>". */
static struct json *date_cell(struct arena *a, const struct json *value, int64_t now_ns)
{
    int64_t seconds = 0;
    if (!json_is(value, JSON_STR))
        return json_new_null(a);
    if (rfc3339_parse(json_text(value), &seconds, NULL) < 0)
        return json_new_str(a, S("<invalid>"));
    return json_new_str(a, table_age(a, now_ns / 1000000000 - seconds));
}

/* Converts a value to the type of its column; null if it does not fit. */
static struct json *typed_cell(struct arena *a, const struct kind_column *column,
                               const struct json *value, int64_t now_ns)
{
    str type = str_c(column->type);
    bool number = json_is(value, JSON_INT) || json_is(value, JSON_REAL);
    if (!value)
        return json_new_null(a);
    if (str_eqc(type, "string"))
        return text_cell(a, value);
    if (str_eqc(type, "date"))
        return date_cell(a, value, now_ns);
    if (str_eqc(type, "integer") && json_is(value, JSON_REAL) && value->real >= -0x1p63 &&
        value->real < 0x1p63)
        return json_new_int(a, (int64_t)value->real);
    if ((number && (str_eqc(type, "integer") || str_eqc(type, "number"))) ||
        (json_is(value, JSON_BOOL) && str_eqc(type, "boolean")))
        return json_copy(a, value);
    return json_new_null(a);
}

/* The name, then the value that each JSONPath finds. */
static void add_cells_by_path(struct arena *a, const struct kind *k, const struct json *object,
                              int64_t now_ns, struct json *cells)
{
    json_push(a, cells, json_new_str(a, json_text(json_at(object, "metadata", "name", NULL))));
    for (uint32_t i = 1; i < k->n_columns; i++) {
        const struct jsonpath *find = k->columns[i].find;
        const struct json *value = find ? jsonpath_first(a, find, object) : NULL;
        json_push(a, cells, typed_cell(a, &k->columns[i], value, now_ns));
    }
}

/* ---- rows */

/* Metadata only: what `kubectl get` needs of the object. */
struct json *table_partial(struct arena *a, const struct json *object, str api_version)
{
    struct json *partial = json_new_obj(a);
    json_set_str(a, partial, "kind", S("PartialObjectMetadata"));
    json_set_str(a, partial, "apiVersion", api_version);
    const struct json *metadata = json_get(object, "metadata");
    json_set(a, partial, S("metadata"), metadata ? json_copy(a, metadata) : json_new_obj(a));
    return partial;
}

/* Marks the rows of finished pods, which clients may hide or print differently. */
static void add_completed_condition(struct arena *a, const struct json *pod, struct json *row)
{
    str phase = json_text(json_at(pod, "status", "phase", NULL));
    bool good = str_eqc(phase, "Succeeded");
    if (!good && !str_eqc(phase, "Failed"))
        return;
    struct json *list = json_new_arr(a), *condition = json_new_obj(a);
    json_set_str(a, condition, "type", S("Completed"));
    json_set_str(a, condition, "status", S("True"));
    json_set_str(a, condition, "reason", phase);
    json_set_str(a, condition, "message",
                 good ? S("The pod has completed successfully.") : S("The pod failed."));
    json_push(a, list, condition);
    json_set(a, row, S("conditions"), list);
}

/* Cells, and as much of the object as the client asked for. */
static struct json *make_row(struct arena *a, const struct kind *k, const struct json *object,
                             const struct table_options *options)
{
    struct json *row = json_new_obj(a), *cells = json_new_arr(a);
    if (k->cells)
        k->cells(a, object, options->now_ns, cells);
    else
        add_cells_by_path(a, k, object, options->now_ns, cells);
    json_set(a, row, S("cells"), cells);
    if (k->hooks == &kind_hooks_pod)
        add_completed_condition(a, object, row);
    if (options->include == TABLE_METADATA)
        json_set(a, row, S("object"), table_partial(a, object, options->api_version));
    else if (options->include == TABLE_OBJECT)
        json_set(a, row, S("object"), json_copy(a, object));
    else
        json_set(a, row, S("object"), json_new_null(a));
    return row;
}

/* The column definitions of a kind. */
static struct json *make_columns(struct arena *a, const struct kind *k)
{
    struct json *columns = json_new_arr(a);
    for (uint32_t i = 0; i < k->n_columns; i++) {
        const struct kind_column *c = &k->columns[i];
        struct json *column = json_new_obj(a);
        json_set_str(a, column, "name", str_c(c->name));
        json_set_str(a, column, "type", str_c(c->type));
        json_set_str(a, column, "format", str_c(c->format));
        json_set_str(a, column, "description", str_c(c->description));
        json_set_int(a, column, "priority", c->priority);
        json_push(a, columns, column);
    }
    return columns;
}

/* The metadata of the table is that of the list. */
struct json *table_make(struct arena *a, const struct kind *k, const struct json *const *items,
                        size_t n, const struct json *list_metadata, struct table_options options)
{
    struct json *table = json_new_obj(a), *rows = json_new_arr(a);
    json_set_str(a, table, "kind", S("Table"));
    json_set_str(a, table, "apiVersion", options.api_version);
    json_set(a, table, S("metadata"),
             list_metadata ? json_copy(a, list_metadata) : json_new_obj(a));
    json_set(a, table, S("columnDefinitions"),
             options.no_columns ? json_new_null(a) : make_columns(a, k));
    for (size_t i = 0; i < n; i++)
        json_push(a, rows, make_row(a, k, items[i], &options));
    json_set(a, table, S("rows"), rows);
    return table;
}
