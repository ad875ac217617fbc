/* A misspelled field is found, wherever it is, and the field that was meant is named. */
#include "base/buf.h"
#include "cmd/manifest_fields.h"
#include "tap.h"
#include "json/yaml.h"

static size_t check(struct buf *out, const char *manifest)
{
    auto_arena struct arena a = { 0 };
    struct json *object = NULL;
    err_t e;
    if (!OK_CALL(yaml_parse(&a, str_c(manifest), &object, &e), &e))
        return 0;
    const struct json *schema = manifest_schema(&a, json_text(json_get(object, "apiVersion")),
                                                json_text(json_get(object, "kind")));
    return manifest_unknown_fields(out, schema, object);
}

#define SCHEDULE                                                                                   \
    "apiVersion: autoscaling.sarabala.io/v1alpha1\nkind: SmartHorizontalPodAutoscaler\n"

static void typos_are_errors(void)
{
    auto_buf struct buf out = { 0 };
    EQ_INT(check(&out, SCHEDULE "metadata: {name: x, lables: {a: b}}\n"
                                "sepc: {}\n"
                                "spec:\n"
                                "  HPAObjectRef: {name: web, nmae: x}\n"
                                "  triggers:\n"
                                "  - {name: a, prioritty: 3}\n"
                                "  - {startHpaConfig: {minReplica: 1}, quite_different: 1}\n"),
           6);
    EQ_STR(buf_str(&out),
           S("error: unknown field \"metadata.lables\"; did you mean \"labels\"?\n"
             "error: unknown field \"sepc\"; did you mean \"spec\"?\n"
             "error: unknown field \"spec.HPAObjectRef.nmae\"; did you mean \"name\"?\n"
             "error: unknown field \"spec.triggers[0].prioritty\"; did you mean \"priority\"?\n"
             "error: unknown field \"spec.triggers[1].startHpaConfig\"; did you mean "
             "\"startHPAConfig\"?\n"
             "error: unknown field \"spec.triggers[1].quite_different\"\n"));
}

static void aim_services_too(void)
{
    auto_buf struct buf out = { 0 };
    EQ_INT(check(&out,
                 "apiVersion: aim.silogen.ai/v1alpha1\nkind: AIMService\nmetadata: {name: x}\n"
                 "spec: {routng: {enabled: true}}\n"),
           1);
    OK(str_find(buf_str(&out), S("\"spec.routng\"; did you mean \"routing\"?")) != SIZE_MAX);
}

/* Free-form parts, live objects and kinds of others are not complained about. */
static void known_fields_pass(void)
{
    auto_buf struct buf out = { 0 };
    EQ_INT(check(&out, SCHEDULE
                 "metadata: {name: x, uid: u, managedFields: [], labels: {any: thing}}\n"
                 "spec:\n"
                 "  hpaObjectRef: {name: web}\n"
                 "  HPASpecTemplate: {spec: {metrics: [{type: X, any: 1}], behavior: {z: 1}}}\n"
                 "status: {triggers: [{name: a, other: 1}]}\n"),
           0);
    EQ_INT(check(&out, "apiVersion: v1\nkind: Pod\nwhatever: 1\n"), 0);
    EQ_INT(check(&out, "apiVersion: example.com/v1\nkind: AIMService\nwhatever: 1\n"), 0);
    EQ_STR(buf_str(&out), S(""));
}

static void nearest_names(void)
{
    static const str names[] = { { "startTime", 9 }, { "endTime", 7 }, { "suspend", 7 } };
    EQ_STR(manifest_nearest(S("starttime"), names, 3), S("startTime"));
    EQ_STR(manifest_nearest(S("entTime"), names, 3), S("endTime"));
    EQ_STR(manifest_nearest(S("x"), names, 3), S(""));
    EQ_STR(manifest_nearest(S(""), names, 3), S(""));
    EQ_STR(manifest_nearest(
               S("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"), names, 3),
           S(""));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(typos_are_errors),
                                        TAP(aim_services_too),
                                        TAP(known_fields_pass),
                                        TAP(nearest_names),
                                        { 0 } });
}
