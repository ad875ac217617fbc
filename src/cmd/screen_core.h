/* The screen of `flyball up` on a terminal, as a function from a snapshot to text.
 *
 *     banner       up to three lines: time, kubeconfig, page
 *     sections     one per feature that has objects, with a heading and a few rows of numbers
 *     DECISIONS    the last ones, newest first, with the object's name first
 *     footer       keys
 *
 * The result has at most `rows` lines of at most `columns` characters. Lines are shared between the sections as
 * described at screen_allot(); a section that has more rows than lines scrolls to the selected one.
 *
 * Memory: a snapshot borrows its texts. Texts come from users: screen_render() replaces what could move the cursor or
 * has another width than one column. */
#ifndef FLYBALL_CMD_SCREEN_CORE_H
#define FLYBALL_CMD_SCREEN_CORE_H

#include "../base/arena.h"
#include "../base/buf.h"
#include "../json/json.h"

enum screen_section {
    SCREEN_MODELS,
    SCREEN_SCHEDULES,
    SCREEN_MARKET, /* nodes, then pods */
    SCREEN_SERVICES,
    SCREEN_DECISIONS,
    SCREEN_SECTION_N
};

enum screen_kind { /* of a row */
                   SCREEN_UNKNOWN,
                   SCREEN_MODEL,
                   SCREEN_SCHEDULE,
                   SCREEN_NODE,
                   SCREEN_POD,
                   SCREEN_SERVICE,
                   SCREEN_DECISION,
                   SCREEN_KIND_N
};

enum { SCREEN_CELLS = 8, SCREEN_BANNER = 3 };

struct screen_row {
    enum screen_kind kind;
    str key; /* NAMESPACE/NAME, or the number of a decision: what a selection refers to */
    str cells[SCREEN_CELLS]; /* as the columns of the section; the first one is the name */
    bool changing;           /* current and desired state differ, or a warning */
};

struct screen_view {
    size_t rows, columns;
    bool color;
    str banner[SCREEN_BANNER]; /* "": left out */
    str note;                  /* the last log line; "": none */
    str footer;
    const struct screen_row *at; /* in the order of the sections */
    size_t n;
    size_t totals[SCREEN_SECTION_N]; /* objects, if there are more than rows in `at` */
    size_t selected;                 /* index of a row; SIZE_MAX: none */
    bool opened;                     /* show `detail` instead of the sections */
    str detail;                      /* lines of text */
    size_t scroll;                   /* lines of it above the screen */
};

/* Appends the lines, separated by newlines. Returns how many lines of the detail exist after wrapping. */
size_t screen_render(const struct screen_view *view, struct buf *out);

/* Shares `lines` between sections that have `wanted` rows each: the decisions get three first, then all sections get
 * the same number, as far as they need them. */
void screen_allot(const size_t wanted[SCREEN_SECTION_N], size_t lines,
                  size_t ret[SCREEN_SECTION_N]);

enum screen_section screen_section_of(enum screen_kind kind);

/* Where the row with this key is now; if it is gone, the one that took its place; SIZE_MAX: there are no rows. */
size_t screen_find(const struct screen_row *rows, size_t n, enum screen_kind kind, str key,
                   size_t last);

/* A row from what the page shows of an object (the JSON of src/web's board); cells live in the arena. */
struct screen_row screen_row_read(struct arena *a, enum screen_kind kind, str key,
                                  const struct json *object, int64_t now_s);

/* 42s, 9m, 5h18m, 3d4h. */
str screen_span(struct arena *a, int64_t seconds);

/* --- keys --- */

enum screen_key {
    SCREEN_KEY_NONE,
    SCREEN_KEY_UP,
    SCREEN_KEY_DOWN,
    SCREEN_KEY_PAGE_UP,
    SCREEN_KEY_PAGE_DOWN,
    SCREEN_KEY_ENTER,
    SCREEN_KEY_CLOSE,
    SCREEN_KEY_QUIT
};

/* Takes the next key from the bytes that a terminal sent; an unknown sequence is SCREEN_KEY_NONE. */
enum screen_key screen_key_next(str *input);

#endif
