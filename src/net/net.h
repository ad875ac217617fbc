/* net: the event loop, TLS and HTTP. The only folder that uses libuv, OpenSSL, nghttp2, llhttp and
 * zlib; its public headers include none of them.
 *
 *   loop           time (real, scaled or virtual), timers, deferred calls, workers, signals, child
 *                  processes, descriptors
 *
 *   tls, cert      contexts for clients and servers, identities from client certificates, new
 *                  certificates
 *
 *   http           what both sides share: headers, status texts, percent-encoding, queries
 *
 *   http_server    HTTP/1.1 and HTTP/2; a request is answered at once, later, or as a stream
 *
 *   http_client    calls over pooled HTTP/1.1 and HTTP/2 connections
 *
 * One thread: everything here belongs to the thread that runs its loop. Nothing blocks. A callback
 * may call any function, including the one that frees the object it was called for, unless that
 * function's comment excludes it.
 *
 * Memory: what a callback receives (`str`, headers) is borrowed and valid until the callback
 * returns, unless documented otherwise. What is passed in is copied, unless it is a buffer to be
 * taken. Everything that a remote peer can make large has a limit.
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
