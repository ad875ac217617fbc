/* What makes the volumes of a PodSpec, and the mounts of a container, invalid.
 *
 * A volume has a unique name and exactly one source; each source has rules of its own. A volume with any error
 * does not count as existing, so a mount of it is reported as not found: that is why the rules of volumes are
 * code here and not in volume.types, whose errors would come before this file runs.
 *
 * Errors are reported where kube-apiserver reports them, which is not always where the mistake is: the files
 * of a downward API volume, for example, are all reported without their index. */
#include "../schema/format.h"
#include "kind_hooks.h"

#define TOKEN_SECONDS_MIN 600
#define TOKEN_SECONDS_MAX (1LL << 32)

static void require_text(const struct json *source, const char *key, const struct field_path *at,
                         struct field_errors *errors)
{
    if (!json_text(json_get(source, key)).n)
        field_required(errors, &(struct field_path){ at, .key = str_c(key) }, NULL);
}

static bool has_parent_step(str path)
{
    for (str part; str_cut(&path, '/', &part);)
        if (str_eqc(part, ".."))
            return true;
    return false;
}

/* Must not be absolute and must not contain "..". */
static void check_relative_path(const struct json *path, const struct field_path *at,
                                struct field_errors *errors)
{
    if (str_starts(json_text(path), S("/")))
        field_invalid(errors, at, path, "must be a relative path");
    if (has_parent_step(json_text(path)))
        field_invalid(errors, at, path, "must not contain '..'");
}

/* The path of a file inside the volume. */
static void check_path(const struct json *path, const struct field_path *at,
                       struct field_errors *errors)
{
    if (!json_text(path).n)
        field_required(errors, at, NULL);
    check_relative_path(path, at, errors);
    if (str_starts(json_text(path), S("..")) && !has_parent_step(json_text(path)))
        field_invalid(errors, at, path, "must not start with '..'");
}

/* Mode bits, up to 0777. */
static void check_mode(const struct json *holder, const char *key, const struct field_path *at,
                       struct field_errors *errors)
{
    const struct json *mode = json_get(holder, key);
    if (json_int(mode, 0) < 0 || json_int(mode, 0) > 0777)
        field_invalid(errors, &(struct field_path){ at, .key = str_c(key) }, mode,
                      "must be a number between 0 and 0777 (octal), both inclusive");
}

/* Keys that become files. */
static void check_items(const struct json *source, const struct field_path *up,
                        struct field_errors *errors)
{
    const struct json *items = json_get(source, "items");
    for (uint32_t i = 0; i < json_len(items); i++) {
        struct field_path at = { AT(up, "items"), .index = i, .how = FIELD_INDEX };
        require_text(items->items[i], "key", &at, errors);
        check_mode(items->items[i], "mode", &at, errors);
        check_path(json_get(items->items[i], "path"), AT(&at, "path"), errors);
    }
}

/* Files of a downward API volume; errors are reported without the index of the item. */
static void check_downward(const struct json *source, const struct field_path *at,
                           struct field_errors *errors)
{
    static const char *const fields[] = { "metadata.annotations", "metadata.labels",
                                          "metadata.name",        "metadata.namespace",
                                          "metadata.uid",         NULL };
    const struct json *items = json_get(source, "items");
    for (uint32_t i = 0; i < json_len(items); i++) {
        const struct json *item = items->items[i];
        const struct json *field = json_get(item, "fieldRef");
        const struct json *resource = json_get(item, "resourceFieldRef");
        check_path(json_get(item, "path"), AT(at, "path"), errors);
        check_mode(item, "mode", at, errors);
        if (field)
            podspec_check_field_ref(field, fields, AT(at, "fieldRef"), errors);
        else
            podspec_check_resource_ref(resource, true, AT(at, "resourceFieldRef"), errors);
        if (field && resource)
            field_invalid(errors, at, item,
                          "fieldRef and resourceFieldRef can not be specified simultaneously");
        else if (!field && !resource)
            field_required(errors, at, "one of fieldRef and resourceFieldRef is required");
    }
}

/* Two files of one volume must not have the same path. */
static void check_path_conflicts(const struct json *source, struct json *used,
                                 const struct field_path *at, struct field_errors *errors)
{
    const struct json *items = json_get(source, "items");
    for (uint32_t i = 0; i < json_len(items); i++) {
        str path = json_text(json_get(items->items[i], "path"));
        if (path.n && json_get_str(used, path))
            field_invalid(errors, at, json_get(source, "name"), "conflicting duplicate paths");
        else if (path.n)
            json_append(errors->arena, used, path, json_new_null(errors->arena));
    }
}

/* A projected service account token and its lifetime. */
static void check_token(const struct json *token, const struct field_path *volume,
                        const struct field_path *source, struct field_errors *errors)
{
    const struct json *seconds = json_get(token, "expirationSeconds");
    struct field_path at = { source, .key = S("serviceAccountToken") };
    if (!token)
        return;
    check_path(json_get(token, "path"), AT(volume, "path"), errors);
    if (json_int(seconds, TOKEN_SECONDS_MIN) < TOKEN_SECONDS_MIN ||
        json_int(seconds, 0) > TOKEN_SECONDS_MAX)
        field_invalid(errors, AT(&at, "expirationSeconds"), seconds,
                      "must be at least %d and at most %lld", TOKEN_SECONDS_MIN, TOKEN_SECONDS_MAX);
}

/* Each entry has one source, and no two files share a path. */
static void check_projected(const struct json *source, const struct field_path *at,
                            struct field_errors *errors)
{
    const struct json *list = json_get(source, "sources");
    static const char *const named[] = { "secret", "configMap" };
    struct json *used = json_new_obj(errors->arena);
    for (uint32_t i = 0; i < json_len(list); i++) {
        struct field_path item = { AT(at, "sources"), .index = i, .how = FIELD_INDEX };
        const struct json *downward = json_get(list->items[i], "downwardAPI");
        for (size_t j = 0; j < countof(named); j++) {
            const struct json *part = json_get(list->items[i], named[j]);
            struct field_path in = { &item, .key = str_c(named[j]) };
            if (part)
                require_text(part, "name", &in, errors);
            check_items(part, &in, errors);
            check_path_conflicts(part, used, at, errors);
        }
        check_downward(downward, AT(&item, "downwardAPI"), errors);
        check_path_conflicts(downward, used, at, errors);
        check_token(json_get(list->items[i], "serviceAccountToken"), at, &item, errors);
        if (json_len(list->items[i]) > 1)
            field_forbidden(errors, &item, "may not specify more than 1 volume type per source");
    }
}

/* The rules of one kind of source. */
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
            require_text(source, needed[i].key, at, errors);
    check_mode(source, "defaultMode", at, errors);
    const struct json *path = json_get(source, "path");
    if (str_eqc(kind, "hostPath") && has_parent_step(json_text(path)))
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

/* The source that is checked if a volume has several; the others are forbidden. */
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

/* Exactly one source, and a valid name. */
static void check_volume(const struct json *volume, struct podspec_rules rules,
                         const struct field_path *at, struct field_errors *errors)
{
    const struct json *name = json_get(volume, "name");
    str source = first_source(volume);
    json_each(m, volume) {
        struct field_path in = { at, .key = m->key };
        if (str_eq(m->key, source))
            check_source(m->key, m->value, &in, errors);
        else if (!str_eqc(m->key, "name"))
            field_forbidden(errors, &in, "may not specify more than 1 volume type");
    }
    if (str_eqc(source, "image") && !rules.template) /* admission may still complete a template */
        require_text(json_get(volume, "image"), "reference", AT(at, "image"), errors);
    if (!json_text(name).n)
        field_required(errors, AT(at, "name"), NULL);
    else if (format_dns_label(json_text(name)))
        field_invalid(errors, AT(at, "name"), name, "%s", format_dns_label(json_text(name)));
}

/* A volume with an error is not added to the result, so mounts of it are reported as well. */
struct seen podspec_check_volumes(const struct json *volumes, struct podspec_rules rules,
                                  const struct field_path *up, struct field_errors *errors)
{
    struct seen good = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(volumes); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *name = json_get(volumes->items[i], "name");
        size_t before = errors->n;
        check_volume(volumes->items[i], rules, &at, errors);
        if (json_text(name).n && seen_lookup(&good, name))
            field_duplicate(errors, AT(&at, "name"), name);
        if (errors->n == before)
            seen_value(&good, name, i);
    }
    return good;
}

/* ---- mounts; half of the errors are reported for the list, not for its item */

/* mountPropagation and recursiveReadOnly, which restrict each other. */
static void check_propagation(const struct json *mount, bool privileged,
                              const struct field_path *list, struct field_errors *errors)
{
    static const char *const ways[] = { "Bidirectional", "HostToContainer", "None", NULL };
    static const char *const depths[] = { "Disabled", "Enabled", "IfPossible", NULL };
    const struct json *way = json_get(mount, "mountPropagation");
    const struct json *depth = json_get(mount, "recursiveReadOnly");
    if (way && !format_is_one_of(json_text(way), ways))
        field_not_supported(errors, AT(list, "mountPropagation"), way, ways);
    else if (str_eqc(json_text(way), "Bidirectional") && !privileged)
        field_forbidden(errors, AT(list, "mountPropagation"),
                        "is available only to privileged containers");
    if (!depth || str_eqc(json_text(depth), "Disabled"))
        return;
    if (!format_is_one_of(json_text(depth), depths))
        field_not_supported(errors, AT(list, "recursiveReadOnly"), depth, depths);
    else if (!json_bool(json_get(mount, "readOnly"), false))
        field_forbidden(errors, AT(list, "recursiveReadOnly"),
                        "may only be specified when readOnly is true");
    else if (way && !str_eqc(json_text(way), "None"))
        field_forbidden(errors, AT(list, "recursiveReadOnly"),
                        "may only be specified when mountPropagation is None or not specified");
}

/* subPath and subPathExpr stay inside the volume; reported for the list. */
static void check_sub_path(const struct json *mount, const char *key, const struct field_path *list,
                           struct field_errors *errors)
{
    const struct json *path = json_get(mount, key);
    if (json_text(path).n)
        check_relative_path(path, &(struct field_path){ list, .key = str_c(key) }, errors);
}

/* Mounts refer to a valid volume, each at a path of its own. */
void podspec_check_mounts(const struct json *container, const struct seen *volumes,
                          const struct field_path *up, struct field_errors *errors)
{
    const struct json *mounts = json_get(container, "volumeMounts");
    bool privileged = json_bool(json_at(container, "securityContext", "privileged", NULL), false);
    struct seen paths = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(mounts); i++) {
        struct field_path at = { up, .index = i, .how = FIELD_INDEX };
        const struct json *mount = mounts->items[i];
        const struct json *name = json_get(mount, "name"), *path = json_get(mount, "mountPath");
        bool again = seen_value(&paths, path, i);
        require_text(mount, "name", &at, errors);
        if (!json_text(name).n || !seen_lookup(volumes, name))
            field_not_found(errors, AT(&at, "name"), name);
        if (!json_text(path).n)
            field_required(errors, AT(&at, "mountPath"), NULL);
        else if (again)
            field_invalid(errors, AT(&at, "mountPath"), path, "must be unique");
        check_sub_path(mount, "subPath", up, errors);
        check_sub_path(mount, "subPathExpr", up, errors);
        if (json_text(json_get(mount, "subPath")).n && json_text(json_get(mount, "subPathExpr")).n)
            field_invalid(errors, AT(&at, "subPathExpr"), json_get(mount, "subPathExpr"),
                          "subPathExpr and subPath are mutually exclusive");
        check_propagation(mount, privileged, up, errors);
    }
}
