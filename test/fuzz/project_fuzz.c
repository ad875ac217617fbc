/* Arbitrary bytes in arbitrary pieces through the framer and the projection: no leak, no crash, and the
 * same records wherever the stream is split. */
#include "fuzz.h"
#include "json/frame.h"
#include "json/project.h"

struct thing {
    struct record meta;
    const struct labels *labels;
    str node, raw;
    int64_t cpu, count, when;
    LIST(struct part {
        str name;
        int64_t size;
    })
    parts;
};

static const struct field part_fields[] = {
    { "name", F_WORD, offsetof(struct part, name) },
    { "size", F_MILLI, offsetof(struct part, size) },
};
static const struct fields part_shape = { sizeof(struct part), part_fields, countof(part_fields) };
static const struct field thing_fields[] = {
    { "metadata.labels", F_MAP, offsetof(struct thing, labels) },
    { "spec.node", F_WORD, offsetof(struct thing, node) },
    { "spec", F_RAW, offsetof(struct thing, raw) },
    { "spec.parts[].size", F_MILLI, offsetof(struct thing, cpu) },
    { "spec.parts", F_LIST, offsetof(struct thing, parts), .of = &part_shape },
    { "spec.parts[name=a].count", F_INT, offsetof(struct thing, count) },
    { "spec.when", F_TIME, offsetof(struct thing, when) },
};

struct run {
    struct projection *projection;
    bool lines;
    uint64_t sum; /* of what was read, in order */
};

static void add(struct run *run, const struct record *r)
{
    const struct thing *t = (const struct thing *)r;
    run->sum = run->sum * 31 + r->node.hash + (uint64_t)t->cpu + t->raw.n + t->parts.n;
    struct record *kept = record_ref(r);
    if (!record_same(kept, r))
        abort();
    record_unref(kept);
    record_unref(r);
}

static int on_document(void *context, str text, err_t *e)
{
    struct run *run = context;
    struct record *r;
    struct watch_line line;
    int result;
    if (run->lines) {
        if ((result = project_watch_line(run->projection, text, &line, e)) < 0)
            return result;
        run->sum += (uint64_t)line.type;
        if (line.record)
            add(run, line.record);
        return 0;
    }
    if ((result = project(run->projection, text, &r, e)) == 0)
        add(run, r);
    return result;
}

static uint64_t feed(struct projection *p, bool lines, str text, size_t step)
{
    struct run run = { p, lines, 0 };
    struct frame f;
    err_t e = { 0 };
    str envelope;
    frame_init(&f, lines ? FRAME_LINES : FRAME_LIST, on_document, &run);
    int r = 0;
    for (size_t at = 0; at < text.n && r == 0; at += step)
        r = frame_feed(&f, str_upto(str_from(text, at), step), &e);
    if (r == 0)
        r = frame_end(&f, &envelope, &e);
    if (r < 0 && !e.text[0])
        abort();
    frame_done(&f);
    return run.sum * 2 + (r < 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (!size)
        return 0;
    str text = { (const char *)data + 1, size - 1 };
    bool lines = data[0] & 1;
    struct projector *j = projector_new();
    struct projection *p;
    if (projection_new(j, FIELDS(struct thing, thing_fields), 0, &p, NULL) < 0)
        abort();
    if (feed(p, lines, text, SIZE_MAX / 2) != feed(p, lines, text, data[0] / 2 + 1u))
        abort();
    projection_free(p);
    projector_free(j);
    return 0;
}
