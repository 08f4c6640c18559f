/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a refused request. */
#ifndef RLR_BODY_H
#define RLR_BODY_H

#include <stdbool.h>

#include <httpd.h>

/* Bytes read at most to keep the connection open. */
#define RLR_BODY_DROP_MAX (1024 * 1024)

/*
 * Reads and discards the body, up to RLR_BODY_DROP_MAX and LimitRequestBody. A
 * longer one is not read, and the connection is closed after the response; so
 * is the connection of one that has not arrived after a wait of a second, or at
 * once while an eighth of the child's threads wait for bodies.
 * Without this a client that is still sending might see a reset instead of the
 * response. Returns false if httpd has rejected the body with a response of
 * its own (400, 413).
 */
bool rlr_body_drop(request_rec *r);

#endif
