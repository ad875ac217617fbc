/* The log of a discovery job, the answer of a size job and the labels of an image, of any bytes: no crash, no more than
 * linear work for brackets, and what cannot be read is a sentence. */
#include "fuzz.h"

#include "runtimeconfig/artifact_core.h"
#include "runtimeconfig/discovery_core.h"
#include "runtimeconfig/engine_children_core.h"
#include "runtimeconfig/inspection_core.h"

static void check_labels(struct arena *a, str text)
{
    struct json *labels = json_new_obj(a), *metadata;
    err_t e;
    json_set_str(a, labels, "com.amd.aim.model.recommendedDeployments", text);
    json_set_str(a, labels, "com.amd.aim.model.tags", text);
    int r = aim_inspection_metadata(a, labels, &metadata, &e);
    if (r < 0 && !e.text[0])
        abort();
    aim_inspection_labels(a, labels);
    if (r < 0)
        return;
    struct json *model = json_new_obj(a);
    json_set_str(a, json_make(a, model, "metadata", NULL), "name", S("m"));
    json_set_str(a, json_make(a, model, "spec", NULL), "image", S("a/b:1"));
    json_set(a, json_make(a, model, "status", NULL), S("imageMetadata"), metadata);
    const struct json *list = aim_inspection_templates(a, "aim.silogen.ai", model);
    for (size_t i = 0; i < json_len(list); i++)
        if (json_text(json_at(json_item(list, i), "metadata", "name", NULL)).n > 63)
            abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    str text = { (const char *)data, size }, line;
    struct aim_discovery_result result;
    int64_t bytes;
    err_t e;
    struct json *spec = json_new_obj(&a);
    for (int original = 0; original < 2; original++) {
        int r = aim_discovery_parse(&a, text, spec, original, &result, &e);
        if (r < 0 ? !e.text[0] : !result.profile)
            abort();
    }
    if (aim_artifact_parse_size(&a, text, &bytes, &e) < 0 ? !e.text[0] : bytes < 1)
        abort();
    if (aim_engine_classify_log(text, &line) != ENGINE_LOG_UNKNOWN && line.n > size)
        abort();
    check_labels(&a, arena_str(&a, text));
    return 0;
}
