/* Credentials and references beyond the golden vectors: several secrets, several keys, and what is left empty. */
#include "registry/registry.h"
#include "tap.h"

/* The user whose credentials apply; empty: none apply. Each secret is the content of "auths". */
static str user_of(struct arena *a, const char *image, const char *const *auths, size_t n)
{
    struct registry_reference r;
    struct registry_secret secrets[4];
    struct registry_credentials found;
    err_t e;
    OK_CALL(registry_reference_parse(a, str_c(image), &r, &e), &e);
    for (size_t i = 0; i < n; i++)
        secrets[i] = (struct registry_secret){ S("kubernetes.io/dockerconfigjson"),
                                               arena_printf(a, "{\"auths\":{%s}}", auths[i]) };
    OK_CALL(registry_keychain_find(a, secrets, n, &r, true, &found, &e), &e);
    return found.found ? found.username : S("");
}

#define KEY(key, user) "\"" key "\":{\"username\":\"" user "\",\"password\":\"p\"}"

static void the_most_specific_key_of_all_secrets_wins(void)
{
    auto_arena struct arena a = { 0 };
    static const char *const order[] = { KEY("ghcr.io", "host"), KEY("ghcr.io/acme", "path") };
    static const char *const schemes[] = { KEY("https://ghcr.io", "host") "," KEY("ghcr.io/acme",
                                                                                  "path") };
    static const char *const equal[] = { KEY("https://ghcr.io/v2/", "first"),
                                         KEY("ghcr.io", "second") };
    EQ_STR(user_of(&a, "ghcr.io/acme/x:1", order, 2), S("path"));
    EQ_STR(user_of(&a, "ghcr.io/other/x:1", order, 2), S("host"));
    EQ_STR(user_of(&a, "ghcr.io/acme/x:1", schemes, 1), S("path"));
    EQ_STR(user_of(&a, "ghcr.io/acme/x:1", equal, 2), S("first"));
}

static void docker_hub_has_several_names(void)
{
    static const char *const keys[] = { KEY("https://index.docker.io/v1/", "bob"),
                                        KEY("https://index.docker.io/v1", "bob"),
                                        KEY("docker.io", "bob") };
    for (size_t i = 0; i < countof(keys); i++) {
        auto_arena struct arena a = { 0 };
        EQ_STR(user_of(&a, "acme/x:1", &keys[i], 1), S("bob"));
    }
}

static void an_empty_secret_is_none_and_a_broken_one_an_error(void)
{
    auto_arena struct arena a = { 0 };
    struct registry_secret s = { S("kubernetes.io/dockerconfigjson"), S("") };
    struct registry_reference r;
    struct registry_credentials found;
    err_t e;
    OK_CALL(registry_reference_parse(&a, S("ghcr.io/acme/x"), &r, &e), &e);
    EQ_INT(registry_keychain_find(&a, &s, 1, &r, true, &found, &e), 0);
    OK(!found.found);
    s.data = S("{\"auths\":{");
    EQ_INT(registry_keychain_find(&a, &s, 1, &r, true, &found, &e), -EINVAL);
}

static void a_tag_after_the_colon_is_not_empty(void)
{
    auto_arena struct arena a = { 0 };
    struct registry_reference r;
    err_t e;
    EQ_INT(registry_reference_parse(&a, S("acme/aim:"), &r, &e), -EINVAL);
    EQ_INT(registry_reference_parse(&a, S("reg.example:5000/acme/aim"), &r, &e), 0);
    EQ_STR(r.tag, S("latest"));
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(the_most_specific_key_of_all_secrets_wins),
                                        TAP(docker_hub_has_several_names),
                                        TAP(an_empty_secret_is_none_and_a_broken_one_an_error),
                                        TAP(a_tag_after_the_colon_is_not_empty),
                                        { 0 } });
}
