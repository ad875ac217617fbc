/* flyball explain: see explain.h.
 *
 *      cmd_explain()        flags, kind and name
 *        explain_object()   loop, client
 *          run()            of the explainer: fetches objects, decides as the controller would, writes
 *                           to x->out
 *          explain_changes()  the last events
 *
 * Requests are synchronous: fetch() runs the loop until its reply arrives, which keeps
 * explainers readable from top to bottom; a command line tool has nothing else to do meanwhile.
 * Everything fetched lives in the arena of struct explain until the command ends. Nothing is
 * printed before everything succeeded. */
#include "explain.h"

#include "../base/rfc3339.h"
#include "cmd.h"
#include "flags.h"

#include <stdio.h>

static const struct explainer *const explainers[] = {
    &explain_saturation, &explain_schedule, &explain_market,      &explain_runtimeconfig,
    &explain_aimconfig,  &explain_aimmodel, &explain_aimtemplate, &explain_aimcache,
};

struct options {
    const char *kubeconfig, *context, *ns, *at;
    bool insecure_token;
};

/* ---- synchronous requests */

struct fetch {
    struct explain *x;
    bool done;
    struct json *object;
    err_t *e;
};

/* Copies the object, because the reply is valid only during this call. */
static void on_fetched(void *context, const struct kube_reply *reply)
{
    struct fetch *f = context;
    f->done = true;
    if (reply->failure)
        err_set(f->e, reply->reason == KUBE_NOT_FOUND ? ENOENT : EIO, "%s", reply->failure);
    else if (reply->object)
        f->object = json_copy(&f->x->arena, reply->object);
    else
        err_set(f->e, EPROTO, "the response of the API server is not JSON");
}

/* Sends a GET and runs the loop until the reply arrives. */
static int fetch(struct explain *x, struct kube_request request, struct json **ret, err_t *e)
{
    struct fetch f = { .x = x, .e = e };
    request.verb = KUBE_GET;
    request.timeout_ns = 30 * NS_PER_S;
    request.done = on_fetched;
    request.context = &f;
    kube_send(x->kube, &request);
    while (!f.done)
        loop_turn(x->loop);
    if (!f.object)
        return -e->code;
    *ret = f.object;
    return 0;
}

int explain_get(struct explain *x, const struct resource *resource, str ns, str name,
                struct json **ret, err_t *e)
{
    int r = fetch(x, (struct kube_request){ .resource = resource, .ns = ns, .name = name }, ret, e);
    if (r == 0 && !x->kind.n && str_eq(name, x->name))
        x->kind = json_text(json_get(*ret, "kind"));
    return r;
}

/* ---- events */

enum { CHANGES_MAX = 10 };

static str event_time(const struct json *event)
{
    str last = json_text(json_get(event, "lastTimestamp"));
    return last.n ? last : json_text(json_at(event, "metadata", "creationTimestamp", NULL));
}

static int compare_events(const void *a, const void *b)
{
    const struct json *const *x = a, *const *y = b;
    return str_cmp(event_time(*x), event_time(*y));
}

int explain_changes(struct explain *x, err_t *e)
{
    struct json *list = NULL;
    str selector =
        arena_printf(&x->arena, "involvedObject.name=" STR_FMT "%s" STR_FMT, STR_ARG(x->name),
                     x->kind.n ? ",involvedObject.kind=" : "", STR_ARG(x->kind));
    struct kube_request request = { .resource = &resource_events,
                                    .ns = x->ns,
                                    .field_selector = selector };
    int r = fetch(x, request, &list, e);
    if (r < 0)
        return r;
    const struct json *items = json_get(list, "items");
    size_t n = json_len(items);
    if (!n)
        return 0;
    const struct json **events = arena_array(&x->arena, n, sizeof(*events));
    for (size_t i = 0; i < n; i++)
        events[i] = json_item(items, i);
    qsort(events, n, sizeof(*events), compare_events);
    buf_put(&x->out, S("\nLast changes:\n"));
    for (size_t i = n > CHANGES_MAX ? n - CHANGES_MAX : 0; i < n; i++)
        buf_printf(&x->out, "  " STR_FMT "  " STR_FMT ": " STR_FMT "\n",
                   STR_ARG(event_time(events[i])),
                   STR_ARG(json_text(json_get(events[i], "reason"))),
                   STR_ARG(json_text(json_get(events[i], "message"))));
    return 0;
}

/* ---- the command */

static const struct explainer *find_explainer(const char *word)
{
    for (size_t i = 0; i < countof(explainers); i++)
        for (const char *const *known = explainers[i]->words; *known; known++)
            if (str_eq_nocase(str_c(word), str_c(*known)))
                return explainers[i];
    return NULL;
}

/* Finds the explainer of the kind; the error lists all kinds. */
static int choose_explainer(const struct flag_words *given, const struct explainer **ret, err_t *e)
{
    auto_buf struct buf kinds = { 0 };
    if (given->n != 2)
        return err_set(e, EINVAL, "got %zu arguments, but needs KIND and NAME; see --help",
                       given->n);
    if ((*ret = find_explainer(given->at[0])))
        return 0;
    for (size_t i = 0; i < countof(explainers); i++)
        buf_printf(&kinds, "%s%s", i ? ", " : "", explainers[i]->words[0]);
    return err_set(e, EINVAL, "unknown kind \"%s\"; must be one of %s", given->at[0], kinds.p);
}

/* Uses the same kubeconfig rules as the operator, so that both see the same cluster. */
static int connect_cluster(const struct options *o, struct explain *x, err_t *e)
{
    struct kube_config *config;
    int r = kube_config_load(&(struct kube_config_options){ .kubeconfig = o->kubeconfig,
                                                            .context = o->context,
                                                            .ns = o->ns },
                             &config, e);
    if (r < 0)
        return r;
    x->ns = arena_str(&x->arena, config->ns);
    r = kube_new(&(struct kube_options){ .loop = x->loop,
                                         .config = config,
                                         .insecure_token = o->insecure_token },
                 &x->kube, e);
    kube_config_free(config);
    return r;
}

/* Runs the explainer, and appends the last events of the object. */
static int explain_object(const struct options *o, const struct explainer *explainer,
                          struct explain *x, err_t *e)
{
    int r = loop_new(&(struct loop_options){ 0 }, &x->loop, e);
    if (r < 0)
        return r;
    x->at = loop_wall_ns(x->loop) / NS_PER_S;
    if (o->at && rfc3339_parse(str_c(o->at), &x->at, e) < 0)
        return err_wrap(e, "--at");
    r = connect_cluster(o, x, e);
    r = r < 0 ? r : explainer->run(x, e);
    return r < 0 ? r : explain_changes(x, e);
}

static void print_help(const struct flag *flags)
{
    auto_buf struct buf text = { 0 };
    buf_put(&text,
            S("Usage: flyball explain KIND NAME [FLAGS]\n\nExplains why flyball made a decision, "
              "from the objects in the cluster.\n\nKinds:\n"));
    for (size_t i = 0; i < countof(explainers); i++)
        buf_printf(&text, "  %-12s %s\n", explainers[i]->words[0], explainers[i]->help);
    buf_put(&text, S("\nFlags:\n"));
    flags_help(&text, flags);
    fputs(text.p, stdout);
}

/* Replaces kubectl's short names of flags. */
static void expand_short_flags(int argc, char **argv)
{
    static char ns[] = "--namespace";
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "-n"))
            argv[i] = ns;
}

int cmd_explain(int argc, char **argv)
{
    struct options o = { 0 };
    const struct flag flags[] = {
        { "namespace", "NAME", FLAG_TEXT, &o.ns,
          "Namespace of the object; short: -n (default: that of the context)" },
        { "at", "TIME", FLAG_TEXT, &o.at,
          "Explain this time, such as 2026-06-03T09:00:00Z (default: now)" },
        { "kubeconfig", "FILE", FLAG_TEXT, &o.kubeconfig, "Path of the kubeconfig" },
        { "context", "NAME", FLAG_TEXT, &o.context,
          "Context of the kubeconfig (default: the current one)" },
        { "allow-insecure-token", NULL, FLAG_BOOL, &o.insecure_token,
          "Send the token over plain HTTP, even to a host that is not loopback" },
        { 0 },
    };
    auto_free const char **words = mem_zero((size_t)argc, sizeof(*words));
    struct flag_words given = { words, 0 };
    bool help = false;
    err_t e;
    expand_short_flags(argc, argv);
    if (flags_parse(flags, argc, argv, &help, &given, &e) < 0)
        return fprintf(stderr, "flyball explain: %s\n", e.text), EXIT_USAGE;
    if (help)
        return print_help(flags), EXIT_SUCCESS;
    const struct explainer *explainer;
    if (choose_explainer(&given, &explainer, &e) < 0)
        return fprintf(stderr, "flyball explain: %s\n", e.text), EXIT_USAGE;
    struct explain x = { .name = str_c(words[1]) };
    int r = explain_object(&o, explainer, &x, &e);
    if (r == 0)
        fputs(x.out.p ? x.out.p : "", stdout);
    else
        fprintf(stderr, "flyball explain: %s\n", e.text);
    kube_free(x.kube);
    loop_free(x.loop);
    buf_done(&x.out);
    arena_done(&x.arena);
    return r == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
