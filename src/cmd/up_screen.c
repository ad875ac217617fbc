/* The live view of `flyball up` on a terminal: its modes, keys and size. screen_core.c renders it from a snapshot that
 * up_view.c takes.
 *
 * The screen is the terminal's alternate one, so the shell's text returns at the end. It is redrawn as a whole once per
 * second, after a key and when the size changes. Nothing is drawn while another process group has the terminal
 * (`flyball up &`): changing its modes would stop us.
 *
 * The terminal is opened again for reading and writing, because a loop needs non-blocking descriptors, and that flag of
 * standard output is shared with the shell. A terminal that accepts no more output (Ctrl-S) misses a frame instead of
 * stopping the cluster. Log lines become the last line but one of the screen; all are repeated at the end, if standard
 * error is the same terminal. */
#include "up.h"

#include "../base/clock.h"
#include "../base/log.h"
#include "../base/rfc3339.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

static const int64_t redraw_ns = NS_PER_S;

static void draw_screen(struct up *up);

bool up_screen_is_terminal(void)
{
    const char *terminal = getenv("TERM");
    return isatty(STDOUT_FILENO) && terminal && strcmp(terminal, "dumb") != 0;
}

/* A write that the terminal does not take is lost: the next frame repeats everything. */
static void write_text(const struct up_screen *s, str text)
{
    (void)!write(s->tty, text.p, text.n);
}

/* False after `bg`, or if the shell started us with `&`. */
static bool is_foreground(const struct up_screen *s)
{
    return tcgetpgrp(s->tty) == getpgrp();
}

/* ---- entering and leaving */

/* Keys arrive at once and are not echoed; Ctrl-C and Ctrl-Z keep their meaning. */
static void enter_screen(struct up_screen *s)
{
    if (s->entered || s->tty < 0 || !is_foreground(s))
        return;
    if (!s->modes) {
        s->modes = mem_zero(1, sizeof(*s->modes));
        if (tcgetattr(s->tty, s->modes) < 0)
            return;
    }
    struct termios modes = *s->modes;
    modes.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    tcsetattr(s->tty, TCSADRAIN, &modes);
    write_text(s, S("\033[?1049h\033[?25l\033[2J"));
    s->entered = true;
    fd_watch_set(s->keys, FD_READ);
}

/* The modes of a terminal that another process group has by now are that group's business. */
static void leave_screen(struct up_screen *s)
{
    if (!s->entered)
        return;
    s->entered = false;
    fd_watch_set(s->keys, 0);
    write_text(s, S("\033[0m\033[?25h\033[?1049l"));
    if (is_foreground(s))
        tcsetattr(s->tty, TCSADRAIN, s->modes);
}

/* ---- drawing */

/* Some terminals report a size of 0; then it is that of a VT100. */
static void measure_terminal(struct up_screen *s)
{
    struct winsize size = { 0 };
    bool known = ioctl(s->tty, TIOCGWINSZ, &size) == 0;
    s->columns = known && size.ws_col ? size.ws_col : 80;
    s->rows = known && size.ws_row ? size.ws_row : 24;
}

/* One line: time, speed, and whether all is well. */
static str make_title(struct up *up, struct arena *a)
{
    struct up_tally t = up_summary_count(up);
    char moment[RFC3339_TEXT_MAX], speed[32] = "";
    str ran = screen_span(a, (clock_mono_ns() - up->started_ns) / NS_PER_S),
        now = rfc3339_text(loop_wall_ns(up->loop) / NS_PER_S, moment);
    if (up->speed > 1)
        snprintf(speed, sizeof(speed), " (%gx)", up->speed);
    return arena_printf(a, "flyball up  " STR_FMT "  " STR_FMT "%s  %.0f requests, %.0f errors",
                        STR_ARG(ran), STR_ARG(now), speed, t.requests, t.errors);
}

/* The row that the user selected, wherever it is now; SIZE_MAX: none. */
static size_t find_selected(struct up_screen *s, const struct up_view *view)
{
    if (!s->chosen)
        return SIZE_MAX;
    s->index =
        screen_find(view->rows, view->n, (enum screen_kind)s->kind, buf_str(&s->key), s->index);
    return s->index;
}

/* Lines of the rendered text become lines of the terminal; each clears what was right of it. */
static void put_frame(const struct up_screen *s, str text)
{
    auto_buf struct buf out = { 0 };
    str line;
    buf_put(&out, S("\033[H"));
    while (str_cut(&text, '\n', &line)) {
        buf_put(&out, line);
        buf_put(&out, text.p ? S("\033[K\r\n") : S("\033[K"));
    }
    write_text(s, buf_str(&out));
}

/* Takes a snapshot, renders it and writes it in one piece, which avoids flicker. */
static void draw_screen(struct up *up)
{
    struct up_screen *s = &up->screen;
    auto_arena struct arena a = { 0 };
    auto_buf struct buf text = { 0 }, export = { 0 };
    enter_screen(s);
    if (!s->entered || up->stopping)
        return;
    measure_terminal(s);
    struct up_view view = up_view_gather(up, &a);
    str page = up->web && *web_login_url(up->web) ? str_c(web_login_url(up->web)) : S("");
    up_summary_put_export(&export, up);
    struct screen_view v = {
        .rows = s->rows,
        .columns = s->columns,
        .color = !getenv("NO_COLOR"),
        .banner = { make_title(up, &a), buf_str(&export),
                    page.n ? arena_printf(&a, "page   " STR_FMT, STR_ARG(page)) : S("") },
        .note = buf_str(&s->note),
        .footer = s->opened ? S("q quit   ↑↓ scroll   Enter back")
                            : S("q quit   ↑↓ select   Enter shows the reasons"),
        .at = view.rows,
        .n = view.n,
        .selected = find_selected(s, &view),
        .scroll = s->scroll,
    };
    memcpy(v.totals, view.totals, sizeof(v.totals));
    v.opened = s->opened = s->opened && v.selected != SIZE_MAX;
    if (v.opened)
        v.detail = up_view_detail(up, &a, &view.rows[v.selected]);
    s->detail_lines = screen_render(&v, &text);
    put_frame(s, buf_str(&text));
}

static void on_redraw_timer(struct timer *timer)
{
    struct up *up = container_of(timer, struct up, redraw);
    draw_screen(up);
    timer_set(up->loop, timer, loop_mono_ns(up->loop) + loop_scale_timeout(up->loop, redraw_ns),
              on_redraw_timer);
}

/* ---- keys */

/* The key is copied: the snapshot is gone before the next key arrives. */
static void select_row(struct up_screen *s, const struct up_view *view, size_t index)
{
    s->chosen = true;
    s->index = index;
    s->kind = (int)view->rows[index].kind;
    buf_clear(&s->key);
    buf_put(&s->key, view->rows[index].key);
}

/* Moves the selection, or scrolls the reasons if they are open. The first key selects the first row. */
static void move_selection(struct up *up, int64_t by)
{
    struct up_screen *s = &up->screen;
    auto_arena struct arena a = { 0 };
    if (s->opened) {
        int64_t last = (int64_t)s->detail_lines - 1;
        s->scroll = (size_t)MAX(MIN((int64_t)s->scroll + by, last), INT64_C(0));
        return;
    }
    struct up_view view = up_view_gather(up, &a);
    size_t now = find_selected(s, &view);
    int64_t to = now == SIZE_MAX ? 0 : (int64_t)now + by;
    if (view.n)
        select_row(s, &view, (size_t)MAX(MIN(to, (int64_t)view.n - 1), INT64_C(0)));
}

/* Enter opens and closes; Esc and Backspace only close. */
static void handle_key(struct up *up, enum screen_key key)
{
    struct up_screen *s = &up->screen;
    if (key == SCREEN_KEY_UP || key == SCREEN_KEY_DOWN)
        move_selection(up, key == SCREEN_KEY_UP ? -1 : 1);
    else if (key == SCREEN_KEY_PAGE_UP || key == SCREEN_KEY_PAGE_DOWN)
        move_selection(up, key == SCREEN_KEY_PAGE_UP ? -10 : 10);
    else if (key == SCREEN_KEY_ENTER) {
        if (!s->chosen)
            move_selection(up, 0);
        s->opened = !s->opened;
        s->scroll = 0;
    } else if (key == SCREEN_KEY_CLOSE) {
        s->opened = false;
    }
}

/* A paste may hold many keys: all of them are handled before the next frame. */
static void on_keys(void *context, unsigned events)
{
    struct up *up = context;
    char bytes[64];
    (void)events;
    ssize_t n = read(up->screen.tty, bytes, sizeof(bytes));
    if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR)) {
        fd_watch_set(up->screen.keys, 0); /* the terminal is gone */
        return;
    }
    for (str input = { bytes, (size_t)MAX(n, (ssize_t)0) }; input.n;) {
        enum screen_key key = screen_key_next(&input);
        if (key == SCREEN_KEY_QUIT) {
            up_stop(up);
            return;
        }
        handle_key(up, key);
    }
    draw_screen(up);
}

/* ---- signals, log lines */

static void on_resize(void *context)
{
    draw_screen(context);
}

/* Ctrl-Z: the shell gets its screen back; we get ours back with `fg`. */
static void on_suspend(void *context)
{
    struct up *up = context;
    leave_screen(&up->screen);
    (void)kill(getpid(), SIGSTOP);
    draw_screen(up);
}

/* Only the loop's thread may change the note; the line of another thread appears at the cursor, for one frame. */
static void show_log_line(void *context, str line)
{
    struct up *up = context;
    if (!pthread_equal(pthread_self(), up->thread) || !up->screen.entered) {
        (void)!write(STDERR_FILENO, line.p, line.n);
        return;
    }
    buf_clear(&up->screen.note);
    buf_put(&up->screen.note, str_trim(line));
}

/* Called when the cluster is ready. The caches exist by then, so the first frame has all objects. */
void up_screen_start(struct up *up)
{
    struct up_screen *s = &up->screen;
    if (!up_screen_is_terminal() || !up->web)
        return;
    s->tty = open("/dev/tty", O_RDWR | O_NONBLOCK | O_CLOEXEC | O_NOCTTY);
    if (s->tty < 0 || fd_watch_new(up->loop, s->tty, on_keys, up, &s->keys) < 0)
        return; /* no terminal of ours: the URLs were printed, and that is all */
    up->thread = pthread_self();
    if (isatty(STDERR_FILENO))
        log_redirect(show_log_line, up);
    signal_watch_new(up->loop, SIGWINCH, on_resize, up, &s->resized);
    signal_watch_new(up->loop, SIGTSTP, on_suspend, up, &s->suspended);
    timer_set(up->loop, &up->redraw, loop_mono_ns(up->loop), on_redraw_timer);
}

/* The last log line is repeated, because it vanished with the screen and may be the reason for the end. */
void up_screen_stop(struct up *up)
{
    timer_stop(&up->redraw);
    leave_screen(&up->screen);
    log_redirect(NULL, NULL);
    if (up->screen.note.n)
        fprintf(stderr, STR_FMT "\n", STR_ARG(buf_str(&up->screen.note)));
    buf_clear(&up->screen.note);
}

void up_screen_done(struct up *up)
{
    struct up_screen *s = &up->screen;
    up_screen_stop(up);
    signal_watch_free(s->resized);
    signal_watch_free(s->suspended);
    fd_watch_free(s->keys);
    if (s->tty >= 0)
        close(s->tty);
    for (size_t i = 0; i < countof(s->news); i++) {
        struct up_news *n = &s->news[i];
        buf_done(&n->kind);
        buf_done(&n->ns);
        buf_done(&n->name);
        buf_done(&n->text);
    }
    buf_done(&s->note);
    buf_done(&s->key);
    free(s->modes);
}

static void store_text(struct buf *to, str text)
{
    buf_clear(to);
    buf_put(to, text);
}

/* Keeps a decision in the ring, with the time of day only. */
void up_screen_add(struct up *up, size_t feature, const struct up_decision *news)
{
    struct up_screen *s = &up->screen;
    struct up_news *n = &s->news[s->news_count % countof(s->news)];
    n->number = s->news_count++;
    n->feature = feature;
    n->warning = news->warning;
    snprintf(n->clock, sizeof(n->clock), "%.8s", str_from(news->time, strlen("2026-01-01T")).p);
    store_text(&n->kind, news->kind);
    store_text(&n->ns, news->ns);
    store_text(&n->name, news->name);
    store_text(&n->text, news->message);
}
