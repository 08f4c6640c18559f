/* SPDX-License-Identifier: Apache-2.0 */
/* A statement about one run alone, other than with its output, that fails: when
 * it is sent again, and for how long. */
#ifndef AGENT_SUPERVISOR_RETRY_H
#define AGENT_SUPERVISOR_RETRY_H

#include "../base/context.h"
#include "../lease/patience.h"
#include "failure.h"

/*
 * Takes a failure, and sets when the statement is sent again. Returns whether
 * it is given up: after the third failure that counts, or when its connection
 * was lost for as long as the one of a line of output alone may be
 * (lease/patience.h). A cancel and transient failures never give it up.
 * others: the same statements about other runs that succeeded; cost: what this
 * one needs, in the measure of these.
 */
bool agent_retry_fail(agent_retry_t *retry, const agent_context_t *context,
                      agent_failure_t failure,
                      const agent_patience_saved_t *others, apr_size_t cost);

/* Whether it waits since it failed; *next becomes the time at which it is due
 * again, if that is earlier. */
bool agent_retry_waits(const agent_retry_t *retry, apr_time_t now,
                       apr_time_t *next);

#endif
