/* Decompresses embedded manifests: see manifests.h. Nothing is cached: each is read once per
 * run, and the parsed tree is larger than the text. */
#include "manifests.h"

#include "../json/yaml.h"
#include "../net/gzip.h"

void manifest_text(const struct manifest *m, struct buf *out)
{
    struct gzip *z = gzip_reader_new();
    str rest = { (const char *)m->packed, m->packed_bytes };
    while (!gzip_is_complete(z))
        if (gzip_read(z, &rest, out, SIZE_MAX) < 0)
            abort(); /* packed at build time: cannot fail */
    gzip_free(z);
}

int manifest_read(const struct manifest *m, struct arena *a, struct json **ret, err_t *e)
{
    auto_buf struct buf text = { 0 };
    manifest_text(m, &text);
    int r = yaml_parse_all(a, buf_str(&text), NULL, ret, e);
    return r < 0 ? err_wrap(e, "%s", m->name) : 0;
}
