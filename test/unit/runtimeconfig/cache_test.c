/* Caches: which model cache serves, what a cache has to make next, and how it is. */
#include "runtimeconfig/cache_core.h"
#include "tap.h"
#include "json/yaml.h"

static struct json *parse(struct arena *a, const char *yaml)
{
    struct json *tree = NULL;
    err_t e;
    OK_CALL(yaml_parse(a, str_c(yaml), &tree, &e), &e);
    return tree;
}

static void a_model_cache_goes_from_volume_to_download_to_done(void)
{
    static const struct {
        struct aim_cache_model_facts f;
        const char *status;
        bool volume, job;
    } t[] = {
        { { .config_missing = true, .size_known = true }, "Failed", false, false },
        { { .size_known = true }, "Pending", true, false },
        { { .size_known = false }, "Failed", false, false },
        { { .volume = AIM_CACHE_VOLUME_PENDING }, "Pending", false, false },
        { { .volume = AIM_CACHE_VOLUME_LAZY }, "Progressing", false, true },
        { { .volume = AIM_CACHE_VOLUME_BOUND }, "Progressing", false, true },
        { { .volume = AIM_CACHE_VOLUME_BOUND, .job = AIM_CACHE_JOB_RUNNING },
          "Progressing",
          false,
          false },
        { { .volume = AIM_CACHE_VOLUME_BOUND, .job = AIM_CACHE_JOB_DONE },
          "Available",
          false,
          false },
        { { .volume = AIM_CACHE_VOLUME_BOUND, .job = AIM_CACHE_JOB_FAILED },
          "Failed",
          false,
          false },
        /* the job was cleared away after it had done its work */
        { { .volume = AIM_CACHE_VOLUME_BOUND, .was_available = true }, "Available", false, false },
        { { .volume = AIM_CACHE_VOLUME_LOST, .was_available = true }, "Failed", false, false },
        /* a new volume is empty, whatever was before */
        { { .size_known = true, .was_available = true }, "Pending", true, false },
    };
    auto_arena struct arena a = { 0 };
    for (size_t i = 0; i < countof(t); i++) {
        struct aim_cache_state s = aim_cache_model_state(&a, &t[i].f);
        if (!EQ_STR(str_c(s.status), str_c(t[i].status)) | (s.wants_volume != t[i].volume) |
            (s.wants_job != t[i].job))
            tap_note(__FILE__, __LINE__, "row %zu", i);
    }
}

static void phases_are_read_from_the_children(void)
{
    auto_arena struct arena a = { 0 };
    str message = S("");
    EQ_INT(aim_cache_volume_phase(NULL, true), AIM_CACHE_VOLUME_ABSENT);
    EQ_INT(aim_cache_volume_phase(parse(&a, "{status: {phase: Pending}}"), false),
           AIM_CACHE_VOLUME_PENDING);
    EQ_INT(aim_cache_volume_phase(parse(&a, "{status: {phase: Pending}}"), true),
           AIM_CACHE_VOLUME_LAZY);
    EQ_INT(aim_cache_volume_phase(parse(&a, "{status: {phase: Bound}}"), true),
           AIM_CACHE_VOLUME_BOUND);
    EQ_INT(aim_cache_job_phase(NULL, &message), AIM_CACHE_JOB_ABSENT);
    EQ_INT(aim_cache_job_phase(parse(&a, "{status: {active: 1}}"), &message),
           AIM_CACHE_JOB_RUNNING);
    EQ_INT(aim_cache_job_phase(parse(&a, "{status: {succeeded: 1}}"), &message),
           AIM_CACHE_JOB_DONE);
    EQ_INT(aim_cache_job_phase(
               parse(&a, "{status: {conditions: [{type: Failed, status: 'True', message: "
                         "no token}]}}"),
               &message),
           AIM_CACHE_JOB_FAILED);
    EQ_STR(message, S("no token"));
}

static void the_best_cache_of_the_source_and_class_is_picked(void)
{
    static const struct aim_cache_candidate t[] = {
        { STR_INIT("b"), STR_INIT("hf://x"), STR_INIT("fast"), STR_INIT("Progressing") },
        { STR_INIT("c"), STR_INIT("hf://x"), STR_INIT("slow"), STR_INIT("Available") },
        { STR_INIT("a"), STR_INIT("hf://x"), STR_INIT("fast"), STR_INIT("Progressing") },
        { STR_INIT("d"), STR_INIT("hf://y"), STR_INIT(""), STR_INIT("Failed") },
    };
    EQ_STR(aim_cache_choose(t, countof(t), S("hf://x"), S(""))->name, S("c"));
    EQ_STR(aim_cache_choose(t, countof(t), S("hf://x"), S("fast"))->name, S("a"));
    EQ_STR(aim_cache_choose(t, countof(t), S("hf://y"), S(""))->name, S("d"));
    OK(!aim_cache_choose(t, countof(t), S("hf://y"), S("fast")));
    OK(!aim_cache_choose(t, countof(t), S("hf://z"), S("")));
}

static void claims_prefer_the_caches_own_class(void)
{
    auto_arena struct arena a = { 0 };
    struct runtimeconfig_spec config = { .storage_class = S("slow"),
                                         .has_headroom = true,
                                         .headroom_percent = 0 };
    const struct json *own = parse(&a, "{metadata: {name: x, namespace: ml}, spec: {sourceUri: "
                                       "'hf://x', size: 3Gi, storageClassName: fast}}");
    const struct json *other =
        parse(&a, "{metadata: {name: x, namespace: ml}, spec: {sourceUri: 'hf://x', size: 3Gi}}");
    const struct json *claim = aim_cache_claim(&a, "aim.silogen.ai", own, &config);
    EQ_STR(json_text(json_at(claim, "metadata", "name", NULL)), S("x-cache"));
    EQ_STR(json_text(json_at(claim, "spec", "storageClassName", NULL)), S("fast"));
    EQ_STR(json_text(json_at(claim, "spec", "resources", "requests", "storage", NULL)), S("3Gi"));
    claim = aim_cache_claim(&a, "aim.silogen.ai", other, &config);
    EQ_STR(json_text(json_at(claim, "spec", "storageClassName", NULL)), S("slow"));
    claim = aim_cache_claim(&a, "aim.silogen.ai", other, &(struct runtimeconfig_spec){ 0 });
    OK(!json_at(claim, "spec", "storageClassName", NULL));
    EQ_STR(json_text(json_at(claim, "spec", "resources", "requests", "storage", NULL)), S("4Gi"));
    const struct json *job = aim_cache_job(&a, "aim.silogen.ai", own, &config);
    const struct json *pod = json_at(job, "spec", "template", "spec", NULL);
    const struct json *args = json_get(json_item(json_get(pod, "containers"), 0), "args");
    EQ_STR(json_text(json_at(job, "metadata", "name", NULL)), S("x-cache-download"));
    EQ_STR(json_text(json_item(args, 0)), S("hf://x"));
    EQ_INT(json_int(json_at(pod, "securityContext", "runAsUser", NULL), 0), 1000);
}

static void a_template_cache_is_as_good_as_its_worst(void)
{
    auto_arena struct arena a = { 0 };
    struct aim_cache_template_facts f = { .template_name = S("t") };
    EQ_STR(str_c(aim_cache_template_state(&a, &f).reason), S("AwaitingTemplate"));
    f.template_found = true;
    EQ_STR(str_c(aim_cache_template_state(&a, &f).status), S("Pending"));
    f.sources = 2;
    static const char *const words[] = { "Failed", "Pending", "Progressing", "Available" };
    for (size_t i = 0; i < countof(words); i++) {
        f.worst = aim_cache_rank(str_c(words[i]));
        EQ_STR(str_c(aim_cache_template_state(&a, &f).status), str_c(words[i]));
    }
}

static void mounts_stay_below_their_root(void)
{
    auto_arena struct arena a = { 0 };
    EQ_STR(aim_cache_mount_path(&a, S("org/x")), S("/workspace/model-cache/org/x"));
    EQ_STR(aim_cache_mount_path(&a, S("../../etc")), S("/workspace/model-cache/etc"));
    EQ_STR(aim_cache_mount_path(&a, S("/etc")), S("/workspace/model-cache/etc"));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(a_model_cache_goes_from_volume_to_download_to_done),
                                        TAP(phases_are_read_from_the_children),
                                        TAP(the_best_cache_of_the_source_and_class_is_picked),
                                        TAP(claims_prefer_the_caches_own_class),
                                        TAP(a_template_cache_is_as_good_as_its_worst),
                                        TAP(mounts_stay_below_their_root),
                                        { 0 } });
}
