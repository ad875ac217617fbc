/* The runner: see golden.h.
 *
 * Without --tap it prints one line for each failing case and the closing line `N passed, N failed`;
 * with it, one TAP line per case. The exit status is 0, 1 when a case failed, and 2 with a sentence
 * when there was nothing to run: an unknown family, an unreadable file, a file without a case.
 *
 * Time zones are read from the folder `zoneinfo` beside this file, which has those that the vectors name as they
 * were in tzdata 2025b, with which the vectors were recorded: governments have changed their minds since. */
#include "golden.h"

#include "base/file.h"

#include <libgen.h>
#include <stdio.h>

enum { FILE_BYTES_MAX = 64 << 20 };

static const struct golden_family *const groups[] = {
    /* clang-format off: one a line */
    golden_aim,
    golden_aim_engine,
    golden_aim_inspection,
    golden_aim_kinds,
    golden_aim_status,
    golden_apiserver,
    golden_base,
    golden_cgroup,
    golden_doors,
    golden_market,
    golden_market_next,
    golden_market_shares,
    golden_runtimeconfig,
    golden_saturation,
    golden_saturation_config,
    golden_saturation_discovery,
    golden_saturation_slo,
    golden_saturation_tokens,
    golden_saturation_votes,
    golden_schedule,
    golden_timeline,
    /* clang-format on */
};

struct run {
    bool tap, make;
    size_t passed, failed;
};

static const struct golden_family *family_of(str file_name)
{
    const struct golden_family *best = NULL;
    for (size_t i = 0; i < countof(groups); i++)
        for (const struct golden_family *f = groups[i]; f->name; f++)
            if (str_starts(file_name, str_c(f->name)) &&
                (!best || strlen(f->name) > strlen(best->name)))
                best = f;
    return best;
}

static str case_id(struct arena *a, const struct json *c, size_t index)
{
    str id = json_text(json_get(c, "id"));
    if (id.n)
        return id;
    str name = json_text(json_get(c, "name")); /* need not be unique */
    return name.n ? arena_printf(a, "%zu (" STR_FMT ")", index, STR_ARG(name))
                  : arena_printf(a, "%zu", index);
}

/* One line, whatever the case's name and texts hold. */
static void print_line(const char *start, str id, str rest)
{
    auto_buf struct buf line = { 0 };
    buf_printf(&line, "%s" STR_FMT STR_FMT, start, STR_ARG(id), STR_ARG(rest));
    for (size_t i = 0; i < line.n; i++)
        if ((unsigned char)line.p[i] < ' ' || line.p[i] == '#')
            line.p[i] = line.p[i] == '#' ? '*' : ' ';
    puts(line.p);
}

static void report(struct run *run, str id, struct golden *g)
{
    if (g->checks == 0)
        buf_put(&g->problems, S("nothing was checked"));
    bool failed = g->problems.n > 0;
    run->failed += failed;
    run->passed += !failed;
    if (run->tap) {
        char start[64];
        snprintf(start, sizeof(start), "%s %zu - ", failed ? "not ok" : "ok",
                 run->passed + run->failed);
        print_line(start, id, failed ? S(": ") : S(""));
    }
    if (failed && run->tap)
        printf("# %s\n", g->problems.p);
    else if (failed) {
        auto_buf struct buf rest = { 0 };
        buf_printf(&rest, ": %s", g->problems.p);
        print_line("", id, buf_str(&rest));
    }
}

static void run_cases(struct run *run, const struct golden_family *family, const struct json *file,
                      const struct json *cases)
{
    struct arena scratch = { 0 };
    for (size_t i = 0; i < json_len(cases); i++) {
        struct golden g = { .arena = &scratch, .file = file };
        const struct json *c = json_item(cases, i);
        family->run(&g, c);
        report(run, case_id(&scratch, c, i), &g);
        buf_done(&g.problems);
        arena_reset(&scratch, (struct arena_mark){ 0 });
    }
    arena_done(&scratch);
}

/* Prints the file with every expected part computed again: for families that our own code defines. */
static int make_file(const struct golden_family *family, struct arena *a, struct json *file,
                     const struct json *cases, err_t *e)
{
    if (!family->make)
        return err_set(e, EINVAL, "%s: its expected parts are not ours to make", family->name);
    for (size_t i = 0; i < json_len(cases); i++) {
        struct golden g = { .arena = a, .file = file };
        struct json *c = cases->items[i];
        json_set(a, c, S("expected"), family->make(&g, c));
    }
    str text = json_to_str(a, file);
    fwrite(text.p, 1, text.n, stdout);
    putchar('\n');
    return 0;
}

static int run_file(struct run *run, const char *path, err_t *e)
{
    auto_free char *copy = mem_dup(path, strlen(path));
    const struct golden_family *family = family_of(str_c(basename(copy)));
    if (!family)
        return err_set(e, ENOENT, "%s: its name does not begin with a family that is known here",
                       path);
    auto_buf struct buf text = { 0 };
    int r = file_read(path, FILE_BYTES_MAX, &text, e);
    if (r)
        return r;
    auto_arena struct arena a = { 0 };
    struct json *file;
    if (json_parse(&a, buf_str(&text), &file, e))
        return err_wrap(e, "%s", path);
    const struct json *cases = json_is(file, JSON_ARR) ? file : json_get(file, "cases");
    cases = cases ? cases : json_get(file, "vectors");
    if (json_len(cases) == 0 || !json_is(cases, JSON_ARR))
        return err_set(e, ENODATA, "%s: has no case; an array `cases` or `vectors` is wanted",
                       path);
    if (run->make)
        return make_file(family, &a, file, cases, e);
    run_cases(run, family, file, cases);
    return 0;
}

int main(int argc, char **argv)
{
    struct run run = { .tap = argc > 1 && strcmp(argv[1], "--tap") == 0,
                       .make = argc > 1 && strcmp(argv[1], "--make") == 0 };
    int first = run.tap || run.make ? 2 : 1;
    setenv("ZONEINFO", GOLDEN_ZONES, 1);
    if (argc <= first) {
        fprintf(stderr, "golden: name the vector files to run\n");
        return 2;
    }
    for (int i = first; i < argc; i++) {
        err_t e;
        if (run_file(&run, argv[i], &e)) {
            fflush(stdout);
            fprintf(stderr, "golden: %s\n", e.text);
            return 2;
        }
    }
    if (run.make)
        return 0;
    if (run.tap)
        printf("1..%zu\n", run.passed + run.failed);
    else
        printf("%zu passed, %zu failed\n", run.passed, run.failed);
    return run.failed > 0;
}
