/* Families of the doors through which decisions leave: keda-externalscaler-wire. */
#include "golden.h"

#include "doors/wire_core.h"

static str from_hex(struct golden *g, str hex)
{
    char *bytes = arena_alloc(g->arena, hex.n / 2 + 1);
    for (size_t i = 0; i + 1 < hex.n; i += 2) {
        char pair[3] = { hex.p[i], hex.p[i + 1], '\0' };
        bytes[i / 2] = (char)strtol(pair, NULL, 16);
    }
    return (str){ bytes, hex.n / 2 };
}

static str to_hex(struct golden *g, str bytes)
{
    auto_buf struct buf hex = { 0 };
    for (size_t i = 0; i < bytes.n; i++)
        buf_printf(&hex, "%02x", (unsigned char)bytes.p[i]);
    return arena_str(g->arena, buf_str(&hex));
}

/* ---- encode */

static void put_list(struct golden *g, struct buf *out, const struct json *list, const char *value,
                     const char *real)
{
    struct wire_metric *m = arena_array(g->arena, json_len(list), sizeof(*m));
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *x = json_item(list, i);
        m[i] = (struct wire_metric){ json_text(json_get(x, "metricName")),
                                     json_int(json_get(x, value), 0),
                                     golden_real(json_get(x, real), 0) };
    }
    wire_put_metrics(out, m, json_len(list));
}

static void run_encode(struct golden *g, const struct json *in, const struct json *want)
{
    str name = json_text(json_get(in, "message"));
    const struct json *fields = json_get(in, "fields");
    auto_buf struct buf out = { 0 }, frame = { 0 };
    if (str_eqc(name, "IsActiveResponse"))
        wire_put_active(&out, json_bool(json_get(fields, "result"), false));
    else if (str_eqc(name, "GetMetricSpecResponse"))
        put_list(g, &out, json_get(fields, "metricSpecs"), "targetSize", "targetSizeFloat");
    else if (str_eqc(name, "GetMetricsResponse"))
        put_list(g, &out, json_get(fields, "metricValues"), "metricValue", "metricValueFloat");
    else
        golden_ok(g, str_eqc(name, "Empty"), "unknown message " STR_FMT, STR_ARG(name));
    wire_put_frame(&frame, buf_str(&out));
    golden_eq_str(g, "hex", to_hex(g, buf_str(&out)), json_get(want, "hex"));
    golden_eq_str(g, "frame", to_hex(g, buf_str(&frame)), json_get(want, "frame"));
    str message;
    golden_ok(g, wire_get_frame(buf_str(&frame), &message, NULL) == 0 && message.n == out.n,
              "the frame cannot be read back");
}

/* ---- decode */

static void check_ref(struct golden *g, const struct wire_ref *ref, const struct json *want)
{
    struct json *metadata = json_new_obj(g->arena);
    for (size_t i = 0; i < ref->metadata_n; i++)
        json_set(g->arena, metadata, ref->metadata[i].key,
                 json_new_str(g->arena, ref->metadata[i].value));
    golden_eq_str(g, "name", ref->name, json_get(want, "name"));
    golden_eq_str(g, "namespace", ref->ns, json_get(want, "namespace"));
    golden_eq_json(g, "scalerMetadata", metadata, json_get(want, "scalerMetadata"));
}

static void run_decode(struct golden *g, const struct json *in, const struct json *want)
{
    str message = from_hex(g, json_text(json_get(in, "hex")));
    if (str_eqc(json_text(json_get(in, "message")), "GetMetricsRequest")) {
        struct wire_metrics_request request;
        int r = wire_get_metrics_request(g->arena, message, &request, NULL);
        if (golden_eq_bool(g, "ok", r == 0, json_get(want, "ok")) && r == 0) {
            golden_eq_str(g, "metricName", request.metric, json_get(want, "metricName"));
            const struct json *ref = json_get(want, "ref");
            if (json_is(ref, JSON_OBJ))
                check_ref(g, &request.ref, ref);
        }
        return;
    }
    struct wire_ref ref;
    int r = wire_get_ref(g->arena, message, &ref, NULL);
    if (golden_eq_bool(g, "ok", r == 0, json_get(want, "ok")) && r == 0)
        check_ref(g, &ref, want);
}

static void run_wire(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "input"), *want = json_get(c, "want");
    if (str_starts(json_text(json_get(c, "name")), S("encode/")))
        run_encode(g, in, want);
    else
        run_decode(g, in, want);
}

const struct golden_family golden_doors[] = { { "keda-externalscaler-wire", run_wire }, { 0 } };
