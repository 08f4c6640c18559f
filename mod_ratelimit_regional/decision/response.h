/* SPDX-License-Identifier: Apache-2.0 */
/* What clients, the access log and the error log see of a decision. */
#ifndef RLR_ANSWER_H
#define RLR_ANSWER_H

#include <stdbool.h>

#include <httpd.h>

#include "decide.h"
#include "subject.h"

/* Sets the environment variables of the decision for the access log. */
void rlr_answer_note(request_rec *r, const rlr_verdict_t *verdict);

/* One line for a key's first refusal in a window, and now and then one when
 * the table is full. */
void rlr_answer_log(request_rec *r, const rlr_verdict_t *verdict,
                    rlr_subject_t *subject);

/* Whether a refused request is for the status page, which is never refused;
 * the access log is told so. Finds the request's location. */
bool rlr_answer_is_for_status(request_rec *r, const rlr_verdict_t *verdict);

/* Sends the 429 of a refused request; returns what the handler returns. */
int rlr_answer_refuse(request_rec *r, const rlr_verdict_t *verdict);

/* Sees to it that the response to an admitted request tells what is left; more
 * often than once does no harm. */
void rlr_answer_promise(request_rec *r, const rlr_verdict_t *verdict);

/* Registers the filter that does so; in register_hooks. */
void rlr_answer_register(void);

#endif
