/* The screen of `flyball up`: what a snapshot looks like at both sizes, what is cut, where keys lead. */
#include "cmd/screen_core.h"

#include "base/random.h"
#include "base/utf8.h"
#include "tap.h"

static const int64_t monday = 1794814200; /* 2026-11-16T07:30:00Z */

static struct screen_row row(struct arena *a, enum screen_kind kind, const char *key,
                             const char *json)
{
    struct json *object = NULL;
    err_t e;
    OK_CALL(json_parse(a, str_c(json), &object, &e), &e);
    return screen_row_read(a, kind, str_c(key), object, monday);
}

static struct screen_row decision(const char *key, const char *name, const char *text)
{
    return (struct screen_row){ SCREEN_DECISION, str_c(key), { str_c(name), str_c(text) }, false };
}

/* One object of each feature and two decisions. */
static size_t all_features(struct arena *a, struct screen_row *rows)
{
    size_t n = 0;
    rows[n++] =
        row(a, SCREEN_MODEL, "llm/chat",
            "{\"current\":2,\"desired\":3,\"pending\":1,\"kv\":0.715,\"queue\":4,\"slo\":0.982,"
            "\"demand\":2.5,\"capacity\":2,\"cost\":10}");
    rows[n++] =
        row(a, SCREEN_SCHEDULE, "shop/web",
            "{\"currentConfig\":{\"minReplicas\":2,\"maxReplicas\":6},\"activeTrigger\":\"always\","
            "\"nextTransitionTime\":\"2026-11-16T08:00:00Z\"}");
    rows[n++] = row(a, SCREEN_NODE, "node-1",
                    "{\"used\":1500,\"limit\":3000,\"need\":1600,\"price\":0.25,\"pods\":2}");
    rows[n++] =
        row(a, SCREEN_POD, "market/alloc-a",
            "[\"a\",\"node-1\",900,1000,500,1000,950,200,0.125,1.2,0.25,\"market\",\"\",0]");
    rows[n++] = row(a, SCREEN_SERVICE, "ml/chat",
                    "{\"status\":\"Running\",\"resolvedRuntimeConfig\":{\"name\":\"default\"},"
                    "\"routing\":{\"path\":\"/ml/chat\"}}");
    rows[n++] = decision("1", "08:00:01 shop/web", "minReplicas 2 -> 5");
    rows[n++] = decision("0", "08:00:00 llm/chat", "2 -> 3 replicas");
    return n;
}

static char *render(struct screen_view *v)
{
    struct buf out = { 0 };
    v->footer = S("q quit");
    screen_render(v, &out);
    return buf_take(&out);
}

static void shows(const char *screen, const char *line)
{
    auto_free char *all = mem_dup(screen, strlen(screen));
    str rest = str_c(all), one;
    while (str_cut(&rest, '\n', &one))
        if (str_eqc(one, line))
            return;
    tap_note(__FILE__, __LINE__, "there is no line \"%s\" in\n%s", line, screen);
}

static void a_screen_of_80_columns(void)
{
    auto_arena struct arena a = { 0 };
    struct screen_row rows[8];
    struct screen_view v = { 24, 80, .banner = { S("one"), S(""), S("three") }, .selected = 3,
                             .at = rows };
    v.n = all_features(&a, rows);
    auto_free char *screen = render(&v);
    OK(str_starts(str_c(screen), S("one\nthree\nMODELS")));
    shows(screen, "MODELS                         REPLICAS     KV CACHE   QUEUE     SLO");
    shows(screen, "  llm/chat                     2 → 3 (+1)      71.5%     4.0   98.2%");
    shows(screen, "  shop/web                     2 to 6       always            08:00Z in 30m");
    shows(screen, "  node node-1 (2 pods)             1.50     3.00     1.60   0.250");
    shows(screen, "> market/a                         0.90     1.00     0.95   0.250      12.5%");
    shows(screen, "  ml/chat                      Running      default      /ml/chat");
    shows(screen, "  08:00:01 shop/web            minReplicas 2 -> 5");
    OK(str_ends(str_c(screen), S("\nq quit")));
    OK(str_find(str_c(screen), S("\033")) == SIZE_MAX); /* no color was requested */
}

static void a_wide_screen_has_more_columns(void)
{
    auto_arena struct arena a = { 0 };
    struct screen_row rows[8];
    struct screen_view v = { 40, 120, .selected = SIZE_MAX, .at = rows };
    v.n = all_features(&a, rows);
    auto_free char *screen = render(&v);
    shows(
        screen,
        "MODELS                                        REPLICAS     KV CACHE   QUEUE     SLO       DEMAND      COST");
    shows(
        screen,
        "  llm/chat                                    2 → 3 (+1)      71.5%     4.0   98.2%    2.50/2.00   20.00/h");
    shows(
        screen,
        "  market/a                                        0.90     1.00     0.95   0.250      12.5%     1.20 market");
}

static void features_without_objects_are_absent(void)
{
    auto_arena struct arena a = { 0 };
    struct screen_row one = row(&a, SCREEN_SCHEDULE, "shop/web", "{}");
    struct screen_view v = { 24, 80, .selected = SIZE_MAX, .at = &one, .n = 1 };
    auto_free char *screen = render(&v);
    shows(screen,
          "  shop/web                     -            -                 -"); /* unknown is not 0 */
    shows(screen, "  none yet");
    OK(!strstr(screen, "MODELS") && !strstr(screen, "MARKET") && !strstr(screen, "SERVICES"));
}

static size_t count_lines(str text)
{
    size_t n = 1;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

/* Whatever the size and the texts, the screen has exactly its lines, none too long. */
static void every_screen_fits(void)
{
    auto_arena struct arena a = { 0 };
    struct random r;
    random_init(&r, 21, 1);
    for (size_t round = 0; round < 3000; round++) {
        struct screen_row rows[64];
        struct screen_view v = { .at = rows, .banner = { S("title"), S("export"), S("page") } };
        char noise[200];
        for (size_t i = 0; i < sizeof(noise); i++)
            noise[i] = (char)random_below(&r, 256);
        v.rows = 1 + random_below(&r, 50);
        v.columns = 1 + random_below(&r, 150);
        v.n = random_below(&r, countof(rows));
        for (size_t i = 0, kind = 1; i < v.n; i++) {
            kind = MIN(kind + random_below(&r, 5) / 4, (size_t)SCREEN_KIND_N - 1);
            rows[i] = (struct screen_row){ .kind = (enum screen_kind)kind };
            for (size_t c = 0; c < SCREEN_CELLS; c++)
                rows[i].cells[c] = (str){ noise, random_below(&r, sizeof(noise)) };
        }
        v.selected = v.n ? random_below(&r, (uint32_t)v.n) : SIZE_MAX;
        v.opened = random_below(&r, 4) == 0;
        v.detail = (str){ noise, sizeof(noise) };
        v.scroll = random_below(&r, 20);
        v.note = random_below(&r, 2) ? S("a log line") : S("");
        auto_free char *screen = render(&v);
        EQ_INT(count_lines(str_c(screen)), MAX(v.rows, v.note.n ? (size_t)2 : (size_t)1));
        for (str rest = str_c(screen), line; str_cut(&rest, '\n', &line);) {
            size_t columns = 0;
            for (; line.n; columns++) {
                uint32_t c = utf8_next(&line);
                OK(c >= 0x20 && (c < 0x7f || c >= 0xa0) && c < 0x2600);
            }
            OK(columns <= v.columns);
        }
        arena_reset(&a, (struct arena_mark){ 0 });
    }
}

static void the_selected_row_is_always_visible(void)
{
    struct screen_row rows[300];
    char keys[300][8];
    struct screen_view v = { 24, 80, .at = rows, .n = 300 };
    for (size_t i = 0; i < 300; i++) {
        snprintf(keys[i], sizeof(keys[i]), "p%zu", i);
        rows[i] =
            (struct screen_row){ i < 100 ? SCREEN_MODEL : (i < 200 ? SCREEN_POD : SCREEN_DECISION),
                                 str_c(keys[i]),
                                 { str_c(keys[i]) },
                                 false };
    }
    for (v.selected = 0; v.selected < v.n; v.selected++) {
        auto_free char *screen = render(&v);
        char want[32];
        snprintf(want, sizeof(want), "> p%zu", v.selected);
        shows(screen, want);
        OK(strstr(screen, "of 100)"));
    }
}

static void lines_are_shared(void)
{
    size_t got[SCREEN_SECTION_N];
    screen_allot((size_t[]){ 2, 1, 50, 3, 60 }, 15, got);
    EQ_INT(got[0], 2);
    EQ_INT(got[1], 1);
    EQ_INT(got[2], 5);
    EQ_INT(got[3], 3);
    EQ_INT(got[4], 4);
    screen_allot((size_t[]){ 1, 0, 0, 0, 9 }, 20, got); /* more lines than rows */
    EQ_INT(got[0], 1);
    EQ_INT(got[4], 9);
    screen_allot((size_t[]){ 5, 5, 5, 5, 5 }, 2, got);
    EQ_INT(got[4], 2);
}

static void a_detail_is_wrapped_and_scrolls(void)
{
    struct screen_view v = { 6, 20, .opened = true,
                             .detail = S("a text that is longer than a line\nnext\n\nlast") };
    auto_free char *top = render(&v);
    OK(!strcmp(top, "\na text that is\nlonger than a line\nnext\n\nq quit"));
    v.scroll = 3;
    auto_free char *below = render(&v);
    OK(!strcmp(below, "\n\nlast\n\n\nq quit"));
}

static void a_selection_follows_its_row(void)
{
    struct screen_row rows[] = { { SCREEN_POD, S("a") },
                                 { SCREEN_POD, S("b") },
                                 { SCREEN_DECISION, S("a") } };
    EQ_INT(screen_find(rows, 3, SCREEN_DECISION, S("a"), 0), 2);
    EQ_INT(screen_find(rows, 3, SCREEN_POD, S("b"), 0), 1);
    EQ_INT(screen_find(rows, 3, SCREEN_POD, S("gone"), 9), 2);
    OK(screen_find(rows, 0, SCREEN_POD, S("a"), 1) == SIZE_MAX);
}

static void keys_are_recognized(void)
{
    static const enum screen_key want[] = {
        SCREEN_KEY_UP,        SCREEN_KEY_DOWN, SCREEN_KEY_UP,    SCREEN_KEY_PAGE_UP,
        SCREEN_KEY_PAGE_DOWN, SCREEN_KEY_NONE, SCREEN_KEY_ENTER, SCREEN_KEY_DOWN,
        SCREEN_KEY_NONE,      SCREEN_KEY_QUIT, SCREEN_KEY_CLOSE
    };
    str input = S("\033[A\033OB\033[1;2A\033[5~\033[6~\033[24~\rjxq\033");
    for (size_t i = 0; i < countof(want); i++)
        EQ_INT(screen_key_next(&input), want[i]);
    EQ_INT(input.n, 0);
    input = S("\033["); /* a sequence that was cut */
    EQ_INT(screen_key_next(&input), SCREEN_KEY_NONE);
    EQ_INT(input.n, 0);
}

static void spans_are_short(void)
{
    auto_arena struct arena a = { 0 };
    EQ_STR(screen_span(&a, -5), S("0s"));
    EQ_STR(screen_span(&a, 59), S("59s"));
    EQ_STR(screen_span(&a, 3599), S("59m"));
    EQ_STR(screen_span(&a, 5 * 3600 + 60), S("5h01m"));
    EQ_STR(screen_span(&a, 3 * 86400 + 4 * 3600), S("3d4h"));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_screen_of_80_columns),
                                        TAP(a_wide_screen_has_more_columns),
                                        TAP(features_without_objects_are_absent),
                                        TAP(every_screen_fits),
                                        TAP(the_selected_row_is_always_visible),
                                        TAP(lines_are_shared),
                                        TAP(a_detail_is_wrapped_and_scrolls),
                                        TAP(a_selection_follows_its_row),
                                        TAP(keys_are_recognized),
                                        TAP(spans_are_short),
                                        { 0 } });
}
