/* The family aim-names: names and sizes that must be the same as in the operator that we replace. */
#include "golden.h"

#include "runtimeconfig/names_core.h"

/* ---- aim-names */

static struct aim_names_deployment deployment_of(const struct json *in)
{
    const struct json *d = json_get(in, "deployment");
    return (struct aim_names_deployment){ json_text(json_get(d, "gpuModel")),
                                          json_text(json_get(d, "metric")),
                                          json_text(json_get(d, "precision")),
                                          json_int(json_get(d, "gpuCount"), 0) };
}

/* The name that a function of texts gives; false: it is none of them. */
static bool name_of(struct golden *g, str fn, const struct json *in, str *ret)
{
    struct arena *a = g->arena;
    if (str_eqc(fn, "inferenceServiceName"))
        *ret = aim_names_inference_service(a, json_text(json_get(in, "service")),
                                           json_text(json_get(in, "namespace")));
    else if (str_eqc(fn, "sanitizeLabelValue"))
        *ret = aim_names_label_value(a, json_text(in));
    else if (str_eqc(fn, "rfc1123_kaiwo"))
        *ret = aim_names_rfc1123(a, json_text(in));
    else if (str_eqc(fn, "rfc1123_engine"))
        *ret = aim_names_rfc1123_strict(a, json_text(in));
    else if (str_eqc(fn, "modelNameFromImage"))
        *ret = aim_names_model_of_image(a, json_text(in));
    else if (str_eqc(fn, "templateNameFromDeployment")) {
        struct aim_names_deployment d = deployment_of(in);
        *ret = aim_names_template_of_deployment(a, json_text(json_get(in, "image")), &d);
    } else
        return false;
    return true;
}

static void run_names(struct golden *g, const struct json *c)
{
    const struct json *in = json_get(c, "in"), *out = json_get(c, "out");
    str fn = json_text(json_get(c, "fn")), name;
    if (name_of(g, fn, in, &name)) {
        golden_eq_str(g, "name", name, out);
    } else if (str_eqc(fn, "derivedTemplateName")) {
        name = aim_names_derived_template(g->arena, json_text(json_get(in, "base")),
                                          json_text(json_get(in, "overridesJson")));
        golden_eq_str(g, "name", name, json_get(out, "name"));
    } else if (str_eqc(fn, "pvcSizeWithHeadroom")) {
        golden_eq_int(g, "bytes",
                      aim_names_volume_bytes(json_int(json_get(in, "bytes"), -1),
                                             json_int(json_get(in, "percent"), -1)),
                      out);
    } else if (str_eqc(fn, "labelKeyMatch")) {
        bool bad, match = aim_names_match_key(json_text(json_get(in, "pattern")),
                                              json_text(json_get(in, "key")), &bad);
        golden_eq_bool(g, "match", match, json_get(out, "match"));
        golden_eq_bool(g, "badPattern", bad, json_get(out, "badPattern"));
    } else {
        golden_ok(g, false, "unknown function " STR_FMT, STR_ARG(fn));
    }
}

const struct golden_family golden_aim[] = {
    { "aim-names", run_names },
    { 0 },
};
