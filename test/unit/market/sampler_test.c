#include "tap.h"

#include "cgroup_world.h"
#include "market/sampler.h"

/* Two pods; the test decides when limits come into force. */
struct scene {
    struct loop *loop;
    struct cgroup_world world;
    struct cgroup_tree tree;
    struct sampler *sampler;
    struct sampled pods[2];
    size_t pod_n, asked_n, rounds;
    int64_t capacity;
    bool at_once; /* requested limits come into force at once */
    struct round_report report;
};

static void no_news(void *context)
{
    (void)context;
}

static int locate(void *context, struct sampled *pod, struct buf *ret_path, err_t *e)
{
    struct scene *s = context;
    (void)e;
    buf_printf(ret_path, "pod%d", (int)(pod - s->pods));
    return 0;
}

static int64_t capacity(void *context)
{
    return ((struct scene *)context)->capacity;
}

static void enforce(struct scene *s, struct sampled *pod, int64_t milli)
{
    sampler_set_limit(pod, milli, milli);
    s->world.groups[pod - s->pods].cfs.limit_milli = milli;
}

static void resize(void *context, struct sampled *pod, int64_t limit_milli)
{
    struct scene *s = context;
    s->asked_n++;
    if (s->at_once)
        enforce(s, pod, limit_milli);
}

static void rounded(void *context, const struct round_report *report)
{
    struct scene *s = context;
    s->rounds++;
    s->report = *report;
}

static void add(struct scene *s, double demand_milli, int64_t limit_milli)
{
    char path[16];
    size_t i = s->pod_n++;
    snprintf(path, sizeof(path), "pod%zu", i);
    cgroup_world_add(&s->world, path, demand_milli, limit_milli);
    sampler_add(s->sampler, &s->pods[i], i);
    sampler_set_limit(&s->pods[i], limit_milli, limit_milli);
}

static void begin(struct scene *s, int64_t capacity_milli)
{
    *s = (struct scene){ .capacity = capacity_milli };
    err_t e;
    OK_CALL(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL, .start_wall_ns = 1 }, &s->loop,
                     &e),
            &e);
    cgroup_world_init(&s->world, s->loop);
    OK_CALL(cgroup_tree_init(&s->tree, s->world.files.root, S(""), &e), &e);
    s->sampler = sampler_new(&(struct sampler_options){ .loop = s->loop,
                                                        .tree = &s->tree,
                                                        .sync = no_news,
                                                        .locate = locate,
                                                        .capacity = capacity,
                                                        .resize = resize,
                                                        .on_round = rounded,
                                                        .context = s });
    struct market_config config = market_config_default(MARKET_DEFAULTS);
    sampler_configure(s->sampler, &config);
}

static void end(struct scene *s)
{
    sampler_free(s->sampler);
    cgroup_tree_done(&s->tree);
    cgroup_world_done(&s->world);
    loop_free(s->loop);
}

static void windows_do_not_disturb_each_other(void)
{
    struct scene s;
    begin(&s, 4000);
    add(&s, 400, 500);
    cgroup_world_run(&s.world, 31);
    EQ_INT(s.rounds, 2);
    EQ_INT(s.pods[0].market.agent.usage_milli,
           400); /* of 15 s, though fast rounds ran in between */
    OK(fabsf(s.pods[0].usage_milli - 400) < 1);
    EQ_INT(s.asked_n, 0);
    EQ_INT(s.report.pods, 1);
    EQ_INT(s.report.capacity_milli, 4000);
    end(&s);
}

static void put_pressure(struct scene *s, int64_t usec)
{
    char text[200];
    snprintf(text, sizeof(text),
             "some avg10=0.00 avg60=0.00 avg300=0.00 total=%lld\n"
             "full avg10=0.00 avg60=0.00 avg300=0.00 total=0\n",
             (long long)usec);
    cgroup_files_put(&s->world.files, "pod0/cpu.pressure", text);
}

static void waiting_for_cpu_is_reported_where_the_kernel_measures_it(void)
{
    struct scene s;
    begin(&s, 4000);
    add(&s, 400, 500);
    add(&s, 400, 500); /* without the file */
    put_pressure(&s, 1000);
    cgroup_world_run(&s.world, 16);
    EQ_REAL((double)s.pods[0].pressure, -1); /* of one reading */
    put_pressure(&s, 1000 + 3000000);
    cgroup_world_run(&s.world, 15);
    EQ_INT(s.rounds, 2);
    OK(fabsf(s.pods[0].pressure - 0.2F) < 1e-6F); /* 3 s of 15 */
    EQ_REAL((double)s.pods[1].pressure, -1);
    put_pressure(&s, 0); /* another container */
    cgroup_world_run(&s.world, 15);
    EQ_REAL((double)s.pods[0].pressure, -1);
    end(&s);
}

static void room_is_kept_for_what_was_asked(void)
{
    struct scene s;
    begin(&s, 1000);
    add(&s, 2000,
        300); /* both need more than the capacity; requested limits never come into force */
    add(&s, 2000, 300);
    for (int i = 0; i < 60; i++) {
        cgroup_world_run(&s.world, 1);
        OK(MAX(s.pods[0].wanted_milli, (int64_t)300) + MAX(s.pods[1].wanted_milli, (int64_t)300) <=
           1000);
    }
    OK(s.asked_n > 0);
    EQ_INT(s.pods[0].market.limit_milli, 300);
    end(&s);
}

static void who_cannot_be_read_keeps_what_it_has(void)
{
    struct scene s;
    begin(&s, 1000);
    s.at_once = true;
    add(&s, 100, 600);
    add(&s, 900, 300);
    cgroup_world_run(&s.world, 1);
    cgroup_world_drop(&s.world, &s.world.groups[0]);
    cgroup_world_run(&s.world, 60);
    OK(sampler_read_errors(s.sampler) >= 3); /* tried again, and not without end */
    OK(sampler_read_errors(s.sampler) < 20);
    OK(!s.pods[0].cgroup);
    EQ_INT(s.pods[0].market.limit_milli, 600);
    EQ_INT(s.pods[1].market.limit_milli, 400);
    cgroup_world_add(&s.world, "pod0", 100, 600); /* it returns with new counters */
    cgroup_world_run(&s.world, 20);
    OK(s.pods[0].cgroup);
    end(&s);
}

static void a_starved_pod_need_not_wait_for_the_slow_round(void)
{
    struct scene s;
    begin(&s, 1000);
    s.at_once = true;
    add(&s, 10, 800);
    add(&s, 600, 200);
    cgroup_world_run(&s.world, 6);
    EQ_INT(s.rounds, 1);
    OK(s.pods[0].market.limit_milli < 400);
    OK(s.pods[1].market.limit_milli > 200);
    end(&s);
}

/* A pod is throttled all the time, so every slow round comes early. */
static void who_is_found_late_is_found_on_a_busy_node_too(void)
{
    struct scene s;
    begin(&s, 500);
    struct market_config config = market_config_default(MARKET_DEFAULTS);
    config.slow_ns = 4 * NS_PER_S;
    sampler_configure(s.sampler, &config);
    add(&s, 2000, 500);
    sampler_add(s.sampler, &s.pods[1], 1);
    cgroup_world_run(&s.world, 30);
    EQ_INT(s.pods[1].market.last_ns, 0);
    cgroup_world_add(&s.world, "pod1", 10, 100);
    cgroup_world_run(&s.world, 30);
    OK(s.pods[1].market.last_ns > 0);
    end(&s);
}

static void a_new_configuration_counts_at_once(void)
{
    struct scene s;
    begin(&s, 1000);
    add(&s, 100, 200);
    cgroup_world_run(&s.world, 2);
    struct market_config config = market_config_default(MARKET_DEFAULTS);
    config.slow_ns = 3 * NS_PER_S;
    sampler_configure(s.sampler, &config);
    cgroup_world_run(&s.world, 10);
    EQ_INT(s.rounds, 3);
    EQ_INT(sampler_rules(s.sampler)->slow_ns, 3 * NS_PER_S);
    sampler_remove(s.sampler, &s.pods[0]);
    EQ_INT(sampler_count(s.sampler), 0);
    cgroup_world_run(&s.world, 10); /* a market without pods */
    end(&s);
}

int main(void)
{
    return tap_run(
        (struct tap_case[]){ TAP(windows_do_not_disturb_each_other),
                             TAP(waiting_for_cpu_is_reported_where_the_kernel_measures_it),
                             TAP(room_is_kept_for_what_was_asked),
                             TAP(who_cannot_be_read_keeps_what_it_has),
                             TAP(a_starved_pod_need_not_wait_for_the_slow_round),
                             TAP(who_is_found_late_is_found_on_a_busy_node_too),
                             TAP(a_new_configuration_counts_at_once),
                             { 0 } });
}
