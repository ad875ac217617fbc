/* Validation of webhook configurations: ValidatingWebhookConfiguration and MutatingWebhookConfiguration.
 *
 * Defaults and the values of single fields are in types/admission.types. This file checks the name of each webhook,
 * where it is and what it sees. Match conditions are compiled here, so that one that cannot run is refused when it is
 * written. A caBundle is not looked at: like kube-apiserver, the server finds out when it calls the webhook. */
#include "../schema/format.h"
#include "kind_hooks.h"
#include "policy.h"

enum { TIMEOUT_MAX = 30 };

/* A name has at least three segments, so that names of different owners do not clash. */
static void check_name(const struct json *name, const struct field_path *at,
                       struct field_errors *errors)
{
    str text = json_text(name), part;
    int segments = 0;
    if (!text.n) {
        field_required(errors, at, NULL);
        return;
    }
    const char *fault = format_dns_subdomain(text);
    if (fault)
        field_invalid(errors, at, name, "%s", fault);
    while (str_cut(&text, '.', &part))
        segments++;
    if (segments < 3)
        field_invalid(errors, at, name,
                      "should be a domain with at least three segments separated by dots");
}

static void check_client(const struct json *config, const struct field_path *at,
                         struct field_errors *errors)
{
    const struct json *url = json_get(config, "url"), *service = json_get(config, "service");
    if (!url == !service)
        field_required(errors, at, "exactly one of url or service is required");
    else if (url)
        kind_check_webhook_url(url, AT(at, "url"), errors);
    else
        kind_check_webhook_service(service, AT(at, "service"), errors);
}

static void check_webhook(const struct json *hook, const struct field_path *at,
                          struct field_errors *errors)
{
    const struct json *timeout = json_get(hook, "timeoutSeconds");
    check_name(json_get(hook, "name"), AT(at, "name"), errors);
    kind_check_admission_rules(json_get(hook, "rules"), AT(at, "rules"), errors);
    if (!json_is(json_get(hook, "sideEffects"), JSON_STR))
        field_required(errors, AT(at, "sideEffects"), "must specify one of None, NoneOnDryRun");
    if (json_int(timeout, 1) < 1 || json_int(timeout, 1) > TIMEOUT_MAX)
        field_invalid(errors, AT(at, "timeoutSeconds"), timeout,
                      "the timeout value must be between 1 and 30 seconds");
    kind_check_selector(json_get(hook, "namespaceSelector"), AT(at, "namespaceSelector"), errors);
    kind_check_selector(json_get(hook, "objectSelector"), AT(at, "objectSelector"), errors);
    check_client(json_get(hook, "clientConfig"), AT(at, "clientConfig"), errors);
    kind_policy_compile_conditions(errors->arena, hook, at, errors);
    kind_check_review_versions(json_get(hook, "admissionReviewVersions"),
                               AT(at, "admissionReviewVersions"), "must specify one of v1, v1beta1",
                               errors);
}

static void validate_webhooks(const struct kind_change *c, struct kind_env *env UNUSED,
                              struct field_errors *errors)
{
    const struct json *hooks = json_get(c->object, "webhooks");
    struct field_path list = { NULL, .key = S("webhooks") };
    struct seen names = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < json_len(hooks); i++) {
        struct field_path at = { &list, .index = i, .how = FIELD_INDEX };
        const struct json *name = json_get(hooks->items[i], "name");
        check_webhook(hooks->items[i], &at, errors);
        if (json_text(name).n && seen_value(&names, name, i))
            field_duplicate(errors, AT(&at, "name"), name);
    }
}

const struct kind_hooks kind_hooks_webhooks = { .validate = validate_webhooks };
