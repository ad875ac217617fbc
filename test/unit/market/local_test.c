#include "tap.h"

#include "cgroup_world.h"
#include "market/local.h"

struct scene {
    struct loop *loop;
    struct cgroup_world world;
    struct local *local;
    size_t ticks, rounds;
    int64_t most_milli; /* the highest sum of limits seen */
};

static void ticked(void *context, bool rounded)
{
    struct scene *s = context;
    int64_t sum = 0;
    s->ticks++;
    s->rounds += rounded;
    for (size_t i = 0; i < s->world.n; i++) {
        if (s->world.groups[i].gone)
            continue;
        cgroup_world_read_quota(&s->world, &s->world.groups[i]);
        sum += s->world.groups[i].cfs.limit_milli;
    }
    s->most_milli = MAX(s->most_milli, sum);
}

static void scene_init(struct scene *s)
{
    *s = (struct scene){ 0 };
    err_t e;
    OK_CALL(loop_new(&(struct loop_options){ .time = LOOP_VIRTUAL, .start_wall_ns = 1 }, &s->loop,
                     &e),
            &e);
    cgroup_world_init(&s->world, s->loop);
}

static void scene_start(struct scene *s, const struct local_options *options)
{
    struct local_options o = *options;
    err_t e;
    o.loop = s->loop;
    o.root = s->world.files.root;
    o.cgroup = o.cgroup ? o.cgroup : "/box/";
    o.config = market_config_default(MARKET_DEFAULTS);
    o.on_tick = ticked;
    o.context = s;
    o.seed = 7;
    OK_CALL(local_new(&o, &s->local, &e), &e);
}

static void scene_done(struct scene *s)
{
    local_free(s->local);
    cgroup_world_done(&s->world);
    loop_free(s->loop);
}

static int64_t limit_of(struct scene *s, struct world_group *g)
{
    cgroup_world_read_quota(&s->world, g);
    return g->cfs.limit_milli;
}

static void who_starves_gets_what_another_hoards(void)
{
    struct scene s;
    scene_init(&s);
    struct world_group *starved = cgroup_world_add_quota(&s.world, "box/starved", 800, 200);
    struct world_group *hoarder = cgroup_world_add_quota(&s.world, "box/hoarder", 20, 1200);
    scene_start(&s, &(struct local_options){ .capacity_milli = 1500 });
    cgroup_world_run(&s.world, 11);
    int64_t hits = starved->cfs.nr_throttled;
    cgroup_world_run(&s.world, 20);
    EQ_INT(starved->cfs.nr_throttled, hits); /* not throttled once after 11 s */
    OK(limit_of(&s, starved) >= 800);
    OK(limit_of(&s, hoarder) < 800);
    OK(s.most_milli <= 1500);
    EQ_INT(s.ticks, 32);
    auto_buf struct buf table = { 0 };
    local_print(s.local, &table, 10);
    OK(strstr(table.p, "/box: 2 cgroups, capacity 1500m"));
    OK(strstr(table.p, "starved") && strstr(table.p, "uncongested"));
    buf_clear(&table);
    local_print(s.local, &table, 1);
    OK(strstr(table.p, "and 1 more") && !strstr(table.p, "starved"));
    scene_done(&s);
}

static void the_limits_of_the_beginning_come_back(void)
{
    struct scene s;
    scene_init(&s);
    struct world_group *starved = cgroup_world_add_quota(&s.world, "box/starved", 800, 200);
    struct world_group *free = cgroup_world_add_quota(&s.world, "box/free", 100, 0);
    scene_start(&s, &(struct local_options){ .capacity_milli = 1500 });
    cgroup_world_run(&s.world, 16);
    OK(limit_of(&s, starved) > 200);
    OK(limit_of(&s, free) > 0); /* a group that had none has a limit now */
    local_free(s.local);
    s.local = NULL;
    EQ_INT(limit_of(&s, starved), 200);
    EQ_INT(limit_of(&s, free), 0);
    scene_start(&s, &(struct local_options){ .capacity_milli = 1500, .keep = true });
    cgroup_world_run(&s.world, 10);
    int64_t limit = limit_of(&s, starved);
    OK(limit > 200);
    local_free(s.local);
    s.local = NULL;
    EQ_INT(limit_of(&s, starved), limit);
    scene_done(&s);
}

static void a_new_agent_takes_over_without_a_dent(void)
{
    struct scene s;
    scene_init(&s);
    struct world_group *busy = cgroup_world_add_quota(&s.world, "box/busy", 700, 800);
    cgroup_world_add_quota(&s.world, "box/idle", 0, 300);
    scene_start(&s, &(struct local_options){ .capacity_milli = 1200 });
    cgroup_world_run(&s.world, 60);
    EQ_INT(busy->cfs.nr_throttled, 0);
    scene_done(&s);
}

static void a_dry_run_writes_nothing(void)
{
    struct scene s;
    scene_init(&s);
    struct world_group *starved = cgroup_world_add_quota(&s.world, "box/starved", 800, 200);
    scene_start(&s, &(struct local_options){ .capacity_milli = 1500, .dry_run = true });
    cgroup_world_run(&s.world, 40);
    EQ_INT(limit_of(&s, starved), 200);
    auto_buf struct buf table = { 0 };
    local_print(s.local, &table, 10);
    OK(strstr(table.p, "dry run"));
    scene_done(&s);
}

static void cgroups_come_and_go(void)
{
    struct scene s;
    scene_init(&s);
    struct world_group *first = cgroup_world_add_quota(&s.world, "box/first", 100, 200);
    scene_start(&s, &(struct local_options){ .capacity_milli = 1500 });
    cgroup_world_run(&s.world, 3);
    cgroup_world_add_quota(&s.world, "box/second", 100, 200);
    cgroup_world_drop(&s.world, first);
    cgroup_world_run(&s.world, 3);
    auto_buf struct buf table = { 0 };
    local_print(s.local, &table, 10);
    OK(strstr(table.p, "second") && !strstr(table.p, "first"));
    scene_done(&s);
}

static void capacity_is_the_quota_of_the_box(void)
{
    struct scene s;
    scene_init(&s);
    cgroup_world_add_quota(&s.world, "box", 0, 700);
    cgroup_world_add_quota(&s.world, "box/one", 900, 100);
    scene_start(&s, &(struct local_options){ 0 });
    cgroup_world_run(&s.world, 60);
    auto_buf struct buf table = { 0 };
    local_print(s.local, &table, 10);
    OK(strstr(table.p, "capacity 700m"));
    EQ_INT(limit_of(&s, &s.world.groups[1]), 700);
    scene_done(&s);
}

static void a_cgroup_that_is_not_there_is_said(void)
{
    struct scene s;
    scene_init(&s);
    struct local_options o = { .loop = s.loop, .root = s.world.files.root, .cgroup = "/nobody" };
    err_t e;
    EQ_INT(local_new(&o, &s.local, &e), -ENOENT);
    OK(strstr(e.text, "/nobody"));
    s.local = NULL;
    scene_done(&s);
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(who_starves_gets_what_another_hoards),
                                        TAP(the_limits_of_the_beginning_come_back),
                                        TAP(a_new_agent_takes_over_without_a_dent),
                                        TAP(a_dry_run_writes_nothing),
                                        TAP(cgroups_come_and_go),
                                        TAP(capacity_is_the_quota_of_the_box),
                                        TAP(a_cgroup_that_is_not_there_is_said),
                                        { 0 } });
}
