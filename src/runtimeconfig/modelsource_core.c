/* Model sources: which images of a registry become models; see modelsource_core.h.
 *
 *   filters   image patterns ("ghcr.io/acme/llama-*", "acme/llama:1.2.3"), each with exclusions and version constraints
 *   images    those that a registry listed, or, for filters without wildcards, those that the filter itself names
 *   models    one per image that matches and does not exist yet, up to maxModels
 *
 * A source creates models and never deletes one: an image that disappears from a registry, or a registry that
 * does not answer, must not take down the services that use it.
 *
 * Versions are semantic versions. Constraints are those of the original (">=1.2 <2 || 3"), to which we add ~ and ^.
 * `as_original` restores its behavior exactly, for the golden vectors: it does not know ~ and ^, and creates an image
 * that two filters found twice. */
#include "modelsource_core.h"

#include "../base/map.h"
#include "derive_core.h"

static str text_of(const struct json *object, const char *key)
{
    return json_text(json_get(object, key));
}

/* ---- filters */

static size_t find_last(str text, char c)
{
    for (size_t i = text.n; i > 0; i--)
        if (text.p[i - 1] == c)
            return i - 1;
    return SIZE_MAX;
}

static bool is_hub(str host)
{
    return str_eqc(host, "docker.io") || str_eqc(host, "index.docker.io");
}

/* Splits an image pattern. Docker Hub is the empty registry, since it has two names, and its official images
 * get "library/". */
struct aim_modelsource_filter aim_modelsource_filter(struct arena *a, str image)
{
    struct aim_modelsource_filter f = { .wildcard = str_find_char(image, '*') != SIZE_MAX };
    size_t at = str_find_char(image, '@');
    if (at != SIZE_MAX)
        image = str_upto(image, at);
    size_t slash = str_find_char(image, '/');
    str first = slash == SIZE_MAX ? S("") : str_upto(image, slash);
    bool host = str_find_char(first, '.') != SIZE_MAX || str_find_char(first, ':') != SIZE_MAX;
    if (host) {
        f.registry = is_hub(first) ? S("") : first;
        image = str_from(image, slash + 1);
    }
    size_t colon = find_last(image, ':');
    if (colon != SIZE_MAX) {
        f.tag = str_from(image, colon + 1);
        image = str_upto(image, colon);
    }
    bool official = !f.registry.n && !f.wildcard && str_find_char(image, '/') == SIZE_MAX;
    f.repository = official ? arena_printf(a, "library/" STR_FMT, STR_ARG(image)) : image;
    return f;
}

/* ---- versions */

struct version {
    int64_t part[3];
    str pre; /* pre-release; empty: none */
};

static bool is_numeric(str text)
{
    for (size_t i = 0; i < text.n; i++)
        if (text.p[i] < '0' || text.p[i] > '9')
            return false;
    return text.n > 0;
}

/* "1.2.3-rc1+build"; `partial` allows "1" and "1.2". */
static bool read_version(str text, bool partial, struct version *ret)
{
    struct version v = { 0 };
    if (str_starts(text, S("v")))
        text = str_from(text, 1);
    size_t plus = str_find_char(text, '+');
    if (plus != SIZE_MAX)
        text = str_upto(text, plus);
    size_t dash = str_find_char(text, '-');
    if (dash != SIZE_MAX) {
        v.pre = str_from(text, dash + 1);
        text = str_upto(text, dash);
        if (!v.pre.n)
            return false;
    }
    str part;
    size_t n = 0;
    for (; str_cut(&text, '.', &part); n++) {
        bool zero = part.n > 1 && part.p[0] == '0';
        if (n == 3 || !is_numeric(part) || zero || str_to_i64(part, &v.part[n]))
            return false;
    }
    *ret = v;
    return n == 3 || (partial && n > 0);
}

/* Parts of a pre-release: numbers before texts, a prefix first. */
static int compare_pre(str a, str b)
{
    if (!a.n || !b.n)
        return a.n ? -1 : b.n ? 1 : 0;
    str x, y;
    for (;;) {
        bool more = str_cut(&a, '.', &x), other = str_cut(&b, '.', &y);
        if (!more || !other)
            return more ? 1 : other ? -1 : 0;
        int64_t i = 0, k = 0;
        bool nx = is_numeric(x) && !str_to_i64(x, &i), ny = is_numeric(y) && !str_to_i64(y, &k);
        int order = nx && ny ? (i > k) - (i < k) : nx ? -1 : ny ? 1 : str_cmp(x, y);
        if (order)
            return order;
    }
}

static int compare_versions(const struct version *a, const struct version *b)
{
    for (int i = 0; i < 3; i++)
        if (a->part[i] != b->part[i])
            return a->part[i] < b->part[i] ? -1 : 1;
    return compare_pre(a->pre, b->pre);
}

struct constraint {
    char op; /* '=', '!', '<', '>', 'l' (<=), 'g' (>=), '~', '^' */
    struct version v;
};

/* Takes the next constraint from the text: an operator, blanks, a version. */
static bool take_constraint(str *text, bool as_original, struct constraint *ret)
{
    static const struct {
        const char *text;
        char op;
    } ops[] = { { ">=", 'g' }, { "<=", 'l' }, { "==", '=' }, { "!=", '!' }, { ">", '>' },
                { "<", '<' },  { "=", '=' },  { "!", '!' },  { "~", '~' },  { "^", '^' } };
    size_t n = 0;
    *ret = (struct constraint){ .op = '=' };
    for (size_t i = 0; i < countof(ops); i++)
        if (str_starts(*text, str_c(ops[i].text))) {
            ret->op = ops[i].op;
            *text = str_from(*text, strlen(ops[i].text));
            break;
        }
    while (text->n && text->p[0] == ' ')
        *text = str_from(*text, 1);
    while (n < text->n && text->p[n] != ' ')
        n++;
    bool known = !as_original || (ret->op != '~' && ret->op != '^');
    bool valid = read_version(str_upto(*text, n), true, &ret->v);
    *text = str_from(*text, n);
    return known && valid;
}

/* ~1.2.3 is 1.2.x from there on; ^1.2.3 is 1.x.y from there on, but ^0.2.3 only 0.2.x. */
static bool satisfies_constraint(const struct version *v, const struct constraint *c)
{
    int order = compare_versions(v, &c->v);
    bool major = v->part[0] == c->v.part[0], minor = major && v->part[1] == c->v.part[1];
    switch (c->op) {
    case 'g':
        return order >= 0;
    case 'l':
        return order <= 0;
    case '>':
        return order > 0;
    case '<':
        return order < 0;
    case '!':
        return order != 0;
    case '~':
        return order >= 0 && minor;
    case '^':
        return order >= 0 && major && (v->part[0] > 0 || minor);
    default:
        return order == 0;
    }
}

/* Constraints separated by blanks must all hold; false: one of them cannot be read. */
static bool read_group(str text, bool as_original, const struct version *v, bool *ret_holds)
{
    struct constraint c;
    text = str_trim(text);
    *ret_holds = true;
    if (!text.n)
        return false;
    for (; text.n; text = str_trim(text)) {
        if (!take_constraint(&text, as_original, &c))
            return false;
        *ret_holds = *ret_holds && satisfies_constraint(v, &c);
    }
    return true;
}

/* Groups separated by "||": one must hold; false: the text cannot be read. */
static bool read_range(str text, bool as_original, const struct version *v, bool *ret_holds)
{
    *ret_holds = false;
    for (;;) {
        size_t at = str_find(text, S("||"));
        bool one;
        if (!read_group(at == SIZE_MAX ? text : str_upto(text, at), as_original, v, &one))
            return false;
        *ret_holds = *ret_holds || one;
        if (at == SIZE_MAX)
            return true;
        text = str_from(text, at + 2);
    }
}

/* All constraints must hold. A tag that is not a version satisfies none; a constraint that cannot be read is
 * skipped. */
bool aim_modelsource_satisfies(str tag, const struct json *constraints, bool as_original)
{
    struct version v;
    bool ok;
    if (!json_len(constraints))
        return true;
    if (!read_version(tag, false, &v))
        return false;
    for (size_t i = 0; i < json_len(constraints); i++)
        if (read_range(json_text(json_item(constraints, i)), as_original, &v, &ok) && !ok)
            return false;
    return true;
}

/* ---- matching */

/* A filter's own constraints replace those of the source; they do not add to them. */
static const struct json *versions_of(const struct json *filter, const struct json *versions)
{
    const struct json *own = json_get(filter, "versions");
    return json_len(own) ? own : versions;
}

/* A tag in the filter decides alone; otherwise the version constraints of the filter, or of the source, apply. */
bool aim_modelsource_matches(struct arena *a, const struct json *filter,
                             const struct json *versions, const struct aim_modelsource_image *image,
                             bool as_original)
{
    struct aim_modelsource_filter f = aim_modelsource_filter(a, text_of(filter, "image"));
    const struct json *exclude = json_get(filter, "exclude");
    if (f.registry.n && !str_eq(f.registry, image->registry))
        return false;
    if (!str_matches_glob(f.repository, image->repository, '*'))
        return false;
    for (size_t i = 0; i < json_len(exclude); i++)
        if (str_eq(json_text(json_item(exclude, i)), image->repository))
            return false;
    if (f.tag.n)
        return str_eq(f.tag, image->tag);
    return aim_modelsource_satisfies(image->tag, versions_of(filter, versions), as_original);
}

/* "1.2.3" selects one tag, and needs no list of them. */
bool aim_modelsource_is_version(str text)
{
    struct version v;
    return read_version(text, false, &v);
}

/* The version that is compared does not matter: only whether the text can be read. */
static str find_unreadable(const struct json *constraints)
{
    struct version any = { 0 };
    bool holds;
    for (size_t i = 0; i < json_len(constraints); i++)
        if (!read_range(json_text(json_item(constraints, i)), false, &any, &holds))
            return json_text(json_item(constraints, i));
    return S("");
}

str aim_modelsource_find_unreadable(const struct json *source)
{
    const struct json *filters = json_at(source, "spec", "filters", NULL);
    str bad = find_unreadable(json_at(source, "spec", "versions", NULL));
    for (size_t i = 0; !bad.n && i < json_len(filters); i++)
        bad = find_unreadable(json_get(json_item(filters, i), "versions"));
    return bad;
}

/* Images that need no registry: the filter has no wildcard, and a tag or exact versions. Returns their number. */
size_t aim_modelsource_static_of(struct arena *a, const struct json *source,
                                 const struct json *filter, struct aim_modelsource_image **ret)
{
    str registry = json_text(json_at(source, "spec", "registry", NULL));
    struct aim_modelsource_filter f = aim_modelsource_filter(a, text_of(filter, "image"));
    const struct json *versions = versions_of(filter, json_at(source, "spec", "versions", NULL));
    str host = f.registry.n ? f.registry : registry.n ? registry : S("docker.io");
    struct aim_modelsource_image *at = arena_array(a, json_len(versions) + 1, sizeof(*at));
    size_t n = 0;
    *ret = at;
    if (f.wildcard)
        return 0;
    if (f.tag.n)
        at[n++] = (struct aim_modelsource_image){ host, f.repository, f.tag };
    for (size_t k = 0; !f.tag.n && k < json_len(versions); k++)
        if (aim_modelsource_is_version(json_text(json_item(versions, k))))
            at[n++] = (struct aim_modelsource_image){ host, f.repository,
                                                      json_text(json_item(versions, k)) };
    return n;
}

size_t aim_modelsource_static(struct arena *a, const struct json *source,
                              struct aim_modelsource_image **ret)
{
    const struct json *filters = json_at(source, "spec", "filters", NULL);
    struct aim_modelsource_image *at, *one;
    size_t n = 0, room = 1;
    for (size_t i = 0; i < json_len(filters); i++)
        room += 1 + json_len(versions_of(json_item(filters, i),
                                         json_at(source, "spec", "versions", NULL)));
    at = arena_array(a, room, sizeof(*at));
    for (size_t i = 0; i < json_len(filters); i++) {
        size_t more = aim_modelsource_static_of(a, source, json_item(filters, i), &one);
        for (size_t k = 0; k < more; k++)
            at[n++] = one[k];
    }
    *ret = at;
    return n;
}

/* ---- models */

str aim_modelsource_image_text(struct arena *a, const struct aim_modelsource_image *image)
{
    return arena_printf(a, STR_FMT "/" STR_FMT ":" STR_FMT, STR_ARG(image->registry),
                        STR_ARG(image->repository), STR_ARG(image->tag));
}

/* The name is derived from the image, so that the same image always gives the same model. */
struct json *aim_modelsource_model(struct arena *a, const char *group, const struct json *source,
                                   const struct aim_modelsource_image *image)
{
    enum { DIGITS = 6 };
    const struct json *secrets = json_at(source, "spec", "imagePullSecrets", NULL);
    str parts[] = { image->repository, image->tag };
    str hashed[] = { image->registry, image->repository, image->tag };
    struct json *model = json_new_obj(a), *metadata = json_make(a, model, "metadata", NULL);
    struct json *labels = json_make(a, metadata, "labels", NULL);
    struct json *notes = json_make(a, metadata, "annotations", NULL);
    json_set_str(a, metadata, "name",
                 aim_derive_name(a, parts, countof(parts),
                                 aim_derive_inputs(a, hashed, countof(hashed)), DIGITS));
    json_set_str(a, labels, arena_printf(a, "%s/model-source", group).p,
                 json_text(json_at(source, "metadata", "name", NULL)));
    json_set_str(a, labels, arena_printf(a, "%s/origin", group).p, S("auto-generated"));
    json_set_str(a, notes, arena_printf(a, "%s/source-registry", group).p, image->registry);
    json_set_str(a, notes, arena_printf(a, "%s/source-repository", group).p, image->repository);
    json_set_str(a, notes, arena_printf(a, "%s/source-tag", group).p, image->tag);
    json_set_str(a, json_make(a, model, "spec", NULL), "image",
                 aim_modelsource_image_text(a, image));
    if (json_len(secrets))
        json_set(a, json_get(model, "spec"), S("imagePullSecrets"), json_copy(a, secrets));
    return model;
}

/* ---- state */

/* One failed filter degrades a source; the others keep finding images. */
static struct aim_engine_component filters_component(struct arena *a,
                                                     const struct aim_modelsource_facts *f)
{
    if (!f->filters)
        return aim_engine_make("Filters", ENGINE_PROGRESSING, "NoFilters",
                               S("No filters configured"));
    if (!f->failed)
        return aim_engine_make("Filters", ENGINE_READY, "AllFiltersSucceeded",
                               arena_printf(a, "All %zu filters succeeded", f->filters));
    if (f->failed == f->filters)
        return aim_engine_make("Filters", ENGINE_FAILED, "AllFiltersFailed",
                               arena_printf(a, "All %zu filters failed", f->filters));
    return aim_engine_make("Filters", ENGINE_DEGRADED, "SomeFiltersFailed",
                           arena_printf(a, "%zu of %zu filters had errors", f->failed, f->filters));
}

/* Whether the image has a model, or was found before by another filter. A registry may have thousands. */
static bool is_known(struct arena *a, const struct aim_modelsource_facts *f, struct map *known,
                     size_t index)
{
    static char here;
    str image = aim_modelsource_image_text(a, &f->found[index]);
    if (map_get(known, image))
        return true;
    if (!f->as_original)
        map_put(known, image, &here);
    return false;
}

/* What to create, and the condition that reports the limit. Existing models count toward it. */
struct aim_modelsource_state aim_modelsource_state(struct arena *a,
                                                   const struct aim_modelsource_facts *f)
{
    enum { DEFAULT_MAX = 100 };
    struct aim_modelsource_state s = { .available = (int64_t)f->found_n,
                                       .created = (int64_t)f->existing_n };
    int64_t most = json_int(json_at(f->source, "spec", "maxModels", NULL), DEFAULT_MAX);
    struct map known = { 0 };
    for (size_t i = 0; i < f->existing_n; i++)
        map_put(&known, f->existing[i], &known);
    s.creates = arena_array(a, f->found_n + 1, sizeof(*s.creates));
    for (size_t i = 0; i < f->found_n; i++) {
        if (is_known(a, f, &known, i))
            continue;
        if (s.created >= most) {
            s.limit_reached = true;
            break;
        }
        s.creates[s.creates_n++] = i;
        s.created++;
    }
    map_done(&known);
    s.components[0] = aim_engine_make("ExistingModels", ENGINE_READY, "Listed",
                                      arena_printf(a, "Found %zu existing models", f->existing_n));
    s.components[1] = filters_component(a, f);
    s.limit = (struct aim_engine_condition){
        .type = S("MaxModelsLimitReached"),
        .truth = s.limit_reached ? ENGINE_TRUE : ENGINE_FALSE,
        .reason = s.limit_reached ? S("LimitReached") : S("WithinLimit"),
        .message = s.limit_reached
                       ? arena_printf(a, "Limit reached: %lld created, %lld available",
                                      (long long)s.created, (long long)s.available)
                       : arena_printf(a, "Created %lld models, within limit", (long long)s.created),
    };
    return s;
}
