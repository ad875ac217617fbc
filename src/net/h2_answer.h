/* Answers of the HTTP/2 server: what h2_server.c submits for an exchange. Private to net/. */
#ifndef FLYBALL_H2_ANSWER_H
#define FLYBALL_H2_ANSWER_H

#include "session.h"

#include <nghttp2/nghttp2.h>

/* Submits the head. nghttp2 copies it and reads the body from the exchange later; a head that it does not accept
 * resets the stream. */
void h2_answer_submit(nghttp2_session *ng, struct exchange *x, const struct answer_head *head,
                      str date);

#endif
