/* A body that decodes is a tree that its kind can decode or refuse. */
#include "fuzz.h"

#include "apiserver/kinds/kinds.h"
#include "apiserver/kinds/protobuf.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    struct json *object;
    if (protobuf_decode(&a, (str){ (const char *)data, size }, &object, NULL) < 0)
        return 0;
    size_t n = 0;
    const struct kind *const *kinds = kinds_builtin(&n);
    for (size_t i = 0; i < n; i++)
        if (str_eq(kinds[i]->kind, json_text(json_get(object, "kind"))))
            kind_decode(kinds[i], &a, json_copy(&a, object), NULL, NULL);
    return 0;
}
