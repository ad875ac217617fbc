/* Cells of the kinds in types/more.types and types/cluster.types; table_plans.c lists their columns.
 *
 * Most cells show one field, so a table is a list of columns and a plan: one word for each cell. A word is the path
 * of a field, with the text of an unset one after a bar; a function after a dollar sign, with the path that it gets; or
 * "name" and "age". Titles, types and placeholders are those of kube-apiserver, because scripts parse them. */
#include "kind_hooks.h"
#include "table.h"
#include "table_columns.h"

typedef struct json *cell_fn(struct arena *a, const struct json *object, const struct json *value,
                             int64_t now_ns);

static struct json *text_cell(struct arena *a, str text)
{
    return json_new_str(a, text);
}

/* The value at a dotted path; NULL: unset. Keys of such paths contain no dots. */
static const struct json *find_path(const struct json *object, str path)
{
    for (str key; object && path.n && str_cut(&path, '.', &key);)
        object = json_get_str(object, key);
    return object;
}

/* ---- cells of several kinds */

/* The number of items; zero if the list is unset. */
static struct json *cell_count(struct arena *a, const struct json *object UNUSED,
                               const struct json *value, int64_t now_ns UNUSED)
{
    return json_new_int(a, (int64_t)json_len(value));
}

/* A number; an unset one is zero. */
static struct json *cell_int(struct arena *a, const struct json *object UNUSED,
                             const struct json *value, int64_t now_ns UNUSED)
{
    return json_new_int(a, json_int(value, 0));
}

/* A boolean; an unset one is false. */
static struct json *cell_bool(struct arena *a, const struct json *object UNUSED,
                              const struct json *value, int64_t now_ns UNUSED)
{
    return json_new_bool(a, json_is(value, JSON_BOOL) && value->boolean);
}

/* As text, with a capital. */
static struct json *cell_truth(struct arena *a, const struct json *object UNUSED,
                               const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, json_is(value, JSON_BOOL) && value->boolean ? S("True") : S("False"));
}

/* The age of an instant, such as the last run of a schedule. */
static struct json *cell_time(struct arena *a, const struct json *object UNUSED,
                              const struct json *value, int64_t now_ns)
{
    return text_cell(a, value ? table_cell_age(a, value, now_ns) : S("<none>"));
}

/* A number or a percentage, as text; budgets have one of two such fields. */
static struct json *cell_or_n_a(struct arena *a, const struct json *object UNUSED,
                                const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, !value                     ? S("N/A")
                        : json_is(value, JSON_INT) ? json_to_str(a, value)
                                                   : json_text(value));
}

/* A list of texts; of objects, the member `key`. */
static str join(struct arena *a, const struct json *list, const char *key)
{
    auto_buf struct buf text = { 0 };
    for (uint32_t i = 0; i < json_len(list); i++) {
        const struct json *each = key ? json_get(list->items[i], key) : list->items[i];
        if (i)
            buf_putc(&text, ',');
        buf_put(&text, json_text(each));
    }
    return arena_str(a, buf_str(&text));
}

/* The texts of a list. */
static struct json *cell_list(struct arena *a, const struct json *object UNUSED,
                              const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, join(a, value, NULL));
}

/* Names, then images, of the containers of a pod template. */
static struct json *cell_names(struct arena *a, const struct json *object UNUSED,
                               const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, join(a, value, "name"));
}

/* Images, in the order of the containers. */
static struct json *cell_images(struct arena *a, const struct json *object UNUSED,
                                const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, join(a, value, "image"));
}

/* matchLabels and matchExpressions in the form that kubectl accepts. */
static struct json *cell_selector(struct arena *a, const struct json *object UNUSED,
                                  const struct json *value, int64_t now_ns UNUSED)
{
    str text = kind_selector_text(a, value);
    return text_cell(a, text.n ? text : S("<none>"));
}

/* A map of labels, in the form of a selector. */
static struct json *cell_labels(struct arena *a, const struct json *object,
                                const struct json *value, int64_t now_ns)
{
    struct json *selector = json_new_obj(a);
    if (value)
        json_set(a, selector, S("matchLabels"), json_copy(a, value));
    return cell_selector(a, object, selector, now_ns);
}

/* At most three entries, and the number of the others. */
struct few {
    struct buf text;
    size_t n;
};

/* Counts every entry, keeps the first three. */
static void few_add(struct few *few, str entry)
{
    if (few->n++ < 3) {
        if (few->n > 1)
            buf_putc(&few->text, ',');
        buf_put(&few->text, entry);
    }
}

/* Ends the cell; frees the text. */
static struct json *few_cell(struct arena *a, struct few *few, str if_none)
{
    if (few->n > 3)
        buf_printf(&few->text, " + %zu more...", few->n - 3);
    struct json *cell = text_cell(a, few->n ? arena_str(a, buf_str(&few->text)) : if_none);
    buf_done(&few->text);
    return cell;
}

/* ---- network */

/* Rules without a host apply to all of them and are not shown. */
static struct json *cell_hosts(struct arena *a, const struct json *object UNUSED,
                               const struct json *value, int64_t now_ns UNUSED)
{
    struct few few = { 0 };
    for (uint32_t i = 0; i < json_len(value); i++) {
        str host = json_text(json_get(value->items[i], "host"));
        if (host.n)
            few_add(&few, host);
    }
    return few_cell(a, &few, S("*"));
}

/* Addresses or names of the load balancer. */
static struct json *cell_addresses(struct arena *a, const struct json *object UNUSED,
                                   const struct json *value, int64_t now_ns UNUSED)
{
    auto_buf struct buf text = { 0 };
    for (uint32_t i = 0; i < json_len(value); i++) {
        str ip = json_text(json_get(value->items[i], "ip"));
        if (i)
            buf_putc(&text, ',');
        buf_put(&text, ip.n ? ip : json_text(json_get(value->items[i], "hostname")));
    }
    return text_cell(a, arena_str(a, buf_str(&text)));
}

/* An ingress has TLS on its usual port, or not at all. */
static struct json *cell_tls_ports(struct arena *a, const struct json *object UNUSED,
                                   const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, json_len(value) ? S("80, 443") : S("80"));
}

/* Kind, group and name of what configures a class. */
static struct json *cell_parameters(struct arena *a, const struct json *object UNUSED,
                                    const struct json *value, int64_t now_ns UNUSED)
{
    str group = json_text(json_get(value, "apiGroup"));
    return text_cell(a, !value ? S("<none>")
                               : arena_printf(a, STR_FMT "%s" STR_FMT "/" STR_FMT,
                                              STR_ARG(json_text(json_get(value, "kind"))),
                                              group.n ? "." : "", STR_ARG(group),
                                              STR_ARG(json_text(json_get(value, "name")))));
}

/* Port numbers; a slice for all ports has one without a number. */
static struct json *cell_slice_ports(struct arena *a, const struct json *object UNUSED,
                                     const struct json *value, int64_t now_ns UNUSED)
{
    struct few few = { 0 };
    for (uint32_t i = 0; i < json_len(value); i++) {
        const struct json *port = json_get(value->items[i], "port");
        few_add(&few, port ? json_to_str(a, port) : S("*"));
    }
    return few_cell(a, &few, S("<unset>"));
}

/* Addresses of all endpoints, ready or not. */
static struct json *cell_slice_endpoints(struct arena *a, const struct json *object UNUSED,
                                         const struct json *value, int64_t now_ns UNUSED)
{
    struct few few = { 0 };
    for (uint32_t i = 0; i < json_len(value); i++) {
        const struct json *addresses = json_get(value->items[i], "addresses");
        for (uint32_t n = 0; n < json_len(addresses); n++)
            few_add(&few, json_text(addresses->items[n]));
    }
    return few_cell(a, &few, S("<unset>"));
}

/* Address and port of each ready endpoint. */
static struct json *cell_subsets(struct arena *a, const struct json *object UNUSED,
                                 const struct json *value, int64_t now_ns UNUSED)
{
    struct few few = { 0 };
    for (uint32_t i = 0; i < json_len(value); i++) {
        const struct json *ports = json_get(value->items[i], "ports");
        const struct json *addresses = json_get(value->items[i], "addresses");
        for (uint32_t p = 0; p < MAX(json_len(ports), (size_t)1); p++)
            for (uint32_t n = 0; n < json_len(addresses); n++) {
                str ip = json_text(json_get(addresses->items[n], "ip"));
                const struct json *port = json_get(json_item(ports, p), "port");
                few_add(&few, port ? arena_printf(a, STR_FMT ":%lld", STR_ARG(ip),
                                                  (long long)json_int(port, 0))
                                   : ip);
            }
    }
    return few_cell(a, &few, S("<none>"));
}

/* ---- storage and devices */

/* The name; an annotation marks the default class. */
static struct json *cell_default_name(struct arena *a, const struct json *object,
                                      const struct json *value, int64_t now_ns UNUSED)
{
    const struct json *annotations = json_at(object, "metadata", "annotations", NULL);
    bool is_default =
        str_eqc(json_text(json_get(annotations, "storageclass.kubernetes.io/is-default-class")),
                "true");
    return text_cell(a, arena_printf(a, STR_FMT "%s", STR_ARG(json_text(value)),
                                     is_default ? " (default)" : ""));
}

/* Access modes in their short form. */
static struct json *cell_modes(struct arena *a, const struct json *object UNUSED,
                               const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, table_access_modes(a, value));
}

/* The phase, unless the object is being deleted. */
static struct json *cell_phase(struct arena *a, const struct json *object, const struct json *value,
                               int64_t now_ns UNUSED)
{
    bool terminating = json_at(object, "metadata", "deletionTimestamp", NULL);
    return text_cell(a, terminating ? S("Terminating") : json_text(value));
}

/* Namespace and name. */
static struct json *cell_claim(struct arena *a, const struct json *object UNUSED,
                               const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, !value ? S("")
                               : arena_printf(a, STR_FMT "/" STR_FMT,
                                              STR_ARG(json_text(json_get(value, "namespace"))),
                                              STR_ARG(json_text(json_get(value, "name")))));
}

/* Audiences of the tokens that a driver asks for. */
static struct json *cell_audiences(struct arena *a, const struct json *object UNUSED,
                                   const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, json_len(value) ? join(a, value, "audience") : S("<unset>"));
}

/* What has happened to a claim so far. */
static struct json *cell_claim_state(struct arena *a, const struct json *object,
                                     const struct json *value, int64_t now_ns UNUSED)
{
    bool deleted = json_at(object, "metadata", "deletionTimestamp", NULL);
    bool allocated = json_get(value, "allocation");
    bool reserved = allocated && json_len(json_get(value, "reservedFor"));
    if (!deleted && !allocated)
        return text_cell(a, S("pending"));
    return text_cell(a, arena_printf(a, "%s%s%s%s", deleted ? "deleted" : "",
                                     deleted && allocated ? "," : "", allocated ? "allocated" : "",
                                     reserved ? ",reserved" : ""));
}

/* ---- governing kinds */

/* For qsort: resources are shown in alphabetical order. */
static int compare_keys(const void *a, const void *b)
{
    return str_cmp(((const struct json_member *)a)->key, ((const struct json_member *)b)->key);
}

/* "pods: 0/3", for limits or for everything else. */
static str format_usage(struct arena *a, const struct json *status, bool limits)
{
    struct json *hard = json_copy(a, json_get(status, "hard"));
    const struct json *used = json_get(status, "used");
    auto_buf struct buf text = { 0 };
    if (json_len(hard))
        qsort(hard->members, hard->n, sizeof(*hard->members), compare_keys);
    json_each(m, hard) {
        str have = json_text(json_get_str(used, m->key));
        if (str_starts(m->key, S("limits.")) != limits)
            continue;
        buf_printf(&text, "%s" STR_FMT ": " STR_FMT "/" STR_FMT, text.n ? ", " : "",
                   STR_ARG(m->key), STR_ARG(have.n ? have : S("0")), STR_ARG(json_text(m->value)));
    }
    return arena_str(a, buf_str(&text));
}

/* Everything that is not a limit. */
static struct json *cell_requests(struct arena *a, const struct json *object UNUSED,
                                  const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, format_usage(a, value, false));
}

/* Limits only. */
static struct json *cell_limits(struct arena *a, const struct json *object UNUSED,
                                const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, format_usage(a, value, true));
}

/* The controller among the owners. */
static struct json *cell_owner(struct arena *a, const struct json *object UNUSED,
                               const struct json *value, int64_t now_ns UNUSED)
{
    for (uint32_t i = 0; i < json_len(value); i++) {
        const struct json *each = value->items[i], *is = json_get(each, "controller");
        str group = json_text(json_get(each, "apiVersion"));
        if (!json_is(is, JSON_BOOL) || !is->boolean)
            continue;
        size_t slash = str_find_char(group, '/');
        group = slash == SIZE_MAX ? S("") : str_upto(group, slash);
        return text_cell(a, arena_printf(a, STR_FMT "%s" STR_FMT "/" STR_FMT,
                                         STR_ARG(arena_lower(a, json_text(json_get(each, "kind")))),
                                         group.n ? "." : "", STR_ARG(group),
                                         STR_ARG(json_text(json_get(each, "name")))));
    }
    return text_cell(a, S("<none>"));
}

/* A number of seconds, in the form of an age. */
static struct json *cell_duration(struct arena *a, const struct json *object UNUSED,
                                  const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, value ? table_age(a, json_int(value, 0)) : S("<none>"));
}

/* Approved, Denied or Failed, and Issued once there is a certificate. */
static struct json *cell_csr(struct arena *a, const struct json *object UNUSED,
                             const struct json *value, int64_t now_ns UNUSED)
{
    const struct json *conditions = json_get(value, "conditions");
    bool denied = false, failed = false, approved = false;
    for (uint32_t i = 0; i < json_len(conditions); i++) {
        str type = json_text(json_get(conditions->items[i], "type"));
        approved |= str_eqc(type, "Approved");
        denied |= str_eqc(type, "Denied");
        failed |= str_eqc(type, "Failed");
    }
    return text_cell(a, arena_printf(a, "%s%s%s",
                                     denied     ? "Denied"
                                     : approved ? "Approved"
                                     : failed   ? ""
                                                : "Pending",
                                     failed ? (denied || approved ? ",Failed" : "Failed") : "",
                                     json_get(value, "certificate") ? ",Issued" : ""));
}

/* The service that serves the group; this server has none. */
static struct json *cell_service(struct arena *a, const struct json *object,
                                 const struct json *value, int64_t now_ns)
{
    return value ? cell_claim(a, object, value, now_ns) : text_cell(a, S("Local"));
}

/* The condition, with its reason unless it holds. */
static struct json *cell_available(struct arena *a, const struct json *object UNUSED,
                                   const struct json *value, int64_t now_ns UNUSED)
{
    for (uint32_t i = 0; i < json_len(value); i++) {
        const struct json *each = value->items[i];
        str status = json_text(json_get(each, "status"));
        if (str_eqc(json_text(json_get(each, "type")), "Available"))
            return text_cell(a, str_eqc(status, "True")
                                    ? status
                                    : arena_printf(a, STR_FMT " (" STR_FMT ")", STR_ARG(status),
                                                   STR_ARG(json_text(json_get(each, "reason")))));
    }
    return text_cell(a, S("Unknown"));
}

/* Whether the priority level of a flow schema is missing; unknown until someone has looked. */
static struct json *cell_dangling(struct arena *a, const struct json *object UNUSED,
                                  const struct json *value, int64_t now_ns UNUSED)
{
    for (uint32_t i = 0; i < json_len(value); i++)
        if (str_eqc(json_text(json_get(value->items[i], "type")), "Dangling"))
            return json_get(value->items[i], "status");
    return text_cell(a, S("?"));
}

/* The kind of the parameters of a policy. */
static struct json *cell_param_kind(struct arena *a, const struct json *object UNUSED,
                                    const struct json *value, int64_t now_ns UNUSED)
{
    return text_cell(a, !value ? S("<unset>")
                               : arena_printf(a, STR_FMT "/" STR_FMT,
                                              STR_ARG(json_text(json_get(value, "apiVersion"))),
                                              STR_ARG(json_text(json_get(value, "kind")))));
}

/* The parameters that a binding selects; a star means a selector. */
static struct json *cell_param_ref(struct arena *a, const struct json *object UNUSED,
                                   const struct json *value, int64_t now_ns UNUSED)
{
    str ns = json_text(json_get(value, "namespace")), name = json_text(json_get(value, "name"));
    return text_cell(a, !value ? S("<unset>")
                               : arena_printf(a, STR_FMT "%s" STR_FMT, STR_ARG(ns), ns.n ? "/" : "",
                                              STR_ARG(name.n ? name : S("*"))));
}

/* Resource, group, namespace and name, as far as they are set. */
static struct json *cell_parent(struct arena *a, const struct json *object UNUSED,
                                const struct json *value, int64_t now_ns UNUSED)
{
    static const char *const keys[] = { "resource", "group", "namespace", "name" };
    auto_buf struct buf text = { 0 };
    for (size_t i = 0; i < countof(keys); i++) {
        str part = json_text(json_get(value, keys[i]));
        if (part.n)
            buf_printf(&text, "%s" STR_FMT, !text.n ? "" : i == 1 ? "." : "/", STR_ARG(part));
    }
    return text_cell(a, arena_str(a, buf_str(&text)));
}

/* ---- plans */

static const struct {
    const char *name;
    cell_fn *make;
} functions[] = {
    { "addresses", cell_addresses },
    { "audiences", cell_audiences },
    { "available", cell_available },
    { "bool", cell_bool },
    { "claim", cell_claim },
    { "count", cell_count },
    { "csr", cell_csr },
    { "dangling", cell_dangling },
    { "defaultname", cell_default_name },
    { "duration", cell_duration },
    { "endpoints", cell_slice_endpoints },
    { "hosts", cell_hosts },
    { "images", cell_images },
    { "int", cell_int },
    { "labels", cell_labels },
    { "limits", cell_limits },
    { "list", cell_list },
    { "modes", cell_modes },
    { "names", cell_names },
    { "orna", cell_or_n_a },
    { "owner", cell_owner },
    { "parameters", cell_parameters },
    { "paramkind", cell_param_kind },
    { "paramref", cell_param_ref },
    { "parent", cell_parent },
    { "phase", cell_phase },
    { "ports", cell_slice_ports },
    { "requests", cell_requests },
    { "selector", cell_selector },
    { "service", cell_service },
    { "state", cell_claim_state },
    { "subsets", cell_subsets },
    { "time", cell_time },
    { "tlsports", cell_tls_ports },
    { "truth", cell_truth },
};

/* One word of a plan. */
static struct json *make_cell(struct arena *a, const struct json *object, str word, int64_t now_ns)
{
    const struct json *metadata = json_get(object, "metadata");
    if (str_eqc(word, "name"))
        return text_cell(a, json_text(json_get(metadata, "name")));
    if (str_eqc(word, "age"))
        return text_cell(a, table_cell_age(a, json_get(metadata, "creationTimestamp"), now_ns));
    if (word.p[0] == '$') {
        size_t colon = str_find_char(word, ':');
        for (size_t i = 0; i < countof(functions); i++)
            if (str_eqc(str_upto(str_from(word, 1), colon - 1), functions[i].name))
                return functions[i].make(a, object, find_path(object, str_from(word, colon + 1)),
                                         now_ns);
        abort(); /* the plans name only functions of this table */
    }
    size_t bar = str_find_char(word, '|');
    const struct json *value = find_path(object, str_upto(word, bar));
    if (value && !(json_is(value, JSON_STR) && !json_text(value).n))
        return json_copy(a, value);
    return text_cell(a, bar == SIZE_MAX ? S("") : str_from(word, bar + 1));
}

void table_fill_plan(struct arena *a, const struct json *object, int64_t now_ns, struct json *cells,
                     const char *plan)
{
    for (str rest = str_c(plan), word; rest.n && str_cut(&rest, ' ', &word);)
        json_push(a, cells, make_cell(a, object, word, now_ns));
}
