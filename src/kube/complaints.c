/* See complaints.h. An outage has few causes, so there are few kinds and a linear search is enough. */
#include "complaints.h"

#include "../base/log.h"
#include "../base/sum.h"

enum { LINES_MAX = 10 };
static const int64_t window_ns = 10 * NS_PER_S;

void complaints_init(struct complaints *c, struct loop *loop, const char *controller)
{
    *c = (struct complaints){ .loop = loop, .controller = controller };
}

/* `shop/web:`, `"web"` */
static bool names_an_object(str word, str key_name)
{
    return str_find_char(word, '/') != SIZE_MAX || str_find_char(word, '"') != SIZE_MAX ||
           (key_name.n && str_find(word, key_name) != SIZE_MAX);
}

/* Hash of the text without the words that name an object; never 0, which marks an unused kind. */
static uint64_t hash_complaint(const struct complaint *complaint)
{
    uint64_t sum = sum64(str_c(complaint->message), 0);
    str rest = str_c(complaint->error), word;
    while (str_cut(&rest, ' ', &word))
        if (!names_an_object(word, complaint->name))
            sum = sum64(word, sum);
    return sum ? sum : 1;
}

/* The kind with this hash, a free one, or the last one if all are in use. */
static struct complaint_kind *find_kind(struct complaints *c, uint64_t sum)
{
    struct complaint_kind *unused = NULL;
    for (size_t i = 0; i < countof(c->kinds); i++) {
        if (c->kinds[i].sum == sum)
            return &c->kinds[i];
        if (!c->kinds[i].sum && !unused)
            unused = &c->kinds[i];
    }
    if (!unused)
        return &c->kinds[countof(c->kinds) - 1];
    unused->sum = sum;
    return unused;
}

static void log_suppressed(struct complaints *c, struct complaint_kind *kind)
{
    if (kind->suppressed)
        log_warn("suppressed similar failures", KV_C("controller", c->controller),
                 KV("error", buf_str(&kind->last)), KV_INT("count", kind->suppressed));
    kind->suppressed = 0;
}

/* Logs the summaries and frees the kinds that had no failure in this window. */
static void on_window_end(struct timer *timer)
{
    struct complaints *c = container_of(timer, struct complaints, timer);
    bool is_active = false;
    for (size_t i = 0; i < countof(c->kinds); i++) {
        struct complaint_kind *kind = &c->kinds[i];
        log_suppressed(c, kind);
        if (!kind->seen) {
            buf_done(&kind->last);
            *kind = (struct complaint_kind){ 0 };
        }
        is_active = is_active || kind->seen;
        kind->seen = false;
    }
    if (is_active)
        timer_set(c->loop, &c->timer, loop_mono_ns(c->loop) + window_ns, on_window_end);
}

static void log_complaint(const struct complaints *c, const struct complaint *complaint)
{
    struct log_kv retry = KV_INT("retry_ms", complaint->retry_ms);
    log_warn(complaint->message, KV_C("controller", c->controller), KV("namespace", complaint->ns),
             KV("name", complaint->name), KV_C("error", complaint->error),
             complaint->retry_ms >= 0 ? retry : (struct log_kv){ 0 });
}

void complaints_log(struct complaints *c, const struct complaint *complaint)
{
    struct complaint_kind *kind = find_kind(c, hash_complaint(complaint));
    kind->seen = true;
    if (!timer_is_set(&c->timer))
        timer_set(c->loop, &c->timer, loop_mono_ns(c->loop) + window_ns, on_window_end);
    if (kind->logged < LINES_MAX) {
        kind->logged++;
        log_complaint(c, complaint);
        return;
    }
    kind->suppressed++;
    buf_clear(&kind->last);
    buf_put(&kind->last, str_c(complaint->error));
}

void complaints_done(struct complaints *c)
{
    timer_stop(&c->timer);
    for (size_t i = 0; i < countof(c->kinds); i++) {
        log_suppressed(c, &c->kinds[i]);
        buf_done(&c->kinds[i].last);
    }
}
