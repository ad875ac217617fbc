/* Trimming: what is kept, what is rejected, and that skipping is never off by one. */
#include "base/random.h"
#include "tap.h"
#include "json/trim.h"

struct thing {
    struct record meta;
    str node, raw;
    int64_t cpu_milli;
    bool ready;
};

static const struct field thing_fields[] = {
    { "spec.node", F_STR, offsetof(struct thing, node) },
    { "spec.raw", F_RAW, offsetof(struct thing, raw) },
    { "spec.parts[].limits.cpu", F_MILLI, offsetof(struct thing, cpu_milli) },
    { "status.conditions[type=Ready].met", F_BOOL, offsetof(struct thing, ready) },
};

static struct arena arena;
static struct fieldtree *tree;

static void setup(void)
{
    err_t e;
    OK_CALL(fieldtree_compile(&arena, FIELDS(struct thing, thing_fields), true, &tree, &e), &e);
}

static void keeps_what_is_declared(void)
{
    static const struct {
        const char *text, *want; /* NULL: refused */
    } t[] = {
        { "{}", "{}" },
        { " { } \n", "{}" },
        { "{\"a\":1}", "{}" },
        { "{\"a\":1,\"metadata\":{\"x\":{\"name\":\"no\"},\"name\":\"n\",\"y\":[]},\"b\":\"}\"}",
          "{\"metadata\":{\"name\":\"n\"}}" },
        { "{ \"metadata\" : { \"name\" : \"n\" , \"x\" : null } }",
          "{\"metadata\":{\"name\":\"n\"}}" },
        { "{\"spec\":{\"raw\":{\"any\": [1, \"]\"]},\"z\":0,\"node\":\"a\\\"b\"}}",
          "{\"spec\":{\"raw\":{\"any\": [1, \"]\"]},\"node\":\"a\\\"b\"}}" },
        { "{\"spec\":{\"parts\":[{\"env\":[1],\"limits\":{\"cpu\":\"1\",\"gpu\":2}},{},7,null]}}",
          "{\"spec\":{\"parts\":[{\"limits\":{\"cpu\":\"1\"}},{},7,null]}}" },
        { "{\"spec\":{\"parts\":[]}}", "{\"spec\":{\"parts\":[]}}" },
        { "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"met\":true}]}}",
          "{\"status\":{\"conditions\":[{\"type\":\"Ready\",\"met\":true}]}}" },
        { "{\"metadata\":\"odd\",\"spec\":[1]}", "{\"metadata\":\"odd\",\"spec\":[1]}" },
        { "", NULL },
        { "{", NULL },
        { "{}x", NULL },
        { "{\"a\"}", NULL },
        { "{\"a\":}", NULL },
        { "{\"a\":1,}", NULL },
        { "{\"a\":\"1}", NULL },
        { "{\"a\":{\"b\":1}", NULL },
        { "{\"spec\":{\"parts\":[{}{}]}}", NULL },
        { "{\"\\u0061\":1}", NULL }, /* a name that only the parser can read */
    };
    for (size_t i = 0; i < countof(t); i++) {
        auto_buf struct buf out = { 0 };
        bool whole = trim_value(&tree->keep, str_c(t[i].text), &out);
        EQ_INT(whole, t[i].want != NULL);
        if (whole && t[i].want)
            EQ_STR(buf_str(&out), str_c(t[i].want));
    }
}

static void trims_events(void)
{
    auto_buf struct buf out = { 0 };
    OK(trim_watch_line(&tree->keep,
                       S("{\"type\":\"MODIFIED\",\"object\":{\"kind\":\"Thing\",\"metadata\":{"
                         "\"name\":\"n\"}}}"),
                       &out));
    EQ_STR(buf_str(&out), S("{\"type\":\"MODIFIED\",\"object\":{\"metadata\":{\"name\":\"n\"}}}"));
    OK(!trim_watch_line(&tree->keep, S("{\"type\":\"BOOKMARK\",\"object\":{}}"), &out));
    OK(!trim_watch_line(&tree->keep, S("{\"object\":{},\"type\":\"ADDED\"}"), &out));
    OK(!trim_watch_line(&tree->keep, S("{\"type\":\"ADDED\",\"object\":{}"), &out));
    OK(!trim_watch_line(&tree->keep, S("{\"type\":\"ADDED\",\"object\":{}},"), &out));
}

static void put_text(struct buf *out, struct random *r)
{
    static const char *const parts[] = { "\\\"", "\\\\", "{", "}", "[", "]", ",", ":", "a", "\\n" };
    buf_putc(out, '"');
    for (int64_t n = random_below(r, 12); n > 0; n--)
        buf_put(out, str_c(parts[random_below(r, countof(parts))]));
    buf_putc(out, '"');
}

static void put_value(struct buf *out, struct random *r, int depth)
{
    int64_t kind = random_below(r, depth ? 5 : 2), n = random_below(r, 5);
    if (kind < 2) {
        kind ? put_text(out, r) : buf_put(out, S("-1.5e3"));
        return;
    }
    bool object = kind > 2;
    buf_putc(out, object ? '{' : '[');
    for (int64_t i = 0; i < n; i++) {
        if (i)
            buf_putc(out, ',');
        if (object) {
            put_text(out, r);
            buf_putc(out, ':');
        }
        put_value(out, r, depth - 1);
    }
    buf_putc(out, object ? '}' : ']');
}

/* Declared members are kept whatever surrounds them, and truncated text is always rejected. */
static void is_never_off_by_one(void)
{
    struct random r;
    random_init(&r, 5, 1);
    for (int i = 0; i < 3000; i++) {
        auto_buf struct buf text = { 0 }, out = { 0 };
        buf_put(&text, S("{\"x\":"));
        put_value(&text, &r, 6);
        buf_put(&text, S(",\"metadata\":{\"y\":"));
        put_value(&text, &r, 6);
        buf_put(&text, S(",\"name\":\"n\"},\"z\":"));
        put_value(&text, &r, 4);
        buf_putc(&text, '}');
        OK(trim_value(&tree->keep, buf_str(&text), &out));
        EQ_STR(buf_str(&out), S("{\"metadata\":{\"name\":\"n\"}}"));
        size_t cut = random_below(&r, (uint32_t)text.n);
        auto_free char *part = mem_dup(text.p, cut); /* of that size, for the sanitizer */
        OK(!trim_value(&tree->keep, (str){ part, cut }, &out));
    }
}

int main(void)
{
    setup();
    int result = tap_run((struct tap_case[]){
        TAP(keeps_what_is_declared), TAP(trims_events), TAP(is_never_off_by_one), { 0 } });
    arena_done(&arena);
    return result;
}
