/* SPDX-License-Identifier: Apache-2.0 */
/*
 * `SetHandler ratelimit-status`: the counters of all rules as HTML, JSON and
 * Prometheus text; queries for the rule of a request and what is left; the
 * reset of a key. Access is controlled by `Require`.
 */
#ifndef RLR_HANDLER_H
#define RLR_HANDLER_H

#include <httpd.h>

/* The handler hook. Returns OK after a response, DECLINED for other handlers'
 * requests, or the HTTP status of an error. */
int rlr_handler_run(request_rec *r);

#endif
