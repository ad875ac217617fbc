/* Collects field errors and formats them as kube-apiserver does: the kind of error, the value, then what
 * would be valid, because clients print the text as it is.
 *
 * Two limits keep a hostile object from amplifying: a value is cut to VALUE_SHOWN_MAX bytes, and after
 * FIELD_ERRORS_BYTES of text errors are only counted. Without them, a megabyte that is wrong in a hundred
 * thousand places would come back multiplied in the response.
 *
 * Paths are chains on the caller's stack and are written out only when an error is added, so validating a
 * valid object allocates nothing. All texts live in the arena of the list. */
#include "field.h"

#include <stdarg.h>
#include <stdio.h>

enum { VALUE_SHOWN_MAX = 256 }; /* bytes of a value that an error repeats */

const char *field_reason_word(enum field_reason reason)
{
    static const char *const words[FIELD_REASON_N] = {
        [FIELD_NOT_FOUND] = "FieldValueNotFound",         [FIELD_REQUIRED] = "FieldValueRequired",
        [FIELD_DUPLICATE] = "FieldValueDuplicate",        [FIELD_INVALID] = "FieldValueInvalid",
        [FIELD_NOT_SUPPORTED] = "FieldValueNotSupported", [FIELD_FORBIDDEN] = "FieldValueForbidden",
        [FIELD_TOO_LONG] = "FieldValueTooLong",           [FIELD_TOO_MANY] = "FieldValueTooMany",
        [FIELD_TYPE_INVALID] = "FieldValueTypeInvalid",   [FIELD_INTERNAL] = "InternalError",
    };
    return words[reason];
}

/* Writes a path root first: the chain runs from the leaf up. */
static void put_path(struct buf *out, const struct field_path *path)
{
    if (!path)
        return;
    put_path(out, path->up);
    if (path->how == FIELD_INDEX) {
        buf_printf(out, "[%zu]", path->index);
    } else if (path->how == FIELD_KEY) {
        buf_putc(out, '[');
        buf_put(out, path->key);
        buf_putc(out, ']');
    } else {
        if (out->n)
            buf_putc(out, '.');
        buf_put(out, path->key);
    }
}

str field_path_text(struct arena *a, const struct field_path *path)
{
    if (!path)
        return S("[]"); /* the object itself; quoted: kube-apiserver */
    auto_buf struct buf text = { 0 };
    put_path(&text, path);
    return arena_str(a, buf_str(&text));
}

static bool is_full(const struct field_errors *errors)
{
    return errors->bytes >= FIELD_ERRORS_BYTES;
}

/* Adds an error whose texts already live in the arena; beyond the limit it is only counted. */
void field_add(struct field_errors *errors, struct field_error error)
{
    errors->n++;
    if (is_full(errors))
        return;
    if (errors->n_kept == errors->cap) {
        size_t cap = errors->cap ? errors->cap * 2 : 8;
        struct field_error *grown = arena_array(errors->arena, cap, sizeof(*grown));
        if (errors->n_kept)
            memcpy(grown, errors->at, errors->n_kept * sizeof(*grown));
        errors->at = grown, errors->cap = cap;
    }
    errors->bytes += error.path.n + error.message.n;
    errors->at[errors->n_kept++] = error;
}

/* Errors that `from` only counted are counted here too. */
void field_add_all(struct field_errors *to, const struct field_errors *from)
{
    for (size_t i = 0; i < from->n_kept; i++)
        field_add(to, from->at[i]);
    to->n += from->n - from->n_kept;
}

/* Formats the path only if the error will be kept. */
static void add_error(struct field_errors *errors, const struct field_path *at,
                      enum field_reason reason, str message)
{
    if (is_full(errors)) {
        errors->n++;
        return;
    }
    field_add(errors, (struct field_error){ .path = field_path_text(errors->arena, at),
                                            .reason = reason,
                                            .message = arena_str(errors->arena, message) });
}

/* Writes at most VALUE_SHOWN_MAX bytes of the value as JSON. */
static void put_value(struct buf *out, const struct json *value)
{
    size_t start = out->n;
    json_write_start(out, value, VALUE_SHOWN_MAX + 1);
    if (out->n - start > VALUE_SHOWN_MAX) {
        out->n = start + VALUE_SHOWN_MAX;
        buf_put(out, S("..."));
    }
}

void field_required(struct field_errors *errors, const struct field_path *at, const char *detail)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("Required value"));
    if (detail && *detail)
        buf_printf(&text, ": %s", detail);
    add_error(errors, at, FIELD_REQUIRED, buf_str(&text));
}

static void add_invalid(struct field_errors *errors, const struct field_path *at,
                        enum field_reason reason, const struct json *value, const char *detail)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("Invalid value: "));
    put_value(&text, value);
    buf_printf(&text, ": %s", detail);
    add_error(errors, at, reason, buf_str(&text));
}

/* Declares `name` and prints the arguments of a variadic function into it; longer details are cut. */
#define FORMAT_DETAIL(name, format)                                                                \
    char name[1024];                                                                               \
    va_list args;                                                                                  \
    va_start(args, format);                                                                        \
    vsnprintf(name, sizeof(name), format, args);                                                   \
    va_end(args)

void field_invalid(struct field_errors *errors, const struct field_path *at,
                   const struct json *value, const char *format, ...)
{
    FORMAT_DETAIL(detail, format);
    add_invalid(errors, at, FIELD_INVALID, value, detail);
}

void field_type_invalid(struct field_errors *errors, const struct field_path *at,
                        const struct json *value, const char *format, ...)
{
    FORMAT_DETAIL(detail, format);
    add_invalid(errors, at, FIELD_TYPE_INVALID, value, detail);
}

void field_forbidden(struct field_errors *errors, const struct field_path *at, const char *format,
                     ...)
{
    FORMAT_DETAIL(detail, format);
    auto_buf struct buf text = { 0 };
    buf_printf(&text, "Forbidden: %s", detail);
    add_error(errors, at, FIELD_FORBIDDEN, buf_str(&text));
}

void field_duplicate(struct field_errors *errors, const struct field_path *at,
                     const struct json *value)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("Duplicate value: "));
    put_value(&text, value);
    add_error(errors, at, FIELD_DUPLICATE, buf_str(&text));
}

void field_not_found(struct field_errors *errors, const struct field_path *at,
                     const struct json *value)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("Not found: "));
    put_value(&text, value);
    add_error(errors, at, FIELD_NOT_FOUND, buf_str(&text));
}

void field_too_long(struct field_errors *errors, const struct field_path *at, int64_t most)
{
    auto_buf struct buf text = { 0 };
    buf_printf(&text, "Too long: may not be more than %lld bytes", (long long)most);
    add_error(errors, at, FIELD_TOO_LONG, buf_str(&text));
}

void field_too_many(struct field_errors *errors, const struct field_path *at, int64_t have,
                    int64_t most)
{
    auto_buf struct buf text = { 0 };
    buf_printf(&text, "Too many: %lld: must have at most %lld items", (long long)have,
               (long long)most);
    add_error(errors, at, FIELD_TOO_MANY, buf_str(&text));
}

void field_not_supported(struct field_errors *errors, const struct field_path *at,
                         const struct json *value, const char *const *allowed)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text, S("Unsupported value: "));
    put_value(&text, value);
    buf_put(&text, S(": supported values: "));
    for (size_t i = 0; allowed[i]; i++)
        buf_printf(&text, "%s\"%s\"", i ? ", " : "", allowed[i]);
    add_error(errors, at, FIELD_NOT_SUPPORTED, buf_str(&text));
}

struct json *field_causes(struct arena *a, const struct field_errors *errors)
{
    struct json *causes = json_new_arr(a);
    for (size_t i = 0; i < errors->n_kept; i++) {
        struct json *cause = json_new_obj(a);
        json_set_str(a, cause, "reason", str_c(field_reason_word(errors->at[i].reason)));
        json_set_str(a, cause, "message", errors->at[i].message);
        json_set_str(a, cause, "field", errors->at[i].path);
        json_push(a, causes, cause);
    }
    return causes;
}

/* The errors beyond the limit are only counted: ", and N more errors". */
str field_summary(struct arena *a, const struct field_errors *errors)
{
    auto_buf struct buf text = { 0 };
    if (errors->n > 1)
        buf_putc(&text, '[');
    for (size_t i = 0; i < errors->n_kept; i++) {
        if (i)
            buf_put(&text, S(", "));
        buf_put(&text, errors->at[i].path);
        buf_put(&text, S(": "));
        buf_put(&text, errors->at[i].message);
    }
    if (errors->n > errors->n_kept)
        buf_printf(&text, ", and %zu more errors", errors->n - errors->n_kept);
    if (errors->n > 1)
        buf_putc(&text, ']');
    return arena_str(a, buf_str(&text));
}
