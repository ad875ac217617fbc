/* The external scaler as KEDA calls it. */
#include "doors/wire_core.h"
#include "doors_world.h"

struct call {
    struct cluster c;
    struct http_client *client;
};

static void start_scaler(struct call *w)
{
    doors_world_options = (struct doors_options){ .scaler_listen = "127.0.0.1:0" };
    doors_world_start(&w->c);
    w->client = doors_world_client(&w->c, doors_scaler_port(doors_world_doors), NULL);
}

static void stop(struct call *w)
{
    http_client_free(w->client);
    cluster_stop(&w->c);
}

/* ScaledObjectRef of chat/so, with the metadata variant if given. */
static void put_ref(struct buf *out, const char *variant)
{
    buf_put(out, S("\x0a\x02so\x12\x04"
                   "chat"));
    if (variant) {
        size_t n = strlen(variant);
        buf_put(out, S("\x1a"));
        buf_putc(out, (char)(11 + n));
        buf_put(out, S("\x0a\x07variant\x12"));
        buf_putc(out, (char)n);
        buf_put(out, str_c(variant));
    }
}

static void put_metrics_request(struct buf *out, const char *variant)
{
    auto_buf struct buf ref = { 0 };
    put_ref(&ref, variant);
    buf_putc(out, 0x0a);
    buf_putc(out, (char)ref.n);
    buf_put(out, buf_str(&ref));
    buf_put(out, S("\x12\x01x"));
}

static struct http_call *send_call(struct call *w, const char *method, str message,
                                   struct doors_answer *a)
{
    auto_buf struct buf frame = { 0 }, path = { 0 };
    buf_printf(&path, "/externalscaler.ExternalScaler/%s", method);
    wire_put_frame(&frame, message);
    *a = (struct doors_answer){ .grpc = -1 };
    return http_client_send(w->client, &(struct http_request){
                                           .method = S("POST"),
                                           .target = buf_str(&path),
                                           .headers = HTTP_HEADERS({ S("content-type"),
                                                                     S("application/grpc") },
                                                                   { S("te"), S("trailers") }),
                                           .body = buf_str(&frame),
                                           .on_head = doors_world_head,
                                           .on_data = doors_world_data,
                                           .on_done = doors_world_done,
                                           .context = a });
}

static void call_method(struct call *w, const char *method, str message, struct doors_answer *a)
{
    send_call(w, method, message, a);
    while (!a->done)
        loop_turn(w->c.loop);
}

/* The single answer of a call: its desired replicas, or -1 - the gRPC status. */
static int64_t get_metrics(struct call *w, const char *variant)
{
    auto_buf struct buf request = { 0 };
    struct doors_answer a;
    put_metrics_request(&request, variant);
    call_method(w, "GetMetrics", buf_str(&request), &a);
    auto_buf struct buf want = { 0 }, body = a.body;
    if (a.grpc > 0)
        return -1 - a.grpc;
    for (int64_t i = 0; i < 100; i++) {
        auto_buf struct buf message = { 0 };
        buf_clear(&want);
        wire_put_metrics(&message, &(struct wire_metric){ S("x"), i, (double)i }, 1);
        wire_put_frame(&want, buf_str(&message));
        if (str_eq(buf_str(&want), buf_str(&body)))
            return i;
    }
    return -100;
}

static void decisions_are_served(void)
{
    struct call w;
    start_scaler(&w);
    EQ_INT(get_metrics(&w, NULL), 3);
    EQ_INT(get_metrics(&w, "a"), 3);
    doors_world_values[0].desired = 0;
    EQ_INT(get_metrics(&w, "a"), 0);
    EQ_INT(get_metrics(&w, "other"), -1 - 5);
    stop(&w);
}

static void what_is_stale_is_an_error_and_the_spec_is_not(void)
{
    struct call w;
    struct doors_answer a;
    auto_buf struct buf ref = { 0 };
    start_scaler(&w);
    doors_world_values[0].state = DOOR_STALE;
    put_ref(&ref, NULL);
    EQ_INT(get_metrics(&w, NULL), -1 - 14);
    call_method(&w, "IsActive", buf_str(&ref), &a);
    EQ_INT(a.grpc, 14);
    buf_done(&a.body);
    call_method(&w, "GetMetricSpec", buf_str(&ref), &a);
    EQ_INT(a.status, 200);
    EQ_INT(a.grpc, -1);
    OK(str_find(buf_str(&a.body), S("flyball-desired-replicas")) != SIZE_MAX);
    buf_done(&a.body);
    doors_world_values[0].state = DOOR_FRESH;
    doors_world_leads = false; /* a standby has no decisions */
    EQ_INT(get_metrics(&w, NULL), -1 - 14);
    stop(&w);
}

static void wrong_calls_are_refused(void)
{
    struct call w;
    struct doors_answer a;
    start_scaler(&w);
    call_method(&w, "StreamMetricSpec", S(""), &a);
    EQ_INT(a.grpc, 12);
    buf_done(&a.body);
    call_method(&w, "GetMetrics", S("\x0a\x7f"), &a);
    EQ_INT(a.grpc, 3);
    buf_done(&a.body);
    a = (struct doors_answer){ .grpc = -1 };
    http_client_send(w.client, &(struct http_request){ .method = S("GET"),
                                                       .target = S("/"),
                                                       .on_head = doors_world_head,
                                                       .on_done = doors_world_done,
                                                       .context = &a });
    while (!a.done)
        loop_turn(w.c.loop);
    EQ_INT(a.status, 405);
    stop(&w);
}

static size_t count_frames(const struct doors_answer *a, bool active)
{
    size_t n = 0;
    for (size_t i = 0; i + WIRE_FRAME_HEADER <= a->body.n;) {
        size_t length = (unsigned char)a->body.p[i + 4];
        n += (length > 0) == active;
        i += WIRE_FRAME_HEADER + length;
    }
    return n;
}

/* At once, on change, and again while the workload is at zero. */
static void streams_report_activity(void)
{
    struct call w;
    struct doors_answer a;
    auto_buf struct buf ref = { 0 };
    start_scaler(&w);
    doors_world_values[0].desired = 0;
    doors_world_values[0].current = 0;
    put_ref(&ref, NULL);
    struct http_call *call = send_call(&w, "StreamIsActive", buf_str(&ref), &a);
    cluster_until(&w.c, cluster_now(&w.c) + 25);
    EQ_INT(count_frames(&a, false), 1);
    EQ_INT(count_frames(&a, true), 0);
    doors_world_values[0].waiting = true;
    doors_notify(doors_world_doors);
    doors_notify(doors_world_doors);
    cluster_until(&w.c, cluster_now(&w.c) + 1);
    EQ_INT(count_frames(&a, true), 1);
    cluster_until(&w.c, cluster_now(&w.c) + 20);
    EQ_INT(count_frames(&a, true), 3);
    doors_world_values[0].current = 1;
    cluster_until(&w.c, cluster_now(&w.c) + 30);
    EQ_INT(count_frames(&a, true), 3);
    OK(!a.done);
    doors_world_values[0].state = DOOR_STALE; /* ends, and KEDA tries again */
    doors_notify(doors_world_doors);
    cluster_until(&w.c, cluster_now(&w.c) + 1);
    OK(a.done);
    EQ_INT(a.status, 200);
    buf_done(&a.body);
    (void)call;
    stop(&w);
}

static void a_client_that_leaves_is_forgotten(void)
{
    struct call w;
    struct doors_answer a;
    auto_buf struct buf ref = { 0 };
    start_scaler(&w);
    put_ref(&ref, NULL);
    struct http_call *call = send_call(&w, "StreamIsActive", buf_str(&ref), &a);
    cluster_until(&w.c, cluster_now(&w.c) + 1);
    http_call_cancel(call);
    cluster_until(&w.c, cluster_now(&w.c) + 30);
    doors_notify(doors_world_doors);
    EQ_INT(get_metrics(&w, NULL), 3);
    buf_done(&a.body);
    stop(&w);
}

static void tokens_are_checked(void)
{
    struct call w;
    struct doors_answer a = { .grpc = -1 };
    char path[] = "/tmp/flyball-token-XXXXXX";
    int fd = mkstemp(path);
    OK(fd >= 0 && write(fd, "secret\n", 7) == 7);
    close(fd);
    doors_world_options =
        (struct doors_options){ .scaler_listen = "127.0.0.1:0", .scaler_token_file = path };
    doors_world_start(&w.c);
    w.client = doors_world_client(&w.c, doors_scaler_port(doors_world_doors), NULL);
    EQ_INT(get_metrics(&w, NULL), -1 - 16);
    auto_buf struct buf frame = { 0 }, ref = { 0 };
    put_ref(&ref, NULL);
    wire_put_frame(&frame, buf_str(&ref));
    http_client_send(w.client,
                     &(struct http_request){
                         .method = S("POST"),
                         .target = S("/externalscaler.ExternalScaler/IsActive"),
                         .headers = HTTP_HEADERS({ S("content-type"), S("application/grpc+proto") },
                                                 { S("authorization"), S("Bearer secret") }),
                         .body = buf_str(&frame),
                         .on_head = doors_world_head,
                         .on_data = doors_world_data,
                         .on_done = doors_world_done,
                         .context = &a });
    while (!a.done)
        loop_turn(w.c.loop);
    EQ_INT(a.grpc, -1);
    EQ_INT(count_frames(&a, true), 1);
    buf_done(&a.body);
    unlink(path);
    stop(&w);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(decisions_are_served),
                                        TAP(what_is_stale_is_an_error_and_the_spec_is_not),
                                        TAP(wrong_calls_are_refused),
                                        TAP(streams_report_activity),
                                        TAP(a_client_that_leaves_is_forgotten),
                                        TAP(tokens_are_checked),
                                        { 0 } });
}
