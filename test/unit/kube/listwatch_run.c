/* See listwatch_run.h. */
#include "listwatch_run.h"

static const struct field thing_fields[] = { { "spec.size", F_INT, offsetof(struct thing, size) } };
static const struct resource things = { "test", "v1", "things", "Thing", true };
static const struct field deployment_fields[] = { { "spec.replicas", F_INT,
                                                    offsetof(struct thing, size) } };
const struct cache_spec run_specs[2] = {
    { .resource = &things, .keep = FIELDS(struct thing, thing_fields) },
    { .resource = &resource_deployments, .keep = FIELDS(struct thing, deployment_fields) },
};

enum cache_need run_need;
bool run_in_protobuf;

static int number_of(const struct record *r)
{
    int64_t n = -1;
    OK(str_to_i64(str_from(r->name, 1), &n) == 0 && n >= 0 && n < THINGS);
    return (int)n;
}

void run_on_change(void *context, const struct record *old, const struct record *now)
{
    struct run *run = context;
    int i = number_of(now ? now : old);
    run->changes++;
    EQ_INT(run->seen[i], old ? ((const struct thing *)old)->size : -1);
    run->seen[i] = now ? ((const struct thing *)now)->size : -1;
}

static void on_trouble(void *context, const char *trouble)
{
    OK(trouble && *trouble);
    ((struct run *)context)->troubles++;
}

static void on_synced(void *context)
{
    ((struct run *)context)->syncs++;
}

void run_start(struct run *run)
{
    err_t e;
    *run = (struct run){ 0 };
    model_start(&run->m);
    memset(run->seen, -1, sizeof(run->seen));
    run->projector = projector_new();
    struct cache_spec own = run_specs[run_in_protobuf];
    own.need = run_need;
    OK_CALL(cache_new(run->projector, &own, &run->cache, &e), &e);
    cache_handle(run->cache, run_on_change, run);
}

void run_watch(struct run *run)
{
    run->watch = listwatch_start(&(struct listwatch_options){ .kube = run->m.f.kube,
                                                              .cache = run->cache,
                                                              .seed = 5,
                                                              .on_synced = on_synced,
                                                              .on_trouble = on_trouble,
                                                              .context = run });
}

void run_stop(struct run *run)
{
    listwatch_stop(run->watch);
    cache_free(run->cache);
    projector_free(run->projector);
    model_stop(&run->m);
}

bool run_agrees(const struct run *run)
{
    for (int i = 0; i < THINGS; i++) {
        int64_t want = model_size(&run->m, i, run->m.changes.n);
        char name[16];
        snprintf(name, sizeof(name), "t%d", i);
        const struct thing *t = cache_get(run->cache, S("ns"), str_c(name));
        if (run->seen[i] != want || (t ? t->size : -1) != want)
            return false;
    }
    return true;
}

void run_for(struct run *run, int64_t ns)
{
    fake_for(&run->m.f, ns);
}
