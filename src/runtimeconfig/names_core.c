/* Names: see names_core.h.
 *
 * Every function reproduces a rule of the original operator byte for byte, including its order of cutting, trimming
 * and hashing: a name that differs in one character would orphan a running InferenceService. The golden vectors
 * aim-names pin them. Hashes are the first hexadecimal digits of SHA-256. Text is read as UTF-8; a character that is
 * not allowed counts once, whatever its length in bytes.
 *
 * The patterns at the end are those of Go's path.Match, which labelPropagation uses. */
#include "names_core.h"

#include "../base/buf.h"
#include "../base/sha256.h"
#include "../base/utf8.h"

enum { SHORT_HASH = 8, TINY_HASH = 4, PREDICTOR_SUFFIX = 10 /* "-predictor" */ };

static str hash_of(struct arena *a, str text, size_t digits)
{
    char hex[SHA256_HEX + 1];
    sha256_hex(text, hex);
    return arena_str(a, (str){ hex, digits });
}

static bool is_one_of(char c, str set)
{
    return str_find_char(set, c) != SIZE_MAX;
}

static str trim_end(str s, str set)
{
    while (s.n && is_one_of(s.p[s.n - 1], set))
        s.n--;
    return s;
}

static str trim_ends(str s, str set)
{
    while (s.n && is_one_of(s.p[0], set))
        s = str_from(s, 1);
    return trim_end(s, set);
}

static bool is_alphanumeric(uint32_t c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

/* Copies the text into the arena and releases the buffer that holds it. */
static str move_to_arena(struct arena *a, struct buf *b, str text)
{
    str copy = arena_str(a, text);
    buf_done(b);
    return copy;
}

/* ---- texts */

/* Runs of invalid characters become one "_"; separators at both ends are removed after cutting as well. */
str aim_names_label_value(struct arena *a, str text)
{
    struct buf b = { 0 };
    bool run = false;
    for (str rest = text; rest.n;) {
        uint32_t c = utf8_next(&rest);
        bool fine = is_alphanumeric(c) || c == '.' || c == '_' || c == '-';
        if (fine)
            buf_putc(&b, (char)c);
        else if (!run)
            buf_putc(&b, '_');
        run = !fine;
    }
    str set = S("_.-");
    str value = trim_end(str_upto(trim_ends(buf_str(&b), set), NAMES_LABEL_MAX), set);
    return move_to_arena(a, &b, value.n ? value : S("unknown"));
}

str aim_names_label_key(struct arena *a, const char *group, const char *name)
{
    return arena_printf(a, "%s/%s", group, name);
}

static bool is_dot_or_dash(char c)
{
    return c == '-' || c == '.';
}

/* Runs of two or more of "-" and "." become one "-". */
static void squeeze_separators(struct buf *b)
{
    size_t to = 0;
    for (size_t i = 0; i < b->n;) {
        size_t end = i;
        while (end < b->n && is_dot_or_dash(b->p[end]))
            end++;
        b->p[to++] = end - i > 1 ? '-' : b->p[i];
        i = MAX(end, i + 1);
    }
    b->n = to;
}

/* Order matters: replace, trim, squeeze, cut, trim again, as in the original. */
str aim_names_rfc1123(struct arena *a, str text)
{
    struct buf b = { 0 };
    bool run = false;
    for (str rest = text; rest.n;) {
        uint32_t c = utf8_lower(utf8_next(&rest));
        bool fine = (is_alphanumeric(c) || c == '-' || c == '.');
        if (fine)
            buf_putc(&b, (char)c);
        else if (!run)
            buf_putc(&b, '-');
        run = !fine;
    }
    str trimmed = trim_ends(buf_str(&b), S("-."));
    struct buf inner = { 0 };
    buf_put(&inner, trimmed);
    squeeze_separators(&inner);
    buf_done(&b);
    return move_to_arena(a, &inner, trim_end(str_upto(buf_str(&inner), NAMES_LABEL_MAX), S("-.")));
}

str aim_names_rfc1123_strict(struct arena *a, str text)
{
    struct buf b = { 0 };
    for (str rest = text; rest.n;) {
        uint32_t c = utf8_lower(utf8_next(&rest));
        buf_putc(&b, is_alphanumeric(c) ? (char)c : '-');
    }
    str trimmed = str_upto(trim_ends(buf_str(&b), S("-")), NAMES_LABEL_MAX);
    return move_to_arena(a, &b, trim_end(trimmed, S("-")));
}

/* ---- names */

/* A short name is used as it is, so that most names are the same as that of the service. */
str aim_names_inference_service(struct arena *a, str service, str ns)
{
    size_t taken = PREDICTOR_SUFFIX + 1 + ns.n;
    size_t room = taken < NAMES_LABEL_MAX ? NAMES_LABEL_MAX - taken : 0;
    if (service.n <= room)
        return arena_str(a, service);
    size_t prefix = room > SHORT_HASH + 2 ? room - SHORT_HASH - 1 : 1;
    str joined = arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(str_upto(service, prefix)),
                              STR_ARG(hash_of(a, service, SHORT_HASH)));
    return aim_names_rfc1123(a, joined);
}

/* Splits "registry:5000/group/image:tag" or "...@sha256:digest"; of a digest, six digits are the tag. */
static void cut_image(str image, str *ret_name, str *ret_tag)
{
    enum { DIGEST_DIGITS = 6 };
    str name = image;
    for (size_t slash; (slash = str_find_char(name, '/')) != SIZE_MAX;)
        name = str_from(name, slash + 1);
    size_t at = str_find_char(name, '@'), colon = str_find_char(name, ':');
    *ret_tag = S("latest");
    if (at != SIZE_MAX) {
        str digest = str_from(name, at + 1);
        size_t algorithm = str_find_char(digest, ':');
        digest = algorithm == SIZE_MAX ? digest : str_from(digest, algorithm + 1);
        *ret_tag = str_upto(digest, DIGEST_DIGITS);
    } else if (colon != SIZE_MAX) {
        *ret_tag = str_from(name, colon + 1);
    }
    *ret_name = str_upto(name, MIN(at, colon));
}

/* Lower case; every character but letters and digits becomes one "-". */
static str plain_name(struct arena *a, str text)
{
    struct buf b = { 0 };
    for (str rest = text; rest.n;) {
        uint32_t c = utf8_lower(utf8_next(&rest));
        buf_putc(&b, is_alphanumeric(c) ? (char)c : '-');
    }
    return move_to_arena(a, &b, trim_ends(buf_str(&b), S("-")));
}

/* The tag and the hash are always complete; only the image name is cut. */
str aim_names_model_of_image(struct arena *a, str image)
{
    str name, tag;
    cut_image(image, &name, &tag);
    name = plain_name(a, name);
    tag = plain_name(a, tag);
    size_t taken = tag.n + SHORT_HASH + 2;
    size_t room = taken < NAMES_LABEL_MAX ? NAMES_LABEL_MAX - taken : 1;
    return arena_printf(a, STR_FMT "-" STR_FMT "-" STR_FMT,
                        STR_ARG(trim_end(str_upto(name, room), S("-"))), STR_ARG(tag),
                        STR_ARG(hash_of(a, image, SHORT_HASH)));
}

static str short_metric(str metric)
{
    return str_eqc(metric, "latency")      ? S("lat")
           : str_eqc(metric, "throughput") ? S("thr")
                                           : metric;
}

static void put_part(struct buf *b, str part)
{
    if (part.n)
        buf_printf(b, "-" STR_FMT, STR_ARG(part));
}

/* "<model>-<gpus>-<metric>-<precision>-<hash>"; the model is cut so that the rest fits. */
str aim_names_template_of_deployment(struct arena *a, str model,
                                     const struct aim_names_deployment *d)
{
    struct buf all = { 0 }, tail = { 0 };
    str count = d->gpu_count > 0 ? arena_printf(a, "x%lld", (long long)d->gpu_count) : S("");
    str first = d->gpu_model.n ? d->gpu_model : count;
    if (count.n && d->gpu_model.n)
        first = arena_printf(a, "%lldx-" STR_FMT, (long long)d->gpu_count, STR_ARG(d->gpu_model));
    put_part(&tail, first);
    put_part(&tail, short_metric(d->metric));
    put_part(&tail, d->precision);

    buf_put(&all, model);
    put_part(&all, d->gpu_model);
    put_part(&all, count);
    put_part(&all, d->metric);
    put_part(&all, d->precision);
    put_part(&tail, hash_of(a, buf_str(&all), TINY_HASH));
    buf_done(&all);

    size_t room = tail.n < NAMES_LABEL_MAX ? NAMES_LABEL_MAX - tail.n : 1;
    str name = arena_printf(a, STR_FMT STR_FMT, STR_ARG(trim_end(str_upto(model, room), S("-."))),
                            STR_ARG(buf_str(&tail)));
    buf_done(&tail);
    return aim_names_rfc1123(a, name);
}

str aim_names_derived_template(struct arena *a, str base, str overrides_json)
{
    enum { INFIX = 5 /* "-ovr-" */ };
    str head = trim_end(str_upto(base, NAMES_LABEL_MAX - INFIX - SHORT_HASH), S("-."));
    return arena_printf(a, STR_FMT "-ovr-" STR_FMT, STR_ARG(head),
                        STR_ARG(hash_of(a, overrides_json, SHORT_HASH)));
}

str aim_names_append_hash(struct arena *a, str name, str of)
{
    str head = trim_end(str_upto(name, NAMES_LABEL_MAX - SHORT_HASH - 1), S("-."));
    return arena_printf(a, STR_FMT "-" STR_FMT, STR_ARG(head), STR_ARG(hash_of(a, of, SHORT_HASH)));
}

str aim_names_service_volume(struct arena *a, str inference_service)
{
    return arena_printf(a, STR_FMT "-temp-cache", STR_ARG(inference_service));
}

str aim_names_model_cache(struct arena *a, str model)
{
    struct buf b = { 0 };
    buf_put(&b, model);
    for (size_t i = 0; i < b.n; i++)
        b.p[i] = b.p[i] == '.' ? '-' : b.p[i];
    str name = aim_names_rfc1123(a, buf_str(&b));
    buf_done(&b);
    return name;
}

str aim_names_model_cache_volume(struct arena *a, str cache)
{
    return arena_printf(a, STR_FMT "-cache", STR_ARG(cache));
}

/* ---- sizes */

int64_t aim_names_volume_bytes(int64_t bytes, int64_t headroom_percent)
{
    const int64_t gib = (int64_t)1 << 30;
    if (bytes <= 0)
        return 0;
    __extension__ typedef __int128 wide; /* size times percent may exceed 64 bits */
    wide hundredths = (wide)bytes * (100 + MAX(headroom_percent, (int64_t)0));
    wide blocks = (hundredths + (wide)gib * 100 - 1) / ((wide)gib * 100);
    return (int64_t)MIN(blocks, (wide)(INT64_MAX / gib)) * gib;
}

/* ---- patterns */

/* Consumes one character of a class, escaped or not; false if there is none. */
static bool class_char(str *pattern, uint32_t *ret)
{
    if (!pattern->n || pattern->p[0] == '-' || pattern->p[0] == ']')
        return false;
    if (pattern->p[0] == '\\')
        *pattern = str_from(*pattern, 1);
    if (!pattern->n)
        return false;
    *ret = utf8_next(pattern);
    return true;
}

/* Consumes the class after "["; returns whether it contains `c`, or -1 if it is invalid. */
static int class_match(str *pattern, uint32_t c)
{
    bool negated = pattern->n && pattern->p[0] == '^', in = false;
    if (negated)
        *pattern = str_from(*pattern, 1);
    for (size_t ranges = 0;; ranges++) {
        uint32_t low, high;
        if (ranges && pattern->n && pattern->p[0] == ']') {
            *pattern = str_from(*pattern, 1);
            return in != negated;
        }
        if (!class_char(pattern, &low))
            return -1;
        high = low;
        if (pattern->n && pattern->p[0] == '-') {
            *pattern = str_from(*pattern, 1);
            if (!class_char(pattern, &high))
                return -1;
        }
        in = in || (low <= c && c <= high);
    }
}

/* Checks the whole pattern first: a match must not depend on how far the key gets. */
static bool pattern_is_good(str pattern)
{
    while (pattern.n) {
        char c = pattern.p[0];
        pattern = str_from(pattern, 1);
        if (c == '[' && class_match(&pattern, 0) < 0)
            return false;
        if (c == '\\') {
            if (!pattern.n)
                return false;
            utf8_next(&pattern);
        }
    }
    return true;
}

/* Consumes one element other than "*" from pattern and key; false if it does not match. */
static bool step_matches(str *pattern, str *key)
{
    if (!key->n)
        return false;
    uint32_t c = utf8_next(key);
    char op = pattern->p[0];
    if (op == '[') {
        *pattern = str_from(*pattern, 1);
        return class_match(pattern, c) > 0;
    }
    if (op == '?') {
        *pattern = str_from(*pattern, 1);
        return c != '/';
    }
    if (op == '\\')
        *pattern = str_from(*pattern, 1);
    return utf8_next(pattern) == c;
}

/* On a mismatch only the last "*" is extended by one character. No recursion: a hostile pattern costs at most the
 * product of both lengths. */
bool aim_names_match_key(str pattern, str key, bool *ret_bad)
{
    bool good = pattern_is_good(pattern);
    if (ret_bad)
        *ret_bad = !good;
    if (!good)
        return false;
    str star = { 0 }, star_key = { 0 };
    while (pattern.n || key.n) {
        if (pattern.n && pattern.p[0] == '*') {
            pattern = star = str_from(pattern, 1);
            star_key = key;
            continue;
        }
        if (pattern.n && step_matches(&pattern, &key))
            continue;
        if (!star.p || !star_key.n || star_key.p[0] == '/')
            return false;
        utf8_next(&star_key);
        pattern = star;
        key = star_key;
    }
    return true;
}

str aim_names_quote(struct arena *a, str text)
{
    auto_buf struct buf out = { 0 };
    buf_put(&out, S("\""));
    for (size_t i = 0; i < text.n; i++) {
        if (text.p[i] == '"' || text.p[i] == '\\')
            buf_put(&out, S("\\"));
        buf_put(&out, (str){ text.p + i, 1 });
    }
    buf_put(&out, S("\""));
    return arena_str(a, buf_str(&out));
}
