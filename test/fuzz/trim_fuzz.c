/* Arbitrary text, complete and trimmed: what the parser accepts it also accepts trimmed, with the same
 * values for declared fields; trimming invalid text does no harm. */
#include "fuzz.h"
#include "json/json.h"
#include "json/trim.h"

struct thing {
    struct record meta;
    str node, raw;
    int64_t size;
};

static const struct field thing_fields[] = {
    { "spec.node", F_STR, offsetof(struct thing, node) },
    { "spec.raw", F_RAW, offsetof(struct thing, raw) },
    { "spec.parts[].size", F_INT, offsetof(struct thing, size) },
};

static void same(struct arena *a, const struct json *whole, const struct json *trimmed)
{
    static const char *const paths[][2] = {
        { "metadata", "name" }, { "metadata", "uid" }, { "spec", "node" }, { "spec", "raw" }
    };
    for (size_t i = 0; i < countof(paths); i++) {
        const struct json *x = json_at(whole, paths[i][0], paths[i][1], NULL);
        const struct json *y = json_at(trimmed, paths[i][0], paths[i][1], NULL);
        if (!x != !y || (x && !str_eq(json_to_str(a, x), json_to_str(a, y))))
            abort();
    }
    const struct json *x = json_at(whole, "spec", "parts", NULL);
    const struct json *y = json_at(trimmed, "spec", "parts", NULL);
    if (json_len(x) != json_len(y) && json_is(x, JSON_ARR))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    auto_buf struct buf out = { 0 };
    struct fieldtree *tree;
    struct json *whole, *trimmed;
    str text = { (const char *)data, size };
    if (fieldtree_compile(&a, FIELDS(struct thing, thing_fields), true, &tree, NULL) < 0)
        abort();
    bool took = trim_value(&tree->keep, text, &out);
    if (json_parse(&a, text, &whole, NULL) < 0 || !took)
        return 0;
    if (json_parse(&a, buf_str(&out), &trimmed, NULL) < 0)
        abort();
    same(&a, whole, trimmed);
    return 0;
}
