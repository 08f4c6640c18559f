/* SPDX-License-Identifier: Apache-2.0 */
/* Reports a decision to the client, the access log and the error log. */
#ifndef RLR_RESPONSE_H
#define RLR_RESPONSE_H

#include <stdbool.h>

#include <httpd.h>

#include "decide.h"
#include "subject.h"

/* Sets the environment variables of the access log: RATELIMIT_DECISION, and
 * for a rule RATELIMIT_RULE, _KEY and _REMAINING. */
void rlr_response_set_environment(request_rec *r,
                                  const rlr_decision_t *decision);

/* Changes RATELIMIT_DECISION alone. */
void rlr_response_set_outcome(request_rec *r, rlr_outcome_t outcome);

/* Logs a key's first refusal in a window, and once a minute that the table or
 * an address's share is full. */
void rlr_response_log(request_rec *r, const rlr_decision_t *decision,
                      rlr_subject_t *subject);

/* Whether a refused request is for the status page, which is never refused:
 * operators over their own limit must be able to see and reset it, and
 * `Require` refuses other clients. Walks the request's <Location>. */
bool rlr_response_is_for_status(request_rec *r, const rlr_decision_t *decision);

/* Sends the 429 of a refused request. Returns OK, or 429 for httpd to send an
 * ErrorDocument. */
int rlr_response_refuse(request_rec *r, const rlr_decision_t *decision);

/* Adds the RateLimit headers to the response of an admitted request, by an
 * output filter. May be called repeatedly. */
void rlr_response_add_headers(request_rec *r, const rlr_decision_t *decision);

/* Registers the output filter; call it in register_hooks. */
void rlr_response_register(void);

#endif
