/* Flags of a command: one table defines what is accepted, and the help is printed from it.
 *
 *     const struct flag flags[] = {
 *         { "listen", "ADDRESS", FLAG_TEXT, &o.listen, "Address to serve /metrics on" },
 *         { "leader-elect", NULL, FLAG_BOOL, &o.elect, "Work only while holding the lease" },
 *         { 0 },
 *     };
 *
 * Accepts --name VALUE and --name=VALUE, for a switch also --name (the same as --name=true), and
 * one dash instead of two. The initial value of a target is its default and is shown in the
 * help. */
#ifndef FLYBALL_CMD_FLAGS_H
#define FLYBALL_CMD_FLAGS_H

#include "../base/buf.h"

enum flag_kind {
    FLAG_TEXT,     /* const char *: borrowed from argv; NULL: not given */
    FLAG_BOOL,     /* bool */
    FLAG_INT,      /* int64_t */
    FLAG_REAL,     /* double */
    FLAG_DURATION, /* int64_t, nanoseconds: "15s" */
    FLAG_TITLE, /* not a flag: `name` is a heading in the help, or a controller that `help` describes */
};

struct flag {
    const char *name;  /* without dashes; NULL ends the table */
    const char *value; /* placeholder in the help: "FILE" */
    enum flag_kind kind;
    void *target;
    const char *help; /* a noun phrase or an imperative, capitalized, without a period */
    char letter;      /* short name, as in kubectl: 'o' for -o; '\0': none */
};

/* Sets targets from argv[1...]. `*ret_help` is set for --help or -h. Other arguments go to
 * `words`; if that is NULL, they are an error. */
struct flag_words {
    const char **at; /* has room for argc */
    size_t n;
};
int flags_parse(const struct flag *flags, int argc, char **argv, bool *ret_help,
                struct flag_words *words, err_t *e);

/* Sets targets from the environment: --watch-namespace from $WATCH_NAMESPACE. Empty variables
 * are ignored. */
int flags_from_env(const struct flag *flags, err_t *e);

/* Appends "  --listen ADDRESS       Address ... (default 0.0.0.0:8080)", one line per flag. */
void flags_help(struct buf *out, const struct flag *flags);

/* Splits an address to listen on: "127.0.0.1:6443", "[::1]:0" or ":6443". Modifies `text`; the
 * address points into it, or is NULL if there is none. `flag` is used in the error. */
int flags_split_listen(const char *flag, char *text, const char **ret_address, uint16_t *ret_port,
                       err_t *e);

#endif
