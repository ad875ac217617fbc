/* Discovery: the groups, versions and resources that the server serves, in the plain and in the aggregated form.
 *
 * Documents are built from the catalog for each request. A catalog has a few hundred entries, which takes some
 * tens of microseconds; a cache would have to be invalidated whenever a definition changes.
 *
 *     /apis                   discovery_groups       APIGroupList
 *     /apis/GROUP             discovery_group        APIGroup
 *     /apis/GROUP/VERSION     discovery_resources    APIResourceList; also /api/v1
 *     /api, /apis with        discovery_aggregated   APIGroupDiscoveryList: all of the above in one document,
 *       Accept: ...;as=APIGroupDiscoveryList         which current clients ask for first
 *
 * Built-in groups come in the order of their tables, then the groups of definitions by name. */
#include "discovery.h"

#include "../../base/base64.h"
#include "../../base/sha256.h"

#include "server.h"

static const struct {
    unsigned bit;
    const char *word;
} verb_words[] = {
    { KIND_CREATE, "create" },
    { KIND_DELETE, "delete" },
    { KIND_DELETECOLLECTION, "deletecollection" },
    { KIND_GET, "get" },
    { KIND_LIST, "list" },
    { KIND_PATCH, "patch" },
    { KIND_UPDATE, "update" },
    { KIND_WATCH, "watch" },
};

static struct json *make_words(struct arena *a, const char *const *words, size_t n)
{
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < n; i++)
        json_push(a, list, json_new_str(a, str_c(words[i])));
    return list;
}

static struct json *make_verbs(struct arena *a, const struct kind *k)
{
    static const char *const custom[] = { "delete", "deletecollection", "get",    "list",
                                          "patch",  "create",           "update", "watch" };
    if (k->custom)
        return make_words(a, custom, countof(custom));
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < countof(verb_words); i++)
        if (k->verbs & verb_words[i].bit)
            json_push(a, list, json_new_str(a, str_c(verb_words[i].word)));
    return list;
}

static struct json *make_sub_verbs(struct arena *a, enum kind_sub sub)
{
    static const char *const usual[] = { "get", "patch", "update" };
    static const char *const finalize[] = { "update" }, *const posted[] = { "create" };
    return kind_of_posted_sub(sub) ? make_words(a, posted, 1)
           : sub == KIND_FINALIZE  ? make_words(a, finalize, 1)
           : sub == KIND_LOG       ? make_words(a, usual, 1)
                                   : make_words(a, usual, countof(usual));
}

static void put_names(struct arena *a, struct json *to, const char *key, const str *names, size_t n)
{
    if (!n)
        return;
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < n; i++)
        json_push(a, list, json_new_str(a, names[i]));
    json_set(a, to, str_c(key), list);
}

/* ---- plain form */

/* Changes when objects of the kind are stored in another version, so that clients know when to migrate stored
 * objects. */
static str storage_hash(struct arena *a, const struct kind *k)
{
    uint8_t digest[SHA256_BYTES];
    struct sha256 hash;
    sha256_init(&hash);
    /* kube-apiserver 1.36 stores these in their older version, which is served no more than here */
    bool older = str_starts(k->kind, S("MutatingAdmissionPolicy"));
    sha256_feed(&hash, arena_printf(a, STR_FMT "/" STR_FMT "/" STR_FMT, STR_ARG(k->group),
                                    STR_ARG(older ? S("v1beta1") : k->version), STR_ARG(k->kind)));
    sha256_finish(&hash, digest);
    auto_buf struct buf text = { 0 };
    base64_encode(&text, (str){ (const char *)digest, 8 });
    return arena_str(a, buf_str(&text));
}

static struct json *plain_resource(struct arena *a, const struct kind *k)
{
    struct json *r = json_new_obj(a);
    json_set_str(a, r, "name", k->plural);
    json_set_str(a, r, "singularName", k->singular);
    json_set_bool(a, r, "namespaced", k->namespaced);
    json_set_str(a, r, "kind", k->kind);
    json_set(a, r, S("verbs"), make_verbs(a, k));
    put_names(a, r, "shortNames", k->short_names, k->n_short_names);
    put_names(a, r, "categories", k->categories, k->n_categories);
    if (!k->answer_only && k->verbs & KIND_CREATE)
        json_set_str(a, r, "storageVersionHash", storage_hash(a, k->storage));
    return r;
}

static struct json *plain_sub(struct arena *a, const struct kind *k, enum kind_sub sub)
{
    struct json *r = json_new_obj(a);
    json_set_str(a, r, "name",
                 arena_printf(a, STR_FMT "/%s", STR_ARG(k->plural), kind_sub_names[sub]));
    json_set_str(a, r, "singularName", S(""));
    json_set_bool(a, r, "namespaced", k->namespaced);
    const struct kind *own = kind_of_sub(k, sub);
    if (!str_eq(own->group, k->group)) {
        json_set_str(a, r, "group", own->group);
        json_set_str(a, r, "version", own->version);
    }
    json_set_str(a, r, "kind", own->kind);
    json_set(a, r, S("verbs"), make_sub_verbs(a, sub));
    return r;
}

/* All resources of a version, each followed by its subresources. */
struct json *discovery_resources(struct server *s, struct arena *a, str group, str version)
{
    struct json *resources = json_new_arr(a), *list = json_new_obj(a);
    for (size_t i = 0; i < s->catalog.all.n; i++) {
        const struct kind *k = s->catalog.all.at[i];
        if (!str_eq(k->group, group) || !str_eq(k->version, version))
            continue;
        json_push(a, resources, plain_resource(a, k));
        for (int sub = KIND_STATUS; sub < KIND_SUB_N; sub++)
            if (k->subresources & 1u << sub)
                json_push(a, resources, plain_sub(a, k, (enum kind_sub)sub));
    }
    if (!json_len(resources))
        return NULL;
    json_set_str(a, list, "kind", S("APIResourceList"));
    json_set_str(a, list, "apiVersion", S("v1"));
    json_set_str(a, list, "groupVersion",
                 group.n ? arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version))
                         : version);
    json_set(a, list, S("resources"), resources);
    return list;
}

/* ---- groups and their versions */

struct version_rank {
    int stage; /* 3 stable, 2 beta, 1 alpha, 0 not a version */
    int64_t major, minor;
};

/* "v1beta2" is stage 2, major 1, minor 2. */
static struct version_rank parse_rank(str v)
{
    struct version_rank r = { 0 };
    if (v.n < 2 || v.p[0] != 'v')
        return r;
    size_t i = 1;
    while (i < v.n && v.p[i] >= '0' && v.p[i] <= '9')
        i++;
    if (str_to_i64((str){ v.p + 1, i - 1 }, &r.major) < 0)
        return (struct version_rank){ 0 };
    str stage = str_from(v, i);
    if (!stage.n)
        r.stage = 3;
    else if (str_starts(stage, S("beta")) && str_to_i64(str_from(stage, 4), &r.minor) == 0)
        r.stage = 2;
    else if (str_starts(stage, S("alpha")) && str_to_i64(str_from(stage, 5), &r.minor) == 0)
        r.stage = 1;
    return r;
}

/* Kubernetes' order of versions: v2 before v1 before v1beta2 before v1alpha1 before all other names. */
static int compare_rank(const void *x, const void *y)
{
    struct version_rank a = parse_rank(*(const str *)x), b = parse_rank(*(const str *)y);
    if (a.stage != b.stage)
        return b.stage - a.stage;
    if (a.major != b.major)
        return a.major < b.major ? 1 : -1;
    if (a.minor != b.minor)
        return a.minor < b.minor ? 1 : -1;
    return str_cmp(*(const str *)x, *(const str *)y);
}

/* The distinct versions of a group, preferred first. The array is in the arena. */
static size_t find_versions(struct server *s, struct arena *a, str group, str **ret)
{
    str *versions = arena_array(a, s->catalog.all.n, sizeof(*versions));
    size_t n = 0;
    for (size_t i = 0; i < s->catalog.all.n; i++) {
        const struct kind *k = s->catalog.all.at[i];
        bool known = !str_eq(k->group, group);
        for (size_t j = 0; j < n && !known; j++)
            known = str_eq(versions[j], k->version);
        if (!known)
            versions[n++] = k->version;
    }
    if (n)
        qsort(versions, n, sizeof(*versions), compare_rank);
    *ret = versions;
    return n;
}

static int compare_text(const void *x, const void *y)
{
    return str_cmp(*(const str *)x, *(const str *)y);
}

/* All groups except core: the built-in ones in their order, then the others by name. */
static size_t find_groups(struct server *s, struct arena *a, str **ret)
{
    str *groups = arena_array(a, s->catalog.all.n, sizeof(*groups));
    size_t n = 0, builtin = 0;
    for (int custom = 0; custom < 2; custom++) {
        for (size_t i = 0; i < s->catalog.all.n; i++) {
            const struct kind *k = s->catalog.all.at[i];
            bool known = !k->group.n || k->custom != (custom == 1);
            for (size_t j = 0; j < n && !known; j++)
                known = str_eq(groups[j], k->group);
            if (!known)
                groups[n++] = k->group;
        }
        builtin = custom ? builtin : n;
    }
    if (n > builtin)
        qsort(groups + builtin, n - builtin, sizeof(*groups), compare_text);
    *ret = groups;
    return n;
}

static struct json *version_entry(struct arena *a, str group, str version)
{
    struct json *v = json_new_obj(a);
    json_set_str(a, v, "groupVersion",
                 arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(group), STR_ARG(version)));
    json_set_str(a, v, "version", version);
    return v;
}

static void put_group(struct server *s, struct arena *a, struct json *to, str group)
{
    str *versions;
    size_t n = find_versions(s, a, group, &versions);
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < n; i++)
        json_push(a, list, version_entry(a, group, versions[i]));
    json_set_str(a, to, "name", group);
    json_set(a, to, S("versions"), list);
    json_set(a, to, S("preferredVersion"), version_entry(a, group, versions[0]));
}

struct json *discovery_group(struct server *s, struct arena *a, str group)
{
    if (!group.n || !catalog_has_group(&s->catalog, group))
        return NULL;
    struct json *g = json_new_obj(a);
    json_set_str(a, g, "kind", S("APIGroup"));
    json_set_str(a, g, "apiVersion", S("v1"));
    put_group(s, a, g, group);
    return g;
}

struct json *discovery_groups(struct server *s, struct arena *a)
{
    str *groups;
    size_t n = find_groups(s, a, &groups);
    struct json *list = json_new_obj(a), *all = json_new_arr(a);
    json_set_str(a, list, "kind", S("APIGroupList"));
    json_set_str(a, list, "apiVersion", S("v1"));
    for (size_t i = 0; i < n; i++) {
        struct json *g = json_new_obj(a);
        put_group(s, a, g, groups[i]);
        json_push(a, all, g);
    }
    json_set(a, list, S("groups"), all);
    return list;
}

/* ---- aggregated form */

/* Built-in kinds leave out group and version where they are those of the enclosing entry; custom kinds
 * write them. */
static struct json *response_kind(struct arena *a, const struct kind *k, enum kind_sub sub)
{
    struct json *r = json_new_obj(a);
    const struct kind *own = kind_of_sub(k, sub);
    bool named = k->custom || !str_eq(own->group, k->group);
    json_set_str(a, r, "group", named ? own->group : S(""));
    json_set_str(a, r, "version", named ? own->version : S(""));
    json_set_str(a, r, "kind", own->kind);
    return r;
}

/* A resource with its subresources nested. */
static struct json *aggregated_resource(struct arena *a, const struct kind *k)
{
    struct json *r = json_new_obj(a), *subs = json_new_arr(a);
    json_set_str(a, r, "resource", k->plural);
    json_set(a, r, S("responseKind"), response_kind(a, k, KIND_MAIN));
    json_set_str(a, r, "scope", k->namespaced ? S("Namespaced") : S("Cluster"));
    json_set_str(a, r, "singularResource", k->singular);
    json_set(a, r, S("verbs"), make_verbs(a, k));
    put_names(a, r, "shortNames", k->short_names, k->n_short_names);
    put_names(a, r, "categories", k->categories, k->n_categories);
    for (int sub = KIND_STATUS; sub < KIND_SUB_N; sub++) {
        if (!(k->subresources & 1u << sub))
            continue;
        struct json *entry = json_new_obj(a);
        json_set_str(a, entry, "subresource", str_c(kind_sub_names[sub]));
        json_set(a, entry, S("responseKind"), response_kind(a, k, (enum kind_sub)sub));
        json_set(a, entry, S("verbs"), make_sub_verbs(a, (enum kind_sub)sub));
        json_push(a, subs, entry);
    }
    if (json_len(subs))
        json_set(a, r, S("subresources"), subs);
    return r;
}

/* A group with all its versions and their resources. */
static struct json *aggregated_group(struct server *s, struct arena *a, str group)
{
    struct json *g = json_new_obj(a), *versions = json_new_arr(a), *metadata = json_new_obj(a);
    if (group.n)
        json_set_str(a, metadata, "name", group);
    json_set(a, metadata, S("creationTimestamp"), json_new_null(a));
    json_set(a, g, S("metadata"), metadata);
    str *names;
    size_t n = find_versions(s, a, group, &names);
    for (size_t i = 0; i < n; i++) {
        struct json *v = json_new_obj(a), *resources = json_new_arr(a);
        json_set_str(a, v, "version", names[i]);
        for (size_t j = 0; j < s->catalog.all.n; j++) {
            const struct kind *k = s->catalog.all.at[j];
            if (str_eq(k->group, group) && str_eq(k->version, names[i]))
                json_push(a, resources, aggregated_resource(a, k));
        }
        json_set(a, v, S("resources"), resources);
        json_set_str(a, v, "freshness", S("Current"));
        json_push(a, versions, v);
    }
    json_set(a, g, S("versions"), versions);
    return g;
}

struct json *discovery_aggregated(struct server *s, struct arena *a, bool core, const char *version)
{
    struct json *list = json_new_obj(a), *items = json_new_arr(a);
    json_set_str(a, list, "kind", S("APIGroupDiscoveryList"));
    json_set_str(a, list, "apiVersion", arena_printf(a, "apidiscovery.k8s.io/%s", version));
    json_set(a, list, S("metadata"), json_new_obj(a));
    str none = S(""), *groups = &none;
    size_t n = core ? 1 : find_groups(s, a, &groups);
    for (size_t i = 0; i < n; i++)
        json_push(a, items, aggregated_group(s, a, groups[i]));
    json_set(a, list, S("items"), items);
    return list;
}
