/* The status of the configurations: is the path template valid, how many objects use the configuration, and which of
 * them have no path because of it.
 *
 * Counts change with every consumer, so a change enqueues the configuration with a delay of half a second: during a
 * rollout of a thousand services the status is written at most twice per second. Only the first few failing consumers
 * are listed by name. */
#include "aim.h"

#include "../base/rfc3339.h"

#include <stdlib.h>

enum { FAILING_NAMES = 10 };

static const int64_t gather_ns = 500 * NS_PER_MS;

static struct controller *controller_of(const struct aim *aim, bool cluster)
{
    return aim->config_controllers[cluster];
}

void aim_config_enqueue(struct aim *aim, const struct aim_config *config)
{
    if (aim->stopping)
        return;
    runtimeconfig_metrics_consumers(&aim->metrics, config->ns, config->name, config->total);
    controller_add_after(controller_of(aim, config->cluster), config->ns, config->name, gather_ns);
}

/* ---- numbers */

static int by_text(const void *x, const void *y)
{
    return str_cmp(*(const str *)x, *(const str *)y);
}

/* The first few failing consumers by name: a stable order, so that the list changes only if they do. */
static struct json *failing_names(struct arena *a, const struct aim_config *config)
{
    str *names = arena_array(a, config->failing, sizeof(*names));
    size_t n = 0;
    list_each(const struct aim_config_link, l, &config->consumers, item)
        if (l->failing)
            names[n++] = arena_printf(a, STR_FMT "/" STR_FMT, STR_ARG(l->ns), STR_ARG(l->name));
    if (n)
        qsort(names, n, sizeof(*names), by_text);
    struct json *list = json_new_arr(a);
    for (size_t i = 0; i < MIN(n, (size_t)FAILING_NAMES); i++)
        json_push(a, list, json_new_str(a, names[i]));
    return list;
}

/* status.consumers; kinds without a consumer are left out. */
static struct json *make_consumers(struct arena *a, const struct aim *aim,
                                   const struct aim_config *config)
{
    struct json *consumers = json_new_obj(a), *by_kind = json_make(a, consumers, "byKind", NULL);
    json_set_int(a, consumers, "total", (int64_t)config->total);
    json_set_int(a, consumers, "failing", (int64_t)config->failing);
    for (int kind = 0; kind < AIM_CONSUMER_N; kind++)
        if (config->by_kind[kind])
            json_set_int(a, by_kind, aim->kinds->at[kind].kind, (int64_t)config->by_kind[kind]);
    if (config->failing)
        json_set(a, consumers, S("failingNames"), failing_names(a, config));
    return consumers;
}

/* ---- the status */

/* The condition TemplateValid, with an event when it becomes False. */
static void put_template_valid(struct arena *a, const struct aim_config *config,
                               struct aim_status *s)
{
    struct aim_path_problem problem = { 0 };
    struct aim_condition c = { "TemplateValid", AIM_TRUE, "TemplateValid",
                               S("routing.pathTemplate is valid") };
    if (runtimeconfig_lint(a, &config->spec, &problem) < 0)
        c = (struct aim_condition){ "TemplateValid", AIM_FALSE, "PathTemplateInvalid",
                                    arena_printf(a, "routing.pathTemplate: %s", problem.text) };
    else if (!config->spec.routing.path_template.n)
        c = (struct aim_condition){ "TemplateValid", AIM_TRUE, "NoTemplate",
                                    S("routing.pathTemplate is not set; paths are "
                                      "/NAMESPACE/UID unless a service sets its own") };
    if (aim_status_condition(s, &c) && c.truth == AIM_FALSE)
        aim_status_event(s, true, c.reason, c.message);
}

/* Definitions with the rule refuse credentials in a cluster configuration, but one may have been stored before, or by a
 * server that does not evaluate the rule. Absent if all is well, so that no status is written for it. */
static void put_accepted(const struct aim_config *config, struct aim_status *s)
{
    if (!config->spec.refused_credentials) {
        aim_status_drop_condition(s, "Accepted");
        return;
    }
    if (aim_status_set(s, "Accepted", false, RUNTIMECONFIG_CREDENTIALS,
                       S(RUNTIMECONFIG_CREDENTIALS_TEXT)))
        aim_status_event(s, true, RUNTIMECONFIG_CREDENTIALS, S(RUNTIMECONFIG_CREDENTIALS_TEXT));
}

/* The hash and its time change only with the spec, so that counts do not touch them. */
static void build_status(struct aim *aim, const struct aim_config *config, struct aim_status *s)
{
    char now[RFC3339_TEXT_MAX];
    put_template_valid(s->a, config, s);
    put_accepted(config, s);
    json_set(s->a, s->next, S("consumers"), make_consumers(s->a, aim, config));
    if (str_eqc(json_text(json_get(s->old, "hash")), config->kept.hash))
        return;
    json_set_str(s->a, s->next, "hash", str_c(config->kept.hash));
    json_set_str(s->a, s->next, "lastAppliedTime", rfc3339_text(s->now, now));
}

/* Builds and writes the status of one configuration, of either kind. */
static struct reconciled reconcile_config(struct reconcile *r, enum aim_kind kind)
{
    struct aim *aim = r->context;
    const struct aim_record *record = cache_get(aim->caches[kind], r->ns, r->name);
    struct aim_config *config = aim_configs_find(&aim->configs, r->ns, r->name);
    if (!record || !config || record->deleting)
        return reconciled();
    struct json *old = NULL;
    struct aim_status s;
    if (record->status.n)
        json_parse(r->arena, record->status, &old, NULL);
    aim_status_begin(&s, r->arena, old, r->now_ns / NS_PER_S, record->generation);
    build_status(aim, config, &s);
    struct json *patch = aim_status_patch(&s);
    if (!patch)
        return reconciled();
    for (const struct aim_event *e = s.events; e; e = e->next)
        events_emit(manager_events(aim->manager),
                    &(struct kube_event){ .resource = &aim->kinds->at[kind],
                                          .ns = r->ns,
                                          .name = r->name,
                                          .uid = record->meta.uid,
                                          .warning = e->warning,
                                          .reason = e->reason,
                                          .message = e->message });
    reconcile_status(r, &aim->kinds->at[kind], patch);
    return reconciled();
}

static struct reconciled reconcile_namespaced(struct reconcile *r)
{
    return reconcile_config(r, AIM_CONFIG);
}

static struct reconciled reconcile_cluster(struct reconcile *r)
{
    return reconcile_config(r, AIM_CLUSTER_CONFIG);
}

void aim_config_start(struct aim *aim)
{
    aim->config_controllers[0] =
        manager_controller(aim->manager,
                           &(struct controller_spec){ .name = "aimruntimeconfig",
                                                      .reconcile = reconcile_namespaced,
                                                      .context = aim });
    aim->config_controllers[1] =
        manager_controller(aim->manager,
                           &(struct controller_spec){ .name = "aimclusterruntimeconfig",
                                                      .reconcile = reconcile_cluster,
                                                      .context = aim });
}
