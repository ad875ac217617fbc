/* See workload_core.h. */
#include "workload_core.h"

#include "stock_core.h"
#include "text_core.h"
#include "vllm_args_core.h"

#include "../../base/quantity.h"

static const struct json *group_of(const struct json *object)
{
    return json_at(object, "spec", "leaderWorkerTemplate", NULL);
}

/* The template of the pods that serve: of the leader, if there is one. */
static const struct json *workload_template(const struct json *object)
{
    const struct json *group = group_of(object), *leader = json_get(group, "leaderTemplate");
    if (!group)
        return json_at(object, "spec", "template", NULL);
    return json_is(leader, JSON_OBJ) ? leader : json_get(group, "workerTemplate");
}

static const struct json *containers_of(const struct json *template)
{
    return json_at(template, "spec", "containers", NULL);
}

static int64_t read_quantity(const struct json *v)
{
    int64_t value = 0;
    if (json_is(v, JSON_INT))
        return v->integer;
    return quantity_parse_value(json_text(v), &value, NULL) < 0 ? 0 : value;
}

/* GPUs that a list of containers requests. */
static int64_t workload_gpus(const struct json *containers, enum workload_rules rules)
{
    int64_t sum = 0;
    for (size_t i = 0; i < json_len(containers); i++) {
        const struct json *requests =
            json_at(json_item(containers, i), "resources", "requests", NULL);
        for (size_t r = 0; r < STOCK_RESOURCE_N; r++)
            sum += read_quantity(json_get(requests, stock_resources[r].resource));
        if (rules == WORKLOAD_OURS)
            sum += read_quantity(json_get(requests, "intel.com/gpu"));
    }
    return sum;
}

/* GPUs of one replica: of the pod, or of the leader and its workers. */
static int64_t count_gpus(const struct json *object, int64_t size, enum workload_rules rules)
{
    const struct json *group = group_of(object);
    int64_t first = workload_gpus(containers_of(workload_template(object)), rules);
    if (!group)
        return first;
    int64_t worker = workload_gpus(containers_of(json_get(group, "workerTemplate")), rules);
    if (rules == WORKLOAD_WVA && !json_is(json_get(group, "leaderTemplate"), JSON_OBJ))
        first = 0;
    return first + (size - 1) * worker;
}

/* ---- the accelerator */

/* The first value of a term that names a product. */
static str match_term(const struct json *term)
{
    const struct json *list = json_get(term, "matchExpressions");
    for (size_t i = 0; i < json_len(list); i++) {
        const struct json *x = json_item(list, i), *values = json_get(x, "values");
        if (stock_is_product_label(json_text(json_get(x, "key"))) &&
            str_eqc(json_text(json_get(x, "operator")), "In") && json_len(values))
            return json_text(json_item(values, 0));
    }
    return S("");
}

str workload_affinity_product(const struct json *affinity)
{
    const struct json *terms = json_at(affinity, "requiredDuringSchedulingIgnoredDuringExecution",
                                       "nodeSelectorTerms", NULL);
    str found = S("");
    for (size_t i = 0; i < json_len(terms) && !found.n; i++)
        found = match_term(json_item(terms, i));
    terms = json_get(affinity, "preferredDuringSchedulingIgnoredDuringExecution");
    for (size_t i = 0; i < json_len(terms) && !found.n; i++)
        found = match_term(json_get(json_item(terms, i), "preference"));
    return found;
}

/* The accelerator that the template selects: by its nodeSelector, else by its affinity. */
static str selected_accelerator(const struct json *template, bool *ret_found)
{
    const struct json *selector = json_at(template, "spec", "nodeSelector", NULL);
    str best_key = S(""), value = S("");
    *ret_found = false;
    json_each(m, selector)
        if (stock_is_product_label(m->key) && (!*ret_found || str_cmp(m->key, best_key) < 0)) {
            best_key = m->key;
            value = json_text(m->value);
            *ret_found = true;
        }
    if (*ret_found)
        return value;
    value = workload_affinity_product(json_at(template, "spec", "affinity", "nodeAffinity", NULL));
    *ret_found = value.n > 0;
    return value;
}

static str read_role(const struct json *template)
{
    str role = json_text(json_at(template, "metadata", "labels", "llm-d.ai/role", NULL));
    return str_eqc(role, "prefill") || str_eqc(role, "decode") ? role : S("both");
}

struct workload_facts workload_read(struct arena *a, const struct json *object, str label,
                                    enum workload_rules rules)
{
    const struct json *template = workload_template(object);
    struct workload_facts f = { .group_size = 1, .role = read_role(template) };
    if (group_of(object))
        f.group_size = json_int(json_get(group_of(object), "size"), 1);
    if (rules == WORKLOAD_OURS)
        f.group_size = MAX(f.group_size, (int64_t)1);
    f.gpus = count_gpus(object, f.group_size, rules);
    if (f.gpus == 0)
        f.gpus = 1;
    f.accelerator = selected_accelerator(template, &f.names_type);
    if (!f.names_type)
        f.accelerator = label.n ? label : S("unknown");
    f.type = sat_accelerator_name(f.accelerator);
    f.sglang = sat_is_sglang(a, containers_of(template));
    return f;
}
