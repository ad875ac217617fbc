/* The board: what a client gets that starts, follows or comes back; what is kept and what is dropped; the history. */
#include "web/board_core.h"

#include "base/map.h"
#include "base/random.h"
#include "tap.h"

#include <malloc.h>

static bool put(struct board *b, enum board_kind kind, const char *key, const char *json)
{
    return board_put(b, kind, str_c(key), str_c(json), NULL);
}

/* All changes after the cursor as "key=json ", the order being that of the changes. */
static char *read_all(const struct board *b, uint64_t *cursor)
{
    struct buf out = { 0 };
    for (const struct board_entry *e; (e = board_next(b, cursor));)
        buf_printf(&out, STR_FMT "=" STR_FMT " ", STR_ARG(board_key(e)),
                   STR_ARG(e->gone ? S("gone") : board_json(e)));
    buf_put(&out, S(""));
    return out.p ? buf_take(&out) : mem_dup("", 0);
}

static void reads(const struct board *b, uint64_t *cursor, const char *want)
{
    auto_free char *got = read_all(b, cursor);
    if (strcmp(got, want))
        tap_note(__FILE__, __LINE__, "got \"%s\", want \"%s\"", got, want);
}

static void a_client_gets_each_change_once(void)
{
    struct board b;
    uint64_t early = 0, late = 0;
    board_init(&b, 10);
    OK(put(&b, BOARD_POD, "a", "1"));
    OK(put(&b, BOARD_POD, "b", "1"));
    reads(&b, &early, "a=1 b=1 ");
    reads(&b, &early, "");
    OK(!put(&b, BOARD_POD, "a", "1")); /* the same again is no change */
    OK(put(&b, BOARD_POD, "a", "2"));
    OK(put(&b, BOARD_POD, "a", "three"));
    reads(&b, &early, "a=three ");
    reads(&b, &late, "b=1 a=three ");
    board_remove(&b, BOARD_POD, S("b"));
    board_remove(&b, BOARD_POD, S("b")); /* twice is once */
    board_remove(&b, BOARD_POD, S("never"));
    reads(&b, &early, "b=gone ");
    reads(&b, &late, "b=gone ");
    OK(!board_get(&b, BOARD_POD, S("b")));
    OK(put(&b, BOARD_POD, "b", "1")); /* it comes back */
    reads(&b, &early, "b=1 ");
    EQ_INT(b.gone, 0);
    board_done(&b);
}

static void kinds_do_not_share_keys(void)
{
    struct board b;
    uint64_t cursor = 0;
    board_init(&b, 10);
    put(&b, BOARD_POD, "x/y", "pod");
    put(&b, BOARD_SERVICE, "x/y", "service");
    board_remove(&b, BOARD_POD, S("x/y"));
    reads(&b, &cursor, "x/y=service x/y=gone ");
    OK(board_get(&b, BOARD_SERVICE, S("x/y")) != NULL);
    EQ_INT(board_kind_find(S("service")), BOARD_SERVICE);
    EQ_INT(board_kind_find(S("")), BOARD_UNKNOWN);
    EQ_INT(board_kind_find(S("nonsense")), BOARD_UNKNOWN);
    OK(!board_get(&b, BOARD_UNKNOWN, S("x/y")));
    board_done(&b);
}

static void a_client_that_missed_removals_begins_again(void)
{
    struct board b;
    char key[16];
    board_init(&b, 10);
    put(&b, BOARD_POD, "stays", "1");
    uint64_t cursor = b.seq;
    for (int i = 0; i < BOARD_GONE_MAX + 10; i++) {
        snprintf(key, sizeof(key), "%d", i);
        put(&b, BOARD_POD, key, "1");
        board_remove(&b, BOARD_POD, str_c(key));
        if (i == BOARD_GONE_MAX - 1)
            OK(board_can_resume(&b, cursor));
    }
    EQ_INT(b.gone, BOARD_GONE_MAX);
    EQ_INT(b.entries.n, BOARD_GONE_MAX + 1);
    OK(!board_can_resume(&b, cursor));
    OK(board_can_resume(&b, b.seq));
    OK(!board_can_resume(&b, b.seq + 1)); /* a number that was never given */
    board_done(&b);
}

static void decisions_are_bounded(void)
{
    struct board b;
    char text[16];
    uint64_t cursor = 0;
    board_init(&b, 10);
    put(&b, BOARD_POD, "pod", "1");
    for (int i = 1; i <= 3 * BOARD_DECISIONS_MAX; i++) {
        snprintf(text, sizeof(text), "%d", i);
        board_add_decision(&b, str_c(text));
    }
    EQ_INT(b.entries.n, BOARD_DECISIONS_MAX + 1);
    OK(b.log.n <= 2 * b.entries.n + 64);
    const struct board_entry *e = board_next(&b, &cursor);
    OK(str_eq(board_key(e), S("pod"))); /* which is older than all of them, and stays */
    e = board_next(&b, &cursor);
    snprintf(text, sizeof(text), "%d", 2 * BOARD_DECISIONS_MAX + 1);
    OK(str_eqc(board_json(e), text));
    board_done(&b);
}

/* Random changes; three clients that read at random times; each must end with what the board has. */
static void every_client_ends_with_the_truth(void)
{
    enum { KEYS = 40, CLIENTS = 3, STEPS = 20000 };
    struct board b;
    struct random random;
    int truth[KEYS] = { 0 }, seen[CLIENTS][KEYS] = { 0 }; /* 0: absent */
    uint64_t cursors[CLIENTS] = { 0 };
    random_init(&random, 7, 1);
    board_init(&b, 10);
    for (int step = 0; step < STEPS + CLIENTS; step++) {
        uint32_t k = random_below(&random, KEYS), what = random_below(&random, 10);
        size_t client = step < STEPS ? random_below(&random, CLIENTS) : (size_t)(step - STEPS);
        char key[8], json[32];
        snprintf(key, sizeof(key), "%u", k);
        snprintf(json, sizeof(json), "%.*s%d", (int)random_below(&random, 20),
                 "00000000000000000000", step + 1);
        if (step < STEPS && what == 0) {
            board_remove(&b, BOARD_NODE, str_c(key));
            truth[k] = 0;
        } else if (step < STEPS && what < 7) {
            put(&b, BOARD_NODE, key, json);
            truth[k] = step + 1;
        } else {
            for (const struct board_entry *e; (e = board_next(&b, &cursors[client]));) {
                char number[32];
                snprintf(number, sizeof(number), STR_FMT, STR_ARG(board_key(e)));
                int at = atoi(number);
                snprintf(number, sizeof(number), STR_FMT, STR_ARG(board_json(e)));
                seen[client][at] = e->gone ? 0 : atoi(number);
            }
            if (memcmp(seen[client], truth, sizeof(truth)))
                tap_note(__FILE__, __LINE__, "client %zu differs at step %d", client, step);
        }
    }
    OK(b.log.n <= 2 * b.entries.n + 64);
    board_done(&b);
}

/* ---- history */

static void series_are(const struct board *b, const char *key, const char *want)
{
    auto_buf struct buf out = { 0 };
    board_write_series(b, board_get(b, BOARD_POD, str_c(key)), &out);
    if (strcmp(out.p, want))
        tap_note(__FILE__, __LINE__, "got %s, want %s", out.p, want);
}

static void put_numbers(struct board *b, const char *key, uint16_t used, uint16_t limit)
{
    board_put(b, BOARD_POD, str_c(key), S("{}"),
              (const uint16_t[BOARD_CHANNELS]){ used, limit, 0, 0 });
}

static void history_follows_the_numbers(void)
{
    struct board b;
    board_init(&b, 10);
    OK(board_sample_is_due(&b, 1000));
    put_numbers(&b, "a", 1, 2);
    board_sample(&b, 1000);
    OK(!board_sample_is_due(&b, 1009));
    OK(board_sample_is_due(&b, 1010));
    put_numbers(&b, "a", 3, BOARD_NUMBER_UNKNOWN);
    put_numbers(&b, "late", 9, 9);
    board_sample(&b, 1010);
    series_are(&b, "a", "{\"t\":[1000,1010],\"n\":[[1,3],[2,null]]}");
    series_are(&b, "late", "{\"t\":[1010],\"n\":[[9],[9]]}");
    OK(board_sample_is_due(&b, 500)); /* the clock was set back: begin again */
    board_sample(&b, 500);
    series_are(&b, "a", "{\"t\":[500],\"n\":[[3],[null]]}");
    board_done(&b);
}

static void history_keeps_hours_in_bounded_memory(void)
{
    struct board b;
    board_init(&b, 10);
    put_numbers(&b, "pod", 0, 0);
    board_put(&b, BOARD_NODE, S("node"), S("{}"), NULL);
    int64_t now = 0;
    for (int i = 0; i < 20000; i++, now += 10)
        if (board_sample_is_due(&b, now)) {
            uint16_t minute = (uint16_t)(now / 60);
            put_numbers(&b, "pod", minute, minute);
            board_put(&b, BOARD_NODE, S("node"), S("{}"),
                      (const uint16_t[BOARD_CHANNELS]){ minute, minute, minute, minute });
            board_sample(&b, now);
        }
    OK(b.interval_s * 2 > BOARD_INTERVAL_MAX_S);
    OK(b.time_n > BOARD_TIMES / 2);
    for (size_t i = 1; i < b.time_n; i++)
        OK(b.times[i] - b.times[i - 1] == b.interval_s);
    OK(b.times[b.time_n - 1] - b.times[0] >= 2 * 3600);
    /* every value belongs to its time */
    static const char *const names[] = { "node", "pod" };
    for (size_t k = 0; k < countof(names); k++) {
        auto_buf struct buf out = { 0 };
        board_write_series(&b, board_get(&b, k ? BOARD_POD : BOARD_NODE, str_c(names[k])), &out);
        const char *t = out.p + strlen("{\"t\":["),
                   *n = strstr(out.p, "\"n\":[[") + strlen("\"n\":[[");
        size_t count = 0;
        for (;; count++) {
            char *t_end, *n_end;
            long long time = strtoll(t, &t_end, 10), value = strtoll(n, &n_end, 10);
            EQ_INT(value, time / 60);
            if (*t_end != ',' || *n_end != ',')
                break;
            t = t_end + 1;
            n = n_end + 1;
        }
        OK(count + 1 >= (k ? (size_t)BOARD_POD_TIMES : b.time_n));
    }
    board_done(&b);
}

static void numbers_are_bounded(void)
{
    EQ_INT(board_number(1.5, 1000), 1500);
    EQ_INT(board_number(-3, 1), 0);
    EQ_INT(board_number(1e9, 1), BOARD_NUMBER_UNKNOWN - 1);
    EQ_INT(board_number(NAN, 1), BOARD_NUMBER_UNKNOWN);
    EQ_INT(board_number(INFINITY, 1), BOARD_NUMBER_UNKNOWN);
}

/* 8 MB for 1,000 models and 10,000 pods, with texts as long as those of the testbed. */
static void memory_is_within_the_budget(void)
{
    struct board b;
    char key[80], json[700];
    board_init(&b, 10);
    size_t bytes = 0;
    memset(json, 'x', sizeof(json));
    for (int i = 0; i < 11000; i++) {
        bool model = i < 1000;
        snprintf(key, sizeof(key), "namespace-%d/some-workload-with-a-long-name-5b8f7c9d4-%05d",
                 i % 50, i);
        board_put(&b, model ? BOARD_MODEL : BOARD_POD, str_c(key), (str){ json, model ? 500 : 160 },
                  NULL);
    }
    for (int i = 0; i < 500; i++)
        board_add_decision(&b, (str){ json, 400 });
    struct set_node *node;
    for (size_t at = 0; (node = set_next(&b.entries, &at));) {
        struct board_entry *e = container_of(node, struct board_entry, node);
        bytes += malloc_usable_size(e) + 16 + (e->series ? malloc_usable_size(e->series) + 16 : 0);
    }
    bytes += b.log.cap * sizeof(b.log.at[0]) + b.entries.cap * sizeof(b.entries.slots[0]);
    if (bytes > 8 << 20)
        tap_note(__FILE__, __LINE__, "%zu bytes", bytes);
    printf("# %zu bytes\n", bytes);
    board_done(&b);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_client_gets_each_change_once),
                                        TAP(kinds_do_not_share_keys),
                                        TAP(a_client_that_missed_removals_begins_again),
                                        TAP(decisions_are_bounded),
                                        TAP(every_client_ends_with_the_truth),
                                        TAP(history_follows_the_numbers),
                                        TAP(history_keeps_hours_in_bounded_memory),
                                        TAP(numbers_are_bounded),
                                        TAP(memory_is_within_the_budget),
                                        { 0 } });
}
