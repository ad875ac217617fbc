/* Flags: see flags.h.
 *
 * Every flag is one row of the caller's table: name, kind, target. Parsing writes the target in
 * place, so the order of sources is the order of calls, and a caller that wants flags to
 * override the environment parses them again afterwards. Texts are borrowed from argv or the
 * environment. */
#include "flags.h"

#include "../base/duration.h"

#include <ctype.h>

/* NULL if no row has this name or letter; titles are not flags. */
static const struct flag *find_flag(const struct flag *flags, str name)
{
    for (; flags->name; flags++)
        if (flags->kind != FLAG_TITLE &&
            (str_eqc(name, flags->name) || (name.n == 1 && name.p[0] == flags->letter)))
            return flags;
    return NULL;
}

/* Accepts true, false, 1 and 0, in upper or lower case. */
static int set_bool(const struct flag *f, str value, err_t *e)
{
    bool on = str_eq_nocase(value, S("true")) || str_eq(value, S("1"));
    bool off = str_eq_nocase(value, S("false")) || str_eq(value, S("0"));
    if (!on && !off)
        return err_set(e, EINVAL, "--%s is \"" STR_FMT "\", but must be true or false", f->name,
                       STR_ARG(value));
    *(bool *)f->target = on;
    return 0;
}

/* Parses the text into the target; the target is unchanged on failure. */
static int set_value(const struct flag *f, const char *text, err_t *e)
{
    str value = str_c(text);
    int r;
    switch (f->kind) {
    case FLAG_BOOL:
        return set_bool(f, value, e);
    case FLAG_INT:
        if (str_to_i64(value, f->target) < 0)
            return err_set(e, EINVAL, "--%s is \"%s\", but must be a whole number", f->name, text);
        return 0;
    case FLAG_REAL:
        if (str_to_f64(value, f->target) < 0)
            return err_set(e, EINVAL, "--%s is \"%s\", but must be a number", f->name, text);
        return 0;
    case FLAG_DURATION:
        r = duration_parse(value, f->target, e);
        return r < 0 ? err_wrap(e, "--%s", f->name) : 0;
    default:
        *(const char **)f->target = text;
        return 0;
    }
}

static int take_word(struct flag_words *words, const char *word, err_t *e)
{
    if (!words)
        return err_set(e, EINVAL, "unexpected argument \"%s\"; see --help", word);
    words->at[words->n++] = word;
    return 0;
}

/* Parses one flag of argv; moves `*at` past its value. */
static int take_flag(const struct flag *flags, char **argv, int *at, err_t *e)
{
    str text = str_from(str_c(argv[*at]), argv[*at][1] == '-' ? 2 : 1);
    size_t equals = str_find_char(text, '=');
    const struct flag *f = find_flag(flags, str_upto(text, equals));
    if (!f)
        return err_set(e, EINVAL, "unknown flag %.*s; see --help", (int)strcspn(argv[*at], "="),
                       argv[*at]);
    if (equals != SIZE_MAX)
        return set_value(f, text.p + equals + 1, e);
    if (f->kind == FLAG_BOOL)
        return set_value(f, "true", e);
    if (!argv[*at + 1])
        return err_set(e, EINVAL, "--%s needs a value (%s)", f->name, f->value);
    return set_value(f, argv[++*at], e);
}

int flags_parse(const struct flag *flags, int argc, char **argv, bool *ret_help,
                struct flag_words *words, err_t *e)
{
    bool only_words = false;
    for (int at = 1; at < argc; at++) {
        int r = 0;
        if (!only_words && (!strcmp(argv[at], "--help") || !strcmp(argv[at], "-h")))
            *ret_help = true;
        else if (!only_words && !strcmp(argv[at], "--"))
            only_words = true;
        else if (!only_words && argv[at][0] == '-' && argv[at][1]) /* "-" is standard input */
            r = take_flag(flags, argv, &at, e);
        else
            r = take_word(words, argv[at], e);
        if (r < 0)
            return r;
    }
    return 0;
}

/* --log-level is $LOG_LEVEL: upper case, dashes become underscores. Empty variables count as unset. */
int flags_from_env(const struct flag *flags, err_t *e)
{
    for (const struct flag *f = flags; f->name; f++) {
        char name[64] = "";
        for (size_t i = 0; f->name[i] && i + 1 < sizeof(name); i++)
            name[i] = (char)(f->name[i] == '-' ? '_' : toupper((unsigned char)f->name[i]));
        const char *value = f->kind != FLAG_TITLE ? getenv(name) : NULL;
        if (value && *value && set_value(f, value, e) < 0)
            return err_wrap(e, "$%s", name);
    }
    return 0;
}

/* ---- help */

enum { HELP_COLUMN = 30, HELP_WIDTH = 100 };

/* Appends the present value of the target as the default; nothing for empty and false ones. */
static void put_default(struct buf *out, const struct flag *f)
{
    char text[DURATION_TEXT_MAX];
    switch (f->kind) {
    case FLAG_TEXT:
        if (*(const char **)f->target && **(const char **)f->target)
            buf_printf(out, " (default %s)", *(const char **)f->target);
        break;
    case FLAG_BOOL:
        if (*(bool *)f->target)
            buf_put(out, S(" (default true)"));
        break;
    case FLAG_INT:
        buf_printf(out, " (default %lld)", (long long)*(int64_t *)f->target);
        break;
    case FLAG_REAL:
        buf_printf(out, " (default %g)", *(double *)f->target);
        break;
    case FLAG_DURATION:
        buf_printf(out, " (default " STR_FMT ")",
                   STR_ARG(duration_text(*(int64_t *)f->target, text)));
        break;
    default:
        break;
    }
}

/* Appends the text, wrapped; all lines but the first are indented to the help's column. */
static void put_wrapped(struct buf *out, str text)
{
    size_t column = HELP_COLUMN;
    str word;
    for (bool first = true; str_cut(&text, ' ', &word); first = false) {
        if (!first && column + 1 + word.n > HELP_WIDTH) {
            buf_printf(out, "\n%*s", HELP_COLUMN, "");
            column = HELP_COLUMN;
        } else if (!first) {
            buf_putc(out, ' ');
            column++;
        }
        buf_put(out, word);
        column += word.n;
    }
    buf_putc(out, '\n');
}

/* One flag per line, or two if its name is longer than the column. */
void flags_help(struct buf *out, const struct flag *flags)
{
    for (const struct flag *f = flags; f->name; f++) {
        if (f->kind == FLAG_TITLE) {
            buf_printf(out, f->help ? "\nController %s: %s\n" : "\n%s\n", f->name, f->help);
            continue;
        }
        auto_buf struct buf head = { 0 }, text = { 0 };
        buf_put(&head, S("  "));
        if (f->letter)
            buf_printf(&head, "-%c, ", f->letter);
        buf_printf(&head, "%s%s%s%s", f->name[1] ? "--" : "-", f->name, f->value ? " " : "",
                   f->value ? f->value : "");
        buf_printf(&text, "%s", f->help);
        put_default(&text, f);
        if (head.n + 2 > HELP_COLUMN)
            buf_printf(out, STR_FMT "\n%*s", STR_ARG(buf_str(&head)), HELP_COLUMN, "");
        else
            buf_printf(out, "%-*s", HELP_COLUMN, head.p);
        put_wrapped(out, buf_str(&text));
    }
}

int flags_split_listen(const char *flag, char *text, const char **ret_address, uint16_t *ret_port,
                       err_t *e)
{
    char *colon = strrchr(text, ':');
    int64_t port;
    if (!colon || str_to_i64(str_c(colon + 1), &port) < 0 || port < 0 || port > UINT16_MAX)
        return err_set(e, EINVAL,
                       "--%s is \"%s\", but must be ADDRESS:PORT, such as 127.0.0.1:6443", flag,
                       text);
    *colon = '\0';
    size_t n = strlen(text);
    if (n >= 2 && text[0] == '[' && text[n - 1] == ']') {
        text[n - 1] = '\0';
        text++;
    }
    *ret_address = *text ? text : NULL;
    *ret_port = (uint16_t)port;
    return 0;
}
