/* The scenario of `flyball up`: manifests, embedded ones by name or from a file, with includes.
 *
 *     apiVersion: testbed.flyball.dev/v1
 *     kind: Include
 *     files: [schedule, market]
 *
 * is replaced by the documents of those scenarios. CustomResourceDefinitions are separated: they
 * are applied before the controllers start to watch. */
#include "up.h"

#include "../base/file.h"
#include "../json/yaml.h"
#include "manifests.h"

#include <stdio.h>

enum { INCLUDE_DEPTH = 4 };

/* An embedded scenario wins over a file of the same name. */
static int read_documents(struct up *up, const char *scenario, struct json **ret, err_t *e)
{
    char name[256];
    snprintf(name, sizeof(name), "%s.yaml", scenario);
    for (const struct manifest *m = manifests_examples; m->name; m++)
        if (!strcmp(m->name, name))
            return manifest_read(m, &up->arena, ret, e);
    auto_buf struct buf text = { 0 };
    int r = file_read(scenario, 16 << 20, &text, e);
    if (r < 0)
        return err_wrap(e, "--testbed: neither a known scenario nor a readable file");
    r = yaml_parse_all(&up->arena, buf_str(&text), NULL, ret, e);
    return r < 0 ? err_wrap(e, "%s", scenario) : 0;
}

static bool is_include(const struct json *document)
{
    return str_eqc(json_text(json_get(document, "kind")), "Include") &&
           str_starts(json_text(json_get(document, "apiVersion")), S(TESTBED_DOMAIN "/"));
}

/* Appends the documents of a scenario and of its includes. */
static int add_documents(struct up *up, const char *scenario, int depth, err_t *e)
{
    struct json *documents;
    int r = read_documents(up, scenario, &documents, e);
    if (r < 0)
        return r;
    if (depth > INCLUDE_DEPTH)
        return err_set(e, ELOOP, "scenario %s: includes are nested too deeply", scenario);
    for (size_t i = 0; r == 0 && i < json_len(documents); i++) {
        struct json *document = json_item(documents, i);
        bool defines = str_eqc(json_text(json_get(document, "kind")), "CustomResourceDefinition");
        if (!is_include(document)) {
            json_push(&up->arena, defines ? up->definitions : up->scenario_documents, document);
            continue;
        }
        const struct json *files = json_get(document, "files");
        for (size_t k = 0; r == 0 && k < json_len(files); k++)
            r = add_documents(up, json_text(json_item(files, k)).p, depth + 1, e);
    }
    return r;
}

int up_scenario_read(struct up *up, err_t *e)
{
    up->scenario_documents = json_new_arr(&up->arena);
    return add_documents(up, up->scenario, 0, e);
}
