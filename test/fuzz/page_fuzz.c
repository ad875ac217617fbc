/* The page's untrusted input: the first line is a header, whose parts must lie inside of it; the rest are changes of
 * the board, two bytes each, which a client follows and another one reads at the end: both must agree. */
#include "fuzz.h"
#include "web/board_core.h"
#include "web/request_core.h"

enum { KEYS = 16 };

static void check_inside(str part, str whole)
{
    if (part.n && (part.p < whole.p || part.p + part.n > whole.p + whole.n))
        abort();
}

static void check_header(str header)
{
    uint64_t number = 0;
    check_inside(web_request_cookie(header, S("f")), header);
    check_inside(web_request_bearer(header), header);
    if (web_request_event_id(header, "0123abcd", &number) && number > INT64_MAX)
        abort();
}

/* Applies all changes after the cursor to what a client knows; only lengths are compared. */
static void follow(const struct board *b, uint64_t *cursor, size_t known[KEYS])
{
    uint64_t before = *cursor;
    for (const struct board_entry *e; (e = board_next(b, cursor)); before = *cursor) {
        if (*cursor <= before || e->seq != *cursor)
            abort();
        known[(unsigned char)board_key(e).p[0] % KEYS] = e->gone ? 0 : e->json_n;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char filler[256];
    str rest = { (const char *)data, size }, header;
    if (!str_cut(&rest, '\n', &header))
        return 0;
    check_header(header);
    struct board b;
    size_t follower[KEYS] = { 0 }, late[KEYS] = { 0 };
    uint64_t cursor = 0, start = 0;
    int64_t now = 1000;
    board_init(&b, 10);
    for (size_t i = 0; i + 1 < rest.n; i += 2) {
        unsigned char what = (unsigned char)rest.p[i], n = (unsigned char)rest.p[i + 1];
        char key = (char)('a' + what % KEYS);
        str name = { &key, 1 };
        if (what >= 240)
            follow(&b, &cursor, follower);
        else if (what >= 220)
            board_sample(&b, now += n - 20); /* also backwards */
        else if (n == 0)
            board_remove(&b, BOARD_POD, name);
        else
            board_put(&b, BOARD_POD, name, (str){ filler, n },
                      (const uint16_t[BOARD_CHANNELS]){ n, what, 0, 0 });
    }
    follow(&b, &cursor, follower);
    follow(&b, &start, late);
    struct buf out = { 0 };
    for (char key = 'a'; key < 'a' + KEYS; key++) {
        const struct board_entry *e = board_get(&b, BOARD_POD, (str){ &key, 1 });
        size_t want = e ? e->json_n : 0;
        if (follower[key % KEYS] != want || late[key % KEYS] != want)
            abort();
        if (e)
            board_write_series(&b, e, &out);
    }
    buf_done(&out);
    board_done(&b);
    return 0;
}
