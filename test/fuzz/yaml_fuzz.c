/* Everything that parses is written as YAML that parses to an equal tree. */
#include "fuzz.h"
#include "json/yaml.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json *documents, *again;
    err_t e;
    if (yaml_parse_all(&a, (str){ (const char *)data, size }, NULL, &documents, &e) < 0)
        return 0;
    for (size_t i = 0; i < json_len(documents); i++) {
        auto_buf struct buf out = { 0 };
        yaml_write(&out, documents->items[i]);
        if (yaml_parse(&a, buf_str(&out), &again, &e) < 0 || !json_eq(documents->items[i], again))
            abort();
    }
    return 0;
}
