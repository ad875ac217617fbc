/* Doors in front of made-up decisions: see doors_world.h. */
#include "doors_world.h"

struct door_value doors_world_values[4];
bool doors_world_leads;
struct doors_options doors_world_options;
struct doors *doors_world_doors;

static size_t doors_world_value_n;

static bool doors_world_is_leader(void *context)
{
    (void)context;
    return doors_world_leads;
}

static bool doors_world_find(void *context, str ns, str variant, struct door_value *ret)
{
    (void)context;
    for (size_t i = 0; i < doors_world_value_n; i++)
        if (str_eq(doors_world_values[i].ns, ns) &&
            str_eq(doors_world_values[i].variant, variant)) {
            *ret = doors_world_values[i];
            return true;
        }
    return false;
}

static bool doors_world_find_scaled(void *context, str ns, str name, struct door_value *ret)
{
    return str_eqc(name, "so") && doors_world_find(context, ns, S("a"), ret);
}

static void doors_world_each(void *context, str ns, door_value_fn *fn, void *fn_context)
{
    (void)context;
    for (size_t i = 0; i < doors_world_value_n; i++)
        if (str_eq(doors_world_values[i].ns, ns))
            fn(fn_context, &doors_world_values[i]);
}

static int doors_world_start_feature(struct manager *m, void **ret_state, err_t *e)
{
    *ret_state = NULL;
    doors_world_options.manager = m;
    doors_world_options.source =
        (struct door_source){ doors_world_is_leader, doors_world_find, doors_world_find_scaled,
                              doors_world_each, NULL };
    return doors_new(&doors_world_options, &doors_world_doors, e);
}

static void doors_world_stop_feature(void *state)
{
    (void)state;
    doors_free(doors_world_doors);
    doors_world_doors = NULL;
}

static const struct feature doors_world_feature = { .name = "doors",
                                                    .summary = "doors",
                                                    .start = doors_world_start_feature,
                                                    .stop = doors_world_stop_feature };

void doors_world_set(size_t at, const char *variant, int64_t desired)
{
    doors_world_values[at] = (struct door_value){ .ns = S("chat"),
                                                  .variant = str_c(variant),
                                                  .target = S("dep"),
                                                  .model = S("llama"),
                                                  .accelerator = S("H100"),
                                                  .state = DOOR_FRESH,
                                                  .desired = desired,
                                                  .current = 2,
                                                  .decided_ns = INT64_C(1780000000) * NS_PER_S };
    doors_world_value_n = MAX(doors_world_value_n, at + 1);
}

void doors_world_start(struct cluster *c)
{
    cluster_start(c, 1780000000);
    doors_world_value_n = 0;
    doors_world_leads = true;
    doors_world_set(0, "a", 3);
    cluster_operator(c, &doors_world_feature, NULL);
}

void doors_world_head(void *context, const struct http_head *head)
{
    struct doors_answer *a = context;
    int64_t code;
    a->status = head->status;
    a->grpc =
        str_to_i64(http_header_get(head->headers, S("grpc-status")), &code) == 0 ? (int)code : -1;
}

void doors_world_data(void *context, str bytes)
{
    struct doors_answer *a = context;
    buf_put(&a->body, bytes);
}

void doors_world_done(void *context, const err_t *failure)
{
    struct doors_answer *a = context;
    a->done = true;
    if (failure)
        a->status = -failure->code;
}

struct http_client *doors_world_client(struct cluster *c, uint16_t port, struct tls *tls)
{
    struct http_client *client;
    auto_buf struct buf url = { 0 };
    err_t e;
    buf_printf(&url, "%s://127.0.0.1:%u", tls ? "https" : "http", port);
    cluster_check(http_client_new(c->loop,
                                  &(struct http_client_options){
                                      .url = buf_str(&url), .tls = tls, .http2_plain = !tls },
                                  &client, &e),
                  &e);
    return client;
}
