/* A registry that answers anything: the dialogue ends after a bounded number of requests, sends no credentials to another
 * host, never leaves HTTPS, and a failure is a sentence without secrets. The bytes are the name of an image and answers,
 * each "status <TAB> content type <TAB> location <TAB> challenge <TAB> link <LF> body", separated by 0x1e; a pull secret is tried
 * as well. */
#include "fuzz.h"

#include "registry/registry.h"

enum { REQUESTS_MAX = 2500 }; /* 100 pages, each redirected and tried again */

#define PASSWORD S("TOPSECRET")

static struct registry_answer read_answer(str block)
{
    struct registry_answer a = { 0 };
    size_t end = str_find_char(block, '\n');
    str head = end == SIZE_MAX ? block : str_upto(block, end), field;
    int64_t status = 200;
    a.body = end == SIZE_MAX ? S("") : str_from(block, end + 1);
    str *fields[] = { NULL, &a.content_type, &a.location, &a.authenticate, &a.link };
    for (size_t i = 0; i < countof(fields) && str_cut(&head, '\t', &field); i++) {
        if (fields[i])
            *fields[i] = field;
        else if (str_to_i64(field, &status))
            status = 0;
    }
    a.status = (int)(status & 1023);
    a.failure = S("the connection was closed");
    return a;
}

static void check_request(const struct registry_request *r, str registry)
{
    struct registry_url url;
    if (!registry_url_parse(r->url, &url) || !url.tls)
        abort(); /* HTTP was not allowed */
    bool secret = str_starts(r->authorization, S("Basic "));
    if (secret && r->target == REGISTRY_REDIRECT)
        abort();
    if (secret && r->target == REGISTRY_HOST && !str_eq(url.host, registry))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    auto_arena struct arena a = { 0 };
    str input = { (const char *)data, size }, rest = input, name, block = S("");
    struct registry_question q = { 0 };
    struct registry_dialogue d;
    struct registry_request request;
    struct registry_credentials found;
    err_t e;
    if (!size || !str_cut(&rest, 0x1e, &name))
        return 0;
    if (str_find(input, PASSWORD) != SIZE_MAX)
        return 0; /* libFuzzer learns the word from the comparison below; then a message may repeat its input */
    if (registry_reference_parse(&a, name, &q.image, &e) < 0) {
        if (!e.text[0])
            abort();
        return 0;
    }
    struct registry_secret secret = { S("kubernetes.io/dockerconfigjson"), rest };
    registry_keychain_find(&a, &secret, 1, &q.image, true, &found, NULL);
    q.list = (enum registry_list)(size & 3); /* labels, or one of the lists */
    q.credentials = (struct registry_credentials){ true, S("bob"), PASSWORD, S("") };
    registry_dialogue_start(&d, &a, &q);
    int n = 0;
    while (registry_dialogue_next(&d, &request)) {
        if (++n > REQUESTS_MAX)
            abort();
        check_request(&request, q.image.registry);
        str_cut(&rest, 0x1e, &block); /* the last one repeats */
        struct registry_answer answer = read_answer(block);
        registry_dialogue_answer(&d, &answer);
    }
    if (d.result.cause != REGISTRY_OK &&
        (!d.result.message.n || str_find(d.result.message, PASSWORD) != SIZE_MAX))
        abort();
    return 0;
}
