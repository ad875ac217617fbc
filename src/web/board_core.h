/* The board: what the page shows, as one JSON text per object, and a short history of the object's numbers.
 *
 * Every change of an object gets the next sequence number, and a client is only a cursor: "everything after
 * sequence number N". The same rule serves a new client (N is 0: the snapshot), a client that follows, and one
 * that reconnects, so that no client has a buffer of its own. An object that changes five times between two
 * reads is sent once.
 *
 *     log   [ pod a 17 ][ gone ][ model b 19 ][ pod c 20 ]      sorted by number; board_next() searches it
 *
 * A removed object stays as a marker until BOARD_GONE_MAX newer ones exist; a client that is older than the
 * dropped markers must begin again (board_can_resume()). Decisions are numbered objects that are dropped
 * oldest first, without a marker: clients bound their own list.
 *
 * History: board_sample() appends the current numbers of every object to its series. All series share the times
 * of the samples, and the newest sample is the last of each. When BOARD_TIMES samples exist, every second one is
 * dropped and the interval doubles, up to BOARD_INTERVAL_MAX_S: a start shows detail, a long run shows hours. */
#ifndef FLYBALL_WEB_BOARD_CORE_H
#define FLYBALL_WEB_BOARD_CORE_H

#include "../base/buf.h"
#include "../base/set.h"
#include "../base/vec.h"

enum board_kind {
    BOARD_UNKNOWN,
    BOARD_MODEL, /* a variant of one */
    BOARD_SCHEDULE,
    BOARD_POD,
    BOARD_NODE,
    BOARD_SERVICE,
    BOARD_CONFIG,
    BOARD_DECISION,
    BOARD_HEALTH,
    BOARD_KIND_N
};

enum {
    BOARD_CHANNELS = 4, /* numbers per sample, at most */
    BOARD_TIMES = 120,
    BOARD_POD_TIMES = 40, /* there are many pods */
    BOARD_INTERVAL_MAX_S = 120,
    BOARD_GONE_MAX = 1024,
    BOARD_DECISIONS_MAX = 500,
    BOARD_NUMBER_UNKNOWN = UINT16_MAX
};

struct board_series; /* private */

struct board_entry {
    struct set_node node;
    uint8_t kind; /* enum board_kind */
    bool gone;
    uint16_t numbers[BOARD_CHANNELS]; /* now; BOARD_NUMBER_UNKNOWN */
    uint64_t seq;                     /* of the last change */
    struct board_series *series;      /* owned; NULL: this kind has none */
    uint32_t key_n, json_n;
    char text[]; /* the key, then the JSON */
};

struct board_slot {
    uint64_t seq;
    struct board_entry *entry; /* NULL: it has changed since, or was dropped */
};

struct board {
    struct set entries; /* owned */
    VEC(struct board_slot) log;
    uint64_t seq;               /* of the last change */
    uint64_t floor;             /* a cursor below it, other than 0, cannot resume */
    size_t gone;                /* markers */
    size_t decisions;           /* entries of this kind */
    uint64_t decision;          /* number of the last one */
    int64_t times[BOARD_TIMES]; /* of the samples, in seconds since 1970, oldest first */
    size_t time_n;
    int64_t interval_s;
};

void board_init(struct board *b, int64_t interval_s); /* between the first samples */
void board_done(struct board *b);

const char *board_kind_name(enum board_kind kind); /* as in the stream: "model", "pod", ... */
enum board_kind board_kind_find(str name);         /* BOARD_UNKNOWN: none */

/* Stores the JSON and the numbers of an object; `numbers` NULL: none. If the JSON is as before, clients get
 * nothing. Returns whether it changed. */
bool board_put(struct board *b, enum board_kind kind, str key, str json, const uint16_t *numbers);
void board_remove(struct board *b, enum board_kind kind, str key);
void board_add_decision(struct board *b, str json);
const struct board_entry *board_get(const struct board *b, enum board_kind kind, str key);

static inline str board_key(const struct board_entry *e)
{
    return (str){ e->text, e->key_n };
}

static inline str board_json(const struct board_entry *e)
{
    return (str){ e->text + e->key_n, e->json_n };
}

/* The first change after the cursor, which moves to it; NULL: there is none. */
const struct board_entry *board_next(const struct board *b, uint64_t *cursor);
bool board_can_resume(const struct board *b, uint64_t cursor);

/* Is a sample due? Then board_sample() takes it. */
bool board_sample_is_due(const struct board *b, int64_t now_s);
void board_sample(struct board *b, int64_t now_s);
/* {"t":[...],"n":[[...],...]}: times, and one list per channel; null: unknown. */
void board_write_series(const struct board *b, const struct board_entry *e, struct buf *out);

uint16_t board_number(double value, double scale); /* of value * scale, bounded; NaN: unknown */

#endif
