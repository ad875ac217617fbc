/* flyball explain: see explain.h.
 *
 *      cmd_explain()        flags, kind and name
 *        explain_object()   loop, client
 *          run()            of the explainer: fetches objects, decides as the controller would, writes
 *                           to x->out
 *          explain_changes()  the last events
 *
 * Requests are synchronous: explain_fetch() runs the loop until its reply arrives, which keeps
 * explainers readable from top to bottom; a command line tool has nothing else to do meanwhile.
 * Everything fetched lives in the arena of struct explain until the command ends. Nothing is
 * printed before everything succeeded. */
#include "explain.h"

#include "../base/rfc3339.h"
#include "cmd.h"
#include "flags.h"

#include <stdio.h>

static const struct explainer *const explainers[] = {
    &explain_saturation, &explain_schedule, &explain_hpa,         &explain_market,
    &explain_pod,        &explain_node,     &explain_nodes,       &explain_runtimeconfig,
    &explain_aimconfig,  &explain_aimmodel, &explain_aimtemplate, &explain_aimcache,
};

struct options {
    struct explain_cluster cluster;
    const char *at, *operator_ns;
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

int explain_send(struct explain *x, struct kube_request request, struct json **ret, err_t *e)
{
    struct fetch f = { .x = x, .e = e };
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

/* Page by page: a response has a limit, a cluster has none. */
/* The token of the next page is base64 for URLs, as the API servers make it. */
static int fetch_list(struct explain *x, struct kube_request request, struct json **ret, err_t *e)
{
    struct json *all = NULL, *page;
    str rest = S("");
    do {
        request.query = arena_printf(&x->arena, "limit=250%s" STR_FMT, rest.n ? "&continue=" : "",
                                     STR_ARG(rest));
        int r = explain_send(x, request, &page, e);
        if (r < 0)
            return r;
        struct json *items = json_get(page, "items");
        rest = json_text(json_at(page, "metadata", "continue", NULL));
        for (size_t i = 0; all && i < json_len(items); i++)
            json_push(&x->arena, json_get(all, "items"), json_item(items, i));
        all = all ? all : page;
    } while (rest.n && json_get(all, "items"));
    *ret = all;
    return 0;
}

int explain_fetch(struct explain *x, struct kube_request request, struct json **ret, err_t *e)
{
    request.verb = KUBE_GET;
    return request.resource && !request.name.n && !request.query.n
               ? fetch_list(x, request, ret, e)
               : explain_send(x, request, ret, e);
}

/* One character each, so that columns stay in place. */
str explain_clean(struct arena *a, str text)
{
    str copy = arena_str(a, text);
    for (size_t i = 0; i < copy.n; i++)
        if ((unsigned char)copy.p[i] < ' ' || copy.p[i] == 127)
            ((char *)copy.p)[i] = '?';
    return copy;
}

int explain_get(struct explain *x, const struct resource *resource, str ns, str name,
                struct json **ret, err_t *e)
{
    int r = explain_fetch(x, (struct kube_request){ .resource = resource, .ns = ns, .name = name },
                          ret, e);
    if (r == 0 && !x->kind.n && str_eq(name, x->name))
        x->kind = json_text(json_get(*ret, "kind"));
    return r;
}

int explain_list(struct explain *x, const struct resource *resource, str label, struct json **ret,
                 err_t *e)
{
    return explain_fetch(x, (struct kube_request){ .resource = resource, .label_selector = label },
                         ret, e);
}

int explain_list_by_field(struct explain *x, const struct resource *resource, str selector,
                          struct json **ret, err_t *e)
{
    return explain_fetch(x,
                         (struct kube_request){ .resource = resource, .field_selector = selector },
                         ret, e);
}

struct explain_record explain_record_make(struct explain *x, const struct cache_spec *cache,
                                          const struct json *object)
{
    struct explain_record r = { .projector = projector_new() };
    if (object && projection_new(r.projector, cache->keep, 0, &r.projection, NULL) == 0)
        (void)project(r.projection, json_to_str(&x->arena, object), &r.record, NULL);
    return r;
}

void explain_record_done(struct explain_record *r)
{
    record_unref(r->record);
    if (r->projection)
        projection_free(r->projection);
    projector_free(r->projector);
}

/* ---- the cluster */

int explain_open(struct explain *x, const struct explain_cluster *cluster, err_t *e)
{
    struct kube_config *config;
    int r = loop_new(&(struct loop_options){ 0 }, &x->loop, e);
    if (r == 0)
        r = kube_config_load(&(struct kube_config_options){ .kubeconfig = cluster->kubeconfig,
                                                            .context = cluster->context,
                                                            .ns = cluster->ns },
                             &config, e);
    if (r < 0)
        return r;
    x->at = loop_wall_ns(x->loop) / NS_PER_S;
    x->ns = arena_str(&x->arena, config->ns);
    r = kube_new(&(struct kube_options){ .loop = x->loop,
                                         .config = config,
                                         .insecure_token = cluster->insecure_token },
                 &x->kube, e);
    kube_config_free(config);
    return r;
}

void explain_close(struct explain *x)
{
    kube_free(x->kube);
    loop_free(x->loop);
    buf_done(&x->out);
    arena_done(&x->arena);
}

/* What other users wrote must not control the terminal. */
void explain_print(struct explain *x)
{
    for (size_t i = 0; i < x->out.n; i++)
        if (((unsigned char)x->out.p[i] < ' ' && x->out.p[i] != '\n') || x->out.p[i] == 127)
            x->out.p[i] = '?';
    fputs(x->out.p ? x->out.p : "", stdout);
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

/* Appends the last events about the object, newest last. */
static int explain_changes(struct explain *x, err_t *e)
{
    struct json *list = NULL;
    str selector =
        arena_printf(&x->arena, "involvedObject.name=" STR_FMT "%s" STR_FMT, STR_ARG(x->name),
                     x->kind.n ? ",involvedObject.kind=" : "", STR_ARG(x->kind));
    struct kube_request request = { .resource = &resource_events,
                                    .ns = x->ns,
                                    .field_selector = selector };
    int r = explain_fetch(x, request, &list, e);
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

/* Reads "KIND NAME" or "KIND/NAME"; the error lists all kinds. */
static int read_arguments(struct explain *x, const struct flag_words *given,
                          const struct explainer **ret, err_t *e)
{
    auto_buf struct buf kinds = { 0 };
    str kind = str_c(given->n ? given->at[0] : ""), name = str_c(given->n == 2 ? given->at[1] : "");
    size_t slash = str_find_char(kind, '/');
    if (given->n == 1 && slash != SIZE_MAX) {
        name = str_from(kind, slash + 1);
        kind = arena_str(&x->arena, str_upto(kind, slash));
    }
    if (given->n == 1 && str_eqc(kind, "nodes")) /* the one object about all of them */
        name = S("cluster");
    if (given->n > 2 || !kind.n || !name.n)
        return err_set(e, EINVAL, "needs a kind and a name: KIND NAME or KIND/NAME; see --help");
    x->name = name;
    if ((*ret = find_explainer(kind.p)))
        return 0;
    for (size_t i = 0; i < countof(explainers); i++)
        buf_printf(&kinds, "%s%s", i ? ", " : "", explainers[i]->words[0]);
    return err_set(e, EINVAL, "unknown kind \"%s\"; must be one of %s", kind.p, kinds.p);
}

/* The embedded API server of `flyball up --speed` has a clock of its own, which its operator uses too. Other servers
 * have the time of this machine, and no such field. */
static void read_cluster_clock(struct explain *x)
{
    struct json *version = NULL;
    int64_t at;
    err_t ignored;
    if (explain_fetch(x, (struct kube_request){ .path = S("/version") }, &version, &ignored) < 0 ||
        rfc3339_parse(json_text(json_get(version, "clock")), &at, NULL) < 0)
        return;
    x->at = at;
    buf_printf(&x->out, "The clock of this cluster is simulated; it is " STR_FMT ".\n\n",
               STR_ARG(json_text(json_get(version, "clock"))));
}

/* Adds to "not found" what the user can do: the namespaces that have an object of this name, or the definitions that
 * the cluster lacks. */
static void add_hint(struct explain *x, const struct explainer *explainer, err_t *e)
{
    struct json *list = NULL;
    err_t failure;
    auto_buf struct buf found = { 0 };
    int r =
        explainer->resource ? explain_list(x, explainer->resource, S(""), &list, &failure) : -EIO;
    if (r == -ENOENT)
        err_set(e, ENOENT,
                "the cluster does not serve this kind; install it with: "
                "flyball install | kubectl apply --server-side -f -");
    const struct json *items = r == 0 ? json_get(list, "items") : NULL;
    for (size_t i = 0; i < json_len(items); i++) {
        const struct json *metadata = json_get(json_item(items, i), "metadata");
        str ns = json_text(json_get(metadata, "namespace"));
        if (ns.n && found.n < 200 && str_eq(json_text(json_get(metadata, "name")), x->name))
            buf_printf(&found, "%s" STR_FMT, found.n ? ", " : "", STR_ARG(ns));
    }
    if (found.n) {
        err_t why = *e;
        err_set(e, ENOENT, "%s; that name exists in namespace %s: use -n", why.text, found.p);
    }
}

/* Runs the explainer, and appends the last events of the object. */
static int explain_object(const struct options *o, const struct explainer *explainer,
                          struct explain *x, err_t *e)
{
    int r = explain_open(x, &o->cluster, e);
    if (r == 0 && o->at && rfc3339_parse(str_c(o->at), &x->at, e) < 0)
        return err_wrap(e, "--at");
    if (r == 0 && !o->at)
        read_cluster_clock(x);
    r = r < 0 ? r : explainer->run(x, e);
    if (r == -ENOENT)
        add_hint(x, explainer, e);
    return r < 0 ? r : explain_changes(x, e);
}

static void print_help(const struct flag *flags)
{
    auto_buf struct buf text = { 0 };
    buf_put(
        &text,
        S("Usage: flyball explain KIND NAME [FLAGS]\n       flyball explain KIND/NAME [FLAGS]\n\nExplains why flyball made a decision, "
          "from the objects in the cluster.\n\nKinds:\n"));
    for (size_t i = 0; i < countof(explainers); i++)
        buf_printf(&text, "  %-12s %s\n", explainers[i]->words[0], explainers[i]->help);
    buf_put(&text, S("\nFlags:\n"));
    flags_help(&text, flags);
    fputs(text.p, stdout);
}

/* The word after "explain" selects the explainer; the rest is the same for all of them. */
int cmd_explain(int argc, char **argv)
{
    struct options o = { 0 };
    const struct flag flags[] = {
        { "namespace", "NAME", FLAG_TEXT, &o.cluster.ns,
          "Namespace of the object (default: that of the context)", .letter = 'n' },
        { "at", "TIME", FLAG_TEXT, &o.at,
          "Explain this time, such as 2026-06-03T09:00:00Z (default: now)" },
        { "operator-namespace", "NAME", FLAG_TEXT, &o.operator_ns,
          "Namespace of shared calendars (default flyball-system)" },
        EXPLAIN_CLUSTER_FLAGS(o.cluster),
        { 0 },
    };
    auto_free const char **words = mem_zero((size_t)argc, sizeof(*words));
    struct flag_words given = { words, 0 };
    bool help = false;
    err_t e;
    if (flags_parse(flags, argc, argv, &help, &given, &e) < 0)
        return fprintf(stderr, "flyball explain: %s\n", e.text), EXIT_USAGE;
    if (help)
        return print_help(flags), EXIT_SUCCESS;
    const struct explainer *explainer;
    struct explain x = { .operator_ns = o.operator_ns };
    int r = read_arguments(&x, &given, &explainer, &e);
    bool usable = r == 0;
    if (usable)
        r = explain_object(&o, explainer, &x, &e);
    if (r == 0)
        explain_print(&x);
    else
        fprintf(stderr, "flyball explain: %s\n", e.text);
    explain_close(&x);
    return r == 0 ? EXIT_SUCCESS : usable ? EXIT_FAILURE : EXIT_USAGE;
}
