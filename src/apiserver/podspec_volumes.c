/* What is wrong with the volumes of a PodSpec. Each is named once and has one source; what a source needs
 * differs. Faults are told where the real server tells them, which is not always where they are. */
#include "formats.h"
#include "kind_hooks.h"

enum { TOKEN_SECONDS_MIN = 600 };

static void need(const struct json *source, const char *key, const struct field_path *at,
                 struct field_errors *errors)
{
    if (!json_text(json_get(source, key)).n)
        field_required(errors, &(struct field_path){ at, .key = str_c(key) }, NULL);
}

static bool goes_up(str path)
{
    for (str part; str_cut(&path, '/', &part);)
        if (str_eqc(part, ".."))
            return true;
    return false;
}

/* A path inside the volume. */
static void check_path(const struct json *path, const struct field_path *at,
                       struct field_errors *errors)
{
    str text = json_text(path);
    if (!text.n)
        field_required(errors, at, NULL);
    else if (text.p[0] == '/')
        field_invalid(errors, at, path, "must be a relative path");
    if (goes_up(text))
        field_invalid(errors, at, path, "must not contain '..'");
}

static void check_mode(const struct json *holder, const char *key, const struct field_path *at,
                       struct field_errors *errors)
{
    const struct json *mode = json_get(holder, key);
    if (json_int(mode, 0) < 0 || json_int(mode, 0) > 0777)
        field_invalid(errors, &(struct field_path){ at, .key = str_c(key) }, mode,
                      "must be a number between 0 and 0777 (octal), both inclusive");
}

static void check_items(const struct json *source, const struct field_path *up,
                        struct field_errors *errors)
{
    const struct json *items = json_get(source, "items");
    for (uint32_t i = 0; i < json_len(items); i++) {
        struct field_path at = { AT(up, "items"), .index = i, .how = FIELD_INDEX };
        need(items->items[i], "key", &at, errors);
        check_mode(items->items[i], "mode", &at, errors);
        check_path(json_get(items->items[i], "path"), AT(&at, "path"), errors);
    }
}

static void check_downward(const struct json *source, const struct field_path *at,
                           struct field_errors *errors)
{
    const struct json *items = json_get(source, "items");
    for (uint32_t i = 0; i < json_len(items); i++) {
        const struct json *item = items->items[i];
        bool field = json_get(item, "fieldRef"), resource = json_get(item, "resourceFieldRef");
        check_path(json_get(item, "path"), AT(at, "path"), errors);
        if (field && resource)
            field_invalid(errors, at, item, "fieldRef and resourceFieldRef exclude each other");
        else if (!field && !resource)
            field_required(errors, at, "one of fieldRef and resourceFieldRef");
    }
}

static void check_projected(const struct json *source, const struct field_path *at,
                            struct field_errors *errors)
{
    const struct json *list = json_get(source, "sources");
    static const char *const named[] = { "secret", "configMap" };
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct field_path item = { AT(at, "sources"), .index = i, .how = FIELD_INDEX };
        for (size_t j = 0; j < countof(named); j++) {
            const struct json *part = json_get(list->items[i], named[j]);
            struct field_path in = { &item, .key = str_c(named[j]) };
            if (part)
                need(part, "name", &in, errors);
            check_items(part, &in, errors);
        }
        check_downward(json_get(list->items[i], "downwardAPI"), AT(&item, "downwardAPI"), errors);
        const struct json *token = json_get(list->items[i], "serviceAccountToken");
        const struct json *seconds = json_get(token, "expirationSeconds");
        if (token)
            check_path(json_get(token, "path"), AT(at, "path"), errors);
        if (json_int(seconds, TOKEN_SECONDS_MIN) < TOKEN_SECONDS_MIN)
            field_invalid(errors, AT(at, "expirationSeconds"), seconds, "must be at least %d",
                          TOKEN_SECONDS_MIN);
    }
}

static void check_source(str kind, const struct json *source, const struct field_path *at,
                         struct field_errors *errors)
{
    static const struct {
        const char *kind, *key;
    } needed[] = {
        { "secret", "secretName" }, { "configMap", "name" },
        { "hostPath", "path" },     { "persistentVolumeClaim", "claimName" },
        { "nfs", "server" },        { "nfs", "path" },
        { "csi", "driver" },
    };
    for (size_t i = 0; i < countof(needed); i++)
        if (str_eqc(kind, needed[i].kind))
            need(source, needed[i].key, at, errors);
    check_mode(source, "defaultMode", at, errors);
    const struct json *path = json_get(source, "path");
    if (str_eqc(kind, "hostPath") && goes_up(json_text(path)))
        field_invalid(errors, AT(at, "path"), path, "must not contain '..'");
    if (str_eqc(kind, "nfs") && !str_starts(json_text(path), S("/")))
        field_invalid(errors, AT(at, "path"), path, "must be an absolute path");
    if (str_eqc(kind, "ephemeral") && !json_get(source, "volumeClaimTemplate"))
        field_required(errors, AT(at, "volumeClaimTemplate"), NULL);
    if (str_eqc(kind, "secret") || str_eqc(kind, "configMap"))
        check_items(source, at, errors);
    else if (str_eqc(kind, "downwardAPI"))
        check_downward(source, at, errors);
    else if (str_eqc(kind, "projected"))
        check_projected(source, at, errors);
    else if (str_starts(json_text(json_get(source, "sizeLimit")), S("-")))
        field_forbidden(errors, AT(at, "sizeLimit"), "must not be negative");
}

/* The one that counts, of several. */
static str first_source(const struct json *volume)
{
    static const char *const order[] = {
        "emptyDir",    "hostPath",  "secret",    "nfs", "persistentVolumeClaim",
        "downwardAPI", "configMap", "projected", "csi", "ephemeral",
        "image"
    };
    for (size_t i = 0; i < countof(order); i++)
        if (json_get(volume, order[i]))
            return str_c(order[i]);
    json_each(m, volume)
        if (!str_eqc(m->key, "name"))
            return m->key;
    return S("");
}

static void check_volume(const struct json *volume, const struct field_path *at,
                         struct field_errors *errors)
{
    const struct json *name = json_get(volume, "name");
    str source = first_source(volume);
    json_each(m, volume) {
        struct field_path in = { at, .key = m->key };
        if (str_eq(m->key, source))
            check_source(m->key, m->value, &in, errors);
        else if (!str_eqc(m->key, "name"))
            field_forbidden(errors, &in, "a volume has one source");
    }
    if (!json_text(name).n)
        field_required(errors, AT(at, "name"), NULL);
    else if (format_dns_label(json_text(name)))
        field_invalid(errors, AT(at, "name"), name, "%s", format_dns_label(json_text(name)));
}

struct json *podspec_check_volumes(const struct json *volumes, const struct field_path *up,
                                   struct field_errors *errors)
{
    struct json *good = json_new_arr(errors->arena);
    for (uint32_t i = 0; i < json_len(volumes); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *name = json_get(volumes->items[i], "name");
        size_t before = errors->n;
        check_volume(volumes->items[i], &at, errors);
        for (uint32_t j = 0; json_text(name).n && j < good->n; j++)
            if (json_eq(json_get(good->items[j], "name"), name))
                field_duplicate(errors, AT(&at, "name"), name);
        if (errors->n == before)
            json_push(errors->arena, good, volumes->items[i]);
    }
    return good;
}
