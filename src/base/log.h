/* Logging: leveled lines on standard error, as key=value or JSON. Nothing else in the program logs.
 *
 *     log_info("replica bounds changed", KV("hpa", name), KV_INT("min", 5), KV_INT("was", 1));
 *
 *     2026-11-15T21:23:04.123Z info replica bounds changed hpa=web min=5 was=1
 *
 * Never pass a token, key or password. Values are quoted where necessary, so that text from a
 * client cannot forge a line. */
#ifndef FLYBALL_LOG_H
#define FLYBALL_LOG_H

#include "str.h"

enum log_level { LOG_DEBUG, LOG_INFO, LOG_WARN, LOG_ERROR, LOG_LEVEL_N };
enum log_format { LOG_TEXT, LOG_JSON };

struct log_kv {
    const char *key; /* NULL ends the list */
    enum { KV_IS_STR, KV_IS_INT, KV_IS_REAL } kind;
    str text;
    int64_t integer;
    double real;
};

#define KV(name, value) ((struct log_kv){ .key = (name), .kind = KV_IS_STR, .text = (value) })
#define KV_C(name, value) KV(name, str_c(value))
#define KV_INT(name, value)                                                                        \
    ((struct log_kv){ .key = (name), .kind = KV_IS_INT, .integer = (int64_t)(value) })
#define KV_REAL(name, value) ((struct log_kv){ .key = (name), .kind = KV_IS_REAL, .real = (value) })

#define log_debug(...) LOG_AT_(LOG_DEBUG, __VA_ARGS__)
#define log_info(...) LOG_AT_(LOG_INFO, __VA_ARGS__)
#define log_warn(...) LOG_AT_(LOG_WARN, __VA_ARGS__)
#define log_error(...) LOG_AT_(LOG_ERROR, __VA_ARGS__)

void log_setup(enum log_level least, enum log_format format);
/* Sends lines to `sink` instead of standard error (tests, the live screen); NULL restores the
 * default. */
void log_redirect(void (*sink)(void *context, str line), void *context);
bool log_enabled(enum log_level level);
int log_level_parse(str name, enum log_level *ret); /* debug, info, warn, error */

void log_write(enum log_level level, const char *message, const struct log_kv *kvs);

#define LOG_AT_(level, ...) LOG_FIRST_(level, __VA_ARGS__, (struct log_kv){ 0 })
#define LOG_FIRST_(level, message, ...)                                                            \
    (log_enabled(level) ? log_write((level), (message), (const struct log_kv[]){ __VA_ARGS__ })    \
                        : (void)0)

#endif
