/* What makes the conversion of a definition invalid.
 *
 * This server converts nothing but apiVersion and never calls a webhook, but a definition with a broken one
 * must be refused here as it is elsewhere. Errors have the paths of the internal type, where
 * webhookClientConfig and conversionReviewVersions are not nested below webhook. */
#include "../schema/format.h"
#include "kind_hooks.h"

/* A webhook URL: https, a host, no user, fragment or query. */
static void check_url(const struct json *url, const struct field_path *at,
                      struct field_errors *errors)
{
    str text = json_text(url), host;
    bool https = str_starts(text, S("https://"));
    size_t scheme = str_find(text, S("://"));
    host = scheme == SIZE_MAX ? S("") : str_from(text, scheme + 3);
    size_t end = 0;
    while (end < host.n && !strchr("/?#", host.p[end]))
        end++;
    if (!https)
        field_invalid(errors, at, url, "'https' is the only allowed URL scheme");
    if (!end)
        field_invalid(errors, at, url, "host must be specified");
    if (str_find_char(str_upto(host, end), '@') != SIZE_MAX)
        field_invalid(errors, at, url, "user information is not permitted in the URL");
    if (str_find_char(text, '#') != SIZE_MAX)
        field_invalid(errors, at, url, "fragments are not permitted in the URL");
    if (str_find_char(text, '?') != SIZE_MAX)
        field_invalid(errors, at, url, "query parameters are not permitted in the URL");
}

/* A URL path whose segments are DNS subdomains. */
static void check_path(const struct json *path, const struct field_path *at,
                       struct field_errors *errors)
{
    str text = json_text(path), part;
    if (!path || str_eqc(text, "/"))
        return;
    if (!str_starts(text, S("/")))
        field_invalid(errors, at, path, "must start with a '/'");
    if (str_ends(text, S("/")))
        text.n--;
    text = str_from(text, str_starts(text, S("/")));
    while (str_cut(&text, '/', &part))
        if (!part.n)
            field_invalid(errors, at, path, "segments may not be empty");
        else if (format_dns_subdomain(part))
            field_invalid(errors, at, path, "%s", format_dns_subdomain(part));
}

/* A service reference of a webhook. */
static void check_service(const struct json *service, const struct field_path *at,
                          struct field_errors *errors)
{
    const struct json *port = json_get(service, "port");
    if (!json_text(json_get(service, "name")).n)
        field_required(errors, AT(at, "name"), NULL);
    if (!json_text(json_get(service, "namespace")).n)
        field_required(errors, AT(at, "namespace"), NULL);
    if (json_int(port, 1) < 1 || json_int(port, 1) > 65535)
        field_invalid(errors, AT(at, "port"), port, "must be between 1 and 65535, inclusive");
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
        check_url(url, AT(at, "url"), errors);
    else
        check_service(service, AT(at, "service"), errors);
}

/* conversionReviewVersions: distinct, well-formed, and at least one that kube-apiserver can send. */
static void check_reviews(const struct json *reviews, const struct field_path *at,
                          struct field_errors *errors)
{
    bool supported = false;
    if (!json_len(reviews)) {
        field_required(errors, at, NULL);
        return;
    }
    struct seen versions = seen_new(errors->arena, 1);
    for (uint32_t i = 0; i < reviews->n; i++) {
        struct field_path item = { at, .index = i, .how = FIELD_INDEX };
        const struct json *version = reviews->items[i];
        const char *fault = format_dns_label_1035(json_text(version));
        supported = supported || str_eqc(json_text(version), "v1") ||
                    str_eqc(json_text(version), "v1beta1");
        if (seen_value(&versions, version, i))
            field_invalid(errors, &item, version, "duplicate version");
        else if (fault)
            field_invalid(errors, &item, version, "%s", fault);
    }
    if (!supported)
        field_invalid(errors, at, reviews, "must include at least one of v1, v1beta1");
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
        check_reviews(reviews, &in_reviews, errors);
        return;
    }
    if (config)
        field_forbidden(errors, &in_config,
                        "should not be set when strategy is not set to Webhook");
    if (json_len(reviews))
        field_forbidden(errors, &in_reviews,
                        "should not be set when strategy is not set to Webhook");
}
