/* SPDX-License-Identifier: Apache-2.0 */
/* The body of a request that is refused. */
#ifndef RLR_BODY_H
#define RLR_BODY_H

#include <stdbool.h>

#include <httpd.h>

/* Bytes that are worth reading to keep the connection. */
#define RLR_BODY_DROP_MAX (1024 * 1024)

/*
 * Reads and drops the body, up to RLR_BODY_DROP_MAX and LimitRequestBody; a
 * longer one is left, and the connection is closed behind the answer. Without
 * this the client, still sending, might see a reset instead of the answer.
 *
 * False: the body is such that httpd has answered while it was read (400, 413).
 */
bool rlr_body_drop(request_rec *r);

#endif
