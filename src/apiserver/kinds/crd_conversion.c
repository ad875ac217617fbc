/* What makes the conversion of a definition invalid, and the rules for the address of any webhook.
 *
 * Errors have the paths of the internal type, where
 * webhookClientConfig and conversionReviewVersions are not nested below webhook. */
#include "../schema/format.h"
#include "kind_hooks.h"

static struct json *new_text(const struct field_errors *errors, str text)
{
    return json_new_str(errors->arena, text);
}

/* A webhook URL: https, a host, no user, fragment or query. Errors quote the part that is wrong. */
void kind_check_webhook_url(const struct json *url, const struct field_path *at,
                            struct field_errors *errors)
{
#define FORM "; desired format: https://host[/path]"
    str rest = json_text(url), fragment = S(""), query = S(""), scheme = S(""), user = S("");
    size_t cut = str_find_char(rest, '#');
    if (cut != SIZE_MAX) {
        fragment = str_from(rest, cut + 1);
        rest = str_upto(rest, cut);
    }
    if ((cut = str_find_char(rest, '?')) != SIZE_MAX) {
        query = str_from(rest, cut + 1);
        rest = str_upto(rest, cut);
    }
    if ((cut = str_find(rest, S("://"))) != SIZE_MAX) {
        scheme = str_upto(rest, cut);
        rest = str_from(rest, cut + 3);
    } else {
        rest = S("");
    }
    str host = str_upto(rest, MIN(str_find_char(rest, '/'), rest.n));
    bool has_user = (cut = str_find_char(host, '@')) != SIZE_MAX;
    if (has_user) {
        user = str_upto(host, cut);
        host = str_from(host, cut + 1);
    }
    if (!str_eq_nocase(scheme, S("https")))
        field_invalid(errors, at, new_text(errors, scheme),
                      "'https' is the only allowed URL scheme" FORM);
    if (!host.n)
        field_invalid(errors, at, new_text(errors, host), "host must be specified" FORM);
    if (has_user)
        field_invalid(errors, at, new_text(errors, user),
                      "user information is not permitted in the URL");
    if (fragment.n)
        field_invalid(errors, at, new_text(errors, fragment),
                      "fragments are not permitted in the URL");
    if (query.n)
        field_invalid(errors, at, new_text(errors, query),
                      "query parameters are not permitted in the URL");
#undef FORM
}

/* A URL path whose segments are DNS subdomains. */
static void check_path(const struct json *path, const struct field_path *at,
                       struct field_errors *errors)
{
    str text = json_text(path), part;
    if (!text.n || str_eqc(text, "/"))
        return;
    if (!str_starts(text, S("/")))
        field_invalid(errors, at, path, "must start with a '/'");
    text = str_from(text, 1);
    if (str_ends(text, S("/")))
        text.n--;
    if (!text.n)
        field_invalid(errors, at, path, "segment[0] may not be empty");
    for (int i = 0; str_cut(&text, '/', &part); i++)
        if (!part.n)
            field_invalid(errors, at, path, "segment[%d] may not be empty", i);
        else if (format_dns_subdomain(part))
            field_invalid(errors, at, path, "segment[%d]: %s", i, format_dns_subdomain(part));
}

void kind_check_webhook_service(const struct json *service, const struct field_path *at,
                                struct field_errors *errors)
{
    const struct json *port = json_get(service, "port");
    if (!json_text(json_get(service, "name")).n)
        field_required(errors, AT(at, "name"), NULL);
    if (!json_text(json_get(service, "namespace")).n)
        field_required(errors, AT(at, "namespace"), NULL);
    if (json_int(port, 1) < 1 || json_int(port, 1) > 65535)
        field_invalid(errors, AT(at, "port"), port,
                      "port is not valid: must be between 1 and 65535, inclusive");
    check_path(json_get(service, "path"), AT(at, "path"), errors);
}

/* Exactly one of url and service. */
static void check_config(const struct json *config, const struct field_path *at,
                         struct field_errors *errors)
{
    const struct json *url = json_get(config, "url"), *service = json_get(config, "service");
    if (!config)
        field_required(errors, at, "required when strategy is set to Webhook");
    else if (!url == !service)
        field_required(errors, at, "exactly one of url or service is required");
    else if (url)
        kind_check_webhook_url(url, AT(at, "url"), errors);
    else
        kind_check_webhook_service(service, AT(at, "service"), errors);
}

/* Versions of reviews: distinct, well-formed, and at least one that kube-apiserver can send. */
void kind_check_review_versions(const struct json *versions, const struct field_path *at,
                                const char *if_none, struct field_errors *errors)
{
    bool supported = false;
    if (!json_len(versions)) {
        field_required(errors, at, if_none);
        return;
    }
    struct seen seen = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < versions->n; i++) {
        struct field_path item = { at, .index = i, .how = FIELD_INDEX };
        const struct json *version = versions->items[i];
        const char *fault = format_dns_label_1035(json_text(version));
        supported = supported || str_eqc(json_text(version), "v1") ||
                    str_eqc(json_text(version), "v1beta1");
        if (seen_value(&seen, version, i))
            field_invalid(errors, &item, version, "duplicate version");
        else if (fault)
            field_invalid(errors, &item, version, "%s", fault);
    }
    if (!supported)
        field_invalid(errors, at, versions, "must include at least one of v1, v1beta1");
}

/* Strategy Webhook needs a client configuration; None must not have one. */
void crd_check_conversion(const struct json *conversion, const struct field_path *at,
                          struct field_errors *errors)
{
    bool webhook = str_eqc(json_text(json_get(conversion, "strategy")), "Webhook");
    const struct json *config = json_at(conversion, "webhook", "clientConfig", NULL);
    const struct json *reviews = json_at(conversion, "webhook", "conversionReviewVersions", NULL);
    struct field_path in_config = { at, .key = S("webhookClientConfig") };
    struct field_path in_reviews = { at, .key = S("conversionReviewVersions") };
    if (webhook) {
        check_config(config, &in_config, errors);
        kind_check_review_versions(reviews, &in_reviews, NULL, errors);
        return;
    }
    if (config)
        field_forbidden(errors, &in_config,
                        "should not be set when strategy is not set to Webhook");
    if (json_len(reviews))
        field_forbidden(errors, &in_reviews,
                        "should not be set when strategy is not set to Webhook");
}
