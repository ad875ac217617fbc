/* The probe of flyball check that asks the API server, permission by permission, whether the operator may do what its
 * roles list. For an installed operator it asks about its service account (SubjectAccessReview); otherwise about the
 * user, who may want to run `flyball operator` with the same kubeconfig (SelfSubjectAccessReview).
 *
 * The roles are those of the embedded manifests, so that the probe and `flyball install` never differ. */
#include "check.h"
#include "manifests.h"

static const struct resource self_review = { "authorization.k8s.io", "v1",
                                             "selfsubjectaccessreviews", "SelfSubjectAccessReview",
                                             false };
static const struct resource subject_review = { "authorization.k8s.io", "v1",
                                                "subjectaccessreviews", "SubjectAccessReview",
                                                false };

enum { MISSING_SHOWN = 10 };

struct rights {
    struct check *check;
    size_t asked, missing;
    struct buf names; /* of missing ones */
    bool unknown;
    err_t e;
};

struct permission {
    str group, resource, verb, name, ns; /* ns "": cluster-wide */
};

/* The groups are those that every service account has; roles may be bound to them. */
static struct json *make_review(struct rights *r, const struct permission *p)
{
    struct arena *a = &r->check->x.arena;
    struct json *review = json_new_obj(a), *spec = json_new_obj(a), *at = json_new_obj(a);
    size_t slash = str_find_char(p->resource, '/');
    json_set_str(a, at, "group", p->group);
    json_set_str(a, at, "resource", str_upto(p->resource, slash));
    if (slash != SIZE_MAX)
        json_set_str(a, at, "subresource", str_from(p->resource, slash + 1));
    json_set_str(a, at, "verb", p->verb);
    json_set_str(a, at, "name", p->name);
    json_set_str(a, at, "namespace", p->ns);
    json_set(a, spec, S("resourceAttributes"), at);
    if (r->check->installed) {
        struct json *groups = json_new_arr(a);
        json_push(a, groups, json_new_str(a, S("system:serviceaccounts")));
        json_push(a, groups, json_new_str(a, S("system:authenticated")));
        json_set_str(a, spec, "user",
                     arena_printf(a, "system:serviceaccount:%s:flyball-operator", r->check->ns));
        json_set(a, spec, S("groups"), groups);
    }
    json_set_str(a, review, "apiVersion", S("authorization.k8s.io/v1"));
    json_set_str(a, review, "kind",
                 str_c(r->check->installed ? subject_review.kind : self_review.kind));
    json_set(a, review, S("spec"), spec);
    return review;
}

/* After the first failure nothing more is asked: it would fail the same way, once for each of some hundred permissions. */
static void review_permission(struct rights *r, const struct permission *p)
{
    struct explain *x = &r->check->x;
    struct json *answer;
    struct kube_request request = { .verb = KUBE_CREATE,
                                    .resource =
                                        r->check->installed ? &subject_review : &self_review,
                                    .no_gate = true,
                                    .body = json_to_str(&x->arena, make_review(r, p)) };
    if (r->unknown)
        return;
    if (explain_send(x, request, &answer, &r->e) < 0) {
        r->unknown = true;
        return;
    }
    r->asked++;
    if (json_bool(json_at(answer, "status", "allowed", NULL), false))
        return;
    if (r->missing++ < MISSING_SHOWN)
        buf_printf(&r->names, "%s" STR_FMT " " STR_FMT "%s" STR_FMT, r->names.n ? ", " : "",
                   STR_ARG(p->verb), STR_ARG(p->resource), p->group.n ? "." : "",
                   STR_ARG(p->group));
}

/* All combinations of one rule of a role. */
static void ask_rule(struct rights *r, const struct json *rule, str ns)
{
    const struct json *groups = json_get(rule, "apiGroups"),
                      *resources = json_get(rule, "resources"), *verbs = json_get(rule, "verbs"),
                      *names = json_get(rule, "resourceNames");
    for (size_t g = 0; g < json_len(groups); g++)
        for (size_t i = 0; i < json_len(resources); i++)
            for (size_t v = 0; v < json_len(verbs); v++)
                for (size_t n = 0; n < MAX(json_len(names), (size_t)1); n++)
                    review_permission(r,
                                      &(struct permission){ json_text(json_item(groups, g)),
                                                            json_text(json_item(resources, i)),
                                                            json_text(json_item(verbs, v)),
                                                            json_text(json_item(names, n)), ns });
}

/* A Role counts in the namespace of the operator, whatever its manifest names, since `install --namespace` moves it. */
static void ask_role(struct rights *r, const struct json *role)
{
    str kind = json_text(json_get(role, "kind"));
    const struct json *rules = json_get(role, "rules");
    str name = json_text(json_at(role, "metadata", "name", NULL));
    if (str_eqc(name, "flyball-metrics-reader") ||
        str_eqc(name, "aim-engine-artifact-status-updater"))
        return; /* of those who scrape, and of the pods that download */
    for (size_t i = 0; i < json_len(rules); i++)
        ask_rule(r, json_item(rules, i), str_eqc(kind, "Role") ? str_c(r->check->ns) : S(""));
}

/* The roles of the operator; the agent's are bound to another account. */
static bool is_operator_role(const char *manifest)
{
    static const char *const names[] = { "election.yaml",   "metrics.yaml", "schedule.yaml",
                                         "saturation.yaml", "market.yaml",  "runtimeconfig.yaml" };
    for (size_t i = 0; i < countof(names); i++)
        if (!strcmp(manifest, names[i]))
            return true;
    return false;
}

void check_rights(struct check *c)
{
    struct rights r = { .check = c };
    auto_buf struct buf text = { 0 };
    for (const struct manifest *m = manifests_install; m->name; m++) {
        struct json *documents;
        err_t e;
        if (!is_operator_role(m->name) || manifest_read(m, &c->x.arena, &documents, &e) < 0)
            continue;
        for (size_t i = 0; i < json_len(documents); i++)
            ask_role(&r, json_item(documents, i));
    }
    const char *who = c->installed ? "the operator" : "with your user, an operator";
    if (r.unknown)
        buf_printf(&text, "%s", r.e.text);
    else if (r.missing)
        buf_printf(&text, "%s may not do %zu of %zu things: %s%s", who, r.missing, r.asked,
                   r.names.p, r.missing > MISSING_SHOWN ? ", ..." : "");
    else
        buf_printf(&text, "%s may do all %zu things that it must do", who, r.asked);
    /* Without an operator it is no fault that the user has fewer rights. */
    check_add(c,
              r.unknown      ? CHECK_UNKNOWN
              : !r.missing   ? CHECK_OK
              : c->installed ? CHECK_FAILED
                             : CHECK_WARNING,
              "permissions", buf_str(&text),
              r.missing ? S("flyball install | kubectl apply --server-side -f -") : S(""));
    buf_done(&r.names);
}
