#include "tap.h"

#include "prom/result.h"

static struct arena arena;

static struct prom_result result(const char *body)
{
    struct prom_result r = { 0 };
    err_t e;
    OK_CALL(prom_result_read(&arena, str_c(body), &r, &e), &e);
    return r;
}

static void reads_a_vector(void)
{
    struct prom_result r = result(
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
        "{\"metric\":{\"__name__\":\"up\",\"job\":\"pro\\\"m\"},\"value\":[1435781451.781,\"1\"]},"
        "{\"metric\":{},\"value\":[1435781451,\"NaN\"]},"
        "{\"metric\":{\"pod\":\"h\"},\"histogram\":[1,{\"count\":\"1\"}]},"
        "{\"metric\":{\"pod\":\"x\"},\"value\":[-0.001,\"-Inf\"]}]},"
        "\"warnings\":[\"careful\"]}");
    EQ_INT(r.n, 3);
    EQ_STR(prom_series_label(&r.series[0], S("job")), S("pro\"m"));
    EQ_STR(prom_series_label(&r.series[0], S("none")), S(""));
    EQ_INT(r.series[0].samples[0].time_ms, 1435781451781);
    EQ_REAL(r.series[0].samples[0].value, 1);
    OK(isnan(r.series[1].samples[0].value) && r.series[1].label_n == 0);
    EQ_INT(r.series[2].samples[0].time_ms, -1);
    OK(isinf(r.series[2].samples[0].value));
    EQ_INT(r.warning_n, 1);
    EQ_STR(r.warnings[0], S("careful"));
}

static void reads_the_other_kinds(void)
{
    struct prom_result r = result(
        "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["
        "{\"metric\":{\"a\":\"b\"},\"values\":[[1,\"2\"],[2.5,\"3\"]]},{\"metric\":{},\"values\":[]}]}}");
    EQ_INT(r.n, 1);
    EQ_INT(r.series[0].sample_n, 2);
    EQ_INT(r.series[0].samples[1].time_ms, 2500);
    EQ_REAL(r.series[0].samples[1].value, 3);
    r = result(
        "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[7,\"1.5\"]}}");
    EQ_INT(r.n, 1);
    EQ_REAL(r.series[0].samples[0].value, 1.5);
    r = result("{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[]}}");
    EQ_INT(r.n, 0);
}

static void reports_what_is_wrong(void)
{
    static const struct {
        const char *body;
        int want;
        const char *words;
    } t[] = {
        { "", -EPROTO, "is incomplete" },
        { "{\"status\":\"success\",\"data\":{\"result\":[{\"metric\":{", -EPROTO, "is incomplete" },
        { "{\"status\" \"success\"}", -EINVAL, "invalid response from Prometheus" },
        { "{\"data\":{\"result\":[{\"metric\" 1}]}}", -EINVAL,
          "invalid response from Prometheus, series 0" },
        { "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[1]}}", -EPROTO,
          "not an object" },
        { "<html>", -EPROTO, "not a Prometheus query result" },
        { "{}", -EPROTO, "not a Prometheus query result" },
        { "[]", -EPROTO, "not a Prometheus query result" },
        { "{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"parse error: x\"}",
          -EREMOTEIO, "(bad_data): parse error: x" },
        { "{\"status\":\"success\",\"data\":{\"resultType\":\"string\",\"result\":[1,\"x\"]}}",
          -EPROTO, "\"string\"" },
        { "{\"status\":\"success\",\"data\":{\"resultType\":\"scalar\",\"result\":[1]}}", -EPROTO,
          "scalar" },
        { "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{}}]}}",
          -EPROTO, "series 0" },
        { "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"a\":1},"
          "\"value\":[1,\"1\"]}]}}",
          -EPROTO, "series 0" },
        { "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{},"
          "\"value\":[1e300,\"1\"]}]}}",
          -EPROTO, "series 0" },
        { "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":[{\"metric\":{},"
          "\"value\":[1,\"x\"]}]}}",
          -EPROTO, "series 0" },
        { "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},"
          "\"values\":[[1,2]]}]}}",
          -EPROTO, "series 0" },
    };
    for (size_t i = 0; i < countof(t); i++) {
        struct prom_result r = { .n = 99 };
        err_t e = { 0 };
        if (!EQ_INT(prom_result_read(&arena, str_c(t[i].body), &r, &e), t[i].want) ||
            !OK(strstr(e.text, t[i].words)))
            printf("# %s: %s\n", t[i].body, e.text);
        EQ_INT(r.n, 99);
    }
}

/* However the bytes are cut, the result is the same. */
static void reads_in_pieces(void)
{
    static const char body[] =
        "{\"status\":\"success\",\"data\":{\"resultType\":\"vector\",\"result\":["
        "{\"metric\":{\"a\":\"x\\\"]}\"},\"value\":[1,\"2\"]},"
        "{\"metric\":{\"a\":\"y\"},\"value\":[3,\"4\"]}]}}";
    for (size_t step = 1; step < sizeof(body); step++) {
        struct prom_reader reader;
        struct prom_result r = { 0 };
        err_t e;
        prom_reader_init(&reader, &arena);
        for (str rest = ((str){ body, sizeof(body) - 1 }); rest.n; rest = str_from(rest, step))
            OK_CALL(prom_reader_feed(&reader, str_upto(rest, step), &e), &e);
        OK_CALL(prom_reader_end(&reader, &r, &e), &e);
        prom_reader_done(&reader);
        OK(r.n == 2 && r.series[1].samples[0].value == 4);
        EQ_STR(r.n ? prom_series_label(&r.series[0], S("a")) : S(""), S("x\"]}"));
    }
}

int main(void)
{
    int status = tap_run((struct tap_case[]){ TAP(reads_a_vector),
                                              TAP(reads_the_other_kinds),
                                              TAP(reports_what_is_wrong),
                                              TAP(reads_in_pieces),
                                              { 0 } });
    arena_done(&arena);
    return status;
}
