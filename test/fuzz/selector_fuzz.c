/* Selectors of any bytes are taken or refused with a sentence; what is taken can be matched, and text that
 * the scanner walks may be anything. */
#include "fuzz.h"

#include "apiserver/http/selector.h"
#include "json/scan.h"

static struct object *sample(void)
{
    static const char json[] =
        "{\"kind\":\"Pod\",\"apiVersion\":\"v1\",\"metadata\":{\"name\":\"p\",\"resourceVersion\":\"7\","
        "\"labels\":{\"app\":\"web\",\"tier\":\"5\",\"empty\":\"\"}},\"spec\":{\"nodeName\":\"n1\"}}";
    struct object *o;
    if (object_new(S("/pods/ns/p"), str_c(json), 7, false, &o) < 0)
        abort();
    return o;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    auto_object struct object *o = sample();
    str text = { (const char *)data, size }, key, value;
    struct label_selector labels;
    struct field_selector fields;
    err_t e = { 0 };
    if (selector_parse_labels(&a, text, &labels, &e) == 0)
        (void)selector_matches_labels(&labels, o);
    else if (!e.text[0])
        abort();
    if (selector_parse_fields(&a, text, &fields, &e) == 0)
        (void)selector_exact_field(&fields, S("metadata.name"));
    else if (!e.text[0])
        abort();
    for (str rest = text; scan_next(&rest, &key, &value);)
        if (key.p < text.p || value.p + value.n > text.p + text.n ||
            scan_text(&a, value).n > value.n)
            abort();
    (void)scan_path(text, S("a.b.c"));
    struct object *loaded;
    if (object_new(S("k"), text, 1, false, &loaded) == 0)
        object_unref(loaded);
    return 0;
}
