/* net: the loop, TLS and HTTP. The only folder that sees libuv, OpenSSL, nghttp2, llhttp and zlib;
 * its headers show none of them.
 *
 *   loop           time (real, scaled or virtual), timers, deferred calls, workers, signals, child
 *                  processes, descriptors
 *
 *   tls, cert      contexts for both sides, identities from client certificates, making certificates
 *
 *   http           words both sides share: headers, status texts, percent-encoding, queries
 *
 *   http_server    HTTP/1.1 and HTTP/2: exchanges that are answered at once, later, or as streams
 *
 *   http_client    calls over pooled HTTP/1.1 and HTTP/2 connections
 *
 * One thread: everything here belongs to the thread that runs its loop. Nothing blocks. A callback
 * may call anything, also what ends the object it was called for; where an object dies is said at its
 * functions.
 *
 * Memory: what a callback is given (`str`, headers) is borrowed and dies when the callback returns,
 * unless its header says otherwise; what is passed in is copied, unless it is passed as a buffer to
 * be taken. Everything a stranger can make large has a limit.
 *
 * Read first: loop_run() in loop.h, struct exchange in http_server.h, http_client_send(). */
#ifndef FLYBALL_NET_H
#define FLYBALL_NET_H

#include "cert.h"
#include "http.h"
#include "http_client.h"
#include "http_server.h"
#include "loop.h"
#include "tls.h"

#endif
