/* Any bytes as a gRPC frame and as the messages of KEDA's external scaler: read or refused, with
 * every text inside the message. */
#include "fuzz.h"

#include "doors/wire_core.h"

static void check_inside(str text, str whole)
{
    if (text.n && (text.p < whole.p || text.p + text.n > whole.p + whole.n))
        abort();
}

static void check_ref(const struct wire_ref *ref, str whole)
{
    check_inside(ref->name, whole);
    check_inside(ref->ns, whole);
    if (ref->metadata_n > WIRE_PAIRS_MAX)
        abort();
    for (size_t i = 0; i < ref->metadata_n; i++) {
        check_inside(ref->metadata[i].key, whole);
        check_inside(ref->metadata[i].value, whole);
        if (!str_eq(wire_metadata(ref, "variant"), S("")) && i == 0)
            check_inside(wire_metadata(ref, "variant"), whole);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    str body = { (const char *)data, size }, message = body;
    struct wire_ref ref;
    struct wire_metrics_request request;
    err_t e = { 0 };
    if (wire_get_frame(body, &message, &e) == 0) {
        auto_buf struct buf again = { 0 };
        wire_put_frame(&again, message);
        if (!str_eq(buf_str(&again), body))
            abort();
    } else if (!e.text[0])
        abort();
    if (wire_get_ref(&a, message, &ref, NULL) == 0)
        check_ref(&ref, message);
    if (wire_get_metrics_request(&a, message, &request, NULL) == 0) {
        check_ref(&request.ref, message);
        check_inside(request.metric, message);
    }
    return 0;
}
