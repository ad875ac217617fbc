/* The command flyball check: see check.h. Runs all probes in turn, prints one line each, and exits with 1 if any of them
 * failed, so that a pipeline can use it as a gate. What could not be found out is shown, but does not fail: the user of a
 * pipeline often may not read everything. */
#include "check.h"

#include "../json/json.h"
#include "cmd.h"
#include "flags.h"

#include <stdio.h>

static const char *const state_words[] = {
    [CHECK_UNKNOWN] = "unknown",
    [CHECK_OK] = "ok",
    [CHECK_WARNING] = "warning",
    [CHECK_FAILED] = "failed",
};

void check_add(struct check *c, enum check_state state, const char *subject, str finding,
               str remedy)
{
    struct arena *a = &c->x.arena;
    finding = explain_clean(a, finding);
    vec_push(&c->lines, ((struct check_line){ state, str_c(subject), arena_str(a, finding),
                                              arena_str(a, remedy) }));
}

static size_t count_state(const struct check *c, enum check_state state)
{
    size_t n = 0;
    for (size_t i = 0; i < c->lines.n; i++)
        n += c->lines.at[i].state == state;
    return n;
}

/* The remedy is on a line of its own, so that it can be pasted. */
static void print_text(const struct check *c)
{
    for (size_t i = 0; i < c->lines.n; i++) {
        const struct check_line *line = &c->lines.at[i];
        printf("%-8s %s: " STR_FMT "\n", state_words[line->state], line->subject.p,
               STR_ARG(line->finding));
        if (line->remedy.n)
            printf("         -> " STR_FMT "\n", STR_ARG(line->remedy));
    }
    printf("\n%zu ok, %zu warnings, %zu failed, %zu unknown\n", count_state(c, CHECK_OK),
           count_state(c, CHECK_WARNING), count_state(c, CHECK_FAILED),
           count_state(c, CHECK_UNKNOWN));
}

/* One object per line of the text, for pipelines that filter. */
static void print_json(struct check *c)
{
    struct arena *a = &c->x.arena;
    struct json *list = json_new_arr(a), *root = json_new_obj(a);
    for (size_t i = 0; i < c->lines.n; i++) {
        const struct check_line *line = &c->lines.at[i];
        struct json *one = json_new_obj(a);
        json_set_str(a, one, "check", line->subject);
        json_set_str(a, one, "state", str_c(state_words[line->state]));
        json_set_str(a, one, "finding", line->finding);
        if (line->remedy.n)
            json_set_str(a, one, "remedy", line->remedy);
        json_push(a, list, one);
    }
    json_set(a, root, S("checks"), list);
    json_set_int(a, root, "failed", (int64_t)count_state(c, CHECK_FAILED));
    puts(json_to_str(a, root).p);
}

static void print_help(const struct flag *flags)
{
    auto_buf struct buf text = { 0 };
    buf_put(
        &text,
        S("Usage: flyball check [FLAGS]\n\n"
          "Checks whether a cluster is ready for flyball and whether its installation is healthy: version,\n"
          "definitions, permissions, operator and agents, metrics, and other controllers that would conflict\n"
          "with it. Changes nothing. Exits with 1 if a check failed.\n\nFlags:\n"));
    flags_help(&text, flags);
    fputs(text.p, stdout);
}

/* The installation comes first: whose permissions matter depends on it. */
static int run_checks(struct check *c, const struct explain_cluster *cluster, const char *output)
{
    err_t e;
    if (explain_open(&c->x, cluster, &e) < 0) {
        fprintf(stderr, "flyball check: %s\n", e.text);
        return EXIT_FAILURE;
    }
    if (check_version(c)) { /* without a server, every other question would wait for its timeout */
        check_installation(c);
        check_cluster(c);
        check_rights(c);
    }
    check_prometheus(c);
    if (strcmp(output, "json") == 0)
        print_json(c);
    else
        print_text(c);
    return count_state(c, CHECK_FAILED) ? EXIT_FAILURE : EXIT_SUCCESS;
}

int cmd_check(int argc, char **argv)
{
    struct check c = { .ns = "flyball-system", .agent_ns = "flyball-agent" };
    struct explain_cluster cluster = { 0 };
    const char *output = "text";
    const struct flag flags[] = {
        { "namespace", "NAME", FLAG_TEXT, &c.ns, "Namespace of the operator" },
        { "agent-namespace", "NAME", FLAG_TEXT, &c.agent_ns, "Namespace of the agent" },
        { "prometheus", "URL", FLAG_TEXT, &c.prometheus,
          "Prometheus to check for vLLM metrics, as reached from here" },
        { "prometheus-token-file", "FILE", FLAG_TEXT, &c.prometheus_token_file,
          "Bearer token for it" },
        { "output", "FORMAT", FLAG_TEXT, &output, "Output format: text or json", .letter = 'o' },
        EXPLAIN_CLUSTER_FLAGS(cluster),
        { 0 },
    };
    bool help = false;
    err_t e;
    int r = flags_parse(flags, argc, argv, &help, NULL, &e);
    if (r == 0 && strcmp(output, "text") != 0 && strcmp(output, "json") != 0)
        r = err_set(&e, EINVAL, "--output is \"%s\", but must be text or json", output);
    if (r < 0)
        return fprintf(stderr, "flyball check: %s\n", e.text), EXIT_USAGE;
    if (help)
        return print_help(flags), EXIT_SUCCESS;
    int code = run_checks(&c, &cluster, output);
    vec_done(&c.lines);
    explain_close(&c.x);
    return code;
}
