/* Webhooks: other programs that are asked about writes (admission) and for objects in other versions (conversion).
 *
 *   webhook_core.c    the texts of questions, and what answers mean; no I/O
 *   webhook.c         which admission webhooks a write concerns, in which order, and what follows from their answers
 *   webhook_call.c    the calls over HTTPS, and the requests that wait for them
 *
 * A call that needs an answer does not block and does not keep half of its work: it notes the question, stops, and
 * runs again from the start when the answer has arrived, with the same clock and the same random numbers. Questions
 * that were answered before are not asked again. If the state that they depend on has changed in the meantime, the
 * questions differ and are asked again, which is what the retry of kube-apiserver after a conflict does. Only a run that
 * needs no further answer writes. */
#ifndef FLYBALL_WEBHOOK_H
#define FLYBALL_WEBHOOK_H

#include "admission.h"
#include "webhook_core.h"

/* Where a webhook is. */
struct hook_target {
    str url;         /* with the timeout; for messages */
    str origin;      /* scheme, address and port to connect to */
    str path;        /* with the timeout */
    str server_name; /* that the certificate must have; "": the host of the URL */
    str ca;          /* base64 of PEM; "": the authorities of the system */
    str fault;       /* why it cannot be called; "": it can */
    int64_t timeout_s;
};

struct hook_question {
    str id;                     /* who asks; the same question of another is another question */
    str version;                /* of the review */
    const struct json *request; /* AdmissionRequest without its uid; or a list of objects */
    str wanted;                 /* apiVersion to convert to; "": a question about admission */
};

struct hook_answer {
    struct hook_reply reply;
    str uid; /* of the question */
};

/* ---- webhook_call.c */

void webhook_target(struct call *c, const struct json *client_config, int64_t timeout_s,
                    struct hook_target *ret);
/* The answer, if it is known. NULL: the call waits for it (or was answered, because it took too long), and must return. */
const struct hook_answer *webhook_ask(struct call *c, const struct hook_target *target,
                                      const struct hook_question *question);
/* Whether further questions of this run can be asked. False: the others are asked in the next run. */
bool webhook_has_room(const struct call *c);
/* Frees an answer that is not needed in the next run. */
void webhook_forget(struct call *c, const struct hook_answer *answer);
/* Makes a call that no client sent able to ask; `resume` runs it again. */
void webhook_prepare(struct call *c, void (*resume)(struct call *c));
/* Whether the call waits for an answer; server_resume() runs it again then. */
bool webhook_is_waiting(const struct call *c);
/* Cancels what the call waits for. False: it does not wait. */
bool webhook_cancel(struct call *c);
/* Frees what the call kept between its runs. */
void webhook_release(struct call *c);

/* Before and after each run of a call that may have to wait: its clock and random numbers take the place of those of the
 * server, so that every run makes the same object. What a run allocates is freed at its end. */
void webhook_begin_run(struct call *c, struct random *ret_others);
void webhook_end_run(struct call *c, const struct random *others);

/* Whether the value of --service-address is well-formed; NULL is. */
int webhook_check_services(const char *list, err_t *e);

struct webhooks;
void webhook_abort_all(struct server *s); /* answers all that wait with 503 */
void webhook_free(struct server *s);

/* ---- webhook.c */

bool webhook_exist(struct server *s); /* is there any configuration? */
/* Runs mutating policies and asks the mutating webhooks; r->object is replaced by what they made of it. False: answered, or waiting. */
bool webhook_mutate(struct admission_request *r);
/* Asks all validating webhooks at once. False: answered, or waiting. */
bool webhook_validate(const struct admission_request *r);

/* Answers with 500 "Internal error occurred". */
void webhook_answer_internal(struct call *c, str why);
/* Why the patch does not apply, in the words of kube-apiserver. */
str webhook_describe_patch_error(struct arena *a, const struct json *object,
                                 const struct json *patch, const err_t *e);

struct hook_config;
void webhook_configs_free(struct hook_config *first);

#endif
