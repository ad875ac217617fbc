/* The dialogue beyond the golden vectors: limits and rules that the original does not have. */
#include "base/sha256.h"
#include "registry/registry.h"
#include "tap.h"

#define CONFIG "{\"config\":{\"Labels\":{\"a\":\"b\"}}}"

static struct registry_question question(struct arena *a, const char *image)
{
    struct registry_question q = { 0 };
    err_t e;
    OK_CALL(registry_reference_parse(a, str_c(image), &q.image, &e), &e);
    q.credentials = (struct registry_credentials){ true, S("bob"), S("secret"), S("") };
    return q;
}

static struct registry_request answer(struct registry_dialogue *d,
                                      const struct registry_answer *with)
{
    struct registry_request r = { 0 };
    if (registry_dialogue_next(d, &r))
        registry_dialogue_answer(d, with);
    return r;
}

static void credentials_stay_with_their_host(void)
{
    auto_arena struct arena a = { 0 };
    struct registry_question q = question(&a, "reg.example/a/b:1");
    struct registry_dialogue d;
    registry_dialogue_start(&d, &a, &q);
    answer(&d, &(struct registry_answer){ .status = 401, .authenticate = S("Basic realm=\"x\"") });
    struct registry_request r =
        answer(&d,
               &(struct registry_answer){ .status = 302, .location = S("https://cdn.example/m") });
    OK(str_starts(r.authorization, S("Basic ")));
    r = answer(&d, &(struct registry_answer){ .status = 404 });
    EQ_STR(r.url, S("https://cdn.example/m"));
    EQ_INT(r.target, REGISTRY_REDIRECT);
    EQ_STR(r.authorization, S(""));
    EQ_INT(d.result.cause, REGISTRY_NOT_FOUND);
}

static void https_is_never_left(void)
{
    static const char *const away[] = { "http://reg.example/m", "ftp://x/y", "file:///etc/passwd" };
    for (size_t i = 0; i < countof(away); i++) {
        auto_arena struct arena a = { 0 };
        struct registry_question q = question(&a, "reg.example/a/b:1");
        struct registry_dialogue d;
        registry_dialogue_start(&d, &a, &q);
        answer(&d, &(struct registry_answer){ .status = 200 });
        answer(&d, &(struct registry_answer){ .status = 302, .location = str_c(away[i]) });
        EQ_INT(d.result.cause, REGISTRY_MALFORMED);
        registry_dialogue_start(&d, &a, &q);
        answer(&d,
               &(struct registry_answer){
                   .status = 401, .authenticate = S("Bearer realm=\"http://t.example/token\"") });
        EQ_INT(d.result.cause, REGISTRY_MALFORMED); /* credentials would go over HTTP */
    }
}

static void what_has_a_digest_is_verified(void)
{
    auto_arena struct arena a = { 0 };
    char hex[SHA256_HEX + 1];
    sha256_hex(S(CONFIG), hex);
    str manifest = arena_printf(&a, "{\"config\":{\"digest\":\"sha256:%s\",\"size\":%zu}}", hex,
                                strlen(CONFIG));
    for (int wrong = 0; wrong < 2; wrong++) {
        struct registry_question q = question(&a, "reg.example/a/b:1");
        struct registry_dialogue d;
        registry_dialogue_start(&d, &a, &q);
        answer(&d, &(struct registry_answer){ .status = 200 });
        answer(&d, &(struct registry_answer){ .status = 200, .body = manifest });
        str body = wrong ? S("{\"config\":{\"Labels\":{\"a\":\"x\"}}}") : S(CONFIG);
        answer(&d, &(struct registry_answer){ .status = 200, .body = body });
        OK(d.result.done);
        EQ_INT(d.result.cause, wrong ? REGISTRY_MALFORMED : REGISTRY_OK);
    }
}

static void causes_decide_what_to_do(void)
{
    static const struct {
        int status;
        enum registry_cause cause;
        const char *reason;
    } t[] = { { 401, REGISTRY_DENIED, "ImagePullAuthFailure" },
              { 403, REGISTRY_DENIED, "ImagePullAuthFailure" },
              { 404, REGISTRY_NOT_FOUND, "ImageNotFound" },
              { 429, REGISTRY_LIMITED, "RateLimited" },
              { 503, REGISTRY_UNREACHABLE, "RegistryUnreachable" },
              { 0, REGISTRY_UNREACHABLE, "RegistryUnreachable" },
              { 418, REGISTRY_MALFORMED, "MetadataExtractionFailed" } };
    for (size_t i = 0; i < countof(t); i++) {
        auto_arena struct arena a = { 0 };
        struct registry_question q = question(&a, "reg.example/a/b:1");
        struct registry_dialogue d;
        registry_dialogue_start(&d, &a, &q);
        answer(&d, &(struct registry_answer){ .status = 200 });
        for (int k = 0; k < REGISTRY_TRIES; k++)
            answer(&d, &(struct registry_answer){ .status = t[i].status,
                                                  .failure = S("refused"),
                                                  .retry_after = S("30") });
        EQ_INT(d.result.cause, t[i].cause);
        EQ_STR(str_c(registry_cause_reason(d.result.cause)), str_c(t[i].reason));
        OK(d.result.message.n && str_find(d.result.message, S("secret")) == SIZE_MAX);
    }
}

int main(void)
{
    return tap_run((struct tap_case[]){ TAP(credentials_stay_with_their_host),
                                        TAP(https_is_never_left),
                                        TAP(what_has_a_digest_is_verified),
                                        TAP(causes_decide_what_to_do),
                                        { 0 } });
}
