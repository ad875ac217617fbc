/* The texts of questions to webhooks, and the meaning of their answers. No sockets, no clock, no store.
 *
 *   AdmissionReview     asks whether a write is allowed and, of a mutating webhook, how it should be changed
 *   ConversionReview    asks for objects in another version
 *
 * An answer is untrusted: everything that is not exactly as the protocol demands becomes a failure whose text names the
 * fault in the words of kube-apiserver. Trees live in the given arena. */
#ifndef FLYBALL_WEBHOOK_CORE_H
#define FLYBALL_WEBHOOK_CORE_H

#include "../../json/json.h"

/* The answer to an HTTP request, or why there is none. */
struct hook_reply {
    int status;       /* HTTP */
    str content_type; /* "" when absent */
    str body;
    str failure; /* not empty: there was no answer */
};

enum hook_how {
    HOOK_UNKNOWN,
    HOOK_ALLOWED,
    HOOK_DENIED,
    HOOK_FAILED, /* the call failed: failurePolicy decides */
};

struct hook_verdict {
    enum hook_how how;
    str why;                     /* HOOK_FAILED: what went wrong */
    int code;                    /* HOOK_DENIED: of the Status, as are the next three */
    str message, reason;         /* the message names the webhook */
    const struct json *status;   /* the Status as the webhook gave it; or NULL */
    const struct json *warnings; /* strings; or NULL */
    const struct json *patch;    /* JSON patch with at least one operation; NULL: none */
};

/* The path of a URL as the client of kube-apiserver sends it: one slash between segments and none at the end, no "." and
 * "..". */
str webhook_clean_path(struct arena *a, str path);

/* The version of AdmissionReview or ConversionReview to send: the first in the list that the server knows. */
str webhook_choose_version(const struct json *versions);

/* The text of an AdmissionReview. `request` lacks only the uid. */
str webhook_admission_text(struct arena *a, str version, str uid, const struct json *request);
/* Reads the answer of the webhook called `name`, whose uid must be that of the question.
 * A mutating webhook may return a patch, a validating one must not. */
void webhook_admission_read(struct arena *a, const struct hook_reply *reply, str name, str version,
                            str uid, bool mutating, struct hook_verdict *ret);

/* The text of a ConversionReview of objects (a JSON list) into the given apiVersion. */
str webhook_conversion_text(struct arena *a, str version, str uid, str wanted,
                            const struct json *objects);
/* Reads the converted objects, as many as were sent and in their order. NULL: failed; `why` continues the sentence
 * "conversion webhook for KIND". Metadata other than labels and annotations is that of the originals. */
struct json *webhook_conversion_read(struct arena *a, const struct hook_reply *reply, str version,
                                     str uid, str wanted, const struct json *objects, str *ret_why);

#endif
