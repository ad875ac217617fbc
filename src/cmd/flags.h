/* Flags of a command: one table says what is taken, and its help is printed from the same table.
 *
 *     const struct flag flags[] = {
 *         { "listen", "ADDRESS", FLAG_TEXT, &o.listen, "where /metrics is served" },
 *         { "leader-elect", NULL, FLAG_BOOL, &o.elect, "work only while leading" },
 *         { 0 },
 *     };
 *
 * Taken are --name VALUE and --name=VALUE; a switch also alone (--name is --name=true); one dash does as well. What
 * a target holds before is its default, and shown as such. */
#ifndef FLYBALL_CMD_FLAGS_H
#define FLYBALL_CMD_FLAGS_H

#include "../base/buf.h"

enum flag_kind {
    FLAG_TEXT,     /* const char *: borrowed from argv; NULL: not given */
    FLAG_BOOL,     /* bool */
    FLAG_INT,      /* int64_t */
    FLAG_REAL,     /* double */
    FLAG_DURATION, /* int64_t, nanoseconds: "15s" */
    FLAG_TITLE,    /* no flag: `name` is a line of its own in the help */
};

struct flag {
    const char *name;  /* without dashes; NULL ends the table */
    const char *value; /* what help calls it: "FILE" */
    enum flag_kind kind;
    void *target;
    const char *help; /* lower case, no full stop */
};

/* Fills targets from argv[1...]. `*ret_help` is set when --help or -h is there. What is no flag goes
 * to `words`, which may be NULL: then it is an error. */
struct flag_words {
    const char **at; /* room for argc */
    size_t n;
};
int flags_parse(const struct flag *flags, int argc, char **argv, bool *ret_help,
                struct flag_words *words, err_t *e);

/* Fills targets from the environment: --watch-namespace from $WATCH_NAMESPACE. Empty counts as absent. */
int flags_from_env(const struct flag *flags, err_t *e);

/* "  --listen ADDRESS       where ... (default 0.0.0.0:8080)", one a line. */
void flags_help(struct buf *out, const struct flag *flags);

/* An address to listen on: "127.0.0.1:6443", "[::1]:0" or ":6443". `text` is changed and kept; the address
 * is NULL when it names none. `flag` is for the error. */
int listen_split(const char *flag, char *text, const char **ret_address, uint16_t *ret_port,
                 err_t *e);

#endif
