/* One dialogue with a registry, from the name of an image to its labels, or to a list of tags or repositories. Pure: the caller
 * sends each request and passes the answer.
 *
 *     struct registry_dialogue d;
 *     registry_dialogue_start(&d, arena, &question);
 *     while (registry_dialogue_next(&d, &request))
 *         registry_dialogue_answer(&d, &answer);
 *     -> d.result
 *
 * Everything lives in the arena until the caller resets it. Credentials are in `authorization` of a request and nowhere
 * else: no text of a result contains them. */
#ifndef FLYBALL_DIALOGUE_CORE_H
#define FLYBALL_DIALOGUE_CORE_H

#include "../json/json.h"
#include "challenge_core.h"
#include "keychain_core.h"

enum {
    REGISTRY_MANIFEST_BYTES = 4 << 20,
    REGISTRY_CONFIG_BYTES = 8 << 20,
    REGISTRY_TOKEN_BYTES = 64 << 10,
    REGISTRY_REDIRECTS = 5,
    REGISTRY_TRIES = 3, /* of one request, with 100 ms, 300 ms between */
    REGISTRY_SCOPES = 4,
    REGISTRY_VALUES = 200000, /* of a document: bounds the memory of its tree */
    REGISTRY_NAMES = 10000,   /* of a list, from all its pages */
    REGISTRY_PAGES = 100,
};

/* What is asked for: the labels of an image, or a list of names. */
enum registry_list {
    REGISTRY_LABELS,
    REGISTRY_TAGS,    /* of the repository */
    REGISTRY_CATALOG, /* the repositories of the registry */
    REGISTRY_HUB,     /* the repositories of a namespace of Docker Hub: `repository` is its name */
};

struct registry_question {
    struct registry_reference image;
    enum registry_list list;
    struct registry_credentials credentials;
    bool plain_http;          /* the operator allows HTTP for this registry */
    const char *architecture; /* of the nodes; NULL: amd64 */
};

/* Who is asked, which decides what addresses are allowed (address_core.h). */
enum registry_target { REGISTRY_HOST, REGISTRY_REALM, REGISTRY_REDIRECT };

struct registry_request {
    str url;
    str accept;        /* empty: none */
    str authorization; /* secret; empty: none */
    size_t bytes_max;  /* of the body */
    int64_t wait_ms;   /* before it is sent: a retry */
    enum registry_target target;
};

struct registry_answer {
    int status;     /* 0: no answer */
    str failure;    /* why not */
    bool too_large; /* the body is larger than bytes_max */
    bool refused;   /* the address may not be connected to: not retried */
    str body;
    str content_type, location, authenticate, retry_after, link; /* headers; empty: absent */
};

/* Where the dialogue failed, as the original names it. */
enum registry_stage { REGISTRY_AT_MANIFEST, REGISTRY_AT_IMAGE, REGISTRY_AT_CONFIG };

/* What to do about a failure. */
enum registry_cause {
    REGISTRY_OK,
    REGISTRY_UNREACHABLE, /* network, TLS, 5xx, time: RegistryUnreachable */
    REGISTRY_DENIED,      /* 401, 403: ImagePullAuthFailure */
    REGISTRY_NOT_FOUND,   /* 404: ImageNotFound */
    REGISTRY_LIMITED,     /* 429: RateLimited */
    REGISTRY_MALFORMED,   /* anything else: MetadataExtractionFailed */
    REGISTRY_CAUSE_N
};

const char *registry_cause_reason(enum registry_cause cause);

struct registry_result {
    bool done;
    enum registry_cause cause;
    enum registry_stage stage; /* of a failure */
    int status;                /* HTTP status of a failure; 0: it was none */
    const struct json *codes;  /* error codes of the registry; NULL: none */
    str message;               /* of a failure: one sentence */
    str retry_after;           /* of 429; empty: unknown */
    const struct json *labels; /* NULL: the image has none */
    str digest;                /* of the manifest that was read */
    struct json *names;        /* of a list; NULL: labels were asked for */
};

enum registry_step {
    REGISTRY_PING,
    REGISTRY_TOKEN,
    REGISTRY_MANIFEST,
    REGISTRY_CHILD, /* the manifest of the platform */
    REGISTRY_CONFIG,
    REGISTRY_LIST,
};

struct registry_dialogue {
    struct arena *a;
    struct registry_question q;
    enum registry_step step, after_token;
    str path_after_token; /* of the request that waits for the token */
    struct registry_challenge challenge;
    str scopes[REGISTRY_SCOPES];
    size_t scope_n;
    str token;
    bool basic, renewed; /* credentials are sent as they are; a second token was requested */
    int redirects, tries, pages;
    struct registry_url at; /* of the current request */
    enum registry_target target;
    bool same_host; /* authorization may be sent there */
    str child, child_type, config;
    int64_t config_bytes;
    struct registry_result result;
};

void registry_dialogue_start(struct registry_dialogue *d, struct arena *a,
                             const struct registry_question *q);
/* False: the dialogue is over, see d->result. */
bool registry_dialogue_next(struct registry_dialogue *d, struct registry_request *ret);
void registry_dialogue_answer(struct registry_dialogue *d, const struct registry_answer *answer);

#endif
