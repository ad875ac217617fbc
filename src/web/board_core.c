/* The board: see board_core.h.
 *
 * An entry is one allocation with its key and JSON, which moves when the JSON grows; `entries` and `log` are the
 * only places that point to it. The log is compacted when more than half of its slots are empty, so its length
 * is at most twice the number of entries, and a change costs amortized constant time. */
#include "board_core.h"

#include "../base/map.h"

#include <math.h>

struct board_series {
    uint16_t cap, n; /* samples; the newest one is the last */
    uint8_t channels;
    uint16_t at[]; /* cap * channels, sample by sample */
};

/* What a kind is called, how many numbers a sample of it has, and how many samples are kept. */
static const struct {
    const char *name;
    uint8_t channels;
    uint16_t times;
} kinds[BOARD_KIND_N] = {
    [BOARD_UNKNOWN] = { "", 0, 0 },
    [BOARD_MODEL] = { "model", 4, BOARD_TIMES }, /* current, desired, KV use, queue */
    [BOARD_SCHEDULE] = { "schedule", 0, 0 },
    [BOARD_POD] = { "pod", 2, BOARD_POD_TIMES }, /* used, limit */
    [BOARD_NODE] = { "node", 3, BOARD_TIMES },   /* price, used, limit */
    [BOARD_SERVICE] = { "service", 0, 0 },
    [BOARD_CONFIG] = { "config", 0, 0 },
    [BOARD_DECISION] = { "decision", 0, 0 },
    [BOARD_HEALTH] = { "health", 0, 0 },
};

const char *board_kind_name(enum board_kind kind)
{
    return kinds[kind].name;
}

enum board_kind board_kind_find(str name)
{
    int kind = BOARD_KIND_N - 1;
    while (kind > 0 && !str_eqc(name, kinds[kind].name))
        kind--;
    return (enum board_kind)kind;
}

void board_init(struct board *b, int64_t interval_s)
{
    *b = (struct board){ .interval_s = MAX(interval_s, 1) };
}

static void free_entry(struct board_entry *e)
{
    free(e->series);
    free(e);
}

void board_done(struct board *b)
{
    struct set_node *node;
    for (size_t at = 0; (node = set_next(&b->entries, &at));)
        free_entry(container_of(node, struct board_entry, node));
    set_done(&b->entries);
    vec_done(&b->log);
}

/* ---- entries */

struct wanted {
    enum board_kind kind;
    str key;
};

static bool is_wanted(const struct set_node *member, const void *key)
{
    const struct board_entry *e = (const void *)member;
    const struct wanted *w = key;
    return e->kind == w->kind && str_eq(board_key(e), w->key);
}

static uint32_t hash_of(enum board_kind kind, str key)
{
    return set_hash(map_hash(key)) + (uint32_t)kind;
}

static struct board_entry *find_entry(const struct board *b, enum board_kind kind, str key)
{
    struct wanted w = { kind, key };
    struct set_node *node = set_find(&b->entries, hash_of(kind, key), is_wanted, &w);
    return node ? container_of(node, struct board_entry, node) : NULL;
}

const struct board_entry *board_get(const struct board *b, enum board_kind kind, str key)
{
    const struct board_entry *e = find_entry(b, kind, key);
    return e && !e->gone ? e : NULL;
}

/* ---- the log */

/* The first slot with a larger number than `seq`. */
static size_t find_slot(const struct board *b, uint64_t seq)
{
    size_t low = 0, high = b->log.n;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (b->log.at[middle].seq > seq)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

static struct board_slot *slot_of(const struct board *b, const struct board_entry *e)
{
    return &b->log.at[find_slot(b, e->seq) - 1];
}

/* Numbers stay sorted, so cursors need no change. */
static void compact_log(struct board *b)
{
    size_t n = 0;
    for (size_t i = 0; i < b->log.n; i++)
        if (b->log.at[i].entry)
            b->log.at[n++] = b->log.at[i];
    b->log.n = n;
}

/* Moves an entry to the end of the log, with the next number. */
static void announce_entry(struct board *b, struct board_entry *e)
{
    if (e->seq)
        slot_of(b, e)->entry = NULL;
    e->seq = ++b->seq;
    if (b->log.n >= 64 && b->log.n >= b->entries.n * 2)
        compact_log(b);
    vec_push(&b->log, ((struct board_slot){ e->seq, e }));
}

static void drop_entry(struct board *b, struct board_entry *e)
{
    slot_of(b, e)->entry = NULL;
    set_remove(&b->entries, &e->node);
    free_entry(e);
}

/* There is one. No marker is older than the last one that was dropped, so each slot is passed once. */
static struct board_entry *find_oldest_marker(const struct board *b)
{
    size_t i = find_slot(b, b->floor);
    while (!b->log.at[i].entry || !b->log.at[i].entry->gone)
        i++;
    return b->log.at[i].entry;
}

/* ---- changes */

static struct board_series *new_series(enum board_kind kind)
{
    size_t numbers = (size_t)kinds[kind].times * kinds[kind].channels;
    if (!numbers)
        return NULL;
    struct board_series *s = mem_alloc(sizeof(*s) + numbers * sizeof(s->at[0]));
    *s = (struct board_series){ kinds[kind].times, 0, kinds[kind].channels };
    return s;
}

static struct board_entry *add_entry(struct board *b, enum board_kind kind, str key, str json)
{
    struct board_entry *e = mem_alloc(sizeof(*e) + key.n + json.n);
    *e = (struct board_entry){ .node = { hash_of(kind, key) },
                               .kind = (uint8_t)kind,
                               .series = new_series(kind),
                               .key_n = (uint32_t)key.n,
                               .json_n = (uint32_t)json.n };
    memcpy(e->text, key.p, key.n);
    memcpy(e->text + key.n, json.p, json.n);
    set_add(&b->entries, &e->node);
    return e;
}

/* Replaces the JSON; the entry may move. Most changes keep the length, because numbers have few digits: those need
 * no allocation. */
static struct board_entry *change_json(struct board *b, struct board_entry *e, str json)
{
    if (json.n != e->json_n) {
        struct board_entry *moved = mem_alloc(sizeof(*e) + e->key_n + json.n);
        memcpy(moved, e, sizeof(*e) + e->key_n);
        slot_of(b, e)->entry = moved;
        set_swap(&b->entries, &e->node, &moved->node);
        free(e);
        e = moved;
        e->json_n = (uint32_t)json.n;
    }
    memcpy(e->text + e->key_n, json.p, json.n);
    return e;
}

bool board_put(struct board *b, enum board_kind kind, str key, str json, const uint16_t *numbers)
{
    struct board_entry *e = find_entry(b, kind, key);
    bool same = e && !e->gone && str_eq(board_json(e), json);
    if (e && e->gone) {
        e->gone = false;
        e->series = new_series(kind);
        b->gone--;
    }
    if (e && !same)
        e = change_json(b, e, json);
    if (!e)
        e = add_entry(b, kind, key, json);
    for (size_t i = 0; i < BOARD_CHANNELS; i++)
        e->numbers[i] = numbers ? numbers[i] : BOARD_NUMBER_UNKNOWN;
    if (!same)
        announce_entry(b, e);
    return !same;
}

void board_remove(struct board *b, enum board_kind kind, str key)
{
    struct board_entry *e = find_entry(b, kind, key);
    if (!e || e->gone)
        return;
    e = change_json(b, e, S(""));
    free(take(e->series));
    e->gone = true;
    b->gone++;
    announce_entry(b, e);
    while (b->gone > BOARD_GONE_MAX) {
        struct board_entry *oldest = find_oldest_marker(b);
        b->floor = oldest->seq;
        b->gone--;
        drop_entry(b, oldest);
    }
}

void board_add_decision(struct board *b, str json)
{
    auto_buf struct buf key = { 0 };
    buf_printf(&key, "%llu", (unsigned long long)++b->decision);
    board_put(b, BOARD_DECISION, buf_str(&key), json, NULL);
    if (++b->decisions <= BOARD_DECISIONS_MAX)
        return;
    b->decisions--;
    buf_clear(&key); /* numbers have no gaps, so the oldest one is known without a search */
    buf_printf(&key, "%llu", (unsigned long long)(b->decision - BOARD_DECISIONS_MAX));
    drop_entry(b, find_entry(b, BOARD_DECISION, buf_str(&key)));
}

/* ---- clients */

const struct board_entry *board_next(const struct board *b, uint64_t *cursor)
{
    for (size_t i = find_slot(b, *cursor); i < b->log.n; i++)
        if (b->log.at[i].entry) {
            *cursor = b->log.at[i].seq;
            return b->log.at[i].entry;
        }
    return NULL;
}

bool board_can_resume(const struct board *b, uint64_t cursor)
{
    return cursor <= b->seq && cursor >= b->floor;
}

/* ---- history */

uint16_t board_number(double value, double scale)
{
    double scaled = round(value * scale);
    if (!isfinite(scaled))
        return BOARD_NUMBER_UNKNOWN;
    return (uint16_t)MAX(0.0, MIN(scaled, (double)BOARD_NUMBER_UNKNOWN - 1));
}

bool board_sample_is_due(const struct board *b, int64_t now_s)
{
    int64_t last = b->time_n ? b->times[b->time_n - 1] : 0;
    return !b->time_n || now_s >= last + b->interval_s || now_s < last; /* the clock was set back */
}

/* Keeps every second sample, among them the newest. */
static void thin_series(struct board_series *s)
{
    size_t kept = (s->n + 1u) / 2, skip = s->n % 2 ? 0 : 1;
    for (size_t i = 0; i < kept; i++)
        memmove(s->at + i * s->channels, s->at + (2 * i + skip) * s->channels,
                s->channels * sizeof(s->at[0]));
    s->n = (uint16_t)kept;
}

static void append_sample(struct board_series *s, const uint16_t *numbers)
{
    size_t width = s->channels * sizeof(s->at[0]);
    if (s->n == s->cap) {
        memmove(s->at, s->at + s->channels, (size_t)(s->cap - 1) * width);
        s->n--;
    }
    memcpy(s->at + (size_t)s->n++ * s->channels, numbers, width);
}

/* Makes room for one more time, by thinning out or, at the longest interval, by dropping the oldest. */
static bool make_room(struct board *b)
{
    if (b->time_n < BOARD_TIMES)
        return false;
    if (b->interval_s * 2 > BOARD_INTERVAL_MAX_S) {
        memmove(b->times, b->times + 1, sizeof(b->times) - sizeof(b->times[0]));
        b->time_n--;
        return false;
    }
    b->interval_s *= 2;
    b->time_n /= 2;
    for (size_t i = 0; i < b->time_n; i++)
        b->times[i] = b->times[2 * i + 1];
    return true;
}

void board_sample(struct board *b, int64_t now_s)
{
    if (b->time_n && now_s < b->times[b->time_n - 1])
        b->time_n = 0; /* the clock was set back: the old times mean nothing now */
    bool thin = make_room(b), restart = !b->time_n;
    b->times[b->time_n++] = now_s;
    struct set_node *node;
    for (size_t at = 0; (node = set_next(&b->entries, &at));) {
        struct board_entry *e = container_of(node, struct board_entry, node);
        if (!e->series)
            continue;
        if (restart)
            e->series->n = 0;
        if (thin)
            thin_series(e->series);
        append_sample(e->series, e->numbers);
    }
}

void board_write_series(const struct board *b, const struct board_entry *e, struct buf *out)
{
    const struct board_series *s = e->series;
    size_t n = s ? MIN(s->n, b->time_n) : 0;
    buf_put(out, S("{\"t\":["));
    for (size_t i = 0; i < n; i++)
        buf_printf(out, "%s%lld", i ? "," : "", (long long)b->times[b->time_n - n + i]);
    buf_put(out, S("],\"n\":["));
    for (size_t c = 0; s && c < s->channels; c++) {
        buf_put(out, c ? S(",[") : S("["));
        for (size_t i = 0; i < n; i++) {
            uint16_t number = s->at[(s->n - n + i) * s->channels + c];
            if (number == BOARD_NUMBER_UNKNOWN)
                buf_printf(out, "%snull", i ? "," : "");
            else
                buf_printf(out, "%s%u", i ? "," : "", number);
        }
        buf_putc(out, ']');
    }
    buf_put(out, S("]}"));
}
