/* SPDX-License-Identifier: Apache-2.0 */
/* Requests with "Upgrade: h2c". If httpd upgrades to HTTP/2, it processes the
 * request twice: as sent, and as the first stream of the new connection. It is
 * charged the first time only. */
#ifndef RLR_UPGRADE_H
#define RLR_UPGRADE_H

#include "decide.h"

/* Stores the decision on a request that may be processed again. */
void rlr_upgrade_remember(request_rec *r, const rlr_decision_t *decision,
                          rlr_subject_t *subject);

/* Whether this stream is the request that its connection was charged for, and
 * the first such stream; then *decision is the stored one. Any thread. */
bool rlr_upgrade_take(rlr_decision_t *decision, const request_rec *r,
                      const rlr_vhost_t *vhost, rlr_subject_t *subject);

#endif
