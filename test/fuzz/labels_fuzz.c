/* Label selectors of any bytes are parsed or refused with a sentence, and what was parsed can be
 * matched; numbers of annotations too. */
#include "fuzz.h"

#include "base/labels.h"
#include "saturation/objects/annotation_core.h"

#include <math.h>

static bool get_label(const void *labels, str key, str *ret)
{
    (void)labels;
    *ret = S("5");
    return key.n % 2 == 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    str text = { (const char *)data, size };
    struct labels_selector s;
    err_t e = { 0 };
    double number;
    if (labels_parse(&a, text, &s, &e) == 0)
        (void)labels_match(&s, get_label, NULL);
    else if (!e.text[0])
        abort();
    if (annotation_parse_number(text, &number) == -ERANGE && size == 0)
        abort();
    struct annotation_object o = { .managed = S("true"),
                                   .model = text,
                                   .cost = text,
                                   .target = S("d"),
                                   .kind = ANNOTATION_SCALEDOBJECT };
    struct annotation_variant v;
    if (annotation_read(&o, ANNOTATION_OURS, &v, &e) == 0 && !(v.cost >= 0 && v.cost < HUGE_VAL))
        abort();
    return 0;
}
