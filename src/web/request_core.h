/* The parts of a request that are not JSON or a query: cookies, credentials and event ids. Pure: everything here is
 * untrusted text. */
#ifndef FLYBALL_WEB_REQUEST_CORE_H
#define FLYBALL_WEB_REQUEST_CORE_H

#include "../base/str.h"

/* The value of a cookie in the value of a Cookie header; "": absent. */
str web_request_cookie(str header, str name);

/* The token of an Authorization header of scheme Bearer; "": none. `header` may have a NULL pointer. */
str web_request_bearer(str header);

/* The number of an event id "EPOCH-NUMBER" of this epoch; false: of another process, or not an id. */
bool web_request_event_id(str id, const char *epoch, uint64_t *ret);

#endif
